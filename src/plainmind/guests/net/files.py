"""A file from another machine: redirects followed without the key, broken downloads continued, published whole.

Bytes go to a `.part` beside the target, which is renamed when the hash fits.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from plainmind.base.errors import ConfigError, StorageFailure
from plainmind.base.lazy import pattern
from plainmind.base.model import Progress, ProgressCallback
from plainmind.base.value import value
from plainmind.guests.net.address import Origin, split_base_url
from plainmind.guests.net.failures import (
    Answer,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    NetFailure,
    RedirectRefused,
)
from plainmind.guests.net.transport import Take, Transport

if TYPE_CHECKING:
    from hashlib import _Hash
    from typing import Self

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS = 5
_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))
_ANSWER_S, _SILENCE_S, _WHOLE_FILE_S = 75.0, 60.0, 7 * 86_400.0
_PAUSES_S = (1.0, 2.0, 4.0)  # between attempts
_LARGEST_FILE = 1 << 50
_BLOCK = 1024 * 1024
_RANGE = pattern(r"bytes (\d+)-\d+/")
_HARMLESS = "/:=&?~+!$,;'@()*[]%"  # in a URL; anything else is written in percents
_AS_THEY_ARE = {"Accept-Encoding": "identity"}


@value
class Promise:
    """What a server says about a file before it is fetched.

    `digest` is SHA-256, or Git's SHA-1 of a blob; "" or anything else when there is none that could be checked.
    """

    digest: str
    size: int | None


def is_encrypted_or_local(url: str) -> bool:
    """Whether what comes from there is what its owner sent: https, or this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


class FileServer:
    """Asks one server for files, and follows where it sends us. `headers` go to this server and to no other."""

    def __init__(
        self,
        url: str,
        *,
        settings: str,
        headers: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._url = url.rstrip("/")
        self._settings = settings
        self._secrets = secrets
        self._origin, _ = split_base_url(self._url, settings=settings)
        self._transports = {self._origin: self._new_transport(self._url, headers or {})}

    @property
    def host(self) -> str:
        """The server that is asked first, with its port."""
        return urlsplit(self._url).netloc

    def ask(self, path: str, *, is_enough: Callable[[Answer], bool]) -> Answer:
        """Ask for status and headers of a file; a redirect that `is_enough` is not followed. Raises NetFailure."""

        def request(transport: Transport, url: str) -> Answer:
            deadline = time.monotonic() + _ANSWER_S
            return transport.send("HEAD", url, headers=_AS_THEY_ARE, deadline=deadline, may_redirect=True)

        return self._follow(path, request, is_enough)

    def read(self, path: str, receive: Callable[[Answer], Take], *, first_byte: int) -> None:
        """Read a file from a byte on; `receive` is told whether the server begins there. Raises NetFailure."""
        headers = {"Range": f"bytes={first_byte}-"} if first_byte else {}

        def request(transport: Transport, url: str) -> Answer:
            return transport.stream(
                "GET",
                url,
                receive=receive,
                headers=headers,
                silence_s=_SILENCE_S,
                deadline=time.monotonic() + _WHOLE_FILE_S,
                cap=_LARGEST_FILE,
                may_redirect=True,
            )

        self._follow(path, request, lambda _: False)

    def close(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _follow(
        self, path: str, request: Callable[[Transport, str], Answer], is_enough: Callable[[Answer], bool]
    ) -> Answer:
        url = self._url + path
        for _ in range(_MOST_REDIRECTS):
            transport = self._transport_to(url)
            answer = request(transport, url)
            if answer.status >= 400:
                raise transport.failure(answer)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or not location or is_enough(answer):
                return answer
            url = _next_url(url, location)
        raise AnswerUnreadable(f"{self.host} redirects in a circle")

    def _transport_to(self, url: str) -> Transport:
        origin = _origin(url)
        if origin not in self._transports:
            self._transports[origin] = self._new_transport(str(origin), {})
        return self._transports[origin]

    def _new_transport(self, url: str, headers: Mapping[str, str]) -> Transport:
        return Transport(
            url, settings=self._settings, headers=headers, secrets=self._secrets, allow_private=True
        )


def fetch_file(
    server: FileServer,
    path: str,
    target: str,
    promise: Promise,
    *,
    name: str,
    progress: ProgressCallback | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Bring one file, over several attempts if need be; what has arrived is never fetched twice.

    `name` is what messages call it. Raises NetFailure or StorageFailure; the next call goes on where this one stopped.
    """
    # Named by the hash: a part of another version of the file is never continued.
    part = f"{target}.{re.sub('[^0-9a-f]', '', promise.digest)[:16] or 'unknown'}.part"
    download = _Download(server, path, promise, part=part, name=name, progress=progress or _ignore)
    try:
        download.make_room()
        download.run(sleep)
        download.check()
        _publish(part, target)
    except OSError as error:
        raise StorageFailure(f"{name} cannot be written to {target}: {error}") from error


class _Download:
    """One file on its way into its `.part`."""

    def __init__(
        self,
        server: FileServer,
        path: str,
        promise: Promise,
        *,
        part: str,
        name: str,
        progress: ProgressCallback,
    ) -> None:
        self._server = server
        self._path = path
        self._promise = promise
        self._part = part
        self._name = name
        self._progress = progress
        self._done = 0

    def make_room(self) -> None:
        """Make the folder, and see that the disk can hold what is missing."""
        folder = os.path.dirname(self._part)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        missing = (self._promise.size or 0) - _size(self._part)
        free = shutil.disk_usage(folder).free
        if missing > free:
            raise StorageFailure(
                f"{self._name} needs {missing / 1e6:,.0f} MB more and the disk has {free / 1e6:,.0f} MB"
            )

    def run(self, sleep: Callable[[float], None]) -> None:
        """Go on until everything is there, or the attempt after the last pause has failed."""
        for pause in _PAUSES_S:
            try:
                return self._continue()
            except NetFailure as failure:
                if not failure.retryable:
                    raise
                sleep(pause)
        return self._continue()

    def check(self) -> None:
        """Compare the hash with the one that was promised, if one was."""
        digest = _digest_like(self._promise.digest, _size(self._part))
        if digest is None:
            return  # only the length could be checked
        with open(self._part, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        if digest.hexdigest() != self._promise.digest:
            os.unlink(self._part)
            raise AnswerUnreadable(
                f"the download of {self._name} is not what {self._server.host} promised: its hash is another"
            )

    def _continue(self) -> None:
        self._done, size = _size(self._part), self._promise.size
        if size is not None and self._done > size:
            os.unlink(self._part)
            self._done = 0
        if size is not None and self._done == size:
            return
        with open(self._part, "r+b", opener=_open_privately) as file:
            file.seek(self._done)
            self._read_into(file)
            file.flush()
            os.fsync(file.fileno())
        if size is not None and self._done < size:
            raise self._broken_off()

    def _read_into(self, file: IO[bytes]) -> None:
        has_begun = False

        def receive(answer: Answer) -> Take:
            nonlocal has_begun
            has_begun = True
            if self._done and not _continues(answer, self._done):
                file.seek(0)  # a server without ranges sends everything again
                file.truncate()
                self._done = 0
            return lambda piece: self._write(file, piece)

        try:
            self._server.read(self._path, receive, first_byte=self._done)
        except NetFailure as failure:
            if not (has_begun and failure.retryable):
                raise
            raise self._broken_off() from failure

    def _write(self, file: IO[bytes], piece: bytes) -> bool:
        try:
            self._done += file.write(piece)
        except OSError as error:
            raise StorageFailure(f"{self._name} cannot be written to {self._part}: {error}") from error
        size = self._promise.size
        if size is not None and self._done > size:
            raise AnswerTooLarge(f"{self._server.host} sent more of {self._name} than it has")
        self._progress(Progress(self._done, size or self._done, self._name))
        return True

    def _broken_off(self) -> ConnectionLost:
        whole = "" if self._promise.size is None else f" of {self._promise.size:,}"
        return ConnectionLost(f"the download of {self._name} broke off at {self._done:,}{whole} bytes")


def _ignore(step: Progress) -> None:
    """Nothing is told how far a download is."""


def _next_url(url: str, location: str) -> str:
    target = urlsplit(urljoin(url, location))
    if not is_encrypted_or_local(target.geturl()) or (urlsplit(url).scheme, target.scheme) == (
        "https",
        "http",
    ):
        raise RedirectRefused(f"{urlsplit(url).netloc} redirects to {target.netloc}, which is not encrypted")
    path, query = quote(target.path, safe=_HARMLESS), quote(target.query, safe=_HARMLESS)
    return urlunsplit((target.scheme, target.netloc, path, query, ""))


def _origin(url: str) -> Origin:
    parts = urlsplit(url)
    try:
        return split_base_url(f"{parts.scheme}://{parts.netloc}", settings="")[0]
    except ConfigError:
        raise RedirectRefused("a redirect leads to an address that cannot be used") from None


def _publish(part: str, target: str) -> None:
    os.replace(part, target)
    folder, name = os.path.split(target)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    for other in os.listdir(folder):  # what is left of other versions
        if other.startswith(f"{name}.") and other.endswith(".part"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, other))


def _digest_like(promised: str, size: int) -> _Hash | None:
    if re.fullmatch("[0-9a-f]{64}", promised):
        return hashlib.sha256()
    if re.fullmatch("[0-9a-f]{40}", promised):  # what Git calls a file by
        return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return None


def _continues(answer: Answer, first_byte: int) -> bool:
    found = _RANGE.match(answer.headers.get("content-range", ""))
    return answer.status == 206 and found is not None and int(found[1]) == first_byte


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0
