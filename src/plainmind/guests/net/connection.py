"""One HTTP connection on which nothing takes longer than its deadline: not TLS, not headers sent byte by byte."""

from __future__ import annotations

import base64
import http.client
import io
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from plainmind.base.errors import ConfigError
from plainmind.guests.net.address import Origin
from plainmind.guests.net.failures import Abandoned, TimedOut, Unreachable, Untrusted

if TYPE_CHECKING:
    import ssl

    from _typeshed import ReadableBuffer, WriteableBuffer

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
