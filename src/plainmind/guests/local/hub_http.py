"""Requests to a model hub: redirects followed by our own rules, every failure a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from plainmind.base.errors import ConfigError, EmbeddingError, TransientEmbeddingError

if TYPE_CHECKING:
    from typing import Self

    from urllib3 import BaseHTTPResponse

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS = 5
_CONNECT_S, _SILENCE_S = 15.0, 60.0
_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


class NotOnHub(EmbeddingError):
    """The hub has no such file."""


@dataclass(frozen=True, slots=True)
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
