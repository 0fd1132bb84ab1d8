"""The reference agent, in one process: turns, tools, room, and going on after whatever went wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.agent_stage import MAIN, ROOM, Recorded, staged
from tests.support.scripted_chat_model import Call, Say, in_order

from plainmind.base.errors import StorageFailure
from plainmind.guests.chat.context import INTERRUPTED, RoomSettings
from plainmind.guests.chat.model import ABORTED, ChatFailure

BOTH = pytest.mark.parametrize("dialect", ["openai", "anthropic"])
TOO_LONG = Say(status=400, body={"error": {"message": "maximum context length is 9 tokens"}})


def full(text="Larch.", tokens=90_000):
    return Say(text, usage=(tokens, 10))


def roles(session):
    return [entry["message"]["role"] for entry in session.entries() if entry["type"] == "message"]


def texts(session):
    return json.dumps(list(session.messages()), ensure_ascii=False)


def by_kind(turn, *, flush=None, compaction=None):
    """Answer turns with one script, and save or sum up when asked to."""

    def script(asked):
        if asked.kind == "flush":
            note = flush or Say(calls=[Call("memory_append", {"text": "They chose larch."})])
            return Say("NO_REPLY") if "Noted" in asked.last else note
        if asked.kind == "compaction":
            return compaction or Say("In short: larch.")
        return turn(asked) if callable(turn) else turn

    return script


@BOTH
def test_a_turn_uses_tools_and_keeps_everything(tmp_path, dialect):
    script = in_order(
        Say("I look.", [Call("memory_search", {"query": "boat"}, "c1")], (300, 20)),
        Say(calls=[Call("memory_append", {"text": "Asked about the boat."}, "c2")], usage=(400, 20)),
        Say("She is called Ida.", usage=(500, 8)),
    )
    with staged(tmp_path, script, dialect=dialect) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")
        heard = Recorded()

        reply = at.conversation(session).say("What is the boat called?", heard)

        assert reply.text == "She is called Ida."
        assert "".join(heard.pieces) == "I look.She is called Ida."
        assert heard.tools == [("memory_search", False), ("memory_append", False)]
        assert roles(session) == ["user", "assistant", "toolResult", "assistant", "toolResult", "assistant"]
        assert "Asked about the boat." in at.today.read_text()
        last = session.tail(1)[0]["message"]
        assert (last["provider"], last["model"], last["stopReason"]) == (dialect, "larch-1", "stop")
        entry = json.loads((tmp_path / "home/agents/main/sessions/sessions.json").read_text())[MAIN]
        assert (entry["inputTokens"], entry["outputTokens"], entry["totalTokens"]) == (1200, 48, 508)
        result = at.server.asked[1].text
        assert "Ida" in result
        assert "recalled-memory" in result


@BOTH
def test_the_start_context_is_data_of_the_user_and_never_the_system_s(tmp_path, dialect):
    with staged(tmp_path, in_order(Say("Hello.")), dialect=dialect) as at:
        at.conversation(at.store.open_or_create(MAIN, chatType="direct")).say("Hello?", Recorded())

        asked = at.server.asked[0]
        assert "Memory Recall" in asked.system
        assert "Ida" not in asked.system
        assert "The boat is called Ida." in json.dumps(asked.messages[0])
        assert asked.messages[0]["role"] == "user"


def test_a_user_s_turn_is_on_disk_before_the_model_is_asked(tmp_path):
    with staged(tmp_path, in_order(Say("Larch."))) as at:
        session = at.store.open_or_create(MAIN)
        found = []
        at.server.at = lambda moment, _: (
            found.append("Which wood?" in Path(session.path).read_text()) if moment == "asked" else None
        )

        at.conversation(session).say("Which wood?", Recorded())

        assert found == [True]


def test_a_turn_that_fails_is_kept_and_answered_later(tmp_path):
    with staged(tmp_path, in_order(Say(status=401, body={"error": {"message": "no"}}), Say("Larch."))) as at:
        session = at.store.open_or_create(MAIN)
        conversation = at.conversation(session)
        with pytest.raises(ChatFailure):
            conversation.say("Which wood?", Recorded())
        assert conversation.is_unanswered

        reply = at.conversation(at.store.open(MAIN)).resume(Recorded())

        assert reply is not None
        assert reply.text == "Larch."
        assert roles(session) == ["user", "assistant"]
        assert not conversation.is_unanswered
        assert conversation.resume(Recorded()) is None


def test_what_a_model_had_said_before_it_broke_off_is_kept(tmp_path):
    with staged(
        tmp_path, in_order(Say("Larch lasts. " * 20, breaks_off=True), Say("Longer than oak."))
    ) as at:
        session = at.store.open_or_create(MAIN)
        conversation = at.conversation(session)
        with pytest.raises(ChatFailure):
            conversation.say("Which wood?", Recorded())

        last = session.tail(1)[0]["message"]
        assert last["stopReason"] == "error"
        assert "Larch lasts." in last["content"][0]["text"]
        assert conversation.say("Go on.", Recorded()).text == "Longer than oak."
        assert "Larch lasts." in at.server.asked[1].text


@BOTH
def test_an_answer_that_broke_off_is_asked_for_again(tmp_path, dialect):
    script = in_order(Say("Larch lasts. " * 20, breaks_off=True), Say("Longer than oak."))
    with staged(tmp_path, script, dialect=dialect) as at:
        session = at.store.open_or_create(MAIN)
        conversation = at.conversation(session)
        with pytest.raises(ChatFailure):
            conversation.say("Which wood?", Recorded())
        assert conversation.is_unanswered

        reply = at.conversation(at.store.open(MAIN)).resume(Recorded())

        assert reply is not None
        assert reply.text == "Longer than oak."
        assert at.server.asked[1].messages[-1]["role"] == "user", (
            "the model does not go on with half an answer"
        )
        assert roles(session) == ["user", "assistant", "assistant"]
        assert not conversation.is_unanswered


def test_an_answer_that_was_stopped_ends_its_turn(tmp_path):
    with staged(tmp_path, in_order(Say("Larch lasts. " * 30, pause_s=1), Say("Yes."))) as at:
        session = at.store.open_or_create(MAIN)
        conversation = at.conversation(session)
        heard = Recorded()
        heard.text = lambda _: setattr(heard, "is_stopped", True)

        assert conversation.say("Which wood?", heard).stop == ABORTED

        assert session.tail(1)[0]["message"]["stopReason"] == "aborted"
        assert not conversation.is_unanswered
        assert conversation.say("Good?", Recorded()).text == "Yes."


def test_a_turn_that_is_stopped_while_tools_run_has_all_its_results_and_an_end(tmp_path):
    calls = [Call("memory_search", {"query": "a"}, "c1"), Call("memory_append", {"text": "b"}, "c2")]
    with staged(tmp_path, in_order(Say(calls=calls), Say("Yes."))) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")
        conversation = at.conversation(session)
        heard = Recorded()
        heard.tool = lambda *_, **__: setattr(heard, "is_stopped", True)

        conversation.say("Which wood?", heard)

        assert roles(session) == ["user", "assistant", "toolResult", "toolResult", "assistant"]
        assert not at.today.exists(), "what was stopped is not done"
        assert session.entry()["totalTokens"] == 110, "the context is as full as it was"
        assert not conversation.is_unanswered
        assert len(at.server.asked) == 1


def test_a_model_that_never_stops_using_tools_has_to_answer(tmp_path):
    def script(asked):
        return Say("Enough.") if "used its tools up" in asked.last else Say(calls=[Call("memory_status", {})])

    with staged(tmp_path, script) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")

        reply = at.conversation(session, max_tool_rounds=3).say("Go!", Recorded())

        assert reply.text == "Enough."
        assert len(at.server.asked) == 5


def test_an_answer_that_was_cut_for_its_length_is_said(tmp_path):
    with staged(tmp_path, in_order(Say("Lar", stop="length"))) as at:
        heard = Recorded()
        at.conversation(at.store.open_or_create(MAIN)).say("Which wood?", heard)

        assert any("maxOutputTokens" in notice for notice in heard.notices)


def test_a_call_in_a_conversation_without_tools_is_answered_too(tmp_path):
    with staged(
        tmp_path, in_order(Say(calls=[Call("memory_search", {"query": "Ida"})]), Say("Sorry."))
    ) as at:
        session = at.session("agent:main:telegram:group:-7", chatType="group", groupId="-7")
        heard = Recorded()

        assert at.conversation(session).say("Boat?", heard).text == "Sorry."
        assert heard.tools == [("memory_search", True)]
        assert "Ida" not in str(at.server.asked[1].messages[-1]["content"])


def test_a_model_that_cannot_be_stopped_is_left(tmp_path):
    with staged(tmp_path, in_order(Say(calls=[Call("memory_status", {})]))) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")

        at.conversation(session, max_tool_rounds=3).say("Go!", Recorded())

        assert len(at.server.asked) == 5


def test_tools_that_do_not_exist_are_the_model_s_mistake(tmp_path):
    calls = [
        Call("bash", {"command": "ls"}),
        Call("memory_get", {"path": "../../etc/passwd"}),
        Call("memory_search", "{"),
    ]
    with staged(tmp_path, in_order(Say(calls=calls), Say("Sorry."))) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")
        heard = Recorded()

        assert at.conversation(session).say("Go!", heard).text == "Sorry."
        assert heard.tools == [("bash", True), ("memory_get", True), ("memory_search", True)]


def test_a_call_that_was_cut_off_is_done_again_only_if_it_changes_nothing(tmp_path):
    with staged(tmp_path, in_order(Say("Done."))) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")
        session.append({"role": "user", "content": "Save it."})
        calls = [
            {"type": "toolCall", "id": "r", "name": "memory_search", "arguments": {"query": "boat"}},
            {"type": "toolCall", "id": "w", "name": "memory_append", "arguments": {"text": "twice?"}},
        ]
        session.append({"role": "assistant", "content": calls})

        reply = at.conversation(session).resume(Recorded())

        assert reply is not None
        assert reply.text == "Done."
        assert not at.today.exists()
        assert INTERRUPTED in texts(session)
        assert "Ida" in texts(session)


def test_a_new_turn_after_an_unfinished_one_is_understood_by_both_endpoints(tmp_path):
    for dialect in ("openai", "anthropic"):
        with staged(tmp_path / dialect, in_order(Say("Yes.")), dialect=dialect) as at:
            session = at.store.open_or_create(MAIN, chatType="direct")
            session.append({"role": "user", "content": "Save it."})
            call = {"type": "toolCall", "id": "w", "name": "memory_append", "arguments": {"text": "x"}}
            session.append({"role": "assistant", "content": [call]})

            at.conversation(session).say("Did you?", Recorded())

            assert INTERRUPTED in at.server.asked[0].text
            assert "Did you?" in at.server.asked[0].text


def test_what_lasts_is_saved_before_the_context_is_compacted(tmp_path):
    with staged(tmp_path, by_kind(full())) as at:
        session = at.session(said=6, chatType="direct")
        heard = Recorded()

        at.conversation(session, keep_messages=2).say("Which wood?", heard)

        assert [asked.kind for asked in at.server.asked] == ["turn", "flush", "flush", "compaction"]
        entry = session.entry()
        assert (entry["compactionCount"], entry["memoryFlushCompactionCount"]) == (1, 0)
        assert entry["totalTokens"] < 10_000
        assert at.today.read_text().count("They chose larch.") == 1
        assert session.context().summary == "In short: larch."
        assert any("saved to memory/" in notice for notice in heard.notices)


def test_between_the_two_thresholds_only_the_flush_happens_and_once(tmp_path):
    with staged(tmp_path, by_kind(full(tokens=77_000))) as at:
        conversation = at.conversation(at.session(chatType="direct"))
        for number in range(3):
            conversation.say(f"Turn {number}", Recorded())

        assert [asked.kind for asked in at.server.asked] == ["turn", "flush", "flush", "turn", "turn"]


def test_nothing_is_flushed_while_the_workspace_cannot_be_written(tmp_path):
    with staged(tmp_path, by_kind(full())) as at:
        session = at.session(chatType="direct")

        at.conversation(session, keep_messages=0, can_write=lambda: False).say("Which wood?", Recorded())

        assert [asked.kind for asked in at.server.asked] == ["turn", "compaction"]
        assert "memoryFlushCompactionCount" not in session.entry()


def test_each_cycle_has_its_own_flush(tmp_path):
    with staged(tmp_path, by_kind(full())) as at:
        conversation = at.conversation(at.session(chatType="direct"), keep_messages=0)
        for number in range(3):
            conversation.say(f"Turn {number}", Recorded())

        kinds = [asked.kind for asked in at.server.asked]
        assert kinds == ["turn", "flush", "flush", "compaction"] * 3
        assert at.today.read_text().count("They chose larch.") == 3
        entry = conversation.session.entry()
        assert (entry["compactionCount"], entry["memoryFlushCompactionCount"]) == (3, 2)


def test_a_failed_flush_is_on_disk_before_the_compaction_and_tried_again_in_the_next_cycle(tmp_path):
    refused = Say(status=400, body={"error": {"message": "no tools here"}})
    with staged(tmp_path, by_kind(full(), flush=refused)) as at:
        session = at.session(chatType="direct")
        seen = []

        def look(moment, asked):
            if moment == "asked" and asked.kind == "compaction":
                registry = json.loads((tmp_path / "home/agents/main/sessions/sessions.json").read_text())
                seen.append(registry[MAIN]["memoryFlushFailure"]["reason"])

        at.server.at = look
        heard = Recorded()
        conversation = at.conversation(session, keep_messages=0)
        conversation.say("Which wood?", heard)

        assert len(seen) == 1
        assert "no tools here" in seen[0]
        assert any("could not be saved" in notice for notice in heard.notices)
        assert session.entry()["compactionCount"] == 1

        at.server.script = by_kind(full())
        conversation.say("Again", Recorded())
        assert session.entry()["memoryFlushCompactionCount"] == 1
        assert "Which wood?" in at.server.of_kind("flush")[1].last, (
            "what the failed flush did not save is offered again"
        )


def test_a_model_that_cannot_save_is_not_asked_at_every_turn(tmp_path):
    with staged(tmp_path, by_kind(full(tokens=77_000), flush=Say("I shall save it."))) as at:
        conversation = at.conversation(at.session(chatType="direct"))
        for _ in range(3):
            conversation.say("Which wood?", Recorded())

        assert [asked.kind for asked in at.server.asked] == ["turn", *["flush"] * 3, "turn", "turn"]


def test_what_lasts_is_saved_before_somebody_compacts_by_hand(tmp_path):
    with staged(tmp_path, by_kind(full(tokens=77_000))) as at:
        session = at.session(chatType="direct")
        conversation = at.conversation(session, keep_messages=0)

        assert conversation.compact(Recorded()) is not None
        conversation.say("Which wood?", Recorded())
        assert conversation.compact(Recorded()) is not None

        kinds = ["flush", "flush", "compaction", "turn", "flush", "flush", "compaction"]
        assert [asked.kind for asked in at.server.asked] == kinds
        assert at.today.read_text().count("They chose larch.") == 2


def test_nothing_is_compacted_when_not_even_the_failure_can_be_written_down(tmp_path):
    with staged(tmp_path, by_kind(full())) as at:
        session = at.session(chatType="direct")
        conversation = at.conversation(session)
        refused = StorageFailure("the disk is full")

        def update(*_, **fields):
            if any(name.startswith("memoryFlush") for name in fields):
                raise refused
            return {}

        at.store.update = update
        with pytest.raises(StorageFailure):
            conversation.say("Which wood?", Recorded())

        assert at.server.of_kind("compaction") == []
        assert "Which wood?" in texts(session)


def test_a_compaction_that_fails_loses_nothing_and_is_tried_again(tmp_path):
    trouble = Say(status=400, body={"error": {"message": "no summary"}})
    with staged(tmp_path, by_kind(full(), compaction=trouble)) as at:
        session = at.session(chatType="direct")
        heard = Recorded()
        conversation = at.conversation(session, keep_messages=0)

        assert conversation.say("Which wood?", heard).text == "Larch."
        assert any("could not be shortened" in notice for notice in heard.notices)
        assert session.entry().get("compactionCount", 0) == 0

        at.server.script = by_kind(full())
        conversation.say("And now?", heard)
        entry = session.entry()
        assert entry["compactionCount"] >= 1
        assert at.today.read_text().count("They chose larch.") == entry["compactionCount"]


def test_a_model_that_says_that_it_is_too_much_makes_room_and_is_asked_again(tmp_path):
    def turn(asked):
        return Say("Larch.", usage=(100, 1)) if "In short" in asked.text else TOO_LONG

    with staged(tmp_path, by_kind(turn)) as at:
        session = at.session(said=6, chatType="direct")

        reply = at.conversation(session, keep_messages=2).say("Which wood?", Recorded())

        assert reply.text == "Larch."
        assert [asked.kind for asked in at.server.asked] == ["turn", "flush", "flush", "compaction", "turn"]
        assert "Which wood?" in at.server.asked[-1].last
        assert session.entry()["memoryFlushCompactionCount"] == 0


def test_a_model_to_which_everything_is_too_much_is_an_error(tmp_path):
    with staged(tmp_path, by_kind(TOO_LONG, compaction=TOO_LONG)) as at:
        session = at.session(chatType="direct")
        with pytest.raises(ChatFailure) as failure:
            at.conversation(session).say("Which wood?", Recorded())

        assert failure.value.is_too_long
        assert roles(session)[-1] == "user"


def test_room_is_made_in_the_middle_of_a_turn_too(tmp_path):
    def turn(asked):
        return (
            Say(calls=[Call("memory_status", {})], usage=(90_000, 1))
            if "In short" not in asked.text
            else Say("Done.")
        )

    with staged(tmp_path, by_kind(turn)) as at:
        session = at.session(said=6, chatType="direct")

        assert at.conversation(session, keep_messages=3).say("Go!", Recorded()).text == "Done."
        assert [asked.kind for asked in at.server.asked] == ["turn", "flush", "flush", "compaction", "turn"]


def test_a_small_window_is_not_compacted_at_every_turn(tmp_path):
    small = RoomSettings(context_window=8_000)
    with staged(tmp_path, by_kind(Say("Yes.", usage=(1_000, 10)))) as at:
        conversation = at.conversation(at.session(chatType="direct"), room=small)
        conversation.say("Which wood?", Recorded())

        assert [asked.kind for asked in at.server.asked] == ["turn"]


def test_a_conversation_that_may_not_see_the_memory_has_no_tools_and_no_start(tmp_path):
    with staged(tmp_path, by_kind(full())) as at:
        session = at.session("agent:main:telegram:group:-7", chatType="group", groupId="-7")

        at.conversation(session, keep_messages=0).say("What is the boat called?", Recorded())

        assert [asked.kind for asked in at.server.asked] == ["turn", "compaction"], "and nothing to flush to"
        assert all(asked.tools == [] for asked in at.server.asked)
        assert "Ida" not in at.server.asked[0].text


def test_an_endpoint_that_does_not_count_still_leads_to_a_flush(tmp_path):
    with staged(tmp_path, by_kind(Say("Yes.", usage=None))) as at:
        session = at.store.open_or_create(MAIN, chatType="direct")

        at.conversation(session).say("word " * 70_000, Recorded())

        assert "flush" in [asked.kind for asked in at.server.asked]


def test_the_room_of_the_tests_is_that_of_the_defaults():
    assert (ROOM.flushes_above, ROOM.compacts_above) == (76_000, 80_000)
