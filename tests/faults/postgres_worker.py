"""One host of several on one PostgreSQL: python postgres_worker.py ROLE DSN NOTES SECONDS NAME.

It writes or searches until its time is up. A server that is down must be said to be down; anything else ends it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.faults.index_worker import FILES, catch_up, read_once, rebuild, write_once
from tests.support.index_contents import fingerprint
from tests.support.postgres_server import SCHEMA

from plainmind.base.errors import IndexCorrupt, IndexUnavailable, LockTimeout, PlainmindError
from plainmind.guests.postgres.store import PostgresStore


def open_shared(dsn: str) -> PostgresStore:
    """The index that all hosts share."""
    return PostgresStore(dsn, agent="fleet", workspace="shared", schema=SCHEMA)


def work(role: str, dsn: str, notes: Path, seconds: float, name: str) -> None:
    store, made = open_shared(dsn), fingerprint()
    dice = random.Random(name)
    done: Counter[str] = Counter()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if role == "search":
                read_once(store)
            elif dice.random() < 0.03:
                rebuild(store, notes, made)
            elif dice.random() < 0.2:
                catch_up(store, notes, made)
            else:
                content = f"v-{name}-{os.getpid()}-{sum(done.values())}"
                write_once(store, notes, f"{dice.randrange(FILES)}.md", content, made)
        except IndexCorrupt:
            raise
        except (IndexUnavailable, LockTimeout) as error:
            if not error.hint:
                raise
            done[f"refused: {str(error)[:40]}"] += 1
            time.sleep(0.05)
        except PlainmindError as error:
            sys.exit(f"{role}: {type(error).__name__}: {error}")
        else:
            done["answered"] += 1
    store.close()
    print(json.dumps(done))


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
