"""Credentials that a request carries: `Authorization`, `Bearer`, `Basic`, cookies."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterator

from plainmind.base.pattern import pattern
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.plausible import is_random
from plainmind.redaction.stand_ins import is_stand_in

_AUTHORIZATION = pattern(
    r"""auth(?:orization)?["'\\\])]{0,3}[ \t]{0,3}[:=,][ \t]{0,3}["'\\]{0,3}(?:[a-z0-9-]{2,20}[ \t]{1,2})?+"""
    r"""([^\s"'<>\\,;:]{8,8192})"""
)
_BEARER = pattern(r"bearer[ \t]{1,3}([a-z0-9._~+/=%-]{16,8192})")
_BASIC = pattern(r"basic[ \t]{1,2}([a-z0-9+/_-]{8,1024}={0,2})")
_PAIR = r"""[a-z0-9_.!#$%&*+^|~-]{1,128}+=[^\s;,"'\\]{0,4096}+"""
_COOKIE = pattern(
    rf"""cookie["'\\\]]{{0,3}}(?:[ \t]{{0,2}}[:=]|[ \t](?=["']))[ \t]{{0,3}}["']?({_PAIR}(?:;[ ]?{_PAIR}){{0,100}}+)"""
)
_DIGIT = pattern("[0-9]")
_LEAST_COOKIE = 12


def credentials_in_headers(page: Page) -> Iterator[Found]:
    """Report the credentials of requests, written as headers."""
    for kind, keyword, expression, is_one in _SCHEMES:
        if keyword in page.low:
            for found in expression.finditer(page.low):
                start, end = found.span(1)
                if is_one(page.text[start:end]):
                    yield start, end, kind
    if "cookie" in page.low:
        yield from _cookies(page)


def _cookies(page: Page) -> Iterator[Found]:
    low = page.low
    for found in _COOKIE.finditer(low):
        start, end = found.span(1)
        if end - start < _LEAST_COOKIE:
            continue
        if low.startswith("set-", max(0, found.start() - 4)):
            # What follows the first pair says for whom and how long.
            start = low.index("=", start) + 1
            end = min(end, low.find(";", start, end) % (len(low) + 1))
        if end - start >= _LEAST_COOKIE and _DIGIT.search(low, start, end):
            yield start, end, "cookie"


def _is_credential(text: str) -> bool:
    if "(" in text or (text.isalpha() and (text.islower() or text.istitle())):
        return False
    return (is_random(text) and not is_stand_in(text)) or _is_pair_in_base64(text)


def _is_pair_in_base64(text: str) -> bool:
    """Whether it is `user:password`, as basic authentication writes it."""
    try:
        pair = a2b_base64(text + "=" * (-len(text) % 4)).decode()
    except ValueError:  # neither base64 nor text
        return False
    user, colon, password = pair.partition(":")
    return bool(user and colon and password) and pair.isprintable() and not is_stand_in(password)


_SCHEMES = (
    ("authorization", "auth", _AUTHORIZATION, _is_credential),
    ("bearer", "bearer", _BEARER, _is_credential),
    ("basic-auth", "basic ", _BASIC, _is_pair_in_base64),
)
