"""Every setting means something: changed, it changes what some part of a memory, or a guest, is given."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from plainmind.agent.scope import OWNER, SearchContext
from plainmind.base.value import asdict, replace
from plainmind.config.keys import all_keys
from plainmind.config.kinds import Duration, Flag, Number, OneOf, Whole
from plainmind.config.load import load_here
from plainmind.guests.chat import access as chat_access
from plainmind.guests.chat.access import conversation_settings
from plainmind.guests.entries import access as entry_access
from plainmind.guests.qmd import backend as qmd
from plainmind.guests.remote.providers import (
    Providers,
    access_to,
    choice_of,
    model_folder,
    model_for,
    remote_settings,
)
from plainmind.guests.upkeep.config import tidy_values
from plainmind.memory import translation
from plainmind.memory.backend import Surroundings
from plainmind.memory.scoped import Checkpoint, Policy

# With these every part and every guest has something to do, so that each of their settings counts.
USUAL = {
    "backend": "qmd",
    "provider": "openai",
    "sources": ["memory", "sessions"],
    "remote.apiKey": "sk-usual",
    "chat.model": "usual",
    "chat.apiKey": "sk-usual",
    "entries.enabled": True,
    "entries.driver": "sqlite",
}
# Another value of each setting whose kind does not tell one by itself.
OTHERWISE = {
    "workspace": "/elsewhere",
    "agentId": "ida",
    "userTimezone": "Pacific/Auckland",
    "sources": ["memory"],
    "extraPaths": ["/more"],
    "model": "text-embedding-3-large",
    "models.providers": {"openai": {"baseUrl": "https://table.example/v1", "apiKey": "sk-table"}},
    "remote.baseUrl": "https://embed.example/v1",
    "remote.apiKey": "sk-other",
    "remote.headers": {"X-A": "b"},
    "remote.proxy": "http://proxy.example:3128",
    "store.path": "/indexes",
    "store.workspace": "shared",
    "store.uri": "s3://bucket/folder",
    "store.dsn": "postgresql://role@host/database",
    "store.readDsn": "postgresql://role@replica/database",
    "store.schema": "other",
    "sessions.path": "/talks",
    "local.modelPath": "/models/one.gguf",
    "local.modelCacheDir": "/models",
    "scope.rules": [],
    "tidy.accept": ["repeated"],
    "memoryFlush.prompt": "Save!",
    "memoryFlush.systemPrompt": "You save.",
    "chat.model": "other",
    "chat.baseUrl": "https://chat.example/v1",
    "chat.apiKey": "sk-other",
    "chat.headers": {"X-A": "b"},
    "chat.proxy": "http://proxy.example:3128",
    "chat.systemPrompt": "You are Ida.",
    "entries.path": "/entries",
    "qmd.command": "other-qmd",
    "qmd.paths": ["/more"],
    "qmd.sessions.exportDir": "/exports",
}
# Settings that change nothing, each with its reason. There is none.
WITHOUT_EFFECT: dict[str, str] = {}


def other_value(key, now, tmp_path):
    """A value of a setting that is not the one it has."""
    if key.name == "openclawConfig":
        path = tmp_path / "openclaw.json"
        path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": {"query": {"maxResults": 11}}}}}))
        return str(path)
    if key.name in OTHERWISE:
        return OTHERWISE[key.name]
    if isinstance(key.kind, Flag):
        return not now
    if isinstance(key.kind, Whole | Number):
        return key.kind.low + 1 if now != key.kind.low + 1 else key.kind.low
    if isinstance(key.kind, OneOf):
        return next(name for name in key.kind.names if name != now)
    if isinstance(key.kind, Duration):
        return "7m"
    raise AssertionError(f"give another value of `{key.name}` in OTHERWISE")


@pytest.fixture
def what_parts_are_given(tmp_path, monkeypatch):
    """All that is made out of a configuration, without opening or asking anything."""
    environ = {"HOME": str(tmp_path), "PLAINMIND_HOME": str(tmp_path / "home")}

    def collect(flags):
        loaded, resolved = load_here(
            workspace_flag=None, cwd=str(tmp_path), flags={**USUAL, **flags}, environ=environ
        )
        settings = loaded.settings
        places = translation.places_of(settings, resolved, environ)
        index = translation.index_values(loaded, places, environ)
        talks = translation.conversation_values(loaded, places, environ)
        reached = access_to("openai", loaded, environ, chosen=True)
        remote = remote_settings(settings, reached, chosen=True, model=model_for("openai", settings))
        providers = Providers(loaded, environ, home=places.home, cache=index.cache, buried=bool)
        return {
            "places": places,
            "notes": translation.notes_values(settings, places),
            "index": replace(index, options={}, ranking=None),
            "ranking": index.ranking(),
            "conversations": (talks.folder, talks.zone, sorted(talks.secrets())),
            "policy": translation.policy_values(settings),
            "recalls": translation.recall_values(settings, places),
            "upkeep": translation.upkeep_values(settings),
            "stores": [
                dict(translation.store_options(driver, settings, environ))
                for driver in ("lancedb", "postgres")
            ],
            "remote": (asdict(remote), providers.confirm_above_usd, providers._settings.fallback),
            "local": (choice_of(loaded, environ), model_folder(settings, places.home)),
            "local model": model_for("local", settings),
            "engine": (translation.wishes_of(settings), qmd._options(surroundings(settings, environ))),
            "chat": chat_of(settings, environ, monkeypatch),
            "entries": entries_of(settings, environ, places, monkeypatch),
            "tidy": tidy_values(settings),
        }

    return collect


def surroundings(settings, environ):
    folder = f"/engines/{settings.agent_id}"
    return Surroundings(settings.agent_id, folder, None, (), None, (), None, environ, settings=settings)


def chat_of(settings, environ, monkeypatch):
    made = []
    monkeypatch.setattr(chat_access, "create_chat_model", lambda *given: made.append(given))
    chat_access.chat_model_of(settings, environ)
    ((provider, model),) = made
    return provider, asdict(model), conversation_settings(settings, 100_000)


def entries_of(settings, environ, places, monkeypatch):
    made = []

    def record(*given, **named):
        made.append((given, named))
        return SimpleNamespace(close=None)

    monkeypatch.setattr("plainmind.guests.entries.memory.open_entries", record)
    monkeypatch.setattr("plainmind.agent.tools.ToolBox", record)
    for name in ("EntryToolBox", "EntryHooks", "AllTools"):
        monkeypatch.setattr(f"plainmind.guests.entries.toolbox.{name}", record)
    memory = SimpleNamespace(
        settings=settings,
        home=places.home,
        agent_id=settings.agent_id,
        environ=environ,
        embedder=None,
        redactor=lambda: SimpleNamespace(without_secrets=None, redact=None),
        policy=SimpleNamespace(values=translation.policy_values(settings)),
        forget_vectors=None,
        limits=None,
        sends_questions_only=False,
        within=lambda context, asker=None: SimpleNamespace(access=None, context=context, begin_recall=asker),
    )
    entry_access.tools_within(memory, SearchContext(OWNER, "direct", "agent:main:main"))
    return repr(made)


@pytest.mark.parametrize("name", all_keys())
def test_a_setting_that_is_changed_changes_what_a_part_is_given(name, tmp_path, what_parts_are_given):
    before = what_parts_are_given({})
    now = USUAL.get(name, all_keys()[name].default)
    after = what_parts_are_given({name: other_value(all_keys()[name], now, tmp_path)})

    changed = [part for part in before if repr(before[part]) != repr(after[part])]
    assert bool(changed) != (name in WITHOUT_EFFECT), changed


def test_what_has_no_effect_has_a_reason():
    assert WITHOUT_EFFECT.keys() <= all_keys().keys()
    assert all(WITHOUT_EFFECT.values())


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"vectorWeight": 0.7}, 0.7),
        ({"textWeight": 0.9}, 0.1),
        ({"vectorWeight": 3, "textWeight": 1}, 0.75),
        ({"vectorWeight": 0}, 0.0),
    ],
)
def test_a_weight_is_exactly_the_share_that_its_page_says(what_parts_are_given, given, share):
    ranking = what_parts_are_given({"query": {"hybrid": given}})["ranking"]

    assert ranking.weights.scaled(with_vectors=True, with_keywords=True).meaning == pytest.approx(share)


def test_without_weights_the_measured_mix_holds(what_parts_are_given):
    weights = what_parts_are_given({})["ranking"].weights.scaled(with_vectors=True, with_keywords=True)

    assert weights.meaning == pytest.approx(0.18 / 1.31)


def test_agents_get_nothing_of_a_memory_that_is_switched_off_for_them(what_parts_are_given):
    values = what_parts_are_given({"enabled": False})["policy"]
    policy = Policy(values, Checkpoint(lambda _: "private", lambda _: "private"))

    access = policy.access_of(SearchContext(OWNER, "direct", "agent:main:main"))

    assert not access.is_allowed
    assert "`enabled` is false" in access.reason
