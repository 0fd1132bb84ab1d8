"""Settings by the names people write: files of them read, layers of them checked, and where they are wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from plainmind.base.errors import ConfigError
from plainmind.base.lazy import find_by_name, pattern
from plainmind.base.value import MISSING, value
from plainmind.config.kinds import Kind, Number, OneOf, Unfit, Whole
from plainmind.config.load import PREFIX, Layer, Origin
from plainmind.config.settings import GUEST_SECTIONS, Settings, members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def printable(text: str, limit: int = 80) -> str:
    """Cut the text short and make it safe to print on any terminal."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in short)


def printable_path(path: str) -> str:
    """Make a path safe to print, at its full length."""
    return printable(path, limit=4096)


def describe_found(value: object, *, secret: bool) -> str:
    """Say what kind of value it is, and the value itself when it is short and no secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number" if secret or abs(value) > 1e15 else f"the number {value}"
    if isinstance(value, str):
        return _describe_text(value, secret=secret)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else "something else"


def _describe_text(text: str, *, secret: bool) -> str:
    if not text:
        return "an empty text"
    # ascii() keeps what is not printable off the terminal
    short = repr(text) if text.isprintable() else ascii(text)
    return "text" if secret or len(text) > 60 else f"the text {short}"


def describe_typed(text: str, *, secret: bool) -> str:
    """Say what was typed where text stands for a value of any kind: `["a"]` is a list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return describe_found(text, secret=secret)
    if not isinstance(value, list | dict):
        return describe_found(text, secret=secret)
    kind = "list" if isinstance(value, list) else "object"
    return describe_found(value, secret=True) if secret or len(text) > 60 else f"the {kind} {printable(text)}"


# json5 takes about 13 µs a byte: a file much larger than any configuration would look like a hang.
MAX_BYTES = 512 * 1024
_JSON5_PLACE = pattern(r":(\d+) .* at column (\d+)$", re.DOTALL)
_MAKE_IT_READABLE = "make it a readable file, or remove it"
_HINT = "look for a missing comma, quote or bracket at that place or just before it"


class _Duplicate(Exception):
    """A key stands twice in one object."""


def read_bytes(path: str, *, follow_symlinks: bool = True) -> bytes | None:
    """Read a regular file; None when there is none. Raises ConfigError for anything else of that name."""
    # O_NONBLOCK: a FIFO of that name in a checked-out repository must not make us wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_symlinks else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise ConfigError(
                f"cannot read {printable_path(path)}: it is a link to nothing", hint=_MAKE_IT_READABLE
            ) from None
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read {printable_path(path)}: {_reason(error)}", hint=_MAKE_IT_READABLE
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(
                f"cannot read {printable_path(path)}: it is not a regular file", hint=_MAKE_IT_READABLE
            )
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read {printable_path(path)}: {_reason(error)}", hint=_MAKE_IT_READABLE
        ) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{printable_path(path)} is too large for a configuration: over {MAX_BYTES:,} bytes"
        )
    return data


def parse_document(data: bytes, path: str) -> Mapping[str, Any]:
    """Read the object that the file holds. Raises ConfigError with file, line and column."""
    text = decode(data, path)
    if not text.strip():
        # An empty file may be all that a crash left: taking it for "no settings" could undo a choice.
        raise ConfigError(f"{printable_path(path)} is empty", hint="write `{}` into it, or remove it")
    try:
        value = _parse(text, path)
    except _Duplicate as duplicate:
        raise _duplicate_error(text, path, str(duplicate)) from None
    except RecursionError:
        raise ConfigError(f"{printable_path(path)} is nested too deeply to be a configuration") from None
    if not isinstance(value, dict):
        raise ConfigError(
            f"{printable_path(path)} must hold an object, `{{ … }}`, not {describe_found(value, secret=True)}"
        )
    return value


def decode(data: bytes, path: str) -> str:
    """Take the bytes as text, without a byte order mark. Raises ConfigError when it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{printable_path(path)} is not UTF-8 text, at line {line}", hint="save it as UTF-8"
        ) from None


def _parse(text: str, path: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        place = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else None
    import json5

    try:
        return json5.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        match = _JSON5_PLACE.search(str(error))
        line, column = (int(match[1]), int(match[2])) if match else place or (1, 1)
        raise ConfigError(
            f"{printable_path(path)} is not valid JSON5 at line {line}, column {column}", hint=_HINT
        ) from None  # the parser's own message quotes the text, which may be a key


def _object(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(members)
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Duplicate(name)
            seen.add(name)
    return found


def _duplicate_error(text: str, path: str, name: str) -> ConfigError:
    from plainmind.config.edit import find_duplicate

    key, lines = find_duplicate(text) or (name, ())
    places = f", on lines {lines[0]} and {lines[1]}" if lines else ""
    return ConfigError(
        f"`{printable(key)}` stands twice in {printable_path(path)}{places}",
        key=key,
        hint="keep one of the two",
    )


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "it is a symbolic link"
        return (error.strerror or "it cannot be opened").lower()
    return "its name is not valid"


_MAX_DEPTH = 12
# Where OpenClaw keeps the same settings, so that a block of its configuration can be pasted over.
_OTHER_SPELLINGS = (
    ("memorySearch", ""),
    ("memory.search", ""),
    ("memory.backend", "backend"),
    ("memory.citations", "citations"),
    ("memory.qmd", "qmd"),
    ("qmd.limits", "limits"),
    ("qmd.scope", "scope"),
    ("compaction.memoryFlush", "memoryFlush"),
    ("compaction.reserveTokensFloor", "reserveTokensFloor"),
    ("query.hybrid.temporalDecay", "query.temporalDecay"),
    ("query.hybrid.mmr", "query.mmr"),
)
# What such a block may hold that has no meaning here: noted, and otherwise left alone.
_WITHOUT_EFFECT = frozenset(
    {
        "$schema",
        "documentInputType",
        "experimental",
        "inputType",
        "multimodal",
        "qmd.mcporter",
        "qmd.rerank",
        "qmd.update.startup",
        "qmd.update.waitForBootSync",
        "queryInputType",
        "rememberAcrossConversations",
        "store.fts",
        "store.vector.extensionPath",
    }
)


@value
class Key:
    """One setting under its name."""

    name: str
    section: type[Any]  # which declares it: `Settings`, or the section of a guest
    attributes: tuple[str, ...]  # the way to it from there
    kind: Kind
    default: Any
    doc: str
    project: str  # why a project file may not set it; empty when it may
    secret: bool

    @property
    def environment_name(self) -> str:
        """Name the variable that sets it: `PLAINMIND_QUERY_MAXRESULTS`."""
        return "PLAINMIND_" + self.name.replace(".", "_").upper()

    def of(self, settings: Settings) -> Any:
        """Look up its value."""
        value: Any = settings if self.section is Settings else settings.section(self.section)
        for attribute in self.attributes:
            value = getattr(value, attribute)
        return value


@cache
def all_keys() -> Mapping[str, Key]:
    """Every setting by its name: those of the kernel in their order, and those of guests beside them or behind them."""
    keys = dict(_kernel_keys())
    for word in GUEST_SECTIONS:
        keys |= _guest_keys(word)
    place: dict[str, int] = {}
    for name in keys:
        place.setdefault(name.partition(".")[0], len(place))
    return dict(sorted(keys.items(), key=lambda one: place[one[0].partition(".")[0]]))


def known_key(name: str) -> Key | None:
    """Find a setting by its own name. Of the guests only those are asked whose settings begin with the same word."""
    return _kernel_keys().get(name) or _guest_keys(name.partition(".")[0]).get(name)


def is_section(name: str) -> bool:
    """Whether a name holds settings rather than being one; the empty name is the whole."""
    if not name or name in _spelled_sections():
        return True
    known = (*_kernel_keys(), *_guest_keys(name.partition(".")[0]), *_spelled_sections())
    return any(each.startswith(f"{name}.") for each in known)


@cache
def _spelled_sections() -> tuple[str, ...]:
    # Those that mean one setting mean one of the kernel: no guest need be asked.
    return tuple(name for name, _ in _OTHER_SPELLINGS if canonical(name) not in _kernel_keys())


@cache
def _kernel_keys() -> Mapping[str, Key]:
    return {key.name: key for key in _walk(Settings, Settings, "", ())}


@cache
def _guest_keys(word: str) -> Mapping[str, Key]:
    """The settings that guests declare under a first word."""
    keys: dict[str, Key] = {}
    for place in GUEST_SECTIONS.get(word, ()):
        section = find_by_name(place)
        keys |= {key.name: key for key in _walk(section, section, f"{word}.", ())}
    return keys


def canonical(name: str) -> str:
    """Give the name of the setting that this spelling means; an unknown name stays as it is."""
    for other, ours in _OTHER_SPELLINGS:
        if name == other or name.startswith(other + "."):
            return canonical((ours + name[len(other) :]).lstrip("."))
    return name


def has_no_effect(name: str) -> bool:
    """Whether it is a setting of OpenClaw without a meaning here."""
    return any(name == known or name.startswith(known + ".") for known in _WITHOUT_EFFECT)


def find_key(name: str) -> Key:
    """Find the setting of that name. Raises ConfigError with the nearest valid one."""
    key = known_key(canonical(name))
    if key is None:
        raise unknown_key(name)
    return key


def unknown_key(name: str, where: str = "") -> ConfigError:
    """Make the error for a name that is no setting."""
    close = nearest(canonical(name), all_keys())
    return ConfigError(
        f"unknown setting `{printable(name)}`{where}",
        key=name,
        hint=f"did you mean `{close}`?" if close else "`plainmind config list` shows every setting",
    )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word most like `word`, or None when none is."""
    from difflib import get_close_matches

    word = word[:200].lower()
    by_form: dict[str, str] = {}
    for name in known:
        by_form.setdefault(name.lower(), name)
    for name in tuple(by_form.values()):  # `apiKey` for `remote.apiKey`
        by_form.setdefault(name.rpartition(".")[2].lower(), name)
    close = get_close_matches(word, by_form, n=1, cutoff=0.75)
    return by_form[close[0]] if close else None


def _walk(section: type[Any], tree: type[Any], prefix: str, attributes: tuple[str, ...]) -> Iterator[Key]:
    for short, each in members(tree).items():
        name, facts, way = prefix + short, each.metadata, (*attributes, each.name)
        if "group" in facts:
            yield from _walk(section, facts["group"], f"{name}.", way)
            continue
        default = each.default if each.default is not MISSING else {}
        yield Key(name, section, way, facts["kind"], default, facts["doc"], facts["project"], facts["secret"])


class CheckedLayer(Layer):
    """A layer whose values are checked, one by one, as they are put into it."""

    def put_all(self, found: Mapping[Any, Any], above: str = "", depth: int = 0) -> None:
        """Check everything in an object of settings and keep it. Raises ConfigError."""
        if depth > _MAX_DEPTH:
            raise ConfigError(f"`{printable(above)}` is nested too deeply{_place(self.origin)}", key=above)
        for name, given in found.items():
            spelled = f"{above}.{name}" if above else str(name)
            meant = canonical(spelled)
            key = known_key(meant)
            if key is not None:
                self.put(key, spelled, given, self.origin)
            elif has_no_effect(meant):
                self.notes.append(f"`{printable(spelled)}` has no effect here{_place(self.origin)}")
            elif not is_section(meant):
                raise unknown_key(spelled, _place(self.origin))
            elif isinstance(given, Mapping):
                self.put_all(given, spelled, depth + 1)
            else:
                raise _wrong(
                    spelled, "an object of settings", describe_found(given, secret=True), self.origin
                )

    def put(self, key: Key, spelled: str, value: Any, origin: Origin) -> None:
        """Check one value and keep it. Raises ConfigError."""
        if origin.kind == "project" and key.project:
            raise ConfigError(
                f"a project file may not set `{printable(spelled)}`: {key.project}{_place(origin)}",
                key=key.name,
                hint=f"remove it there; `plainmind config set {key.name} …` sets it for you alone",
            )
        if key.name in self.values:
            raise ConfigError(
                f"`{key.name}` is set twice{_place(origin)}: "
                f"as `{printable(self.spelled[key.name])}` and as `{printable(spelled)}`",
                key=key.name,
                hint="keep one of the two",
            )
        as_text = origin.kind in {"environment", "flag"}
        checked = check_value(key, value, spelled, origin, as_text=as_text)
        is_number = isinstance(key.kind, Number | Whole) and checked is not None
        if is_number and checked != (float(value) if isinstance(value, str) else value):
            self.notes.append(f"`{spelled}` is {checked:,}, the nearest in its range{_place(origin)}")
        self.spelled[key.name] = spelled
        self.values[key.name] = checked
        self.origins[key.name] = origin


def given_secrets(settings: Settings) -> Iterator[str]:
    """Keys, headers and addresses with a password, as they were written; a proxy is an address that texts may name."""
    for access in settings.provider_access.values():
        yield from filter(None, (access.api_key,))
    for name, given in settings.guests.items():
        key = known_key(name)
        if key is not None and key.secret and given and not name.endswith(".proxy"):
            yield from given.values() if isinstance(given, Mapping) else (given,)


def environment_layer(environ: Mapping[str, str], names: Iterable[str]) -> Layer:
    """Read the variables of these names, which begin with our prefix. Raises ConfigError."""
    known = {_bare(key.environment_name): key for key in all_keys().values()}
    sections = tuple({f"{PREFIX}{name.partition('.')[0].upper()}_" for name in all_keys() if "." in name})
    layer = CheckedLayer(Origin("environment"))
    for name in names:
        key = known.get(_bare(name))
        if key is not None:
            layer.put(key, key.name, environ[name], Origin("environment", name))
        elif name.startswith(sections):
            raise unknown_key(name[len(PREFIX) :].lower().replace("_", "."), f" (in {printable(name)})")
        elif name != PREFIX + "HOME":
            layer.notes.append(f"the environment variable {printable(name)} sets nothing")
    return layer


def _bare(name: str) -> str:
    """Leave out prefix and underscores, so that `QUERY_MAX_RESULTS` and `QUERY_MAXRESULTS` are the same."""
    return name[len(PREFIX) :].replace("_", "").upper()


def check_value(key: Key, value: Any, spelled: str, origin: Origin, *, as_text: bool) -> Any:
    """Turn a value into what its setting keeps. Raises ConfigError: what is expected, what was found.

    With `as_text`, text may stand for a value of any kind: `8` for a number, `a,b` for a list.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    is_typed = as_text and isinstance(value, str)
    try:
        return key.kind.from_text(value) if is_typed else key.kind.read(value)
    except Unfit as unfit:
        describe = describe_typed if is_typed else describe_found
        error = _wrong(spelled, str(unfit), describe(value, secret=key.secret), origin)
        if isinstance(key.kind, OneOf) and isinstance(value, str):
            close = nearest(value, key.kind.names)
            error.hint = f"did you mean `{close}`?" if close else None
        raise error from None


def _wrong(spelled: str, expected: str, found: str, origin: Origin) -> ConfigError:
    return ConfigError(
        f"`{printable(spelled)}` must be {expected}, not {found}{_place(origin)}", key=canonical(spelled)
    )


def _place(origin: Origin) -> str:
    return f" (in {printable_path(origin.where)})" if origin.where else ""
