"""A memory with a provider on another machine: who is chosen, what is said about it, and which index answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.providers import chaos
from tests.support.providers.server import KEY, Provider, serving

from plainmind import Memory
from plainmind.base.errors import ConfigError
from plainmind.base.model import SyncReport
from plainmind.sessions.transcripts import Transcripts


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider("openai")) as served:
        yield served


def config(provider: Provider, **changes: Any) -> dict[str, Any]:
    remote = {"baseUrl": provider.base_url, "apiKey": KEY, "queryTimeoutMs": 60_000}
    return {"provider": "openai", "model": "m", "remote": remote | changes.pop("remote", {})} | changes


def made_with(memory: Memory) -> str:
    with memory.index.store.reading() as reader:
        made = reader.fingerprint()
    assert made is not None
    return made.embedder.provider


def mend(memory: Memory) -> None:
    """Do what `doctor` does for whoever has mended the cause of a pause."""
    assert memory.index.providers is not None
    memory.index.providers.succession.chosen.probe(anyway=True)


def test_a_remote_provider_indexes_and_answers(workspace: Path, home: Path, provider: Provider) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        report = memory.sync()
        result = memory.search("who feeds the cat?")

    assert (len(report.indexed), report.degraded, report.fallback) == (3, (), None)
    assert (result.provider, result.model, result.mode, result.degraded) == ("openai", "m", "hybrid", ())
    assert result.hits[0].path == "memory/people.md"


def test_the_first_sync_says_where_text_goes_and_why_and_later_ones_do_not(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        (note,) = memory.search("the cat").notes
        (workspace / "MEMORY.md").write_text("# Memory\n\n- The gateway moved.\n")
        later = memory.search("the gateway")

    assert "is sent to 127.0.0.1 (openai m, chosen because `provider` is set to it by flag)" in note
    assert later.notes == ()


def test_a_key_that_the_settings_name_chooses_its_provider_and_status_says_so(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    home.mkdir()
    (home / "plainmind.json5").write_text("{models: {providers: {voyage: {apiKey: 'env:VOYAGE_API_KEY'}}}}")
    with Memory(workspace, home=home) as memory:
        facts = memory.status().as_dict()

    assert (facts["provider"], facts["model"], facts["requestedProvider"]) == (
        "voyage",
        "voyage-4-large",
        "auto",
    )
    assert facts["sendsTextTo"] == "api.voyageai.com"
    assert facts["leaves"] == [
        {"source": "memory", "to": "api.voyageai.com"},
        {"source": "questions", "to": "api.voyageai.com"},
    ]
    embedding = facts["embedding"]
    assert embedding["why"].startswith(
        "its key is in VOYAGE_API_KEY, named by `models.providers.voyage.apiKey`"
    )
    assert [over["provider"] for over in embedding["passedOver"]] == ["local", "openai", "gemini"]
    assert embedding["key"] == "set"
    assert KEY not in json.dumps(facts)


def test_two_programs_with_different_environments_do_not_fight_over_an_index(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for key in (None, KEY, None):
        if key is None:
            monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        else:
            monkeypatch.setenv("OPENAI_API_KEY", key)
        with Memory(workspace, home=home) as memory:
            report = memory.sync()
            result = memory.search("Mac Studio")
        made.append((report.rebuilt, result.provider, result.mode))

    assert [one[1:] for one in made] == [("builtin", "hybrid")] * 3
    assert [one[0] for one in made[1:]] == [None, None]


def test_status_of_the_builtin_model_says_why_it_was_chosen(memory: Memory) -> None:
    facts = memory.status().as_dict()

    assert facts["embedding"]["chosen"] == "builtin"
    assert facts["embedding"]["why"] == "no other provider is configured"
    assert len(facts["embedding"]["passedOver"]) == 4
    assert (facts["leaves"], facts["fallback"]) == ([], None)


def test_status_counts_what_was_spent(workspace: Path, home: Path, provider: Provider) -> None:
    settings = config(provider, model="text-embedding-3-large", remote={"maxTokensPerDay": 100_000})
    with Memory(workspace, home=home, config=settings) as memory:
        memory.sync()
        facts = memory.status(deep=True).as_dict()

    usage = facts["embedding"]["usage"]
    assert usage["today"] == usage["total"]
    assert usage["today"]["requests"] == len(provider.seen)
    assert usage["today"]["tokens"] > 10
    assert 0 < usage["today"]["costUsd"] < 0.001
    assert usage["maxTokensPerDay"] == 100_000
    assert facts["embedding"]["probe"] == {"ok": True}
    assert facts["embedding"]["paused"] is None


def test_a_provider_without_its_key_leaves_words_to_answer(workspace: Path, home: Path) -> None:
    with Memory(workspace, home=home, config={"provider": "voyage"}) as memory:
        result = memory.search("Mac Studio")
        facts = memory.status().as_dict()

    assert result.mode == "keyword"
    assert result.hits
    assert any("VOYAGE_API_KEY is not set" in reason for reason in result.degraded)
    assert "VOYAGE_API_KEY" in facts["embedding"]["problem"]


def test_a_key_that_is_named_and_not_there_is_no_reason_to_ask_without_it(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(
        workspace, home=home, config=config(provider, remote={"apiKey": "env:NO_SUCH_KEY"})
    ) as memory:
        result = memory.search("Mac Studio")

    assert provider.seen == []
    assert any("NO_SUCH_KEY" in reason for reason in result.degraded)


def test_settings_of_an_openclaw_json_choose_the_provider(
    workspace: Path, home: Path, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)
    theirs = {
        "models": {"providers": {"openai": {"apiKey": "${THEIR_KEY}", "baseUrl": provider.base_url}}},
        "agents": {"defaults": {"memorySearch": {"provider": "openai", "model": "m"}}},
    }
    (tmp_path / "openclaw.json").write_text(json.dumps(theirs))
    with Memory(workspace, home=home, config={"openclawConfig": str(tmp_path / "openclaw.json")}) as memory:
        result = memory.search("who feeds the cat?")
        why = memory.status()["embedding"]["why"]

    assert (result.provider, result.mode) == ("openai", "hybrid")
    assert "openclaw.json" in why


def test_dimensions_can_be_asked_for(workspace: Path, home: Path, provider: Provider) -> None:
    with Memory(workspace, home=home, config=config(provider, outputDimensionality=32)) as memory:
        memory.sync()
        assert memory.status()["vector"]["dims"] == 32
    assert provider.seen[0].payload["dimensions"] == 32


# Failing, and who takes over.


def test_without_a_fallback_a_failing_provider_leaves_the_index_and_words_answer(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        memory.sync()
        generation = memory.index.store.describe()["generation"]
        provider.key = "another"
        (workspace / "MEMORY.md").write_text("# Memory\n\n- The lighthouse keeper is called Ada.\n")
        result = memory.search("lighthouse keeper")
        again = memory.search("lighthouse keeper")
        asked = len(provider.seen)
        memory.search("lighthouse keeper")

        assert result.hits[0].path == "MEMORY.md"
        assert (result.mode, again.mode) == ("keyword", "keyword")
        assert any("refused the API key" in reason for reason in again.degraded)
        assert memory.index.store.describe()["generation"] == generation
        assert memory.status()["withoutVectors"] == 1
        assert len(provider.seen) == asked, "a refused key is not tried again and again"

        provider.key = KEY
        mend(memory)
        assert memory.search("lighthouse keeper").mode == "hybrid"
        assert memory.status()["withoutVectors"] == 0


def test_the_fallback_makes_an_index_of_its_own_and_the_provider_gets_its_back(
    workspace: Path, home: Path, provider: Provider
) -> None:
    settings = config(provider, fallback="builtin")
    with Memory(workspace, home=home, config=settings) as memory:
        memory.sync()
        provider.fault = chaos.quota_spent
        (workspace / "MEMORY.md").write_text("# Memory\n\n- The lighthouse keeper is called Ada.\n")
        report = memory.sync()
        result = memory.search("who keeps the lighthouse?")

        assert report.rebuilt
        assert report.fallback is not None
        assert (report.fallback["from"], report.fallback["to"]) == ("openai", "builtin")
        assert "quota" in report.fallback["reason"]
        assert (result.provider, result.mode, result.degraded) == ("builtin", "hybrid", ())
        assert result.fallback == report.fallback
        assert made_with(memory) == "builtin"

    with Memory(workspace, home=home, config=settings) as memory:  # another process sees the same
        result = memory.search("who keeps the lighthouse?")
        status = memory.status()
        assert result.provider == "builtin"
        assert result.fallback is not None
        assert status["fallback"]["from"] == "openai"
        assert "quota" in status["embedding"]["paused"]["because"]

        provider.fault = None
        asked = len(provider.texts)
        mend(memory)
        result = memory.search("who keeps the lighthouse?")
        assert (result.provider, result.fallback, result.mode) == ("openai", None, "hybrid")
        assert made_with(memory) == "openai"
        # The vectors of all other files were in the cache.
        assert [text for text in provider.texts[asked:] if "Hetzner" in text] == []


def test_the_fallback_is_not_used_while_the_provider_works(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider, fallback="builtin")) as memory:
        memory.sync()
        provider.script = [chaos.server_error]
        result = memory.search("the cat")

        assert (result.fallback, made_with(memory)) == (None, "openai")


def test_a_question_that_fails_is_answered_by_words_and_never_with_another_model(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider, fallback="builtin")) as memory:
        memory.sync()
        provider.fault = chaos.BAD_ANSWERS["NaN"]
        result = memory.search("who feeds the cat?")

    assert (result.provider, result.mode, result.fallback) == ("openai", "keyword", None)
    assert any(reason.startswith("vector search: ") for reason in result.degraded)
    assert result.hits[0].path == "memory/people.md"


def test_a_first_index_with_a_refused_key_is_the_fallbacks(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.key = "another"
    with Memory(workspace, home=home, config=config(provider, fallback="builtin")) as memory:
        result = memory.search("who feeds the cat?")

    assert (result.provider, result.mode) == ("builtin", "hybrid")
    assert result.fallback is not None


def test_without_index_and_fallback_a_refused_key_still_indexes_words(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.key = "another"
    with Memory(workspace, home=home, config=config(provider)) as memory:
        result = memory.search("Mac Studio")
        assert (result.mode, bool(result.hits)) == ("keyword", True)

        provider.key = KEY
        mend(memory)
        assert memory.search("Mac Studio").mode == "hybrid"


def test_a_fallback_that_does_not_work_either_is_said(
    workspace: Path, home: Path, provider: Provider
) -> None:
    provider.key = "another"
    with Memory(workspace, home=home, config=config(provider, fallback="gemini")) as memory:
        result = memory.search("Mac Studio")

    assert result.mode == "keyword"
    assert any(reason.startswith("gemini cannot take over: ") for reason in result.degraded)


def test_a_new_provider_that_fails_does_not_replace_a_good_index(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config={"provider": "builtin"}) as memory:
        memory.sync()
        before = memory.index.store.digest()
    provider.key = "another"
    with Memory(workspace, home=home, config=config(provider)) as memory:
        report = memory.sync()
        result = memory.search("who feeds the cat?")

        assert memory.index.store.digest() == before
        assert report.rebuilt is None
        assert any("refused the API key" in reason for reason in report.degraded)
        assert (result.provider, result.mode) == ("builtin", "hybrid"), (
            "the old index is asked by who made it"
        )


def test_a_provider_that_fails_half_way_does_not_replace_a_good_index(
    workspace: Path, home: Path, provider: Provider
) -> None:
    for number in range(40):
        (workspace / "memory" / f"{number}.md").write_text(f"# {number}\n\n" + f"word{number} " * 300)
    with Memory(workspace, home=home, config={"provider": "builtin"}) as memory:
        memory.sync()
        before = memory.index.store.digest()
    provider.script = [None] * 5
    provider.fault = chaos.quota_spent
    with Memory(workspace, home=home, config=config(provider)) as memory:
        report = memory.sync()
        (workspace / "MEMORY.md").write_text("# Memory\n\n- The lighthouse keeper is called Ada.\n")
        found = memory.search("who keeps the lighthouse?")

        assert report.rebuilt is None
        assert memory.index.store.digest() != before, "what is new goes into the old index"
        assert (found.hits[0].path, made_with(memory)) == ("MEMORY.md", "builtin")
        provider.fault = None
        sent = len(provider.texts)
        mend(memory)
        assert memory.sync().rebuilt is not None
        again = set(provider.texts[sent:])
        assert made_with(memory) == "openai"
        # What the requests before the failure brought was kept.
        assert len(again) < len(set(provider.texts))


def test_a_change_of_the_model_is_noticed_explained_and_made_beside_the_old_index(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        memory.sync()
    with Memory(workspace, home=home, config=config(provider, model="other")) as memory:
        pending = memory.status()["pending"]["rebuild"]
        report = memory.sync()

    assert "embedding model m → other" in str(report.rebuilt)
    assert "embedding model m → other" in pending


def test_dimensions_that_are_not_known_are_no_reason_to_make_an_index_anew(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        memory.sync()
        before = memory.index.store.digest()
    for path in home.glob("remote.sqlite*"):
        path.unlink()
    provider.fault = chaos.bad_gateway_page
    with Memory(workspace, home=home, config=config(provider)) as memory:
        report = memory.sync()
        assert report.rebuilt is None
        assert memory.index.store.digest() == before
        assert memory.search("Mac Studio").hits

    provider.fault = None
    with Memory(workspace, home=home, config=config(provider)) as memory:
        mend(memory)
        assert memory.sync().rebuilt is None
        assert memory.search("who feeds the cat?").mode == "hybrid"


def test_another_model_behind_the_same_address_is_noticed(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        memory.sync()
        provider.dims = 48
        memory.status(deep=True)
        report = memory.sync()

        assert "vector dimensions 64 → 48" in str(report.rebuilt)
        assert memory.search("who feeds the cat?").mode == "hybrid"


def test_a_model_that_is_not_downloaded_is_not_downloaded_by_a_search(workspace: Path, home: Path) -> None:
    settings = {"provider": "local", "local": {"modelPath": "hf:org/repo/model.gguf"}}
    with Memory(workspace, home=home, config=settings) as memory:
        result = memory.search("Mac Studio")
        facts = memory.status().as_dict()

    assert result.hits
    assert any("has not been downloaded yet" in reason for reason in result.degraded)
    assert "has not been downloaded yet" in facts["embedding"]["problem"]


def test_a_local_model_that_is_gone_leaves_words_to_answer_and_takes_the_fallback(
    workspace: Path, home: Path
) -> None:
    settings = {"provider": "local", "local": {"modelPath": str(home / "gone.gguf")}}
    with Memory(workspace, home=home, config=settings) as memory:
        words = memory.search("Mac Studio")
    with Memory(workspace, home=home, config={**settings, "fallback": "builtin"}) as memory:
        meaning = memory.search("Mac Studio")

    assert (words.mode, bool(words.hits)) == ("keyword", True)
    assert (meaning.mode, meaning.provider) == ("hybrid", "builtin")
    assert meaning.fallback is not None


# Money.


def many_notes(workspace: Path, *, words: int = 60_000) -> None:
    for number in range(20):
        lines = "\n".join(f"note{number} line{line} " + "lorem " * 12 for line in range(words // 300))
        (workspace / "memory" / f"long{number}.md").write_text(f"# Long {number}\n\n{lines}\n")


def test_an_expensive_rebuild_waits_for_a_yes_and_the_old_index_answers(
    workspace: Path, home: Path, provider: Provider
) -> None:
    many_notes(workspace)
    with Memory(workspace, home=home, config={"provider": "builtin"}) as memory:
        memory.sync()
    settings = config(provider, model="text-embedding-3-large", remote={"confirmAboveUsd": 0.001})
    shown = []

    def refuse(cost):
        shown.append(cost)
        return False

    with Memory(workspace, home=home, config=settings) as memory:
        report = memory.sync(confirm=refuse)
        unasked = memory.sync()
        result = memory.search("line7 of note3")

        assert made_with(memory) == "builtin"
        assert (result.provider, result.mode) == ("builtin", "hybrid")
        assert [cost.needs_yes for cost in shown] == [True]
        assert 50_000 < shown[0].tokens < 500_000
        assert shown[0].usd == pytest.approx(shown[0].tokens * 0.13 / 1e6)
        for said in (report, unasked):
            assert any("needs your yes" in reason and "sync --yes" in reason for reason in said.degraded)
        assert provider.texts == ["Does this work?"], "once, to learn its dimensions"

        agreed = memory.sync(confirm=bool)
        assert agreed.rebuilt
        assert made_with(memory) == "openai"


def test_what_is_in_the_cache_costs_nothing(workspace: Path, home: Path, provider: Provider) -> None:
    many_notes(workspace)
    settings = config(provider, model="text-embedding-3-large")
    with Memory(workspace, home=home, config=settings) as memory:
        memory.sync()
    expensive = config(provider, model="text-embedding-3-large", remote={"confirmAboveUsd": 0})
    with Memory(workspace, home=home, config=expensive) as memory:
        report = memory.sync(force=True)

    assert (report.rebuilt, report.degraded) == ("asked for", ())


def test_a_search_does_not_begin_a_large_rebuild(workspace: Path, home: Path, provider: Provider) -> None:
    many_notes(workspace, words=180_000)
    with Memory(workspace, home=home, config={"provider": "builtin"}) as memory:
        memory.sync()
    with Memory(workspace, home=home, config=config(provider)) as memory:
        result = memory.search("line7 of note3")

        assert (result.provider, result.mode) == ("builtin", "hybrid")
        assert any("too much before a search: `plainmind sync` does it" in said for said in result.degraded)
        assert len(provider.texts) == 1
        assert memory.sync().rebuilt
        assert memory.search("line7 of note3").provider == "openai"


def test_new_notes_that_are_too_expensive_go_in_without_vectors_and_are_written_once(
    workspace: Path, home: Path, provider: Provider
) -> None:
    settings = config(provider, model="text-embedding-3-large", remote={"confirmAboveUsd": 0.001})
    with Memory(workspace, home=home, config=settings) as memory:
        memory.sync()
        many_notes(workspace)
        report = memory.sync()
        again = memory.sync()

        assert len(report.indexed) == 20
        assert again.indexed == ()
        assert memory.status()["withoutVectors"] == 20
        assert memory.search("line7 of note3").hits
        assert memory.sync(confirm=bool).indexed
        assert memory.status()["withoutVectors"] == 0


def test_the_tokens_of_a_day_are_not_overrun(workspace: Path, home: Path, provider: Provider) -> None:
    many_notes(workspace)
    with Memory(workspace, home=home, config=config(provider, remote={"maxTokensPerDay": 20_000})) as memory:
        report = memory.sync()
        result = memory.search("line7 of note3")
        usage = memory.status()["embedding"]["usage"]

    assert any("of 20,000 tokens of today are used" in reason for reason in report.degraded)
    assert usage["today"]["tokens"] <= 20_000
    assert result.hits


# Transcripts.


def transcript(folder: Path) -> None:
    folder.mkdir()
    line = {"type": "message", "message": {"role": "user", "content": "the lighthouse is haunted"}}
    (folder / "one.jsonl").write_text(json.dumps(line) + "\n")


def remembering(workspace: Path, home: Path, folder: Path, settings: dict[str, Any]) -> Memory:
    flags = {**settings, "sources": ["memory", "sessions"]}
    return Memory.from_environment(
        {},
        workspace=str(workspace),
        home=str(home),
        config=flags,
        cwd=str(workspace),
        more_sources=[Transcripts(str(folder))],
    )


def test_transcripts_are_sent_only_with_consent_and_words_find_them_without(
    workspace: Path, home: Path, tmp_path: Path, provider: Provider
) -> None:
    transcript(tmp_path / "sessions")
    with remembering(workspace, home, tmp_path / "sessions", config(provider)) as memory:
        memory.sync()
        found = memory.search("lighthouse")
        facts = memory.status().as_dict()

        assert [text for text in provider.texts if "haunted" in text] == []
        assert found.hits[0].source == "sessions"
        assert found.degraded == ()
        assert facts["leaves"] == [
            {"source": "memory", "to": "127.0.0.1"},
            {"source": "questions", "to": "127.0.0.1"},
        ]
        assert facts["withoutVectors"] == 0

    agreed = config(provider, remote={"sendSessions": True})
    with remembering(workspace, home, tmp_path / "sessions", agreed) as memory:
        report = memory.sync()
        assert "sessions by words" in str(report.rebuilt)
        assert [text for text in provider.texts if "haunted" in text]
        assert {"source": "sessions", "to": "127.0.0.1"} in memory.status()["leaves"]


def test_a_model_of_this_machine_may_embed_transcripts(workspace: Path, home: Path, tmp_path: Path) -> None:
    transcript(tmp_path / "sessions")
    with remembering(workspace, home, tmp_path / "sessions", {"provider": "builtin"}) as memory:
        memory.sync()
        assert memory.index.indexer.withheld == []
        result = memory.search("ghosts in a tower by the sea", min_score=0, sources=["sessions"])
    assert result.hits


# Forgetting, checking, closing.


def test_forgetting_reaches_the_cache_of_a_provider_that_is_no_longer_used(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        memory.sync()
        cache = memory.index.cache
        assert cache is not None
        entries = cache.describe()["entries"]
    with Memory(workspace, home=home, config={"provider": "builtin"}) as memory:
        memory.sync()
        memory.forget("Anna feeds the cat")
    with Memory(workspace, home=home, config=config(provider)) as memory:
        cache = memory.index.cache
        assert cache is not None
        assert cache.describe()["entries"] == entries - 1


def test_the_doctor_asks_the_provider_and_ends_its_pause(
    workspace: Path, home: Path, provider: Provider
) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        memory.sync()
        provider.key = "another"
        memory.search("a question of its own")
        bad = {check.name: check for check in memory.doctor()}
        provider.key = KEY
        good = {check.name: check for check in memory.doctor(verify=True)}

    assert bad["embedder"].verdict == "problem"
    assert "refused the API key" in bad["embedder"].detail
    assert good["embedding"].verdict == "ok"
    assert "chosen because" in good["embedding"].detail
    assert good["index equals files"].verdict == "ok"


def test_a_wrong_address_is_an_error_of_the_configuration(workspace: Path, home: Path) -> None:
    settings = {"provider": "openai", "remote": {"baseUrl": "https://user:secret@example.com/v1"}}
    with Memory(workspace, home=home, config=settings) as memory, pytest.raises(ConfigError) as caught:
        memory.search("anything")

    assert "secret" not in str(caught.value)
    assert caught.value.key == "remote.baseUrl"


def test_callers_without_wishes_still_share_a_sync(workspace: Path, home: Path, provider: Provider) -> None:
    with Memory(workspace, home=home, config=config(provider)) as memory:
        reports: list[SyncReport] = [memory.sync(), memory.sync(wait=False)]
        memory.close()
        memory.close()

    assert [len(report.indexed) for report in reports] == [3, 0]
