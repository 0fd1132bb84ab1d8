"""A provider that takes a connection and never answers: a search answers by words, and says so."""

import socket
import threading
import time
from contextlib import closing, suppress

import pytest
from tests.support.providers.server import KEY, Provider, serving

from plainmind import Memory
from plainmind.guests.remote.config import RemoteConfig

QUERY_S = 0.4


class Hanging:
    """Takes connections on an address, and says nothing."""

    def __init__(self, port):
        self.asked = 0
        self._held = []
        self._listening = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._hold, daemon=True).start()

    def _hold(self):
        with suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                self.asked += 1
                self._held.append(line)

    def close(self):
        self._listening.close()
        for line in self._held:
            line.close()


@pytest.fixture
def place(tmp_path):
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    (notes / "a.md").write_text("# Gateway\n\nThe gateway is in room seven.\n")
    with serving(Provider("openai")) as provider:
        remote = {"baseUrl": provider.base_url, "apiKey": KEY, "queryTimeoutMs": 60_000}
        config = {"provider": "openai", "outputDimensionality": 64, "remote": remote}
        with Memory(tmp_path / "notes", home=tmp_path / "home", config=config) as memory:
            memory.sync()
            assert not memory.search("gateway").degraded
        port = int(provider.base_url.rsplit(":", 1)[1].split("/")[0])
    remote["queryTimeoutMs"] = int(QUERY_S * 1000)
    with closing(Hanging(port)) as hanging:
        yield tmp_path, config, hanging


@pytest.mark.parametrize("has_changed", [False, True])
def test_words_answer_after_a_short_wait(place, has_changed):
    folder, config, hanging = place
    if has_changed:
        (folder / "notes" / "memory" / "b.md").write_text("# Boat\n\nThe gateway of the boat is blue.\n")

    with Memory(folder / "notes", home=folder / "home", config=config) as memory:
        began = time.monotonic()
        result = memory.search("gateway")
        took = time.monotonic() - began

    assert {hit.path for hit in result.hits} == {"memory/a.md", *(["memory/b.md"] if has_changed else [])}
    assert any("vector search" in reason for reason in result.degraded)
    assert hanging.asked >= 1
    assert took < 60  # a sync gives the same request two minutes


def test_a_question_is_waited_for_seconds_by_default():
    assert RemoteConfig().query_timeout_ms <= 5_000
