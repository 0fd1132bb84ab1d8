"""What turns text into vectors: what it promises, what can be set about it, and how one is made by its name.

Other packages add providers through the entry-point group `plainmind.embedders`: a name, and `module:factory` where the
factory takes the settings and returns an `Embedder`.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence

from plainmind.base.errors import BadVector, ConfigError, EmbeddingError
from plainmind.base.lazy import find_by_name
from plainmind.base.model import EmbedderIdentity, ProgressCallback, Vector
from plainmind.base.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoints
    from typing import NoReturn, Protocol, TypeAlias
else:
    Protocol = object

AUTO = "auto"
# The environment variables that hold a provider's key, in the order in which `auto` looks for them.
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "voyage": ("VOYAGE_API_KEY",),
}
# The providers that compute in this process, faster than a cache or another process could answer.
COMPUTED_HERE = frozenset({"builtin", "none"})
ENTRY_POINTS = "plainmind.embedders"
# A provider's module is imported when it is chosen.
_OURS = {
    "builtin": "plainmind.embed.builtin:create",
    "local": "plainmind.guests.local.llama:create",
    "none": "plainmind.embed.protocol:create_silent",
    "onnx": "plainmind.guests.local.onnx:create",
}
_SMALLEST_NORM = 1e-6


@value
class EmbeddingSettings:
    """Who turns text into vectors. `model` None means the provider's own default."""

    provider: str = AUTO
    model: str | None = None
    model_cache_dir: str | None = None  # where models of this machine are kept once they are downloaded
    downloading: ProgressCallback | None = None  # hears how far a download is


class Embedder(Protocol):
    """Text in, unit-length float32 vectors out. Safe to share between threads."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Who makes the vectors; `dims` 0 means that there are none and keywords answer alone."""

    @property
    def sends_text_to(self) -> str | None:
        """The host that sees the text, or None when it stays on this machine."""

    def embed_query(self, text: str) -> Vector:
        """Embed a question. Raises EmbeddingError."""

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts, one vector each, in their order; None for a text without any known word.

        Raises EmbeddingError and returns nothing when a single vector is bad.
        """

    def close(self) -> None:
        """Let go of models and connections."""


# Takes vectors by their texts; may be called from several threads at once.
Keep: TypeAlias = "Callable[[Mapping[str, Vector]], None]"
# How near the words of each text are to those of a question, from -1 to 1.
Likeness: TypeAlias = "Callable[[Sequence[str]], list[float]]"


class FullEmbedder(Embedder):
    """All that is asked of an embedder. What one of another package leaves out has its plain answer here."""

    @property
    def is_ready(self) -> bool:
        """Whether its model is on this machine, so that nothing has to be downloaded."""
        return True

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`. Asks no other machine, and loads nothing."""
        return {}

    def embed_keeping(self, texts: Sequence[str], keep: Keep) -> list[Vector | None]:
        """Embed distinct texts, and give `keep` what is made as soon as it is, also when a later part fails."""
        vectors = self.embed_documents(texts)
        keep({text: vector for text, vector in zip(texts, vectors, strict=True) if vector is not None})
        return vectors

    def likeness_to(self, question: str) -> Likeness | None:  # noqa: ARG002 (others know more)
        """What compares texts with a question word by word; None when it knows nothing but whole texts."""
        return None


def complete(embedder: Embedder) -> FullEmbedder:
    """An embedder with all that is asked of one."""
    return embedder if isinstance(embedder, FullEmbedder) else _Plugin(embedder)


class _Plugin(FullEmbedder):
    """An embedder of another package."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    @property
    def sends_text_to(self) -> str | None:
        return self._embedder.sends_text_to

    def embed_query(self, text: str) -> Vector:
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return self._embedder.embed_documents(texts)

    def close(self) -> None:
        self._embedder.close()


# --- those that make no vectors ---


class NoEmbedder(FullEmbedder):
    """Has no vector for any text; callers see `dims` 0 and do not ask for one."""

    identity = EmbedderIdentity("none", "", dims=0)
    sends_text_to = None

    def embed_query(self, text: str) -> NoReturn:  # noqa: ARG002
        """Refuse: there is nothing to compare a query with."""
        raise EmbeddingError(
            "the provider `none` makes no vectors", hint="set `provider` to `auto` to search by meaning too"
        )

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Answer None for each text: found by keywords only."""
        return [None] * len(texts)

    def close(self) -> None:
        """Nothing to let go of."""


class Withheld(FullEmbedder):
    """Stands in for an embedder that is not to be asked: it has the identity of an index, and a reason to be silent."""

    sends_text_to = None

    def __init__(self, identity: EmbedderIdentity | None, refusal: EmbeddingError) -> None:
        self._identity = identity
        self.refusal = refusal

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors would be made. Raises EmbeddingError when not even that is known."""
        return self._identity or self._refuse()

    def embed_query(self, text: str) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Refuse, unless there is nothing to embed."""
        return self._refuse() if texts else []

    def _refuse(self) -> NoReturn:
        raise EmbeddingError(str(self.refusal), hint=self.refusal.hint)

    def close(self) -> None:
        """Nothing to let go of."""


def create_silent(settings: EmbeddingSettings) -> NoEmbedder:  # noqa: ARG001
    """Make the provider `none`; it has no settings."""
    return NoEmbedder()


class EmbeddingCache(Protocol):
    """Remembers vectors by who made them and the SHA-256 of the text."""

    def lookup(self, identity: EmbedderIdentity, hashes: Sequence[str]) -> Mapping[str, Vector]:
        """The known vectors among `hashes`; looking one up makes it recently used."""

    def insert(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors, dropping the least recently used beyond the caps."""

    def forget(self, hashes: Sequence[str]) -> None:
        """Erase the vectors of these texts, of all providers."""

    def describe(self) -> Mapping[str, int]:
        """Facts for `status`: entries, bytes, maxEntries."""

    def close(self) -> None:
        """Let go of the file."""


def create_embedder(name: str, settings: EmbeddingSettings) -> FullEmbedder:
    """Make the provider `name`; `auto` takes the best one that works without being set up.

    Those on another machine need a key and a ledger too, and are made where these are known.
    """
    if name == AUTO:
        # A model set beside `auto` belongs to whichever provider it was written for, not to this one.
        return create_embedder("builtin", replace(settings, provider="builtin", model=None))
    target = _OURS.get(name)
    if target is not None:
        ours: FullEmbedder = find_by_name(target)(settings)
        return ours
    return complete(_plugin_factory(name)(settings))


def known_providers() -> tuple[str, ...]:
    """Every name that `provider` takes, ours and those of installed plugins."""
    return (AUTO, *sorted({*_OURS, *KEY_VARIABLES, *_plugins().names}))


def _plugin_factory(name: str) -> Callable[[EmbeddingSettings], Embedder]:
    for plugin in _plugins().select(name=name):
        try:
            factory: Callable[[EmbeddingSettings], Embedder] = plugin.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"the embedding provider `{name}` cannot be loaded: {error}",
                key="provider",
                hint=f"reinstall the package that brings `{plugin.value}`, or choose another provider",
            ) from error
        return factory
    raise _unknown(name)


def _plugins() -> EntryPoints:
    from importlib.metadata import entry_points  # costs some 20 ms, and most people have no plugin

    return entry_points(group=ENTRY_POINTS)


def _unknown(name: str) -> ConfigError:
    from difflib import get_close_matches

    known = known_providers()
    nearest = get_close_matches(name.lower(), known, n=1)
    advice = f"did you mean `{nearest[0]}`? " if nearest else ""
    return ConfigError(
        f"unknown embedding provider: `{name}`",
        key="provider",
        hint=f"{advice}this version knows {', '.join(known)}",
    )


def check_vectors(
    vectors: Sequence[Iterable[float]], *, expected_count: int, expected_dims: int
) -> list[Vector]:
    """Bring all vectors to unit length, or raise BadVector on the first bad one and return none.

    Every vector from outside passes here: one of zeros or NaN has no distance to anything, and databases sort "no
    distance" first.
    """
    if len(vectors) != expected_count:
        raise BadVector(f"{expected_count} vectors were expected and {len(vectors)} came")
    return [_unit(vector, index, expected_dims) for index, vector in enumerate(vectors)]


def _unit(vector: Iterable[float], index: int, expected_dims: int) -> Vector:
    try:
        values = array("d", vector)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadVector(f"vector {index} is not a list of numbers: {error}") from error
    if len(values) != expected_dims:
        raise BadVector(f"vector {index} has {len(values)} dimensions instead of {expected_dims}")
    norm = math.hypot(*values)
    if not math.isfinite(norm):
        raise BadVector(f"vector {index} holds NaN or infinity")
    if norm <= _SMALLEST_NORM:
        raise BadVector(f"vector {index} has length zero")
    return array("f", [value / norm for value in values])


def usable_cores() -> int:
    """Count the cores that this process may run on, which in a container are fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS knows no affinity
        return os.cpu_count() or 1
