"""Reading `openclaw.json`, of the old and of the current layout."""

from __future__ import annotations

import importlib.util

import pytest

from plainmind.base.errors import ConfigError
from plainmind.config.kinds import ExtraPath, ProviderAccess, ScopeRule
from plainmind.config.openclaw import read_openclaw

OLD = """
{
  // the layout of the first half of 2026
  gateway: { port: 18789 },
  models: { providers: {
    openai: { apiKey: "${OPENAI_API_KEY}", baseUrl: "https://api.example/v1", models: [] },
    gemini: { apiKey: { source: "env", provider: "default", id: "GEMINI_KEY" } },
    vault: { apiKey: { source: "exec", id: "x" } },
    odd: 3,
  } },
  agents: {
    defaults: {
      model: "some/model",
      workspace: "~/.openclaw/workspace",
      userTimezone: "Europe/Vienna",
      compaction: { mode: "safeguard", reserveTokensFloor: 30000,
                    memoryFlush: { enabled: false, softThresholdTokens: 5000, prompt: "Save now." } },
      memorySearch: {
        provider: "openai-compatible",
        fallback: "martian",
        sources: ["memory", "sessions"],
        experimental: { sessionMemory: true },
        extraPaths: ["../team-docs"],
        remote: { apiKey: "${OPENAI_API_KEY}", headers: { "X-A": "b" }, batch: { enabled: true } },
        store: { driver: "sqlite", path: "~/.openclaw/memory/{agentId}.sqlite",
                 vector: { extensionPath: "/x" } },
        query: { maxResults: 8, hybrid: { vectorWeight: 0.5, mmr: { lambda: 0.4 } } },
      },
    },
    list: [
      { id: "main", memorySearch: { query: { maxResults: 9 } } },
      { id: "work", workspace: "~/work", memorySearch: { enabled: false, query: { minScore: "high" } } },
    ],
  },
  memory: {
    backend: "qmd", citations: "on", dreaming: { enabled: true },
    qmd: { command: "/usr/bin/qmd", limits: { maxResults: 4 }, update: { interval: "5m" },
           scope: { default: "deny", rules: [{ action: "allow", match: { chatType: "direct" } }] } },
  },
}
"""
CURRENT = """
{
  "memory": { "citations": "off", "search": {
    "enabled": true, "provider": "voyage", "query": { "maxResults": 8 } } },
  "agents": { "entries": {
    "main": { "memory": { "search": { "query": { "maxResults": 3 }, "sources": ["memory", "sessions"] } } },
    "work": { "workspace": "~/work", "memory": { "search": {
      "rememberAcrossConversations": true, "sources": ["sessions"] } } }
  } }
}
"""


@pytest.fixture
def openclaw(tmp_path):
    def write(text, agent_id="main"):
        (tmp_path / "openclaw.json").write_text(text)
        return read_openclaw(str(tmp_path / "openclaw.json"), agent_id=agent_id)

    return write


def test_the_old_layout_is_read(openclaw):
    assert openclaw(OLD).values == {
        "userTimezone": "Europe/Vienna",
        "workspace": "~/.openclaw/workspace",
        "reserveTokensFloor": 30_000,
        "memoryFlush.enabled": False,
        "memoryFlush.softThresholdTokens": 5000,
        "memoryFlush.prompt": "Save now.",
        "provider": "openai",
        "sources": ("memory", "sessions"),
        "extraPaths": (ExtraPath("../team-docs"),),
        "remote.apiKey": "env:OPENAI_API_KEY",
        "remote.headers": {"X-A": "b"},
        "remote.batch.enabled": True,
        "store.driver": "sqlite",
        "query.maxResults": 9,
        "query.hybrid.vectorWeight": 0.5,
        "query.mmr.lambda": 0.4,
        "backend": "qmd",
        "citations": "on",
        "qmd.command": "/usr/bin/qmd",
        "limits.maxResults": 4,
        "qmd.update.interval": 300.0,
        "scope.default": "deny",
        "scope.rules": (ScopeRule("allow", chat_type="direct"),),
        "models.providers": {
            "openai": ProviderAccess("env:OPENAI_API_KEY", "https://api.example/v1"),
            "gemini": ProviderAccess("env:GEMINI_KEY"),
        },
    }


def test_what_cannot_be_taken_over_is_noted(openclaw):
    notes = openclaw(OLD).notes

    assert [note.split("`")[1] for note in notes] == [
        "agents.defaults.memorySearch.fallback",
        "agents.defaults.memorySearch.store.path",
        "agents.defaults.memorySearch.store.vector.extensionPath",
        "memory.dreaming",
        "models.providers.vault.apiKey",
    ]


def test_another_agent_of_the_old_layout_has_its_own_values(openclaw):
    found = openclaw(OLD, "work")

    assert found.values["workspace"] == "~/work"
    assert found.values["enabled"] is False
    assert found.values["query.maxResults"] == 8
    assert "query.minScore" not in found.values
    assert "`agents.list[1].memorySearch.query.minScore` is left out" in "\n".join(found.notes)


def test_the_current_layout_is_read(openclaw):
    found = openclaw(CURRENT)

    assert found.values == {
        "citations": "off",
        "enabled": True,
        "provider": "voyage",
        "query.maxResults": 3,
        "sources": ("memory",),
    }


def test_transcripts_are_only_taken_over_when_they_were_switched_on(openclaw):
    assert "transcripts are left out" in openclaw(CURRENT).notes[0]
    assert openclaw(CURRENT, "work").values["sources"] == ("sessions",)
    only_sessions = '{"memory": {"search": {"sources": ["sessions"]}}}'
    assert openclaw(only_sessions).values["sources"] == ("memory",)


def test_an_agent_that_is_not_listed_gets_the_defaults(openclaw):
    assert openclaw(CURRENT, "nobody").values["query.maxResults"] == 8


def test_included_files_are_noted(openclaw):
    assert "`$include` is not followed" in openclaw('{"$include": "./other.json"}').notes[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"agents": 3}',
        '{"agents": {"list": {}, "entries": []}}',
        '{"memory": [1]}',
        '{"models": {"providers": 1}}',
    ],
)
def test_blocks_of_the_wrong_shape_do_no_harm(openclaw, text):
    assert openclaw(text).values == {}


def test_a_note_never_shows_a_value(openclaw):
    found = openclaw('{"memory": {"search": {"remote": {"apiKey": {"token": "hush"}, "headers": "hush"}}}}')

    assert len(found.notes) == 2
    assert "hush" not in "".join(found.notes)


def test_a_broken_file_says_where(openclaw):
    with pytest.raises(ConfigError, match="line 1, column 10"):
        openclaw('{"memory"}')


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="there is no"):
        read_openclaw(str(tmp_path / "openclaw.json"))


def test_the_plug_in_that_keeps_entries_switches_ours_on_with_its_settings(openclaw):
    found = openclaw(
        """{ plugins: { slots: { memory: "memory-lancedb" }, entries: { "memory-lancedb": { config: {
             autoRecall: false, autoCapture: true, captureMaxChars: 10000, dbPath: "~/x",
             embedding: { model: "text-embedding-3-small" } } } } } }"""
    )

    assert found.values == {
        "entries.enabled": True,
        "entries.autoRecall": False,
        "entries.autoCapture": True,
        "entries.captureMaxChars": 2_000,
    }
    assert [note.split("`")[1] for note in found.notes] == ["plugins.entries.memory-lancedb.config.embedding"]


def test_the_plug_in_of_openclaw_asks_for_nothing_that_is_not_installed_here(openclaw, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lancedb" else found(name))
    values = openclaw('{ plugins: { slots: { memory: "memory-lancedb" } } }').values

    assert values == {"entries.enabled": True, "entries.driver": "sqlite"}


def test_the_plug_in_is_not_taken_for_chosen_when_only_its_settings_are_there(openclaw):
    found = openclaw('{ plugins: { entries: { "memory-lancedb": { config: { autoCapture: true } } } } }')

    assert "entries.enabled" not in found.values
