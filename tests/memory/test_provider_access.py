"""Whose key goes where: a key belongs to the address that it was given for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.settings import load_settings

from plainmind.config.load import Loaded
from plainmind.guests.remote.providers import access_to, choice_of, model_for, remote_settings

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def load(tmp_path: Path):
    def loaded(settings: Mapping[str, Any]) -> Loaded:
        (tmp_path / "plainmind.json5").write_text(json.dumps(settings))
        return load_settings(home=str(tmp_path), workspace=None, flags={}, environ={})

    return loaded


def test_a_key_of_the_environment_chooses_nobody_and_is_not_shown(load) -> None:
    choice = choice_of(load({}), {"GOOGLE_API_KEY": SECRET})

    assert choice.provider == "builtin"
    over = {over.provider: over.reason for over in choice.passed_over}
    assert over["gemini"].startswith("its key is in the environment variable GOOGLE_API_KEY")
    assert "`plainmind config set provider gemini`" in over["gemini"]
    assert SECRET not in repr(choice)


def test_a_key_of_the_environment_is_used_by_the_provider_that_the_settings_name(load) -> None:
    loaded = load({"provider": "gemini"})

    assert choice_of(loaded, {}).provider == "gemini"
    assert access_to("gemini", loaded, {"GOOGLE_API_KEY": SECRET}, chosen=True).key == SECRET


@pytest.mark.parametrize("settings", [{}, {"remote": {"apiKey": "env:MY_KEY"}}, {"provider": "voyage"}])
def test_the_choice_is_the_same_in_every_environment(load, settings) -> None:
    """Programs that start us have environments of their own, and share one index."""
    environments = [
        {},
        {"MY_KEY": SECRET},
        {"OPENAI_API_KEY": SECRET},
        {"VOYAGE_API_KEY": SECRET, "MY_KEY": " "},
    ]

    assert len({choice_of(load(settings), environ).provider for environ in environments}) == 1


def test_a_blank_key_is_none(load) -> None:
    loaded = load({"remote": {"apiKey": "env:MY_KEY"}})

    assert access_to("openai", loaded, {"MY_KEY": "  "}, chosen=True).key is None


def test_the_key_of_the_configuration_comes_before_that_of_the_environment(load) -> None:
    loaded = load({"remote": {"apiKey": SECRET}})
    access = access_to("openai", loaded, {"OPENAI_API_KEY": "another"}, chosen=True)

    assert access.key == SECRET
    assert "`remote.apiKey`" in str(access.found.origin)
    assert "plainmind.json5" in str(access.found.origin)
    assert SECRET not in repr(access)


def test_a_reference_is_looked_up_and_named(load) -> None:
    loaded = load({"remote": {"apiKey": "env:MY_KEY"}})

    assert access_to("openai", loaded, {"MY_KEY": SECRET}, chosen=True).key == SECRET
    assert choice_of(loaded, {"MY_KEY": SECRET}).why.startswith(
        "its key is in MY_KEY, named by `remote.apiKey`"
    )


def test_a_reference_to_nothing_is_said_and_nothing_is_asked_without_the_key(load) -> None:
    loaded = load({"remote": {"apiKey": "env:MY_KEY", "baseUrl": "http://localhost:1/v1"}})
    access = access_to("openai", loaded, {"OPENAI_API_KEY": SECRET}, chosen=True)

    assert (access.key, access.may_be_asked) == (None, False)
    assert "MY_KEY, which is not set" in str(access.found.problem)
    choice = choice_of(loaded, {})
    assert (choice.provider, choice.why) == ("openai", "your settings name a key for it")


@pytest.mark.parametrize("where", ["environment", "models.providers"])
def test_a_key_is_not_sent_to_an_address_that_it_was_not_given_for(load, where) -> None:
    settings: dict[str, Any] = {"provider": "openai", "remote": {"baseUrl": "http://localhost:11434/v1"}}
    environ = {"OPENAI_API_KEY": SECRET} if where == "environment" else {}
    if where == "models.providers":
        settings["models"] = {"providers": {"openai": {"apiKey": SECRET}}}
    access = access_to("openai", load(settings), environ, chosen=True)

    assert access.key is None
    assert access.may_be_asked, "a server of one's own may need no key"
    assert access.base_url == "http://localhost:11434/v1"


def test_a_key_goes_with_the_address_beside_it(load) -> None:
    entry = {"apiKey": SECRET, "baseUrl": "https://gateway.example/v1"}
    loaded = load({"models": {"providers": {"voyage": entry}}})
    access = access_to("voyage", loaded, {}, chosen=False)

    assert (access.base_url, access.key) == ("https://gateway.example/v1", SECRET)
    assert choice_of(loaded, {}).provider == "voyage"


def test_another_path_at_the_same_place_is_the_same_place(load) -> None:
    loaded = load({"provider": "openai", "remote": {"baseUrl": "https://api.openai.com/v1/"}})

    assert access_to("openai", loaded, {"OPENAI_API_KEY": SECRET}, chosen=True).key == SECRET


def test_the_key_of_the_chosen_provider_is_not_the_fallbacks(load) -> None:
    loaded = load(
        {"provider": "openai", "fallback": "gemini", "remote": {"apiKey": SECRET, "headers": {"X-A": "b"}}}
    )
    access = access_to("gemini", loaded, {}, chosen=False)
    settings = remote_settings(loaded.settings, access, chosen=False, model=None)

    assert (access.key, access.may_be_asked) == (None, False)
    assert not settings.headers


def test_a_header_can_stand_for_a_key(load) -> None:
    loaded = load({"provider": "gemini", "remote": {"headers": {"x-goog-api-key": SECRET}}})

    assert access_to("gemini", loaded, {}, chosen=True).may_be_asked


def test_only_an_address_that_somebody_typed_may_be_private(load) -> None:
    typed = load({"provider": "openai", "remote": {"baseUrl": "http://192.168.1.9/v1"}})
    usual = load({"provider": "openai", "remote": {"apiKey": SECRET}})

    def allows(loaded: Loaded) -> bool:
        access = access_to("openai", loaded, {}, chosen=True)
        return remote_settings(loaded.settings, access, chosen=True, model=None).allow_private

    assert (allows(typed), allows(usual)) == (True, False)


def test_every_setting_of_a_remote_provider_reaches_it(load) -> None:
    loaded = load(
        {
            "provider": "openai",
            "outputDimensionality": 256,
            "remote": {
                "apiKey": SECRET,
                "concurrency": 7,
                "queryTimeoutMs": 1500,
                "documentTimeoutMs": 2500,
                "maxTokensPerDay": 1000,
                "proxy": "http://proxy.example:8080",
                "batch": {
                    "enabled": True,
                    "wait": False,
                    "concurrency": 3,
                    "pollIntervalMs": 700,
                    "timeoutMinutes": 5,
                },
            },
        }
    )
    made = remote_settings(
        loaded.settings, access_to("openai", loaded, {}, chosen=True), chosen=True, model="m"
    )

    assert (made.model, made.dims, made.concurrency) == ("m", 256, 7)
    assert (made.query_timeout_s, made.batch_timeout_s, made.max_tokens_per_day) == (1.5, 2.5, 1000)
    assert made.proxy == "http://proxy.example:8080"
    batch = made.batch
    assert (batch.enabled, batch.wait, batch.concurrency) == (True, False, 3)
    assert (batch.poll_interval_ms, batch.timeout_minutes) == (700, 5)
    assert SECRET not in repr(made)


def test_batch_jobs_are_off_unless_asked_for(load) -> None:
    loaded = load({"provider": "openai", "remote": {"apiKey": SECRET}})
    access = access_to("openai", loaded, {}, chosen=True)

    assert not remote_settings(loaded.settings, access, chosen=True, model=None).batch.enabled


@pytest.mark.parametrize(
    ("settings", "provider", "model"),
    [
        ({"model": "text-embedding-3-large"}, "openai", "text-embedding-3-large"),
        ({"model": "my-own"}, "openai", "my-own"),
        ({"model": "text-embedding-3-large"}, "gemini", None),
        ({"model": "text-embedding-3-large"}, "builtin", None),
        ({"provider": "gemini", "model": "text-embedding-3-large"}, "gemini", "text-embedding-3-large"),
        ({"provider": "local", "local": {"modelPath": "/a.gguf"}, "model": "b"}, "local", "/a.gguf"),
        ({"provider": "local", "model": "/b.gguf"}, "local", "/b.gguf"),
    ],
)
def test_a_model_beside_auto_is_for_the_provider_that_has_it(load, settings, provider, model) -> None:
    assert model_for(provider, load(settings).settings) == model


def test_a_local_model_is_chosen_when_its_file_is_there(load, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    loaded = load({"local": {"modelPath": str(path)}, "remote": {"apiKey": SECRET}})
    before = choice_of(loaded, {})
    path.write_bytes(b"GGUF")

    assert before.provider == "openai"
    assert before.passed_over[0].reason == f"there is no {path}"
    assert choice_of(loaded, {}).provider == "local"


def test_a_model_of_the_hub_is_chosen_by_auto_only_once_it_is_here(load) -> None:
    loaded = load({"local": {"modelPath": "hf:org/repo/model.gguf"}})

    assert choice_of(loaded, {}).provider == "builtin"


def test_without_vectors_nothing_is_chosen(load) -> None:
    choice = choice_of(load({"store": {"vector": {"enabled": False}}}), {"OPENAI_API_KEY": SECRET})

    assert choice.provider == "none"
    assert "store.vector.enabled" in choice.why
