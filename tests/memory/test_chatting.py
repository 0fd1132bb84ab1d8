"""How a conversation is opened: whose it is, which model, and which key goes where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plainmind.agent.scope import OWNER, SearchContext
from plainmind.base.errors import ConfigError
from plainmind.config.kinds import ProviderAccess
from plainmind.config.settings import Settings
from plainmind.guests.chat.access import chat_model_of, context_of_session, conversation_settings

ELSEWHERE = "https://llm.example.com/v1"


@pytest.mark.parametrize(
    ("key", "entry", "context"),
    [
        ("agent:main:main", {}, SearchContext(OWNER, "direct", "agent:main:main")),
        ("claude-code:5f0c", {}, SearchContext(OWNER, "direct", "claude-code:5f0c")),
        (
            "agent:main:telegram:group:-100",
            {"channel": "telegram"},
            SearchContext("", "group", "agent:main:telegram:group:-100", "telegram", "-100"),
        ),
        ("room", {"chatType": "channel", "groupId": "C7"}, SearchContext("", "channel", "room", "", "C7")),
        ("room", {"chatType": "group"}, SearchContext("", "group", "room")),
        ("agent:main:x:direct:ana", {}, SearchContext("ana", "direct", "agent:main:x:direct:ana")),
        ("agent:main:x:dm:bo", {"chatType": "direct"}, SearchContext("bo", "direct", "agent:main:x:dm:bo")),
    ],
)
def test_a_session_tells_who_reads_along(key, entry, context):
    assert context_of_session(key, entry) == context


def settings(**chat):
    access = chat.pop("access", {})
    named = {"base_url": "baseUrl", "api_key": "apiKey", "keep_messages": "keepMessages"}
    named |= {"system_prompt": "systemPrompt"}
    given = {f"chat.{named.get(name, name)}": value for name, value in chat.items()}
    return Settings(provider_access=access, guests={"chat.model": "m", **given})


def key_sent(given, environ):
    model = chat_model_of(given, environ)
    headers = model._transport._headers
    return headers.get("Authorization", headers.get("x-api-key", "")).removeprefix("Bearer ")


OPENAI = {"OPENAI_API_KEY": "sk-env"}


@pytest.mark.parametrize(
    ("given", "environ", "key"),
    [
        ({}, OPENAI, "sk-env"),
        ({"api_key": "sk-own"}, OPENAI, "sk-own"),
        ({"api_key": "env:MINE"}, {"MINE": "sk-mine", **OPENAI}, "sk-mine"),
        ({"base_url": "https://api.openai.com/v1/"}, OPENAI, "sk-env"),
        ({"base_url": ELSEWHERE}, OPENAI, ""),
        ({"base_url": "http://api.openai.com/v1"}, OPENAI, ""),
        ({"base_url": ELSEWHERE, "api_key": "sk-own"}, OPENAI, "sk-own"),
        ({"access": {"openai": ProviderAccess("sk-table")}}, OPENAI, "sk-table"),
        ({"access": {"openai": ProviderAccess("sk-table", ELSEWHERE)}}, OPENAI, "sk-table"),
        ({"base_url": ELSEWHERE, "access": {"openai": ProviderAccess("sk-table")}}, {}, ""),
        ({"access": {"anthropic": ProviderAccess("sk-table")}}, OPENAI, "sk-env"),
        ({"provider": "anthropic"}, {"ANTHROPIC_API_KEY": "sk-ant", **OPENAI}, "sk-ant"),
    ],
)
def test_a_key_goes_to_the_address_that_it_was_given_for(given, environ, key):
    assert key_sent(settings(**given), environ) == key


def test_a_key_that_was_named_and_is_not_there_is_not_replaced_by_another():
    with pytest.raises(ConfigError, match="MINE"):
        chat_model_of(settings(api_key="env:MINE"), OPENAI)


def test_a_model_can_be_chosen_for_one_run():
    assert chat_model_of(settings(), OPENAI, model="other").name == "other"
    with pytest.raises(ConfigError, match="no chat model"):
        chat_model_of(Settings(), OPENAI)


def test_the_settings_of_a_conversation_are_those_of_the_configuration():
    given = settings(keep_messages=3, system_prompt="Be Ida.")
    flush = {"prompt": "Save!", "softThresholdTokens": 7, "enabled": False}
    flush = {f"memoryFlush.{name}": value for name, value in flush.items()}
    given = replace(given, guests={**given.guests, **flush}, reserve_tokens_floor=11)

    made = conversation_settings(given, 1000)

    assert (made.keep_messages, made.system_prompt, made.flush.prompt) == (3, "Be Ida.", "Save!")
    room = made.flush.room
    assert (room.context_window, room.compacts_above, room.flushes_above) == (1000, 989, 982)
    assert not room.flush_enabled
    assert conversation_settings(Settings(), 200_000).flush.room.flushes_above == 176_000
