"""`cache`: what the cache of embeddings holds, and making it smaller."""

from __future__ import annotations

import json

import pytest
from tests.support.providers.server import KEY, Provider, serving

from plainmind.cli.index import size


@pytest.fixture
def provider():
    with serving(Provider("openai")) as served:
        yield served


@pytest.fixture
def embedded(cli, workspace, home, provider, monkeypatch):
    """A workspace whose vectors came from a provider."""
    home.mkdir(exist_ok=True)
    settings = {
        "provider": "openai",
        "model": "nomic",
        "remote": {"baseUrl": provider.base_url, "apiKey": "env:MY_KEY"},
    }
    (home / "plainmind.json5").write_text(json.dumps(settings))
    monkeypatch.setenv("MY_KEY", KEY)
    assert cli("sync").status == 0
    return workspace


def test_the_cache_of_the_builtin_model_is_empty_and_says_that_it_is_not_used(cli, workspace):
    answer = cli("cache")

    assert "the provider of now does not use it" in answer.out
    assert "0 vectors of at most 50,000" in answer.out


def test_stats_tell_who_made_the_vectors(cli, embedded):
    text = cli("cache", "stats").out
    facts = cli("cache", "stats", "--json").json

    assert "openai nomic: 3 vectors" in text
    assert (facts["used"], facts["entries"], facts["bytes"]) == (True, 3, 3 * 64 * 4)
    assert facts["held"][0]["provider"] == "openai"
    assert facts["fileBytes"] > facts["bytes"]


def test_pruning_says_what_was_dropped(cli, embedded):
    assert cli("cache", "prune", "--provider", "voyage", "--json").json["entries"] == 0
    assert cli("cache", "prune", "--unused-days", "1").out == "dropped 0 vectors, 0 bytes\n"
    assert cli("cache", "prune", "--max-entries", "2").out == "dropped 1 vector, 256 bytes\n"
    assert cli("cache", "prune", "--max-size", "0").out == "dropped 2 vectors, 512 bytes\n"
    assert cli("cache", "stats", "--json").json["entries"] == 0


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("512", 512), ("100MB", 10**8), ("1.5 GB", 1_500_000_000), ("7kb", 7000)]
)
def test_sizes_are_read_as_people_write_them(text, count):
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "many", "-1", "10TB", "1e30GB", "nan"])
def test_what_is_no_size_is_refused(cli, workspace, text):
    answer = cli("cache", "prune", "--max-size", text)

    assert answer.status == 2
    assert "must be a size such as 100MB" in answer.err
