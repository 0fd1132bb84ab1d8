"""Notes and entries as one set of tools: each tool once, and forgetting in both."""

from __future__ import annotations

import json

import pytest
from tests.support.checked_tools import CheckedTools

from plainmind import Memory
from plainmind.agent.recall import TAG
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tools import for_anthropic, for_mcp, for_openai, for_openai_chat
from plainmind.base.errors import StorageFailure
from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.guests.entries.access import entry_memory_of, tools_within
from plainmind.guests.entries.tools import ALL_TOOLS

GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", "telegram", "7")
EVERYBODY = {"scope": {"default": "allow", "rules": []}}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Words\n\nThe first word is zanzibar.\n\nThe gateway is a Mac Studio.\n"
    )
    return folder


class Box(CheckedTools):
    """All tools of one conversation."""

    def __init__(self, memory, context=THE_OWNER):
        super().__init__(tools_within(memory, context)[0], ALL_TOOLS)


def opened(workspace, tmp_path, **config):
    entries = {"enabled": True, "driver": "sqlite"}
    return Memory(
        workspace, home=tmp_path / "home", config={"entries": entries, "provider": "none", **config}
    )


@pytest.fixture
def memory(workspace, tmp_path):
    with opened(workspace, tmp_path) as memory:
        yield memory


@pytest.fixture
def box(memory):
    made = Box(memory)
    yield made
    made.box.close()


def stored(memory):
    entries = entry_memory_of(memory)
    try:
        return [entry.text for entry in entries.list(scopes=EVERY_SCOPE)]
    finally:
        entries.close()


@pytest.mark.parametrize("export", [for_openai, for_openai_chat, for_anthropic, for_mcp])
def test_every_tool_has_a_name_of_its_own(export):
    names = [(tool.get("function") or tool)["name"] for tool in export(ALL_TOOLS)]

    kinds = ("append", "edit", "forget", "get", "recall", "search", "status", "store")
    assert sorted(names) == [f"memory_{kind}" for kind in kinds]


def test_only_those_who_switch_it_on_get_the_tools_of_the_entries(workspace, tmp_path, box):
    with Memory(workspace, home=tmp_path / "home") as plain:
        tools, hooks = tools_within(plain, THE_OWNER)
        assert "memory_store" not in [tool.name for tool in tools.tools]
        assert hooks is None
        tools.close()
    assert "memory_store" in [tool.name for tool in box.box.tools]


def test_each_tool_reaches_what_it_is_for(box):
    box.ok("memory_store", text="Anna prefers tea")
    assert box.ok("memory_recall", query="Anna tea").content["entries"][0]["text"] == "Anna prefers tea"
    assert box.ok("memory_search", query="gateway Mac Studio", minScore=0).content["results"]
    assert box.ok("memory_get", path="MEMORY.md").content["text"].startswith("# Words")
    assert box.ok("memory_status").content["status"] == "ok"
    assert "memory_recall" in box.call("memory_dream", {}).text


def test_what_is_forgotten_goes_from_notes_and_entries_with_one_code(box, workspace, memory):
    box.ok("memory_store", text="The second word is zanzibar")
    box.ok("memory_store", text="Emma lives in Graz")
    preview = box.ok("memory_forget", what="zanzibar")

    assert [line["text"] for line in preview.content["lines"]] == ["The first word is zanzibar."]
    assert [entry["text"] for entry in preview.content["entries"]] == ["The second word is zanzibar"]
    assert preview.content["total"] == 2
    assert preview.text.count(f"<{TAG} ") == 1
    assert "zanzibar" in (workspace / "MEMORY.md").read_text()

    gone = box.ok("memory_forget", what="zanzibar", confirm=preview.content["confirm"])
    assert gone.content["status"] == "forgotten"
    assert gone.content["total"] == 2
    assert "zanzibar" not in (workspace / "MEMORY.md").read_text()
    assert stored(memory) == ["Emma lives in Graz"]


def test_a_code_stands_for_both_halves(box, workspace):
    box.ok("memory_store", text="The second word is zanzibar")
    code = box.ok("memory_forget", what="zanzibar").content["confirm"]
    box.ok("memory_store", text="The third word is zanzibar, too")

    answer = box.call("memory_forget", {"what": "zanzibar", "confirm": code})
    assert answer.is_error
    assert answer.content["status"] == "preview"
    assert answer.content["total"] == 3
    assert "zanzibar" in (workspace / "MEMORY.md").read_text()


def test_what_stands_in_one_of_them_is_forgotten_there(box, workspace, memory):
    id_ = box.ok("memory_store", text="The second word is zanzibar").content["id"]
    by_id = box.ok("memory_forget", what=id_)
    assert [entry["id"] for entry in by_id.content["entries"]] == [id_]
    box.ok("memory_forget", what=id_, confirm=by_id.content["confirm"])
    assert stored(memory) == []
    assert "zanzibar" in (workspace / "MEMORY.md").read_text()

    by_place = box.ok("memory_forget", what="MEMORY.md#L3")
    assert by_place.content["entries"] == []
    box.ok("memory_forget", what="MEMORY.md#L3", confirm=by_place.content["confirm"])
    assert "zanzibar" not in (workspace / "MEMORY.md").read_text()


def test_what_neither_has_is_not_found(box):
    answer = box.call("memory_forget", {"what": "timbuktu"})

    assert answer.content["status"] == "not_found"
    assert answer.content["action"]
    assert box.call("memory_forget", {"what": ""}).content["code"] == "INVALID_ARGUMENTS"


def test_when_more_entries_match_than_can_be_shown_nothing_is_offered(box):
    for number in range(8):
        box.ok("memory_store", text=f"gateway {number} {number * 31} has its own word")

    answer = box.call("memory_forget", {"what": "gateway"})
    assert answer.is_error
    assert "confirm" not in answer.content


def test_when_one_half_fails_the_answer_says_what_is_gone_and_what_is_not(
    box, workspace, memory, monkeypatch
):
    box.ok("memory_store", text="The second word is zanzibar")
    code = box.ok("memory_forget", what="zanzibar").content["confirm"]

    def refuse(*_, **__):
        raise StorageFailure("the disk is full")

    monkeypatch.setattr("plainmind.guests.entries.entry_file.write_atomically", refuse)
    answer = box.call("memory_forget", {"what": "zanzibar", "confirm": code})

    assert answer.is_error
    assert "still there" in answer.text
    assert answer.content["places"] == ["MEMORY.md#L3"]
    assert "zanzibar" not in (workspace / "MEMORY.md").read_text()
    assert stored(memory) == ["The second word is zanzibar"]


def test_a_group_sees_and_forgets_nothing_of_the_owner(workspace, tmp_path):
    with opened(workspace, tmp_path, **EVERYBODY) as memory:
        entries = entry_memory_of(memory)
        kept = entries.store("the second word of the owner is zanzibar", scope=PRIVATE).entry
        entries.close()
        group = Box(memory, GROUP)
        group.ok("memory_store", text="the word of the group is timbuktu")

        assert kept is not None
        for name, arguments in (
            ("memory_recall", {"query": "the second word of the owner is zanzibar"}),
            ("memory_search", {"query": "the first word is zanzibar", "minScore": 0}),
            ("memory_forget", {"what": "zanzibar"}),
            ("memory_forget", {"what": kept.id}),
            ("memory_store", {"text": "something else", "replaces": kept.id}),
        ):
            assert "zanzibar" not in json.dumps(group.call(name, arguments).content, default=str)
        assert (
            group.ok("memory_store", text="the second word of the owner is zanzibar").content["status"]
            == "stored"
        )
        code = group.ok("memory_forget", what="timbuktu").content["confirm"]
        group.ok("memory_forget", what="timbuktu", confirm=code)
        group.box.close()
        assert len(stored(memory)) == 2


def test_where_the_memory_may_not_be_used_every_tool_says_so(memory):
    group = Box(memory, GROUP)
    for name, arguments in (
        ("memory_store", {"text": "x"}),
        ("memory_recall", {"query": "x"}),
        ("memory_forget", {"what": "x"}),
        ("memory_search", {"query": "x"}),
    ):
        assert group.call(name, arguments).content["denied"] is True
    group.box.close()


def test_others_than_the_owner_are_not_told_where_things_are(workspace, tmp_path):
    with opened(workspace, tmp_path, **EVERYBODY) as memory:
        group = Box(memory, GROUP)
        group.ok("memory_store", text="the word of the group is timbuktu")
        path = tmp_path / "home" / "entries" / "main" / "entries.jsonl"
        path.unlink()
        path.mkdir()
        for name, arguments in (
            ("memory_store", {"text": "x y"}),
            ("memory_recall", {"query": "timbuktu"}),
            ("memory_forget", {"what": "timbuktu"}),
        ):
            answer = group.call(name, arguments)
            assert answer.is_error
            assert str(tmp_path) not in json.dumps(answer.content) + answer.text
        told: list[str] = []
        _, hooks = tools_within(memory, GROUP)
        assert hooks is not None
        assert hooks._box.recalled_for("timbuktu", told.append) == ""
        assert len(told) == 1
        assert str(tmp_path) not in told[0]
        owner = Box(memory).call("memory_recall", {"query": "timbuktu"})
        assert str(tmp_path) in owner.text
        group.box.close()
