"""Requests to one origin and to no other, each within its deadline and its size."""

from __future__ import annotations

import http.client
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from plainmind.base.errors import ConfigError, StorageFailure
from plainmind.guests.net.address import allowed_addresses, split_base_url
from plainmind.guests.net.connection import (
    Connection,
    Patience,
    open_connection,
    proxy_authorization,
    proxy_of,
)
from plainmind.guests.net.failures import (
    AddressRefused,
    Answer,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    ProviderFailure,
    RedirectRefused,
    Unreachable,
    failure_of,
    parsed,
)

if TYPE_CHECKING:
    import ssl


LARGEST_ANSWER = 64 * 1024 * 1024
_LONGEST_IDLE_S = 30.0
_MOST_IDLE = 8


_Result = TypeVar("_Result")


class _StaleConnection(ConnectionLost):
    """A connection that had been idle broke before a word of the answer: it was closed before we used it."""


class Sink(Protocol):
    """Takes the pieces of an answer: a file opened for binary writing."""

    def write(self, piece: bytes, /) -> object:
        """Take the next piece."""


def _never() -> bool:
    return False


class Transport:
    """Sends requests to the origin of `base_url`. Safe to share between threads; keeps connections alive.

    `headers` go with every request and with no redirect, because redirects are refused. `secrets` never show in
    a message. `allow_private` says that the operator typed this address, so it may be on a private network.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
        allow_private: bool = False,
        proxy: str | None = None,
    ) -> None:
        self.origin, self._base_path = split_base_url(base_url)
        self._headers = {"User-Agent": "plainmind", "Accept-Encoding": "gzip", **_sound(headers or {})}
        self._secrets = tuple(secrets)
        self._allow_private = allow_private
        self._proxy = proxy
        if proxy is not None:
            proxy_of(proxy)
            if self.origin.scheme == "http":
                self._headers |= proxy_authorization(proxy)
        self._turn = threading.Lock()
        self._idle: list[Connection] = []
        self._addresses: list[str] | None = None
        self._context: ssl.SSLContext | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"Transport({str(self.origin)!r})"

    @property
    def host(self) -> str:
        """The host that sees what is sent."""
        return self.origin.host

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Iterable[bytes] | None = None,
        length: int | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        deadline: float,
        cap: int = LARGEST_ANSWER,
        stopped: Callable[[], bool] = _never,
        repeatable: bool | None = None,
    ) -> Answer:
        """Return the answer whatever its status, except a redirect. Raises ProviderFailure.

        `path` continues the base URL; with a leading `/` it begins at the origin; a whole URL must be of this origin.
        `deadline` (of `time.monotonic`) is for the whole exchange. A body in pieces needs its `length`.
        `repeatable` requests, by themselves those with GET, are sent again at once when a connection that had been
        idle turns out to be closed.
        """
        pieces = bytearray()
        status, fields = self._exchange(
            method,
            path,
            body=body,
            headers=_body_headers(body, length, content_type) | dict(headers or {}),
            patience=self._patience(deadline, stopped),
            sink=lambda _: pieces.extend,
            cap=cap,
            repeatable=method == "GET" if repeatable is None else repeatable,
        )
        return Answer(status, fields, bytes(pieces))

    def json(
        self,
        method: str,
        path: str,
        payload: object = None,
        *,
        deadline: float,
        cap: int = LARGEST_ANSWER,
        private: Sequence[str] = (),
        stopped: Callable[[], bool] = _never,
    ) -> Any:
        """Send JSON and return the JSON of a success. Raises ProviderFailure, which repeats none of `private`."""
        body = None if payload is None else encoded(payload)
        answer = self.send(method, path, body=body, deadline=deadline, cap=cap, stopped=stopped)
        return self.success_in(answer, private=private)

    def download(
        self,
        path: str,
        to_file: Sink,
        *,
        deadline: float,
        cap: int,
        stopped: Callable[[], bool] = _never,
    ) -> int:
        """Stream a success into a file and return its size.

        Raises ProviderFailure or StorageFailure; what was written by then is to be thrown away.
        """
        error = bytearray()
        size = 0

        def into_file(piece: bytes) -> None:
            nonlocal size
            size += len(piece)
            try:
                to_file.write(piece)
            except OSError as error:
                raise StorageFailure(f"what {self.host} sent cannot be kept: {error.strerror}") from error

        status, fields = self._exchange(
            "GET",
            path,
            body=None,
            headers={},
            patience=self._patience(deadline, stopped),
            sink=lambda status: into_file if 200 <= status < 300 else error.extend,
            cap=cap,
            repeatable=True,
        )
        if not 200 <= status < 300:
            raise self.failure(Answer(status, fields, bytes(error)))
        return size

    def failure(self, answer: Answer, *, private: Sequence[str] = ()) -> ProviderFailure:
        """Name what an answer says went wrong."""
        return failure_of(answer, host=self.host, secrets=self._secrets, private=private)

    def success_in(self, answer: Answer, *, private: Sequence[str] = ()) -> Any:
        """Read the JSON of a success. Raises ProviderFailure, which repeats none of `private`."""
        if not 200 <= answer.status < 300:
            raise self.failure(answer, private=private)
        return parsed(answer, self.host)

    def close(self) -> None:
        """Close every connection; requests that are under way are given up within a moment."""
        with self._turn:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.hang_up()

    def _patience(self, deadline: float, stopped: Callable[[], bool]) -> Patience:
        return Patience(self.host, deadline, lambda: self._closed or stopped())

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        patience: Patience,
        sink: Callable[[int], Callable[[bytes], object]],
        cap: int,
        repeatable: bool,
    ) -> tuple[int, Mapping[str, str]]:
        target = self._target(path)

        def exchange(connection: Connection) -> tuple[int, Mapping[str, str]]:
            connection.request(method, target, body=body, headers={**self._headers, **headers})
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            if 300 <= response.status < 400:
                raise _redirect(response.status, self.host)
            take = sink(response.status)
            for piece in decoded(pieces_of(response, cap, self.host), fields, cap, self.host):
                take(piece)
            return response.status, fields

        try:
            return self._connected(exchange, self._reused(patience) or self._opened(patience))
        except _StaleConnection:
            if not repeatable:
                raise
            return self._connected(exchange, self._opened(patience))

    def _connected(self, exchange: Callable[[Connection], _Result], connection: Connection) -> _Result:
        """Run an exchange; the connection is kept for the next one only when this one ended well."""
        kept = False
        connection.wire.heard = False
        try:
            result = exchange(connection)
            with self._turn:
                if connection.sock is not None and not self._closed and len(self._idle) < _MOST_IDLE:
                    connection.idle_since = time.monotonic()
                    self._idle.append(connection)
                    kept = True
        except (http.client.HTTPException, OSError) as error:
            stale = connection.idle_since is not None and not connection.wire.heard
            raise (_StaleConnection if stale else ConnectionLost)(
                f"the connection to {self.host} broke ({error.__class__.__name__})",
                hint="it is asked again by itself",
            ) from None
        finally:
            if not kept:
                connection.hang_up()
        return result

    def _target(self, path: str) -> str:
        if "://" in path:
            parts = urlsplit(path)
            if split_base_url(f"{parts.scheme}://{parts.netloc}")[0] != self.origin:
                raise AddressRefused(f"{self.host} named an address of another origin; nothing is sent there")
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        target = path if path.startswith("/") else self._base_path + path
        # A proxy is told the whole address, unless it only passes encrypted bytes on.
        return f"{self.origin}{target}" if self._proxy and self.origin.scheme == "http" else target

    def _reused(self, patience: Patience) -> Connection | None:
        patience.remaining()
        while True:
            with self._turn:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            idle_s = time.monotonic() - (connection.idle_since or 0.0)
            if idle_s < _LONGEST_IDLE_S and connection.wire.is_quiet():
                connection.wire.patience = patience
                return connection
            connection.hang_up()

    def _opened(self, patience: Patience) -> Connection:
        """Dial the addresses that were judged, in turn; the one that answers is the one used from then on."""
        deadline = time.monotonic() + patience.remaining()
        if self._proxy is not None:
            return self._dialled("", patience)
        addresses = self._addresses or allowed_addresses(
            self.origin, allow_private=self._allow_private, deadline=deadline
        )
        failure: Unreachable | None = None
        for address in addresses:
            try:
                connection = self._dialled(address, patience)
            except Unreachable as error:
                failure = error
                continue
            self._addresses = [address]
            return connection
        self._addresses = None  # it may have moved: the next attempt looks it up and judges it again
        raise failure or Unreachable(f"{self.host} has no address", hint="check `remote.baseUrl`")

    def _dialled(self, address: str, patience: Patience) -> Connection:
        if self.origin.scheme == "https" and self._context is None:
            import ssl

            self._context = ssl.create_default_context()
        return open_connection(self.origin, address, patience, context=self._context, proxy=self._proxy)


def encoded(payload: object) -> bytes:
    """Write strict JSON in UTF-8; half a character that has no other half becomes a question mark."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _sound(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse what HTTP would refuse later, in an error that shows the value."""
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and (name + value).isprintable()):
            raise ConfigError(
                f"the header `{name}` cannot be sent: it has characters that HTTP does not allow",
                key="remote.headers",
                hint="check `remote.apiKey` and `remote.headers`; a key is one line of plain letters and digits",
            )
    return headers


def _body_headers(
    body: bytes | Iterable[bytes] | None, length: int | None, content_type: str
) -> dict[str, str]:
    if body is None:
        return {}
    size = len(body) if isinstance(body, bytes) else length
    return {"Content-Type": content_type} | ({} if size is None else {"Content-Length": str(size)})


def _redirect(status: int, host: str) -> RedirectRefused:
    return RedirectRefused(
        f"{host} answered with a redirect ({status}), which is never followed: the key is for this host alone",
        hint="set `remote.baseUrl` to the address that the API really has",
        status=status,
    )


_PIECE = 65_536


def pieces_of(response: http.client.HTTPResponse, cap: int, host: str) -> Iterator[bytes]:
    """Read at most `cap` bytes. Raises AnswerTooLarge or ConnectionLost."""
    if response.length is not None and response.length > cap:
        raise _too_large(cap, host)
    size = 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > cap:
            raise _too_large(cap, host)
        yield piece
    if response.length:
        raise ConnectionLost(
            f"{host} closed the connection in the middle of an answer", hint="it is asked again by itself"
        )


def decoded(pieces: Iterator[bytes], fields: Mapping[str, str], cap: int, host: str) -> Iterator[bytes]:
    """Undo gzip, the one encoding that we ask for."""
    encoding = fields.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        yield from pieces
    elif encoding in ("gzip", "x-gzip"):
        yield from _unzipped(pieces, cap, host)
    else:
        raise AnswerUnreadable(f"{host} answered in an encoding that was not asked for")


def _unzipped(pieces: Iterator[bytes], cap: int, host: str) -> Iterator[bytes]:
    """Decompress at most `cap` bytes, whatever a few bytes of zeros claim to be."""
    unzip = zlib.decompressobj(wbits=31)
    size = 0
    try:
        for piece in pieces:
            rest = piece
            while rest:
                plain = unzip.decompress(rest, _PIECE)
                size += len(plain)
                if size > cap:
                    raise _too_large(cap, host)
                yield plain
                rest = unzip.unconsumed_tail
                if unzip.eof:
                    rest = b""
    except zlib.error:
        raise AnswerUnreadable(f"{host} answered with damaged compression") from None
    if not unzip.eof:
        raise ConnectionLost(
            f"{host} closed the connection in the middle of an answer", hint="it is asked again by itself"
        )


def _too_large(cap: int, host: str) -> AnswerTooLarge:
    return AnswerTooLarge(
        f"{host} answered with more than {cap // 1024:,} KB, which no answer to this request needs",
        hint="check `remote.baseUrl`: is it the address of an embeddings API?",
    )
