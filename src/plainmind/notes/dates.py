"""The day a file belongs to, read from its name."""

from __future__ import annotations

import datetime as dt
import re

from plainmind.base.pattern import pattern

# ASCII digits only: `\d` would also accept the digits of other scripts.
_DATED_NAME = pattern(r"(?:^|/)([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md\Z", re.IGNORECASE)


def day_of(path: str) -> str | None:
    """ISO day of `2026-02-10.md` and `2026-02-10-a-topic.md`; None for every other name: those are evergreen.

    A date that no calendar has (`2026-02-30.md`) makes a file evergreen, not an error.
    """
    found = _DATED_NAME.search(path)
    if found is None:
        return None
    year, month, day = found.groups()
    try:
        return dt.date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None
