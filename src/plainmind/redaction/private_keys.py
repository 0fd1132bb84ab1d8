"""Private keys as they stand in files: PEM and PGP blocks, whole or cut off at either end, and bare base64."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plainmind.base.pattern import pattern
from plainmind.redaction.findings import Found, Page

KIND = "private-key"
_MOST = 32_768  # characters between two borders
_LEAST = 32
# Of the last dashes some may be missing.
_BORDER = pattern(
    r"----(?:- ?| )?(BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?(?: ?-{1,5})?",
)
_BASE64 = pattern(rf"[A-Za-z0-9+/=]{{{_LEAST}}}")
# Lines of base64, and between them whatever a quotation, a diff, a list of strings or an escape puts there. A last
# line that is short counts when it ends as base64 does, or when the text is over.
_BETWEEN = r"(?:[ \t\r\n>|+#*\"',-]|\\[nrt])*+"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\r\n\\]{0,200}+"
_LINES_SOURCE = (
    rf"(?:{_BETWEEN}(?:[A-Za-z0-9+/]{{16,}}+={{0,2}}|{_HEADER}))*+"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/]{{1,15}}(?:={{1,2}}|(?=\s*+\Z)))?+"
)
_LINES = pattern(_LINES_SOURCE)
# The same, read from the end of the text to its beginning.
_BETWEEN_BACKWARDS = r"[ \t\r\n>|+#*\"',\\-]*+"  # the letter of an escape passes for base64
_LINES_BACKWARDS = pattern(
    rf"{_BETWEEN_BACKWARDS}={{0,2}}[A-Za-z0-9+/]{{1,76}}+(?:{_BETWEEN_BACKWARDS}[A-Za-z0-9+/]{{16,}}+)*+"
)
# Keys in DER begin alike: RSA and PKCS#8, elliptic curves, Ed25519, OpenSSH.
_HEADS = ("IBAAK", "IBADANB", "MHcCAQEE", "MIGHAgEAM", "MC4CAQAwBQYDK2V", "b3BlbnNzaC1rZXkt")
_BARE = pattern(
    r"(?:MI[A-Za-z0-9+/]{4}IBA(?:AK[BC]|DANB)|MHcCAQEE|MIGHAgEAM|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXkt)"
    rf"[A-Za-z0-9+/]*+={{0,2}}{_LINES_SOURCE}"
)
_PUTTY = pattern(r"Private-Lines: [0-9]{1,3}\r?\n((?:[A-Za-z0-9+/=]{1,76}\r?\n?){1,400}+)")


def private_keys_in(page: Page) -> Iterator[Found]:
    """Report every private key, with the borders that are there."""
    text = page.text
    if "PRIVATE KEY" in text:
        yield from _between_borders(text)
    if page.stretches and any(head in text for head in _HEADS):
        for found in _BARE.finditer(text):
            yield found.start(), found.end(), KIND
    if "Private-Lines: " in text:
        for found in _PUTTY.finditer(text):
            if len(found[1]) >= _LEAST:
                yield found.start(1), found.end(1), KIND


def _between_borders(text: str) -> Iterator[Found]:
    opened: re.Match[str] | None = None
    passed = 0
    for border in _BORDER.finditer(text):
        is_end = border[1] == "END"
        if opened is not None and is_end and border.start() - opened.end() <= _MOST:
            if _BASE64.search(text, opened.end(), border.start()):
                yield opened.start(), border.end(), KIND
        else:
            if opened is not None:
                yield from _without_end(text, opened, border.start())
            if is_end:
                yield from _without_beginning(text, border, passed)
        opened = None if is_end else border
        passed = border.end()
    if opened is not None:
        yield from _without_end(text, opened, len(text))


def _without_end(text: str, opened: re.Match[str], limit: int) -> Iterator[Found]:
    if limit - opened.end() < _LEAST:
        return
    lines = _LINES.match(text, opened.end(), limit)
    if lines and len(lines[0]) >= _LEAST:
        yield opened.start(), lines.end(), KIND


def _without_beginning(text: str, border: re.Match[str], passed: int) -> Iterator[Found]:
    if border.start() - passed < _LEAST:
        return
    before = text[max(passed, border.start() - _MOST) : border.start()]
    lines = _LINES_BACKWARDS.match(before[::-1])
    if lines and len(lines[0]) >= _LEAST:
        yield border.start() - lines.end(), border.end(), KIND
