"""The recall log: written by whatever gives memory to an agent, read by its owner, and swept by forgetting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta

import pytest

from plainmind import Memory
from plainmind.agent.recalls import VERDICTS, Asker, RecalledLines, mark_of
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tools import ToolBox
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.guests.hosts.hook import serve_lines
from plainmind.guests.hosts.turns import Session, Turns
from plainmind.mcp.desk import Desk, client_of
from plainmind.mcp.offers import CONNECTOR_TOOLS, Connector

GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", channel="telegram", group="7")
OTHER_GROUP = SearchContext("bo", "group", "agent:main:telegram:group:8", channel="telegram", group="8")
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Network\n\n- The gateway runs on a Mac Studio in the cellar.\n")
    (folder / "memory" / "2026-02-10.md").write_text(
        "# 2026-02-10\n\n- 09:00 tea, not coffee, for the meeting <!-- m:01JD3 -->\n- the door code is 471147\n"
    )
    return folder


@pytest.fixture
def settings():
    return {"scope": {"default": "allow"}}


@pytest.fixture
def memory(workspace, tmp_path, settings):
    with Memory(workspace, home=tmp_path / "home", config=settings) as memory:
        yield memory


def asked(memory, question, context=THE_OWNER, asker=None):
    return ToolBox(memory.within(context, asker=asker)).call("memory_search", {"query": question})


def bytes_of_home(tmp_path):
    return b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())


# --- what is written ---


def test_a_search_of_an_agent_is_written_down_with_what_it_was_given(memory):
    answer = asked(memory, "where does the gateway run?", asker=Asker("tools", "my agent", "talk 1"))
    (recall,) = memory.recalls.page().recalls
    assert (recall.kind, recall.question) == ("search", "where does the gateway run?")
    assert (recall.surface, recall.host, recall.session) == ("tools", "my agent", "talk 1")
    assert (recall.agent, recall.scope) == ("main", "private")
    best = recall.given[0]
    assert (best.path, best.best_line) == ("MEMORY.md", 3)
    assert best.score == pytest.approx(answer.content["results"][0]["score"], abs=0.001)
    assert best.mark == mark_of("- The gateway runs on a Mac Studio in the cellar.")
    assert recall.tokens > 20
    assert recall.milliseconds > 0
    assert datetime.fromisoformat(recall.at).tzinfo is not None
    assert memory.recalls.get(recall.id) == recall


def test_what_did_not_fit_is_written_down_as_not_given(workspace, tmp_path):
    (workspace / "long.md").write_text("")
    for number in range(4):
        (workspace / "memory" / f"topic-{number}.md").write_text(
            f"The gateway has cable {number}. " + "It is long and blue. " * 12 + "\n"
        )
    with Memory(workspace, home=tmp_path / "home", config={"limits": {"maxInjectedChars": 300}}) as memory:
        answer = asked(memory, "which cable has the gateway?")
        (recall,) = memory.recalls.page().recalls
    assert len(recall.given) == len(answer.content["results"]) < len(recall.lines)
    assert {one.reason for one in recall.withheld} == {"did not fit"}


def test_reading_a_file_is_a_recall_without_a_question(memory):
    ToolBox(memory.within(THE_OWNER)).call("memory_get", {"path": "MEMORY.md", "from": 2})
    (recall,) = memory.recalls.page().recalls
    assert (recall.kind, recall.question) == ("read", "")
    assert [(one.path, one.start_line, one.end_line) for one in recall.lines] == [("MEMORY.md", 2, 3)]


def test_a_persons_own_search_and_reading_are_no_recalls(memory, workspace, tmp_path):
    memory.search("where does the gateway run?")
    memory.get("MEMORY.md")
    memory.within(THE_OWNER).start_context()
    words = ["search", "where does the gateway run?", "--workspace", workspace, "--home", tmp_path / "home"]
    subprocess.run([sys.executable, "-m", "plainmind", *map(str, words)], check=True, capture_output=True)
    assert memory.recalls.page().recalls == ()
    assert not os.path.exists(memory.recalls.folder)


def test_a_hook_writes_down_what_it_gave_and_why_it_did_not_give_the_rest(memory):
    turns, session = Turns(memory), Session("claude-code", "talk-1")
    assert turns.recall(session, "where does the gateway run?")
    assert not turns.recall(session, "where does the gateway run?")
    assert not turns.recall(session, "which colour has the table of the meeting?")
    unsure, again, first = memory.recalls.page().recalls
    assert (first.surface, first.host, first.session) == ("hook", "claude-code", "talk-1")
    assert first.given[0].path == "MEMORY.md"
    assert not again.given
    assert "given before" in {one.reason for one in again.withheld}
    assert not unsure.given
    assert {one.reason for one in unsure.withheld} == {"too unsure"}


def test_what_a_session_begins_with_is_a_recall(memory):
    turns = Turns(memory)
    turns.start(Session("codex", "talk-2"))
    (recall,) = memory.recalls.page().recalls
    assert (recall.kind, recall.host) == ("start", "codex")
    assert recall.lines[0] == RecalledLines("MEMORY.md")


def test_a_plugin_that_keeps_a_hook_running_is_written_down(memory, monkeypatch):
    import io

    monkeypatch.setattr(memory, "close", lambda: None)
    events = [
        {"id": 1, "hook_event_name": "Search", "query": "gateway"},
        {"id": 2, "hook_event_name": "Read", "path": "MEMORY.md"},
        {"id": 3, "hook_event_name": "Tool", "name": "memory_search", "arguments": {"query": "tea"}},
    ]
    serve_lines([json.dumps(event).encode() for event in events], io.BytesIO(), lambda: memory)
    recalls = memory.recalls.page().recalls
    assert [(one.kind, one.question, one.host) for one in recalls] == [
        ("search", "tea", "openclaw"),
        ("read", "", "openclaw"),
        ("search", "gateway", "openclaw"),
    ]


def test_the_name_of_an_mcp_client_is_written_down(memory):
    desk = Desk(memory.within(THE_OWNER, asker=Asker("mcp")), ())
    named = client_of({"name": "claude-ai", "version": "1"})
    for client in (named, client_of("no object"), client_of({"name": 7})):
        desk.answer("resources/read", {"uri": "memory:///MEMORY.md"}, client).work()
    assert [(one.surface, one.host, one.kind) for one in memory.recalls.page().recalls] == [
        ("mcp", "", "read"),
        ("mcp", "", "read"),
        ("mcp", "claude-ai", "read"),
    ]


def test_clients_without_end_are_not_told_apart_without_end(memory):
    desk = Desk(memory.within(THE_OWNER, asker=Asker("mcp")), (), token="phone")
    for number in range(40):
        asked = desk.answer(
            "resources/read", {"uri": "memory:///MEMORY.md"}, client_of({"name": f"c{number}"})
        )
        asked.work()
    hosts = {one.host for one in memory.recalls.page(100).recalls}
    assert (len(hosts), "c0 (phone)" in hosts, "phone" in hosts) == (17, True, True)


def test_search_and_fetch_of_a_connector_are_recalls(memory):
    connector = Connector(memory.within(THE_OWNER, asker=Asker("mcp")))
    connector.call(CONNECTOR_TOOLS[0].name, {"query": "gateway"})
    connector.call(CONNECTOR_TOOLS[1].name, {"id": "MEMORY.md#L3"})
    assert [one.kind for one in memory.recalls.page().recalls] == ["read", "search"]


def test_what_claudes_memory_tool_views_is_a_recall(memory):
    tool = memory.within(THE_OWNER, asker=Asker("python", "my agent")).memory_tool()
    tool.call({"command": "view", "path": "/memories"})
    tool.call({"command": "view", "path": "/memories/2026-02-10.md", "view_range": [3, 4]})
    (recall,) = memory.recalls.page().recalls
    (line,) = recall.lines
    assert (recall.surface, recall.host) == ("memory tool", "my agent")
    assert (line.path, line.start_line, line.end_line) == ("memory/2026-02-10.md", 3, 4)


def test_secrets_recalled_text_and_private_parts_stay_out_of_the_question(memory, tmp_path):
    asked(memory, f"use {KEY} for the gateway <private>my diagnosis</private>")
    (recall,) = memory.recalls.page().recalls
    assert recall.question.startswith("use [redacted")
    assert "diagnosis" not in recall.question
    assert KEY.encode() not in bytes_of_home(tmp_path)


def test_a_long_question_is_cut(memory):
    asked(memory, "where is the gateway? " + "please tell me " * 100)
    (recall,) = memory.recalls.page().recalls
    assert len(recall.question) == 400
    assert recall.question.endswith("…")


@pytest.mark.parametrize("settings", [{"recalls": {"enabled": False}}])
def test_switched_off_nothing_is_written(memory):
    asked(memory, "where does the gateway run?")
    assert not memory.recalls.is_on
    assert not os.path.exists(memory.recalls.folder)


def test_a_log_that_cannot_be_written_costs_no_answer(memory, caplog):
    os.makedirs(os.path.dirname(memory.recalls.folder), exist_ok=True)
    with open(memory.recalls.folder, "w", encoding="utf-8") as in_the_way:
        in_the_way.write("not a folder")
    answer = asked(memory, "where does the gateway run?")
    assert answer.content["results"]
    assert "could not be written down" in caplog.text


def test_a_torn_line_costs_neither_the_ones_before_nor_the_next(memory):
    asked(memory, "first about the gateway")
    (name,) = os.listdir(memory.recalls.folder)
    with open(os.path.join(memory.recalls.folder, name), "ab") as file:
        file.write(b'{"id":"01M7J6","kind":"sea')
    asked(memory, "second about the gateway")
    questions = [one.question for one in memory.recalls.page().recalls]
    assert questions == ["second about the gateway", "first about the gateway"]


def test_many_writers_at_once_lose_nothing(memory):
    log = memory.recalls

    def work(name):
        for number in range(25):
            log.begin("search", f"question {name} {number}", Asker("tools"), "private").end((), "text")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.question for one in log.each()}) == 100


# --- how it is read ---


def fill(memory, count, *, day=None):
    """Recalls of a day, written as they are by the log itself."""
    now = memory.now
    if day is not None:
        memory.recalls._now = lambda: now() - timedelta(days=day)
    for number in range(count):
        memory.recalls.begin("search", f"day {day} question {number}", Asker("tools"), "private").end((), "t")
    memory.recalls._now = now


def test_pages_follow_each_other_from_the_newest_to_the_oldest(memory):
    fill(memory, 3, day=2)
    fill(memory, 4, day=0)
    seen, cursor = [], None
    while True:
        page = memory.recalls.page(3, cursor=cursor)
        seen += [one.question for one in page.recalls]
        cursor = page.cursor
        if cursor is None:
            break
    newest = [f"day 0 question {number}" for number in (3, 2, 1, 0)]
    assert seen == newest + [f"day 2 question {number}" for number in (2, 1, 0)]


def test_a_page_that_is_just_full_and_the_last_has_no_cursor(memory):
    fill(memory, 3, day=0)
    assert memory.recalls.page(3).cursor is None


def test_a_day_can_be_asked_for_and_days_are_counted(memory):
    fill(memory, 2, day=3)
    fill(memory, 1, day=0)
    day = f"{memory.now() - timedelta(days=3):%Y-%m-%d}"
    assert [one.question for one in memory.recalls.page(day=day).recalls] == [
        "day 3 question 1",
        "day 3 question 0",
    ]
    assert list(memory.recalls.days().values()) == [1, 2]
    assert len(list(memory.recalls.each(since=f"{memory.now():%Y-%m-%d}"))) == 1


def test_days_that_are_too_old_are_removed_when_a_new_one_begins(memory):
    fill(memory, 1, day=95)
    fill(memory, 1, day=10)
    assert len(os.listdir(memory.recalls.folder)) == 2
    fill(memory, 1, day=0)
    assert len(os.listdir(memory.recalls.folder)) == 2
    assert len(list(memory.recalls.each())) == 2


def test_a_cursor_of_somebody_else_and_an_unknown_id_are_refused_in_words(memory):
    with pytest.raises(PlainmindError, match="no cursor"):
        memory.recalls.page(cursor="tomorrow")
    with pytest.raises(NotFound, match="no recall"):
        memory.recalls.get("01M7J657E6SZKFK5WSFQ2XKAKB")
    with pytest.raises(NotFound, match="no recall"):
        memory.recalls.get("")


def test_the_stamp_changes_with_every_recall_and_verdict(memory):
    stamps = [memory.recalls.stamp()]
    asked(memory, "where does the gateway run?")
    stamps.append(memory.recalls.stamp())
    asked(memory, "where does the gateway run?")
    stamps.append(memory.recalls.stamp())
    memory.recalls.judge(memory.recalls.page().recalls[0].id, "useful")
    stamps.append(memory.recalls.stamp())
    assert stamps[0] is None
    assert len(set(stamps)) == 4


# --- who may read it ---


def test_a_group_sees_its_own_recalls_and_nobody_elses(memory, workspace):
    shared = workspace / "memory" / "shared-with" / "everyone"
    shared.mkdir(parents=True)
    (shared / "house.md").write_text("The gateway is in the cellar.\n")
    asked(memory, "where is the owners gateway?")
    asked(memory, "where is our gateway?", GROUP)
    mine, others = memory.within(GROUP).recalls, memory.within(OTHER_GROUP).recalls
    assert [one.question for one in mine.page().recalls] == ["where is our gateway?"]
    assert others.page().recalls == ()
    assert len(memory.within(THE_OWNER).recalls.page().recalls) == 2
    owners = next(one for one in memory.recalls.each() if "owners" in one.question)
    with pytest.raises(NotFound):
        mine.get(owners.id)
    with pytest.raises(NotFound):
        mine.judge(owners.id, "wrong")


def test_a_file_that_became_private_is_no_longer_named_to_a_group(memory, workspace):
    shared = workspace / "memory" / "shared-with" / "everyone"
    shared.mkdir(parents=True)
    (shared / "house.md").write_text("The gateway is in the cellar.\n")
    asked(memory, "where is our gateway?", GROUP)
    log = memory.within(GROUP).recalls
    (recall,) = log.page().recalls
    assert [one.path for one in recall.given] == ["memory/shared-with/everyone/house.md"]
    log._witness = type(log._witness)(log._witness.sees, lambda _path: False)
    (recall,) = log.page().recalls
    assert [(one.path, one.is_given) for one in recall.lines] == [("", False)]


# --- verdicts ---


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_stays_with_its_line_and_can_be_taken_back(memory, verdict):
    asked(memory, "where does the gateway run?")
    name = memory.recalls.page().recalls[0].id
    assert memory.recalls.judge(name[:20], verdict).lines[0].verdict == verdict
    assert memory.recalls.get(name).lines[0].verdict == verdict
    memory.recalls.judge(name, "")
    assert memory.recalls.get(name).lines[0].verdict == ""


def test_a_verdict_that_is_none_and_a_line_that_is_none_are_refused(memory):
    asked(memory, "where does the gateway run?")
    ToolBox(memory.within(THE_OWNER)).call("memory_get", {"path": "MEMORY.md"})
    read, found = memory.recalls.page().recalls
    with pytest.raises(PlainmindError, match="no verdict"):
        memory.recalls.judge(found.id, "splendid")
    with pytest.raises(NotFound, match="no line 9"):
        memory.recalls.judge(found.id, "useful", line=9)
    with pytest.raises(PlainmindError, match="as a whole"):
        memory.recalls.judge(read.id, "useful")


# --- forgetting ---


@pytest.mark.parametrize("what", ["471147", "memory/2026-02-10.md#L4"])
def test_forgetting_leaves_no_byte_in_the_log(memory, tmp_path, what):
    asked(memory, "is 471147 the code of the door?")
    asked(memory, "what is the DOOR code?")
    asked(memory, "where does the gateway run?")
    name = next(one for one in memory.recalls.each() if "DOOR" in one.question).id
    doors = [n for n, one in enumerate(memory.recalls.get(name).lines, 1) if "2026-02-10" in one.path]
    memory.recalls.judge(name, "useful", line=doors[0])
    mark = memory.recalls.get(name).lines[doors[0] - 1].mark.encode()
    assert b"471147" in bytes_of_home(tmp_path)
    memory.forget(what)
    memory.wipe()
    left = bytes_of_home(tmp_path)
    assert b"471147" not in left
    assert mark not in left
    assert all("door" not in one.question.casefold() for one in memory.recalls.each())


def test_forgetting_leaves_other_recalls_alone(memory):
    asked(memory, "who drinks tea?")
    memory.forget("Mac Studio")
    assert [one.question for one in memory.recalls.each()] == ["who drinks tea?"]


def test_what_was_found_before_something_was_forgotten_is_not_written_after_it(memory):
    recall = memory.within(THE_OWNER).begin_recall("search", "is 471147 the door code?")
    memory.forget("471147")
    recall.end((), "the answer")
    assert list(memory.recalls.each()) == []


def test_a_recall_never_waits_for_a_forgetting_that_is_under_way(memory):
    recall = memory.within(THE_OWNER).begin_recall("search", "gateway?")
    with memory.notes.erasures.run_alone():
        recall.end((), "the answer")
    assert list(memory.recalls.each()) == []


def test_a_group_that_forgets_its_line_leaves_the_owners_other_recalls(memory):
    memory.within(GROUP).append("the hut key is under the stone")
    # A search may find the line about the key too, a little, as the time of day before it will have it.
    tea = memory.within(THE_OWNER).begin_recall("search", "who drinks tea?")
    tea.end([RecalledLines("memory/2026-02-10.md", 3, 3)], "09:00 tea, not coffee, for the meeting")
    asked(memory, "where is the hut key?", GROUP)
    memory.within(GROUP).forget("under the stone")
    assert [one.question for one in memory.recalls.each()] == ["who drinks tea?"]


def test_deleting_a_conversation_takes_its_recalls_along(memory):
    session = Session("cursor", "talk-9")
    turns = Turns(memory)
    turns.recall(session, "where does the gateway run?")
    turns.keep_messages(session, [{"role": "user", "text": "where does the gateway run?"}])
    asked(memory, "who drinks tea?")
    memory.delete_session("cursor:talk-9")
    assert [one.question for one in memory.recalls.each()] == ["who drinks tea?"]


def test_clearing_removes_recalls_and_keeps_verdicts(memory):
    asked(memory, "where does the gateway run?")
    memory.recalls.judge(memory.recalls.page().recalls[0].id, "useful")
    assert memory.recalls.clear() == 1
    assert list(memory.recalls.each()) == []
    assert os.listdir(memory.recalls.folder) == ["verdicts.jsonl"]


# --- size ---


def test_a_year_of_recalls_is_small(memory):
    """100,000 recalls in 60 MB: at most 600 bytes for one with six results and a session's name."""
    lines = [
        RecalledLines(f"memory/2026-02-{day}.md", 12, 14, 13, 0.123, "a1b2c3d4") for day in range(10, 16)
    ]
    asker = Asker("mcp", "claude-code", "0b6f7a62-3a4e-4c0e-9a55-5e8f2a1c7d10")
    question = "what did we decide about the cooling of the server room in the cellar?"
    memory.recalls.begin("search", question, asker, "private").end(lines, "x" * 4000)
    (name,) = os.listdir(memory.recalls.folder)
    assert os.path.getsize(os.path.join(memory.recalls.folder, name)) <= 600


def test_marks_know_a_line_again_without_its_list_mark_and_id():
    assert mark_of("- [ ] 14:32 call Anna <!-- m:01JD3 -->") == mark_of("  14:32 call Anna  ")
    assert mark_of("- call Anna") != mark_of("- call Bo")


def test_a_clock_that_was_set_far_ahead_hides_no_recall(memory, monkeypatch):
    from plainmind.files import append

    monkeypatch.setattr(append, "_last_ms", (1 << 48) - 2)
    monkeypatch.setattr(append, "_last", "7ZZZZZZZZY" + "0" * 16)
    begun = memory.within(THE_OWNER).begin_recall("search", "which gateway?", asker=Asker("mcp"))
    begun.end([], "the gateway runs in the cellar")

    (recall,) = memory.recalls.page().recalls
    assert recall.question == "which gateway?"
    assert recall.at.startswith("9999-")
