"""A conversation in either format: what is added is there, in order, and a model is given the right part of it."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest
from tests.support.descriptors import open_in

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.sessions.store import Session, SessionStore


def say(session: Session, *texts: str, role: str = "user") -> list[str]:
    return [session.append({"role": role, "content": text}) for text in texts]


def contents(session: Session) -> list[object]:
    return [message["content"] for message in session.messages()]


def given(session: Session) -> list[object]:
    return [message["content"] for message in session.context().messages]


def test_a_session_that_is_let_go_has_closed_its_files_before_anybody_looks_for_garbage(
    store: SessionStore, tmp_path: Path
) -> None:
    gc.disable()
    try:
        for _ in range(3):
            with store.open_or_create("main") as session:
                say(session, "hello")
        del session

        assert open_in(tmp_path) == []
    finally:
        gc.enable()


def test_messages_come_back_in_the_order_they_were_added(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two", "three")

    assert contents(session) == ["one", "two", "three"]
    assert [entry["id"] for entry in session.entries()] == ids
    assert [entry["parentId"] for entry in session.entries()] == [None, *ids[:-1]]


def test_another_process_reads_what_was_acknowledged(store: SessionStore) -> None:
    say(store.create("main"), "one")
    again = SessionStore(store.folder).open("main")

    assert contents(again) == ["one"]
    say(again, "two")
    assert contents(store.open("main")) == ["one", "two"]


def test_entries_of_every_type_are_kept_as_they_are(store: SessionStore) -> None:
    session = store.create("main")
    entries = [
        {"type": "model_change", "provider": "anthropic", "modelId": "m"},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        {"type": "custom", "customType": "mine", "data": {"n": [1, 2]}},
        {"type": "custom_message", "customType": "mine", "content": "psst", "display": False},
        {"type": "label", "targetId": "x", "label": "here"},
        {"type": "session_info", "name": "a name"},
        {"type": "branch_summary", "fromId": "x", "summary": "elsewhere"},
        {"type": "of_tomorrow", "whatever": None},
    ]
    session.extend(entries)

    found = list(session.entries())
    assert [
        {name: entry[name] for name in given} for entry, given in zip(found, entries, strict=True)
    ] == entries
    assert given(session) == ["psst", "elsewhere"]


def test_the_tail_is_the_last_messages_oldest_first(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two", "three")
    session.append({"type": "custom", "customType": "mine", "data": 1})

    assert [entry["message"]["content"] for entry in session.tail(2)] == ["two", "three"]
    assert session.tail(0) == []
    assert len(session.tail(99)) == 3


def test_trying_again_with_the_same_id_adds_nothing(store: SessionStore) -> None:
    session = store.create("main")
    for _ in range(3):
        assert session.append({"role": "user", "content": "once"}, id="call-1") == "call-1"
    say(session, "twice")
    SessionStore(store.folder).open("main").append({"role": "user", "content": "once"}, id="call-1")

    assert contents(session) == ["once", "twice"]


def test_an_id_that_stands_inside_another_message_is_not_taken_for_it(store: SessionStore) -> None:
    session = store.create("main")
    call = {"type": "toolCall", "id": "call-1", "name": "read", "arguments": {"id": "call-1"}}
    session.append({"role": "assistant", "content": [call]})
    session.append({"role": "toolResult", "toolCallId": "call-1", "content": "42"}, id="call-1")

    assert len(list(session.entries())) == 2


def test_the_same_id_twice_in_one_call_is_one_entry(store: SessionStore) -> None:
    session = store.create("main")
    entry = {"type": "custom", "id": "a", "customType": "mine", "data": 1}

    assert session.extend([entry, entry]) == ["a", "a"]
    assert len(list(session.entries())) == 1


@pytest.mark.parametrize(
    "wrong", [{}, {"type": 5}, {"type": "session", "id": "x"}, {"content": "who says?"}], ids=str
)
def test_what_is_neither_message_nor_entry_is_refused(store: SessionStore, wrong: dict[str, object]) -> None:
    session = store.create("main")
    with pytest.raises(PlainmindError, match="type"):
        session.append(wrong)
    assert list(session.entries()) == []


@pytest.mark.parametrize("wrong", [float("nan"), {1, 2}, b"bytes"], ids=str)
def test_what_json_cannot_say_is_refused_before_anything_is_written(
    store: SessionStore, wrong: object
) -> None:
    session = store.create("main")
    with pytest.raises(PlainmindError, match="JSON"):
        session.extend([{"role": "user", "content": "good"}, {"role": "user", "content": wrong}])
    assert list(session.entries()) == []


def test_a_message_that_could_not_be_read_back_is_refused(store: SessionStore) -> None:
    session = store.create("main")
    with pytest.raises(PlainmindError, match="too long"):
        session.append({"role": "user", "content": "x" * (17 << 20)})
    assert list(session.entries()) == []


@pytest.mark.parametrize("text", ["", "a\u2028b\u0085c", "\0", "\ud800", "é你🎉", "\r\n", '"\\'])
def test_every_text_survives(store: SessionStore, text: str) -> None:
    session = store.create("main")
    say(session, text)
    assert contents(SessionStore(store.folder).open("main")) == [text]


def test_after_a_compaction_a_model_is_given_the_summary_and_the_kept_tail(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two", "three")
    session.compact("they counted", keep=1)
    say(session, "four")

    assert session.context().summary == "they counted"
    assert given(session) == ["three", "four"]
    assert contents(session) == ["one", "two", "three", "four"]


def test_a_second_compaction_replaces_the_first(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two")
    session.compact("first", keep=1)
    say(session, "three")
    session.compact("second", keep=1)
    say(session, "four")

    assert session.context().summary == "second"
    assert given(session) == ["three", "four"]
    session.compact("third")
    assert (session.context().summary, given(session)) == ("third", [])


def test_what_is_said_while_the_summary_is_written_stays_in_the_context(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two", "three")
    say(session, "meanwhile")
    session.compact("up to three", keep=1, through=ids[-1])

    assert given(session) == ["three", "meanwhile"]
    with pytest.raises(NotFound, match="nothing-like-it"):
        session.compact("what?", through="nothing-like-it")


def test_the_answer_of_a_tool_is_not_kept_without_its_call(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "look it up")
    say(session, "calling", role="assistant")
    say(session, "41", "42", role="toolResult")
    session.compact("they looked it up", keep=1)

    assert given(session) == ["calling", "41", "42"]


def test_a_summary_must_say_something(store: SessionStore) -> None:
    session = store.create("main")
    with pytest.raises(PlainmindError, match="summary"):
        session.compact("  ")
    assert list(session.entries()) == []


def test_a_reset_begins_the_context_anew_and_forgets_nothing(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two")
    session.compact("a summary")
    session.reset("new topic")
    say(session, "three")

    assert (session.context().summary, given(session)) == (None, ["three"])
    assert contents(session) == ["one", "two", "three"]


def test_a_reset_may_keep_a_tail(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two", "three")
    session.reset("idle", first_kept=ids[1])
    say(session, "four")

    assert given(session) == ["two", "three", "four"]


def test_going_back_begins_another_branch(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two", "three")
    session.back_to(ids[0])
    assert given(session) == ["one"]
    say(session, "another two")
    say(SessionStore(store.folder).open("main"), "another three")

    assert given(session) == ["one", "another two", "another three"]
    session.back_to(None)
    assert given(session) == []
    say(session, "zero")
    assert given(session) == ["zero"]
    with pytest.raises(NotFound, match="nowhere"):
        session.back_to("nowhere")


def test_a_fork_has_the_branch_up_to_an_entry_and_goes_its_own_way(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two", "three")
    fork = session.fork("fork", at=ids[1], label="a try")
    say(fork, "another three")
    say(session, "four")

    assert contents(fork) == ["one", "two", "another three"]
    assert contents(session) == ["one", "two", "three", "four"]
    assert fork.entry()["label"] == "a try"
    assert (
        fork.transcript.header()["parentSession"] == Path(session.path).relative_to(store.folder).as_posix()
    )


def test_a_fork_of_a_fork_leaves_out_the_branches_that_it_does_not_come_from(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "wrong")
    session.back_to(ids[0])
    say(session, "right")
    second = session.fork("second")
    say(second, "more")
    third = second.fork("third")

    assert contents(third) == ["one", "right", "more"]
    assert given(third) == ["one", "right", "more"]
    with pytest.raises(NotFound):
        second.fork("fourth", at=ids[1])


def test_a_compaction_in_a_fork_still_finds_what_it_kept(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two")
    session.compact("summary", keep=1)
    fork = session.fork("fork")
    say(fork, "three")

    assert (fork.context().summary, given(fork)) == ("summary", ["two", "three"])


def test_threads_that_add_at_once_lose_nothing_and_keep_their_order(store: SessionStore) -> None:
    store.create("main")
    count = 20 if store.open("main").format == "jsonl" else 5

    def write(name: int) -> None:
        session = store.open("main")
        say(session, *(f"{name}:{number}" for number in range(count)))

    threads = [threading.Thread(target=write, args=[name]) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    said = contents(store.open("main"))
    assert len(said) == 6 * count
    for name in range(6):
        own = [text for text in said if str(text).startswith(f"{name}:")]
        assert own == [f"{name}:{number}" for number in range(count)]
    entries = list(store.open("main").entries())
    assert [entry["parentId"] for entry in entries] == [None, *(entry["id"] for entry in entries[:-1])]


def test_ids_are_unique_and_order_is_kept_when_the_clock_goes_back(tmp_path: Path, written_as: str) -> None:
    times = iter([2_000_000_000.0 - 1000 * step for step in range(100)])
    session = SessionStore(tmp_path, format=written_as, clock=lambda: next(times)).create("main")
    ids = say(session, *"abcdefgh")

    assert contents(session) == list("abcdefgh")
    assert len(set(ids)) == 8
    assert given(session) == list("abcdefgh")


def test_a_session_that_was_deleted_meanwhile_acknowledges_nothing(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one")
    store.delete("main")

    with pytest.raises(NotFound, match="deleted or archived"):
        say(session, "two")
    assert not Path(session.path).exists()
    store.create("main")
    with pytest.raises(NotFound, match="deleted or archived"):
        say(session, "into the new one?")


def test_a_transcript_that_somebody_removed_is_begun_again(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one")
    Path(session.path).unlink()
    say(session, "two")

    assert contents(store.open("main")) == ["two"]


def test_health_counts_entries_and_messages(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two")
    session.reset()

    health = session.check()
    assert (health.entries, health.messages, health.damaged) == (3, 2, ())


def test_an_entry_may_choose_what_it_follows(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two")
    chosen = {
        "type": "message",
        "id": "x",
        "parentId": ids[0],
        "message": {"role": "user", "content": "instead"},
    }
    assert session.append(chosen) == "x"

    assert given(session) == ["one", "instead"]
    say(session, "more")
    assert given(session) == ["one", "instead", "more"]


def test_a_compaction_says_what_it_was_told(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one")
    session.compact("summary", tokens_before=900, tokens_after=10, details={"files": ["a"]})

    entry = session.transcript.backwards().__next__().entry
    assert entry is not None
    assert (entry["tokensBefore"], entry["tokensAfter"], entry["details"]) == (900, 10, {"files": ["a"]})


def test_a_session_is_closed_at_the_end_of_its_block(store: SessionStore) -> None:
    with store.create("main") as session:
        session.append({"role": "assistant", "content": "x", "usage": {"input": 7, "output": 1}})
    assert store.list()[0].entry["inputTokens"] == 7


def test_closing_a_session_that_is_gone_is_no_error(store: SessionStore) -> None:
    session = store.create("main")
    store.delete("main")
    session.close()


def test_programs_and_labels_between_messages_do_not_count_as_kept(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two")
    session.append({"type": "label", "targetId": "x", "label": "here"})
    session.compact("summary", keep=1)

    assert given(session) == ["two"]


def test_a_compaction_may_keep_what_the_one_before_it_kept(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "one", "two", "three")
    session.compact("first", keep=2)
    say(session, "four")
    session.compact("second", keep=2)
    assert given(session) == ["three", "four"]
    session.compact("third", keep=9)
    assert given(session) == ["three", "four"]


def test_a_summary_of_what_was_summed_up_before_leaves_the_context_as_it_is(store: SessionStore) -> None:
    session = store.create("main")
    ids = say(session, "one", "two")
    label = session.append({"type": "label", "targetId": "x", "label": "here"})
    session.compact("first", keep=1, through=label)
    assert given(session) == ["two"]
    session.compact("again", through=ids[0])
    assert (session.context().summary, given(session)) == ("again", ["two"])
    boundary = session.compact("all", through=ids[1])
    say(session, "three")
    session.compact("up to the boundary", through=boundary)
    assert given(session) == ["three"]


def test_an_answer_that_came_after_the_summary_brings_its_call_along(store: SessionStore) -> None:
    session = store.create("main")
    say(session, "look it up")
    (call,) = say(session, "calling", role="assistant")
    say(session, "42", role="toolResult")
    session.compact("they called", through=call)

    assert given(session) == ["calling", "42"]
