"""What must hold after a power cut: nothing acknowledged is lost or doubled, nothing forgotten comes back."""

from __future__ import annotations

import json
import os
import random
import zlib
from collections.abc import Iterator
from contextlib import closing

from tests.simulation.disk import Tree, texts
from tests.simulation.life import ENTRIES, Life, Program, holds

from plainmind.guests.entries.access import entry_memory_of


def inflated(data: bytes) -> bytes:
    """What an old version in the history says: they are kept packed."""
    try:
        return zlib.decompress(data)
    except zlib.error:
        return b""


def faults_of_bytes(life: Life, tree: Tree, at: int) -> Iterator[str]:
    """Say what is wrong with the bytes that the disk holds."""
    files = dict(texts(tree))
    notes = b"\n".join(data for path, data in files.items() if holds("notes", path))
    talks = b"\n".join(data for path, data in files.items() if holds("talk", path))
    entries = b"\n".join(data for path, data in files.items() if holds(ENTRIES, path))
    standing = {"notes": notes, ENTRIES: entries}
    everything = b"\n".join(data + inflated(data) for data in files.values())
    for word, promise in life.promises.items():
        token, allowed = word.encode(), promise.allowed(at)
        if promise.is_gone_for_good(at):
            if token in everything:
                where = [path for path, data in files.items() if token in data + inflated(data)]
                yield f"{word} was forgotten, and stands in {where}"
        elif -1 not in allowed:
            found = standing.get(promise.place, talks).count(token)
            if found not in allowed:
                yield f"{word} stands {found} times in {promise.place}, and may only {sorted(allowed)}"
    for path, data in files.items():
        if path.endswith("sessions.json") and data:
            try:
                json.loads(data)
            except ValueError:
                yield f"{path} is no longer JSON"


def faults_of_recovery(life: Life, at: int, chance: random.Random) -> Iterator[str]:
    """Start the program on what is left, use it, and say what is wrong."""
    with life.open() as program:
        word = life.word()
        remembered = program.remember(f"after the cut {word}")
        path = os.path.join(life.root, "ws", remembered.path)
        with open(path, "rb") as file:
            lines = [line for line in file.read().split(b"\n") if word.encode() in line]
        if len(lines) != 1 or b"after the cut" not in lines[0]:
            yield f"{word}, remembered after the cut, stands in {lines}"
        yield from _faults_of_talks(life, program, at)
        yield from _faults_of_sets(life, program, at)
        if life.with_entries:
            yield from _faults_of_entries(life, program, at)
        kept = [one.word for one in life.versions if one.is_due(at)]
        if kept:
            yield from _faults_of_history(program, chance.choice(kept))
        if life.with_index:
            yield from _faults_of_search(life, program, at, [word])
        program.forget(word)
    yield from _faults_of_forgetting(life.root, word)


def _faults_of_talks(life: Life, program: Program, at: int) -> Iterator[str]:
    keys = {promise.place for promise in life.promises.values()} - {"notes", ENTRIES}
    for key in sorted(keys):
        words = [word for word, one in life.promises.items() if one.place == key and one.allowed(at) == {1}]
        if not words:
            continue
        with program.sessions.open_or_create(key) as session:
            said = [str(message["content"]) for message in session.messages()]
            session.append({"type": "message", "message": {"role": "user", "content": "and on"}})
            again = [str(message["content"]) for message in session.messages()]
        found = [word for text in said for word in words if word in text]
        if found != words:
            yield f"{key} says {found} instead of {words}"
        if len(again) != len(said) + 1:
            yield f"{key} had {len(said)} messages, and after one more {len(again)}"


def _faults_of_sets(life: Life, program: Program, at: int) -> Iterator[str]:
    """What upkeep changes of several files is there as a whole, once a program has looked after it."""
    program.notes.notebook.recover()
    notes = "\n".join(program.get(file.path).text for file in program.list())
    for one in life.together:
        if one.begun <= at < one.done:
            counts = [notes.count(one.old) == 0, *(notes.count(new) == 1 for new in one.new)]
            if len(set(counts)) != 1:
                yield f"upkeep changed {one.old} to {one.new} by halves: {counts}"


def _faults_of_entries(life: Life, program: Program, at: int) -> Iterator[str]:
    with closing(entry_memory_of(program)) as entries:
        texts = [entry.text for entry in entries.list(scopes=frozenset({"private"}))]
        for word, promise in life.promises.items():
            if promise.place != ENTRIES:
                continue
            found = sum(word in text for text in texts)
            allowed = {max(0, count) for count in promise.allowed(at)}
            if found not in allowed:
                yield f"{word} is in {found} entries, and may only be in {sorted(allowed)}"
            if allowed == {1} and not any(
                word in hit.entry.text for hit in entries.recall(word, scopes=frozenset({"private"})).found
            ):
                yield f"{word} is in an entry, and is not recalled"


def _faults_of_history(program: Program, word: str) -> Iterator[str]:
    for version in program.history():
        if version.available and word.encode() in program.read_version(version.id):
            return
    yield f"no version of the history has {word}, which an edit took out"


def _faults_of_search(life: Life, program: Program, at: int, more: list[str]) -> Iterator[str]:
    program.sync()
    for word, promise in life.promises.items():
        if promise.place != "notes":
            continue
        hits = program.search(word, max_results=3).hits
        is_found = any(word in hit.snippet for hit in hits)
        if promise.allowed(at) == {1} and not is_found:
            yield f"{word} is in the notes, and a search does not find it"
        if (promise.allowed(at) == {0} or promise.is_gone_for_good(at)) and is_found:
            yield f"{word} is in no note, and a search finds it"
    for word in more:
        if not any(word in hit.snippet for hit in program.search(word, max_results=3).hits):
            yield f"{word} was written after the cut, and a search does not find it"


def _faults_of_forgetting(root: str, word: str) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
                if word.encode() in data + inflated(data):
                    yield f"{word} was forgotten after the cut, and stands in {os.path.join(folder, name)}"
