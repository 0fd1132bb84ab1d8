"""The memory of damage: when an index had to be replaced, and when that happens too often."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from plainmind.base.errors import IndexUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEPT = 20
_MOST_PER_HOUR = 3


def read_recoveries(path: str) -> list[Mapping[str, Any]]:
    """Every recovery on record, oldest first: `at` (seconds since 1970) and `reason`."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return [{"at": float(each["at"]), "reason": str(each["reason"])} for each in found]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError):
        return [{"at": time.time(), "reason": "the record of recoveries was damaged"}]


def describe_last(recoveries: Sequence[Mapping[str, Any]]) -> str | None:
    """How often the index was replaced and why it was the last time, in words; None when it never was."""
    if not recoveries:
        return None
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(recoveries[-1]["at"]))
    times = "once" if len(recoveries) == 1 else f"{len(recoveries)} times, last"
    return f"{times} on {at}: {recoveries[-1]['reason']}"


def record_recovery(path: str, reason: str) -> None:
    """Write down that the index is replaced; refuses when the last hour saw too many."""
    from plainmind.files.atomic import write_atomically

    now = time.time()
    known = read_recoveries(path)
    # A clock that was set back must not lock anyone out: what lies in the future is not recent.
    recent = [each for each in known if now - 3600 < each["at"] <= now]
    if len(recent) >= _MOST_PER_HOUR:
        raise IndexUnavailable(
            f"the index was damaged more than {_MOST_PER_HOUR} times within an hour, last: {reason}",
            hint="check the disk and its free space, and that only one version of plainmind uses this"
            " folder; then delete the index folder (your notes are not in it) and run `plainmind sync`",
        )
    kept = [*known, {"at": now, "reason": reason}][-_KEPT:]
    write_atomically(path, json.dumps(kept, indent=1).encode())
