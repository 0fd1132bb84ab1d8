"""`chat` with the entry memory: tools, reminders and proposals, from the command line to the review."""

from __future__ import annotations

import pytest
from tests.support.scripted_chat_model import KEY, Call, Say, in_order, scripted_model

GROUP = "agent:main:telegram:group:-100"


@pytest.fixture
def model(monkeypatch, home, workspace):
    with scripted_model(in_order(Say("Noted."))) as server:
        for name, value in {
            "CHAT_BASEURL": server.openai_url,
            "CHAT_APIKEY": KEY,
            "CHAT_MODEL": "larch-1",
            "PROVIDER": "none",
            "ENTRIES_ENABLED": "true",
            "ENTRIES_DRIVER": "sqlite",
        }.items():
            monkeypatch.setenv(f"PLAINMIND_{name}", value)
        yield server


def test_the_model_stores_and_recalls_with_tools(cli, model):
    model.script = in_order(
        Say(calls=[Call("memory_store", {"text": "The heron nests on pier nine", "category": "fact"})]),
        Say("Stored."),
        Say(calls=[Call("memory_recall", {"query": "where does the heron nest"})]),
        Say("On pier nine."),
    )
    assert cli("chat", "--once", "Keep that the heron nests on pier nine").status == 0
    assert cli("chat", "--new", "--once", "hello").status == 0

    assert "The heron nests on pier nine" in model.asked[-1].text
    assert "pier nine" in cli("entries", "list").out


def test_a_reminder_reaches_the_model_and_no_file_but_the_entries(cli, model, home):
    cli("entries", "store", "The heron nests on pier zanzibar")
    assert cli("chat", "--once", "on which pier does the heron nest?").status == 0

    assert "pier zanzibar" in model.asked[0].text
    sessions = home / "agents" / "main" / "sessions"
    assert [path for path in sessions.rglob("*") if path.is_file() and b"zanzibar" in path.read_bytes()] == []


def test_nothing_is_captured_unless_that_was_asked_for(cli, model):
    assert cli("chat", "--once", "I prefer larch for the hull").status == 0
    assert "nothing waits" in cli("entries", "review").out

    answer = cli("chat", "--config", "entries.autoCapture=true", "--once", "I prefer larch for the hull")
    assert "entries review" in answer.err
    assert "I prefer larch for the hull" in cli("entries", "review").out
    assert cli("entries", "recall", "larch hull", "--json").json["entries"] == []
    cli("entries", "review", "--accept-all")
    assert len(cli("entries", "recall", "larch hull", "--json").json["entries"]) == 1


def test_a_group_has_entries_of_its_own(cli, model, monkeypatch):
    monkeypatch.setenv("PLAINMIND_SCOPE_DEFAULT", "allow")
    cli("entries", "store", "The heron nests on pier zanzibar")
    model.script = in_order(
        Say(calls=[Call("memory_recall", {"query": "The heron nests on pier"})]),
        Say(calls=[Call("memory_store", {"text": "The heron nests on pier nine"})]),
        Say("Done."),
    )
    assert cli("chat", "--session", GROUP, "--once", "on which pier does the heron nest?").status == 0

    assert "zanzibar" not in "".join(asked.text for asked in model.asked)
    scopes = {entry["scope"] for entry in cli("entries", "list", "--json").json["entries"]}
    assert "private" in scopes
    assert len(scopes) == 2
    assert "for telegram/group:-100" in cli("entries", "list").out


def test_the_beginning_of_an_id_must_be_long_enough_and_mean_one_entry(cli, model):
    first = cli("entries", "store", "The heron nests on pier nine", "--json").json["stored"]["id"]
    for given in ("", first[:1], first[:5]):
        answer = cli("entries", "forget", given)
        assert answer.status == 1
    assert "too little" in answer.err
    second = cli("entries", "store", "The printer is on VLAN 40", "--json").json["stored"]["id"]
    shared = first[: next(at for at, (one, two) in enumerate(zip(first, second, strict=True)) if one != two)]
    if len(shared) >= 6:
        assert "2 entries have ids" in cli("entries", "forget", shared).err
    assert len(cli("entries", "list", "--json").json["entries"]) == 2
    assert cli("entries", "forget", first.lower(), "-y").status == 0


def test_both_can_be_kept_when_a_person_insists(cli, model):
    assert cli("entries", "store", "The heron nests on pier nine").status == 0
    refused = cli("entries", "store", "On pier nine nests the heron")
    assert refused.status == 1
    assert "--anyway" in refused.err
    assert cli("entries", "store", "On pier nine nests the heron", "--anyway").status == 0


def test_lines_that_are_no_entries_are_counted_and_an_odd_date_is_no_trouble(cli, model, home):
    cli("entries", "store", "The heron nests on pier nine")
    with (home / "entries" / "main" / "entries.jsonl").open("a") as file:
        file.write('not an entry\n{"id": "A1", "text": "red", "createdAt": 900000000000000}\n')

    assert "1970-01-01" in cli("entries", "list").out
    assert "1 line of the file cannot be read" in cli("entries", "stats").err
