"""Models from a hub, downloaded once: resumed when broken off, checked by hash, published whole or not at all.

A hub answers `/{repo}/resolve/{revision}/{file}` with the file's hash and, mostly, with a redirect to where the
bytes are. A model stays as it was downloaded; delete its file to fetch it anew.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from plainmind.base.errors import ConfigError, EmbeddingError, PlainmindError
from plainmind.files.locks import hold_lock
from plainmind.guests.local.hub_download import Download, Fetched
from plainmind.guests.local.hub_http import HubConnection, NotOnHub

DEFAULT_CACHE_DIR = "~/.plainmind/models"
DEFAULT_ENDPOINT = "https://huggingface.co"
_SCHEME = "hf:"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
_COMPLETE = ".complete"
_LONGEST_WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
