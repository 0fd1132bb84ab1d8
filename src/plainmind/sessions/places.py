"""Where the files of a session folder are: registry, transcripts, archives, locks; nothing outside of the folder."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from plainmind.base.errors import PathNotAllowed, PlainmindError
from plainmind.base.pattern import pattern
from plainmind.sessions.entries import Entry

# In an entry of the registry: a change of its files that has begun and is not known to have ended.
UNFINISHED = "plainmindUnfinished"
REGISTRIES = {"jsonl": "sessions.json", "json5": "registry.json5"}
_SUBFOLDERS = ("chats", "groups")
_NAME = pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_ID = pattern(r"[A-Za-z0-9_-]{1,64}")
_ARCHIVE = pattern(r"(?P<name>.+\.(?:jsonl|json5))\.(?:reset|deleted|archived)\..+")


class Places:
    """The names in one session folder."""

    FOLDERS = (".", *_SUBFOLDERS)  # where transcripts are

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        # Derived from the folder and from nothing else: all users of the folder must find the same locks.
        self.state_dir = os.path.join(self.folder, ".plainmind")
        self.drafts = os.path.join(self.state_dir, "drafts")

    def registry(self, preferred: str | None = None) -> str:
        """The registry that is there; none yet: that of the preferred format."""
        for name in REGISTRIES.values():
            path = os.path.join(self.folder, name)
            if os.path.lexists(path):
                return path
        return os.path.join(self.folder, REGISTRIES[preferred or "jsonl"])

    def format(self, preferred: str | None = None) -> str:
        """The format of new sessions: the preferred one, else that of the registry."""
        if preferred is not None:
            return preferred
        name = os.path.basename(self.registry())
        return next(known for known, registry in REGISTRIES.items() if registry == name)

    def transcript(self, entry: Entry) -> str:
        """The path of a session's transcript. Raises PathNotAllowed for one outside of the folder."""
        named = entry.get("sessionFile")
        session_id = entry.get("sessionId")
        relative = named if isinstance(named, str) and named else f"{session_id}.jsonl"
        if os.path.isabs(relative):
            relative = self._inside(relative)
        folder, name = os.path.split(os.path.normpath(relative))
        if (folder and folder not in _SUBFOLDERS) or not _NAME.fullmatch(name):
            raise PathNotAllowed(
                f"the registry names a transcript outside of its folder: {relative}",
                hint=f"move the file into {self.folder} and name it there",
            )
        return os.path.join(self.folder, folder, name)

    def transcript_now(self, entry: Entry) -> str:
        """The same, also for a session whose conversion was cut off after the old file was removed."""
        path = self.transcript(entry)
        unfinished = entry.get(UNFINISHED)
        if (
            isinstance(unfinished, dict)
            and unfinished.get("change") == "convert"
            and not os.path.lexists(path)
        ):
            new = self.transcript(entry | {"sessionFile": unfinished.get("file")})
            return new if os.path.lexists(new) else path
        return path

    def draft(self, path: str) -> str:
        """Where a transcript is made that is not to be seen yet."""
        name, _, ending = os.path.basename(path).rpartition(".")
        return os.path.join(self.drafts, f"{name}.{os.getpid()}.{ending}")

    def new_transcript(self, format: str, session_id: str, entry: Entry) -> str:  # noqa: A002
        """Choose the path of a new session, relative to the folder."""
        if format == "jsonl":
            return f"{session_id}.jsonl"
        group = entry.get("groupId")
        if isinstance(group, str) and _ID.fullmatch(group):
            relative = f"groups/{group}.json5"
            if not os.path.lexists(os.path.join(self.folder, relative)):
                return relative
        return f"chats/{session_id}.json5"

    def transcripts(self) -> list[str]:
        """List the transcripts that are there, relative to the folder, archives left out."""
        found = [name for name in self._names(".") if name.endswith(".jsonl")]
        for folder in _SUBFOLDERS:
            found += [f"{folder}/{name}" for name in self._names(folder) if name.endswith(".json5")]
        return found

    def archives(self) -> list[str]:
        """List the archived transcripts, relative to the folder."""
        found = [name for name in self._names(".") if _ARCHIVE.fullmatch(name)]
        for folder in _SUBFOLDERS:
            found += [f"{folder}/{name}" for name in self._names(folder) if _ARCHIVE.fullmatch(name)]
        return found

    def archived_name(self, path: str, seconds: float, why: str = "reset") -> str:
        """Choose a name for an archived transcript that nothing has yet, whatever the clock says."""
        stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3] + "Z"
        name = f"{path}.{why}.{stamp}"
        for number in range(2, 10_000):
            if not os.path.lexists(name):
                return name
            name = f"{path}.{why}.{stamp}-{number}"
        raise PlainmindError(f"there are too many archives of {path}", hint="delete some of them")

    def companions(self, path: str) -> list[str]:
        """List what was put aside of a transcript: torn lines, damaged texts, copies."""
        folder, name = os.path.split(path)
        marks = tuple(f"{name}.{mark}" for mark in ("torn-", "corrupt-", "damaged-", "bak"))
        return [os.path.join(folder, other) for other in self._names(folder) if other.startswith(marks)]

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(os.path.join(self.folder, folder)) if name[0] != ".")
        except FileNotFoundError:
            return []

    def _inside(self, path: str) -> str:
        """Make a path relative; one from another machine or home is looked for by its name."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        relative = os.path.relpath(real, os.path.realpath(self.folder))
        return os.path.basename(path) if relative.startswith(os.pardir) else relative


def check_id(session_id: str) -> str:
    """Refuse an id that cannot be part of a file name."""
    if not _ID.fullmatch(session_id):
        raise PlainmindError(
            f"`{session_id!s:.80}` cannot be a session id",
            hint="use up to 64 letters, digits, `_` and `-`",
        )
    return session_id


def check_key(key: str) -> str:
    """Refuse a key that could not be read aloud or typed."""
    if not key or len(key) > 512 or not key.isprintable():
        raise PlainmindError(
            f"`{key!r:.80}` cannot be a session key",
            hint="use up to 512 printable characters, such as `agent:main:main`",
        )
    return key
