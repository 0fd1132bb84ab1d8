"""A process that makes sessions and then compacts, forks, converts, archives or deletes them, until it is killed."""

from __future__ import annotations

import os
import random
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plainmind.sessions.store import Session, SessionStore

MESSAGES = 3
CHANGES = ("archive", "compact", "convert", "convert back", "delete", "fork", "reset")


def change(name: str, store: SessionStore, session: Session) -> None:
    key = session.key or ""
    match name:
        case "archive":
            store.archive(key)
        case "compact":
            session.compact("all of it", keep=1)
        case "convert":
            store.convert("json5", key)
        case "convert back":
            store.convert("jsonl", key)
        case "delete":
            store.delete(key)
        case "fork":
            store.fork(key, f"{key}-fork")
        case "reset":
            session.reset("a new day")


def said(store: SessionStore, key: str) -> Session:
    """Begin a session with a few messages."""
    session = store.create(key)
    for each in range(MESSAGES):
        message = {"role": "user", "content": f"<{key}.{each}>"}
        session.append(message, id=f"{key}.{each}", look_back_bytes=0)
    return session


def main(folder: str, worker: int, number: int, seed: int) -> None:
    from plainmind.base.errors import NotFound
    from plainmind.sessions.store import SessionStore

    store = SessionStore(folder, timeout_s=60)
    chance = random.Random(seed)

    def say(verb: str, what: str) -> None:
        os.write(1, f"{verb}\t{worker}-{number}\t{what}\n".encode())

    while True:
        key = f"{worker}-{number}"
        say("try", "create")
        session = said(store, key)
        say("ack", "create")
        name = chance.choice(CHANGES)
        if name == "convert back":
            store.convert("json5", key)
        say("try", name)
        change(name, store, session)
        say("ack", name)
        if name != "delete":
            # Whoever has a session open goes on in whatever it has become meanwhile.
            with suppress(NotFound) if name == "archive" else nullcontext():
                message = {"role": "user", "content": f"<{key}.later>"}
                session.append(message, id=f"{key}.later", look_back_bytes=0)
                say("ack", "later")
        session.close()
        number += 1


if __name__ == "__main__":
    sys.path.insert(0, sys.argv.pop(1))
    main(sys.argv[1], *map(int, sys.argv[2:]))
