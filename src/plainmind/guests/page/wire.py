"""Values as JSON: written, read and described as a JSON schema; and what a request gets that is not carried out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from plainmind.base.errors import (
    ConflictError,
    EmbeddingError,
    IndexUnavailable,
    LockTimeout,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    ScopeDenied,
    StorageFailure,
    WorkspaceError,
    WouldShrink,
)
from plainmind.base.value import MISSING, Field, fields, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")
    Schema: TypeAlias = dict[str, Any]


_PLAIN: Mapping[str, tuple[type | tuple[type, ...], str, str]] = {
    "str": (str, "string", "a text"),
    "int": (int, "integer", "a whole number"),
    "float": ((int, float), "number", "a number"),
    "bool": (bool, "boolean", "true or false"),
}


def about(doc: str, **bounds: Any) -> Mapping[str, Any]:
    """A word about a field for the interface's description, and its bounds: `least`, `most` and `among`."""
    return {"doc": doc, **bounds}


@value
class Kind:
    """What a field holds: a name of `_PLAIN`, `any`, `object`, `list` or `value`, and what is inside."""

    name: str
    inside: Any = None  # the kind of the items or members, or the class of a value
    optional: bool = False


def name_in_json(name: str) -> str:
    """`startLine` of `start_line`."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def kind_of(owner: type, annotation: str) -> Kind:
    """Understand an annotation of a value that travels."""
    parts = [part.strip() for part in annotation.split(" | ")]
    optional = "None" in parts
    (text,) = (part for part in parts if part != "None")
    if text in _PLAIN:
        return Kind(text, optional=optional)
    if text == "Any":
        return Kind("any", optional=optional)
    for start, name in (("tuple[", "list"), ("Mapping[str, ", "object")):
        if text.startswith(start):
            inside = text.removeprefix(start).removesuffix("]").removesuffix(", ...")
            return Kind(name, kind_of(owner, inside), optional)
    return Kind("value", vars(sys.modules[owner.__module__])[text], optional)


_known: dict[type, tuple[tuple[Field, str, Kind], ...]] = {}


def kinds_of(owner: type) -> tuple[tuple[Field, str, Kind], ...]:
    """The fields of a value, what JSON calls them, and what they hold."""
    if owner not in _known:
        _known[owner] = tuple(
            (each, name_in_json(each.name), kind_of(owner, str(each.annotation))) for each in fields(owner)
        )
    return _known[owner]


def as_json(found: Any) -> dict[str, Any]:
    """A value as the object that JSON has for it."""
    return {name: _plain(getattr(found, each.name), kind) for each, name, kind in kinds_of(type(found))}


def _plain(found: Any, kind: Kind) -> Any:
    if found is None or kind.name in _PLAIN or kind.name == "any":
        return found
    if kind.name == "value":
        return as_json(found)
    if kind.name == "list":
        return [_plain(one, kind.inside) for one in found]
    return {name: _plain(one, kind.inside) for name, one in found.items()}


def read(wanted: type[T], facts: object, *, what: str = "the body", is_text: bool = False) -> T:
    """Make a value of what a request says; `is_text` when it came as text, in an address. Raises PlainmindError."""
    if not isinstance(facts, Mapping):
        raise PlainmindError(f"{what} must be a JSON object", hint="see /v1/openapi.json")
    known = kinds_of(wanted)
    names = [name for _, name, _ in known]
    if strange := [str(name) for name in facts if name not in names]:
        raise PlainmindError(
            f"{what} has `{strange[0][:60]}`, which is not known here",
            hint=f"it may have {', '.join(names)}" if names else "leave it out",
        )
    given: dict[str, Any] = {}
    for each, name, kind in known:
        if facts.get(name) is None:
            if each.start() is MISSING and kind.optional:
                given[each.name] = None
            elif each.start() is MISSING:
                raise PlainmindError(f"{what} needs `{name}`", hint=str(each.metadata.get("doc") or ""))
            continue
        one = _from_text(facts[name], kind) if is_text else facts[name]
        given[each.name] = _checked(one, kind, f"`{name}`")
        _check_bounds(given[each.name], each.metadata, name)
    return wanted(**given)


def _from_text(text: Any, kind: Kind) -> Any:
    if kind.name == "list":
        return [part for part in text.split(",") if part]
    if kind.name == "bool":
        return {"true": True, "1": True, "false": False, "0": False}.get(text, text)
    convert: Callable[[str], Any] = {"int": int, "float": float}.get(kind.name, str)
    try:
        return convert(text)
    except ValueError:
        return text


def _checked(found: Any, kind: Kind, where: str) -> Any:
    if kind.name == "any":
        return found
    if kind.name == "value":
        return read(kind.inside, found, what=where)
    if kind.name == "list":
        if not isinstance(found, list):
            raise PlainmindError(f"{where} must be a list", hint="write it in [ ]")
        return tuple(_checked(one, kind.inside, f"an item of {where}") for one in found)
    if kind.name == "object":
        if not isinstance(found, dict):
            raise PlainmindError(f"{where} must be an object", hint="write it in { }")
        return {name: _checked(one, kind.inside, where) for name, one in found.items()}
    types, _, words = _PLAIN[kind.name]
    if not isinstance(found, types) or (isinstance(found, bool) and kind.name != "bool"):
        raise PlainmindError(f"{where} must be {words}", hint="see /v1/openapi.json")
    return found


def _check_bounds(found: Any, bounds: Mapping[str, Any], name: str) -> None:
    least, most, among = bounds.get("least"), bounds.get("most"), bounds.get("among")
    size = len(found) if isinstance(found, str | tuple) else found
    unit = " characters" if isinstance(found, str) else " items" if isinstance(found, tuple) else ""
    if least is not None and size < least:
        raise PlainmindError(f"`{name}` must be at least {least:,}{unit}", hint=str(bounds.get("doc", "")))
    if most is not None and size > most:
        raise PlainmindError(f"`{name}` must be at most {most:,}{unit}", hint=str(bounds.get("doc", "")))
    if among is not None and found not in among:
        raise PlainmindError(f"`{name}` must be one of {', '.join(among)}", hint=str(bounds.get("doc", "")))


def schema_of(owner: type, named: dict[str, Schema]) -> Schema:
    """A reference to the schema of a value; it and those inside it are put into `named`."""
    name = owner.__name__
    if name not in named:
        named[name] = {}  # a value may hold values of its own kind
        known = kinds_of(owner)
        named[name] = {
            "type": "object",
            "description": (owner.__doc__ or "").strip(),
            "properties": {
                in_json: {**_schema(kind, named), **_described(each)} for each, in_json, kind in known
            },
            "required": [in_json for each, in_json, _ in known if each.start() is MISSING],
        }
    return {"$ref": f"#/components/schemas/{name}"}


def parameters_of(owner: type) -> list[Schema]:
    """The fields of a value as parameters of an address."""
    return [
        {
            "name": name,
            "in": "query",
            "required": each.start() is MISSING,
            "schema": _schema(kind, {}),
            **({"description": each.metadata["doc"]} if "doc" in each.metadata else {}),
        }
        for each, name, kind in kinds_of(owner)
    ]


def _described(each: Field) -> Schema:
    found: Schema = {}
    meta = each.metadata
    if "doc" in meta:
        found["description"] = meta["doc"]
    if "among" in meta:
        found["enum"] = list(meta["among"])
    is_text = str(each.annotation).startswith("str")
    for bound, of_text, of_number in (("least", "minLength", "minimum"), ("most", "maxLength", "maximum")):
        if bound in meta:
            found[of_text if is_text else of_number] = meta[bound]
    return found


def _schema(kind: Kind, named: dict[str, Schema]) -> Schema:
    if kind.name in _PLAIN:
        found: Schema = {"type": _PLAIN[kind.name][1]}
    elif kind.name == "list":
        found = {"type": "array", "items": _schema(kind.inside, named)}
    elif kind.name == "object":
        found = {"type": "object", "additionalProperties": _schema(kind.inside, named)}
    elif kind.name == "value":
        found = schema_of(kind.inside, named)
    else:
        found = {}
    if not kind.optional or not found:
        return found
    if "$ref" in found:
        return {"anyOf": [found, {"type": "null"}]}
    return {**found, "type": [found["type"], "null"]}


# --- what a request gets that is not carried out (RFC 9457) ---


# What each kind of problem is called, and the status that goes with it.
KINDS: Mapping[str, tuple[int, str]] = {
    "bad-request": (400, "The request cannot be understood"),
    "unauthorized": (401, "A token is needed"),
    "session-over": (401, "The session is over"),
    "code": (409, "The code does not work any more"),
    "forbidden": (403, "This is not allowed here"),
    "host": (403, "Another host was meant"),
    "origin": (403, "Pages of other sites may not ask here"),
    "not-found": (404, "There is no such thing"),
    "method": (405, "This cannot be done with it"),
    "too-slow": (408, "The body took too long"),
    "conflict": (409, "It does not fit what is there"),
    "would-shrink": (409, "Most of the file would go"),
    "stale": (412, "The file has changed meanwhile"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "The body must be JSON"),
    "precondition-required": (428, "Say which version is meant"),
    "too-many": (503, "Too much is going on"),
    "failed": (500, "This failed inside"),
    "absent": (501, "A part is not there"),
    "unavailable": (503, "The memory cannot be used just now"),
}
# The first that fits: subclasses stand before what they are of.
_OF_ERRORS: tuple[tuple[type[PlainmindError], str], ...] = (
    (ScopeDenied, "forbidden"),
    (NotFound, "not-found"),
    (PathNotAllowed, "forbidden"),
    (WouldShrink, "would-shrink"),
    (ConflictError, "conflict"),
    (WorkspaceError, "unavailable"),
    (LockTimeout, "unavailable"),
    (StorageFailure, "unavailable"),
    (IndexUnavailable, "unavailable"),
    (EmbeddingError, "unavailable"),
)


class Problem(Exception):
    """A request that is not carried out, and why. Never holds what only the owner may read."""

    def __init__(
        self,
        kind: str,
        detail: str,
        hint: str | None = None,
        *,
        more: Mapping[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status, self.title = KINDS[kind]
        self.hint = hint
        self.more = more or {}
        self.headers = headers

    def as_json(self) -> dict[str, Any]:
        """The body that is sent."""
        said = {
            "type": f"urn:plainmind:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": str(self),
        }
        return {**said, **({"hint": self.hint} if self.hint else {}), **self.more}


def problem_of(error: BaseException) -> Problem:
    """Say of an error what the one who asked may know; our own mistakes go to the log."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, PlainmindError):
        kind = next((kind for of, kind in _OF_ERRORS if isinstance(error, of)), "bad-request")
        return Problem(kind, str(error), error.hint)
    import logging

    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return Problem(
        "failed", f"this failed inside ({type(error).__name__})", "the log of the server tells more"
    )
