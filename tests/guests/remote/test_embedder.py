"""How a remote provider is asked: in groups, several at once, within budget, and no more after it has failed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.providers import chaos
from tests.support.providers.clients import embedder_of, settings_for
from tests.support.providers.failed import failing
from tests.support.providers.server import DIALECTS, KEY, Handler, Provider, serving, unit_vector_for
from tests.support.waiting import until

from plainmind.base.errors import BadVector, ConfigError, EmbeddingError
from plainmind.guests.net.failures import Abandoned, KeyRefused, RequestRefused, ServerTrouble, TextTooLong
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.embedder import RemoteEmbedder
from plainmind.guests.remote.failures import BudgetSpent, ProviderPaused, TextRefused
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import wire_for

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider("openai")) as served:
        yield served


def near(vector: object, text: str) -> bool:
    return vector is not None and list(vector) == pytest.approx(list(unit_vector_for(text)), abs=1e-6)  # type: ignore[call-overload]


def test_texts_travel_in_groups_and_four_at_once(provider: Provider, tmp_path: Path) -> None:
    everybody = threading.Barrier(4)

    def met(handler: Handler, answer: dict[str, Any]) -> None:
        everybody.wait(60)
        handler.reply_json(200, answer)

    provider.script = [None, met, met, met, met]  # the first tells how long its vectors are
    texts = [f"{number:04d}" * 25 for number in range(160)]  # 100 characters each
    with embedder_of(provider, tmp_path, tokens_per_request=1_000) as embedder:
        vectors = embedder.embed_documents(texts)

    assert [len(seen.texts) for seen in provider.seen] == [10] * 16
    assert provider.most_in_flight == 4
    assert provider.connections == 4
    assert all(near(vector, text) for vector, text in zip(vectors, texts, strict=True))


def test_a_text_that_stands_twice_is_asked_for_once(provider: Provider, tmp_path: Path) -> None:
    with embedder_of(provider, tmp_path) as embedder:
        first, second, third = embedder.embed_documents(["one", "two", "one"])

    assert provider.texts == ["one", "two"]
    assert first == third != second


def test_the_provider_is_told_what_is_a_question_where_it_wants_to_know(tmp_path: Path) -> None:
    modes = {}
    for dialect in DIALECTS:
        with serving(Provider(dialect)) as provider, embedder_of(provider, tmp_path / dialect) as embedder:
            embedder.embed_query("where?")
            embedder.embed_documents(["here"])
            modes[dialect] = [seen.mode for seen in provider.seen]

    assert modes == {
        "openai": [None, None],
        "gemini": ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"],
        "voyage": ["query", "document"],
    }


def test_a_compatible_server_is_sent_nothing_that_it_might_not_know(
    provider: Provider, tmp_path: Path
) -> None:
    with embedder_of(provider, tmp_path, model="nomic-embed-text") as embedder:
        embedder.embed_documents(["one"])

    assert provider.seen[0].payload == {"model": "nomic-embed-text", "input": ["one"]}


def test_a_server_without_usage_index_and_key_works(provider: Provider, tmp_path: Path) -> None:
    provider.tells_usage = provider.tells_index = False
    provider.key = None
    with embedder_of(provider, tmp_path, api_key=None) as embedder:
        assert near(embedder.embed_documents(["one"])[0], "one")
        assert embedder.describe()["tokensToday"] == 1  # a guess is better than nothing

    assert "Authorization" not in provider.seen[0].headers


def test_headers_are_sent_and_can_replace_the_usual_one(provider: Provider, tmp_path: Path) -> None:
    headers = {"authorization": f"Bearer {KEY}", "X-Team": "garden"}
    with embedder_of(provider, tmp_path, api_key="sk-not-this-one", headers=headers) as embedder:
        embedder.embed_query("where?")

    shown = provider.seen[0].headers
    assert shown["X-Team"] == "garden"
    assert [value for name, value in shown.items() if name.lower() == "authorization"] == [f"Bearer {KEY}"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dimensions_are_asked_for_and_held(dialect: str, tmp_path: Path) -> None:
    with serving(Provider(dialect)) as provider, embedder_of(provider, tmp_path, dims=16) as embedder:
        assert embedder.identity.dims == 16
        assert len(embedder.embed_query("where?")) == 16


def test_a_server_that_ignores_dimensions_is_an_error_that_says_so(
    provider: Provider, tmp_path: Path
) -> None:
    provider.fault = chaos.NEEDS_KNOWN_DIMS["wrong dims"]
    with embedder_of(provider, tmp_path, dims=16) as embedder, pytest.raises(BadVector) as caught:
        embedder.embed_query("where?")

    assert "3 dimensions instead of 16" in str(caught.value)
    assert "outputDimensionality" in str(caught.value.hint)


def test_dimensions_are_learnt_from_the_first_answer_and_by_the_next_process(
    provider: Provider, tmp_path: Path
) -> None:
    with embedder_of(provider, tmp_path, model="unheard-of") as embedder:
        assert embedder.identity.dims == 0
        embedder.embed_query("where?")
        assert embedder.identity.dims == 64

    with embedder_of(provider, tmp_path, model="unheard-of") as embedder:
        assert embedder.identity.dims == 64
        provider.dims = 32
        with pytest.raises(BadVector, match="32 dimensions instead of 64"):
            embedder.embed_query("where?")
        assert embedder.probe() == 32
        assert len(embedder.embed_query("where?")) == 32


def test_the_size_of_a_known_model_at_its_own_address_needs_no_request(tmp_path: Path) -> None:
    sizes = {}
    for dialect in DIALECTS:
        settings = RemoteSettings(api_key=KEY)
        ledger = Ledger(str(tmp_path / "ledger.sqlite"))
        embedder = RemoteEmbedder(wire_for(dialect, settings), settings, ledger)
        sizes[dialect] = embedder.identity.dims
        embedder.close()

    assert sizes == {"openai": 1536, "gemini": 3072, "voyage": 1024}


def test_the_identity_counts_where_and_what_but_no_credential(provider: Provider, tmp_path: Path) -> None:
    def endpoint(**changes: object) -> str:
        with embedder_of(provider, tmp_path, **changes) as embedder:
            return embedder.identity.endpoint

    usual = endpoint()
    assert endpoint(api_key="another") == usual
    assert endpoint(base_url=provider.base_url + "/") == usual
    assert endpoint(model="other") != usual
    assert endpoint(base_url=provider.base_url + "/other") != usual
    named = endpoint(headers={"X-Team": "a"})
    assert named != usual
    assert endpoint(headers={"x-team": "b"}) == named


def test_no_key_for_a_provider_that_needs_one_is_said_without_a_request(tmp_path: Path) -> None:
    settings = RemoteSettings()
    embedder = RemoteEmbedder(wire_for("voyage", settings), settings, Ledger(str(tmp_path / "l.sqlite")))
    with failing(KeyRefused) as caught:
        embedder.embed_query("where?")
    embedder.close()

    assert "VOYAGE_API_KEY" in str(caught.value.hint)


def test_an_unknown_provider_is_named_in_the_error() -> None:
    with pytest.raises(ConfigError, match="cohere"):
        wire_for("cohere", RemoteSettings())


# Texts that the provider does not take


def test_a_text_that_is_too_long_is_cut_by_halves_and_told(provider: Provider, tmp_path: Path) -> None:
    provider.longest_text = 100
    long = "gateway bread " * 20  # 280 characters
    with embedder_of(provider, tmp_path) as embedder:
        first, second, third = embedder.embed_documents(["short one", long, "another short one"])
        assert near(first, "short one")
        assert near(second, long[:70])
        assert near(third, "another short one")
        assert embedder.describe()["cutTexts"] == 2
        assert near(embedder.embed_query(long), long[:70])


def test_a_server_that_finds_everything_too_long_is_an_error_in_the_end(
    provider: Provider, tmp_path: Path
) -> None:
    provider.longest_text = 3
    with embedder_of(provider, tmp_path) as embedder, failing(TextTooLong):
        embedder.embed_query("a question of some words and then some more of them to be cut")
    assert len(provider.seen) < 5


def test_a_text_that_is_refused_has_no_vector_and_is_not_asked_for_again(
    provider: Provider, tmp_path: Path
) -> None:
    provider.poison = "poison"
    texts = ["good one", "some poison here", "good two"]
    for _ in range(2):
        with embedder_of(provider, tmp_path) as embedder:
            first, second, third = embedder.embed_documents(texts)
            assert near(first, "good one")
            assert second is None
            assert near(third, "good two")

    assert provider.texts.count("some poison here") == 2  # in company and alone, and not the second time


def test_a_question_that_is_refused_is_an_error_and_pauses_nothing(
    provider: Provider, tmp_path: Path
) -> None:
    provider.poison = "poison"
    with embedder_of(provider, tmp_path) as embedder:
        with failing(TextRefused):
            embedder.embed_query("is there poison?")
        assert embedder.embed_query("is there bread?")


def test_a_request_that_is_refused_whatever_the_text_pauses_the_provider(
    provider: Provider, tmp_path: Path
) -> None:
    provider.fault = lambda handler, _: handler.reply_json(400, {"error": {"message": "no such parameter"}})
    with embedder_of(provider, tmp_path) as embedder:
        with failing(RequestRefused, match="no such parameter"):
            embedder.embed_documents(["one", "two"])
        with failing(ProviderPaused, match="no such parameter"):
            embedder.embed_documents(["one", "two"])

    assert len(provider.seen) == 2  # as it was, and once with a harmless text


# Pauses and budgets


def test_five_failed_calls_pause_a_provider_and_a_good_trial_ends_the_pause(
    provider: Provider, tmp_path: Path
) -> None:
    clock = [1_000_000.0]
    provider.fault = chaos.server_error
    with embedder_of(provider, tmp_path, now=lambda: clock[0]) as embedder:
        for _ in range(5):
            with failing(ServerTrouble):
                embedder.embed_query("where?")
        with failing(ProviderPaused):
            embedder.embed_query("where?")
        asked = len(provider.seen)
        assert asked == 5 * 2
        assert embedder.describe()["pausedForSeconds"] == 60

        clock[0] += 61
        with failing(ServerTrouble):
            embedder.embed_query("where?")
        assert len(provider.seen) == asked + 1  # one trial, without retries
        assert embedder.describe()["pausedForSeconds"] == 120

        clock[0] += 121
        provider.fault = None
        provider.seen.clear()
        texts = [f"{number} " + "word " * 100 for number in range(40)]
        assert None not in embedder.embed_documents(texts)  # the first alone, then four at once
        assert embedder.describe()["pausedForSeconds"] == 0


def test_a_person_can_end_a_pause(provider: Provider, tmp_path: Path) -> None:
    provider.script = [chaos.quota_spent]
    with embedder_of(provider, tmp_path) as embedder:
        with pytest.raises(EmbeddingError):
            embedder.embed_query("where?")
        with failing(ProviderPaused):
            embedder.probe()
        assert embedder.probe(anyway=True) == 64


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_another_process_does_not_ask_a_provider_that_has_just_refused_the_key(
    provider: Provider, tmp_path: Path
) -> None:
    provider.key = "another"
    with embedder_of(provider, tmp_path) as embedder, failing(KeyRefused):
        embedder.embed_query("where?")

    program = f"""
from pathlib import Path
from tests.support.providers.clients import embedder_of
from tests.support.providers.server import Provider
provider = Provider("openai", base_url={provider.base_url!r})
with embedder_of(provider, Path({str(tmp_path)!r})) as embedder:
    try:
        embedder.embed_query("where?")
    except Exception as error:
        print(type(error.__cause__).__name__, error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )

    assert run.stdout.startswith("ProviderPaused")
    assert KEY not in run.stdout + run.stderr
    assert len(provider.seen) == 1


def test_no_request_is_sent_that_would_exceed_the_tokens_of_a_day(provider: Provider, tmp_path: Path) -> None:
    clock = [1_000_000.0]
    with embedder_of(provider, tmp_path, max_tokens_per_day=100, now=lambda: clock[0]) as embedder:
        embedder.embed_query("word " * 40)  # 50 tokens
        with failing(BudgetSpent) as caught:
            embedder.embed_query("word " * 60)
        assert "100" in str(caught.value)
        embedder.embed_query("a short one is still possible")
        assert len(provider.seen) == 2
        assert embedder.describe()["pausedForSeconds"] == 0

        clock[0] += 86_400
        embedder.embed_query("word " * 60)


def test_tokens_and_cost_are_counted_as_the_provider_says(provider: Provider, tmp_path: Path) -> None:
    with embedder_of(provider, tmp_path, model="text-embedding-3-large") as embedder:
        embedder.embed_documents(["word " * 400] * 3 + ["other " * 1000])
        facts = embedder.describe()

    assert facts["requestsToday"] == 1
    assert facts["tokensToday"] == 500 + 1500
    assert facts["costTodayUsd"] == pytest.approx(2000 * 0.13 / 1_000_000)


def test_requests_that_were_not_served_cost_nothing(provider: Provider, tmp_path: Path) -> None:
    provider.script = [chaos.server_error, chaos.rate_limited]
    with embedder_of(provider, tmp_path) as embedder:
        embedder.embed_documents(["word " * 40])
        facts = embedder.describe()

    assert (facts["requestsToday"], facts["failuresToday"], facts["tokensToday"]) == (3, 2, 50)


def test_with_a_budget_nothing_is_asked_that_cannot_be_counted(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "remote.sqlite").mkdir()
    with embedder_of(provider, tmp_path) as embedder:
        assert embedder.embed_query("where?")
        assert "ledger" in str(embedder.describe()["trouble"])
    with embedder_of(provider, tmp_path, max_tokens_per_day=1_000_000) as embedder:
        embedder.describe()
        with failing(BudgetSpent, match="cannot be counted"):
            embedder.embed_query("where?")


# Ends


@pytest.mark.parametrize("count", [4, 12], ids=["all under way", "some in the queue"])
def test_closing_gives_up_what_is_under_way(provider: Provider, tmp_path: Path, count: int) -> None:
    provider.fault = chaos.silence
    outcome: list[BaseException] = []
    with embedder_of(provider, tmp_path, batch_timeout_s=60, tokens_per_request=10) as embedder:

        def work() -> None:
            try:
                embedder.embed_documents([f"text number {number}" for number in range(count)])
            except EmbeddingError as error:
                outcome.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: provider.in_flight == 4)
        embedder.close()
        thread.join()

    assert isinstance(outcome[0].__cause__, Abandoned)


def test_waiting_for_ones_turn_is_not_counted_as_waiting_for_the_provider(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []
    send = Transport.send

    def noted(self: Transport, *args: Any, deadline: float, **options: Any) -> Any:
        deadlines.append(deadline)
        return send(self, *args, deadline=deadline, **options)

    monkeypatch.setattr(Transport, "send", noted)
    provider.latency_s = 0.1
    with embedder_of(provider, tmp_path, concurrency=2, tokens_per_request=10) as embedder:
        vectors = embedder.embed_documents([f"text number {number}" for number in range(10)])

    assert None not in vectors
    assert provider.most_in_flight == 2
    assert len(deadlines) == 10
    assert max(deadlines) - min(deadlines) >= 4 * 0.1  # before the last, four others had their turn


def test_a_question_does_not_queue_behind_documents(provider: Provider, tmp_path: Path) -> None:
    answered = threading.Event()

    def held(handler: Handler, answer: dict[str, Any]) -> None:
        answered.wait(60)
        handler.reply_json(200, answer)

    with embedder_of(provider, tmp_path, concurrency=2, tokens_per_request=10) as embedder:
        embedder.probe()
        provider.script = [held, held]
        provider.seen.clear()
        thread = threading.Thread(
            target=embedder.embed_documents, args=([f"text number {number}" for number in range(8)],)
        )
        thread.start()
        until(lambda: not provider.script)
        embedder.embed_query("where?")
        asked_before = [text for text in provider.texts if text != "where?"]
        answered.set()
        thread.join()

    assert len(asked_before) == 2


def test_the_first_failure_stops_the_requests_beside_it(provider: Provider, tmp_path: Path) -> None:
    provider.script = [chaos.silence, chaos.silence, chaos.quota_spent]
    with embedder_of(provider, tmp_path, batch_timeout_s=60, tokens_per_request=10) as embedder:
        embedder_started = time.monotonic()
        with pytest.raises(EmbeddingError, match="quota"):
            embedder.embed_documents([f"text number {number}" for number in range(12)])

    assert time.monotonic() - embedder_started < 25  # the others would have been silent for 30 s
    assert len(provider.seen) < 12


def test_no_thread_and_no_socket_is_left_behind(tmp_path: Path) -> None:
    def held() -> set[object]:
        folder = Path("/proc/self/fd")
        opened = {_target(folder / name) for name in os.listdir(folder)}
        return {name for name in opened if name.startswith("socket:")} | set(threading.enumerate())

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    before = held()
    with serving(Provider("openai")) as provider:
        provider.script = [
            None,
            chaos.reset_mid_body,
            None,
            chaos.BAD_ANSWERS["NaN"],
            None,
            chaos.bad_gateway_page,
        ]
        with embedder_of(provider, tmp_path, tokens_per_request=10) as embedder:
            for _ in range(3):
                try:
                    embedder.embed_documents([f"text number {number}" for number in range(6)])
                except EmbeddingError:
                    continue
    # The server's own threads see the end of their connections, sooner or later.
    until(lambda: held() <= before)


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def test_settings_and_embedder_do_not_show_the_key(provider: Provider, tmp_path: Path) -> None:
    settings = settings_for(provider, headers={"X-Secret": "hidden-value"}, proxy="http://u:pw@proxy:1")
    with embedder_of(provider, tmp_path, headers={"X-Secret": "hidden-value"}) as embedder:
        shown = repr(settings) + repr(embedder) + repr(embedder.describe())

    assert KEY not in shown
    assert "hidden-value" not in shown
    assert "pw" not in shown
