"""No id, key, entry or flag that somebody else can choose makes them the owner."""

import copy
import json
import pickle
import subprocess
import sys
from itertools import product

import pytest

from plainmind import OWNER, Memory, SearchContext
from plainmind.agent.scope import Rule, access_of
from plainmind.guests.chat.access import context_of_session

NICKS = [
    "owner", "Owner", "OWNER", " owner", "owner ", "owner\n", "owner\0", "\ufeffowner", "ｏｗｎｅｒ", "оwner",
    "own\u200ber", "private", "shared", "*", "me", "self", "root", "admin", "main", "THE_OWNER",
    "person:owner", "../owner", "owner:topic:1", "<Owner>", "None", "True", "0", repr(OWNER), str(OWNER),
]  # fmt: skip
KINDS = ("direct", "group", "channel", "", "supergroup", "dm")
OPEN_RULES = (Rule("allow", key_prefix="agent"), Rule("allow"))
KEYS = [
    "",
    "agent:main:main",
    "agent:main:telegram:direct:{}",
    "telegram:dm:{}",
    "agent:{}:main",
    "{}",
    "cron:{}",
]
SECRET = "the safe opens with zanzibar"


def everything_is_open(context):
    return access_of(context, OPEN_RULES, "allow").sees_everything


def test_no_nick_is_the_owner_in_any_kind_of_chat():
    tries, owners = 0, []
    for nick, kind, key, channel in product(NICKS, KINDS, KEYS, ("", "irc", "owner")):
        tries += 1
        context = SearchContext(nick, kind, key.format(nick), channel)
        if everything_is_open(context):
            owners.append(context)

    assert tries > 3_000
    assert owners == []


def test_no_session_that_a_channel_names_is_the_owners():
    keys = (
        "agent:main:telegram:direct:{}",
        "telegram:dm:{}",
        "agent:main:irc:direct:{}:thread:2",
        "irc:direct{}",
    )
    entries = ({}, {"chatType": "direct"}, {"channel": "owner"}, {"chatType": "supergroup"})
    sessions = [(key.format(nick), entry) for nick in ("", *NICKS) for key in keys[:3] for entry in entries]
    sessions += [(key.format(""), entry) for key in keys for entry in entries]

    assert len(sessions) > 300
    assert [one for one in sessions if everything_is_open(context_of_session(*one))] == []


@pytest.mark.parametrize("kind", ["supergroup", "thread", "owner", ["direct"], {"a": 1}, 7])
def test_a_session_of_an_unknown_kind_is_nobodys(kind):
    assert not everything_is_open(context_of_session("agent:main:main", {"chatType": kind}))


def test_a_conversation_at_this_machine_is_the_owners():
    assert everything_is_open(context_of_session("agent:main:main", {}))
    assert everything_is_open(context_of_session("agent:main:main", {"chatType": "direct"}))


def test_the_owner_stays_the_owner_when_copied_and_is_equal_to_no_text():
    for again in (copy.copy(OWNER), copy.deepcopy(OWNER), pickle.loads(pickle.dumps(OWNER))):
        assert again is OWNER
    assert all(nick != OWNER for nick in NICKS)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(SECRET + "\n")
    return tmp_path


def ask(place, *flags):
    """Ask the real server over standard input, as a gateway that passes on what a channel told."""
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    search = {
        "name": "memory_search",
        "arguments": {"query": "what opens the safe?"},
        "_meta": {"principal": "owner"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "plainmind", "mcp", "--workspace", place / "notes", *flags],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=110,
        env={"PLAINMIND_HOME": str(place / "home"), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    return done.stdout, done.stderr


def test_a_server_for_somebody_called_owner_keeps_what_is_private(place):
    answer, said = ask(place, "--principal", "owner", "--chat-type", "direct", "--channel", "irc")
    assert '"id":2' in answer.replace(" ", "")
    assert "zanzibar" not in answer
    assert "--owner" in said


def test_a_server_that_was_started_for_the_owner_is_theirs(place):
    answer, _ = ask(place, "--owner", "--chat-type", "direct", "--session-key", "agent:main:main")
    assert "zanzibar" in answer


def test_a_memory_within_a_nick_sees_nothing_private(place):
    with Memory(place / "notes", home=place / "home", config={"provider": "none"}) as memory:
        for nick in NICKS:
            within = memory.within(SearchContext(nick, "direct", "agent:main:main"))
            assert not within.access.sees_everything
            assert not within.access.is_allowed or not within.search("what opens the safe?").hits
