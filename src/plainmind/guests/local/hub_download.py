"""One file from a hub onto the disk: bytes go to a `.part` beside the target, which is renamed when the hash fits."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.guests.local.hub_http import Described, HubConnection

if TYPE_CHECKING:
    from hashlib import _Hash

    from urllib3 import BaseHTTPResponse

_PAUSES_S = (1.0, 2.0, 4.0)  # between attempts
_BLOCK = 1024 * 1024
_RANGE = re.compile(r"bytes (\d+)-\d+/")


@dataclass(frozen=True, slots=True)
class Fetched:
    """How far a download is. `total_bytes` None: the hub did not say."""

    name: str
    done_bytes: int
    total_bytes: int | None


class Download:
    """Brings one file, over several attempts if need be; what has arrived is never fetched twice."""

    def __init__(
        self, connection: HubConnection, place: str, name: str, target: str, sleep: Callable[[float], None]
    ) -> None:
        self._connection = connection
        self._place = place
        self._name = name
        self._target = target
        self._sleep = sleep

    def run(self, progress: Callable[[Fetched], None] | None = None) -> str:
        """Download, check and publish; return the target's path."""
        try:
            described = self._connection.describe(self._place)
            # Named by the hash: a part of another version of the file is never continued.
            part = f"{self._target}.{re.sub('[^0-9a-f]', '', described.digest)[:16] or 'unknown'}.part"
            self._make_room(part, described)
            self._patiently(lambda: self._continue(part, described, progress or (lambda _: None)))
            self._check(part, described)
            self._publish(part)
        except OSError as error:
            raise EmbeddingError(
                f"the model {self._name} cannot be written to {self._target}: {error}",
                hint="free some space, or set `local.modelCacheDir` to another folder; the download then goes on",
            ) from error
        return self._target

    def _patiently(self, work: Callable[[], None]) -> None:
        for pause in _PAUSES_S:
            try:
                work()
            except TransientEmbeddingError:
                self._sleep(pause)
            else:
                return
        work()

    def _make_room(self, part: str, described: Described) -> None:
        os.makedirs(os.path.dirname(part), mode=0o700, exist_ok=True)
        missing = (described.size or 0) - _size(part)
        free = shutil.disk_usage(os.path.dirname(part)).free
        if missing > free:
            raise EmbeddingError(
                f"the model {self._name} needs {missing / 1e6:,.0f} MB more and the disk has {free / 1e6:,.0f} MB",
                hint="free some space, or set `local.modelCacheDir` to another folder",
            )

    def _continue(self, part: str, described: Described, progress: Callable[[Fetched], None]) -> None:
        done = _size(part)
        if described.size is not None and done > described.size:
            os.unlink(part)
            done = 0
        if described.size is not None and done == described.size:
            return
        answer = self._connection.get(self._place, done)
        try:
            if done and not _continues(answer, done):
                done = 0  # a server without ranges sends everything again
            with open(part, "ab" if done else "wb", opener=_privately) as file:
                self._copy(answer, file.write, done, described, progress)
                file.flush()
                os.fsync(file.fileno())
        finally:
            answer.close()
        if described.size is not None and _size(part) < described.size:
            raise TransientEmbeddingError(
                f"the download of {self._name} broke off at {_size(part):,} of {described.size:,} bytes",
                hint="run it again: it goes on from there",
            )

    def _copy(
        self,
        answer: BaseHTTPResponse,
        write: Callable[[bytes], int],
        done: int,
        described: Described,
        progress: Callable[[Fetched], None],
    ) -> None:
        from urllib3.exceptions import HTTPError

        try:
            for block in answer.stream(_BLOCK, decode_content=False):
                done += write(block)
                if described.size is not None and done > described.size:
                    raise EmbeddingError(
                        f"{self._connection.host} sent more of {self._name} than it has",
                        hint="try again later",
                    )
                progress(Fetched(self._name, done, described.size))
        except HTTPError as error:
            raise TransientEmbeddingError(
                f"the download of {self._name} broke off at {done:,} bytes",
                hint="run it again: it goes on from there",
            ) from error

    def _check(self, part: str, described: Described) -> None:
        digest = _digest_like(described.digest, _size(part))
        if digest is None:
            return  # the hub said no hash: only the length could be checked
        with open(part, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        if digest.hexdigest() != described.digest:
            os.unlink(part)
            raise EmbeddingError(
                f"the download of {self._name} is not what {self._connection.host} promised: its hash is another",
                hint="try again; if it stays, something between you and the hub changes the file",
            )

    def _publish(self, part: str) -> None:
        os.replace(part, self._target)
        folder, name = os.path.split(self._target)
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


def _continues(answer: BaseHTTPResponse, first_byte: int) -> bool:
    found = _RANGE.match(answer.headers.get("Content-Range", ""))
    return answer.status == 206 and found is not None and int(found[1]) == first_byte


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0
