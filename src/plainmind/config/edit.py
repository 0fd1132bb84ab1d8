"""Settings as a person sees and changes them: each value with its origin, and one of them edited in the person's file.

Secrets are shown only as set or unset. Comments, order and spacing of the rest of a file stay.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.config.keys import (
    CheckedLayer,
    Key,
    all_keys,
    canonical,
    check_value,
    decode,
    find_key,
    is_section,
    known_key,
    parse_document,
    printable_path,
    read_bytes,
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


_GAP = pattern(r"(?:[\s\ufeff]|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_STRING = pattern(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_BARE = pattern(r"[^\s\ufeff,:{}\[\]\"'/]+")
_MAX_DEPTH = 100


class NotUnderstood(Exception):
    """The text cannot be followed, and must be left alone."""


@value
class Entry:
    """One `key: value` of an object, or one item of a list, which has no name.

    `members` is None when the value is not an object; `items` when it is no list.
    """

    name: str
    key_start: int
    value_start: int
    value_end: int
    members: tuple[Entry, ...] | None
    items: tuple[Entry, ...] | None = None

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
        """Give this entry and all below it, each with the names that lead to it."""
        yield above, self
        for member in self.members or ():
            yield from member.walk((*above, member.name))


def outline(text: str) -> Entry:
    """Find everything in the object that the text is, as an entry without a name. Raises NotUnderstood."""
    start = after_gap(text, 0)
    whole = _entry(text, "", 0, start, 0)
    if whole.members is None or after_gap(text, whole.value_end) != len(text):
        raise NotUnderstood
    return whole


def after_gap(text: str, at: int) -> int:
    """Find the first place from `at` on that is neither white space nor in a comment."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def is_gap(text: str) -> bool:
    """Whether there is nothing but white space and whole comments."""
    return _GAP.fullmatch(text) is not None


def find_duplicate(text: str) -> tuple[str, tuple[int, int]] | None:
    """Find the first key that stands twice in one object, and its two lines; lists are not looked into."""
    try:
        whole = outline(text)
    except NotUnderstood:
        return None
    seen: dict[tuple[int, str], Entry] = {}
    for names, entry in whole.walk():
        for member in entry.members or ():
            first = seen.setdefault((entry.value_start, member.name), member)
            if first is not member:
                lines = (_line_of(text, first.key_start), _line_of(text, member.key_start))
                return ".".join((*names, member.name)), lines
    return None


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _entry(text: str, name: str, key_start: int, start: int, depth: int) -> Entry:
    """Find the end of the value that starts at `start`, and what is in it when it is an object or a list."""
    if depth > _MAX_DEPTH:
        raise NotUnderstood
    if text.startswith("{", start):
        end, members = _object(text, start, depth)
        return Entry(name, key_start, start, end, members)
    if text.startswith("[", start):
        end, items = _list(text, start, depth)
        return Entry(name, key_start, start, end, None, items)
    match = _STRING.match(text, start) or _BARE.match(text, start)
    if match is None:
        raise NotUnderstood
    return Entry(name, key_start, start, match.end(), None)


def _object(text: str, at: int, depth: int) -> tuple[int, tuple[Entry, ...]]:
    members: list[Entry] = []
    at = after_gap(text, at + 1)
    while not text.startswith("}", at):
        key = _STRING.match(text, at) or _BARE.match(text, at)
        colon = after_gap(text, key.end()) if key else at
        if key is None or not text.startswith(":", colon):
            raise NotUnderstood
        start = after_gap(text, colon + 1)
        members.append(_entry(text, _key_name(key[0]), at, start, depth + 1))
        at = _after_comma(text, members[-1].value_end, "}")
    return at + 1, tuple(members)


def _list(text: str, at: int, depth: int) -> tuple[int, tuple[Entry, ...]]:
    items: list[Entry] = []
    at = after_gap(text, at + 1)
    while not text.startswith("]", at):
        items.append(_entry(text, "", at, at, depth + 1))
        at = _after_comma(text, items[-1].value_end, "]")
    return at + 1, tuple(items)


def _after_comma(text: str, at: int, closing: str) -> int:
    at = after_gap(text, at)
    if text.startswith(",", at):
        return after_gap(text, at + 1)
    if not text.startswith(closing, at):
        raise NotUnderstood
    return at


def _key_name(spelled: str) -> str:
    quoted = spelled[0] in "\"'"
    name = spelled[1:-1] if quoted else spelled
    if "\\" not in name:
        return name
    try:
        return str(json.loads(f'"{name}"'))
    except ValueError:
        raise NotUnderstood from None


_IDENTIFIER = pattern(r"[A-Za-z_$][A-Za-z0-9_$]*")
_FIRST_LINE = "// Settings of Plainmind. `plainmind config list` shows all of them."


def with_setting(text: str, name: str, value: Any, *, bare_keys: bool) -> tuple[str, tuple[str, ...]]:
    """Change or add one setting in the text; say also which names lead to it there.

    `bare_keys` allows keys without quotes, where the file has them too. Raises NotUnderstood.
    """
    if not text.strip():
        return new_file(name, value, bare_keys=bare_keys), tuple(name.split("."))
    whole = outline(text)
    for names, entry in whole.walk():
        if names and canonical(".".join(names)) == name:
            return text[: entry.value_start] + _json(value) + text[entry.value_end :], names
    names, entry = _section_for(name, whole)
    rest = tuple(name.removeprefix(canonical(".".join(names))).lstrip(".").split("."))
    line = render(rest, value, bare_keys=bare_keys and _has_bare_keys(text, whole))
    return with_member(text, entry, line), (*names, *rest)


def without_setting(text: str, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Take one setting out of the text, with the remark behind it; None when it is not there. Raises NotUnderstood."""
    whole = outline(text) if text.strip() else None
    for names, entry in whole.walk() if whole is not None else ():
        for place, member in enumerate(entry.members or ()):
            if canonical(".".join((*names, member.name))) == name:
                return without_member(text, entry, place), (*names, member.name)
    return None


def new_file(name: str, value: Any, *, bare_keys: bool) -> str:
    """Write a configuration with one setting."""
    first = f"  {_FIRST_LINE}\n" if bare_keys else ""
    comma = "," if bare_keys else ""
    return f"{{\n{first}  {render(tuple(name.split('.')), value, bare_keys=bare_keys)}{comma}\n}}\n"


def render(names: tuple[str, ...], value: Any, *, bare_keys: bool) -> str:
    """Write the setting as it stands in a file: `query: { maxResults: 8 }`."""
    first, *rest = names
    key = first if bare_keys and _IDENTIFIER.fullmatch(first) else _json(first)
    inner = render(tuple(rest), value, bare_keys=bare_keys) if rest else None
    return f"{key}: {{ {inner} }}" if inner else f"{key}: {_json(value)}"


def changed_only(
    before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, ...], value: Any
) -> bool:
    """Whether two parsed files are the same but for this one value."""
    first, *rest = names
    if {**before, first: None} != {**after, first: None} or first not in after:
        return False
    if not rest:
        return bool(after[first] == value)
    inner = before.get(first, {})
    if not isinstance(inner, dict) or not isinstance(after[first], dict):
        return False
    return changed_only(inner, after[first], tuple(rest), value)


def removed_only(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Whether two parsed files are the same but for this one setting, which only the first has."""
    first, *rest = names
    if not rest:
        return (
            first not in after and {name: value for name, value in before.items() if name != first} == after
        )
    inner, left = before.get(first), after.get(first)
    if not isinstance(inner, dict) or not isinstance(left, dict):
        return False
    return {**before, first: None} == {**after, first: None} and removed_only(inner, left, tuple(rest))


def _section_for(name: str, whole: Entry) -> tuple[tuple[str, ...], Entry]:
    """Find the object, already in the file, that is nearest to the setting."""
    best: tuple[tuple[str, ...], Entry] = ((), whole)
    length = 0
    for names, entry in whole.walk():
        section = canonical(".".join(names))
        if entry.members is not None and name.startswith(section + ".") and len(section) > length:
            best, length = (names, entry), len(section)
    return best


def with_member(text: str, entry: Entry, line: str) -> str:
    """Put one more member behind the last of an object, or one more item behind the last of a list."""
    there = entry.members or entry.items
    if not there:
        return _with_first_member(text, entry, line)
    last = there[-1]
    comma = after_gap(text, last.value_end)
    had_comma = text.startswith(",", comma)
    tail = comma + 1 if had_comma else last.value_end
    before = text[:tail] + ("" if had_comma else ",")
    line += "," if had_comma else ""
    indent = indent_before(text, last.key_start)
    if indent is None:  # the members share a line
        return f"{before} {line}{text[tail:]}"
    # A remark behind the last member stays with it.
    end_of_line = text.find("\n", tail)
    at = end_of_line if tail <= end_of_line < entry.value_end and is_gap(text[tail:end_of_line]) else tail
    newline = "\r\n" if text.startswith("\r\n", end_of_line - 1) else "\n"
    at -= 1 if at > tail and newline == "\r\n" else 0
    return f"{before}{text[tail:at]}{newline}{indent}{line}{text[at:]}"


def without_member(text: str, entry: Entry, place: int) -> str:
    """Take out a member of an object or an item of a list, with the remark behind it."""
    members = entry.members or entry.items or ()
    member = members[place]
    comma = after_gap(text, member.value_end)
    end = comma + 1 if text.startswith(",", comma) else member.value_end
    before = text[: member.key_start]
    if indent_before(text, member.key_start) is not None:
        end_of_line = text.find("\n", end)
        if end <= end_of_line < entry.value_end and is_gap(text[end:end_of_line]):
            before, end = before[: before.rfind("\n") + 1], end_of_line + 1
    elif place + 1 < len(members):
        end = members[place + 1].key_start
    if end <= comma and place:  # it was the last, without a comma: the one before it loses its own
        at = after_gap(text, members[place - 1].value_end)
        gap = before[at + 1 :]
        before = before[:at] + (gap if gap.strip() or "\n" in gap else "")
    return before + text[end:]


def _with_first_member(text: str, entry: Entry, line: str) -> str:
    closing = entry.value_end - 1
    indent = indent_before(text, closing)
    if indent is None:  # `{}`, perhaps with a remark inside
        inside = text[entry.value_start + 1 : closing].strip()
        member = f"{{ {inside} {line} }}" if inside else f"{{ {line} }}"
        return text[: entry.value_start] + member + text[entry.value_end :]
    start = closing - len(indent)
    newline = "\r\n" if text.startswith("\r\n", start - 2) else "\n"
    return f"{text[:start]}{indent}  {line}{newline}{text[start:]}"


def indent_before(text: str, at: int) -> str | None:
    """Take the white space that starts the line; None when more stands there, or on the first line."""
    start = text.rfind("\n", 0, at) + 1
    indent = text[start:at]
    return indent if start > 0 and not indent.strip() else None


def _has_bare_keys(text: str, whole: Entry) -> bool:
    return not whole.members or text[whole.members[0].key_start] not in "\"'"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


__all__ = [
    "Entry",
    "NotUnderstood",
    "changed_only",
    "indent_before",
    "new_file",
    "outline",
    "removed_only",
    "render",
    "with_member",
    "with_setting",
    "without_member",
    "without_setting",
]
