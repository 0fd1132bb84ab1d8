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
    In the file stand the length of a list, the list, which tells where each entry is, and the entries: of two hundred
    some ten are used. The list and each entry begin with a checksum.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._kept: dict[bytes, bytes | memoryview] | None = None  # entries by the names of expressions
        self._is_news = False

    def compiled(self, source: str, flags: int) -> re.Pattern[str]:
        """What `re.compile` gives."""
        flags = int(flags)  # those of `re` are of a kind of their own
        try:
            import _sre  # type: ignore[import-not-found]  # of CPython

            if self._kept is None:
                self._kept = self._read()
            name = _name_of(source, flags)
            row = _opened(self._kept.get(name, b""))
            if row is None or row[:2] != (source, flags):
                row = _compile(source, flags)
                self._kept[name] = _sealed(row)
                self._is_news = True
            _, _, used, code, groups, by_name, by_number = row
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
        entries = {**self._read(), **self._kept}
        places, end = {}, 0
        for name, entry in entries.items():
            places[name] = end, end + len(entry)
            end += len(entry)
        listed = _sealed((_this_python(), places))
        beside = f"{self._path}.{os.getpid()}"
        try:
            with open(beside, "xb", opener=_for_everybody_to_read) as file:
                file.write(len(listed).to_bytes(_LENGTH) + listed + b"".join(entries.values()))
            os.replace(beside, self._path)
        except FileExistsError:
            return  # of a process of this number on another machine
        except OSError:  # who installed this may write there, and everybody else does without
            try:
                os.unlink(beside)  # a full disk leaves a part of it
            except OSError:
                return

    def _read(self) -> dict[bytes, bytes | memoryview]:
        try:
            with open(self._path or "", "rb") as file:
                content = memoryview(file.read())
        except OSError:
            return {}
        begin = _LENGTH + int.from_bytes(content[:_LENGTH])
        found = _opened(content[_LENGTH:begin])
        if found is None or found[0] != _this_python():
            return {}
        entries = content[begin:]
        return {name: entries[start:end] for name, (start, end) in found[1].items()}


_LENGTH = 4  # bytes
_CHECKSUM = 8


def _for_everybody_to_read(path: str, flags: int) -> int:
    return os.open(path, flags, 0o644)


def _name_of(source: str, flags: int) -> bytes:
    import _imp

    return _imp.source_hash(flags, source.encode("utf-8", "surrogatepass"))


def _checksum(content: bytes | memoryview) -> bytes:
    import _imp

    return _imp.source_hash(len(content), content)


def _sealed(facts: tuple[Any, ...]) -> bytes:
    from marshal import dumps

    content = dumps(facts)
    return _checksum(content) + content


def _opened(sealed: bytes | memoryview) -> tuple[Any, ...] | None:
    """What was sealed; None where anything has changed since, or nothing is there."""
    from marshal import loads

    content = sealed[_CHECKSUM:]
    if not content or sealed[:_CHECKSUM] != _checksum(content):
        return None
    facts: tuple[Any, ...] = loads(content)  # noqa: S302 (beside our modules, which Python reads so)
    return facts


def _this_python() -> tuple[str, int]:
    import _sre

    return sys.version, _sre.MAGIC


def _compile(source: str, flags: int) -> tuple[Any, ...]:
    """Do what `re.compile` does, and give what it makes a pattern of, behind what it is made of."""
    from array import array
    from re import _compiler, _parser  # type: ignore[attr-defined]  # whatever a Python calls them

    tree = _parser.parse(source, flags)
    code = array("I", _compiler._code(tree, flags)).tobytes()  # noqa: SLF001 (told nowhere else)
    by_name = dict(tree.state.groupdict)
    by_number: list[str | None] = [None] * tree.state.groups
    for name, number in by_name.items():
        by_number[number] = name
    return source, flags, flags | tree.state.flags, code, tree.state.groups - 1, by_name, tuple(by_number)


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


def offers(group: str) -> dict[str, str]:
    """What other packages offer under names of their own, each as `module:attribute`."""
    from importlib.metadata import entry_points  # costs some 20 ms, and most people have no plugin

    return {each.name: each.value for each in entry_points(group=group)}
