"""Hints that something may have changed on disk; what did change, only a look at the files can tell."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from threading import Event

from plainmind.base.value import value
from plainmind.notes.discovery import RULE_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from watchfiles._rust_notify import RustNotify

# How long one wait inside the watcher may ignore a stop or a signal.
_STEP_MS = 100
# A burst that never pauses is still reported.
_LONGEST_BURST = 5
TALK_DEBOUNCE_MS = 5_000
# The kernel's queue may have overflowed during a burst this large.
_LARGE_BURST = 1_000
_SETTLING_S = 2.0

_ADDED = 1  # watchfiles.Change.added


@value
class Hint:
    """A reason to look at the files again."""

    cause: Literal["changed", "rescan", "polling"]
    paths: frozenset[str] = frozenset()  # absolute, as far as known
    reason: str | None = None  # why we watch less well than we could


_Identity: TypeAlias = tuple[int, int] | None


def watch(
    paths: Sequence[str],
    *,
    debounce_ms: int,
    rescan_s: float = 60.0,
    stop: Event,
    poll_s: float = 2.0,
    transcripts: str | None = None,
    talk_debounce_ms: int = TALK_DEBOUNCE_MS,
) -> Iterator[Hint]:
    """Yield when files beneath `paths` may have changed, and every `rescan_s` anyway, until `stop` is set.

    A path is a folder, watched with everything beneath, or a `.md` file; it need not exist yet and may vanish
    and come back. Links and hidden folders are not watched. The first hint comes once watching has begun:
    a look at the files after it misses nothing. When the system cannot watch (no descriptors or no inotify
    watches left), a hint comes every `poll_s` and says why, until watching works again.

    `transcripts` is a folder of conversations: a message is soon followed by its answer, so changes there alone are
    told of after a longer silence.
    """
    paths = [os.path.abspath(path) for path in (*paths, *([transcripts] if transcripts else []))]
    spoken = os.path.abspath(transcripts) if transcripts else None
    pace = _Pace(max(1, debounce_ms), rescan_s, poll_s, spoken, talk_debounce_ms)
    while not stop.is_set():
        try:
            yield from _watch_until_rearmed(paths, pace, stop)
        except (OSError, RuntimeError) as error:  # watchfiles reports its own failures as RuntimeError
            reason = f"watching failed, looking every {poll_s:g} s instead: {error}"
            # A folder that vanished just now is no reason to give up watching the others for long.
            yield from _poll(
                reason, poll_s if isinstance(error, FileNotFoundError) else rescan_s, poll_s, stop
            )


@value
class _Pace:
    debounce_ms: int
    rescan_s: float
    poll_s: float
    transcripts: str | None  # the folder of conversations
    talk_debounce_ms: int

    def is_spoken(self, path: str) -> bool:
        """Whether a file lies with the transcripts."""
        return self.transcripts is not None and path.startswith(self.transcripts + "/")

    def is_transcript(self, path: str) -> bool:
        """Whether a file may be a transcript: lines in the folder itself, documents in those beneath it."""
        is_beneath = os.path.dirname(path) != self.transcripts
        return self.is_spoken(path) and (".json5" if is_beneath else ".jsonl") in os.path.basename(path)

    def quiet_ms(self, events: set[tuple[int, str]]) -> int:
        """How long nothing more must happen before what happened is told."""
        is_talk = bool(events) and all(self.is_spoken(path) for _, path in events)
        return max(self.debounce_ms, self.talk_debounce_ms) if is_talk else self.debounce_ms


def _poll(reason: str, for_s: float, poll_s: float, stop: Event) -> Iterator[Hint]:
    """Hint at a steady pace for a while, then let the caller try to watch again."""
    until = time.monotonic() + for_s
    while not stop.is_set():
        yield Hint("polling", reason=reason)
        if time.monotonic() >= until:
            return
        stop.wait(poll_s)


def _watch_until_rearmed(paths: Sequence[str], pace: _Pace, stop: Event) -> Iterator[Hint]:
    """Watch one set of folders. Returns when the set has changed, so that a new one is watched."""
    from watchfiles._rust_notify import RustNotify

    identities = _identities(paths)
    folders = _folders_to_watch(paths)
    gone = [path for path in paths if identities[path] is None and not path.lower().endswith(".md")]
    reason = f"waiting for {', '.join(gone)} to appear" if gone else None
    # Not recursive: the watcher would follow links, and miss files written at once into new folders.
    with RustNotify(sorted(folders), False, False, 300, False, True) as watcher:  # noqa: FBT003
        if _folders_to_watch(paths) != folders:
            yield Hint("rescan", reason="new folders are not watched yet")
            return
        yield Hint("rescan", reason=reason)
        next_rescan = time.monotonic() + pace.rescan_s
        while not stop.is_set():
            wait_s = min(pace.poll_s, next_rescan - time.monotonic())
            events = _next_burst(watcher, pace, wait_s, stop)
            changed = frozenset(path for _, path in events if _matters(path, paths, pace))
            if changed:
                yield Hint("changed", changed)
            if _identities(paths) != identities or _brought_a_folder(events):
                return
            if len(events) >= _LARGE_BURST:
                next_rescan = min(next_rescan, time.monotonic() + _SETTLING_S)
            if time.monotonic() >= next_rescan:
                yield Hint("rescan", reason=reason)
                next_rescan = time.monotonic() + pace.rescan_s


def _next_burst(watcher: RustNotify, pace: _Pace, wait_s: float, stop: Event) -> set[tuple[int, str]]:
    """Wait for events, then until none came for a while. Empty when nothing happened."""
    events: set[tuple[int, str]] = set()
    wait_ms = max(1, int(wait_s * 1000))
    until = None
    step_ms = min(_STEP_MS, pace.debounce_ms, wait_ms)
    while True:
        answer = watcher.watch(pace.debounce_ms, step_ms, wait_ms, stop)
        if answer == "signal":
            raise KeyboardInterrupt
        if isinstance(answer, str):
            return events
        events |= answer
        wait_ms = pace.quiet_ms(events)
        until = until or time.monotonic() + _LONGEST_BURST * wait_ms / 1000
        if time.monotonic() >= until:
            return events


def _identities(paths: Sequence[str]) -> dict[str, _Identity]:
    """Which folder or file is behind each path now; a file only by whether its folder is the same."""
    return {path: _identity(os.path.dirname(path) if _is_file(path) else path) for path in paths}


def _identity(path: str) -> _Identity:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_file(path: str) -> bool:
    return path.lower().endswith(".md") and not os.path.isdir(path)


def _folders_to_watch(paths: Sequence[str]) -> frozenset[str]:
    """All folders beneath the paths, for files the folder they are in."""
    folders: set[str] = set()
    for path in paths:
        if _is_file(path):
            if os.path.isdir(parent := os.path.dirname(path)):
                folders.add(parent)
        elif os.path.isdir(path) and not os.path.islink(path):
            folders.update(_folders_beneath(path))
    return frozenset(folders)


def _folders_beneath(top: str) -> Iterator[str]:
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                waiting += [
                    entry.path
                    for entry in listing
                    if entry.is_dir(follow_symlinks=False)
                    and not entry.name.startswith(".")
                    and entry.name != "node_modules"  # thousands of folders, and never a note
                ]
        except OSError:
            continue  # vanished or closed to us: discovery reports it
        yield folder


def _matters(path: str, paths: Sequence[str], pace: _Pace) -> bool:
    """Whether an event may be about a note or a folder of notes: editors, and we, write other files too."""
    name = os.path.basename(path)
    if name.startswith("."):
        return name in RULE_FILES
    if path in paths or pace.is_transcript(path):
        return True
    is_note = name.lower().endswith(".md")
    may_be_folder = "." not in name or os.path.isdir(path)
    return (is_note or may_be_folder) and any(
        path.startswith(top + "/") for top in paths if not _is_file(top)
    )


def _brought_a_folder(events: set[tuple[int, str]]) -> bool:
    return any(
        kind == _ADDED and not os.path.basename(path).startswith(".") and os.path.isdir(path)
        for kind, path in events
    )
