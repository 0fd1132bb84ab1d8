"""An open memory, asked line by line; the environment says where it is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import date
from typing import Any

from plainmind import Memory


def answer(memory: Memory, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Search; every search looks for changed files by itself."""
    if "search" not in request:
        return {}
    found = memory.search(request["search"], max_results=6, today=date.fromisoformat(request["today"]))
    return {"shown": [{"path": hit.path, "text": hit.snippet} for hit in found.hits]}


def main() -> None:
    """Answer until the input ends."""
    with Memory.from_environment(os.environ, cwd=os.getcwd()) as memory:
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(memory, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
