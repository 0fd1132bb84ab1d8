"""Transcripts that grow: only what is new is read, embedded and written, and the index is as if made at once."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.index.conftest import Clock
from tests.support.examples import examples
from tests.support.hashing_embedder import HashingEmbedder
from tests.support.talk import PATH, Remote, Talk
from tests.support.transcript_files import line, message

from plainmind.base.errors import EmbeddingError
from plainmind.files.system import Erasures, System
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.plan import WITHOUT_VECTORS, ChunkingSettings, Conditions, Patience
from plainmind.index.sync import Disappearances, Indexer
from plainmind.notes.workspace import Workspace


@pytest.fixture
def talk(tmp_path):
    return Talk(tmp_path)


def test_a_new_message_is_all_that_is_embedded(talk):
    talk.say("one", "two")
    talk.sync()
    talk.embedded()
    talk.say("three")

    report = talk.sync()

    assert (report.indexed, report.chunks) == ((PATH,), 1)
    assert talk.embedded() == ["three"]
    assert talk.said() == ["one", "two", "three"]
    assert [chunk.start_line for chunk in talk.chunks()] == [1, 2, 3]
    assert [chunk.ordinal for chunk in talk.chunks()] == [0, 1, 2]


def test_a_sync_after_nothing_reads_nothing_and_writes_nothing(talk):
    talk.say("one")
    talk.sync()
    talk.sync()
    with talk.store.reading() as reader:
        before = reader.revision()

    report = talk.sync()

    with talk.store.reading() as reader:
        assert reader.revision() == before
    assert (report.indexed, report.unchanged) == ((), 1)


def test_a_half_written_line_is_found_once_it_is_whole(talk):
    talk.say("one")
    talk.sync()
    whole = line("user", "the second")
    with talk.file.open("ab") as file:
        file.write(whole[:20])
    talk.sync()
    half = talk.said()
    with talk.file.open("ab") as file:
        file.write(whole[20:])
    talk.sync()

    assert (half, talk.said()) == (["one"], ["one", "the second"])


def test_a_last_line_without_newline_is_found_and_never_doubled(talk, tmp_path):
    talk.say("one")
    talk.file.write_bytes(talk.file.read_bytes() + message("user", "two"))
    talk.sync()
    early = talk.said()
    with talk.file.open("ab") as file:
        file.write(b"\n" + line("user", "three"))
    talk.sync()

    assert (early, talk.said()) == (["one", "two"], ["one", "two", "three"])
    assert talk.store.digest() == talk.digest_of_rebuild(tmp_path)


def test_a_torn_end_that_somebody_cut_off_costs_nothing(talk, tmp_path):
    talk.say("one")
    whole = talk.file.read_bytes()
    talk.file.write_bytes(whole + message("user", "torn")[:-1])
    talk.sync()
    with talk.file.open("r+b") as file:
        file.truncate(len(whole))
    talk.say("two")
    talk.embedded()
    talk.sync()

    assert talk.embedded() == ["two"]
    assert talk.said() == ["one", "two"]
    assert talk.store.digest() == talk.digest_of_rebuild(tmp_path)


def test_a_replaced_transcript_leaves_none_of_its_old_messages(talk):
    talk.say("one", "two", "three")
    talk.sync()
    beside = talk.folder / "new"
    beside.write_bytes(line("user", "something else"))
    os.replace(beside, talk.file)
    talk.sync()

    assert talk.said() == ["something else"]


def test_each_message_has_its_own_day(talk):
    talk.file.write_bytes(
        line("user", "then", timestamp="2026-02-10T12:00:00Z")
        + line("user", "now", timestamp="2026-03-01T12:00:00Z")
    )
    talk.sync()

    assert [chunk.day for chunk in talk.chunks()] == ["2026-02-10", "2026-03-01"]


def test_lines_that_cannot_be_read_are_told_of(talk):
    talk.file.write_bytes(b"{nonsense\n" + line("user", "words") + b"more\n")

    report = talk.sync()

    assert [(one.path, one.reason) for one in report.skipped] == [(PATH, "2 lines cannot be read")]
    assert talk.said() == ["words"]


def test_a_reset_conversation_stays_searchable_and_a_deleted_one_vanishes(talk):
    talk.say("old")
    (talk.folder / "b.jsonl").write_bytes(line("user", "other"))
    (talk.folder / "c.jsonl").write_bytes(line("user", "third"))
    talk.sync()
    archive = "a.jsonl.reset.2026-02-10T09-31-00.000Z"
    os.rename(talk.file, talk.folder / archive)
    (talk.folder / "c.jsonl").unlink()
    talk.say("new")

    report = talk.sync()

    assert report.removed == ("sessions/c.jsonl",)
    assert talk.said() == ["new"]
    assert [chunk.text for chunk in talk.chunks(f"sessions/{archive}")] == ["User: old"]
    assert talk.chunks("sessions/c.jsonl") == []


def test_another_scope_alone_is_a_change(talk):
    talk.say("one", "two")
    talk.sync()
    talk.scopes[PATH] = "group:7"

    report = talk.sync()

    with talk.store.reading() as reader:
        assert reader.files()["sessions", PATH].scope == "group:7"
    assert (report.indexed, talk.said()) == ((PATH,), ["one", "two"])
    assert talk.sync().indexed == ()


def test_text_that_was_read_before_somebody_erased_some_is_read_again(tmp_path):
    talk = Talk(tmp_path, piece_characters=1)
    talk.say("one")
    talk.sync()
    talk.say("a secret", "three")

    def erase():
        with Erasures(str(talk.state)).run_alone():
            talk.file.write_bytes(talk.file.read_bytes().replace(b"a secret", b"nothing!"))

    talk.embedder.embed_documents = after(talk.embedder.embed_documents, erase)

    report = talk.sync()

    assert talk.said() == ["one", "nothing!", "three"]
    assert report.failed == ()


def after(work, first):
    """Do something before the first call of a function."""
    waiting = [first]

    def called(*arguments, **more):
        while waiting:
            waiting.pop()()
        return work(*arguments, **more)

    return called


@pytest.mark.parametrize("piece_characters", [1, 250_000])
def test_whoever_is_overtaken_goes_on_from_what_the_other_wrote(tmp_path, piece_characters):
    talk = Talk(tmp_path, piece_characters=piece_characters)
    talk.say("one")
    talk.sync()
    other = Talk(tmp_path, store=talk.store)
    talk.say("two", "three")
    talk.embedder.embed_documents = after(talk.embedder.embed_documents, other.sync)

    report = talk.sync()

    assert talk.said() == ["one", "two", "three"]
    assert (report.failed, report.degraded) == ((), ())


def test_one_transcript_that_cannot_be_read_does_not_stop_the_others(talk, monkeypatch):
    talk.say("one")
    (talk.folder / "b.jsonl").write_bytes(line("user", "two"))
    talk.sync()
    talk.say("more")
    found = talk.source.discover()
    talk.file.unlink()
    os.symlink("b.jsonl", talk.file)
    with (talk.folder / "b.jsonl").open("ab") as file:
        file.write(line("user", "three"))
    monkeypatch.setattr(talk.source, "discover", lambda: found)

    report = talk.sync(patience=Patience("left", delta_messages=1))

    assert [failure.path for failure in report.failed] == [PATH]
    assert len(talk.chunks("sessions/b.jsonl")) == 1  # it looked the same when it was listed
    monkeypatch.undo()
    talk.sync()
    assert len(talk.chunks("sessions/b.jsonl")) == 2


def test_a_disk_that_fails_under_one_transcript_does_not_stop_the_others(talk, monkeypatch):
    talk.say("one")
    (talk.folder / "b.jsonl").write_bytes(line("user", "two"))
    broken, pread = talk.file.stat().st_ino, System.pread

    def failing(self, fd, count, at):
        if os.fstat(fd).st_ino == broken:
            raise OSError(errno.EIO, "Input/output error")
        return pread(self, fd, count, at)

    monkeypatch.setattr(System, "pread", failing)

    report = talk.sync()

    assert [failure.path for failure in report.failed] == [PATH]
    assert len(talk.chunks("sessions/b.jsonl")) == 1


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_word_that_is_masked_in_place_is_gone_also_if_the_file_was_indexed_while_it_was_fresh(
    talk, is_fresh
):
    talk.say("the code is 4711", *["long enough for the end to look the same"] * 200)
    written = talk.file.stat().st_mtime
    talk.clock.now = written + (1 if is_fresh else 1_000)
    talk.sync()
    talk.clock.now = written + 2_000

    masked = talk.file.read_bytes().replace(b"4711", b"****")
    with talk.file.open("r+b") as file:
        file.write(masked)
    os.utime(talk.file, (written + 500, written + 500))
    talk.sync()

    assert talk.said()[0] == "the code is ****"


def test_who_asks_for_a_sync_has_every_byte_compared(talk):
    talk.say("the code is 4711", *["long enough for the end to look the same"] * 200)
    talk.sync()
    masked = talk.file.read_bytes().replace(b"4711", b"****")
    with talk.file.open("r+b") as file:
        file.write(masked)
    talk.say("and more")

    talk.sync()

    assert talk.said()[0] == "the code is ****"
    assert talk.said()[-1] == "and more"


def test_a_file_that_was_indexed_while_it_was_fresh_is_not_read_again(talk, monkeypatch):
    talk.say("one", "two")
    talk.clock.now = talk.file.stat().st_mtime + 1
    talk.sync()
    monkeypatch.setattr("plainmind.sessions.transcripts.begins_alike", None)  # reads every byte

    report = talk.sync(patience=Patience("words"))

    assert (report.indexed, report.failed) == ((), ())


# ── in pieces ──


@pytest.mark.parametrize("open_store", [MemoryStore, None])
def test_a_long_transcript_is_written_piece_by_piece_and_is_as_if_made_at_once(tmp_path, open_store):
    store = open_store() if open_store else SqliteStore(str(tmp_path / "index"))
    talk = Talk(tmp_path, piece_characters=50, store=store)
    talk.say("there must be an index already")
    talk.sync()
    talk.say(*(f"message number {number}" for number in range(40)))

    report = talk.sync()

    assert report.indexed == (PATH,)
    assert len(talk.said()) == 41
    assert talk.sync().indexed == ()
    fresh = Talk(tmp_path, store=SqliteStore(str(tmp_path / "other")) if open_store is None else None)
    fresh.indexer.sync(force=True)
    assert talk.store.digest() == fresh.store.digest()
    talk.store.close()
    fresh.store.close()


def test_who_stops_half_way_goes_on_from_there(tmp_path):
    talk = Talk(tmp_path, piece_characters=1)
    talk.say("nothing")
    talk.sync()
    talk.say("one", "two", "three")
    real, calls = talk.store.replace_file, []

    def stops(*arguments, **more):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **more)

    talk.store.replace_file = stops
    with pytest.raises(KeyboardInterrupt):
        talk.sync()
    half = talk.said()
    talk.store.replace_file = real
    talk.embedded()
    forget_what_was_made(talk.indexer)
    talk.sync()

    assert half == ["nothing", "one", "two"]
    assert talk.embedded() == ["three"]
    assert talk.store.digest() == talk.digest_of_rebuild(tmp_path)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=examples(60),
)
@given(
    st.lists(
        st.one_of(
            st.builds(lambda text: line("user", text), st.text(max_size=30)),
            st.builds(lambda text: message("user", text), st.text(max_size=30)),
            st.binary(max_size=20),
            st.sampled_from([b"\n", b"CUT", b"REPLACE", b"SYNC", b"SYNC"]),
        ),
        max_size=15,
    ),
    st.sampled_from([1, 40, 250_000]),
)
def test_whatever_happens_to_a_file_the_index_is_as_if_made_at_once(tmp_path_factory, steps, characters):
    tmp_path = tmp_path_factory.mktemp("talk")
    talk = Talk(tmp_path, piece_characters=characters)
    talk.file.touch()
    talk.sync()
    for step in steps:
        if step == b"SYNC":
            talk.sync()
        elif step == b"CUT":
            os.truncate(talk.file, talk.file.stat().st_size // 2)
        elif step == b"REPLACE":
            beside = talk.folder / "beside"
            beside.write_bytes(talk.file.read_bytes()[::2] + b"\n")
            os.replace(beside, talk.file)
        else:
            with talk.file.open("ab") as file:
                file.write(step)
    talk.sync()

    assert talk.store.digest() == talk.digest_of_rebuild(tmp_path)


def test_a_message_that_is_longer_than_many_files_is_found_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("plainmind.index.chunks.LARGE", 1_000)
    monkeypatch.setattr("plainmind.index.chunks.COMPUTED_HERE", frozenset({"hashing"}))
    talk = Talk(tmp_path, store=SqliteStore(str(tmp_path / "index")))
    talk.say("short")
    talk.sync()
    talk.say(" ".join(f"word{number}" for number in range(2_000)))
    talk.file.write_bytes(talk.file.read_bytes() + message("user", "unfinished"))
    talk.sync()
    talk.say("", "after")
    talk.sync()

    assert talk.said()[0] == "short"
    assert talk.said()[-3].endswith("word1999")
    assert talk.said()[-2:] == ["unfinished", "after"]
    grown = talk.store.digest()
    talk.indexer.sync(force=True)
    assert talk.store.digest() == grown
    talk.store.close()


def test_a_message_that_is_made_ready_as_it_is_written_is_embedded_once(tmp_path, monkeypatch):
    monkeypatch.setattr("plainmind.index.chunks.LARGE", 1_000)
    monkeypatch.setattr("plainmind.index.chunks.COMPUTED_HERE", frozenset({"hashing"}))
    monkeypatch.setattr("plainmind.index.chunks._MOST_REMEMBERED", 0)
    talk = Talk(tmp_path)
    talk.say("short")
    talk.sync()
    talk.embedded()
    talk.say(" ".join(f"word{number}" for number in range(2_000)))
    talk.file.write_bytes(talk.file.read_bytes() + message("user", "unfinished"))
    talk.sync()

    made = talk.embedded()
    assert len(made) <= len(set(made)) + 2  # the first and the last are looked at before


# ── vectors that are missing, or left for later ──


def test_what_a_failing_provider_owes_is_embedded_later_and_nothing_else(tmp_path):
    talk = Talk(tmp_path, embedder=Remote())
    talk.say("one")
    talk.sync()
    talk.embedder.error = EmbeddingError("down")
    talk.say("two")
    talk.sync()
    talk.say("three")
    talk.sync()
    by_words = talk.said()
    assert talk.hash().startswith(WITHOUT_VECTORS)
    talk.embedder.error = None
    talk.embedded()
    talk.say("four")
    talk.sync()

    assert by_words == ["one", "two", "three"]
    assert talk.embedded() == ["two", "three", "four"]
    assert not talk.hash().startswith(WITHOUT_VECTORS)
    assert talk.said() == ["one", "two", "three", "four"]


def test_a_failure_in_the_middle_of_a_long_file_costs_only_what_follows(tmp_path):
    talk = Talk(tmp_path, embedder=Remote(), piece_characters=1)
    talk.say("one")
    talk.sync()
    talk.embedder.error = EmbeddingError("down")
    talk.say("two", "three")
    talk.sync()
    talk.embedder.error = None
    talk.embedded()
    report = talk.sync()

    assert talk.embedded() == ["two", "three"]
    assert (report.indexed, talk.said()) == ((PATH,), ["one", "two", "three"])


def test_a_search_finds_the_newest_by_words_until_vectors_are_due(tmp_path):
    talk = Talk(tmp_path, embedder=Remote())
    talk.say("one")
    talk.sync()
    talk.embedded()
    patience = Patience("words", delta_messages=3)
    talk.clock.now = talk.file.stat().st_mtime
    talk.say("two")
    talk.sync(patience=patience)
    early = talk.said(), talk.embedded(), talk.indexer.sync(conditions=Conditions(patience=patience)).indexed
    talk.say("three")
    talk.sync(patience=patience)
    talk.say("four")
    talk.sync(patience=patience)

    assert early == (["one", "two"], [], ())
    assert talk.embedded() == ["two", "three", "four"]
    assert talk.said() == ["one", "two", "three", "four"]
    assert not talk.hash().startswith(WITHOUT_VECTORS)


def test_vectors_made_on_this_machine_are_never_left_for_later(talk):
    talk.say("one")
    talk.sync()
    talk.embedded()
    talk.say("two")
    talk.sync(patience=Patience("words"))

    assert talk.embedded() == ["two"]


def test_in_the_background_a_few_messages_wait_and_a_search_still_sees_them(talk):
    talk.say("one")
    talk.sync()
    talk.clock.now = talk.file.stat().st_mtime
    talk.say("two")

    waiting = talk.sync(patience=Patience("left"))
    before = talk.said()
    talk.indexer.sync(thorough=False)

    assert (waiting.indexed, waiting.unchanged, before) == ((), 1, ["one"])
    assert talk.said() == ["one", "two"]


@pytest.mark.parametrize("why", ["messages", "bytes", "silence"])
def test_in_the_background_more_is_due_in_time(talk, why):
    talk.say("one")
    talk.sync()
    talk.say("two", "three")
    talk.clock.now = talk.file.stat().st_mtime + (601 if why == "silence" else 0)
    talk.sync(
        patience=Patience(
            "left",
            delta_messages=2 if why == "messages" else 50,
            delta_bytes=20 if why == "bytes" else 100_000,
        )
    )

    assert talk.said() == ["one", "two", "three"]


def test_the_cost_is_asked_for_what_is_new_alone(tmp_path):
    talk = Talk(tmp_path, embedder=Remote())
    talk.say(*(f"message {number}" for number in range(100)))
    talk.sync()
    talk.say("new")
    asked = []

    def ask(size, texts):
        asked.append((size, list(texts())))

    talk.sync(before_embedding=ask)

    assert asked == [(len(line("user", "new")), ["User: new"])]


# ── notes ──


def test_an_edited_note_keeps_what_stands_above_the_edit(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    embedder, store = HashingEmbedder(), SqliteStore(str(tmp_path / "index"))
    indexer = Indexer(
        [Workspace(str(folder))],
        store,
        embedder,
        ChunkingSettings(tokens=30),
        Disappearances(str(tmp_path / "state")),
        erasures=Erasures(str(tmp_path / "state")),
        clock=Clock(),
    )
    note = folder / "MEMORY.md"
    note.write_text(
        "\n\n".join(
            f"## Part {number}\n\nThe server of part {number} is called db-{number}." for number in range(9)
        )
    )
    indexer.sync()
    embedder.embedded.clear()
    note.write_text(note.read_text() + "\n\n## Part 9\n\nOne more.")
    forget_what_was_made(indexer)

    report = indexer.sync()

    assert len(embedder.embedded) < 4
    assert report.chunks < 4
    grown = store.digest()
    indexer.sync(force=True)
    assert store.digest() == grown
    store.close()


def forget_what_was_made(indexer):
    """As if another process had indexed the file."""
    indexer._preparation = None


def test_a_note_with_another_scope_is_indexed_again(tmp_path, monkeypatch):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("words")
    workspace = Workspace(str(folder))
    store = MemoryStore()
    indexer = Indexer(
        [workspace],
        store,
        HashingEmbedder(),
        ChunkingSettings(),
        Disappearances(str(tmp_path / "state")),
        erasures=Erasures(str(tmp_path / "state")),
        clock=Clock(),
    )
    indexer.sync()
    monkeypatch.setattr(Workspace, "_scope_at", lambda *_: "shared")

    assert indexer.sync().indexed == ("MEMORY.md",)
    with store.reading() as reader:
        assert reader.files()["memory", "MEMORY.md"].scope == "shared"
