"""What a cold start does without: patterns, parts and guests until they are used, most of `threading` and `json`."""

from __future__ import annotations

import _thread
import os
import sys
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any

    Entry = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]

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
        found = getattr(_EXPRESSIONS.compiled(self._source, self._flags), name)
        setattr(self, name, found)  # from now on as fast as one that was compiled at once
        return found

    def __repr__(self) -> str:
        return f"pattern({self._source!r})"


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Stand for `re.compile(source, flags)`, at no cost until it is used."""
    return _Uncompiled(source, flags)  # type: ignore[return-value]  # to callers it is one


# Flags of `re`, which is loaded by the first expression that was never compiled before.
IGNORECASE, MULTILINE, DOTALL = 2, 8, 16


class Expressions:
    """What `re` has made of expressions, kept in a file from one process to the next, as Python keeps modules.

    Loading `re` takes a cold search four milliseconds, and a few of our expressions for East Asian texts as long each.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._kept: dict[tuple[str, int], Entry] | None = None
        self._is_news = False

    def compiled(self, source: str, flags: int) -> re.Pattern[str]:
        """What `re.compile` gives."""
        if self._kept is None:
            self._kept = self._read()
        flags = int(flags)  # those of `re` are of a kind of their own
        entry = self._kept.get((source, flags))
        try:
            import _sre  # type: ignore[import-not-found]  # of CPython

            if entry is None:
                entry = self._kept[source, flags] = _compile(source, flags)
                self._is_news = True
            used, code, groups, by_name, by_number = entry
            words = memoryview(code).cast("I").tolist()
            made: re.Pattern[str] = _sre.compile(source, used, words, groups, by_name, by_number)
        except (ImportError, AttributeError, TypeError, RuntimeError):  # another Python
            import re

            return re.compile(source, flags)
        return made

    def keep(self) -> None:
        """Let the next process find what this one has compiled, where Python may keep compiled modules."""
        if not self._is_news or self._path is None or self._kept is None or sys.dont_write_bytecode:
            return
        self._is_news = False
        from marshal import dumps

        content = dumps((_this_python(), {**self._read(), **self._kept}))
        beside = f"{self._path}.{os.getpid()}"
        try:
            with open(beside, "xb", opener=_for_everybody_to_read) as file:
                file.write(_checksum(content) + content)
            os.replace(beside, self._path)
        except OSError:
            return  # who installed this may write there, and everybody else does without

    def _read(self) -> dict[tuple[str, int], Entry]:
        from marshal import loads

        try:
            with open(self._path or "", "rb") as file:
                checksum, content = file.read(_CHECKSUM), file.read()
        except OSError:
            return {}
        if checksum != _checksum(content):
            return {}
        made_by, kept = loads(content)  # noqa: S302 (beside our modules, which Python reads so)
        return kept if made_by == _this_python() else {}


_CHECKSUM = 8  # bytes


def _for_everybody_to_read(path: str, flags: int) -> int:
    return os.open(path, flags, 0o644)


def _checksum(content: bytes) -> bytes:
    import _imp

    return _imp.source_hash(len(content), content)


def _this_python() -> tuple[str, int]:
    import _sre

    return sys.version, _sre.MAGIC


def _compile(source: str, flags: int) -> Entry:
    """Do what `re.compile` does, and give what it makes a pattern of."""
    from array import array
    from re import _compiler, _parser  # type: ignore[attr-defined]  # whatever a Python calls them

    tree = _parser.parse(source, flags)
    code = _compiler._code(tree, flags)  # noqa: SLF001 (what it makes a pattern of is told nowhere else)
    by_name = dict(tree.state.groupdict)
    by_number: list[str | None] = [None] * tree.state.groups
    for name, number in by_name.items():
        by_number[number] = name
    return (
        flags | tree.state.flags,
        array("I", code).tobytes(),
        tree.state.groups - 1,
        by_name,
        tuple(by_number),
    )


_EXPRESSIONS = Expressions(__spec__.cached and __spec__.cached.removesuffix(".pyc") + ".expressions")
keep_expressions = _EXPRESSIONS.keep


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
