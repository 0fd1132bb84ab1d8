"""The page as the wheel has it: scripts, styles and texts without comments and without space that nobody reads.

Nothing is renamed and nothing is moved: what goes is space, so an error names what the sources have.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parents[1] / "src" / "plainmind" / "guests" / "page" / "static"
_WORD = re.compile(r"[\w$#]+", re.UNICODE)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'")
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# After these a slash begins a regular expression, after all else it divides.
_BEFORE_REGEX = frozenset("(,=:[!&|?{};>+-*%~^") | {"return", "typeof", "case", "in", "of", "=>", ""}
# A line that ends so, or a next one that begins so, cannot end a statement.
_GOES_ON_AFTER = frozenset("{([,;=:?&|+.<>*")
_GOES_ON_BEFORE = frozenset("})],;:?.&|=")


# A mark before another that says the same: the end of a statement before that of a block, a comma after the last item.
_NOT_NEEDED = frozenset({";}", ",}", ",]", ",)"})


def tokens(script: str) -> Iterator[str]:
    """The tokens of a script; a run of space is one token, with a line's end if it has one. Comments are space."""
    at, last = 0, ""
    while at < len(script):
        sign = script[at]
        if sign.isspace():
            end = at
            while end < len(script) and script[end].isspace():
                end += 1
            yield "\n" if "\n" in script[at:end] else " "
            at = end
            continue
        if script.startswith(("//", "/*"), at):
            at = _matched(_COMMENT, script, at)
            yield " "
            continue
        end = _end_of_token(script, at, last)
        last = script[at:end]
        yield last
        at = end


def _end_of_token(script: str, at: int, last: str) -> int:
    sign = script[at]
    if sign in "\"'":
        return _matched(_STRING, script, at)
    if sign == "`":
        return _end_of_template(script, at)
    if sign == "/" and last in _BEFORE_REGEX:
        return _matched(_REGEX, script, at)
    word = _WORD.match(script, at)
    return word.end() if word else at + 1


def _matched(pattern: re.Pattern[str], script: str, at: int) -> int:
    found = pattern.match(script, at)
    if found is None:
        raise SystemExit(f"error: cannot read the script at `{script[at : at + 40]}`")
    return found.end()


def _end_of_template(script: str, at: int) -> int:
    end = at + 1
    while script[end] != "`":
        if script[end] == "\\":
            end += 2
        elif script.startswith("${", end):
            end = _end_of_hole(script, end + 2)
        else:
            end += 1
    return end + 1


def _end_of_hole(script: str, at: int) -> int:
    depth, last = 1, ""
    while depth:
        end = at + 1 if script[at].isspace() else _end_of_token(script, at, last)
        part = script[at:end]
        depth += {"{": 1, "}": -1}.get(part, 0)
        last = last if part.isspace() else part
        at = end
    return at


def pack_script(script: str) -> str:
    """A script with the space and the marks that it needs, and no comments."""
    packed: list[str] = []
    space = ""
    for token in tokens(script):
        if token in {" ", "\n"}:
            space = "\n" if "\n" in {space, token} else " "
            continue
        if packed and (packed[-1] + token in _NOT_NEEDED):
            packed.pop()
            space = ""
        if packed and space:
            packed.append(_space_between(packed[-1], token, space))
        packed.append(token)
        space = ""
    return "".join(packed) + "\n"


def _space_between(before: str, after: str, space: str) -> str:
    if space == "\n" and before[-1] not in _GOES_ON_AFTER and after[0] not in _GOES_ON_BEFORE:
        return "\n"
    if _WORD.match(before[-1]) and _WORD.match(after[0]):
        return " "
    return " " if before[-1] in "+-/" and after[0] in "+-/" else ""


def pack_styles(styles: str) -> str:
    """Styles without comments, on one line a rule."""
    text = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", styles, flags=re.DOTALL))
    text = re.sub(r" ?([{};,]) ?", r"\1", text).replace(": ", ":").replace(";}", "}")
    return text.strip().replace("}", "}\n").replace("\n}", "}")


def pack_texts(path: Path) -> Any:
    """The texts of a language: English with their names, the others as a list in the order of English."""
    own, english = (
        json.loads(path.read_text("utf-8")),
        json.loads((STATIC / "texts" / "en.json").read_text("utf-8")),
    )
    if own == english:
        return own
    by_name = dict(_named_texts(own))
    return [by_name[name] for name, _ in _named_texts(english)]


def _named_texts(groups: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in groups.items():
        for part, text in {"": value}.items() if isinstance(value, str) else value.items():
            yield (f"{name}.{part}" if part else name), text


def packed(path: Path) -> bytes:
    """A file of the page as the wheel has it."""
    text = path.read_text("utf-8")
    if path.suffix == ".js":
        text = pack_script(text)
    elif path.suffix == ".css":
        text = pack_styles(text)
    elif path.suffix == ".json":
        text = json.dumps(pack_texts(path), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def all_packed() -> dict[str, bytes]:
    """Every file of the page by its name below `static/`."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    return {path.relative_to(STATIC).as_posix(): packed(path) for path in files}


def write(folder: Path) -> None:
    """Write the packed page into a folder."""
    for name, content in all_packed().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
