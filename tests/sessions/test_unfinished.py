"""A change that a crash has cut in two, as those see it who come before anybody has finished it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.faulty_system import FaultySystem

from plainmind.base.errors import PlainmindError
from plainmind.sessions.registry import UNFINISHED
from plainmind.sessions.store import SessionStore


def begun(folder: Path) -> SessionStore:
    store = SessionStore(folder, system=FaultySystem())
    session = store.create("k", id="one")
    for text in ("first", "second"):
        session.append({"role": "user", "content": text, "usage": {"input": 2, "output": 1}})
    return store


def cut(tmp_path: Path, change: str, *arguments: str) -> Iterator[Path]:
    """Kill a change at every call of the system, and give the folders in which it is then unfinished."""
    for number in range(1, 400):
        folder = tmp_path / str(number)
        begun(folder)
        killed = SessionStore(folder, system=FaultySystem(fail_at=number, code=errno.EIO, sticky=True))
        try:
            getattr(killed, change)(*arguments)
        except (PlainmindError, OSError):
            registry = json.loads((folder / "sessions.json").read_text())
            if any(UNFINISHED in entry for entry in registry.values()):
                yield folder
        else:
            return


def texts(store: SessionStore) -> list[str]:
    return [message["content"] for message in store.open("k").messages()]


def test_a_conversion_that_was_cut_off_is_read_before_it_is_finished(tmp_path: Path) -> None:
    seen = set()
    for folder in cut(tmp_path, "convert", "json5", "k"):
        store = SessionStore(folder)
        (row,) = store.list()
        seen.add((os.path.exists(folder / "one.jsonl"), os.path.exists(folder / "chats" / "one.json5")))
        assert texts(store) == ["first", "second"]
        assert os.path.isfile(row.path)
        assert store.entry("k")["inputTokens"] == 4

        store.open("k").append({"role": "user", "content": "third"})
        store.update("k", label="on")
        assert texts(store) == ["first", "second", "third"]
        assert (folder / "one.jsonl").exists() != (folder / "chats" / "one.json5").exists()
        assert store.entry("k")["inputTokens"] == 4
        assert UNFINISHED not in (folder / "sessions.json").read_text()
    assert seen == {(True, False), (True, True), (False, True)}


def test_a_deletion_that_was_cut_off_is_finished_by_the_next_change(tmp_path: Path) -> None:
    count = 0
    for count, folder in enumerate(cut(tmp_path, "delete", "k"), 1):  # noqa: B007 (counted below)
        store = SessionStore(folder)
        store.create("other", id="two")

        assert [row.key for row in store.list()] == ["other"]
        left = [path for path in folder.rglob("*") if path.is_file() and "locks" not in path.parts]
        assert [
            path.name for path in left if b"first" in path.read_bytes() or b'"k"' in path.read_bytes()
        ] == []
    assert count > 3


@pytest.mark.timeout(60)
def test_an_archive_that_was_cut_off_is_made_or_not(tmp_path: Path) -> None:
    outcomes = set()
    for folder in cut(tmp_path, "archive", "k"):
        store = SessionStore(folder)
        store.create("other", id="two")
        is_there = "k" in [row.key for row in store.list()]
        outcomes.add((is_there, len(store.archives())))
        if is_there:
            assert texts(store) == ["first", "second"]
            store.archive("k")
        assert len(store.archives()) == 1
    assert outcomes == {(True, 0), (False, 1)}


def test_a_mark_that_nobody_understands_is_taken_off(tmp_path: Path) -> None:
    store = begun(tmp_path)
    for mark in ("of tomorrow", {"change": "of tomorrow"}):
        path = tmp_path / "sessions.json"
        registry = json.loads(path.read_text())
        registry["k"][UNFINISHED] = mark
        path.write_text(json.dumps(registry))

        store.update("k", label="x")

        assert UNFINISHED not in path.read_text()
        assert texts(store) == ["first", "second"]


@pytest.mark.parametrize("process", [os.getpid(), 1], ids=["ours", "the first"])
def test_what_a_running_process_is_making_is_left_alone(tmp_path: Path, process: int) -> None:
    store = begun(tmp_path)
    draft = tmp_path / ".plainmind" / "drafts" / f"x.{process}.jsonl"
    draft.parent.mkdir(parents=True)
    draft.write_text("{}")
    store.delete("k")

    assert draft.exists()
