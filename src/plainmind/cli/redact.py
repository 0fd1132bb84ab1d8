"""`redact`: what would be hidden of a text before it is indexed, embedded or exported."""

from __future__ import annotations

import argparse
import sys

from plainmind.base.lazy import pattern
from plainmind.cli.console import Console, plural, visible
from plainmind.cli.options import describe, open_memory, text_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from plainmind.redaction.findings import Redacted

FOUND = 4
_LINE_BREAK = pattern(r"\r\n|\r|\n")
_AROUND = 60  # characters on each side of a mark


def add_redact(parser: argparse.ArgumentParser) -> None:
    """Say what `redact` takes."""
    describe(
        parser,
        """\
Show which secrets of a text would be hidden: tokens, passwords, private keys, card numbers, the keys of your settings.

Conversations are indexed and exported without them, and stay as they are themselves.

Only reads FILE, and prints no secret. The key that makes the marks is kept in ~/.plainmind.

Exit status: 0 when there is nothing to hide, 4 when there is something; with --text always 0.""",
        examples=(
            "plainmind redact notes.txt",
            "git diff | plainmind redact -",
            "plainmind redact server.log --text > shareable.log",
        ),
        run=run_redact,
    )
    parser.add_argument("path", metavar="FILE", help="a text file; - reads stdin")
    parser.add_argument("--text", action="store_true", help="print the whole text, without its secrets")


def run_redact(arguments: argparse.Namespace, console: Console) -> int:
    """Print the places of secrets, or the text without them."""
    text = text_of_file(arguments.path)
    with open_memory(arguments) as memory:
        redacted = memory.redactor().redact(text)
    if console.json:
        copy = {"text": redacted.text} if arguments.text else {}
        console.result({"path": arguments.path, "found": list(_places(text, redacted)), **copy})
    elif arguments.text:
        sys.stdout.flush()
        sys.stdout.buffer.write(redacted.text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    else:
        _show(arguments.path, text, redacted, console)
    return FOUND if redacted.found and not arguments.text else 0


def _show(path: str, text: str, redacted: Redacted, console: Console) -> None:
    shift = 0
    lines = set()
    for found, place in zip(redacted.found, _places(text, redacted), strict=True):
        cited = console.style(f"{console.printable(path)}:{place['line']}", "path")
        console.answer(f"{cited}  {_around(redacted.text, found.start + shift, len(found.mark))}")
        hidden = text[found.start : found.end]
        shift += len(found.mark) + hidden.count("\r") + hidden.count("\n") - len(hidden)
        lines.add(place["line"])
    if redacted.found:
        count = f"{plural(len(redacted.found), 'secret')} in {plural(len(lines), 'line')}"
        console.say(console.style(count, "dim"))
    else:
        console.say("nothing to hide")


def _around(copy: str, at: int, length: int) -> str:
    """The line of a mark, or what is near to it in a long one."""
    before = _LINE_BREAK.split(copy[max(0, at - _AROUND) : at])[-1]
    after = _LINE_BREAK.split(copy[at + length : at + length + _AROUND])[0]
    start = "…" if len(before) == _AROUND < at else ""
    end = "…" if len(after) == _AROUND and at + length + _AROUND < len(copy) else ""
    return visible(f"{start}{before}{copy[at : at + length]}{after}{end}")


def _places(text: str, redacted: Redacted) -> Iterator[dict[str, Any]]:
    line, seen, line_start = 1, 0, 0
    for found in redacted.found:
        for line_break in _LINE_BREAK.finditer(text, seen, found.start):
            line += 1
            line_start = line_break.end()
        seen = found.start
        last = line + len(_LINE_BREAK.findall(text, found.start, found.end))
        yield {
            "kind": found.kind,
            "line": line,
            "endLine": last,
            "column": found.start - line_start + 1,
            "mark": found.mark,
        }
