"""What a cold start does without: patterns, parts and guests until they are used, most of `threading` and `json`."""

from __future__ import annotations

import _thread
import re
import sys
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    made_once = cached_property
else:

    class made_once(cached_property):  # noqa: N801 (a decorator)
        """A part that is made once, when it is first used, however many threads ask; its owner has a lock `making`."""

        def __get__(self, owner, kind=None):
            """Make it with all others kept waiting; later the part itself stands in the way of this."""
            if owner is None:
                return self
            with owner.making:
                return super().__get__(owner, kind)


# The same as those of `threading`, which takes a cold search a millisecond to load.
Lock = _thread.allocate_lock
RLock = _thread.RLock
ThreadLocal = _thread._local  # noqa: SLF001


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


class _AsJsonDoes:
    """How `json` asks its scanner in C to read."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


_scan: Callable[[str, int], tuple[Any, int]] | None
try:
    from _json import make_scanner

    _scan = make_scanner(_AsJsonDoes)  # type: ignore[arg-type]  # a stub that is wrong
except (ImportError, AttributeError):  # another Python
    _scan = None


def parse_json(text: str) -> Any:
    """Read JSON of our own making; `json` itself takes a cold search two milliseconds to load. Raises ValueError."""
    if _scan is None:
        import json

        return json.loads(text)
    try:
        found, end = _scan(text, len(text) - len(text.lstrip()))
    except StopIteration as error:
        raise ValueError("there is no JSON in it") from error
    if text[end:].strip():
        raise ValueError("there is more than one value in it")
    return found


def find_by_name(target: str) -> Any:
    """Import what `module:attribute` names: so guests are found, and the kernel imports none of them."""
    module, _, attribute = target.partition(":")
    __import__(module)  # `importlib` would take a cold search a millisecond to load
    return getattr(sys.modules[module], attribute)
