"""`auto`, exactly: a local model that is there, then whom the settings name a key for, then the built-in model."""

from __future__ import annotations

import pytest

from plainmind.embed.protocol import KEY_VARIABLES
from plainmind.embed.succession import Choice, KeyFound, LocalModel, PassedOver, choose
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.wire import REMOTE_PROVIDERS, wire_for

NO_KEYS = dict.fromkeys(KEY_VARIABLES, KeyFound(None))


def chosen(*, local: LocalModel | None = None, **keys: str) -> Choice:
    found = {**NO_KEYS, **{name: KeyFound(origin, is_in_settings=True) for name, origin in keys.items()}}
    return choose("auto", requested_by="default", local=local or LocalModel(), keys=found)


def test_without_anything_configured_the_builtin_model_embeds_and_says_what_it_looked_for() -> None:
    choice = chosen()

    assert choice.provider == "builtin"
    assert [over.provider for over in choice.passed_over] == ["local", "openai", "gemini", "voyage"]
    assert choice.passed_over[2].reason == "no key: GEMINI_API_KEY and GOOGLE_API_KEY not set"


def test_a_local_model_that_exists_wins_over_every_key() -> None:
    choice = chosen(local=LocalModel("/models/a.gguf", exists=True), openai="OPENAI_API_KEY")

    assert choice == Choice("local", "`local.modelPath` names /models/a.gguf, which exists")


def test_a_local_model_that_is_not_there_is_passed_over_and_named() -> None:
    choice = chosen(local=LocalModel("/models/a.gguf"), voyage="`remote.apiKey`, user")

    assert choice.provider == "voyage"
    assert choice.why == "its key is in `remote.apiKey`, user"
    assert choice.passed_over[0] == PassedOver("local", "there is no /models/a.gguf", is_configured=True)
    assert [over.is_configured for over in choice.passed_over] == [True, False, False]


@pytest.mark.parametrize(
    ("keys", "provider"),
    [
        (("openai", "gemini", "voyage"), "openai"),
        (("gemini", "voyage"), "gemini"),
        (("voyage",), "voyage"),
    ],
)
def test_keys_count_in_one_order(keys: tuple[str, ...], provider: str) -> None:
    choice = chosen(**dict.fromkeys(keys, "somewhere"))

    assert choice.provider == provider


def test_a_provider_that_was_asked_for_is_taken_whatever_else_there_is() -> None:
    choice = choose("gemini", requested_by="user (a.json5)", local=LocalModel("/a", exists=True), keys={})

    assert choice == Choice("gemini", "`provider` is set to it by user (a.json5)")


def test_the_variables_are_those_that_the_wires_name() -> None:
    assert tuple(KEY_VARIABLES) == REMOTE_PROVIDERS
    assert {name: wire_for(name, RemoteSettings()).key_variables for name in KEY_VARIABLES} == KEY_VARIABLES
