"""Whatever a provider answers: no bad vector comes out, and every vector belongs to its text."""

from __future__ import annotations

import logging
import random
import time
import traceback
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.providers import chaos
from tests.support.providers.clients import embedder_of, settings_for
from tests.support.providers.failed import failing
from tests.support.providers.server import DIALECTS, KEY, Provider, serving, unit_vector_for

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import Vector
from plainmind.guests.net.failures import QuotaSpent, RedirectRefused, TimedOut
from plainmind.guests.remote.embedder import RemoteEmbedder
from plainmind.guests.remote.failures import ProviderPaused

TEXTS = [f"note {number} about the gateway, the bread and the number {number * 7}" for number in range(9)]
CANARY = "xylophone-quartz-canary"


@pytest.fixture(params=DIALECTS)
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    with serving(Provider(request.param)) as served:
        yield served


def assert_right(texts: list[str], vectors: list[Vector | None]) -> None:
    for text, vector in zip(texts, vectors, strict=True):
        assert vector is not None
        assert list(vector) == pytest.approx(list(unit_vector_for(text)), abs=1e-6)


@pytest.mark.parametrize("name", chaos.RETRYABLE)
def test_a_passing_fault_is_retried_and_the_vectors_are_right(
    provider: Provider, tmp_path: Path, name: str
) -> None:
    provider.script = [chaos.RETRYABLE[name]] * 2
    with embedder_of(provider, tmp_path) as embedder:
        assert_right(TEXTS, embedder.embed_documents(TEXTS))
    assert len(provider.seen) == 3


@pytest.mark.parametrize("name", chaos.RETRYABLE)
def test_a_lasting_fault_is_an_error_after_four_attempts(
    provider: Provider, tmp_path: Path, name: str
) -> None:
    provider.fault = chaos.RETRYABLE[name]
    with embedder_of(provider, tmp_path) as embedder, pytest.raises(EmbeddingError):
        embedder.embed_documents(["the gateway"])
    assert len(provider.seen) == 4


def test_a_question_is_tried_twice_because_somebody_waits_and_words_can_answer(
    provider: Provider, tmp_path: Path
) -> None:
    provider.fault = chaos.RETRYABLE["500"]
    with embedder_of(provider, tmp_path) as embedder, pytest.raises(EmbeddingError):
        embedder.embed_query("where?")
    assert len(provider.seen) == 2


@pytest.mark.parametrize("name", chaos.BAD_ANSWERS | chaos.NEEDS_KNOWN_DIMS)
def test_a_bad_answer_is_an_error_and_is_not_paid_for_again_at_once(
    provider: Provider, tmp_path: Path, name: str
) -> None:
    with embedder_of(provider, tmp_path) as embedder:
        embedder.probe()
        provider.script = [(chaos.BAD_ANSWERS | chaos.NEEDS_KNOWN_DIMS)[name]]
        with pytest.raises(EmbeddingError) as caught:
            embedder.embed_documents(TEXTS)
        assert len(provider.seen) == 2
        assert len(str(caught.value)) < 400
        assert caught.value.hint

        assert_right(TEXTS, embedder.embed_documents(TEXTS))


@pytest.mark.parametrize("name", chaos.HARMLESS)
def test_vectors_in_another_order_or_without_numbers_find_their_texts(
    provider: Provider, tmp_path: Path, name: str
) -> None:
    provider.fault = chaos.HARMLESS[name]
    with embedder_of(provider, tmp_path, concurrency=1) as embedder:
        assert_right(TEXTS, embedder.embed_documents(TEXTS))


@pytest.mark.parametrize("name", chaos.SLOW)
@pytest.mark.parametrize("provider", ["openai"], indirect=True)
def test_the_deadline_is_for_the_whole_exchange(provider: Provider, tmp_path: Path, name: str) -> None:
    provider.fault = chaos.SLOW[name]
    with embedder_of(provider, tmp_path, query_timeout_s=1.0) as embedder:
        started = time.monotonic()
        with failing(TimedOut):
            embedder.embed_query("where?")

    # The provider would go on for 16 s and more.
    assert 0.9 < time.monotonic() - started < 12
    assert len(provider.seen) <= 1


def test_one_bad_request_of_many_returns_nothing(provider: Provider, tmp_path: Path) -> None:
    texts = [f"{number} " + "word " * 200 for number in range(40)]
    with embedder_of(provider, tmp_path, tokens_per_request=2_000) as embedder:
        embedder.probe()
        provider.script = [None] * 7 + [chaos.BAD_ANSWERS["zero vector"]]
        kept: dict[str, Vector] = {}
        with pytest.raises(EmbeddingError, match="length zero"):
            embedder.embed_documents(texts, keep=kept.update)

    assert 0 < len(kept) < len(texts)
    assert_right(list(kept), list(kept.values()))


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_through_a_storm_of_faults_every_vector_belongs_to_its_text(
    provider: Provider, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    storm = [*(chaos.RETRYABLE | chaos.BAD_ANSWERS | chaos.HARMLESS | chaos.NEEDS_KNOWN_DIMS).items()]
    storm = [fault for name, fault in storm if name not in ("gzip bomb", "50 MB")]
    clock = [1_000_000.0]
    rounds, failures = 60, 0
    with embedder_of(provider, tmp_path, tokens_per_request=300, now=lambda: clock[0]) as embedder:
        embedder.probe()
        for _ in range(rounds):
            clock[0] += 7200  # no pause lasts as long
            texts = [f"{chance.random()} {text}" for text in chance.sample(TEXTS, 6)]
            provider.script = [chance.choice(storm) if chance.random() < 0.3 else None for _ in range(12)]
            try:
                vectors = embedder.embed_documents(texts)
            except EmbeddingError:
                failures += 1
            else:
                assert_right(texts, vectors)

    assert 0 < failures < rounds
    assert len(provider.seen) <= rounds * 6 * 4


def test_a_spent_quota_is_asked_three_times_an_hour_at_most(provider: Provider, tmp_path: Path) -> None:
    provider.fault = chaos.quota_spent
    clock = [1_000_000.0]
    raised: list[EmbeddingError] = []
    for minute in range(60):
        clock[0] = 1_000_000.0 + minute * 60
        # A new embedder each time: what was learnt must not die with a process.
        with embedder_of(provider, tmp_path, now=lambda: clock[0]) as embedder:
            with pytest.raises(EmbeddingError) as caught:
                embedder.embed_query("where?")
            raised.append(caught.value)

    assert isinstance(raised[0].__cause__, QuotaSpent)
    assert isinstance(raised[1].__cause__, ProviderPaused)
    assert "quota" in str(raised[1])
    assert len(provider.seen) == 3


def test_another_key_is_another_chance(provider: Provider, tmp_path: Path) -> None:
    with embedder_of(provider, tmp_path, api_key="sk-wrong") as embedder:
        for _ in range(3):
            with pytest.raises(EmbeddingError):
                embedder.embed_query("where?")
    assert len(provider.seen) == 1

    with embedder_of(provider, tmp_path) as embedder:
        assert embedder.embed_query("where?")


def test_a_redirect_is_not_followed_and_the_key_stays_home(provider: Provider, tmp_path: Path) -> None:
    with serving(Provider(provider.dialect)) as elsewhere:
        provider.fault = chaos.redirect(elsewhere.base_url + "/embeddings")
        with embedder_of(provider, tmp_path) as embedder, failing(RedirectRefused):
            embedder.embed_query("where?")

        assert elsewhere.connections == 0
    assert len(provider.seen) == 1


@pytest.mark.timeout(60)
def test_neither_key_nor_note_shows_in_anything_that_people_see(
    provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    text = f"my password is {CANARY} and nobody knows"
    for number, (name, fault) in enumerate(chaos.FAULTS.items()):
        if name in chaos.SLOW or name in ("gzip bomb", "50 MB"):
            continue
        provider.script = [fault] * 4
        with embedder_of(provider, tmp_path / str(number)) as embedder:
            shown += _attempt(embedder, text)
            shown += [repr(embedder), repr(embedder.describe()), repr(embedder.identity)]
    provider.script, provider.poison, provider.key = [], CANARY, KEY
    with embedder_of(provider, tmp_path / "poison") as embedder:
        shown += _attempt(embedder, text)
    provider.key = "another"
    with embedder_of(provider, tmp_path / "refused") as embedder:
        shown += _attempt(embedder, text)
    shown += [repr(settings_for(provider)), caplog.text, *capfd.readouterr()]
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    assert not [one for one in shown if KEY in one or CANARY in one or KEY[3:] in one]
    assert KEY.encode() not in stored
    assert CANARY.encode() not in stored


def _attempt(embedder: RemoteEmbedder, text: str) -> list[str]:
    try:
        made = embedder.embed_query(text)
    except EmbeddingError as error:
        return [str(error), repr(error), str(error.hint), "".join(traceback.format_exception(error))]
    assert isinstance(made, array)
    return []
