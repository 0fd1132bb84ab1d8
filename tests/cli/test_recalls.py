"""`recalls`: a person sees what agents were given, and says what it was worth."""

from __future__ import annotations

import pytest

from plainmind import Memory
from plainmind.agent.recalls import Asker
from plainmind.agent.scope import THE_OWNER
from plainmind.agent.tools import ToolBox


@pytest.fixture
def recalled(workspace, home):
    """One search of an agent; its id."""
    with Memory(workspace, home=home) as memory:
        scoped = memory.within(THE_OWNER, asker=Asker("mcp", "claude-ai"))
        ToolBox(scoped).call("memory_search", {"query": "which VLAN has the printer?"})
        return memory.recalls.page().recalls[0].id


def test_without_any_recall_it_says_so_and_what_to_do(cli, workspace):
    answer = cli("recalls")
    assert "no agent has asked anything yet" in answer.err
    assert "plainmind connect" in answer.err


def test_switched_off_it_says_how_to_switch_it_on(cli, workspace):
    answer = cli("recalls", "--config", "recalls.enabled=false")
    assert "recalls.enabled true" in answer.err


def test_recalls_are_listed_shown_and_judged(cli, workspace, recalled):
    listed = cli("recalls")
    assert "claude-ai  “which VLAN has the printer?”" in listed.out
    assert recalled in listed.out
    shown = cli("recalls", "show", recalled[:18])
    assert "MEMORY.md#L" in shown.out
    assert "given" in shown.out
    judged = cli("recalls", "judge", recalled, "outdated", "--json").json
    assert judged["lines"][0]["verdict"] == "outdated"
    taken_back = cli("recalls", "judge", recalled, "none", "--line", "1", "--json").json
    assert taken_back["lines"][0]["verdict"] == ""


def test_programs_get_pages_with_a_cursor(cli, workspace, recalled, home):
    with Memory(workspace, home=home) as memory:
        memory.recalls.begin("search", "another", Asker("tools"), "private").end((), "")
    first = cli("recalls", "list", "-n", "1", "--json").json
    second = cli("recalls", "list", "-n", "1", "--after", first["cursor"], "--json").json
    assert [one["question"] for one in first["recalls"]] == ["another"]
    assert [one["id"] for one in second["recalls"]] == [recalled]
    assert second["cursor"] is None
    assert "recalls list --after" in cli("recalls", "list", "-n", "1").err


def test_a_day_without_recalls_is_empty_and_a_wrong_verdict_is_refused(cli, workspace, recalled):
    assert cli("recalls", "list", "--day", "2020-01-01", "--json").json["recalls"] == []
    assert "never-again" in cli("recalls", "judge", recalled, "bad").err


def test_all_of_them_can_be_removed(cli, workspace, recalled):
    assert "1 day" in cli("recalls", "clear").out
    assert cli("recalls", "--json").json["recalls"] == []


def test_recalls_of_days_are_listed_by_the_words_that_a_search_knows(cli, workspace, recalled):
    for days in (("--day", "today"), ("--since", "yesterday"), ("--since", "last week", "--until", "today")):
        assert [one["id"] for one in cli("recalls", "list", *days, "--json").json["recalls"]] == [recalled]
    for days in (
        ("--day", "yesterday"),
        ("--until", "yesterday"),
        ("--since", "2020-01", "--until", "2020-02"),
    ):
        answer = cli("recalls", "list", *days)
        assert (answer.out, answer.err) == ("", "note: no agent has asked anything then\n")
    refused = cli("recalls", "list", "--since", "whenever")
    assert refused.status == 1
    assert "names no day: whenever" in refused.err


def test_what_goes_on_keeps_the_days(cli, workspace, recalled, home):
    with Memory(workspace, home=home) as memory:
        memory.recalls.begin("search", "another", Asker("tools"), "private").end((), "")
    assert (
        "recalls list --since 'last week' --after"
        in cli("recalls", "list", "-n", "1", "--since", "last week").err
    )


def test_a_recall_is_shown_with_what_its_lines_say_now(cli, workspace, recalled):
    assert "The printer is on VLAN 40." in cli("recalls", "show", recalled).out
    cli("edit", "MEMORY.md", "--old", "VLAN 40", "--new", "VLAN 41")
    assert "The printer is on VLAN 41.  (changed since)" in cli("recalls", "show", recalled).out
    (workspace / "MEMORY.md").unlink()
    assert "(not there any more)" in cli("recalls", "show", recalled).out
