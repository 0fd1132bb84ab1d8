"""Regular expressions that are compiled when they are first used: a cold start uses few, and pays for those."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Uncompiled:
    """Becomes a compiled expression with the first method that is called."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)  # from now on as fast as one that was compiled at once
        return found

    def __repr__(self) -> str:
        return f"pattern({self._source!r})"


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Stand for `re.compile(source, flags)`, at no cost until it is used."""
    return _Uncompiled(source, flags)  # type: ignore[return-value]  # to callers it is one
