"""Who may reach the page and `/v1`: the right host, no foreign page, a token that has the right, a body that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.guests.page.problems import Problem
from plainmind.guests.page.tokens import Caller, Callers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.guests.page.table import Operation

    RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]

MOST_BODY_BYTES = 2_000_000
_UTF_8 = frozenset({"utf-8", "utf8"})
# Nothing is loaded from elsewhere, nothing runs that is not ours, and no other page can show this one.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


def header_map(raw: RawHeaders) -> dict[str, str]:
    """Headers by name in small letters. Raises Problem for one of ours that stands there twice."""
    found: dict[str, str] = {}
    for name, text in raw:
        known = name.decode("latin-1").lower()
        if known in found and known in {
            "host",
            "origin",
            "authorization",
            "content-length",
            "content-type",
            "if-match",
        }:
            raise Problem("bad-request", f"the header `{known}` stands there twice", "send it once")
        found[known] = text.decode("latin-1")
    return found


def token_in(headers: Mapping[str, str]) -> str:
    """The token of a request: a bearer's, or as clients of other vendors send their keys; "" when there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() in {"bearer", "token"}:
        return token.strip()
    return headers.get("x-api-key", "").strip()


@value
class Gate:
    """What a request must show."""

    hosts: frozenset[str]  # as a Host header spells them, in small letters
    origins: frozenset[str]  # of the page itself
    callers: Callers
    read_only: bool

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Raise Problem for another host than ours, or for a page of another origin."""
        if headers.get("host", "").lower() not in self.hosts:
            raise Problem("host", "this is not the host that the server was started for")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            raise Problem("origin", "pages of other sites may not ask here")

    def check_page(self, headers: Mapping[str, str]) -> None:
        """Raise Problem when another page asks for a file of ours; a person who types the address does not."""
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and (
            headers.get("sec-fetch-mode") != "navigate"
        ):
            raise Problem("origin", "pages of other sites may not load this")

    def check_site(self, headers: Mapping[str, str]) -> None:
        """Raise Problem when a browser says that another page is asking."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise Problem("origin", "pages of other sites may not ask here")

    def knows_token(self, raw: RawHeaders) -> bool:
        """Whether a request shows a token that is good for something."""
        try:
            return self.callers.find(token_in(header_map(raw))) is not None
        except (Problem, PlainmindError):
            return False  # the request itself is told what is wrong

    def caller_of(self, headers: Mapping[str, str], operation: Operation) -> Caller:
        """Who asks. Raises Problem when nobody does who may."""
        token = token_in(headers)
        caller = self.callers.find(token)
        if caller is None:
            over = self.callers.sessions.is_over(token)
            raise Problem(
                "session-over" if over else "unauthorized",
                "the session is over, or is one of an earlier server" if over else "a bearer token is needed",
                "run `plainmind page` again" if over else "`plainmind tokens add NAME` makes one",
                headers=(("www-authenticate", "Bearer"),),
            )
        right = operation.right
        if right not in {"any", *caller.rights}:
            raise self._refusal(caller, right)
        return caller

    def _refusal(self, caller: Caller, right: str) -> Problem:
        if self.read_only and right in {"write", "forget", "review"}:
            return Problem(
                "forbidden",
                "the server was started with --read-only",
                "start it without, to change anything",
                more={"right": right},
            )
        return Problem(
            "forbidden",
            f"the token `{caller.name}` has no right to {right}",
            "`plainmind tokens add NAME --rights …` makes one that has",
            more={"right": right},
        )


def check_body(headers: Mapping[str, str]) -> None:
    """Raise Problem for a body that is not read: no JSON, packed, or too large."""
    kind, *parameters = (part.strip().lower() for part in headers.get("content-type", "").split(";"))
    given = [parameter.partition("=")[::2] for parameter in parameters]
    is_utf_8 = all(name.strip() != "charset" or text.strip(' "') in _UTF_8 for name, text in given)
    if kind != "application/json" or not is_utf_8:
        raise Problem("media-type", "the body must be application/json, in UTF-8")
    if "content-encoding" in headers:
        raise Problem("media-type", "the body must not be compressed")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or len(length) > 18:
        raise Problem("bad-request", "the header `content-length` is no number")
    if int(length) > MOST_BODY_BYTES:
        raise too_large()


def too_large() -> Problem:
    """Say how much a body may have."""
    return Problem("too-large", f"the body may have {MOST_BODY_BYTES:,} bytes at most", "send less at once")
