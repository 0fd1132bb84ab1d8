"""Values: frozen classes with slots, as `dataclasses` makes them, that cost a cold start next to nothing.

    @value
    class Place:
        path: str
        line: int = 1

`dataclasses` takes 6 ms to import, and 0.6 ms a class to compile up to seven methods that are hardly ever called. Here
all classes share their methods, and one that is constructed often gets a constructor of its own. To `dataclasses`,
`copy`, `pickle` and `inspect` a value is a frozen dataclass: what only they ask for is made when they ask.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False  # type checkers take this name for true, and `typing` stays out of a cold start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_):
        """Stand in for the mark that only type checkers read."""
        return lambda decorator: decorator


class _Missing:
    """Stands where a field has no default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
# Compiling a constructor takes 70 µs, three times that in a new process, and saves 1 µs each time: worth it for what is
# made in numbers.
_FEW = 64


class Field:
    """One field of a value: what it is when it is not given, and who looks at it."""

    __slots__ = ("annotation", "compare", "default", "default_factory", "metadata", "name", "repr")

    def __init__(
        self,
        default: Any,
        default_factory: Callable[[], Any] | None,
        metadata: Mapping[str, Any],
        *,
        repr: bool,  # noqa: A002 (as `dataclasses` calls it)
        compare: bool,
    ) -> None:
        self.name = ""
        self.annotation: Any = None
        self.default = default
        self.default_factory = default_factory
        self.metadata = metadata
        self.repr = repr
        self.compare = compare

    def start(self) -> Any:
        """What the field is when it is not given; MISSING when it must be."""
        return self.default if self.default_factory is None else self.default_factory()


def field(
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    repr: bool = True,  # noqa: A002
    compare: bool = True,
) -> Any:
    """Declare a field that needs more than a plain default; `default_factory` makes a new one for each value."""
    return Field(default, default_factory, metadata or {}, repr=repr, compare=compare)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(declared: type[T]) -> type[T]:
    """Make a class a value: what it annotates are its fields, and they never change."""
    return _remake(declared, _VALUE, frozen=True)


@dataclass_transform(field_specifiers=(field,))
def record(declared: type[T]) -> type[T]:
    """Make a class that is like a value, except that its fields may be set; so it has no hash."""
    return _remake(declared, _RECORD, frozen=False)


def fields(of: Any) -> tuple[Field, ...]:
    """List the fields of a value, or of its class, in their order."""
    return tuple(_shape(of).fields.values())


def replace(of: T, /, **changes: Any) -> T:
    """Make a value like this one, with some fields changed."""
    return type(of)(**{name: getattr(of, name) for name in _shape(of).fields} | changes)


def asdict(of: Any) -> dict[str, Any]:
    """Give the fields by their names; values among them become dictionaries too."""
    return {name: _plain(getattr(of, name)) for name in _shape(of).fields}


class _Shape:
    """What the methods must know about the class they are called for."""

    __slots__ = ("compared", "few_left", "fields", "frozen", "owner", "rows")

    def __init__(self, owner: type, known: dict[str, Field], *, frozen: bool) -> None:
        self.owner = owner
        self.fields = known
        self.frozen = frozen
        self.few_left = _FEW
        self.compared = _getter_of([name for name, each in known.items() if each.compare])
        self.rows: tuple[tuple[str, Callable[[Any, Any], None], Field], ...] = ()  # once one is constructed

    def prepare(self) -> tuple[tuple[str, Callable[[Any, Any], None], Field], ...]:
        """Note for each field what sets it, of classes that are frozen too."""
        self.rows = tuple(
            [(name, getattr(self.owner, name).__set__, each) for name, each in self.fields.items()]
        )
        return self.rows

    def constructor(self) -> Callable[..., None]:
        """Compile the constructor that one would write by hand for the class, and give it to the class."""
        scope: dict[str, Any] = {"_MISSING": MISSING}
        parameters, plain, guarded = ["self"], [], []
        for name, each in self.fields.items():
            scope[f"_put_{name}"] = getattr(self.owner, name).__set__
            scope[f"_make_{name}"], scope[f"_default_{name}"] = each.default_factory, each.default
            given = name
            if each.default_factory is not None:
                parameters.append(f"{name}=_MISSING")
                given = f"_make_{name}() if {name} is _MISSING else {name}"
            else:
                parameters.append(name if each.default is MISSING else f"{name}=_default_{name}")
            plain.append(f"self.{name} = {given}")
            guarded.append(f"_put_{name}(self, {given})")
        head = f"def __init__({', '.join(parameters)}):"
        if not self.frozen:
            body = f" {'; '.join(plain) or 'pass'}"
        elif self.owner.__bases__ == (object,) and plain:
            # A twin that is not frozen, for as long as the fields are set: each takes a tenth of the time.
            # A class that inherits has another layout, and stays what it is.
            scope["_twin"] = type(self.owner.__name__, (), {"__slots__": tuple(self.fields)})
            scope["_owner"], scope["_turn"] = self.owner, object.__dict__["__class__"].__set__
            body = (
                f"\n if self.__class__ is _owner: _turn(self, _twin); {'; '.join(plain)}; self.__class__ = _owner"
                f"\n else: {'; '.join(guarded)}"
            )
        else:
            body = f" {'; '.join(guarded) or 'pass'}"
        exec(f"{head}{body}", scope)  # noqa: S102
        made: Callable[..., None] = scope["__init__"]
        made.__qualname__ = f"{self.owner.__qualname__}.__init__"
        self.owner.__init__ = made  # type: ignore[misc]
        return made


def _remake(declared: type[T], methods: Mapping[str, Any], *, frozen: bool) -> type[T]:
    """Make the class once more: slots cannot be added to one that is there."""
    namespace = dict(declared.__dict__)
    inherited: dict[str, Field] = getattr(declared, "__value_shape__", _NO_SHAPE).fields
    own = {
        name: _field(name, annotation, namespace.get(name, MISSING))
        for name, annotation in declared.__annotations__.items()
        if not str(annotation).startswith(("ClassVar", "typing.ClassVar"))
    }
    for name in (*own, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    known = {**inherited, **own}
    namespace |= {
        "__qualname__": declared.__qualname__,
        "__slots__": tuple(name for name in own if name not in inherited),
        "__match_args__": tuple(known),
    }
    kind: Any = type(declared)
    made: Any = kind(declared.__name__, declared.__bases__, {**methods, **namespace})
    made.__value_shape__ = _Shape(made, known, frozen=frozen)
    return made  # type: ignore[no-any-return]


def _field(name: str, annotation: Any, default: Any) -> Field:
    found: Field = default if isinstance(default, Field) else field(default=default)
    found.name, found.annotation = name, annotation
    return found


def _getter_of(names: list[str]) -> Callable[[Any], Any]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda of: tuple(getattr(of, name) for name in names)


def _shape(of: Any) -> _Shape:
    shape: _Shape = of.__value_shape__
    return shape


def _plain(found: Any) -> Any:
    if hasattr(found, "__value_shape__"):
        return asdict(found)
    if isinstance(found, dict):
        return {_plain(key): _plain(inner) for key, inner in found.items()}
    return type(found)(map(_plain, found)) if isinstance(found, list | tuple) else found


def _construct(self: Any, /, *given: Any, **named: Any) -> None:
    """Set every field; the constructor of its own that a class gets knows best how to say what does not fit."""
    shape: _Shape = self.__value_shape__
    shape.few_left -= 1
    rows = shape.rows or shape.prepare()
    if shape.few_left < 0 or len(given) > len(rows):
        shape.constructor()(self, *given, **named)
        return
    for row, one in zip(rows, given, strict=False):
        row[1](self, one)
    used = 0
    for name, put, each in rows[len(given) :]:
        if name in named:
            one = named[name]
            used += 1
        else:  # as `start` does, which would be a call more for every field
            one = each.default if each.default_factory is None else each.default_factory()
            if one is MISSING:
                break
        put(self, one)
    else:
        if used == len(named):
            return
    shape.constructor()(self, *given, **named)


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    compared = self.__value_shape__.compared
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    return hash(self.__value_shape__.compared(self))


def _show(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _shape(self).fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, one in zip(_shape(self).fields, state, strict=True):
        object.__setattr__(self, name, one)


def _refuse_setting(_self: Any, name: str, _value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(_self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _OnRequest:
    """An attribute of a class that is made when it is first asked for, out of the dataclass that it could be."""

    __slots__ = ("_make", "_name")

    def __init__(self, name: str, make: Callable[[type], Any]) -> None:
        self._name = name
        self._make = make

    def __get__(self, _instance: object, owner: type) -> Any:
        found = self._make(_dataclass_like(owner))
        setattr(owner, self._name, found)
        return found


def _dataclass_like(owner: type) -> type:
    import dataclasses

    shape = _shape(owner)
    rows = []
    for each in shape.fields.values():
        facts: dict[str, Any] = {"repr": each.repr, "compare": each.compare, "metadata": each.metadata}
        if each.default_factory is not None:
            facts["default_factory"] = each.default_factory
        elif each.default is not MISSING:
            facts["default"] = each.default
        rows.append((each.name, each.annotation, dataclasses.field(**facts)))
    return dataclasses.make_dataclass(owner.__name__, rows, frozen=shape.frozen)


def _signature(of: type) -> Any:
    from inspect import signature

    return signature(of)


_NO_SHAPE = _Shape(object, {}, frozen=True)
_RECORD: Mapping[str, Any] = {
    "__init__": _construct,
    "__eq__": _equal,
    "__hash__": None,
    "__repr__": _show,
    "__replace__": replace,  # for `copy.replace`, since Python 3.13
    "__signature__": _OnRequest("__signature__", _signature),
    "__dataclass_fields__": _OnRequest("__dataclass_fields__", attrgetter("__dataclass_fields__")),
    "__dataclass_params__": _OnRequest("__dataclass_params__", attrgetter("__dataclass_params__")),
}
_VALUE: Mapping[str, Any] = {
    **_RECORD,
    "__hash__": _hash,
    "__setattr__": _refuse_setting,
    "__delattr__": _refuse_deleting,
    "__getstate__": _state,
    "__setstate__": _set_state,
}
