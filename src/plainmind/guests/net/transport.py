"""Requests to one origin and to no other, each within its deadline and its size.

On its connections nothing takes longer than the deadline: not TLS, not headers sent byte by byte.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

from plainmind.base.errors import ConfigError, StorageFailure
from plainmind.guests.net.address import Origin, allowed_addresses, split_base_url
from plainmind.guests.net.failures import (
    Abandoned,
    AddressRefused,
    Answer,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    NetFailure,
    RedirectRefused,
    TimedOut,
    Unreachable,
    Untrusted,
    failure_of,
    json_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from _typeshed import ReadableBuffer, WriteableBuffer


# --- connections ---


_LONGEST_WAIT_S = 0.25  # between two looks at whether we are to stop
_CONNECT_S = 10.0
_LONGEST_PROXY_ANSWER = 16_384
_SENT_AT_ONCE = 262_144


class Patience:
    """How long the present exchange may still take, and whether anything still waits for it.

    It runs out at the deadline and, where `silence_s` is given, after so long without a word.
    """

    def __init__(
        self, host: str, deadline: float, stopped: Callable[[], bool], *, silence_s: float | None = None
    ) -> None:
        self._host = host
        self._stopped = stopped
        self._silence_s = silence_s
        self._last = self._deadline = deadline
        self.renew()

    def renew(self) -> None:
        """Something was heard: wait as long again for more."""
        if self._silence_s is not None:
            self._deadline = min(self._last, time.monotonic() + self._silence_s)

    def end_within(self, seconds: float) -> None:
        """Wait no longer than this for the rest."""
        self._last = self._deadline = min(self._last, time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds until the deadline. Raises TimedOut or Abandoned."""
        if self._stopped():
            raise Abandoned(f"the request to {self._host} was given up")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimedOut(f"{self._host} did not answer completely in time")
        return left

    def moment(self) -> float:
        """A piece of the remaining time that is short enough to notice a stop."""
        return min(self.remaining(), _LONGEST_WAIT_S)


class _Incoming(io.RawIOBase):
    """What arrives on a socket."""

    def __init__(self, wire: PatientSocket) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._wire.receive_into(buffer)


class PatientSocket:
    """As much of a socket as `http.client` uses, with the patience of the present exchange."""

    def __init__(self, connected: socket.socket, patience: Patience) -> None:
        self._socket = connected
        self.patience = patience
        self.heard = False  # anything, since the present request began

    def sendall(self, data: ReadableBuffer) -> None:
        """Send everything before the deadline."""
        rest = memoryview(data).cast("B")
        while rest:
            self._socket.settimeout(self.patience.moment())
            try:
                sent = self._socket.send(rest[:_SENT_AT_ONCE])
            except TimeoutError:
                continue
            rest = rest[sent:]

    def receive_into(self, buffer: WriteableBuffer) -> int:
        """Wait for the next bytes; 0 at the end."""
        while True:
            self._socket.settimeout(self.patience.moment())
            try:
                count = self._socket.recv_into(buffer)
            except TimeoutError:
                continue
            if count:
                self.heard = True
                self.patience.renew()
            return count

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - http.client says "rb"
        """A reader of one answer; closing it leaves the socket open."""
        return io.BufferedReader(_Incoming(self), 65_536)

    def is_quiet(self) -> bool:
        """Whether nothing arrived: on a connection without a request that would be its end."""
        import select

        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Nothing yet: `http.client` calls this before it has read an answer that ends with the connection."""

    def hang_up(self) -> None:
        """Close the socket."""
        self._socket.close()


class Connection(http.client.HTTPConnection):
    """Opened by `open_connection`; used for one request after the other."""

    def __init__(self, origin: Origin, wire: PatientSocket) -> None:
        super().__init__(origin.host, origin.port)
        self.auto_open = 0
        self.default_port = {"http": 80, "https": 443}[origin.scheme]
        self.wire = wire
        self.sock = wire
        self.idle_since: float | None = None  # None: it has not been used before

    def hang_up(self) -> None:
        """End the connection."""
        self.close()
        self.wire.hang_up()


def open_connection(
    origin: Origin,
    address: str,
    patience: Patience,
    *,
    context: ssl.SSLContext | None,
    proxy: str | None = None,
) -> Connection:
    """Connect to `address`, which was judged before, and prove that it is `origin`. Raises NetFailure."""
    plain = _dial(origin, address, patience, proxy)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proxy is not None and context is not None:
            _ask_for_tunnel(PatientSocket(plain, patience), origin, proxy)
        if context is None:
            return Connection(origin, PatientSocket(plain, patience))
        return Connection(origin, PatientSocket(_encrypt(plain, origin, context, patience), patience))
    except BaseException:
        plain.close()
        raise


def _dial(origin: Origin, address: str, patience: Patience, proxy: str | None) -> socket.socket:
    host, port = (address, origin.port) if proxy is None else _host_and_port(proxy)
    try:
        return socket.create_connection((host, port), timeout=min(_CONNECT_S, patience.remaining()))
    except OSError as error:
        patience.remaining()  # a deadline that has passed is the better explanation
        through = "" if proxy is None else " through the proxy"
        raise Unreachable(f"{origin} cannot be reached{through}: {error.strerror or 'no answer'}") from error


def _encrypt(
    plain: socket.socket, origin: Origin, context: ssl.SSLContext, patience: Patience
) -> socket.socket:
    import ssl

    plain.settimeout(min(_CONNECT_S, patience.remaining()))
    try:
        return context.wrap_socket(plain, server_hostname=origin.host)
    except ssl.SSLCertVerificationError as error:
        raise Untrusted(
            f"{origin} has no certificate that proves who it is: {error.verify_message}"
        ) from error
    except OSError as error:
        patience.remaining()
        raise Unreachable(
            f"no encrypted connection to {origin}: {error.strerror or error.__class__.__name__}"
        ) from error


def check_proxy(url: str, *, settings: str) -> None:
    """Raise ConfigError when this is no proxy that we can use; `settings` names the group that it stands in."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        key = f"{settings}.proxy"
        raise ConfigError(
            f"`{key}` cannot be used: only http:// proxies are known",
            key=key,
            hint="write it like http://proxy.example.com:3128",
        )


def _host_and_port(proxy: str) -> tuple[str, int]:
    parts = urlsplit(proxy)
    return parts.hostname or "", parts.port or 80


def proxy_authorization(url: str) -> dict[str, str]:
    """The header for a proxy with a user name in its URL."""
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


def _ask_for_tunnel(wire: PatientSocket, origin: Origin, proxy: str) -> None:
    target = f"{origin.host}:{origin.port}"
    headers = {"Host": target, **proxy_authorization(proxy)}
    lines = [f"CONNECT {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    wire.sendall("\r\n".join(lines).encode("latin-1"))
    answer, one = bytearray(), bytearray(1)
    # Byte by byte: what follows the empty line already belongs to TLS.
    while not answer.endswith(b"\r\n\r\n") and len(answer) < _LONGEST_PROXY_ANSWER:
        if not wire.receive_into(one):
            break
        answer += one
    status = bytes(answer).split(b" ", 2)[1:2]
    if status != [b"200"]:
        said = status[0][:3].decode("ascii", "replace") if status else "nothing"
        raise Unreachable(f"the proxy does not connect to {origin}: it answered {said}")


# --- requests ---


LARGEST_ANSWER = 64 * 1024 * 1024
LARGEST_STREAM = 64 * 1024 * 1024
_LARGEST_ERROR = 1024 * 1024
_LONGEST_IDLE_S = 30.0
_LONGEST_FAREWELL_S = 1.0
_MOST_IDLE = 8
_PIECE = 65_536
_SAFE_TO_REPEAT = frozenset({"GET", "HEAD"})

# Takes the next piece of an answer, and says whether it needs more of them.
Take: TypeAlias = Callable[[bytes], bool]


class _StaleConnection(ConnectionLost):
    """A connection that had been idle broke before a word of the answer: it was closed before we used it."""


class Sink(Protocol):
    """Takes the pieces of an answer: a file opened for binary writing."""

    def write(self, piece: bytes, /) -> object:
        """Take the next piece."""


def never() -> bool:
    """Nothing stops the request."""
    return False


class Transport:
    """Sends requests to the origin of `base_url`. Safe to share between threads; keeps connections alive.

    `headers` go with every request and with no redirect, because redirects are not followed. `secrets` never show in
    a message. `allow_private` says that the operator typed this address, so it may be on a private network.
    `settings` names the group of settings that all this comes from, for errors about it: `remote`, `chat`.
    No proxy is taken from the environment; OpenSSL takes SSL_CERT_FILE and SSL_CERT_DIR from there.
    """

    def __init__(
        self,
        base_url: str,
        *,
        settings: str,
        headers: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
        allow_private: bool = False,
        proxy: str | None = None,
    ) -> None:
        self.origin, self._base_path = split_base_url(base_url, settings=settings)
        _check_headers(headers or {}, settings)
        self._headers = {"User-Agent": "plainmind", "Accept-Encoding": "gzip", **(headers or {})}
        self._secrets = tuple(secrets)
        self._allow_private = allow_private
        self._proxy = proxy
        if proxy is not None:
            check_proxy(proxy, settings=settings)
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
        stopped: Callable[[], bool] = never,
        repeatable: bool | None = None,
        may_redirect: bool = False,
    ) -> Answer:
        """Return the answer whatever its status, except a redirect. Raises NetFailure.

        `path` continues the base URL; with a leading `/` it begins at the origin; a whole URL must be of this origin.
        `deadline` (of `time.monotonic`) is for the whole exchange. A body in pieces needs its `length`.
        `repeatable` requests, by themselves those with GET, are sent again at once when a connection that had been
        idle turns out to be closed. With `may_redirect` a redirect is an answer too; to follow it is not our business.
        """

        def read(_: Connection, response: http.client.HTTPResponse, head: Answer) -> Answer:
            if method == "HEAD":
                return head
            return _with_body(response, head, cap, self.host)

        return self._exchange(
            method,
            path,
            body=body,
            headers=_body_headers(body, length, content_type) | dict(headers or {}),
            patience=self._patience(deadline, stopped),
            read=read,
            repeatable=method in _SAFE_TO_REPEAT if repeatable is None else repeatable,
            may_redirect=may_redirect,
        )

    def json(
        self,
        method: str,
        path: str,
        payload: object = None,
        *,
        deadline: float,
        cap: int = LARGEST_ANSWER,
    ) -> Any:
        """Send JSON and return the JSON of a success. Raises NetFailure."""
        body = None if payload is None else as_json(payload)
        return self.success_in(self.send(method, path, body=body, deadline=deadline, cap=cap))

    def stream(
        self,
        method: str,
        path: str,
        *,
        receive: Callable[[Answer], Take],
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float,
        deadline: float,
        cap: int | None = None,
        stopped: Callable[[], bool] = never,
        may_redirect: bool = False,
    ) -> Answer:
        """Hand on a success while it comes in; waits no longer than `silence_s` for its next piece.

        `receive` is told status and headers, and gives what takes the pieces. Of a success only status and headers
        are returned, any other answer whole; see `send` for the rest. Raises NetFailure.
        """
        most = LARGEST_STREAM if cap is None else cap
        patience = self._patience(deadline, stopped, silence_s=silence_s)

        def read(connection: Connection, response: http.client.HTTPResponse, head: Answer) -> Answer:
            if not head.is_success:
                return _with_body(response, head, _LARGEST_ERROR, self.host)
            take = receive(head)
            for piece in _stream_of(response, most, self.host):
                if not take(piece):
                    _read_to_the_end(connection, response, patience)
                    break
            return head

        # Compressed, an answer would come in lumps.
        identity = {"Accept-Encoding": "identity"}
        return self._exchange(
            method,
            path,
            body=body,
            headers=_body_headers(body, None, "application/json") | identity | dict(headers or {}),
            patience=patience,
            read=read,
            repeatable=method in _SAFE_TO_REPEAT,
            may_redirect=may_redirect,
        )

    def download(self, path: str, to_file: Sink, *, deadline: float, cap: int) -> int:
        """Write a success into a file and return its size.

        Raises NetFailure or StorageFailure; what was written by then is to be thrown away.
        """
        size = 0

        def read(_: Connection, response: http.client.HTTPResponse, head: Answer) -> Answer:
            nonlocal size
            if not head.is_success:
                return _with_body(response, head, _LARGEST_ERROR, self.host)
            for piece in _body_of(response, head, cap, self.host):
                try:
                    to_file.write(piece)
                except OSError as error:
                    raise StorageFailure(f"what {self.host} sent cannot be kept: {error.strerror}") from error
                size += len(piece)
            return head

        answer = self._exchange(
            "GET",
            path,
            body=None,
            headers={},
            patience=self._patience(deadline, never),
            read=read,
            repeatable=True,
            may_redirect=False,
        )
        if not answer.is_success:
            raise self.failure(answer)
        return size

    def failure(self, answer: Answer, *, private: Sequence[str] = ()) -> NetFailure:
        """Name what an answer says went wrong."""
        return failure_of(answer, host=self.host, secrets=self._secrets, private=private)

    def success_in(self, answer: Answer, *, private: Sequence[str] = ()) -> Any:
        """Read the JSON of a success. Raises NetFailure, which repeats none of `private`."""
        if not answer.is_success:
            raise self.failure(answer, private=private)
        return json_of(answer, self.host)

    def close(self) -> None:
        """Close every connection; requests that are under way are given up within a moment."""
        with self._turn:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.hang_up()

    def _patience(
        self, deadline: float, stopped: Callable[[], bool], *, silence_s: float | None = None
    ) -> Patience:
        return Patience(self.host, deadline, lambda: self._closed or stopped(), silence_s=silence_s)

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        patience: Patience,
        read: Callable[[Connection, http.client.HTTPResponse, Answer], Answer],
        repeatable: bool,
        may_redirect: bool,
    ) -> Answer:
        target = self._target(path)

        def exchange(connection: Connection) -> Answer:
            connection.request(method, target, body=body, headers={**self._headers, **headers})
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            if 300 <= response.status < 400 and not may_redirect:
                raise RedirectRefused(
                    f"{self.host} answered with a redirect ({response.status}), which is never followed:"
                    " the key is for this host alone",
                    status=response.status,
                )
            return read(connection, response, Answer(response.status, fields))

        try:
            return self._run(exchange, self._idle_connection(patience) or self._new_connection(patience))
        except _StaleConnection:
            if not repeatable:
                raise
            return self._run(exchange, self._new_connection(patience))

    def _run(self, exchange: Callable[[Connection], Answer], connection: Connection) -> Answer:
        """Run an exchange; the connection is kept for the next one only when this one ended well."""
        is_kept = False
        connection.wire.heard = False
        try:
            answer = exchange(connection)
            with self._turn:
                if connection.sock is not None and not self._closed and len(self._idle) < _MOST_IDLE:
                    connection.idle_since = time.monotonic()
                    self._idle.append(connection)
                    is_kept = True
        except (http.client.HTTPException, OSError) as error:
            is_stale = connection.idle_since is not None and not connection.wire.heard
            kind = _StaleConnection if is_stale else ConnectionLost
            raise kind(f"the connection to {self.host} broke ({error.__class__.__name__})") from None
        finally:
            if not is_kept:
                connection.hang_up()
        return answer

    def _target(self, path: str) -> str:
        if "://" in path:
            parts = urlsplit(path)
            if split_base_url(f"{parts.scheme}://{parts.netloc}", settings="")[0] != self.origin:
                raise AddressRefused(f"{self.host} named an address of another origin; nothing is sent there")
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        target = path if path.startswith("/") else self._base_path + path
        # A proxy is told the whole address, unless it only passes encrypted bytes on.
        return f"{self.origin}{target}" if self._proxy and self.origin.scheme == "http" else target

    def _idle_connection(self, patience: Patience) -> Connection | None:
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

    def _new_connection(self, patience: Patience) -> Connection:
        """Dial the addresses that were judged, in turn; the one that answers is the one used from then on."""
        deadline = time.monotonic() + patience.remaining()
        if self._proxy is not None:
            return self._dial("", patience)
        addresses = self._addresses or allowed_addresses(
            self.origin, allow_private=self._allow_private, deadline=deadline
        )
        failure: Unreachable | None = None
        for address in addresses:
            try:
                connection = self._dial(address, patience)
            except Unreachable as error:
                failure = error
                continue
            self._addresses = [address]
            return connection
        self._addresses = None  # it may have moved: the next attempt looks it up and judges it again
        raise failure or Unreachable(f"{self.host} has no address")

    def _dial(self, address: str, patience: Patience) -> Connection:
        if self.origin.scheme == "https" and self._context is None:
            import ssl

            self._context = ssl.create_default_context()
        return open_connection(self.origin, address, patience, context=self._context, proxy=self._proxy)


def as_json(payload: object) -> bytes:
    """Write strict JSON in UTF-8; half a character that has no other half becomes a question mark."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _check_headers(headers: Mapping[str, str], settings: str) -> None:
    """Refuse what HTTP would refuse later, in an error that shows the value."""
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and (name + value).isprintable()):
            raise ConfigError(
                f"the header `{name}` cannot be sent: it has characters that HTTP does not allow",
                key=f"{settings}.headers",
                hint=f"check `{settings}.apiKey` and `{settings}.headers`; a key is one line of plain letters"
                " and digits",
            )


def _body_headers(
    body: bytes | Iterable[bytes] | None, length: int | None, content_type: str
) -> dict[str, str]:
    if body is None:
        return {}
    size = len(body) if isinstance(body, bytes) else length
    return {"Content-Type": content_type} | ({} if size is None else {"Content-Length": str(size)})


def _with_body(response: http.client.HTTPResponse, head: Answer, cap: int, host: str) -> Answer:
    return Answer(head.status, head.headers, b"".join(_body_of(response, head, cap, host)))


def _body_of(response: http.client.HTTPResponse, head: Answer, cap: int, host: str) -> Iterator[bytes]:
    """Read at most `cap` bytes, before and after gzip is undone, the one encoding that we ask for."""
    encoding = head.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return _pieces(response, cap, host)
    if encoding in ("gzip", "x-gzip"):
        return _unzip(_pieces(response, cap, host), cap, host)
    raise AnswerUnreadable(f"{host} answered in an encoding that was not asked for")


def _pieces(response: http.client.HTTPResponse, cap: int, host: str) -> Iterator[bytes]:
    if response.length is not None and response.length > cap:
        raise _too_large(cap, host)
    size = 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > cap:
            raise _too_large(cap, host)
        yield piece
    if response.length:
        raise _broken_off(host)


def _unzip(pieces: Iterator[bytes], cap: int, host: str) -> Iterator[bytes]:
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
                rest = b"" if unzip.eof else unzip.unconsumed_tail
    except zlib.error:
        raise AnswerUnreadable(f"{host} answered with damaged compression") from None
    if not unzip.eof:
        raise _broken_off(host)


def _stream_of(response: http.client.HTTPResponse, cap: int, host: str) -> Iterator[bytes]:
    """Give the bytes as they arrive."""
    if response.length is not None:  # not a stream, after all
        yield from _pieces(response, cap, host)
        return
    size = 0
    while piece := response.read1(_PIECE):
        size += len(piece)
        if size > cap:
            raise _too_large(cap, host)
        yield piece


def _read_to_the_end(connection: Connection, response: http.client.HTTPResponse, patience: Patience) -> None:
    """The answer is complete: read the end of the stream, so that the connection can be used again."""
    patience.end_within(_LONGEST_FAREWELL_S)
    try:
        while response.read1(_PIECE):
            pass
    except (TimedOut, http.client.HTTPException, OSError):
        connection.hang_up()


def _broken_off(host: str) -> ConnectionLost:
    return ConnectionLost(f"{host} closed the connection in the middle of an answer")


def _too_large(cap: int, host: str) -> AnswerTooLarge:
    return AnswerTooLarge(
        f"{host} answered with more than {cap // 1024:,} KB, which no answer to this request needs"
    )
