"""Requests to a model hub: redirects followed by our own rules, every failure a sentence."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from plainmind.base.errors import ConfigError, EmbeddingError, PlainmindError, TransientEmbeddingError
from plainmind.base.value import field, value
from plainmind.embed.protocol import Fetched
from plainmind.files.system import hold_lock

if TYPE_CHECKING:
    from hashlib import _Hash
    from typing import Self

    from urllib3 import BaseHTTPResponse


_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS = 5
_CONNECT_S, _SILENCE_S = 15.0, 60.0
_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


class NotOnHub(EmbeddingError):
    """The hub has no such file."""


@value
class Described:
    """What the hub says about a file before it is downloaded. `digest` is SHA-256, or Git's SHA-1 of a blob."""

    digest: str
    size: int | None


class HubConnection:
    """One download's connections; the environment's proxies are not used."""

    def __init__(self, endpoint: str, token: str | None) -> None:
        import urllib3

        self._endpoint = endpoint.rstrip("/")
        if not _allowed(self._endpoint):
            raise ConfigError(
                f"`{endpoint}` is not the address of a model hub", hint="it must begin with https://"
            )
        self._token = token
        self._urllib3 = urllib3
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(connect=_CONNECT_S, read=_SILENCE_S)
        )

    @property
    def host(self) -> str:
        """Whom we ask."""
        return urlsplit(self._endpoint).netloc

    def describe(self, place: str) -> Described:
        """Ask for a file's hash and size. Raises NotOnHub when the repository has no such file."""
        url, headers = self._endpoint + place, {"Accept-Encoding": "identity"}
        for _ in range(_MOST_REDIRECTS):
            answer = self._request("HEAD", url, headers)
            answer.release_conn()
            digest = answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag") or ""
            location = answer.headers.get("Location")
            # Where the bytes are elsewhere, only the hub itself knows their hash.
            if "X-Linked-Etag" in answer.headers or answer.status not in _REDIRECTS or not location:
                size = answer.headers.get("X-Linked-Size") or answer.headers.get("Content-Length") or ""
                return Described(
                    digest.removeprefix("W/").strip('"').lower(), int(size) if size.isdigit() else None
                )
            url = self._next(url, location)
        raise EmbeddingError(f"{self.host} redirects in a circle", hint="try again later")

    def get(self, place: str, first_byte: int) -> BaseHTTPResponse:
        """Begin to download, following redirects; the body is read by the caller."""
        url, headers = self._endpoint + place, {"Accept-Encoding": "identity"}
        if first_byte:
            headers["Range"] = f"bytes={first_byte}-"
        for _ in range(_MOST_REDIRECTS):
            answer = self._request("GET", url, headers)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or not location:
                return answer
            answer.drain_conn()
            answer.release_conn()
            url = self._next(url, location)
        raise EmbeddingError(f"{self.host} redirects in a circle", hint="try again later")

    def close(self) -> None:
        """Close all sockets."""
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, method: str, url: str, headers: Mapping[str, str]) -> BaseHTTPResponse:
        sent = dict(headers)
        if self._token and _origin(url) == _origin(self._endpoint):
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            answer = self._pool.request(method, url, headers=sent, redirect=False, preload_content=False)
        except self._urllib3.exceptions.HTTPError as error:
            raise TransientEmbeddingError(
                f"{urlsplit(url).netloc} cannot be reached: {_reason(error)}",
                hint="connect once; or download the model elsewhere and set `local.modelPath` to its file",
            ) from error
        if answer.status >= 400:
            with suppress(self._urllib3.exceptions.HTTPError):
                answer.drain_conn()
            _refuse(answer.status, answer.headers.get("X-Error-Code", ""), urlsplit(url).netloc)
        return answer

    def _next(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        if not _allowed(target) or (urlsplit(url).scheme, urlsplit(target).scheme) == ("https", "http"):
            raise EmbeddingError(
                f"{urlsplit(url).netloc} redirects to {urlsplit(target).netloc}, which is not encrypted",
                hint="nothing was downloaded; check the address of the hub",
            )
        return target


def _refuse(status: int, code: str, host: str) -> None:
    if status == 404 or code == "EntryNotFound":
        raise NotOnHub(f"{host} has no such file", hint="check the spelling of the model's name")
    if status in {401, 403}:
        raise EmbeddingError(
            f"{host} does not give this model to everyone (status {status})",
            hint="check its name; if it needs an account, download it there and set `local.modelPath` to its file",
        )
    if status in {408, 429} or status >= 500:
        raise TransientEmbeddingError(f"{host} answered with status {status}", hint="try again later")
    raise EmbeddingError(f"{host} refused the download with status {status}", hint="check the model's name")


def _allowed(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _reason(error: Exception) -> str:
    """The innermost cause, without the objects that urllib3 prints."""
    while error.__cause__ is not None and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return str(error)[:200]


_PAUSES_S = (1.0, 2.0, 4.0)  # between attempts
_BLOCK = 1024 * 1024
_RANGE = re.compile(r"bytes (\d+)-\d+/")


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


DEFAULT_CACHE_DIR = "~/.plainmind/models"
DEFAULT_ENDPOINT = "https://huggingface.co"
_SCHEME = "hf:"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
_COMPLETE = ".complete"
_LONGEST_WAIT_S = 600.0


@value
class HubFile:
    """One file of one revision of a repository."""

    repo: str  # "org/name"
    path: str
    revision: str = "main"

    def __str__(self) -> str:
        return f"{_SCHEME}{self.repo}/{self.path}" + ("" if self.revision == "main" else f"#{self.revision}")


def is_hub_uri(text: str) -> bool:
    """Tell `hf:org/repo/file.gguf` from a path."""
    return text.startswith(_SCHEME)


def parse_uri(uri: str) -> HubFile:
    """Read `hf:org/repo/folder/file.gguf`, and `#revision` behind it. Raises ConfigError."""
    place, _, revision = uri.removeprefix(_SCHEME).partition("#")
    parts = place.split("/")
    revision = revision or "main"
    if len(parts) < 3 or not all(_PART.fullmatch(part) for part in (*parts, *revision.split("/"))):
        raise ConfigError(
            f"`{uri}` does not name a file of a model hub",
            key="local.modelPath",
            hint="write `hf:organisation/repository/file.gguf`, with `#revision` behind it if you need one",
        )
    return HubFile("/".join(parts[:2]), "/".join(parts[2:]), revision)


def is_hub_name(text: str) -> bool:
    """Tell `BAAI/bge-small-en-v1.5` from a path."""
    parts = text.removeprefix(_SCHEME).split("/")
    return len(parts) == 2 and all(_PART.fullmatch(part) for part in parts)


@value
class Hub:
    """Downloads into `cache_dir`. `token` is sent to the hub itself and to no host that it redirects to."""

    cache_dir: str = DEFAULT_CACHE_DIR
    endpoint: str = DEFAULT_ENDPOINT
    token: str | None = field(default=None, repr=False)
    offline: bool = False
    sleep: Callable[[float], None] = time.sleep

    def path_of(self, file: HubFile) -> str:
        """Where the file is, or will be."""
        return os.path.join(self.folder_of(file.repo, file.revision), *file.path.split("/"))

    def folder_of(self, repo: str, revision: str = "main") -> str:
        """Where the files of a repository are."""
        return os.path.join(
            os.path.abspath(os.path.expanduser(self.cache_dir)), *repo.split("/"), *revision.split("/")
        )

    def has_folder(self, repo: str) -> bool:
        """Whether everything that `fetch_folder` wanted of it is there."""
        return os.path.exists(os.path.join(self.folder_of(repo), _COMPLETE))

    def fetch(
        self, file: HubFile, *, progress: Callable[[Fetched], None] | None = None, optional: bool = False
    ) -> str | None:
        """Return the file's path, downloading it first unless it is there; None when an optional one is nowhere.

        Raises EmbeddingError: offline, no such file, no permission, wrong hash, full disk.
        """
        target = self.path_of(file)
        if os.path.exists(target):
            return target
        if self.offline:
            raise EmbeddingError(
                f"the model {file} is not on this machine, and downloads are switched off",
                hint=f"put the file at {target}, or set `local.modelPath` to where it is",
            )
        try:
            with hold_lock(f"{target}.lock", operation="download a model", timeout_s=_LONGEST_WAIT_S):
                # Another process may have brought it while we waited.
                return target if os.path.exists(target) else self._downloaded(file, target, progress)
        except NotOnHub as error:
            if optional:
                return None
            raise EmbeddingError(f"there is no {file} on {self.endpoint}", hint=error.hint) from error
        except (ConfigError, EmbeddingError):
            raise
        except PlainmindError as error:  # the folder: locked for too long, full, not to be written
            raise EmbeddingError(
                f"the model {file} cannot be downloaded: {error}", hint=error.hint
            ) from error

    def _downloaded(self, file: HubFile, target: str, progress: Callable[[Fetched], None] | None) -> str:
        with HubConnection(self.endpoint, self.token) as connection:
            place = f"/{file.repo}/resolve/{file.revision.replace('/', '%2F')}/{file.path}"
            return Download(connection, place, str(file), target, self.sleep).run(progress)

    def fetch_folder(
        self,
        repo: str,
        *,
        required: Sequence[str],
        optional: Sequence[str] = (),
        one_of: Sequence[str] = (),
        progress: Callable[[Fetched], None] | None = None,
    ) -> str:
        """Return the folder with all `required` files, those `optional` ones that exist, and the first of `one_of`."""
        folder = self.folder_of(repo)
        if self.has_folder(repo):
            return folder
        for path in required:
            self.fetch(HubFile(repo, path), progress=progress)
        for path in optional:
            self.fetch(HubFile(repo, path), progress=progress, optional=True)
        if one_of and not any(
            self.fetch(HubFile(repo, path), progress=progress, optional=True) for path in one_of
        ):
            raise EmbeddingError(
                f"the repository {repo} has none of {', '.join(one_of)}",
                hint="choose a model that is published in this format",
            )
        with suppress(OSError), open(os.path.join(folder, _COMPLETE), "x", encoding="utf-8"):
            pass  # without the mark the hub is asked again next time, no more
        return folder
