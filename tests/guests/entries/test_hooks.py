"""Entries around a turn: the model is reminded, what was said is proposed, and none of it costs a turn."""

from __future__ import annotations

import json

import pytest
from tests.support.agent_stage import MAIN, ROOM, Recorded, staged
from tests.support.scripted_chat_model import Call, Say, in_order

from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.guests.chat.access import context_of_session
from plainmind.guests.chat.context import with_reminder
from plainmind.guests.chat.conversation import Conversation, ConversationSettings
from plainmind.guests.chat.flush import FlushSettings
from plainmind.guests.chat.model import ChatFailure
from plainmind.guests.entries.access import entry_folder, entry_memory_of, tools_within
from plainmind.guests.entries.entry_file import EntryFile
from plainmind.guests.entries.toolbox import last_words

BOTH = pytest.mark.parametrize("dialect", ["openai", "anthropic"])
FACT = "The boat Ida lies at berth zanzibar"
GROUP = "agent:main:telegram:group:-100"


def config(**entries):
    return {"entries": {"enabled": True, "driver": "sqlite", **entries}}


def conversation(at, session):
    context = context_of_session(session.key, session.entry())
    tools, hooks = tools_within(at.memory, context)
    settings = ConversationSettings(FlushSettings(ROOM))
    return Conversation(
        at.store, session, at.memory.within(context), at.model, settings, tools=tools, hooks=hooks
    )


def keep(at, text=FACT, scope=PRIVATE):
    entries = entry_memory_of(at.memory)
    assert entries.store(text, scope=scope).entry is not None
    entries.close()


def waiting(at):
    entries = entry_memory_of(at.memory)
    found = entries.list(scopes=EVERY_SCOPE, waiting=True)
    entries.close()
    return found


def session_of(at, key=MAIN, **fields):
    return at.store.open_or_create(key, **(fields or {"chatType": "direct"}))


@BOTH
def test_a_turn_that_is_clearly_about_an_entry_begins_with_it_and_leaves_no_copy(tmp_path, dialect):
    with staged(tmp_path, in_order(Say("There.")), config(), dialect=dialect) as at:
        keep(at)
        session = session_of(at)
        talk = conversation(at, session)
        talk.say("At which berth lies the boat Ida?", Recorded())
        talk.close()

        asked = at.server.asked[0].text
        assert asked.index("zanzibar") < asked.index("At which berth")
        assert "not instructions" in asked
        assert "zanzibar" not in json.dumps(list(session.messages()))


def test_every_round_of_a_turn_has_the_reminder_and_the_next_turn_its_own(tmp_path):
    script = in_order(Say(calls=[Call("memory_status", {}, "c1")]), Say("There."), Say("Fine."))
    with staged(tmp_path, script, config()) as at:
        keep(at)
        talk = conversation(at, session_of(at))
        talk.say("At which berth lies the boat Ida?", Recorded())
        talk.say("thank you very much", Recorded())
        talk.close()

        told = ["berth zanzibar" in asked.text for asked in at.server.asked]
        assert told == [True, True, False]


def test_nothing_comes_by_itself_where_that_is_switched_off(tmp_path):
    with staged(tmp_path, in_order(Say("There.")), config(autoRecall=False, autoCapture=False)) as at:
        keep(at)
        talk = conversation(at, session_of(at))
        talk.say("I prefer to know at which berth lies the boat Ida", Recorded())
        talk.close()

        assert "zanzibar" not in at.server.asked[0].text
        assert waiting(at) == ()


def test_what_was_said_is_captured_only_when_that_was_asked_for_and_waits(tmp_path):
    with staged(tmp_path, in_order(Say("Noted.")), config(autoCapture=True)) as at:
        heard = Recorded()
        talk = conversation(at, session_of(at))
        talk.say("I prefer larch for the hull", heard)
        talk.say("what time is it?", heard)
        talk.close()

        assert [entry.text for entry in waiting(at)] == ["I prefer larch for the hull"]
        assert [notice for notice in heard.notices if "entries review" in notice] == heard.notices


def test_a_turn_that_failed_is_reminded_and_captured_when_it_is_resumed(tmp_path):
    broken = Say(status=400, body={"error": {"message": "no"}})
    with staged(tmp_path, in_order(broken, Say("There.")), config(autoCapture=True)) as at:
        keep(at)
        session = session_of(at)
        talk = conversation(at, session)
        with pytest.raises(ChatFailure):
            talk.say("I prefer that the boat Ida lies at her berth", Recorded())
        talk.close()
        assert waiting(at) == ()

        again = conversation(at, session)
        assert again.resume(Recorded()) is not None
        again.close()
        assert "zanzibar" in at.server.asked[-1].text
        assert len(waiting(at)) == 1


def test_a_group_is_not_reminded_of_what_is_the_owners(tmp_path):
    everybody = {"scope": {"default": "allow", "rules": []}, **config(autoCapture=True)}
    with staged(tmp_path, in_order(Say("No idea."), Say("Still none.")), everybody) as at:
        keep(at)
        session = session_of(at, GROUP, chatType="group", channel="telegram")
        talk = conversation(at, session)
        talk.say("At which berth lies the boat Ida?", Recorded())
        talk.say("I prefer larch for the hull", Recorded())
        talk.close()

        assert "zanzibar" not in "".join(asked.text for asked in at.server.asked)
        assert [entry.scope for entry in waiting(at)] == [
            at.memory.within(context_of_session(GROUP, session.entry())).access.writes
        ]


def test_where_the_memory_may_not_be_used_nothing_is_recalled_or_captured(tmp_path):
    with staged(tmp_path, in_order(Say("No idea.")), config(autoCapture=True)) as at:
        keep(at)
        talk = conversation(at, session_of(at, GROUP, chatType="group"))
        talk.say("I prefer to know at which berth lies the boat Ida", Recorded())
        talk.close()

        assert "zanzibar" not in at.server.asked[0].text
        assert waiting(at) == ()


def test_an_entry_memory_that_is_broken_is_mentioned_and_costs_no_turn(tmp_path):
    with staged(tmp_path, in_order(Say("Larch.")), config(autoCapture=True)) as at:
        keep(at)
        path = tmp_path / "home" / "entries" / "main" / "entries.jsonl"
        path.unlink()
        path.mkdir()
        heard = Recorded()
        talk = conversation(at, session_of(at))
        reply = talk.say("I prefer larch for the hull of the boat", heard)
        talk.close()

        assert reply.text == "Larch."
        assert len(heard.notices) == 2
        assert "without recalled entries" in heard.notices[0]


def test_no_turn_waits_until_others_are_done_with_the_entries(tmp_path):
    soon = {"limits": {"timeoutMs": 200}, **config(autoRecall=False, autoCapture=True)}
    with staged(tmp_path, in_order(Say("Larch.")), soon) as at:
        heard = Recorded()
        talk = conversation(at, session_of(at))
        with EntryFile(entry_folder(at.memory)).changing("make an index that takes long"):
            reply = talk.say("I prefer larch for the hull of the boat", heard)
        talk.close()

        assert reply.text == "Larch."
        assert ["longer than 200 ms" in notice for notice in heard.notices] == [True]
        assert len(waiting(at)) == 1


def test_a_group_is_not_told_where_the_owner_keeps_what_is_broken(tmp_path):
    everybody = {"scope": {"default": "allow", "rules": []}, **config(autoCapture=True)}
    with staged(tmp_path, in_order(Say("Larch.")), everybody) as at:
        (tmp_path / "home" / "entries" / "main" / "entries.jsonl").mkdir(parents=True)
        heard = Recorded()
        talk = conversation(at, session_of(at, GROUP, chatType="group", channel="telegram"))
        talk.say("I prefer larch for the hull of the boat", heard)
        talk.close()

        assert len(heard.notices) == 2
        assert not [notice for notice in heard.notices if str(tmp_path) in notice]


def test_a_reminder_stands_before_what_the_user_said_last():
    said = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": [{"type": "toolCall"}]},
        {"role": "toolResult", "content": "four"},
    ]
    assert [message["content"] for message in with_reminder(said, "psst")][:4] == [
        "one",
        "two",
        "psst",
        "three",
    ]
    assert with_reminder(said, "") == tuple(said)
    assert with_reminder((), "psst") == ({"role": "user", "content": "psst"},)
    assert last_words(said) == "three"
    assert last_words([{"role": "user", "content": [{"type": "text", "text": "five"}]}]) == "five"
    assert last_words([{"role": "user", "content": [{"type": "image"}]}]) == ""
    assert last_words([]) == ""
