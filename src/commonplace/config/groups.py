"""Groups of settings: frozen slots dataclasses, made in a way that costs a cold start next to nothing.

`@dataclass(frozen=True)` compiles up to seven methods for each class, 0.5 ms a class, which a start-up cannot
afford for every group of settings. Here the decorator compiles none: the methods are inherited.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

from commonplace.config.kinds import Kind

_G = TypeVar("_G", bound="Group")


class Group:
    """A group of settings. Equal when all values are equal; the repr leaves secrets out."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self, **given: Any) -> None:
        for each in fields(self):
            if each.name in given:
                value = given.pop(each.name)
            else:
                value = each.default if each.default_factory is MISSING else each.default_factory()
            object.__setattr__(self, each.name, value)
        if given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(given))}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(self))

    __hash__ = None  # type: ignore[assignment]  # some settings are tables

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), {each.name: getattr(self, each.name) for each in fields(self)})


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings_group(declared: type[_G]) -> type[_G]:
    """Make a group of the settings that a class declares."""
    return dataclass(init=False, repr=False, eq=False, match_args=False, slots=True)(declared)


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


def group(kind: type[Group], *, name: str | None = None) -> Any:
    """Declare a group within a group."""
    return field(default_factory=kind, metadata={"group": kind, "name": name})


def _remake(kind: type[_G], values: dict[str, Any]) -> _G:
    return kind(**values)
