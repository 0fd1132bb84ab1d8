"""Entries are stored once, recalled by those who may see them, and forgotten without a trace."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.guests.entries.conftest import files_with
from tests.support.hashing_embedder import HashingEmbedder, UnreliableEmbedder

from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import EVERY_SCOPE, PRIVATE, SHARED, EmbedderIdentity
from plainmind.guests.entries.memory import EntryMemory, open_entries
from plainmind.index.drivers.memory import MemoryStore
from plainmind.text.sentences import same_words

GROUP = "group:42"
LANCEDB = "plainmind.guests.lancedb.store:LanceStore"


@pytest.fixture(params=[LANCEDB, "sqlite"], ids=["lancedb", "sqlite"])
def driver(request):
    return request.param


@pytest.fixture
def entries(tmp_path, driver):
    memory = open_entries(str(tmp_path / "entries"), HashingEmbedder(), driver=driver)
    yield memory
    memory.close()


def kept(entries, text, scope=PRIVATE, **facts):
    stored = entries.store(text, scope=scope, **facts)
    assert stored.entry is not None
    return stored.entry


def recalled(entries, query, scopes=EVERY_SCOPE, **options):
    return [each.entry.text for each in entries.recall(query, scopes=scopes, **options).found]


# --- storing and recalling -----------------------------------------------------------------------------------


def test_details_come_back_with_an_entry_and_are_not_searched(entries, tmp_path, driver):
    entry = kept(entries, "Anna prefers tea", id="their-own-id", details={"crew": {"scope": "/zebra"}})
    again = open_entries(str(tmp_path / "entries"), HashingEmbedder(), driver=driver)
    assert again.get("their-own-id", scopes=EVERY_SCOPE) == entry
    assert entry.details == {"crew": {"scope": "/zebra"}}
    assert recalled(again, "zebra") == []
    again.close()
    with pytest.raises(PlainmindError):
        entries.store("x", scope=PRIVATE, id="no id: spaces")


def test_an_entry_is_said_otherwise_under_its_id(entries, tmp_path):
    entry = kept(entries, "Anna prefers zucchini", details={"a": 1})
    changed = entries.change(entry.id, scopes=EVERY_SCOPE, text="Anna prefers pumpkins", importance=0.2)

    assert (changed.id, changed.details, changed.created_at) == (entry.id, {"a": 1}, entry.created_at)
    assert recalled(entries, "which pumpkins") == ["Anna prefers pumpkins"]
    assert recalled(entries, "zucchini", min_score=0.5) == []
    assert files_with(tmp_path, "zucchini") == []
    with pytest.raises(NotFound):
        entries.change(entry.id, scopes=frozenset({GROUP}), text="not theirs")


def test_an_entry_comes_back_as_it_was_stored(entries):
    entry = kept(entries, "  Anna prefers tea over coffee ", category="preference", importance=0.9)

    (found,) = entries.recall("Anna prefers which tea", scopes=EVERY_SCOPE).found
    assert found.entry == entry
    assert (entry.text, entry.category, entry.importance) == (
        "Anna prefers tea over coffee",
        "preference",
        0.9,
    )
    assert 0 < found.score <= 1
    assert entries.list(scopes=EVERY_SCOPE) == (entry,)
    assert entries.get(entry.id, scopes=EVERY_SCOPE) == entry


def test_the_best_match_comes_first_and_what_has_nothing_to_do_with_it_does_not_come(entries):
    for text in ("the gateway runs on a Mac Studio", "the gateway moved to Hetzner", "Emma lives in Graz"):
        kept(entries, text)

    found = recalled(entries, "gateway Hetzner")
    assert found[0] == "the gateway moved to Hetzner"
    assert "Emma lives in Graz" not in found
    assert recalled(entries, "zeppelin") == []
    assert recalled(entries, "  ") == []
    assert recalled(entries, "gateway", limit=0) == []


def test_of_two_that_match_alike_the_more_important_comes_first(entries):
    kept(entries, "gateway alpha", importance=0.1)
    kept(entries, "gateway omega", importance=1.0)

    assert recalled(entries, "gateway", min_score=0.0)[0] == "gateway omega"


@pytest.mark.parametrize(
    "facts",
    [
        {"text": " "},
        {"text": "x" * 2_001},
        {"text": "a fact", "category": "rumour"},
        {"text": "a fact", "importance": 1.5},
        {"text": "a fact", "importance": float("nan")},
    ],
    ids=["empty", "too long", "no such category", "too important", "not a number"],
)
def test_what_is_no_entry_is_refused_with_a_hint(entries, facts):
    with pytest.raises(PlainmindError) as refused:
        entries.store(scope=PRIVATE, **facts)
    assert refused.value.hint
    assert entries.list(scopes=EVERY_SCOPE) == ()


@pytest.mark.parametrize(
    "text", ["日本語のメモ 🦊", "half a \ud800 pair", 'quotes " and \\ and \u2028', "a\nb"]
)
def test_any_text_is_kept_as_it_is(entries, text):
    entry = kept(entries, text)

    assert entries.list(scopes=EVERY_SCOPE)[0].text == text.strip()
    entries.forget([entry.id], scopes=EVERY_SCOPE)
    assert entries.list(scopes=EVERY_SCOPE) == ()


# --- near-duplicates -----------------------------------------------------------------------------------------


def test_what_says_the_same_is_refused_and_the_twin_is_named(entries):
    first = kept(entries, "Anna prefers tea over coffee")
    stored = entries.store("anna prefers TEA over coffee!", scope=PRIVATE)

    assert stored.entry is None
    assert stored.twin == first
    assert stored.similarity >= 0.95
    assert len(entries.list(scopes=EVERY_SCOPE)) == 1


def test_a_twin_can_be_replaced_and_is_forgotten(entries, tmp_path):
    first = kept(entries, "the secret port is zanzibar")
    second = kept(entries, "the secret port is hidden", replacing=first.id)

    assert entries.list(scopes=EVERY_SCOPE) == (second,)
    assert files_with(tmp_path, "zanzibar") == []


def test_nothing_is_stored_in_the_place_of_what_is_not_there(entries):
    with pytest.raises(NotFound):
        entries.store("new", scope=PRIVATE, replacing="01JNEVER")
    assert entries.list(scopes=EVERY_SCOPE) == ()


def test_the_twin_of_another_scope_is_no_reason_to_refuse_and_is_never_named(entries):
    kept(entries, "Anna prefers tea over coffee")

    assert kept(entries, "Anna prefers tea over coffee", scope=GROUP).scope == GROUP


def test_without_vectors_the_same_words_are_a_twin(tmp_path, driver):
    class NoVectors(HashingEmbedder):
        identity = EmbedderIdentity("none", "none")

    entries = open_entries(str(tmp_path), NoVectors(), driver=driver)
    kept(entries, "Anna prefers tea over coffee")

    assert entries.store("Tea over coffee Anna prefers", scope=PRIVATE).twin is not None
    assert kept(entries, "Anna prefers tea")
    assert recalled(entries, "coffee") == ["Anna prefers tea over coffee"]
    entries.close()


@given(texts=st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4), min_size=1, max_size=12))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_however_often_things_are_stored_each_is_there_once(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("entries")
    entries = EntryMemory(str(folder), MemoryStore(), HashingEmbedder())
    for words in texts:
        entries.store(" ".join(words), scope=PRIVATE)
    found = [entry.text for entry in entries.list(scopes=EVERY_SCOPE)]
    assert len(found) == len(set(found))
    # None is missing, except for those that say the same as another: in the same words, and not turned round.
    assert not any(same_words(second, first) for first, second in combinations(found, 2))
    assert 1 <= len(found) <= len({tuple(words) for words in texts})
    entries.close()


# --- scopes --------------------------------------------------------------------------------------------------


def test_entries_are_recalled_listed_and_forgotten_by_those_alone_who_may_see_them(entries):
    private = kept(entries, "the gateway is private")
    group = kept(entries, "the gateway of the group", scope=GROUP)
    kept(entries, "the gateway of everybody", scope=SHARED)
    seen = frozenset({GROUP, SHARED})

    assert sorted(recalled(entries, "gateway", scopes=seen)) == [
        "the gateway of everybody",
        "the gateway of the group",
    ]
    assert len(recalled(entries, "gateway")) == 3
    assert len(entries.list(scopes=seen)) == 2
    assert entries.stats(scopes=seen)["entries"] == 2
    assert "path" not in entries.stats(scopes=seen)
    assert recalled(entries, "gateway", scopes=frozenset()) == []
    with pytest.raises(NotFound):
        entries.forget([private.id], scopes=seen)
    with pytest.raises(NotFound):
        entries.forget([group.id, private.id], scopes=seen)
    assert len(entries.list(scopes=EVERY_SCOPE)) == 3


@pytest.mark.parametrize("scope", ["", "*"])
def test_nothing_is_stored_for_nobody_or_for_everybody(entries, scope):
    with pytest.raises(ScopeDenied):
        entries.store("the gateway", scope=scope)
    with pytest.raises(ScopeDenied):
        entries.capture(["I prefer tea to coffee"], scope=scope)


def test_agents_have_entries_of_their_own(tmp_path, driver):
    first, second = (
        open_entries(str(tmp_path / name), HashingEmbedder(), driver=driver) for name in ("main", "other")
    )
    kept(first, "the gateway")

    assert recalled(second, "gateway") == []
    assert kept(second, "the gateway")
    first.close()
    second.close()


# --- forgetting ----------------------------------------------------------------------------------------------


def test_forgotten_text_is_in_no_file(entries, tmp_path):
    for number in range(30):
        kept(entries, f"plain entry {number} about something {number * number}")
    entry = kept(entries, "the word is zanzibar")
    assert files_with(tmp_path, "zanzibar")
    assert entries.forget([entry.id], scopes=EVERY_SCOPE) == (entry,)

    assert files_with(tmp_path, "zanzibar") == []
    assert recalled(entries, "zanzibar") == []
    assert len(entries.list(scopes=EVERY_SCOPE)) == 30
    assert recalled(entries, "entry 7 about something 49")[0] == "plain entry 7 about something 49"


def test_forgetting_what_is_not_there_changes_nothing(entries):
    entry = kept(entries, "the gateway")
    with pytest.raises(NotFound, match="no entry"):
        entries.forget([entry.id, "01JNEVER"], scopes=EVERY_SCOPE)
    assert entries.list(scopes=EVERY_SCOPE) == (entry,)


def test_the_vector_of_forgotten_text_goes_from_the_cache_too(tmp_path):
    class Cache:
        def __init__(self):
            self.forgotten = []

        def forget(self, hashes):
            self.forgotten += hashes

    cache = Cache()
    entries = EntryMemory(str(tmp_path), MemoryStore(), HashingEmbedder(), forget_vectors=cache.forget)
    entry = kept(entries, "the gateway")
    entries.forget([entry.id], scopes=EVERY_SCOPE)
    assert len(cache.forgotten) == 1
    entries.close()


# --- the file is the truth -----------------------------------------------------------------------------------


def test_entries_can_be_read_and_edited_by_hand(entries, tmp_path):
    kept(entries, "the gateway runs on a Mac Studio")
    path = tmp_path / "entries" / "entries.jsonl"
    (line,) = path.read_text().splitlines()
    facts = json.loads(line)
    assert set(facts) == {"id", "text", "importance", "category", "createdAt", "scope", "origin"}
    path.write_text(json.dumps({**facts, "text": "the gateway moved to Hetzner"}) + "\nnot an entry\n")

    assert recalled(entries, "gateway hetzner") == ["the gateway moved to Hetzner"]
    assert recalled(entries, "studio") == []
    kept(entries, "Emma lives in Graz")
    assert "not an entry" in path.read_text()


@pytest.mark.parametrize(
    "line",
    ["[]", "{}", '{"id": 7, "text": "x"}', '{"id": "a", "text": ""}', "\0\0", '{"id": "a"', "1" * 5_000],
)
def test_lines_that_are_no_entries_are_passed_over_and_stay(entries, tmp_path, line):
    (tmp_path / "entries").mkdir(exist_ok=True)
    path = tmp_path / "entries" / "entries.jsonl"
    path.write_text(line + "\n")
    entry = kept(entries, "the gateway")

    assert entries.list(scopes=EVERY_SCOPE) == (entry,)
    entries.forget([entry.id], scopes=EVERY_SCOPE)
    assert path.read_text() == line + "\n"


def test_odd_facts_of_an_entry_are_put_right(entries, tmp_path):
    (tmp_path / "entries").mkdir(exist_ok=True)
    odd = {
        "id": "A",
        "text": "the gateway",
        "category": "x",
        "importance": 9,
        "createdAt": "soon",
        "scope": 5,
    }
    (tmp_path / "entries" / "entries.jsonl").write_text(json.dumps(odd) + "\n")

    (entry,) = entries.list(scopes=EVERY_SCOPE)
    assert (entry.category, entry.importance, entry.created_at, entry.scope) == ("other", 0.7, 0, PRIVATE)
    assert recalled(entries, "gateway") == ["the gateway"]


def test_a_lost_index_is_made_anew(tmp_path, driver):
    import shutil

    entries = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    kept(entries, "the gateway")
    entries.close()
    shutil.rmtree(tmp_path / "index")

    again = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    assert recalled(again, "gateway") == ["the gateway"]
    again.close()


def test_another_embedder_makes_the_index_anew(tmp_path, driver):
    class Other(HashingEmbedder):
        identity = EmbedderIdentity("hashing", "another", dims=64)

    first = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    kept(first, "the gateway")
    first.close()
    other = Other()
    second = open_entries(str(tmp_path), other, driver=driver)
    assert recalled(second, "gateway") == ["the gateway"]
    assert "the gateway" in other.embedded
    second.close()


def test_an_embedder_that_fails_costs_similarity_and_nothing_else(tmp_path, driver, monkeypatch):
    monkeypatch.setattr("plainmind.guests.entries.entry_index._RETRY_S", 0.0)

    embedder = UnreliableEmbedder(is_down=True)
    entries = open_entries(str(tmp_path), embedder, driver=driver)
    stored = entries.store("the gateway runs on a Mac Studio", scope=PRIVATE)
    assert stored.entry is not None
    assert "down" in stored.degraded[0]
    recall = entries.recall("gateway", scopes=EVERY_SCOPE)
    assert [each.entry for each in recall.found] == [stored.entry]
    assert any("down" in reason for reason in recall.degraded)

    embedder.is_down = False
    kept(entries, "Emma lives in Graz")
    (found, *_) = entries.recall("gateway runs on a Mac", scopes=EVERY_SCOPE).found
    assert found.similarity > 0.5
    entries.close()


def test_hidden_secrets_are_neither_embedded_nor_found(tmp_path, driver):
    embedder = HashingEmbedder()
    entries = open_entries(
        str(tmp_path), embedder, driver=driver, redact=lambda text: text.replace("hunter2", "[hidden]")
    )
    kept(entries, "the password is hunter2")

    assert embedder.embedded
    assert all("hunter2" not in text for text in embedder.embedded)
    assert files_with(tmp_path / "index", "hunter2") == []
    assert entries.capture(["remember that the password is hunter2"], scope=PRIVATE) == ()
    entries.close()


# --- capture -------------------------------------------------------------------------------------------------


def test_captured_entries_wait_and_are_recalled_only_when_accepted(entries):
    said = ["I prefer dark mode in every editor", "what time is it?", "Remember that Emma lives in Graz"]
    captured = entries.capture(said, scope=PRIVATE)

    assert [entry.text for entry in captured] == [said[0], said[2]]
    assert recalled(entries, "dark mode editor") == []
    assert entries.list(scopes=EVERY_SCOPE) == ()
    assert len(entries.list(scopes=EVERY_SCOPE, waiting=True)) == 2
    (accepted,) = entries.accept([captured[0].id], scopes=EVERY_SCOPE)
    assert accepted.entry is not None
    assert accepted.entry.origin == "captured"
    assert recalled(entries, "dark mode editor") == [said[0]]
    entries.reject([captured[1].id], scopes=EVERY_SCOPE)
    assert entries.list(scopes=EVERY_SCOPE, waiting=True) == ()


def test_nothing_is_proposed_twice(entries):
    assert entries.capture(["I prefer dark mode"], scope=PRIVATE)
    assert entries.capture(["i  prefer DARK mode"], scope=PRIVATE) == ()


def test_accepting_what_is_there_by_now_drops_the_proposal(entries):
    (waiting,) = entries.capture(["I prefer dark mode in every editor"], scope=PRIVATE)
    twin = kept(entries, "I prefer dark mode in every editor!")
    (accepted,) = entries.accept([waiting.id], scopes=EVERY_SCOPE)

    assert accepted.entry is None
    assert accepted.twin == twin
    assert entries.list(scopes=EVERY_SCOPE, waiting=True) == ()


def test_accepting_again_changes_nothing_and_another_ones_proposal_is_not_found(entries):
    entry = kept(entries, "the gateway")
    (again,) = entries.accept([entry.id], scopes=EVERY_SCOPE)
    assert again.entry == entry
    (waiting,) = entries.capture(["I prefer dark mode"], scope=PRIVATE)
    with pytest.raises(NotFound):
        entries.accept([waiting.id], scopes=frozenset({GROUP}))


# --- many at once --------------------------------------------------------------------------------------------

WRITER = textwrap.dedent(
    """
    import sys
    from tests.support.hashing_embedder import HashingEmbedder
    from plainmind.guests.entries.memory import open_entries

    folder, name = sys.argv[1:]
    entries = open_entries(folder, HashingEmbedder())
    for number in range(3):
        entries.store(f"{name} knows {number} {name}{number}", scope="private")
        entries.store("everybody says the same", scope="private")
    entries.close()
    """
)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_processes_that_store_at_once_lose_nothing_and_double_nothing(tmp_path):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name],
            cwd=Path(__file__).parents[3],
            stderr=subprocess.PIPE,
        )
        for name in ("anna", "bert")
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=500)
        assert writer.returncode == 0, errors.decode()

    entries = open_entries(str(tmp_path), HashingEmbedder())
    assert len(entries.list(scopes=EVERY_SCOPE)) == 7
    assert recalled(entries, "anna2")[0] == "anna knows 2 anna2"
    entries.close()


def test_threads_share_an_entry_memory(entries):
    errors: list[BaseException] = []

    def work(name):
        try:
            for number in range(4):
                kept(entries, f"{name} has {name}{number} in mind")
                assert recalled(entries, f"{name}{number}")
        except BaseException as error:  # noqa: BLE001 (told to the test below)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("anna", "bert", "cleo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(entries.list(scopes=EVERY_SCOPE)) == 12


def test_stats_count_what_there_is(entries):
    kept(entries, "Anna prefers tea", category="preference")
    kept(entries, "the gateway runs", category="fact")
    entries.capture(["I prefer dark mode"], scope=PRIVATE)
    facts = entries.stats(scopes=EVERY_SCOPE)

    assert (facts["entries"], facts["waiting"]) == (2, 1)
    assert facts["categories"] == {"preference": 1, "fact": 1}
    assert facts["oldest"] <= facts["newest"]
    assert facts["bytes"] > 0
    assert len(entries.list(scopes=EVERY_SCOPE, category="fact")) == 1
    assert len(entries.list(scopes=EVERY_SCOPE, limit=1)) == 1


def test_what_finds_entries_is_there_before_the_first_one_is_stored(entries, tmp_path):
    index = tmp_path / "entries" / "index"
    assert not index.exists()
    entries.get_ready()

    assert any(path.is_file() for path in index.rglob("*"))
    assert entries.list(scopes=EVERY_SCOPE) == ()
