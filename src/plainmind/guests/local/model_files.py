"""Model files: fetched from a hub once, which weights one holds, and what its family of models wants to read.

A hub answers `/{repo}/resolve/{revision}/{file}` with the file's hash and, mostly, with a redirect to where the
bytes are. A model stays as it was downloaded; delete its file to fetch it anew.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from plainmind.base.errors import (
    ConfigError,
    EmbeddingError,
    PlainmindError,
    TransientEmbeddingError,
)
from plainmind.base.lazy import pattern
from plainmind.base.model import ProgressCallback, Vector
from plainmind.base.value import field, value
from plainmind.embed.protocol import FullEmbedder, check_vectors
from plainmind.files.safe_open import expand_user, real_path
from plainmind.files.system import hold_lock
from plainmind.guests.net.failures import (
    Answer,
    AnswerUnreadable,
    ConnectionLost,
    NetFailure,
    RedirectRefused,
    TimedOut,
    Unreachable,
    Untrusted,
)
from plainmind.guests.net.files import FileServer, Promise, fetch_file, is_encrypted_or_local

_SAMPLES, _SAMPLE_BYTES = 64, 4096


def fingerprint(path: str) -> str:
    """Hash the file's size and samples spread evenly over it: hashing 300 MB would take a second at every start."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(str(size).encode())
        last = max(0, size - _SAMPLE_BYTES)
        for sample in range(_SAMPLES):
            file.seek(last * sample // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


@value
class Prompts:
    """The words before a question and before a text; both may be empty."""

    query: str = ""
    document: str = ""


NO_PROMPTS = Prompts()
_TASK = "Given a web search query, retrieve relevant passages that answer the query"

# The first pattern that is found in a name wins. A model that was trained with such words loses several points of
# recall without them, one that was not loses with them: so only names that we know get any.
_FAMILIES = (
    (r"embedding-?gemma|gemma-embedding", Prompts("task: search result | query: ", "title: none | text: ")),
    (r"nomic-embed|nomic-bert", Prompts("search_query: ", "search_document: ")),
    (r"qwen3?-embedding", Prompts(f"Instruct: {_TASK}\nQuery:")),
    (r"e5.*-instruct", Prompts(f"Instruct: {_TASK}\nQuery: ")),
    (r"\be5-(small|base|large)", Prompts("query: ", "passage: ")),
    (r"bge-(small|base|large)-zh", Prompts("为这个句子生成表示以用于检索相关文章：")),
    (
        r"bge-(small|base|large)-en|mxbai-embed|arctic-embed-(xs|s|m|l)\b(?!-v2)",
        Prompts("Represent this sentence for searching relevant passages: "),
    ),
    (r"arctic-embed-[ml]-v2", Prompts("query: ")),
)
_PATTERNS = tuple((pattern(source), prompts) for source, prompts in _FAMILIES)
_GAPS = pattern(r"[\s_/.]+")


def prompts_for(names: Sequence[str]) -> Prompts:
    """Find the family by any of a model's names, `embeddinggemma-300M-Q8_0.gguf` or `Nomic Embed Text v1.5`."""
    for family, prompts in _PATTERNS:
        if any(family.search(_GAPS.sub("-", name).lower()) for name in names):
            return prompts
    return NO_PROMPTS


class PromptedEmbedder(FullEmbedder):
    """Embeds on this machine, with the words that the model's family wants before a question and before a text."""

    sends_text_to = None

    def embed_query(self, text: str) -> Vector:
        """Embed a question."""
        if _is_blank(text):
            raise EmbeddingError("nothing to embed: the query has no words")
        return self._embed([self._prompts.query + text])[0]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts; a blank one has no vector."""
        wanted = [self._prompts.document + text for text in texts if not _is_blank(text)]
        made = iter(self._embed(wanted) if wanted else ())
        return [None if _is_blank(text) else next(made) for text in texts]

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = self._vectors(texts)
        return check_vectors(vectors, expected_count=len(texts), expected_dims=self.identity.dims)

    @property
    def _prompts(self) -> Prompts:
        raise NotImplementedError

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors as the model made them, not yet checked."""
        raise NotImplementedError


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


# --- from a hub, downloaded once: resumed when broken off, checked by hash, published whole or not at all ---


DEFAULT_CACHE_DIR = "~/.plainmind/models"
DEFAULT_ENDPOINT = "https://huggingface.co"
_SCHEME = "hf:"
_PART = pattern(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
_COMPLETE = ".complete"
_LONGEST_WAIT_S = 600.0
_TRY_LATER = "try again later"
_BRING_IT = "connect once; or download the model elsewhere and set `local.modelPath` to its file"
_HINTS: dict[type[NetFailure], str] = {
    Unreachable: _BRING_IT,
    Untrusted: _BRING_IT,
    TimedOut: _BRING_IT,
    ConnectionLost: "run it again: it goes on from there",
    RedirectRefused: "nothing was downloaded; check the address of the hub",
    AnswerUnreadable: "try again; if it stays, something between you and the hub changes the file",
}


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
    sleep: Callable[[float], None] = time.sleep

    def path_of(self, file: HubFile) -> str:
        """Where the file is, or will be."""
        return os.path.join(self.folder_of(file.repo, file.revision), *file.path.split("/"))

    def folder_of(self, repo: str, revision: str = "main") -> str:
        """Where the files of a repository are."""
        return os.path.join(
            real_path(os.path.abspath(expand_user(self.cache_dir))),
            *repo.split("/"),
            *revision.split("/"),
        )

    def has_folder(self, repo: str) -> bool:
        """Whether everything that `fetch_folder` wanted of it is there."""
        return os.path.exists(os.path.join(self.folder_of(repo), _COMPLETE))

    def fetch(
        self, file: HubFile, *, progress: ProgressCallback | None = None, optional: bool = False
    ) -> str | None:
        """Return the file's path, downloading it first unless it is there; None when an optional one is nowhere.

        Raises EmbeddingError: no connection, no such file, no permission, wrong hash, full disk.
        """
        target = self.path_of(file)
        if os.path.exists(target):
            return target
        try:
            with hold_lock(f"{target}.lock", operation="download a model", timeout_s=_LONGEST_WAIT_S):
                if not os.path.exists(target):  # another process may have brought it while we waited
                    self._download(file, target, progress)
        except NetFailure as failure:
            if failure.status == 404 and optional:
                return None
            raise self._error(file, failure) from failure
        except ConfigError:
            raise
        except PlainmindError as error:  # the folder: locked for too long, full, not to be written
            hint = error.hint or "free some space, or set `local.modelCacheDir` to another folder"
            raise EmbeddingError(f"the model {file} cannot be downloaded: {error}", hint=hint) from error
        return target

    def fetch_folder(
        self,
        repo: str,
        *,
        required: Sequence[str],
        optional: Sequence[str] = (),
        one_of: Sequence[str] = (),
        progress: ProgressCallback | None = None,
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

    def _download(self, file: HubFile, target: str, progress: ProgressCallback | None) -> None:
        if not is_encrypted_or_local(self.endpoint):
            raise ConfigError(
                f"`{self.endpoint}` is not the address of a model hub", hint="it must begin with https://"
            )
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        secrets = [self.token] if self.token else []
        path = f"/{file.repo}/resolve/{file.revision.replace('/', '%2F')}/{file.path}"
        with FileServer(self.endpoint, settings="local", headers=headers, secrets=secrets) as server:
            # Where the bytes are elsewhere, only the hub itself knows their hash.
            promise = _promise(server.ask(path, is_enough=lambda answer: "x-linked-etag" in answer.headers))
            fetch_file(server, path, target, promise, name=str(file), progress=progress, sleep=self.sleep)

    def _error(self, file: HubFile, failure: NetFailure) -> EmbeddingError:
        """Say a failure as one of this hub, with what to do about it."""
        host, status = urlsplit(self.endpoint).netloc, failure.status
        if status == 404:
            hint = "check the spelling of the model's name"
            return EmbeddingError(f"there is no {file} on {self.endpoint}", hint=hint)
        if status in {401, 403}:
            return EmbeddingError(
                f"{host} does not give this model to everyone (status {status})",
                hint="check its name; if it needs an account, download it there and set `local.modelPath` to its file",
            )
        if status is not None and failure.retryable:
            return TransientEmbeddingError(f"{host} answered with status {status}", hint=_TRY_LATER)
        if status is not None:
            hint = "check the model's name"
            return EmbeddingError(f"{host} refused the download with status {status}", hint=hint)
        kind = TransientEmbeddingError if failure.retryable else EmbeddingError
        return kind(str(failure), hint=_HINTS.get(type(failure), _TRY_LATER))


def _promise(answer: Answer) -> Promise:
    headers = answer.headers
    digest = headers.get("x-linked-etag") or headers.get("etag") or ""
    size = headers.get("x-linked-size") or headers.get("content-length") or ""
    return Promise(digest.removeprefix("W/").strip('"').lower(), int(size) if size.isdigit() else None)
