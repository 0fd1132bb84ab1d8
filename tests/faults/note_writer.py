"""A process that appends notes until it is killed, and says on a pipe what it tries and what succeeded."""

from __future__ import annotations

import json
import os
import random
import sys

SIZES = (200, 900, 3_000, 30_000, 300_000, 2_000_000)
WEIGHTS = (40, 25, 20, 9, 5, 1)


def markdown_note(name: str, size: int) -> bytes:
    """A note of several lines whose every part tells which note it is of; the id stands first or last."""
    line = f"  {name} " + "and so on " * 12
    body = "\n".join([line] * (size // len(line) + 1))
    if int(name[-1], 16) % 2:
        return f"- <!-- m:{name} --> first\n{body}\n  end of {name}\n".encode()
    return f"- first\n{body}\n  end of {name} <!-- m:{name} -->\n".encode()


def jsonl_note(name: str, size: int) -> bytes:
    return json.dumps({"id": name, "text": f"{name} " * (size // len(name))}).encode() + b"\n"


def main(
    tail_name: str, folder: str, file: str, seed: int, retry: str, retry_file: str, retry_size: int
) -> None:
    from plainmind.files.append import Tail, append

    tail = Tail(tail_name)
    make = markdown_note if tail is Tail.MARKDOWN else jsonl_note
    chance = random.Random(seed)

    def write(name: str, file: str, size: int) -> None:
        os.write(1, f"try {name} {file} {size}\n".encode())
        append(
            os.path.join(folder, "memory", file),
            make(name, size),
            state_dir=os.path.join(folder, "state"),
            record_id=f"m:{name}" if tail is Tail.MARKDOWN else f'"id": "{name}"',
            tail=tail,
            header=b"# A day\n\n" if tail is Tail.MARKDOWN else b"",
            timeout_s=60,
        )
        os.write(1, f"ack {name}\n".encode())

    if retry:
        write(retry, retry_file, retry_size)
    while True:
        write(f"{chance.getrandbits(64):016x}", file, *chance.choices(SIZES, WEIGHTS))


if __name__ == "__main__":
    sys.path.insert(0, sys.argv.pop(1))
    tail_name, folder, file, seed, retry, retry_file, retry_size = sys.argv[1:]
    main(tail_name, folder, file, int(seed), retry, retry_file, int(retry_size))
