"""The scope of a file, by where it lies or whose conversation it is."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plainmind.base.model import PRIVATE, SHARED
from plainmind.notes.scopes import (
    channel_in_key,
    folder_of_scope,
    group_in_key,
    group_scope,
    person_in_key,
    person_scope,
    scope_of_path,
    scope_of_session,
)

IDS = st.text(min_size=1, max_size=20)


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "memory/2026-02-10.md",
        "memory/shared-with/note.md",
        "memory/shared-with",
        "memory/shared-with/",
        "memory/shared-with/Everyone/note.md",
        "memory/shared-with/group-/note.md",
        "memory/shared-with/group/note.md",
        "memory/shared-with/team-7/note.md",
        "memory/shared-with/group-%2d100/note.md",  # not as we write it: `-` needs no escape
        "memory/shared-with/group-a%2fb/note.md",
        "memory/shared-with/group-%/note.md",
        "memory/shared-with/group-%zz/note.md",
        "memory/shared-with/group-%FF/note.md",
        "memory/shared-with/group-ä/note.md",
        "memory/shared-with/person-%00 /note.md",
        "memory/shared-with-all/everyone/note.md",
        "Memory/shared-with/everyone/note.md",
        "notes/memory/shared-with/everyone/note.md",
        "memory/shared-with/telegram/note.md",
        "memory/shared-with/telegram/everyone/note.md",
        "memory/shared-with/telegram/group-/note.md",
        "memory/shared-with/telegram/work/group-7/note.md",
        "memory/shared-with/Telegram/group-7/note.md",
        "memory/shared-with//group-7/note.md",
        "memory/shared-with/./group-7/note.md",
        "memory/shared-with/.git/group-7/note.md",
        "memory/shared-with/a%20/group-7/note.md",
        "memory/shared-with/" + "a" * 61 + "/group-7/note.md",
    ],
)
def test_what_names_nobody_else_is_private(path):
    assert scope_of_path(path) == PRIVATE


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("memory/shared-with/everyone/wifi.md", SHARED),
        ("memory/shared-with/everyone/a/b.md", SHARED),
        ("memory/shared-with/group--100123/2026-02-10.md", "group:-100123"),
        ("memory/shared-with/group-120363@g.us/2026-02-10.md", "group:120363@g.us"),
        ("memory/shared-with/group-a%2Fb/x.md", "group:a/b"),
        ("memory/shared-with/person-anna/x/y.md", "person:anna"),
        ("memory/shared-with/person-%C3%A4/x.md", "person:ä"),
        ("memory/shared-with/telegram/group--100/2026-02-10.md", "telegram/group:-100"),
        ("memory/shared-with/ms.teams/person-a%2Fb/x/y.md", "ms.teams/person:a/b"),
        ("memory/shared-with/a%2Fb/group-7/x.md", "a%2Fb/group:7"),
        ("memory/shared-with/group-7/group-8/x.md", "group:7"),
        ("memory/shared-with/everyone/group-8/x.md", SHARED),
    ],
)
def test_a_folder_says_with_whom_it_is_shared(path, scope):
    assert scope_of_path(path) == scope


@given(st.sampled_from([group_scope, person_scope]), IDS)
@example(group_scope, "../../MEMORY")
@example(group_scope, "..")
@example(person_scope, "%")
@example(person_scope, "a:b/c\\d\x00")
@example(group_scope, "\ud800")
def test_every_id_makes_one_safe_name_and_comes_back_exactly(scope_named, name):
    scope = scope_named(name)
    folder = folder_of_scope(scope)

    assert folder is not None
    assert folder.isascii()
    assert folder.count("/") == 2
    assert folder.rpartition("/")[2] not in {".", ".."}
    assert scope_of_path(f"{folder}/note.md") == scope


@given(IDS, IDS)
def test_two_ids_never_share_a_folder(one, other):
    assert (folder_of_scope(group_scope(one)) == folder_of_scope(group_scope(other))) == (one == other)
    assert folder_of_scope(group_scope(one)) != folder_of_scope(person_scope(other))


@given(st.text(alphabet="abgroupers-%2F.é/", max_size=30))
def test_no_folder_is_taken_for_one_that_we_would_not_write_to(name):
    scope = scope_of_path(f"memory/shared-with/{name}/note.md")

    if scope not in {PRIVATE, SHARED}:
        folder = folder_of_scope(scope)
        assert f"memory/shared-with/{name}/".startswith(f"{folder}/")
        assert folder.count("/") == 2 + scope.partition(":")[0].count("/")


def test_what_has_no_folder_of_its_own_says_so():
    assert folder_of_scope(PRIVATE) is None
    assert folder_of_scope("group:") is None
    assert folder_of_scope("team:7") is None
    assert folder_of_scope("/group:7") is None
    assert folder_of_scope("a/b/group:7") is None
    assert folder_of_scope("Telegram/group:7") is None
    assert folder_of_scope(group_scope("ä" * 100)) is None
    assert folder_of_scope(SHARED) == "memory/shared-with/everyone"


CHANNELS = st.text(max_size=20)


@given(st.sampled_from([group_scope, person_scope]), IDS, CHANNELS, CHANNELS)
@example(group_scope, "7", "everyone", "group-7")
@example(group_scope, "7", "..", ".")
@example(group_scope, "7", "a/../..", "person-x")
@example(group_scope, "7", "telegram:group", "telegram")
@example(group_scope, "7", "%2e%2e", "\x00")
def test_the_same_id_in_two_channels_is_two_folders_or_none(scope_named, name, one, other):
    scopes = [scope_named(name, channel) for channel in (one, other)]
    folders = [folder_of_scope(scope) for scope in scopes]

    assert (scopes[0] == scopes[1]) == (one.strip().casefold() == other.strip().casefold())
    assert scopes[0] != scopes[1] or folders[0] == folders[1]
    assert None in folders or (folders[0] == folders[1]) == (scopes[0] == scopes[1])
    for scope, folder in zip(scopes, folders, strict=True):
        assert folder is None or scope_of_path(f"{folder}/note.md") == scope
        assert not {"", ".", ".."} & set((folder or "memory").split("/"))


@pytest.mark.parametrize("channel", ["everyone", "group-7", "person-", "..", ".hidden", "x" * 61])
def test_a_channel_whose_name_means_something_else_has_no_folder(channel):
    assert folder_of_scope(group_scope("7", channel)) is None


@pytest.mark.parametrize(
    ("key", "channel"),
    [
        ("agent:main:telegram:group:-100", "telegram"),
        ("telegram:group:-100", "telegram"),
        ("agent:main:telegram:work:direct:7", "telegram"),
        ("cron:telegram:group:A", "telegram"),
        ("agent:main:group:7", None),
        ("agent:main:dm:telegram", None),
        ("agent:main:telegram:slash:7", None),
        ("agent:main::group:7", None),
        ("cron:daily", None),
        ("group:7", None),
        ("", None),
    ],
)
def test_a_session_key_names_the_channel_of_its_chat(key, channel):
    assert channel_in_key(key) == channel


@pytest.mark.parametrize(
    ("key", "group", "person"),
    [
        ("agent:main:main", None, None),
        ("agent:main:telegram:group:-100123", "-100123", None),
        ("agent:main:telegram:group:-100123:topic:7", "-100123", None),
        ("agent:main:slack:channel:C0123:thread:1.2", "C0123", None),
        ("agent:main:matrix:channel:!room:example.org", "!room:example.org", None),
        ("agent:main:whatsapp:dm:+43123", None, "+43123"),
        ("agent:main:direct:anna", None, "anna"),
        ("agent:main:direct:anna:thread:9", None, "anna"),
        ("group:7", "7", None),
        ("agent:main:group:", None, None),
        ("agent:main:group", None, None),
        ("cron:backup", None, None),
        ("agent:main:subagent:0b", None, None),
        ("agent:main:telegram:groups:1", None, None),
        ("agent:main:telegram:group:topic", "topic", None),
        ("agent:group:main", None, None),
        ("agent:direct:main", None, None),
        ("agent:channel:telegram:group:7", "7", None),
        ("agent:main:matrix:direct:group:7", None, "group:7"),
        ("agent:main:matrix:group:direct:7", "direct:7", None),
        ("", None, None),
    ],
)
def test_a_session_key_names_the_group_or_person_that_it_is_of(key, group, person):
    assert group_in_key(key) == group
    assert person_in_key(key) == person


@pytest.mark.parametrize(
    ("key", "entry", "scope"),
    [
        ("agent:main:main", {}, PRIVATE),
        ("agent:main:main", {"chatType": "direct"}, PRIVATE),
        ("agent:main:x", {"chatType": "group", "groupId": "7"}, "group:7"),
        ("agent:main:x", {"groupId": "7"}, "group:7"),
        ("agent:main:x:group:8", {"groupId": "7"}, "x/group:7"),
        ("agent:main:group:8", {"channel": "slack"}, "slack/group:8"),
        ("agent:main:x:group:8", {"channel": "Slack"}, "slack/group:8"),
        ("agent:main:x:group:8", {"channel": ["slack"]}, PRIVATE),
        ("agent:main:x:group:8", {"groupId": ["7"]}, PRIVATE),
        ("agent:main:x:channel:8", {"chatType": "channel"}, "x/group:8"),
        ("agent:main:x:dm:anna", {"chatType": "channel"}, PRIVATE),
        ("agent:main:x", {"chatType": "group"}, PRIVATE),
        ("agent:main:x:dm:anna", {}, "x/person:anna"),
        ("agent:main:x:direct:anna", {"chatType": "direct"}, "x/person:anna"),
        ("agent:main:x:dm:anna", {"channel": "y"}, "x/person:anna"),  # the one that it was in last
        ("agent:main:dm:anna", {"channel": "y"}, "person:anna"),
        ("agent:main:x:direct:anna", {"chatType": ["group"]}, PRIVATE),
        ("agent:main:x:direct:anna", {"chatType": "supergroup"}, PRIVATE),
        ("agent:main:x:direct:anna", {"groupId": 7}, PRIVATE),
        ("cron:daily", {"chatType": None}, PRIVATE),
    ],
)
def test_a_conversation_belongs_to_those_who_had_it(key, entry, scope):
    assert scope_of_session(key, entry) == scope


@pytest.mark.parametrize("channel", ["", " ", "\t\n", None])
def test_a_blank_channel_in_the_registry_does_not_open_a_group_to_all_channels(channel):
    entry = {"groupId": "-100", "channel": channel}

    assert scope_of_session("agent:main:telegram:group:-100", entry) == "telegram/group:-100"
