"""A process that adds to a session, or changes the registry, until it is killed, and says on a pipe what it does."""

from __future__ import annotations

import os
import random
import sys

SIZES = (200, 900, 3_000, 30_000, 300_000, 2_000_000)
WEIGHTS = (50, 25, 15, 6, 3, 1)


def message(writer: int, number: int, size: int) -> dict[str, object]:
    text = f"{writer}-{number} " * (size // 8)
    return {"role": "user", "content": text, "writer": writer, "number": number}


def main(folder: str, role: str, writer: int, number: int, size: int, seed: int, most: int) -> None:
    from plainmind.sessions.store import SessionStore

    store = SessionStore(folder, timeout_s=60)
    session = store.open("storm")
    chance = random.Random(seed)
    look_back = None  # only what an earlier life may have tried can be there already
    while number < most:
        os.write(1, f"try {writer} {number} {size}\n".encode())
        if role == "messages":
            session.append(message(writer, number, size), id=f"{writer}-{number}", look_back_bytes=look_back)
            look_back = 0
        else:
            store.update("storm", **{f"w{writer}": number, f"padding{writer}": "x" * (size % 5_000)})
        os.write(1, f"ack {writer} {number}\n".encode())
        number += 1
        (size,) = chance.choices(SIZES, WEIGHTS)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv.pop(1))
    folder, role, *numbers = sys.argv[1:]
    main(folder, role, *map(int, numbers))
