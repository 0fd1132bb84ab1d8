"""Copies of conversations for QMD to read: Markdown, without secrets, a folder for each scope, and not for ever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from commonplace.backends.qmd.collections import EVERY_NOTE, Collection, key_of_scope
from commonplace.errors import CommonplaceError
from commonplace.files.atomic import write_atomically
from commonplace.files.erasures import Erasures
from commonplace.files.failures import explaining
from commonplace.model import PRIVATE, FileFailure
from commonplace.pattern import pattern
from commonplace.sources.discovery import FoundFile
from commonplace.sources.transcripts import FOLDER, Transcripts

_OURS = pattern(r"private|scope-[0-9a-f]{16}")
_DAY_S = 86_400


class Exports:
    """The copies of one agent's conversations in one folder."""

    def __init__(
        self,
        transcripts: Transcripts,
        folder: str,
        erasures: Erasures,
        *,
        agent_id: str,
        retention_days: int,
    ) -> None:
        self._transcripts = transcripts
        self._erasures = erasures
        self._folder = folder
        self._agent_id = agent_id
        self._retention_s = retention_days * _DAY_S

    def collections(self) -> tuple[Collection, ...]:
        """One for each scope that a copy was made for, and one for the owner's own."""
        scopes = {PRIVATE: None} | dict.fromkeys(found.scope for found in self._transcripts.discover().files)
        return tuple(
            Collection(
                f"sessions-{'' if scope == PRIVATE else key_of_scope(scope) + '-'}{self._agent_id}",
                os.path.join(self._folder, key_of_scope(scope)),
                EVERY_NOTE,
                FOLDER,
                scope,
                "sessions",
            )
            for scope in scopes
        )

    def wanted(self, now: float) -> dict[str, FoundFile]:
        """The conversations that are to be copied, by the path of the copy."""
        return {
            os.path.join(self._folder, key_of_scope(found.scope), export_name(found.path)): found
            for found in self._transcripts.discover().files
            if now - found.mtime_ns / 1e9 < self._retention_s
        }

    def bring_up_to_date(self, now: float) -> tuple[FileFailure, ...]:
        """Copy what is new or has grown, and remove what is too old or gone; what could not be copied, and why.

        A copy has the time of its original: that is how it is known to be up to date.
        """
        wanted = self.wanted(now)
        for path in _present(self._folder):
            if path not in wanted:
                _remove(path)
        failures = []
        for path, found in wanted.items():
            try:
                with self._erasures.held_off():
                    self._copy(path, found)
            except CommonplaceError as error:
                _remove(path)
                failures.append(FileFailure(found.path, str(error)))
        return tuple(failures)

    def erase(self) -> None:
        """Remove every copy."""
        erase_copies(self._folder)

    def _copy(self, path: str, found: FoundFile) -> None:
        with suppress(FileNotFoundError):
            if os.stat(path).st_mtime_ns == found.mtime_ns:
                return
        document, _ = self._transcripts.read(found)
        name = os.path.basename(path).removesuffix(".md")
        write_atomically(path, f"# Session {name}\n\n{document.text}\n".encode("utf-8", "replace"))
        with explaining("write", path):
            os.utime(path, ns=(found.mtime_ns, found.mtime_ns))


def erase_copies(exports: str) -> None:
    """Remove every copy from a folder of exports, also from one that is no longer in use."""
    for path in _present(exports):
        _remove(path)


def export_name(cited: str) -> str:
    """The name of a copy: `abc.md` of `sessions/abc.jsonl`, and another one of each other file."""
    name = cited.removeprefix(FOLDER)
    stem = name.removesuffix(".jsonl")
    is_plain = stem != name and "/" not in stem and "%" not in stem and not stem.endswith(".md")
    return f"{stem}.md" if is_plain else f"{name.replace('%', '%25').replace('/', '%2F')}.md"


def _present(exports: str) -> Iterator[str]:
    """The copies that there are; of other files nothing is known, and nothing removed."""
    for name in _names_in(exports):
        if _OURS.fullmatch(name):
            folder = os.path.join(exports, name)
            yield from (os.path.join(folder, file) for file in _names_in(folder) if file.endswith(".md"))


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove(path: str) -> None:
    with explaining("remove", path), suppress(FileNotFoundError):
        os.unlink(path)
