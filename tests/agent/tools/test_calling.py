"""What a program is told about a call that failed."""

from __future__ import annotations

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.agent.tool_calls import code_of
from plainmind.agent.tools import ToolBox
from plainmind.base.errors import (
    IndexCorrupt,
    IndexUnavailable,
    PlainmindError,
    StorageFailure,
    WorkspaceError,
)


@pytest.mark.parametrize("kind", [WorkspaceError, StorageFailure, IndexUnavailable, IndexCorrupt])
def test_what_may_work_again_later_has_one_code_whatever_keeps_the_memory(kind):
    assert code_of(kind("not now")) == "MEMORY_UNAVAILABLE"
    assert code_of(PlainmindError("no")) == "MEMORY_ERROR"


def test_a_server_that_is_down_is_a_memory_that_is_not_available(tmp_path):
    pytest.importorskip("psycopg")
    (tmp_path / "notes").mkdir()
    store = {"driver": "postgres", "dsn": "postgresql://nobody@127.0.0.1:1/none"}
    config = {"store": store, "limits": {"timeoutMs": 60_000}}
    with Memory(tmp_path / "notes", home=tmp_path / "home", config=config) as memory:
        box = ToolBox(memory.within(THE_OWNER))
        answer = box.call("memory_search", {"query": "anything"})
        box.close()

    assert answer.content["code"] == "MEMORY_UNAVAILABLE"
