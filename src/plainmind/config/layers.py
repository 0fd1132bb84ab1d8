"""Reads one layer of configuration, nested or dotted, into checked values by the names of their settings."""

from __future__ import annotations

import os
from collections.abc import Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.value import field, record
from plainmind.config.keys import (
    Key,
    all_keys,
    canonical,
    has_no_effect,
    nearest,
    section_names,
    unknown_key,
)
from plainmind.config.kinds import Number, OneOf, Unfit, Whole
from plainmind.config.origin import Origin
from plainmind.config.wording import describe_found, printable, printable_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 12


@record
class Layer:
    """The checked values of one layer, where each comes from, and remarks on what was changed or left out."""

    origin: Origin
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spelled: dict[str, str] = field(default_factory=dict)

    def put_all(self, found: Mapping[Any, Any], above: str = "", depth: int = 0) -> None:
        """Check everything in an object of settings and keep it. Raises ConfigError."""
        if depth > _MAX_DEPTH:
            raise ConfigError(f"`{printable(above)}` is nested too deeply{_place(self.origin)}", key=above)
        for name, value in found.items():
            spelled = f"{above}.{name}" if above else str(name)
            meant = canonical(spelled)
            if meant in all_keys():
                self.put(all_keys()[meant], spelled, value, self.origin)
            elif has_no_effect(meant):
                self.notes.append(f"`{printable(spelled)}` has no effect here{_place(self.origin)}")
            elif meant not in section_names():
                raise unknown_key(spelled, _place(self.origin))
            elif isinstance(value, Mapping):
                self.put_all(value, spelled, depth + 1)
            else:
                raise _wrong(spelled, "an object of settings", value, self.origin, secret=True)

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


def check_value(key: Key, value: Any, spelled: str, origin: Origin, *, as_text: bool) -> Any:
    """Turn a value into what its setting keeps. Raises ConfigError: what is expected, what was found.

    With `as_text`, text may stand for a value of any kind: `8` for a number, `a,b` for a list.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    try:
        return key.kind.from_text(value) if as_text and isinstance(value, str) else key.kind.read(value)
    except Unfit as unfit:
        error = _wrong(spelled, str(unfit), value, origin, secret=key.secret)
        if isinstance(key.kind, OneOf) and isinstance(value, str):
            close = nearest(value, key.kind.names)
            error.hint = f"did you mean `{close}`?" if close else None
        raise error from None


def _wrong(spelled: str, expected: str, value: Any, origin: Origin, *, secret: bool) -> ConfigError:
    found = describe_found(value, secret=secret)
    return ConfigError(
        f"`{printable(spelled)}` must be {expected}, not {found}{_place(origin)}", key=canonical(spelled)
    )


def _place(origin: Origin) -> str:
    return f" (in {printable_path(origin.where)})" if origin.where else ""
