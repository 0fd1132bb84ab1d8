"""The ledger: proposals that wait, what was rejected, and what a model has judged. In the home, never in the workspace.

Proposals carry text of notes; all else is hashes. What was forgotten is taken out of here as well, bytes and all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from plainmind.base.lazy import pattern
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.history import rewrite, scrub
from plainmind.files.system import SYSTEM, explain_errors, hold_lock, make_folders, read_file, try_lock
from plainmind.guests.upkeep.model import Proposal, proposal_from, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REVIEW = "review.txt"
_FILES = ("proposals.jsonl", "rejected.txt", "accepted.txt", "judged.txt", "last-run.json")
_ACCEPTING = "accepting.jsonl"
_HASH = pattern(r"[0-9a-f]{64}")
_MOST_JUDGED = 200_000


class Ledger:
    """What is known of the proposals of one workspace. Processes take turns by a lock."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._proposals, self._rejected, self._accepted, self._judged, self._last_run = (
            os.path.join(folder, name) for name in _FILES
        )
        self._accepting = os.path.join(folder, _ACCEPTING)

    @contextmanager
    def alone(self, operation: str) -> Iterator[None]:
        """Wait to be the only one who changes it."""
        with explain_errors("make", self._folder):
            make_folders(SYSTEM, self._folder)
        with hold_lock(os.path.join(self._folder, "ledger.lock"), operation=operation):
            yield

    @contextmanager
    def running(self) -> Iterator[bool]:
        """Whether this is the only run; another one is not waited for."""
        with explain_errors("make", self._folder):
            make_folders(SYSTEM, self._folder)
        lock = try_lock(os.path.join(self._folder, "run.lock"), operation="tidy")
        if lock is None:
            yield False
            return
        with lock:
            yield True

    def waiting(self) -> list[Proposal]:
        """The proposals, oldest first; a line that cannot be read is passed over."""
        return [found for line in self._lines(self._proposals) if (found := _read(line)) is not None]

    def write_waiting(self, proposals: Iterable[Proposal]) -> None:
        """Put these in the place of all that wait. Needs the lock."""
        data = b"".join(written(proposal.as_dict()) for proposal in proposals)
        self._write(self._proposals, data)

    def begin(self, change: str, proposals: Iterable[Proposal]) -> None:
        """Note which proposals are about to be done, and what the journal will call that. Needs the lock."""
        data = b"".join(written(proposal.as_dict()) for proposal in proposals)
        self._write(self._accepting, written({"change": change}) + data)

    def end(self) -> None:
        """Nothing is about to be done any more. Needs the lock."""
        if self.is_begun():
            with explain_errors("remove", self._accepting):
                scrub(self._accepting, SYSTEM)

    def is_begun(self) -> bool:
        """Whether somebody is accepting, or was killed while accepting."""
        return os.path.exists(self._accepting)

    def begun(self) -> tuple[str, list[Proposal]]:
        """What a killed process was about to do, and how the journal calls it if it was done. Needs the lock."""
        lines = self._lines(self._accepting)
        try:
            change = str(json.loads(lines[0])["change"])
        except (IndexError, KeyError, TypeError, ValueError):
            return "", []
        return change, [found for line in lines[1:] if (found := _read(line)) is not None]

    def rejected(self) -> set[str]:
        """Fingerprints of what must not come back."""
        return self._hashes(self._rejected)

    def reject(self, fingerprints: Iterable[str]) -> None:
        """Remember that these must not come back. Needs the lock."""
        self._write_hashes(self._rejected, dict.fromkeys((*self._listed(self._rejected), *fingerprints)))

    def accepted(self) -> set[str]:
        """Fingerprints of what a rule has accepted: who takes it back is not overruled."""
        return self._hashes(self._accepted)

    def accept(self, fingerprints: Iterable[str]) -> None:
        """Remember that a rule has accepted these. Needs the lock."""
        self._write_hashes(self._accepted, dict.fromkeys((*self._listed(self._accepted), *fingerprints)))

    def judged(self) -> set[str]:
        """Hashes of the lines that a model has seen."""
        return self._hashes(self._judged)

    def judge(self, hashes: Iterable[str]) -> None:
        """Remember that a model has seen these. Needs the lock."""
        known = list(dict.fromkeys((*self._listed(self._judged), *hashes)))
        self._write_hashes(self._judged, known[-_MOST_JUDGED:])

    def last_run(self) -> Mapping[str, Any] | None:
        """What the last run said."""
        for line in self._lines(self._last_run):
            try:
                found = json.loads(line)
            except ValueError:
                return None
            return found if isinstance(found, dict) else None
        return None

    def write_last_run(self, facts: Mapping[str, Any]) -> None:
        """Keep what a run said. Needs the lock."""
        self._write(self._last_run, written(facts))

    def write_review(self, text: str) -> str:
        """Write a page for an editor; where it is."""
        path = os.path.join(self._folder, _REVIEW)
        write_atomically(path, text.encode("utf-8", "replace"))
        return path

    def take_review(self) -> str:
        """What became of that page; it is gone then, and "" when it was."""
        path = os.path.join(self._folder, _REVIEW)
        with explain_errors("read", path, outcome="nothing was done"):
            try:
                text = read_file(path).decode("utf-8", "replace")
            except FileNotFoundError:
                return ""
            scrub(path, SYSTEM)
        return text

    def erase(self, has_it: Callable[[str], bool]) -> int:
        """Take out every proposal with forgotten text, so that no byte of it is left; how many there were."""
        if not os.path.isdir(self._folder):
            return 0
        with self.alone("forget"):
            self.take_review()  # left by an editor that was killed
            lines = self._lines(self._proposals)
            kept: list[bytes] = []
            for line in lines:
                found = _read(line)
                if found is not None and not any(map(has_it, found.texts())):
                    kept.append(line + b"\n")
            if len(kept) < len(lines) or self._has_remains():
                self._write(self._proposals, b"".join(kept))
            with explain_errors("clear", self._accepting):
                remove_abandoned(self._accepting, SYSTEM)
            change, begun = self.begun()
            clean = [one for one in begun if not any(map(has_it, one.texts()))]
            if len(clean) < len(begun):
                self.begin(change, clean)
            return len(lines) - len(kept) + len(begun) - len(clean)

    def _has_remains(self) -> bool:
        """Whether a killed process left what the file was, or was to become."""
        with explain_errors("look into", self._folder):
            names = SYSTEM.listdir(self._folder)
        return any(_FILES[0] in name and name != _FILES[0] for name in names)

    def _lines(self, path: str) -> list[bytes]:
        with explain_errors("read", path, outcome="nothing was changed"):
            try:
                return [line for line in read_file(path).split(b"\n") if line.strip()]
            except FileNotFoundError:
                return []

    def _listed(self, path: str) -> list[str]:
        return [
            name for line in self._lines(path) if _HASH.fullmatch(name := line.decode("ascii", "replace"))
        ]

    def _hashes(self, path: str) -> set[str]:
        return set(self._listed(path))

    def _write_hashes(self, path: str, hashes: Iterable[str]) -> None:
        self._write(path, "".join(f"{name}\n" for name in hashes).encode("ascii"))

    def _write(self, path: str, data: bytes) -> None:
        """Write a file anew; what it was is overwritten on the disk."""
        with explain_errors("write", path):
            remove_abandoned(path, SYSTEM)
            rewrite(path, data, SYSTEM)


def _read(line: bytes) -> Proposal | None:
    try:
        return proposal_from(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
