"""A transcript grows while it is indexed and `kill -9` strikes: the index is what a rebuild would make, and no less."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.faults.transcript_indexer import indexer_of

import plainmind
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.sessions.store import SessionStore

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
KILLS = 300 if FULL else 6
WRITERS = 8
HERE = Path(__file__)
INDEXER = str(HERE.with_name("transcript_indexer.py"))
WRITER = str(HERE.with_name("session_writer.py"))
SOURCE = str(Path(plainmind.__file__).parents[1])


class Scene:
    """A session folder, an index, and where to say that all should end."""

    def __init__(self, folder: Path) -> None:
        self.sessions = folder / "sessions"
        self.index = folder / "index"
        self.end = folder / "end"
        self.session = SessionStore(self.sessions).create("storm")

    def start_indexer(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, INDEXER, str(self.sessions), str(self.index), str(self.end)],
            stdout=subprocess.PIPE,
        )

    def texts(self, store: SqliteStore) -> list[str]:
        """What the index holds of the session."""
        cited = f"sessions/{os.path.basename(self.session.path)}"
        with store.reading() as reader:
            return [chunk.text for chunk in reader.chunks_between("sessions", cited, 1, 10**9)]

    def check(self) -> list[str]:
        """Bring the index up to date, compare it with one that is made at once, and give what it holds."""
        store = SqliteStore(str(self.index))
        indexer = indexer_of(str(self.sessions), str(self.index), store)
        indexer.sync()
        grown = store.digest()
        texts = self.texts(store)
        indexer.sync(force=True)
        assert store.digest() == grown
        store.close()
        return texts


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def spoken(number: int) -> str:
    return f"message {number} about the gateway" + " and its backups" * (number % 50)


@pytest.mark.slow
@pytest.mark.timeout(600 if FULL else 60)
def test_an_indexer_killed_at_any_moment_leaves_what_the_next_one_goes_on_from(scene):
    chance = random.Random(7)
    done = threading.Event()
    said = 0

    def speak() -> None:
        nonlocal said
        while not done.is_set():
            scene.session.append({"role": "user", "content": spoken(said)})
            said += 1
            time.sleep(0.001 if FULL else 0.004)

    speaking = threading.Thread(target=speak, name="speaking")
    speaking.start()
    try:
        for _ in range(KILLS):
            indexer = scene.start_indexer()
            assert indexer.stdout is not None
            assert indexer.stdout.readline() == b"synced\n"
            time.sleep(chance.uniform(0, 0.1))
            indexer.kill()
            indexer.wait()
            indexer.stdout.close()
    finally:
        done.set()
        speaking.join()

    assert scene.check() == [f"User: {spoken(number)}" for number in range(said)]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_eight_writers_and_two_indexers_lose_nothing_and_double_nothing(scene):
    each = 200 if FULL else 15
    indexers = [scene.start_indexer() for _ in range(2)]
    assert [indexer.stdout.readline() for indexer in indexers] == [b"synced\n"] * 2  # both are at work
    arguments = [[scene.sessions, "messages", name, 0, 900, name, each] for name in range(WRITERS)]
    writers = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", WRITER, SOURCE, *map(str, given)], stdout=subprocess.DEVNULL
        )
        for given in arguments
    ]
    store = SqliteStore(str(scene.index))
    seen: list[list[str]] = []
    while any(writer.poll() is None for writer in writers):
        seen.append(scene.texts(store))
        time.sleep(0.05)
    scene.end.touch()
    for indexer in indexers:
        indexer.communicate()
    store.close()

    assert [writer.returncode for writer in writers] == [0] * WRITERS
    assert [indexer.returncode for indexer in indexers] == [0, 0]
    final = scene.check()
    names = [text.removeprefix("User: ").partition(" ")[0] for text in final]
    assert set(names) >= {f"{writer}-{number}" for writer in range(WRITERS) for number in range(each)}
    # Whoever looked in between saw the beginning of the conversation, and never anything else.
    assert all(final[: len(texts)] == texts for texts in seen)
    assert seen == sorted(seen, key=len)
