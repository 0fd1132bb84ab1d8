"""Shows settings to a person: each value with its origin, secrets only as set or unset; and changes one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.config.document import decode, parse_document, printable_path, read_bytes
from plainmind.config.keys import (
    CheckedLayer,
    Key,
    all_keys,
    canonical,
    check_value,
    find_key,
    is_section,
    known_key,
    unknown_key,
)
from plainmind.config.load import Loaded, Origin, referenced_variable, user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

# write(path, data, base_hash): replace the file whose SHA-256 is `base_hash`; None means that there is none.
Write: TypeAlias = Callable[[str, bytes, str | None], None]

_CREDENTIALS_IN_ADDRESS = pattern(r"(?<=://)[^/@\s]*@|\?.*", re.DOTALL)
_BOM = b"\xef\xbb\xbf"


@value
class Row:
    """One setting as `config list` shows it; `value` is a JSON value."""

    key: str
    value: Any
    origin: Origin
    doc: str


@value
class Reference:
    """One setting as the reference pages describe it."""

    key: str
    expected: str
    default: Any
    doc: str
    environment: str
    project: str  # why a project file may not set it; empty when it may
    secret: bool


@value
class Change:
    """What `set_user_value` wrote; `value` is shown, so a secret is only `set`."""

    path: str
    key: str
    value: Any


def rows(loaded: Loaded) -> list[Row]:
    """Every setting, in the order of the reference."""
    return [
        Row(key.name, _shown(key, key.of(loaded.settings)), loaded.origins[key.name], key.doc)
        for key in all_keys().values()
    ]


def get_value(loaded: Loaded, name: str) -> Any:
    """Show one value, or an object of all the values below a section. Raises ConfigError."""
    section = canonical(name)
    key = known_key(section)
    if key is not None:
        return _shown(key, key.of(loaded.settings))
    if not section or not is_section(section):
        raise unknown_key(name)
    below = [key for key in all_keys().values() if key.name.startswith(section + ".")]
    return {key.name[len(section) + 1 :]: _shown(key, key.of(loaded.settings)) for key in below}


def schema_reference() -> list[Reference]:
    """Every setting with everything that documentation needs."""
    return [
        Reference(
            key=key.name,
            expected=key.kind.expected,
            default=key.kind.to_json(key.default),
            doc=key.doc,
            environment=key.environment_name,
            project=key.project,
            secret=key.secret,
        )
        for key in all_keys().values()
    ]


def set_user_value(home: str, name: str, value: Any, *, write: Write) -> Change:
    """Set one value in the user's file and leave every other byte of it alone. Raises ConfigError.

    Text is read as `config set` gives it: `8` is a number, `a,b` a list. Where the file cannot be changed
    safely nothing is written, and the hint shows the line to add by hand.
    """
    from plainmind.config.edit import NotUnderstood, render

    key = find_key(name)
    wanted = key.kind.to_json(check_value(key, value, name, Origin("flag"), as_text=True))
    path = user_file(home)
    data = read_bytes(path)
    try:
        new, after = _edit(data, path, key, wanted)
    except NotUnderstood:
        line = render(tuple(key.name.split(".")), "…" if key.secret else wanted, bare_keys=False)
        raise ConfigError(
            f"{printable_path(path)} cannot be changed without risk to what else is in it",
            key=key.name,
            hint=f"add this line yourself: {line}",
        ) from None
    CheckedLayer(Origin("user", path)).put_all(after)
    write(path, new, hashlib.sha256(data).hexdigest() if data is not None else None)
    return Change(path, key.name, _shown(key, key.kind.read(wanted)))


def unset_user_value(home: str, name: str, *, write: Write) -> Change | None:
    """Take one value out of the user's file, so that another layer or the default counts; None if it is not in it.

    Raises ConfigError, as `set_user_value` does.
    """
    from plainmind.config.edit import NotUnderstood

    key = find_key(name)
    path = user_file(home)
    data = read_bytes(path)
    if data is None:
        return None
    try:
        new = _without(data, path, key)
    except NotUnderstood:
        raise ConfigError(
            f"{printable_path(path)} cannot be changed without risk to what else is in it",
            key=key.name,
            hint=f"take the line with `{key.name}` out yourself",
        ) from None
    if new is None:
        return None
    write(path, new, hashlib.sha256(data).hexdigest())
    return Change(path, key.name, None)


def _without(data: bytes, path: str, key: Key) -> bytes | None:
    """The bytes of the file without a setting, None when it has none; nothing else in them may mean anything else."""
    from plainmind.config.edit import NotUnderstood, removed_only, without_setting

    found = without_setting(decode(data, path), key.name)
    if found is None:
        return None
    text, names = found
    new = (_BOM if data.startswith(_BOM) else b"") + text.encode()
    if not removed_only(parse_document(data, path), parse_document(new, path), names):
        raise NotUnderstood
    return new


def _edit(data: bytes | None, path: str, key: Key, wanted: Any) -> tuple[bytes, Mapping[str, Any]]:
    """Change the bytes of the file, and parse them: nothing else in it may mean anything else than before."""
    from plainmind.config.edit import NotUnderstood, changed_only, with_setting

    old = decode(data, path) if data is not None else ""
    before = parse_document(data, path) if data is not None and old.strip() else {}
    text, names = with_setting(old, key.name, wanted, bare_keys=path.endswith(".json5"))
    new = (_BOM if data is not None and data.startswith(_BOM) else b"") + text.encode()
    try:
        after = parse_document(new, path)
    except ConfigError as error:
        raise NotUnderstood from error
    if not changed_only(before, after, names, wanted):
        raise NotUnderstood
    return new, after


def _shown(key: Key, value: Any) -> Any:
    """Give the value as JSON; of a secret only whether it is there, and the variable that holds it."""
    if key.secret:
        if not value:
            return "unset"
        variable = referenced_variable(value) if isinstance(value, str) else None
        return f"set (env:{variable})" if variable else "set"
    if isinstance(value, str) and "://" in value:
        return _CREDENTIALS_IN_ADDRESS.sub("…", value)
    return key.kind.to_json(value)
