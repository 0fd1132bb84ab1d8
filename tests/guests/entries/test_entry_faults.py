"""What crashes, full disks, other people's edits and providers that are down do to entries: nothing that lasts."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.guests.entries.conftest import files_with
from tests.support.hashing_embedder import HashingEmbedder, UnreliableEmbedder

from plainmind.base.errors import IndexUnavailable, PathNotAllowed, StorageFailure
from plainmind.base.model import EVERY_SCOPE, PRIVATE, EmbedderIdentity
from plainmind.guests.entries.entry_file import EntryFile
from plainmind.guests.entries.memory import EntryMemory, open_entries
from plainmind.index.drivers.memory import MemoryStore

GROUP = "group:42"


class Failing(UnreliableEmbedder):
    """Says how long its vectors are only with the first of them."""

    identity = EmbedderIdentity("remote", "a-model")


@pytest.fixture
def entries(tmp_path):
    memory = open_entries(str(tmp_path), HashingEmbedder(), driver="sqlite")
    yield memory
    memory.close()


def kept(entries, text, scope=PRIVATE, **facts):
    stored = entries.store(text, scope=scope, **facts)
    assert stored.entry is not None
    return stored.entry


def texts(entries):
    return [entry.text for entry in entries.list(scopes=EVERY_SCOPE)]


def recalled(entries, query, scopes=EVERY_SCOPE):
    return [each.entry.text for each in entries.recall(query, scopes=scopes).found]


def written_by_hand(folder: Path, *lines: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "entries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# --- forgotten text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".entries.jsonl.4711.0123456789abcdef.tmp", '{"id":"01X","text":"the word is zanzibar"}\n'),
        ("entries.jsonl.torn-1790000000000000000", '{"id":"01X","text":"the word is zanz'),
        ("entries.jsonl.torn-1790000000000000001", '{"id":"01X","text":"the word is zanzibar","impor'),
    ],
    ids=["a killed writer's copy", "the beginning of a line", "a line that lacks its end"],
)
def test_what_a_killed_writer_left_goes_with_the_entry(entries, tmp_path, name, content):
    entry = kept(entries, "the word is zanzibar")
    (tmp_path / name).write_text(content)
    entries.forget([entry.id], scopes=EVERY_SCOPE)

    assert files_with(tmp_path, "the word is zanz") == []


def test_a_link_to_a_file_elsewhere_is_not_taken_for_the_file(entries, tmp_path):
    entry = kept(entries, "the word is zanzibar")
    elsewhere = tmp_path / "mine.jsonl"
    (tmp_path / "entries.jsonl").rename(elsewhere)
    (tmp_path / "entries.jsonl").symlink_to(elsewhere)
    with pytest.raises(PathNotAllowed, match=r"entries\.jsonl"):
        entries.forget([entry.id], scopes=EVERY_SCOPE)
    with pytest.raises(PathNotAllowed, match=r"entries\.jsonl"):
        recalled(entries, "zanzibar")

    assert "zanzibar" in elsewhere.read_text()
    assert (tmp_path / "entries.jsonl").is_symlink()


def test_a_damaged_line_with_the_text_goes_too_and_other_damaged_lines_stay(entries, tmp_path):
    entry = kept(entries, "the word is zanzibar")
    with (tmp_path / "entries.jsonl").open("a") as file:
        file.write('{"id":"01X","text":"the word is zanzibar","imp\n# zanzibar is a note of mine\n{"id":"0\n')
    entries.forget([entry.id], scopes=EVERY_SCOPE)

    assert (tmp_path / "entries.jsonl").read_text() == '# zanzibar is a note of mine\n{"id":"0\n'


def test_what_is_forgotten_before_it_was_ever_asked_for_is_sent_to_nobody(tmp_path):
    written_by_hand(
        tmp_path, {"id": "A1", "text": "the word is zanzibar"}, {"id": "A2", "text": "the gateway"}
    )
    embedder = HashingEmbedder()
    entries = open_entries(str(tmp_path), embedder, driver="sqlite")
    entries.forget(["A1"], scopes=EVERY_SCOPE)

    assert recalled(entries, "gateway") == ["the gateway"]
    assert not any("zanzibar" in text for text in embedder.embedded)
    entries.close()


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
def test_what_is_forgotten_is_not_in_a_damaged_index_either(tmp_path, driver):
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    entry = kept(entries, "the word is zanzibar")
    kept(entries, "the gateway runs")
    entries.close()
    for path in (tmp_path / "index").rglob("*"):
        if path.is_file() and path.suffix in {".lance", ".sqlite"}:
            path.write_bytes(b"X" * 100 + path.read_bytes()[100:])
    assert files_with(tmp_path / "index", "zanzibar")

    again = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    again.forget([entry.id], scopes=EVERY_SCOPE)
    again.close()
    assert files_with(tmp_path, "zanzibar") == []


def test_a_forgetting_that_cannot_be_written_leaves_the_entry_whole_and_can_be_tried_again(
    tmp_path, monkeypatch
):
    class Cache:
        forgotten: list[str] = []  # noqa: RUF012 (one test)

        def forget(self, hashes):
            self.forgotten += hashes

    entries = open_entries(str(tmp_path), HashingEmbedder(), driver="sqlite", forget_vectors=Cache().forget)
    entry = kept(entries, "the word is zanzibar")

    def refuse(*_, **__):
        raise StorageFailure("the disk is full")

    with monkeypatch.context() as full:
        full.setattr("plainmind.guests.entries.entry_file.write_atomically", refuse)
        with pytest.raises(StorageFailure):
            entries.forget([entry.id], scopes=EVERY_SCOPE)
    assert recalled(entries, "zanzibar") == ["the word is zanzibar"]
    entries.forget([entry.id], scopes=EVERY_SCOPE)
    assert recalled(entries, "zanzibar") == []
    assert len(Cache.forgotten) == 2
    entries.close()
    assert files_with(tmp_path, "zanzibar") == []


def test_a_dropped_proposal_leaves_no_vector_in_the_cache(tmp_path):
    class Cache:
        forgotten: list[str] = []  # noqa: RUF012 (one test)

        def forget(self, hashes):
            self.forgotten += hashes

    entries = EntryMemory(str(tmp_path), MemoryStore(), HashingEmbedder(), forget_vectors=Cache().forget)
    (waiting,) = entries.capture(["I prefer dark mode in every editor"], scope=PRIVATE)
    kept(entries, "In every editor I prefer dark mode")
    (accepted,) = entries.accept([waiting.id], scopes=EVERY_SCOPE)
    assert accepted.entry is None
    assert len(Cache.forgotten) == 1
    entries.close()


# --- what says the same, and what does not -------------------------------------------------------------------


def test_a_sentence_that_differs_in_a_number_a_not_or_an_order_is_kept(entries):
    said = [
        "the port of the gateway in the cellar is 8080",
        "the port of the gateway in the cellar is 8081",
        "the port of the gateway in the cellar is not 8080",
        "anna prefers tea over coffee",
        "anna prefers coffee over tea",
    ]
    for text in said:
        kept(entries, text)
    assert texts(entries) == said[::-1]


def test_without_vectors_a_sentence_and_its_opposite_are_two(tmp_path):
    class NoVectors(HashingEmbedder):
        identity = EmbedderIdentity("none", "none")

    entries = open_entries(str(tmp_path), NoVectors(), driver="sqlite")
    kept(entries, "Anna likes tea")

    assert kept(entries, "Anna does not like tea")
    entries.close()


def test_a_twin_is_kept_beside_the_other_when_somebody_insists(entries):
    kept(entries, "Anna prefers tea over coffee")

    assert entries.store("Tea over coffee Anna prefers", scope=PRIVATE).entry is None
    assert kept(entries, "Tea over coffee Anna prefers", anyway=True)


def test_accepting_what_is_only_similar_keeps_it(entries):
    (waiting,) = entries.capture(["remember that emma lives next to the old station"], scope=PRIVATE)
    kept(entries, "remember that emma works next to the old station")
    (accepted,) = entries.accept([waiting.id], scopes=EVERY_SCOPE)

    assert accepted.entry is not None
    assert len(texts(entries)) == 2


# --- lines that people and other programs wrote --------------------------------------------------------------


@pytest.mark.parametrize("id_", ["\ud800x", "a/b", "two\nlines", "x" * 5_000, "a\0b", '"', "", " "])
def test_a_line_whose_id_could_be_taken_for_something_else_is_no_entry(entries, tmp_path, id_):
    written_by_hand(tmp_path, {"id": id_, "text": "the gateway"}, {"id": "A1", "text": "the gateway runs"})

    assert recalled(entries, "gateway") == ["the gateway runs"]
    assert entries.stats(scopes=EVERY_SCOPE)["unreadable"] == 1


@pytest.mark.parametrize("created", [9e14, -5, 1e300, float("nan"), True, None, "soon"])
def test_every_entry_has_a_day(entries, tmp_path, created):
    written_by_hand(tmp_path, {"id": "A1", "text": "the gateway", "createdAt": created})

    (entry,) = entries.list(scopes=EVERY_SCOPE)
    assert entry.day == "1970-01-01"


@pytest.mark.parametrize("scope", ["", "*", 5, None])
def test_a_scope_that_nobody_can_mean_is_private(entries, tmp_path, scope):
    written_by_hand(tmp_path, {"id": "A1", "text": "the gateway", "scope": scope})

    (entry,) = entries.list(scopes=EVERY_SCOPE)
    assert entry.scope == PRIVATE


def test_a_file_that_begins_with_a_byte_order_mark_loses_no_entry(entries, tmp_path):
    line = json.dumps({"id": "A1", "text": "the gateway"})
    (tmp_path / "entries.jsonl").write_text("\ufeff" + line + "\r\n", encoding="utf-8")

    assert recalled(entries, "gateway") == ["the gateway"]
    assert entries.stats(scopes=EVERY_SCOPE)["unreadable"] == 0


# --- providers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
@pytest.mark.parametrize("is_down", [False, True], ids=["from the first", "later"])
def test_a_provider_that_says_late_how_long_its_vectors_are_gives_similarity(
    tmp_path, driver, is_down, monkeypatch
):
    monkeypatch.setattr("plainmind.guests.entries.entry_index._RETRY_S", 0.0)
    embedder = Failing(is_down=is_down)
    entries = open_entries(str(tmp_path), embedder, driver=driver)
    kept(entries, "the gateway runs on a Mac Studio")
    embedder.is_down = False
    kept(entries, "Emma lives in Graz")

    (found, *_) = entries.recall("the gateway runs on a Mac", scopes=EVERY_SCOPE).found
    assert found.similarity > 0.5
    entries.close()


def test_a_provider_that_is_down_is_asked_once_and_not_once_for_every_portion(tmp_path):
    written_by_hand(tmp_path, *({"id": f"A{number}", "text": f"word{number}"} for number in range(1_000)))
    embedder = Failing(is_down=True)
    entries = open_entries(str(tmp_path), embedder, driver="sqlite")

    recall = entries.recall("word7", scopes=EVERY_SCOPE)
    assert [each.entry.text for each in recall.found] == ["word7"]
    assert embedder.asked == 1
    again = entries.recall("word8", scopes=EVERY_SCOPE)
    assert again.degraded == recall.degraded  # said every time, not only the first
    entries.close()


def test_a_question_can_be_kept_from_the_provider(tmp_path):
    class Asked(Failing):
        queries: list[str] = []  # noqa: RUF012 (one test)

        def embed_query(self, text):
            self.queries.append(text)
            return super().embed_query(text)

    entries = open_entries(str(tmp_path), Asked(), driver="sqlite")
    kept(entries, "the gateway runs on a Mac Studio")

    found = entries.recall("gateway studio", scopes=EVERY_SCOPE, by_words_only=True).found
    assert [each.entry.text for each in found] == ["the gateway runs on a Mac Studio"]
    assert Asked.queries == []
    entries.recall("gateway studio", scopes=EVERY_SCOPE)
    assert Asked.queries == ["gateway studio"]
    entries.close()


# --- the index is a copy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
@pytest.mark.parametrize("content", [b"", b"garbage" * 30], ids=["emptied", "overwritten"])
def test_a_damaged_index_is_made_anew_by_whoever_asks_first(tmp_path, driver, content):
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    kept(entries, "the gateway runs")
    entries.close()
    for path in (tmp_path / "index").rglob("*"):
        if path.is_file() and path.suffix in {".lance", ".sqlite", ".db"}:
            path.write_bytes(content)

    again = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    assert recalled(again, "gateway") == ["the gateway runs"]
    assert again.store("the gateway runs", scope=PRIVATE).twin is not None
    again.close()


def test_an_index_that_cannot_take_an_entry_does_not_keep_it_from_being_stored(tmp_path, monkeypatch):
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver="sqlite")
    kept(entries, "Emma lives in Graz")

    def refuse(*_, **__):
        raise IndexUnavailable("the disk is full")

    with monkeypatch.context() as full:
        full.setattr("plainmind.index.store.Store.replace_file", refuse)
        stored = entries.store("the gateway runs", scope=PRIVATE)
    assert stored.entry is not None
    assert "disk is full" in stored.degraded[0]
    assert recalled(entries, "gateway") == ["the gateway runs"]
    entries.close()


def test_whoever_only_recalls_needs_no_lock_when_nothing_has_changed(tmp_path):
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver="sqlite")
    kept(entries, "the gateway runs")
    entries.close()

    again = open_entries(str(tmp_path), HashingEmbedder(), driver="sqlite")
    with EntryFile(str(tmp_path)).changing("take long"):
        assert recalled(again, "gateway") == ["the gateway runs"]
    again.close()


def test_a_deleted_folder_is_an_empty_memory(tmp_path):
    entries = open_entries(str(tmp_path / "entries"), HashingEmbedder(), driver="sqlite")
    kept(entries, "the gateway runs")
    entries.close()
    shutil.rmtree(tmp_path / "entries")

    again = open_entries(str(tmp_path / "entries"), HashingEmbedder(), driver="sqlite")
    assert recalled(again, "gateway") == []
    again.close()


# --- capture -------------------------------------------------------------------------------------------------


def test_nobody_can_fill_the_list_of_proposals(entries):
    flood = [f"I prefer number {number} of the menu" for number in range(300)]
    assert len(entries.capture(flood, scope=GROUP)) == 200
    assert entries.capture(["I prefer the soup today"], scope=GROUP) == ()
    assert len(entries.capture(["I prefer the soup today"], scope=PRIVATE)) == 1


def test_longer_messages_are_proposed_when_that_is_asked_for(entries):
    said = "I prefer tea " + "very " * 150
    assert entries.capture([said], scope=PRIVATE) == ()
    assert entries.capture([said], scope=PRIVATE, most_chars=1_000) != ()


def test_capturing_leaves_the_index_alone(tmp_path):
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver="lancedb")
    assert entries.capture(["I prefer tea to coffee"], scope=PRIVATE)
    assert not (tmp_path / "index").exists()
    entries.close()


@pytest.mark.parametrize(("before", "now"), [("sqlite", "lancedb"), ("lancedb", "sqlite")])
def test_what_is_forgotten_is_not_in_the_index_of_a_driver_that_was_used_before(tmp_path, before, now):
    with closing(open_entries(str(tmp_path), HashingEmbedder(), driver=before)) as memory:
        kept = memory.store("the quokkaberry is in room 12", scope=PRIVATE).entry
    assert files_with(tmp_path / "index", "quokkaberry")

    with closing(open_entries(str(tmp_path), HashingEmbedder(), driver=now)) as memory:
        memory.forget([kept.id], scopes=EVERY_SCOPE)
    assert files_with(tmp_path, "quokkaberry") == []
