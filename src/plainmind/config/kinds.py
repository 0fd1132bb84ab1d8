"""What the value of a setting may be, and how a setting is declared: its kind, meaning and who may set it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from plainmind.base.lazy import offers, pattern
from plainmind.base.value import field, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard


_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_DURATION = pattern(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_SECONDS_IN = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class Unfit(Exception):
    """A value is not of its kind; the message says what is expected, never what was found."""


class Kind:
    """One kind of value. `expected` completes the sentence "this must be …"."""

    expected = "a value"
    optional = False  # whether null is a value: the setting is then explicitly unset

    def read(self, value: Any) -> Any:
        """Turn a JSON value into the value of the setting, moved into its range. Raises Unfit."""
        return None if value is None and self.optional else self._read(value)

    def from_text(self, text: str) -> Any:
        """Read what an environment variable or a command line holds. Raises Unfit."""
        return self._from_text(text.strip())

    def to_json(self, value: Any) -> Any:
        """Say the value of the setting as it would stand in a file."""
        return None if value is None else self._to_json(value)

    def _read(self, value: Any) -> Any:
        raise NotImplementedError

    def _from_text(self, text: str) -> Any:
        try:
            import json

            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unfit(self.expected) from error
        return self.read(value)

    def _to_json(self, value: Any) -> Any:
        return value


class Flag(Kind):
    """True or false."""

    expected = "true or false"

    def _read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise Unfit(self.expected)
        return value

    def _from_text(self, text: str) -> bool:
        if text.lower() not in _TRUE | _FALSE:
            raise Unfit(self.expected)
        return text.lower() in _TRUE


class Number(Kind):
    """A finite number, moved to the nearest one in its range."""

    def __init__(self, low: float, high: float, *, optional: bool = False) -> None:
        self.low, self.high = low, high
        self.optional = optional
        self.expected = f"a number from {low:,.12g} to {high:,.12g}"

    def _read(self, value: Any) -> float:
        if not _is_finite_number(value):
            raise Unfit(self.expected)
        return float(min(max(value, self.low), self.high))


class Whole(Kind):
    """A whole number, moved to the nearest one in its range."""

    def __init__(self, low: int, high: int, *, optional: bool = False) -> None:
        self.low, self.high = low, high
        self.optional = optional
        self.expected = f"a whole number from {low:,} to {high:,}"

    def _read(self, value: Any) -> int:
        if not _is_finite_number(value) or value != int(value):
            raise Unfit(self.expected)
        return min(max(int(value), self.low), self.high)


class Text(Kind):
    """Text that can stand in a file; `shape` narrows it."""

    def __init__(self, expected: str = "text", *, shape: str | None = None, optional: bool = False) -> None:
        self.expected = expected
        self.optional = optional
        self._shape = None if shape is None else pattern(shape)

    def _read(self, value: Any) -> str:
        if not is_clean_text(value) or (self._shape is not None and not self._shape.fullmatch(value)):
            raise Unfit(self.expected)
        return value

    def _from_text(self, text: str) -> str:
        return self._read(text)


class OneOf(Kind):
    """One of a few words, or the name of an installed plug-in of the entry-point group `plugins`."""

    def __init__(self, *names: str, plugins: str | None = None) -> None:
        self.names = names
        self._plugins = plugins
        self.expected = f"one of {', '.join(names)}"

    def _read(self, value: Any) -> str:
        if not isinstance(value, str) or not (value in self.names or self._is_plugin(value)):
            raise Unfit(self.expected)
        return value

    def _from_text(self, text: str) -> str:
        return self._read(text)

    def _is_plugin(self, name: str) -> bool:
        return self._plugins is not None and name in offers(self._plugins)


class SomeOf(Kind):
    """A list of some of a few words, each once, in the order given."""

    def __init__(self, *names: str, may_be_empty: bool = False) -> None:
        self.names = names
        self.may_be_empty = may_be_empty
        self.expected = f"a list with {'some' if may_be_empty else 'one or more'} of {', '.join(names)}"

    def _read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not (value or self.may_be_empty):
            raise Unfit(self.expected)
        if not all(isinstance(name, str) and name in self.names for name in value):
            raise Unfit(self.expected)
        return tuple(dict.fromkeys(value))

    def _from_text(self, text: str) -> Any:
        if text.startswith("["):
            return super()._from_text(text)
        return self._read([name.strip() for name in text.split(",")])

    def _to_json(self, value: tuple[str, ...]) -> list[str]:
        return list(value)


class Duration(Kind):
    """A length of time such as "90s", "5m" or "1h", kept as seconds."""

    expected = 'a duration such as "90s", "5m" or "1h"'

    def _read(self, value: Any) -> float:
        match = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
        if match is None:
            raise Unfit(self.expected)
        return min(float(match[1]) * _SECONDS_IN[match[2]], 365 * 86_400.0)

    def _from_text(self, text: str) -> float:
        return self._read(text)

    def _to_json(self, value: float) -> str:
        for unit, seconds in _SECONDS_IN.items():
            if value >= seconds and value % seconds == 0:
                return f"{value / seconds:.0f}{unit}"
        return f"{value * 1000:.0f}ms"


class TextTable(Kind):
    """An object whose values are text of one line each: HTTP headers."""

    expected = "an object of one-line texts"

    def _read(self, value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise Unfit(self.expected)
        for part in (*value.keys(), *value.values()):
            # A line break in a header would smuggle in another header.
            if not is_clean_text(part) or "\n" in part or "\r" in part:
                raise Unfit(self.expected)
        return dict(value)

    def _to_json(self, value: Mapping[str, str]) -> dict[str, str]:
        return dict(value)


def is_clean_text(value: object) -> TypeGuard[str]:
    """Whether it is text, not empty, that can become UTF-8 or a path: no NUL, no half surrogate pair."""
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite_number(value: object) -> TypeGuard[int | float]:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


@value
class ExtraPath:
    """More Markdown to index: a file or a folder, absolute or relative to the workspace."""

    path: str
    pattern: str | None = None
    name: str | None = None
    scope: str | None = None  # "shared": also for groups and other people


@value
class ProviderAccess:
    """How to reach one provider. The key may be a reference, `env:NAME`."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


@value
class ScopeRule:
    """Who may see the memory; a condition that is None matches everything."""

    action: str  # "allow" or "deny"
    chat_type: str | None = None
    channel: str | None = None
    key_prefix: str | None = None


class Paths(Kind):
    """A list of paths, each as text or as {path, pattern, name, scope}."""

    expected = "a list of paths, each as text or as {path, pattern, name, scope: private or shared}"

    def _read(self, value: Any) -> tuple[ExtraPath, ...]:
        if not isinstance(value, list | tuple):
            raise Unfit(self.expected)
        return tuple(dict.fromkeys(self._read_one(item) for item in value))

    def _read_one(self, item: Any) -> ExtraPath:
        if isinstance(item, ExtraPath):
            return item
        if isinstance(item, str):
            item = {"path": item}
        found = _text_fields(item, ("path", "pattern", "name", "scope"), self.expected)
        # A misspelt scope must not be taken for another one.
        if found["path"] is None or found["scope"] not in {None, "private", "shared"}:
            raise Unfit(self.expected)
        return ExtraPath(found["path"], found["pattern"], found["name"], found["scope"])

    def _from_text(self, text: str) -> Any:
        if text.startswith("["):
            return super()._from_text(text)
        return self._read([path.strip() for path in text.split(",")])

    def _to_json(self, value: tuple[ExtraPath, ...]) -> list[Any]:
        return [
            _without_none(
                {"path": extra.path, "pattern": extra.pattern, "name": extra.name, "scope": extra.scope}
            )
            if extra.pattern or extra.name or extra.scope
            else extra.path
            for extra in value
        ]


class Providers(Kind):
    """An object of providers by name, each {apiKey, baseUrl}."""

    expected = "an object of providers by name, each {apiKey, baseUrl} of texts"

    def _read(self, value: Any) -> dict[str, ProviderAccess]:
        if not isinstance(value, Mapping) or not all(is_clean_text(name) for name in value):
            raise Unfit(self.expected)
        return {name: self._read_one(access) for name, access in value.items()}

    def _read_one(self, access: Any) -> ProviderAccess:
        if isinstance(access, ProviderAccess):
            return access
        found = _text_fields(access, ("apiKey", "baseUrl"), self.expected)
        return ProviderAccess(api_key=found["apiKey"], base_url=found["baseUrl"])

    def _to_json(self, value: Mapping[str, ProviderAccess]) -> dict[str, Any]:
        return {
            name: _without_none({"apiKey": p.api_key, "baseUrl": p.base_url}) for name, p in value.items()
        }


class Rules(Kind):
    """A list of rules about who may see the memory; the first that matches decides."""

    expected = "a list of rules {action: allow or deny, match: {chatType, channel, keyPrefix}}"

    def _read(self, value: Any) -> tuple[ScopeRule, ...]:
        if not isinstance(value, list | tuple):
            raise Unfit(self.expected)
        return tuple(self._read_one(rule) for rule in value)

    def _read_one(self, rule: Any) -> ScopeRule:
        if isinstance(rule, ScopeRule):
            return rule
        if not isinstance(rule, Mapping) or not set(rule) <= {"action", "match"}:
            raise Unfit(self.expected)
        action = rule.get("action")
        if not isinstance(action, str) or action not in {"allow", "deny"}:
            raise Unfit(self.expected)
        # A misspelt condition must not turn a narrow rule into one that matches everybody.
        found = _text_fields(rule.get("match", {}), ("chatType", "channel", "keyPrefix"), self.expected)
        return ScopeRule(action, found["chatType"], found["channel"], found["keyPrefix"])

    def _to_json(self, value: tuple[ScopeRule, ...]) -> list[Any]:
        return [
            {
                "action": rule.action,
                "match": _without_none(
                    {"chatType": rule.chat_type, "channel": rule.channel, "keyPrefix": rule.key_prefix}
                ),
            }
            for rule in value
        ]


def _text_fields(value: Any, names: tuple[str, ...], expected: str) -> dict[str, str | None]:
    """Take the named texts of an object, None for those left out; anything else in it is unfit."""
    if not isinstance(value, Mapping) or not set(value) <= set(names):
        raise Unfit(expected)
    if not all(text is None or is_clean_text(text) for text in value.values()):
        raise Unfit(expected)
    return {name: value.get(name) for name in names}


def _without_none(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in values.items() if text is not None}


# A project file comes with a checked-out repository, written by others. What it may set is an
# allow-list: every setting says ALLOWED, or the reason why it is the user's alone.
ALLOWED = ""
SENDS = "it decides where your notes are sent"
SPENDS = "it decides which keys are used, and what for"
RUNS = "it decides which programs run on your machine"
READS = "it decides which of your files are read"
KEEPS = "it decides where your data is kept, and for how long"
SHOWS = "it decides who gets to see your memory"
SPEAKS = "it gives instructions to the model"


def setting(
    default: Any, kind: Kind, project: str, doc: str, *, name: str | None = None, secret: bool = False
) -> Any:
    """Declare one setting.

    `project` is the reason why a project file may not set it, empty when it may; `name` is its key in files,
    where the attribute in camelCase is not it.
    """
    facts = {"kind": kind, "doc": doc, "project": project, "name": name, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=facts, repr=not secret)
    return field(default=default, metadata=facts, repr=not secret)


def group(kind: type[Any], *, name: str | None = None) -> Any:
    """Declare a group within a group. All of them share one default, which never changes."""
    return field(default=kind(), metadata={"group": kind, "name": name})
