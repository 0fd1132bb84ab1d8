"""The tree of settings: its defaults, its names, its behaviour as a value."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from plainmind.config.keys import all_keys, canonical, is_section
from plainmind.config.kinds import ALLOWED, ProviderAccess, ScopeRule
from plainmind.config.settings import QuerySettings, Settings
from plainmind.guests.chat.config import FlushConfig
from plainmind.guests.entries.config import EntryConfig
from plainmind.guests.remote.config import RemoteConfig


def test_the_defaults_are_the_documented_ones():
    settings = Settings()

    assert settings.enabled is True
    assert settings.sources == ("memory",)
    assert (settings.provider, settings.fallback, settings.model) == ("auto", "none", None)
    assert (settings.chunking.strategy, settings.chunking.tokens, settings.chunking.overlap) == (
        "markdown",
        400,
        80,
    )
    sync = settings.sync
    assert (sync.on_session_start, sync.on_search, sync.watch) == (True, True, True)
    assert (sync.watch_debounce_ms, sync.interval_minutes) == (1500, 0)
    assert (sync.sessions.delta_bytes, sync.sessions.delta_messages) == (100_000, 50)
    assert (settings.query.max_results, settings.query.min_score) == (6, 0.0)
    hybrid = settings.query.hybrid
    assert (hybrid.enabled, hybrid.vector_weight, hybrid.text_weight) == (True, None, None)
    assert hybrid.candidate_multiplier == 4
    assert settings.query.temporal_decay.half_life_days == 30
    assert (settings.query.mmr.enabled, settings.query.mmr.relevance) == (False, 0.7)
    assert (settings.cache.enabled, settings.cache.max_entries) == (True, 50_000)
    assert settings.citations == "auto"
    flush = settings.section(FlushConfig)
    assert (flush.enabled, flush.soft_threshold_tokens) == (True, 4000)
    assert settings.reserve_tokens_floor == 20_000
    assert (settings.store.driver, settings.store.path) == ("sqlite", "{home}/index/{agentId}")
    assert settings.store.vector_enabled is True
    assert (settings.limits.max_results, settings.limits.max_snippet_chars) == (6, 700)
    assert (settings.limits.max_injected_chars, settings.limits.timeout_ms) == (4000, 4000)
    assert settings.history.max_age_days == 90
    assert settings.agent_id == "main"
    assert settings.scope.default == "deny"
    assert settings.scope.rules == (ScopeRule("allow", chat_type="direct"),)
    entries = settings.section(EntryConfig)
    assert (entries.enabled, entries.driver, entries.path) == (False, "lancedb", "{home}/entries/{agentId}")
    assert (entries.auto_recall, entries.recall_max_results, entries.recall_min_score) == (True, 3, 0.5)
    assert (entries.auto_capture, entries.capture_max_chars, entries.duplicate_from) == (False, 500, 0.95)


def test_every_default_is_a_value_that_its_own_kind_accepts():
    for key in all_keys().values():
        as_written = key.kind.to_json(key.default)
        if as_written is None:
            assert key.kind.optional, key.name
        else:
            assert key.kind.read(as_written) == key.default, key.name


def test_every_setting_is_documented_with_one_sentence():
    for key in all_keys().values():
        assert key.doc.endswith("."), key.name


def test_no_two_settings_share_an_environment_variable():
    names = [key.environment_name.replace("_", "") for key in all_keys().values()]

    assert len(set(names)) == len(names)


def test_a_project_file_may_set_nothing_that_sends_runs_reads_or_keeps():
    allowed = {key.name for key in all_keys().values() if key.project == ALLOWED}

    forbidden = (
        "provider",
        "model",
        "fallback",
        "backend",
        "workspace",
        "sources",
        "openclawConfig",
        "agentId",
    )
    assert not allowed & set(forbidden)
    for section in ("remote", "store", "local", "models", "qmd", "scope", "history", "cache"):
        assert not [name for name in allowed if name.startswith(section + ".")], section
    assert not {"memoryFlush.prompt", "memoryFlush.systemPrompt"} & allowed


def test_settings_cannot_be_changed_in_place():
    settings = Settings()

    with pytest.raises(FrozenInstanceError):
        settings.enabled = False
    with pytest.raises(FrozenInstanceError):
        del settings.query.max_results
    with pytest.raises(AttributeError):
        settings.query.somethingNew = 1


def test_settings_are_equal_by_value_and_survive_copying():
    settings = replace(Settings(), query=QuerySettings(max_results=9))

    assert settings != Settings()
    assert settings != "settings"
    assert copy.deepcopy(settings) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert settings.query.max_results == 9
    assert settings.query.min_score == 0.0


def test_a_group_refuses_a_setting_that_it_does_not_have():
    with pytest.raises(TypeError, match="max_result"):
        QuerySettings(max_result=9)


def test_two_settings_do_not_share_a_table():
    assert RemoteConfig().headers is not RemoteConfig().headers


def test_the_repr_shows_no_secret():
    remote = RemoteConfig(base_url="https://a.example", api_key="sk-hush", headers={"X-Token": "hush"})
    given = {"remote.apiKey": "sk-hush", "remote.headers": {"X-Token": "hush"}}
    settings = Settings(provider_access={"openai": ProviderAccess(api_key="sk-hush")}, guests=given)

    assert "hush" not in repr(settings)
    assert "hush" not in repr(settings.provider_access)
    assert "hush" not in repr(remote)
    assert "https://a.example" in repr(remote)


def test_other_spellings_mean_the_same_setting():
    assert canonical("memorySearch.query.maxResults") == "query.maxResults"
    assert canonical("memory.search.query.hybrid.mmr.lambda") == "query.mmr.lambda"
    assert canonical("memory.qmd.limits.maxResults") == "limits.maxResults"
    assert canonical("compaction.memoryFlush.enabled") == "memoryFlush.enabled"
    assert canonical("nonsense") == "nonsense"


def test_no_name_is_both_a_setting_and_a_section():
    assert not [name for name in all_keys() if is_section(name)]
