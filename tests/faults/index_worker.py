"""One process of the rebuild test: reads, writes or rebuilds the index until it is told to stop, or killed.

Every file of the index says in each of its chunks which version of it this is, so that a reader notices
when it is shown half of one and half of another.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from tests.support.index_contents import EVERYWHERE, embedded, file_state, fingerprint, vector

from plainmind.base.errors import ConflictError, IndexUnavailable
from plainmind.base.model import IndexFingerprint
from plainmind.files.atomic import write_atomically
from plainmind.files.system import hold_lock
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.protocol import IndexStore, keyword_candidates, vector_candidates

FILES = 12
PARTS = 5


def texts_of(path: str, content: str) -> list[str]:
    """The chunks of a file: each names the file, its version, and its part."""
    return [
        f"{path} {content} part{part} {hashlib.sha256(content.encode()).hexdigest()[:8]}"
        for part in range(PARTS)
    ]


def index_file(store: IndexStore, notes: Path, path: str, expecting: IndexFingerprint) -> None:
    """Index what the file says now."""
    content = (notes / path).read_text()
    store.replace_file(
        file_state(path, content), embedded(path, *texts_of(path, content)), expecting=expecting
    )


def catch_up(store: IndexStore, notes: Path, expecting: IndexFingerprint) -> None:
    """Index every file whose text is not the one in the index."""
    with store.reading() as reader:
        known = reader.files()
    for path in sorted(entry.name for entry in notes.glob("*.md")):
        state = known.get(("memory", path))
        if state is None or state.hash != file_state(path, (notes / path).read_text()).hash:
            index_file(store, notes, path, expecting)


def rebuild(store: SqliteStore, notes: Path, made: IndexFingerprint) -> None:
    """Make the whole index anew, then catch up on what was written meanwhile."""
    with store.rebuild(made, reason="a test") as fresh:
        for entry in sorted(notes.glob("*.md")):
            index_file(fresh, notes, entry.name, made)
    catch_up(store, notes, made)


def write_once(store: SqliteStore, notes: Path, path: str, content: str, made: IndexFingerprint) -> None:
    """Save a file, then index it; the file is the truth, so a crash in between is caught up later."""
    with hold_lock(str(notes / f"{path}.lock"), operation="write a note"):
        write_atomically(str(notes / path), content.encode())
        index_file(store, notes, path, made)


def read_once(store: SqliteStore) -> None:
    """Check that one view is whole: the same version of a file in all its chunks, by words and by vectors."""
    with store.reading() as reader:
        assert reader.fingerprint() is not None, "the index lost its fingerprint"
        counts = reader.counts()
        files = reader.files()
        assert len(files) == FILES, f"{len(files)} files"
        assert counts.chunks == {"memory": FILES * PARTS}, counts
        found = keyword_candidates(
            reader, [f"part{part}" for part in range(PARTS)], where=EVERYWHERE, limit=500
        )
        near = vector_candidates(reader, vector("x"), where=EVERYWHERE, limit=500)
        assert len(found) == len(near) == FILES * PARTS
        for (_, path), state in files.items():
            own = {each.chunk.text for each in found if each.chunk.path == path}
            content = next(iter(own)).split()[1]
            assert own == set(texts_of(path, content)), f"{path} is mixed"
            assert own == {each.chunk.text for each in near if each.chunk.path == path}
            assert state.hash == file_state(path, content).hash


def work(role: str, folder: str, notes: Path, name: str) -> None:
    """Do one thing again and again; say each time on standard output that it was done."""
    store = SqliteStore(folder)
    turn = 0
    made = fingerprint()
    while True:
        turn += 1
        started = time.perf_counter()
        try:
            if role == "read":
                read_once(store)
            elif role == "write":
                write_once(store, notes, f"{turn % FILES}.md", f"v-{name}-{os.getpid()}-{turn}", made)
                time.sleep(0.01)
            else:
                rebuild(store, notes, made)
        except (ConflictError, IndexUnavailable) as error:
            # Neither may happen: there is one fingerprint, and the index is never damaged.
            sys.exit(f"{role}: {error}")
        print(json.dumps({"role": role, "turn": turn, "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
