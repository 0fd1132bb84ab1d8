"""Who may see and write what: the policy as a table, and what holds for every context there can be."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plainmind.agent.scope import OWNER, THE_OWNER, Access, Rule, SearchContext, access_of
from plainmind.base.model import EVERY_SCOPE, PRIVATE, SHARED

DIRECT_ONLY = (Rule("allow", chat_type="direct"),)
EVERYBODY = (Rule("allow"),)
GROUP_KEY = "agent:main:telegram:group:-100"


def access(principal=OWNER, chat_type="direct", key="", rules=DIRECT_ONLY, default="deny", **more):
    return access_of(SearchContext(principal, chat_type, key, **more), rules, default)


def test_a_context_has_to_say_who_asks_and_where_the_answer_is_seen():
    with pytest.raises(TypeError):
        SearchContext()


def test_the_owner_in_a_direct_chat_sees_everything_and_writes_private_notes():
    assert access_of(THE_OWNER, DIRECT_ONLY, "deny") == Access(
        is_allowed=True, scopes=EVERY_SCOPE, writes=PRIVATE
    )


def test_another_person_sees_what_is_shared_and_their_own():
    assert access("anna") == Access(
        is_allowed=True, scopes=frozenset({SHARED, "person:anna"}), writes="person:anna"
    )


def test_nobody_knows_who_asks_means_no():
    denied = access("")

    assert not denied.is_allowed
    assert denied.reason == "it is not known who asks"


@pytest.mark.parametrize("chat_type", ["group", "channel"])
def test_by_default_groups_may_not_use_the_memory_at_all(chat_type):
    denied = access(OWNER, chat_type, group="-100")

    assert not denied.is_allowed
    assert chat_type in denied.reason
    assert "scope.rules" in denied.reason


@pytest.mark.parametrize("principal", [OWNER, "anna", ""])
@pytest.mark.parametrize("chat_type", ["group", "channel"])
def test_a_group_sees_what_is_shared_and_its_own_whoever_of_it_asks(principal, chat_type):
    assert access(principal, chat_type, group="-100", rules=EVERYBODY) == Access(
        is_allowed=True, scopes=frozenset({SHARED, "group:-100"}), writes="group:-100"
    )


def test_a_group_without_an_id_is_denied():
    assert not access(OWNER, "group", rules=EVERYBODY).is_allowed


def test_a_group_is_known_by_its_session_key():
    assert access("anna", "group", GROUP_KEY, rules=EVERYBODY).writes == "telegram/group:-100"


def test_a_chat_that_is_said_to_be_direct_but_has_the_key_of_a_group_is_denied():
    assert not access(OWNER, "direct", GROUP_KEY).is_allowed


@pytest.mark.parametrize("key", ["cron:daily", "agent:main:subagent:7", "hook:1", ""])
def test_a_chat_of_unknown_kind_is_denied_even_where_everything_is_allowed(key):
    assert not access(OWNER, "", key, rules=EVERYBODY).is_allowed
    assert not access(OWNER, "", key, rules=(), default="allow").is_allowed


def test_a_job_whose_key_a_rule_names_sees_what_its_principal_may():
    rules = (Rule("allow", key_prefix="cron:"),)

    assert access(OWNER, "", "cron:daily", rules).scopes == EVERY_SCOPE
    assert access("anna", "", "cron:daily", rules) == Access(is_allowed=True, scopes=frozenset({SHARED}))
    assert access("", "", "cron:daily", rules).writes == ""
    assert not access(OWNER, "", "hook:1", rules).is_allowed


def test_a_rule_for_any_key_names_none():
    rules = (Rule("allow", key_prefix=""),)

    assert not access(OWNER, "", "hook:1", rules).is_allowed
    assert access(OWNER, "direct", "", rules).is_allowed


def test_an_agent_may_be_called_group():
    assert access(OWNER, "direct", "agent:group:main").scopes == EVERY_SCOPE


def test_a_person_whose_id_looks_like_a_group_is_not_taken_for_it():
    rules = (Rule("allow", key_prefix="agent:"),)

    assert access("x", "", "agent:main:matrix:direct:group:-100", rules).scopes == {SHARED}
    assert access("x", "direct", "agent:main:matrix:direct:group:-100", rules).writes == "matrix/person:x"


def test_a_rule_for_all_keys_of_an_agent_opens_nothing_to_the_groups_among_them():
    rules = (Rule("allow", key_prefix="agent:main:"),)

    assert access(OWNER, "", GROUP_KEY, rules).scopes == {SHARED, "telegram/group:-100", "group:-100"}
    assert access(OWNER, "", "agent:main:x", rules, group="-100").scopes == {SHARED, "group:-100"}


@pytest.mark.parametrize("chat_type", ["supergroup", "Direct", "dm", "thread", "direct "])
def test_a_kind_of_chat_that_nobody_knows_is_denied_whatever_the_rules_are(chat_type):
    rules = (Rule("allow", key_prefix="agent:"),)

    assert not access(OWNER, chat_type, "agent:main:x", rules).is_allowed


def test_the_first_rule_that_matches_decides():
    rules = (
        Rule("deny", chat_type="direct", channel="discord"),
        Rule("allow", chat_type="direct"),
        Rule("deny"),
    )

    assert not access(OWNER, "direct", rules=rules, channel="discord", default="allow").is_allowed
    assert access(OWNER, "direct", rules=rules, channel="telegram").is_allowed


def test_an_id_that_is_too_long_to_keep_notes_by_is_denied_with_the_reason():
    assert "too long" in access("x" * 300).reason


@pytest.mark.parametrize("channel", ["everyone", "group-7", ".."])
def test_a_channel_that_notes_cannot_be_kept_by_is_denied(channel):
    assert not access("anna", "group", rules=EVERYBODY, group="7", channel=channel).is_allowed


def test_an_id_is_that_of_one_channel_and_what_names_no_channel_is_for_it_in_all():
    slack, telegram = (
        access("anna", "group", rules=EVERYBODY, group="-100", channel=channel)
        for channel in ("slack", "Telegram")
    )

    assert telegram == access("bob", "group", GROUP_KEY, rules=EVERYBODY)
    assert telegram.scopes == {SHARED, "telegram/group:-100", "group:-100"}
    assert (slack.writes, telegram.writes) == ("slack/group:-100", "telegram/group:-100")
    assert slack.scopes & telegram.scopes == {SHARED, "group:-100"}
    assert access("anna", "group", rules=EVERYBODY, group="-100").scopes == {SHARED, "group:-100"}


def test_a_person_is_that_of_one_channel_unless_the_key_of_the_chat_names_none():
    assert access("anna", channel="slack").writes == "slack/person:anna"
    assert (
        access("anna", key="agent:main:telegram:direct:anna", channel="slack").writes
        == "telegram/person:anna"
    )
    assert access("anna", key="agent:main:direct:anna", channel="slack").writes == "person:anna"
    assert access("anna", key="agent:main:direct:anna").scopes == {SHARED, "person:anna"}


@pytest.mark.parametrize(
    ("key", "channel"),
    [
        ("agent:main:irc:group:7", ""),
        ("agent:main:irc:group:7", " "),
        ("", "irc"),
        ("", "IRC"),
        ("", " irc\n"),
    ],
)
def test_a_rule_about_a_channel_holds_however_the_channel_is_known(key, channel):
    rules = (Rule("deny", channel="irc"), Rule("allow"))

    assert not access("anna", "group", key, rules, channel=channel, group="7").is_allowed


words = st.sampled_from(
    ["", "owner", "direct", "group", "channel", "anna", "-100", GROUP_KEY, "cron:x", "a:dm:b"]
)
texts = words | st.text(max_size=12)
rules = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["allow", "deny"]),
        st.none() | texts,
        st.none() | texts,
        st.none() | texts,
    ),
    max_size=3,
)


@given(
    st.builds(SearchContext, texts | st.just(OWNER), texts, texts, texts, texts),
    rules,
    st.sampled_from(["allow", "deny"]),
)
@example(SearchContext(OWNER, "", GROUP_KEY), [Rule("allow", key_prefix="agent")], "allow")
@example(SearchContext(OWNER, "direct", "agent:main:dm:b:group:7"), [Rule("allow")], "allow")
@example(SearchContext(OWNER, "direct", "agent:group:main"), [Rule("allow")], "allow")
def test_everything_is_seen_by_the_owner_alone_and_never_where_a_group_reads_along(context, rules, default):
    decided = access_of(context, rules, default)

    if decided.scopes == EVERY_SCOPE or PRIVATE in decided.scopes or decided.writes == PRIVATE:
        assert context.principal is OWNER
        assert context.chat_type in {"direct", ""}
        assert not context.group
        assert ":group:" not in context.session_key.removeprefix("agent:group")
    if not decided.is_allowed:
        assert decided.reason
        assert (decided.scopes, decided.writes) == (frozenset(), "")
        assert not decided.may_see(SHARED)
    assert decided.writes in {PRIVATE, ""} or decided.writes in decided.scopes
