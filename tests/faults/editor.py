"""Saves a file again and again, the way one kind of editor does: editor.py KIND PATH SAVES SEED."""

from __future__ import annotations

import os
import random
import re
import sys
import time

KINDS = (
    "in place",
    "by renaming",
    "in place, read early",
    "by renaming, read early",
    "appending",
    "autosave",
)


def save_in_place(path: str, text: bytes) -> None:
    """Empty the file, and write it in two pieces: nano, VS Code."""
    with open(path, "wb", buffering=0) as file:
        half = len(text) // 2
        file.write(text[:half])
        file.write(text[half:])


def save_by_renaming(path: str, text: bytes) -> None:
    """Write beside the file, and rename over it: vim, emacs."""
    beside = f"{os.path.dirname(path)}/.editor~"
    with open(beside, "wb", buffering=0) as file:
        file.write(text)
    os.replace(beside, path)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def edit(text: bytes, number: int) -> bytes:
    """Change a line near the top, to one of another length."""
    return re.sub(rb"edited \d+ times!*", b"edited %d times" % number + b"!" * (number % 7), text, count=1)


def main() -> None:
    kind, path, saves, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)
    save = save_by_renaming if "renaming" in kind else save_in_place
    print("ready", flush=True)
    kept = read(path)
    for number in range(1, saves + 1):
        time.sleep(chance.random() * 0.12)
        if kind == "appending":
            with open(path, "ab", buffering=0) as file:
                file.write(b"added by hand %d\n" % number)
            continue
        if kind != "autosave" or number % 10 == 0:
            kept = read(path)
        if "early" in kind:
            time.sleep(chance.random() * 0.02)
        kept = edit(kept, number)
        save(path, kept)
    print("done", flush=True)


if __name__ == "__main__":
    main()
