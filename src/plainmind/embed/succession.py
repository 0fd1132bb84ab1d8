"""Who embeds: the provider that was chosen, and who takes over when it fails.

Vectors of two models never meet, so an index belongs to one of them at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.base.value import value
from plainmind.embed.protocol import AUTO, KEY_VARIABLES, Embedder, FullEmbedder, Withheld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Protocol

    class Remote(Protocol):
        """What a provider on another machine tells about itself."""

        def probe(self, *, anyway: bool = False) -> int:
            """Ask for one vector; how many dimensions it has. Raises EmbeddingError."""

        def pause(self) -> EmbeddingError | None:
            """Why it is not asked at the moment, None when it may be. Sends no request."""

        def cost_of(self, tokens: int) -> float:
            """What tokens cost, about, in USD."""

        def hurrying(self) -> AbstractContextManager[None]:
            """Give each request little time in a block: somebody waits for an answer."""


@value
class PassedOver:
    """A provider that came before the chosen one, and why it was not taken.

    `is_configured`: the user meant it to be used, and should hear of it.
    """

    provider: str
    reason: str
    is_configured: bool = False


@value
class Choice:
    """The provider to use. `why` completes "chosen because …"; no key is ever a part of it."""

    provider: str
    why: str
    passed_over: tuple[PassedOver, ...] = ()


@value
class LocalModel:
    """The model of this machine that is configured, if one is: `path` as it was written."""

    path: str | None = None
    exists: bool = False


@value
class KeyFound:
    """Where a provider's key comes from, or why there is none; never the key."""

    origin: str | None
    problem: str | None = None
    is_named: bool = False  # a key was meant to be there, or an address
    is_in_settings: bool = False  # the user's own name a key, be it there or not


def choose(requested: str, *, requested_by: str, local: LocalModel, keys: Mapping[str, KeyFound]) -> Choice:
    """Take the provider that was asked for; `auto` takes the first that could work, and the built-in one at last.

    The order of `auto` is: a local model that is there, then OpenAI, Gemini and Voyage, where the settings name a key.
    What the environment holds chooses nothing: programs start us with theirs, and of two that share an index one must
    not make it anew for the other. A key that is named and not there is therefore said, and no other is taken.
    """
    if requested != AUTO:
        return Choice(requested, f"`provider` is set to it by {requested_by}")
    passed: list[PassedOver] = []
    if local.exists:
        return Choice("local", f"`local.modelPath` names {local.path}, which exists")
    passed.append(
        PassedOver(
            "local",
            "`local.modelPath` is not set" if local.path is None else f"there is no {local.path}",
            is_configured=local.path is not None,
        )
    )
    for name in KEY_VARIABLES:
        found = keys[name]
        if found.is_in_settings:
            why = (
                "your settings name a key for it" if found.origin is None else f"its key is in {found.origin}"
            )
            return Choice(name, why, tuple(passed))
        passed.append(PassedOver(name, _why_not(name, found), found.is_named))
    return Choice("builtin", "no other provider is configured", tuple(passed))


def _why_not(name: str, found: KeyFound) -> str:
    if found.origin is not None:
        return f"its key is in {found.origin}, which chooses nothing: `plainmind config set provider {name}` does"
    return found.problem or f"no key: {' and '.join(KEY_VARIABLES[name])} not set"


_PROBE = "Does this work?"


class Provider:
    """An embedder, and what is known about whether it works.

    `bare` is the same one without a cache in front of it, `remote` as well when it is on another machine.
    """

    def __init__(
        self, name: str, model: str, embedder: Embedder, *, bare: FullEmbedder, remote: Remote | None = None
    ) -> None:
        self.name = name
        self.model = model
        self.remote = remote
        self._embedder = embedder
        self._bare = bare
        self._failure: EmbeddingError | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors these are. Raises EmbeddingError when that cannot be told, for a model that is not there."""
        return self._embedder.identity

    @property
    def sends_text_to(self) -> str | None:
        """The host that sees the text."""
        return self._embedder.sends_text_to

    def embed_query(self, text: str) -> Vector:
        """Embed a question. Raises EmbeddingError."""
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts, and remember whether that worked. Raises EmbeddingError."""
        try:
            vectors = self._embedder.embed_documents(texts)
        except EmbeddingError as error:
            self._failure = error
            raise
        self._failure = None
        return vectors

    def close(self) -> None:
        """Let go of the embedder."""
        self._embedder.close()

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`, if it has any."""
        return self._bare.describe()

    @property
    def _unready(self) -> EmbeddingError | None:
        """Say that its model would have to be downloaded first."""
        if self._bare.is_ready:
            return None
        return EmbeddingError(
            f"the model {self.model or 'of ' + self.name} has not been downloaded yet",
            hint="`plainmind sync` downloads it",
        )

    def or_withheld(self) -> Embedder:
        """Itself; or, while it cannot even tell who it is, one that says so. Downloads nothing."""
        try:
            if (unready := self._unready) is not None:
                raise unready
            _ = self.identity
        except EmbeddingError as error:
            return Withheld(EmbedderIdentity(self.name, self.model), error)
        return self

    def makes(self, made: EmbedderIdentity) -> bool:
        """Whether its vectors can be compared with those of an index. Downloads nothing."""
        if self._unready is not None:
            return False
        try:
            return made.agrees_with(self.identity)
        except EmbeddingError:
            return False

    def trouble(self, *, may_download: bool) -> EmbeddingError | None:
        """Say why it cannot bring an index up to date. It is asked only while its dimensions are not known."""
        pause = self.remote.pause() if self.remote is not None else None
        if pause is not None:
            return pause
        if not may_download and self._unready is not None:
            return self._unready
        try:
            if not self.identity.dims and self.remote is not None:
                self.probe()
        except EmbeddingError as error:
            return error
        return None

    def probe(self, *, anyway: bool = False) -> None:
        """Ask for one vector, past any cache. Raises EmbeddingError."""
        try:
            if self.remote is not None:
                self.remote.probe(anyway=anyway)
            else:
                self._bare.embed_documents([_PROBE])
        except EmbeddingError as error:
            self._failure = error
            raise
        self._failure = None

    def fell_out(self) -> EmbeddingError | None:
        """Why it is of no use until the user does something, or for a while; None when it may work next time."""
        if self.remote is not None:
            return self.remote.pause()
        return None if isinstance(self._failure, TransientEmbeddingError) else self._failure


class Succession:
    """The provider that was chosen, the one that takes over when it fails, and those that older indexes were made with.

    `former` makes the embedder of an identity, when that is possible without being told more.
    """

    def __init__(
        self,
        chosen: Provider,
        *,
        fallback: Callable[[], Provider] | None,
        former: Callable[[EmbedderIdentity], Embedder | None],
    ) -> None:
        self.chosen = chosen
        self._make_fallback = fallback
        self._make_former = former
        self._turn = threading.Lock()
        self._fallback: Provider | None = None
        self._formers: dict[EmbedderIdentity, Embedder | None] = {}

    @property
    def fallback(self) -> Provider | None:
        """Who takes over; made when it is first needed, None when none was named."""
        with self._turn:
            if self._fallback is None and self._make_fallback is not None:
                self._fallback = self._make_fallback()
            return self._fallback

    def answering(self, made: EmbedderIdentity | None) -> Embedder:
        """Who embeds questions to an index: only the one who made it, or one who says why there is none."""
        if made is None:
            return self.chosen.or_withheld()
        if self.chosen.makes(made):
            return self.chosen
        if self.fallback is not None and self.fallback.makes(made):
            return self.fallback
        former = self._former(made)
        return former or Withheld(made, self._no_embedder_for(made))

    def is_fallback(self, made: EmbedderIdentity | None) -> bool:
        """Whether an index was made by the one who takes over, and not by the one who was chosen."""
        if made is None or self._make_fallback is None or self.chosen.makes(made):
            return False
        return self.fallback is not None and self.fallback.makes(made)

    def close(self) -> None:
        """Let go of all of them."""
        self.chosen.close()
        with self._turn:
            others = [self._fallback, *self._formers.values()]
            self._formers = {}
        for other in others:
            if other is not None:
                other.close()

    def _former(self, made: EmbedderIdentity) -> Embedder | None:
        with self._turn:
            if made not in self._formers:
                self._formers[made] = self._make_former(made)
            return self._formers[made]

    def _no_embedder_for(self, made: EmbedderIdentity) -> EmbeddingError:
        silent = self.chosen.or_withheld()
        if isinstance(silent, Withheld):
            return silent.refusal  # it may well be the one who made the index, and this is why it cannot tell
        wanted = silent.identity
        return EmbeddingError(
            f"the index was made with {made.provider} {made.model}, and vectors of {wanted.provider}"
            f" {wanted.model} do not compare with it",
            hint="`plainmind sync` makes it anew",
        )
