"""Who may reach the HTTP server: the right host, no foreign page, the token, JSON, and not too much of it."""

from __future__ import annotations

import hmac
import json
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import hold_lock, lock_path_for

_FEWEST_CHARS = 32
_MOST_BYTES = 1_000


def token_path(home: str) -> str:
    """Where the token of this home is kept."""
    return os.path.join(home, "mcp-token")


def token_in(home: str) -> str:
    """Read the token of this home; the first time, make one."""
    path = token_path(home)
    with hold_lock(lock_path_for(home, path), operation="read the token"):
        try:
            return _read(path)
        except FileNotFoundError:
            write_atomically(path, secrets.token_urlsafe(32).encode() + b"\n", mode=0o600)
            return _read(path)


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(path, f"cannot be read ({os.strerror(error.errno or 0)})") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "is not a file")
        if status.st_mode & 0o077:
            raise PlainmindError(
                f"others can read {path}",
                hint=f"run `chmod 600 {path}`, or remove it: then a new token is made",
            )
        token = os.read(descriptor, _MOST_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
    if len(token) < _FEWEST_CHARS or not token.isprintable() or not token.isascii() or " " in token:
        raise _refused(path, f"holds no token of at least {_FEWEST_CHARS} characters")
    return token


def _refused(path: str, reason: str) -> PlainmindError:
    return PlainmindError(f"{path} {reason}", hint="remove it: then a new token is made")


_log = logging.getLogger(__name__)

PATH = "/mcp"
MOST_BODY_BYTES = 1_000_000
_BODY_SECONDS = 30.0
_METHODS = ("DELETE", "GET", "POST")
_JSON = "application/json"
_UTF_8 = frozenset({"utf-8", "utf8", "us-ascii"})
_HEADERS = (
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_OURS = frozenset(name for name, _ in _HEADERS)


class Refused(Exception):
    """A request that is not served. Says nothing of what it sent."""

    def __init__(self, status: int, reason: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers


@value
class Door:
    """What a request must show to be let in."""

    hosts: frozenset[str]  # as a Host header spells them, in small letters: `127.0.0.1:8737`
    origins: frozenset[str]  # of pages that may ask: `http://127.0.0.1:8737`
    token: str

    def check(self, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        """Raise Refused unless the request may go on to its body."""
        if _only(headers, b"host") not in self.hosts:
            raise Refused(403, "this is not the host that the server was started for")
        if _all(headers, b"origin") and _only(headers, b"origin") not in self.origins:
            raise Refused(403, "pages of other sites may not ask here")
        if not self.knows_token(headers):
            raise Refused(
                401,
                "the bearer token is missing or wrong; the server named its file when it started",
                (b"www-authenticate", b"Bearer"),
            )
        if path != PATH:
            raise Refused(404, f"the server is at {PATH}")
        if method not in _METHODS:
            raise Refused(405, f"{PATH} takes POST, GET and DELETE", (b"allow", ", ".join(_METHODS).encode()))
        if method == "POST":
            _check_body_headers(headers)

    def knows_token(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the token is right; without it nobody gets more than an answer that says so."""
        scheme, _, given = (_only(headers, b"authorization", lower=False) or "").partition(" ")
        # Compared in constant time, and always: how long it takes tells nothing.
        is_right = hmac.compare_digest(given.strip().encode("latin-1"), self.token.encode())
        return is_right and scheme.lower() == "bearer"


def _check_body_headers(headers: list[tuple[bytes, bytes]]) -> None:
    if not _is_json(_only(headers, b"content-type") or ""):
        raise Refused(415, "the body must be application/json, in UTF-8")
    if _all(headers, b"content-encoding"):
        raise Refused(415, "the body must not be compressed")
    length = _only(headers, b"content-length") or "0"
    if not length.isdecimal() or len(length) > 18 or int(length) > MOST_BODY_BYTES:
        raise _too_large()


def _is_json(media_type: str) -> bool:
    """Whether a media type in small letters is that of JSON, whatever parameters it has but another encoding."""
    kind, *parameters = (part.strip() for part in media_type.split(";"))
    given = (parameter.partition("=")[::2] for parameter in parameters)
    return kind == _JSON and all(
        name.strip() != "charset" or value.strip(' "') in _UTF_8 for name, value in given
    )


def _with_plain_media_type(scope: Scope) -> Scope:
    """The request for the SDK, which knows only one spelling of the media type that was found to be right."""
    headers = [one for one in scope["headers"] if one[0].lower() != b"content-type"]
    return {**scope, "headers": [*headers, (b"content-type", _JSON.encode())]}


class Slots:
    """How many requests may be under way. Only those with the token get one."""

    def __init__(self, most: int) -> None:
        self._left = most

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold one. Raises Refused when all are taken."""
        if self._left < 1:
            raise Refused(503, "too many requests are under way", (b"retry-after", b"1"))
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


class Bucket:
    """How many requests there may be: a burst, then so many a second."""

    def __init__(self, *, burst: int, each_second: float, clock: Callable[[], float]) -> None:
        self._burst, self._each_second, self._clock = burst, each_second, clock
        self._left, self._at = float(burst), clock()

    def take(self) -> None:
        """Take one. Raises Refused when there is none left."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._each_second)
        self._at = now
        if self._left < 1:
            raise Refused(429, "too many requests", (b"retry-after", b"1"))
        self._left -= 1


class Guard:
    """An ASGI application that lets through to another one only what may pass."""

    def __init__(self, app: ASGIApp, door: Door, bucket: Bucket, slots: Slots) -> None:
        self._app, self._door, self._bucket, self._slots = app, door, bucket, slots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            # Who has not shown the token takes nothing from those who have: no request, and no place.
            self._door.check(scope["method"], scope["path"], scope["headers"])
            self._bucket.take()
            with self._slots.one():
                await self._serve(scope, receive, _with_headers(send))
        except Refused as refused:
            _log.info("refused a request: %s", refused)
            await refuse(refused, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            receive = _replaying(await _whole_body(receive), receive)
            scope = _with_plain_media_type(scope)
        await self._app(scope, receive, send)


async def _whole_body(receive: Receive) -> bytes:
    body = bytearray()
    with anyio.move_on_after(_BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Refused(400, "the body ended early")
            body += message.get("body", b"")
            if len(body) > MOST_BODY_BYTES:
                raise _too_large()
            if not message.get("more_body", False):
                return bytes(body)
    raise Refused(408, "the body took too long")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read once more, and after it whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in _OURS]
            message = {**message, "headers": [*kept, *_HEADERS]}
        await send(message)

    return sending


async def refuse(refused: Refused, send: Send) -> None:
    """Say why a request is not served."""
    body = json.dumps({"error": str(refused)}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # who was refused does not get to hold a connection
        *refused.headers,
        *_HEADERS,
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _too_large() -> Refused:
    return Refused(413, f"the body may have {MOST_BODY_BYTES:,} bytes at most")


def _all(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [given for one, given in headers if one.lower() == name]


def _only(headers: list[tuple[bytes, bytes]], name: bytes, *, lower: bool = True) -> str | None:
    """The one header of that name; None when there is none, or several of which nobody knows which one is meant."""
    found = _all(headers, name)
    if len(found) != 1:
        return None
    text = found[0].decode("latin-1")
    return text.lower() if lower else text
