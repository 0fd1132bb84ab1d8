"""Compaction: a summary instead of what was said, with the latest messages kept and nothing lost."""

from __future__ import annotations

import pytest
from tests.support.agent_stage import MAIN, ROOM, staged
from tests.support.scripted_chat_model import Say, in_order

from plainmind.guests.chat.conversation import compact, kept
from plainmind.guests.chat.model import ChatFailure


def test_a_summary_takes_the_place_of_all_but_the_latest_messages(tmp_path):
    with staged(tmp_path, in_order(Say("They chose larch."))) as at:
        session = at.session(said=5)

        assert compact(session, at.model, ROOM, keep_messages=3, overhead_tokens=500)

        context = session.context()
        assert context.summary == "They chose larch."
        assert len(context.messages) == 3
        assert len(list(session.messages())) == 10, "the transcript keeps everything"
        asked = at.server.asked[0]
        assert asked.tools == []
        assert "Turn 0" in asked.last
        assert "Larch, 4 times" not in asked.last, "what is kept need not be summed up"
        entry = session.entry()
        assert entry["compactionCount"] == 1
        assert 500 < entry["totalTokens"] < 600


def test_the_next_summary_begins_with_the_one_before(tmp_path):
    with staged(tmp_path, in_order(Say("They chose larch."), Say("Larch and spruce."))) as at:
        session = at.session()
        compact(session, at.model, ROOM, keep_messages=0)
        session.append({"role": "user", "content": "The mast is spruce."})
        session.append({"role": "assistant", "content": "Yes."})

        compact(session, at.model, ROOM, keep_messages=0)

        assert "Earlier summary: They chose larch." in at.server.asked[1].last
        assert "The mast is spruce." in at.server.asked[1].last
        assert "Turn 0" not in at.server.asked[1].last
        assert session.context().summary == "Larch and spruce."


def test_nothing_is_compacted_where_nothing_would_go(tmp_path):
    with staged(tmp_path, in_order(Say("x"))) as at:
        assert compact(at.store.open_or_create(MAIN), at.model, ROOM, keep_messages=8) is None
        assert compact(at.session(said=2), at.model, ROOM, keep_messages=8) is None
        assert at.server.asked == []


@pytest.mark.parametrize(
    "said", [Say(""), Say("NO_REPLY"), Say(status=400, body={"error": {"message": "no"}})]
)
def test_without_a_summary_nothing_changes(tmp_path, said):
    with staged(tmp_path, in_order(said)) as at:
        session = at.session()
        before = list(session.entries())

        with pytest.raises(ChatFailure):
            compact(session, at.model, ROOM, keep_messages=0)

        assert list(session.entries()) == before
        assert session.entry().get("compactionCount", 0) == 0


def test_a_model_that_finds_it_too_long_is_told_less(tmp_path):
    too_long = Say(status=400, body={"error": {"message": "maximum context length is 8 tokens"}})
    with staged(tmp_path, in_order(too_long, Say("In short."))) as at:
        session = at.store.open_or_create(MAIN)
        for number in range(20):
            session.append({"role": "user", "content": f"turn {number} " + "word " * 8000})

        assert compact(session, at.model, ROOM, keep_messages=1)

        assert len(at.server.asked[1].last) < len(at.server.asked[0].last) / 2


def test_what_was_said_while_the_summary_was_written_stays(tmp_path):
    with staged(tmp_path, in_order(Say("In short."))) as at:
        session = at.session()
        at.server.at = lambda moment, _: (
            moment == "asked" and session.append({"role": "user", "content": "Wait!"})
        )

        compact(session, at.model, ROOM, keep_messages=0)

        assert [message["content"] for message in session.context().messages] == ["Wait!"]


def test_as_many_messages_are_kept_as_fit_and_the_unanswered_one_always():
    def said(role, chars):
        return {"role": role, "content": "x" * chars}

    short = [said("user", 40), said("assistant", 40)] * 5
    assert kept(short, at_most=4, tokens=10_000) == 4
    assert kept(short, at_most=15, tokens=10_000) == 10
    assert kept(short, at_most=0, tokens=10_000) == 0
    assert kept(short, at_most=8, tokens=40) == 2
    assert kept([*short, said("user", 100_000)], at_most=8, tokens=100) == 1
    assert kept([*short, said("user", 40)], at_most=0, tokens=100) == 1
    assert kept([], at_most=8, tokens=100) == 0
