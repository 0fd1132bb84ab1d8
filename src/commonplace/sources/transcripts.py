"""Transcripts of conversations as documents: one line of text a message, each leading back to its JSONL line.

Secrets are hidden in each message before it is cut: half a secret is found by nobody. The transcript stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from commonplace.files.beneath import Root, file_refusal, in_words, name_refusal, printable
from commonplace.model import Document, FileFailure, FileState, Source
from commonplace.sources.discovery import Discovery, FoundFile, system_reason
from commonplace.text.hashing import sha256_bytes
from commonplace.text.transcripts import entries_in, said
from commonplace.value import replace, value

MAX_FILE_BYTES = 64_000_000
_SUFFIX = ".jsonl"


@value
class Transcript:
    """What was said in one conversation. `line_map[i]` is the JSONL line of text line i + 1."""

    text: str
    line_map: tuple[int, ...]
    malformed: int = 0  # lines that are no JSON object
    is_unfinished: bool = False  # the last line is still being written, and was left for the next read


def as_it_is(text: str) -> str:
    """Hide nothing: for transcripts that are public."""
    return text


class Transcripts:
    """The files `*.jsonl` of one folder, cited as `sessions/<file>`."""

    def __init__(
        self,
        folder: str,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        redact: Callable[[str], str] = as_it_is,
    ) -> None:
        """Read from `folder`; `redact` gives a copy of a message without its secrets."""
        self.root = Root(folder)
        self._redact = redact
        self.max_file_bytes = max_file_bytes
        self.malformed_lines: dict[str, int] = {}  # by cited path, as of the latest read

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""
        return "sessions"

    def discover(self) -> Discovery:
        """List the transcripts by name. Never raises for what is on disk."""
        try:
            with os.scandir(self.root.real) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            unseen = () if isinstance(error, FileNotFoundError) else (FileFailure(".", system_reason(error)),)
            return Discovery((), unseen, root_missing=True)
        files: list[FoundFile] = []
        skipped: list[FileFailure] = []
        for entry in entries:
            if not entry.name.endswith(_SUFFIX) or entry.name.startswith("."):
                continue
            found = self._found(entry)
            if isinstance(found, FoundFile):
                files.append(found)
            else:
                skipped.append(found)
        return Discovery(tuple(files), tuple(skipped))

    def changed_since(self, moment: int | None) -> None:
        """Always None: only a look at the folder can tell."""

    def look_at(self, path: str) -> FoundFile | None:
        """Look again at a transcript that was listed."""
        return next((found for found in self.discover().files if found.path == path), None)

    def read(self, file: FoundFile) -> tuple[Document, FileState]:
        """Read one transcript. Raises PathNotAllowed, NotFound or WorkspaceError, never for what it says."""
        raw, status = file.root.read(file.relative, max_bytes=self.max_file_bytes)
        transcript = read_transcript(raw, redact=self._redact)
        self.malformed_lines[file.path] = transcript.malformed
        state = FileState(
            file.path,
            self.source,
            sha256_bytes(raw),
            status.st_size,
            status.st_mtime_ns,
            status.st_ino,
        )
        return Document(file.path, self.source, transcript.text, line_map=transcript.line_map), state

    def _found(self, entry: os.DirEntry[str]) -> FoundFile | FileFailure:
        cited = f"sessions/{entry.name}"
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            return FileFailure(printable(cited), system_reason(error))
        reason = name_refusal(entry.name) or file_refusal(status)
        if reason is None and status.st_size > self.max_file_bytes:
            reason = f"{in_words(status.st_size)}, over the limit of {in_words(self.max_file_bytes)}"
        if reason is not None:
            return FileFailure(printable(cited), reason)
        return FoundFile(
            cited,
            status.st_size,
            status.st_mtime_ns,
            status.st_ino,
            status.st_ctime_ns,
            self.root,
            entry.name,
        )


def read_transcript(raw: bytes, *, redact: Callable[[str], str] = as_it_is) -> Transcript:
    """Flatten a transcript: `User: …` and `Assistant: …`, one line a message; total, whatever the bytes are."""
    lines = raw.split(b"\n")
    texts: list[str] = []
    line_map: list[int] = []
    malformed = 0
    is_unfinished = False
    for number, line in enumerate(lines, 1):
        found = entries_in(line)
        if found.is_damaged and not found.entries:
            # Only the last line has no end yet: whoever writes it has not come to the closing brace.
            is_unfinished = number == len(lines)
            malformed += not is_unfinished
        for message in filter(None, map(said, found.entries)):
            # While it still has its own lines: those of a private key tell what they are.
            texts.append(replace(message, text=redact(message.text)).line)
            line_map.append(number)
    return Transcript("\n".join(texts), tuple(line_map), malformed, is_unfinished)
