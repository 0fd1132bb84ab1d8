"""memsearch's own class, open, asked line by line: python memsearch_open.py NOTES DATABASE URL."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from memsearch import MemSearch


async def answer(memory: Any, workspace: str, request: dict[str, str]) -> dict[str, Any]:
    """Search, or read one file again."""
    if "search" not in request:
        await memory.index_file(os.path.join(workspace, request["sync"]))
        return {}
    hits = await memory.search(request["search"], top_k=6)
    return {"shown": [{"path": hit["source"], "text": hit["content"]} for hit in hits]}


def main(workspace: str, database: str, url: str) -> None:
    """Answer until the input ends."""
    memory = MemSearch(
        [workspace], embedding_provider="openai", embedding_model="plainmind-builtin",
        embedding_base_url=url, milvus_uri=database,
    )  # fmt: skip
    print(json.dumps({"ready": True}), flush=True)
    with asyncio.Runner() as loop:
        for line in sys.stdin:
            print(json.dumps(loop.run(answer(memory, workspace, json.loads(line)))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
