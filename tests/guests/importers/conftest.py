"""Folders of other programs, made by hand, and a session folder to import them into."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest

from plainmind.guests.importers.importer import Importer
from plainmind.sessions.store import SessionStore


@dataclass(frozen=True)
class Here:
    """A session folder, and what was imported into it."""

    folder: str

    def take(self, program, path, **options):
        rehearsal = options.pop("is_rehearsal", False)
        return Importer(program, lambda _: self.folder, **options).run(str(path), is_rehearsal=rehearsal)

    @property
    def store(self):
        return SessionStore(self.folder)

    def entries(self, name):
        return list(self.store.open(name).entries())

    def spoken(self, name):
        """`User: …` and `Assistant: …`, as the index will see them."""
        from plainmind.sessions.entries import message_of

        return [found.line for entry in self.entries(name) if (found := message_of(entry)) is not None]


@pytest.fixture
def here(tmp_path):
    return Here(str(tmp_path / "home" / "agents" / "main" / "sessions"))


@pytest.fixture
def write(tmp_path):
    """Write a file of another program: lines of JSON, a document, or bytes."""

    def make(relative, content):
        path = tmp_path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, list):
            path.write_bytes(b"".join(as_line(line) for line in content))
        else:
            path.write_text(json.dumps(content, indent=1))
        return path

    return make


def as_line(line):
    return line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() + b"\n"


def add(path, *lines):
    with open(path, "ab") as file:
        for line in lines:
            file.write(as_line(line))


def looks_of(folder):
    """Everything that could tell that a file was touched: name, inode, mode, times, bytes."""
    looks = {}
    for inside, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "locks"]
        for name in names:
            path = os.path.join(inside, name)
            status = os.stat(path)
            with open(path, "rb") as file:
                looks[path] = (
                    status.st_ino, status.st_mode, status.st_mtime_ns, status.st_ctime_ns, file.read(),
                )  # fmt: skip
        looks[inside] = sorted(names)
    return looks
