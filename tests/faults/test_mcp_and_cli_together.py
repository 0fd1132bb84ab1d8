"""Two agents on one memory, one through the MCP server and one through the command line: nobody loses, nobody waits."""

import itertools
import json
import os
import subprocess
import threading
import time

import pytest
from tests.support.mcp_process import COMMAND, McpProcess

from plainmind import Memory

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SECONDS = 60 if FULL else 5
SLOWEST = 60.0  # of one call; a lock that is held forever shows here


class Agent:
    """Writes notes and looks for them; keeps what was acknowledged and what went wrong."""

    def __init__(self, name):
        self.name = name
        self.written = {}  # id of the note -> the word that only it holds
        self.slowest = 0.0
        self.failures = []

    def run(self, until):
        for number in itertools.count():
            if time.monotonic() > until and number >= 3:
                return
            word = f"{self.name}{number}quokka"
            started = time.monotonic()
            try:
                self.written[self.write(f"The animal of turn {number} is {word}.")] = word
                found = self.search(word)
                if word not in found:
                    self.failures.append(f"its own note {word} was not found: {found[:300]}")
            except Exception as error:  # noqa: BLE001 (kept for the judgement)
                self.failures.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - started)


class ThroughMcp(Agent):
    def __init__(self, name, server):
        super().__init__(name)
        self.server = server
        self.numbers = itertools.count()

    def call(self, tool, **arguments):
        answer = self.server.call(f"{self.name}{next(self.numbers)}", tool, **arguments)
        assert not answer["isError"], answer
        return answer

    def write(self, text):
        return self.call("memory_append", text=text)["structuredContent"]["id"]

    def search(self, query):
        found = self.call("memory_search", query=query)["content"][0]["text"]
        assert "not everything was consulted" not in found, found
        return found


class ThroughCommands(Agent):
    def __init__(self, name, options):
        super().__init__(name)
        self.options = options

    def call(self, *words):
        ended = subprocess.run(
            [COMMAND, *words, "--json", *self.options],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return json.loads(ended.stdout)

    def write(self, text):
        return self.call("remember", text)["id"]

    def search(self, query):
        found = self.call("search", query)
        assert found["degraded"] == [], found
        return json.dumps(found["results"])


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 120)
def test_both_find_what_they_wrote_and_nothing_is_lost(tmp_path):
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    for number in range(20):
        (workspace / "memory" / f"topic-{number}.md").write_text(
            f"# Topic {number}\n\n" + "some words\n" * 20
        )
    options = ("--workspace", str(workspace), "--home", str(home))
    with McpProcess(*options) as first, McpProcess(*options) as second:
        first.begin()
        second.begin()
        agents = [ThroughMcp("ada", first), ThroughMcp("bob", second), ThroughCommands("cleo", options)]
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=agent.run, args=(until,)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for agent in agents:
            assert agent.failures == [], agent.name
            assert agent.slowest < SLOWEST, agent.name
            assert len(agent.written) >= 3, agent.name

        last = agents[2].written.copy().popitem()[1]
        assert last in agents[0].search(last), "what one wrote the other finds"
        assert first.end() == 0
        assert second.end() == 0
        assert bytes(first.errors) == bytes(second.errors) == b""

    text = "".join(path.read_text() for path in (workspace / "memory").glob("20*.md"))
    everything = {note: word for agent in agents for note, word in agent.written.items()}
    assert [note for note in everything if text.count(f"<!-- m:{note} -->") != 1] == []
    assert [word for word in everything.values() if text.count(f"{word}.") != 1] == []
    with Memory(workspace, home=home) as memory:
        memory.sync()
        assert [check for check in memory.doctor(verify=True) if check.verdict == "problem"] == []
