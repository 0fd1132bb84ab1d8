"""Puts an entry of ours into a host's settings and takes it out again, in JSON, TOML and YAML: the rest stays as it is.

Pure: from text to text. Each change is read back and compared with what was meant before anyone writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from plainmind.base.errors import ConfigError
from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.config.edit import Entry, NotUnderstood, indent_before, outline, with_member, without_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

NAME = "plainmind"

Kind: TypeAlias = "Literal['member', 'item', 'table', 'block', 'file']"


@value
class Edit:
    """One entry of ours in one file.

    `member` of an object and `item` of a list are JSON, perhaps with comments, and `keys` lead there; `table` is TOML,
    `block` YAML, and `keys` are the names of both; a `file` is ours as a whole.
    """

    kind: Kind
    keys: tuple[str, ...]
    content: Any  # ready for JSON; of tables, blocks and files the text


# --- what is ours ---

_OUR_HOOK = pattern(rf"(?:^|[/\s'\"]){NAME}['\"]?\s+hook(?:\s|$)")


def is_our_server(found: object) -> bool:
    """Whether a server's entry starts this program."""
    if not isinstance(found, Mapping):
        return False
    words = [*_words(found.get("command")), *_words(found.get("cmd")), *_words(found.get("args"))]
    return any(word.rpartition("/")[2] == NAME for word in words) and "mcp" in words


def is_our_hook(found: object) -> bool:
    """Whether an entry of a list of hooks calls this program."""
    if isinstance(found, str):
        return bool(_OUR_HOOK.search(found))
    if isinstance(found, Mapping):
        return any(is_our_hook(below) for below in found.values())
    return isinstance(found, list) and any(is_our_hook(below) for below in found)


def _words(found: object) -> list[str]:
    if isinstance(found, str):
        return [found]
    return [word for word in found if isinstance(word, str)] if isinstance(found, list) else []


# --- any file ---


def with_edit(text: str, edit: Edit) -> str:
    """Put an entry in. Raises ConfigError when the text cannot be followed, or another has our name there."""
    if edit.kind == "file":
        return str(edit.content)
    if edit.kind == "table":
        return _with_table(text, edit)
    if edit.kind == "block":
        return _with_block(text, edit)
    return _with_json(text, edit)


def without_edit(text: str, edit: Edit) -> str:
    """Take the entry out, if it is there. Raises ConfigError when the text cannot be followed."""
    if edit.kind == "file":
        return ""
    if edit.kind == "table":
        return _without_table(text, edit)
    if edit.kind == "block":
        return _without_block(text, edit)
    return _without_json(text, edit)


def says_nothing(text: str) -> bool:
    """Whether a file that we made has nothing left in it."""
    return text.strip() in {"", "{}"}


# --- JSON, perhaps with comments and commas too many ---

_NO_JSON = pattern(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)


def read_json(text: str) -> dict[str, Any]:
    """Read an object that may have comments and commas before a closing bracket. Raises ConfigError."""
    if not text.strip():
        return {}
    plain = text.removeprefix("\ufeff")
    try:
        found = json.loads(plain)
    except ValueError:
        try:
            found = json.loads(_NO_JSON.sub(lambda match: match[1] or "", plain))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"it is not valid JSON ({_place(error)})", hint="correct it first; nothing was changed"
            ) from None
    if not isinstance(found, dict):
        raise ConfigError("it is JSON, but not an object", hint="correct it first; nothing was changed")
    return found


def _place(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deep"


def _with_json(text: str, edit: Edit) -> str:
    before = read_json(text)
    meant = _meant(before, edit)
    if meant == before:
        return text
    if not text.strip():
        after = json.dumps(meant, ensure_ascii=False, indent=2) + "\n"
    else:
        after = _insert(text, edit)
    if read_json(after) != meant:
        raise _not_followed(edit)
    return after


def _meant(before: Mapping[str, Any], edit: Edit) -> dict[str, Any]:
    """What the file has to say afterwards."""
    first, *rest = edit.keys
    after = dict(before)
    if not rest:
        if edit.kind == "item":
            there = before.get(first, [])
            if not isinstance(there, list):
                raise ConfigError(f"`{first}` is not a list there", hint="correct it first")
            after[first] = there if edit.content in there else [*there, edit.content]
        elif first != NAME:
            after.setdefault(first, edit.content)  # what the format asks for, and somebody else may have said
        else:
            if first in before and before[first] != edit.content:
                _refuse_another(before[first])
            after[first] = edit.content
        return after
    inner = before.get(first, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"`{first}` is not an object there", hint="correct it first")
    after[first] = _meant(inner, Edit(edit.kind, tuple(rest), edit.content))
    return after


def _refuse_another(found: object) -> None:
    if not is_our_server(found):
        shown = json.dumps(found, ensure_ascii=False)
        raise ConfigError(
            f"another server has the name `{NAME}` there: {shown[:200]}",
            hint="rename or remove that one, then connect again; nothing was changed",
        )


def _insert(text: str, edit: Edit) -> str:
    whole = _outline(text)
    entry, left = whole, list(edit.keys)
    while left and (below := _member(entry, left[0])) is not None:
        entry, left = below, left[1:]
    if not left and edit.kind == "member":
        indent = _indent_of(text, entry)
        rendered = _render(edit.content, indent, _unit(text, whole))
        return text[: entry.value_start] + rendered + text[entry.value_end :]
    unit = _unit(text, whole)
    content = [edit.content] if edit.kind == "item" and left else edit.content
    for key in reversed(left[1:]):
        content = {key: content}
    return _with_one_more(text, entry, left[0] if left else None, content, unit)


def _with_one_more(text: str, entry: Entry, name: str | None, content: Any, unit: str) -> str:
    key = "" if name is None else f"{json.dumps(name)}: "
    there = entry.members or entry.items
    if there:
        indent = indent_before(text, there[-1].key_start)
        # Members that share a line go on doing so.
        line = json.dumps(content, ensure_ascii=False) if indent is None else _render(content, indent, unit)
        return with_member(text, entry, key + line)
    opening, closing = text[entry.value_start], text[entry.value_end - 1]
    inside = text[entry.value_start + 1 : entry.value_end - 1]
    indent = _indent_of(text, entry)
    newline = _newline(text)
    kept = inside.rstrip() if inside.strip() else ""  # a remark stays
    rendered = key + _render(content, indent + unit, unit)
    made = f"{opening}{kept}{newline}{indent}{unit}{rendered}{newline}{indent}{closing}"
    return (
        text[: entry.value_start]
        + made.replace("\r\n", "\n").replace("\n", newline)
        + text[entry.value_end :]
    )


def _without_json(text: str, edit: Edit) -> str:
    if not text.strip() or (edit.kind == "member" and edit.keys[-1] != NAME):
        return text
    before = read_json(text)
    after = _retracted(text, edit)
    if _content_without(before, edit) != _content_without(read_json(after), edit):
        raise _not_followed(edit)
    return after


def _retracted(text: str, edit: Edit) -> str:
    found = _follow(_outline(text), edit.keys[: None if edit.kind == "item" else -1])
    if found is None:
        return text
    if edit.kind == "member":
        return _without_named(text, found, edit.keys[-1])
    places = [
        place
        for place, item in enumerate(found.items or ())
        if is_our_hook(_value_of(text[item.value_start : item.value_end]))
    ]
    for place in reversed(places):
        found = _follow(_outline(text), edit.keys) or found
        text = without_member(text, found, place)
    return text


def _without_named(text: str, entry: Entry, name: str) -> str:
    for place, member in enumerate(entry.members or ()):
        if member.name == name:
            return without_member(text, entry, place)
    return text


def without_empty(text: str, keys: Sequence[str]) -> str:
    """Take out an object or a list that we had made, if nothing is left in it."""
    entry = _follow(_outline(text), keys) if text.strip() else None
    above = _follow(_outline(text), keys[:-1]) if entry is not None else None
    if entry is None or above is None or entry.members or entry.items:
        return text
    inside = text[entry.value_start + 1 : entry.value_end - 1]
    return text if inside.strip() else _without_named(text, above, keys[-1])


def missing_keys(text: str, edit: Edit) -> list[tuple[str, ...]]:
    """The objects and lists on the way to an entry that are not there yet, the innermost first."""
    if edit.kind not in {"member", "item"}:
        return []
    inner = edit.keys if edit.kind == "item" else edit.keys[:-1]
    ways = [inner[:length] for length in range(len(inner), 0, -1)]
    return [way for way in ways if not text.strip() or _follow(_outline(text), way) is None]


def _content_without(found: Any, edit: Edit) -> Any:
    """What a file says beside the entry; objects and lists that hold nothing else count as not there."""
    first, *rest = edit.keys
    if not isinstance(found, dict) or first not in found:
        return found
    others = {name: below for name, below in found.items() if name != first}
    if rest:
        kept = _content_without(found[first], Edit(edit.kind, tuple(rest), edit.content))
    elif edit.kind == "item" and isinstance(found[first], list):
        kept = [item for item in found[first] if not is_our_hook(item)]
    else:
        kept = None
    return {**others, first: kept} if kept else others


def _outline(text: str) -> Entry:
    try:
        return outline(text)
    except NotUnderstood:
        read_json(text)  # says where it is wrong, if it is
        raise _not_followed() from None


def _not_followed(edit: Edit | None = None) -> ConfigError:
    content = "our entry"
    if edit is not None:
        told = edit.content if isinstance(edit.content, str) else json.dumps(edit.content, ensure_ascii=False)
        content = f"`{'.'.join(edit.keys)}`: {told}"
    return ConfigError(
        "it is written in a way that this program cannot change safely",
        hint=f"nothing was changed; by hand, put in or take out {content}",
    )


def _member(entry: Entry, name: str) -> Entry | None:
    return next((member for member in entry.members or () if member.name == name), None)


def _follow(entry: Entry, keys: Sequence[str]) -> Entry | None:
    found: Entry | None = entry
    for key in keys:
        found = None if found is None else _member(found, key)
    return found


def _value_of(text: str) -> Any:
    return read_json(f'{{"it": {text}}}').get("it")


def _unit(text: str, whole: Entry) -> str:
    """By how much this file indents."""
    indent = indent_before(text, whole.members[0].key_start) if whole.members else None
    return indent or "  "


def _indent_of(text: str, entry: Entry) -> str:
    """How far the line is indented on which something begins."""
    start = text.rfind("\n", 0, entry.key_start) + 1
    line = text[start : entry.key_start]
    return line[: len(line) - len(line.lstrip())]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _render(content: Any, indent: str, unit: str) -> str:
    return json.dumps(content, ensure_ascii=False, indent=unit).replace("\n", "\n" + indent)


# --- TOML: a table of ours stands at the end ---

_HEADER = pattern(r"^[ \t]*\[", re.MULTILINE)


def read_toml(text: str) -> dict[str, Any]:
    """Read TOML. Raises ConfigError."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"it is not valid TOML ({error})", hint="correct it first; nothing was changed"
        ) from None


def _with_table(text: str, edit: Edit) -> str:
    before = read_toml(text)
    there = _at(before, edit.keys)
    if there is not None and edit.keys[-1] == NAME:
        _refuse_another(there)
    if there is not None:
        text = _without_table(text, edit)
    newline = _newline(text)
    gap = "" if not text or text.endswith(newline * 2) else newline if text.endswith("\n") else newline * 2
    after = text + gap + str(edit.content).replace("\n", newline)
    try:
        found = read_toml(after)
    except ConfigError:
        raise _not_followed(edit) from None
    if _at(found, edit.keys) is None or _drop(found, edit.keys) != _drop(before, edit.keys):
        raise _not_followed(edit)
    return after


def _without_table(text: str, edit: Edit) -> str:
    before = read_toml(text)
    if _at(before, edit.keys) is None:
        return text
    content = str(edit.content).replace("\n", _newline(text))
    at = text.find(content)
    end = at + len(content)
    if at < 0 or text[end : end + 1] not in {"", "\r", "\n", "["} or _has_below(text[end:], edit.keys):
        at, end = _bounds_of_table(text, edit.keys)
    # The empty line before it came with it.
    start = at
    newline = _newline(text)
    if text[:at].endswith(newline * 2):
        start = at - len(newline)
    after = text[:start] + text[end:]
    if _drop(read_toml(after), edit.keys) != _drop(before, edit.keys) or _at(read_toml(after), edit.keys):
        raise _not_followed(edit)
    return after


def _header_of(keys: Sequence[str]) -> re.Pattern[str]:
    names = [rf"[\"']?{re.escape(key)}[\"']?" for key in keys]
    return re.compile(r"[ \t]*\[\s*" + r"\s*\.\s*".join(names) + r"\s*[.\]]")


def _has_below(text: str, keys: Sequence[str]) -> bool:
    own = _header_of(keys)
    return any(own.match(text, header.start()) for header in _HEADER.finditer(text))


def _bounds_of_table(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Where a table and those below it begin and end, when they stand together."""
    own = _header_of(keys)
    begin = end = -1
    for header in _HEADER.finditer(text):
        if own.match(text, header.start()):
            begin = header.start() if begin < 0 else begin
            end = len(text)
        elif begin >= 0:
            end = header.start()
            break
    if begin < 0:
        raise _not_followed()
    return begin, end


def _at(found: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _drop(found: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """What a document says beside one table; those above it that hold nothing else count as not there."""
    first, *rest = keys
    others = {name: below for name, below in found.items() if name != first}
    inner = found.get(first)
    if not rest or not isinstance(inner, dict):
        return others
    kept = _drop(inner, rest)
    return {**others, first: kept} if kept else others


# --- YAML: a block of ours is the first below a key of the top ---

_TOP_KEY = r"^{}:[ \t]*(?:#[^\n]*)?(?:\n|\Z)"


def _with_block(text: str, edit: Edit) -> str:
    _refuse_flow(text)
    section, name = edit.keys
    there = _bounds_of_block(text, section, name)
    if there is not None:
        if NAME not in text[there[0] : there[1]].partition(":")[2]:
            raise ConfigError(
                f"another extension has the name `{name}` there",
                hint="rename or remove that one, then connect again; nothing was changed",
            )
        text = text[: there[0]] + text[there[1] :]
    top = re.search(_TOP_KEY.format(re.escape(section)), text, re.MULTILINE)
    if top is None:
        if re.search(rf"^{re.escape(section)}\s*:", text, re.MULTILINE):
            raise _not_followed(edit)  # its value stands on the same line
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{section}:\n{_indented(edit, '  ')}"
    head = text[: top.end()]
    head += "" if head.endswith("\n") else "\n"
    return head + _indented(edit, _indent_below(text, top.end())) + text[top.end() :]


def _without_block(text: str, edit: Edit) -> str:
    section, name = edit.keys
    there = _bounds_of_block(text, section, name)
    if there is None:
        return text
    begin, end = there
    whole = _indented(edit, _indent_below(text, begin))
    if text.startswith(whole, begin):  # a remark behind it belongs to what follows
        end = begin + len(whole)
    return text[:begin] + text[end:]


def without_empty_section(text: str, section: str) -> str:
    """Take out a key of the top that we had made, if nothing is below it any more."""
    top = re.search(_TOP_KEY.format(re.escape(section)), text, re.MULTILINE)
    if top is None or _indent_below(text, top.end(), otherwise=""):
        return text
    return text[: top.start()] + text[top.end() :]


def _indented(edit: Edit, indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in str(edit.content).splitlines())


def _indent_below(text: str, at: int, *, otherwise: str = "  ") -> str:
    for line in text[at:].splitlines():
        bare = line.lstrip(" ")
        if bare and not bare.startswith("#"):
            return line[: len(line) - len(bare)] or otherwise
    return otherwise


def _bounds_of_block(text: str, section: str, name: str) -> tuple[int, int] | None:
    top = re.search(_TOP_KEY.format(re.escape(section)), text, re.MULTILINE)
    if top is None:
        return None
    indent = _indent_below(text, top.end())
    at, begin = top.end(), -1
    for line in text[top.end() :].splitlines(keepends=True):
        depth = len(line) - len(line.lstrip(" "))
        is_said = bool(line.strip()) and not line.lstrip().startswith("#")
        if is_said and begin >= 0 and depth <= len(indent):
            return begin, at
        if is_said and depth < len(indent):
            return None
        if (
            begin < 0
            and depth == len(indent)
            and re.match(rf"[\"']?{re.escape(name)}[\"']?\s*:", line.strip())
        ):
            begin = at
        at += len(line)
    return None if begin < 0 else (begin, at)


def _refuse_flow(text: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if line[: len(line) - len(line.lstrip())].count("\t"):
            raise ConfigError(
                f"it is not valid YAML (line {number} is indented by a tab)",
                hint="correct it first; nothing was changed",
            )


__all__ = [
    "NAME",
    "Edit",
    "is_our_hook",
    "is_our_server",
    "missing_keys",
    "read_json",
    "read_toml",
    "says_nothing",
    "with_edit",
    "without_edit",
    "without_empty",
    "without_empty_section",
]
