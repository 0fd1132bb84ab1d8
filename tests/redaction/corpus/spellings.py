"""How a secret is spelled where it stands: escaped, encoded, split or wrapped, character by character."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from urllib.parse import quote

from tests.redaction.corpus.values import Value

from plainmind.base.value import value

USER = "deploy:"  # before the password in a basic header


@value
class Spelled:
    """The text that is written, and the pieces that spell the secret part, one for each of its characters."""

    text: str
    pieces: tuple[str, ...]


def spell(given: Value, spelling: str) -> Spelled:
    """Write the value in this spelling; the empty name is the value as it is."""
    return SPELLINGS[spelling](given)


def _by_character(change: Callable[[int, str], str]) -> Callable[[Value], Spelled]:
    """Spell each character on its own; `change` gets its place, counted from the beginning of the value."""

    def spelled(given: Value) -> Spelled:
        pieces = [change(at, character) for at, character in enumerate(given.text)]
        return Spelled(text="".join(pieces), pieces=tuple(pieces[given.start : given.end]))

    return spelled


def _each(width: int, between: str) -> Callable[[int, str], str]:
    return lambda at, character: character + between if at % width == width - 1 else character


def _for_line_ends(replacement: str) -> Callable[[int, str], str]:
    return lambda _at, character: replacement if character == "\n" else character


def _beginning(text: str, inner: Callable[[Value], Spelled]) -> Callable[[Value], Spelled]:
    def spelled(given: Value) -> Spelled:
        plain = inner(given)
        return Spelled(text=text + plain.text, pieces=plain.pieces)

    return spelled


def _as_base64(given: Value, before: str = "") -> Spelled:
    text = base64.b64encode((before + given.text).encode()).decode()
    public = len((before + given.text[: given.start]).encode()) // 3 * 4  # what the secret has no part in
    last = -(-len((before + given.text[: given.end]).encode()) // 3) * 4
    return Spelled(text=text, pieces=tuple(text[public + 1 : last].rstrip("=")))


def _in_two_strings(given: Value) -> Spelled:
    middle = len(given.text) // 2
    return _by_character(lambda at, character: '" + "' + character if at == middle else character)(given)


def _without_end(given: Value) -> Spelled:
    lines = given.text[: given.end].split("\n")
    text = "\n".join(lines[:-1])
    return Spelled(text=text, pieces=tuple(text[given.start :]))


SPELLINGS: Mapping[str, Callable[[Value], Spelled]] = {
    "": _by_character(lambda _at, character: character),
    "zero-width": _by_character(_each(5, "\u200b")),
    "joiners": _by_character(_each(7, "\u2060")),
    "soft-hyphen": _by_character(_each(9, "\u00ad")),
    "backslash": _by_character(
        lambda _at, character: "\\" + character if character in "_*-.~" else character
    ),
    "url": _by_character(lambda _at, character: quote(character, safe="")),
    "html": _by_character(
        lambda _at, character: character if character.isalnum() else f"&#{ord(character)};",
    ),
    "base64": _as_base64,
    "basic": lambda given: _as_base64(given, USER),
    "wrapped": _by_character(_each(56, "\n")),
    "quoted-printable": _by_character(_each(48, "=\n")),
    "concatenated": _in_two_strings,
    "newlines": _by_character(_for_line_ends("\\n")),
    "one-line": _by_character(_for_line_ends(" ")),
    "indented": _beginning("    ", _by_character(_for_line_ends("\n    "))),
    "quoted": _beginning("> ", _by_character(_for_line_ends("\n> "))),
    "log-prefixed": _beginning(
        "Mar 04 10:21:09 web1 app[812]: ",
        _by_character(_for_line_ends("\nMar 04 10:21:09 web1 app[812]: ")),
    ),
    "no-end": _without_end,
}
