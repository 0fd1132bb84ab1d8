"""What the commands say about a provider on another machine, and what they ask before money is spent."""

from __future__ import annotations

import json

import pytest
from tests.cli.terminal import at_a_terminal
from tests.support.providers import chaos
from tests.support.providers.server import KEY, Provider, serving


@pytest.fixture
def provider():
    with serving(Provider("openai")) as served:
        yield served


@pytest.fixture
def settings(home, workspace, provider, monkeypatch):
    """Write the user's configuration: a provider on loopback, and whatever else is given."""

    def write(**changes):
        home.mkdir(exist_ok=True)
        remote = {"baseUrl": provider.base_url, "apiKey": "env:MY_KEY"} | changes.pop("remote", {})
        text = json.dumps({"provider": "openai", "model": "nomic", "remote": remote, **changes})
        (home / "plainmind.json5").write_text(text)

    monkeypatch.setenv("MY_KEY", KEY)
    write()
    return write


def long_notes(workspace):
    text = "\n".join(f"line {number} " + "lorem ipsum " * 12 for number in range(2000))
    (workspace / "memory" / "long.md").write_text(f"# Long\n\n{text}\n")


def test_the_first_sync_says_where_text_goes(cli, settings):
    first = cli("sync")
    later = cli("sync", "--json").json

    assert "is sent to 127.0.0.1 (openai nomic, chosen because `provider` is set to it by user" in first.err
    assert (later["notes"], later["fallback"]) == ([], None)


def test_a_search_says_so_too_and_as_json(cli, settings):
    answer = cli("search", "printer", "--json").json

    assert "is sent to 127.0.0.1" in answer["notes"][0]
    assert "notes" not in cli("search", "printer", "--json").json


def test_status_says_who_embeds_why_what_leaves_and_what_it_has_cost(cli, settings):
    cli("sync")
    text = cli("status").out
    facts = cli("status", "--json").json

    assert "openai nomic, 64 dimensions" in text
    assert "openai was chosen: `provider` is set to it by user" in text
    assert "text is sent to 127.0.0.1: memory, questions" in text
    assert "today 2 requests" in text
    assert "about $0.00" in text
    assert facts["embedding"]["origin"].startswith("http://127.0.0.1:")
    assert KEY not in text + json.dumps(facts)


def test_status_names_sources_that_are_not_sent(cli, settings):
    settings(sources=["memory", "sessions"])

    assert "not sent: sessions (`remote.sendSessions`)" in cli("status").out


def test_a_deep_status_asks_and_tells_what_does_not_work(cli, settings, provider):
    cli("sync")
    assert "it answers" in cli("status", "--deep").out
    provider.fault = chaos.quota_spent
    answer = cli("status", "--deep")

    assert "it does not work: " in answer.out
    assert "not asked for 900 s: " in answer.out
    assert answer.status == 0


def test_status_of_the_builtin_model_says_what_was_looked_for(cli, workspace):
    text = cli("status").out
    closely = cli("status", "--deep").out

    assert "builtin was chosen: no other provider is configured" in text
    assert "nothing leaves this machine" in text
    assert "not openai" not in text
    assert "not openai: no key: OPENAI_API_KEY is not set" in closely


def test_status_names_a_model_that_was_meant_and_is_not_there(cli, workspace):
    text = cli("status", "--config", "local.modelPath=/no/such.gguf").out

    assert "not local: there is no /no/such.gguf" in text


def test_a_fallback_is_said_by_sync_search_and_status_and_is_not_enough_when_strict(cli, settings, provider):
    settings(fallback="builtin")
    provider.fault = chaos.quota_spent
    synced = cli("sync", "--strict")
    found = cli("search", "printer", "--strict")
    facts = cli("search", "printer", "--json").json

    assert (synced.status, found.status) == (3, 3)
    assert "builtin embeds in place of openai: " in synced.err
    assert "builtin answers in place of openai: " in found.err
    assert facts["fallback"]["from"] == "openai"
    assert "builtin answers in place of openai: " in cli("status").out


def test_a_dear_sync_needs_a_yes_and_says_what_to_type(cli, settings, workspace, provider):
    settings(model="text-embedding-3-large", remote={"confirmAboveUsd": 0.001})
    long_notes(workspace)
    refused = cli("sync", stdin="")
    asked = [text for text in provider.texts if "lorem" in text]
    agreed = cli("sync", "--yes")

    assert "needs your yes, as `remote.confirmAboveUsd` is 0.00: `plainmind sync --yes`" in refused.err
    assert asked == []
    assert "tokens with openai text-embedding-3-large, for about $0.0" in agreed.err
    assert any("lorem" in text for text in provider.texts)


@pytest.mark.parametrize(("reply", "is_sent"), [(b"n\n", False), (b"y\n", True)])
def test_a_person_is_asked_on_the_terminal(settings, workspace, provider, reply, is_sent):
    settings(model="text-embedding-3-large", remote={"confirmAboveUsd": 0.001})
    long_notes(workspace)
    printed, status = at_a_terminal("sync", question=b"[y/N]", reply=reply)

    assert "Go on? [y/N]" in printed
    assert status == 0
    assert any("lorem" in text for text in provider.texts) == is_sent


def test_what_is_allowed_is_shown_and_not_asked_for(cli, settings, workspace):
    settings(model="text-embedding-3-small")
    long_notes(workspace)
    answer = cli("sync", stdin="")

    assert "note: embedding about " in answer.err
    assert "(127.0.0.1)" in answer.err


def test_the_doctor_says_whether_the_provider_works(cli, settings, provider):
    cli("sync")
    assert "openai nomic, 64 dimensions, on 127.0.0.1; chosen because" in cli("doctor").out
    provider.key = "another"
    answer = cli("doctor")

    assert answer.status == 1
    assert "refused the API key" in answer.out
    assert KEY not in answer.out + answer.err
