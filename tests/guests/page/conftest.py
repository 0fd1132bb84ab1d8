"""One server for the tests that leave it as it is, and the notes that it serves."""

import pytest
from tests.support.page_server import PageServer

MEMORY = """\
# What stays true

- The printer is on VLAN 40.
- The gateway runs on the Mac Studio in the cellar.
"""
LOG = """\
# 2026-11-15

- 16:19 The gateway moved to Hetzner. #home
- 17:02 Anna likes oolong tea.
"""
NETWORK = """\
---
tags: [network, home]
---
# Network

The printer hangs behind the [[gateway]]; see [what stays true](../MEMORY.md).
"""
GATEWAY = """\
# Gateway

It was bought in 2024. Back to [[network]].
"""


def write_notes(folder):
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(MEMORY)
    (folder / "memory" / "2026-11-15.md").write_text(LOG)
    (folder / "memory" / "network.md").write_text(NETWORK)
    (folder / "memory" / "gateway.md").write_text(GATEWAY)
    return folder


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """A server with a session of its page, shared by all tests that only read or are refused."""
    folder = tmp_path_factory.mktemp("page")
    with PageServer(write_notes(folder / "notes"), folder / "home") as server:
        yield server.sign_in()


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The same for tests that write, each into files of its own; groups may use it."""
    folder = tmp_path_factory.mktemp("page")
    environ = {"PLAINMIND_SCOPE_DEFAULT": "allow"}
    with PageServer(write_notes(folder / "notes"), folder / "home", env=environ) as server:
        yield server.sign_in()


@pytest.fixture
def person(stage):
    """Who sits before the browser of a module's `stage`, and leaves it as it was."""
    yield stage
    stage.settle()
