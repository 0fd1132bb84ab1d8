"""Who embeds for an index, and who says why nobody does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.protocol import Embedder, Withheld
from plainmind.embed.succession import Provider, Succession

OTHER = EmbedderIdentity("other", "m", dims=64)


class Moody(HashingEmbedder):
    """Fails when told to; `asked` counts how often it was asked."""

    def __init__(self, name: str = "hashing", failure: EmbeddingError | None = None) -> None:
        super().__init__()
        self.identity = EmbedderIdentity(name, "m", dims=64)
        self.failure = failure
        self.asked = 0
        self.closed = 0

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return super().embed_documents(texts)

    def close(self) -> None:
        self.closed += 1


class NotDownloaded(Moody):
    """A model that is not on this machine yet."""

    is_ready = False


class Far(Moody):
    """A provider on another machine, as far as a `Provider` looks at it."""

    def __init__(self, *, dims: int = 64) -> None:
        super().__init__("far")
        self.identity = EmbedderIdentity("far", "m", "e", dims=dims)
        self.paused: EmbeddingError | None = None

    def probe(self, *, anyway: bool = False) -> int:
        if anyway:
            self.paused = None
        self.embed_documents(["?"])
        self.identity = EmbedderIdentity("far", "m", "e", dims=64)
        return 64

    def pause(self) -> EmbeddingError | None:
        return self.paused

    def cost_of(self, tokens: int) -> float:
        return tokens / 1e6

    def describe(self) -> dict[str, object]:
        return {"origin": "https://far.example"}


def provider_of(embedder: Moody) -> Provider:
    remote = embedder if isinstance(embedder, Far) else None
    return Provider(embedder.identity.provider, "m", embedder, bare=embedder, remote=remote)


def succession_of(
    chosen: Provider,
    fallback: Provider | None = None,
    former: Callable[[EmbedderIdentity], Embedder | None] = lambda _: None,
) -> Succession:
    return Succession(chosen, fallback=None if fallback is None else lambda: fallback, former=former)


def test_what_is_withheld_has_an_identity_and_a_reason() -> None:
    withheld = Withheld(OTHER, EmbeddingError("it is Sunday", hint="wait"))

    assert withheld.identity == OTHER
    assert withheld.embed_documents([]) == []
    for refused in (lambda: withheld.embed_query("a"), lambda: withheld.embed_documents(["a"])):
        with pytest.raises(EmbeddingError, match="it is Sunday") as caught:
            refused()
        assert caught.value.hint == "wait"
    withheld.close()


def test_what_is_withheld_without_an_identity_cannot_even_tell_who_it_is() -> None:
    with pytest.raises(EmbeddingError, match="no key"):
        _ = Withheld(None, EmbeddingError("no key")).identity


def test_an_index_is_asked_by_whoever_made_it() -> None:
    chosen, fallback, old = provider_of(Moody("chosen")), provider_of(Moody("fallback")), Moody("old")
    succession = succession_of(chosen, fallback, lambda made: old if made.provider == "old" else None)

    assert succession.answering(None) is chosen
    assert succession.answering(chosen.identity) is chosen
    assert succession.answering(fallback.identity) is fallback
    assert succession.answering(old.identity) is old
    assert [succession.is_fallback(who.identity) for who in (chosen, fallback, old)] == [False, True, False]
    succession.close()
    assert old.closed == 1


def test_an_index_of_nobody_is_asked_by_nobody_and_says_why() -> None:
    nobody = succession_of(provider_of(Moody("chosen"))).answering(OTHER)

    assert isinstance(nobody, Withheld)
    assert nobody.identity == OTHER
    with pytest.raises(EmbeddingError, match="made with other m, and vectors of chosen m do not compare"):
        nobody.embed_query("?")


def test_a_provider_that_cannot_tell_who_it_is_leaves_an_index_to_its_reason() -> None:
    silent = Withheld(None, EmbeddingError("no key"))
    succession = succession_of(Provider("openai", "m", silent, bare=silent))

    for made in (None, OTHER):
        with pytest.raises(EmbeddingError, match="no key"):
            succession.answering(made).embed_query("?")
    assert succession.answering(None).identity == EmbedderIdentity("openai", "m")


def test_dimensions_that_are_not_known_do_not_hide_who_made_an_index() -> None:
    assert provider_of(Far(dims=0)).makes(EmbedderIdentity("far", "m", "e", dims=64))
    assert not provider_of(Far(dims=32)).makes(EmbedderIdentity("far", "m", "e", dims=64))
    assert not provider_of(Far()).makes(EmbedderIdentity("far", "m", "elsewhere", dims=64))


def test_a_provider_is_asked_beforehand_only_to_learn_its_dimensions() -> None:
    known, unknown = Far(), Far(dims=0)

    assert provider_of(known).trouble(may_download=True) is None
    assert provider_of(unknown).trouble(may_download=True) is None
    assert (known.asked, unknown.asked) == (0, 1)
    assert unknown.identity.dims == 64


def test_a_pause_is_trouble_without_asking_and_a_person_can_end_it() -> None:
    far = Far()
    far.paused = EmbeddingError("not asked for 60 s")
    provider = provider_of(far)

    assert provider.trouble(may_download=True) is far.paused
    assert provider.fell_out() is far.paused
    assert far.asked == 0
    provider.probe(anyway=True)
    assert provider.fell_out() is None


def test_a_model_that_is_not_here_is_trouble_only_where_it_must_not_be_downloaded() -> None:
    model = NotDownloaded()
    provider = provider_of(model)

    assert "not been downloaded" in str(provider.trouble(may_download=False))
    assert provider.trouble(may_download=True) is None
    assert not provider.makes(model.identity)
    assert isinstance(provider.or_withheld(), Withheld)


@pytest.mark.parametrize(
    ("failure", "is_out"), [(EmbeddingError("broken"), True), (TransientEmbeddingError("busy"), False)]
)
def test_a_model_of_this_machine_falls_out_by_what_fails_for_good(
    failure: EmbeddingError, is_out: bool
) -> None:
    model = Moody(failure=failure)
    provider = provider_of(model)
    with pytest.raises(EmbeddingError):
        provider.embed_documents(["a"])

    assert (provider.fell_out() is not None) == is_out
    model.failure = None
    provider.embed_documents(["a"])
    assert provider.fell_out() is None


def test_a_failed_probe_counts_like_any_failure() -> None:
    provider = provider_of(Moody(failure=EmbeddingError("broken")))
    with pytest.raises(EmbeddingError):
        provider.probe()

    assert str(provider.fell_out()) == "broken"


def test_facts_come_from_who_has_them() -> None:
    assert provider_of(Far()).describe() == {"origin": "https://far.example"}
    assert provider_of(Moody()).describe() == {}


def test_the_fallback_is_made_once_and_only_when_it_is_needed() -> None:
    made = []

    def make() -> Provider:
        made.append(provider_of(Moody("fallback")))
        return made[-1]

    succession = Succession(provider_of(Moody("chosen")), fallback=make, former=lambda _: None)
    succession.answering(EmbedderIdentity("chosen", "m", dims=64))
    assert made == []
    assert succession.fallback is succession.fallback
    assert len(made) == 1
