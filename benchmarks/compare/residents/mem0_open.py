"""mem0's own class, filled with notes or asked: python mem0_open.py NOTES FOLDER URL add | search TEXT | open."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mem0 import Memory

USER = "reader"
PIECE = 700
DIMS = 256


def opened(folder: str, url: str) -> Any:
    """Memories on this disk, with vectors from an address; nobody answers as a language model."""
    place = {"api_key": "none", "openai_base_url": url}
    return Memory.from_config(
        {
            "embedder": {
                "provider": "openai",
                "config": {"model": "plainmind-builtin", "embedding_dims": DIMS, **place},
            },
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": os.path.join(folder, "qdrant"),
                    "on_disk": True,
                    "embedding_model_dims": DIMS,
                    "collection_name": "notes",
                },
            },
            "llm": {"provider": "openai", "config": place},
            "history_db_path": os.path.join(folder, "history.db"),
        }
    )


def pieces(text: str) -> Iterator[str]:
    """Lines, as many as fit into one piece."""
    held = ""
    for line in text.splitlines():
        if held and len(held) + len(line) > PIECE:
            yield held
            held = ""
        held += line + "\n"
    if held.strip():
        yield held


def add(memory: Any, path: str, text: str) -> None:
    """Keep a text as it is."""
    memory.add(text, user_id=USER, infer=False, metadata={"path": path})


def search(memory: Any, text: str) -> dict[str, Any]:
    """The nearest memories."""
    found = memory.search(text, filters={"user_id": USER}, top_k=6)["results"]
    return {"shown": [{"path": one["metadata"]["path"], "text": one["memory"]} for one in found]}


def main(workspace: str, folder: str, url: str, verb: str, text: str = "") -> None:
    """Do what the verb says."""
    memory = opened(folder, url)
    if verb == "add":
        for note in sorted(Path(workspace).rglob("*.md")):
            for piece in pieces(note.read_text(encoding="utf-8")):
                add(memory, str(note.relative_to(workspace)), piece)
    elif verb == "search":
        print(json.dumps(search(memory, text)))
    else:
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            if "search" in request:
                print(json.dumps(search(memory, request["search"])), flush=True)
            else:
                add(memory, request["sync"], request["line"])
                print(json.dumps({}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
