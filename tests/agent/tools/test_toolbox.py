"""The tools on a real memory: what they answer, and what they answer when something is wrong."""

from __future__ import annotations

import json
import re
import threading

import pytest
from jsonschema import Draft202012Validator

from plainmind import Memory
from plainmind.agent.recall import TAG
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tools import SEARCH, TOOLS, ToolAnswer, ToolBox
from plainmind.base.value import replace

SHAPES = {tool.name: Draft202012Validator(tool.output_schema) for tool in TOOLS}
STRANGER = SearchContext("", "direct", "")
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", group="7")


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Network\n\nThe gateway runs on a Mac Studio in the cellar.\n")
    (folder / "memory" / "2026-02-10.md").write_text("# 2026-02-10\n\n- tea, not coffee, for the meeting\n")
    return folder


@pytest.fixture
def memory(workspace, tmp_path):
    with Memory(workspace, home=tmp_path / "home") as memory:
        yield memory


class Box:
    """A tool box whose every answer is held against its schema."""

    def __init__(self, memory, context=THE_OWNER, tools=TOOLS):
        self.memory = memory.within(context)
        self.box = ToolBox(self.memory, tools)

    def call(self, name, arguments="{}") -> ToolAnswer:
        answer = self.box.call(name, arguments)
        json.dumps(answer.content)
        if name in SHAPES:
            SHAPES[name].validate(answer.content)
        return answer

    def ok(self, name, **arguments) -> ToolAnswer:
        answer = self.call(name, arguments)
        assert not answer.is_error, answer.text
        return answer


@pytest.fixture
def box(memory):
    box = Box(memory)
    yield box
    box.box.close()


def test_a_search_can_be_restricted_and_says_how_it_was_understood(box):
    answer = box.ok("memory_search", query='"Mac Studio" -coffee', path="MEMORY.md", since="2000")

    assert [hit["path"] for hit in answer.content["results"]] == ["MEMORY.md"]
    assert answer.content["understood"] == [
        "only in MEMORY.md",
        "only with “Mac Studio” word for word",
        "only since 2000-01-01",
        "without “coffee”",
    ]
    assert "without “coffee”" in answer.text
    assert box.ok("memory_search", query="gateway", tag="none").content["results"] == []


def test_words_that_name_no_day_are_a_mistake_of_the_call_and_not_of_the_memory(box):
    answer = box.call("memory_search", {"query": "gateway", "until": "whenever"})

    assert (answer.is_error, answer.content["code"]) == (True, "INVALID_ARGUMENTS")
    assert "unavailable" not in answer.content
    assert "names no day" in answer.text


def test_a_search_gives_hits_with_their_place(box):
    answer = box.ok("memory_search", query="where does the gateway run?")

    (first, *_) = answer.content["results"]
    assert (first["path"], first["startLine"], first["endLine"], first["source"]) == (
        "MEMORY.md",
        1,
        3,
        "memory",
    )
    assert first["citation"] == "MEMORY.md#L1-L3"
    assert first["snippet"].endswith("in the cellar.\n\nSource: MEMORY.md#L1-L3")
    assert answer.content["provider"] == "builtin"
    assert (answer.content["citations"], answer.content["mode"]) == ("on", "hybrid")
    assert (answer.content["fallback"], answer.content["degraded"]) == (None, [])


def test_the_model_reads_the_same_hits_between_marks(box):
    text = box.ok("memory_search", query="where does the gateway run?").text

    nonce = re.match(rf"<{TAG} (\w+)>\n", text)[1]
    assert text.endswith(f"</{TAG} {nonce}>")
    assert f"[{nonce} 1/1] MEMORY.md#L1-L3 · long-term memory · score 0." in text
    assert "a Mac Studio in the cellar." in text


def test_no_two_answers_are_fenced_by_the_same_word(box):
    texts = {box.ok("memory_search", query="gateway").text.split("\n")[0] for _ in range(3)}

    assert len(texts) == 3


def test_citations_can_be_switched_off(workspace, tmp_path):
    with Memory(workspace, home=tmp_path / "home", config={"citations": "off"}) as memory:
        content = Box(memory).ok("memory_search", query="gateway").content

    assert content["citations"] == "off"
    assert "citation" not in content["results"][0]
    assert "Source:" not in content["results"][0]["snippet"]


def test_a_group_sees_its_own_notes_and_no_citations(workspace, tmp_path):
    with Memory(
        workspace, home=tmp_path / "home", config={"scope": {"default": "allow", "rules": []}}
    ) as memory:
        group = Box(memory, GROUP)
        saved = group.ok("memory_append", text="the group meets at the gateway").content
        content = group.ok("memory_search", query="gateway", minScore=0).content

    assert saved["path"].startswith("memory/shared-with/telegram/group-7/")
    assert [one["path"] for one in content["results"]] == [saved["path"]]
    assert content["citations"] == "off"


def test_a_search_without_hits_says_so(box):
    answer = box.ok("memory_search", query="zyzzyva", minScore=0.99)

    assert answer.content["results"] == []
    assert answer.text.startswith("Nothing in the memory matches")


def test_more_results_than_the_limit_are_not_given_and_that_is_said(workspace, tmp_path):
    for number in range(9):
        (workspace / "memory" / f"tea-{number}.md").write_text(f"# Tea {number}\n\ntea number {number}\n")
    with Memory(workspace, home=tmp_path / "home", config={"limits": {"maxResults": 3}}) as memory:
        answer = Box(memory).ok("memory_search", query="tea", maxResults=8, minScore=0)

    assert len(answer.content["results"]) == 3
    assert answer.content["warning"] == "At most 3 results are given at once."


def test_the_injected_text_keeps_its_budget(workspace, tmp_path):
    for number in range(6):
        (workspace / "memory" / f"tea-{number}.md").write_text(f"tea {number}\n" + "tea and more tea\n" * 60)
    limits = {"limits": {"maxSnippetChars": 300, "maxInjectedChars": 700}}
    with Memory(workspace, home=tmp_path / "home", config=limits) as memory:
        results = Box(memory).ok("memory_search", query="tea", minScore=0).content["results"]

    lengths = [len(one["snippet"].partition("\n\nSource:")[0]) for one in results]
    assert max(lengths) <= 300
    assert 300 < sum(lengths) <= 700


def test_a_search_that_takes_too_long_is_not_waited_for(box):
    go = threading.Event()
    real = box.memory.search
    patient = replace(box.memory.limits, timeout_ms=30)

    class Slow:
        limits = patient
        access = box.memory.access
        shows_citations = True
        begin_recall = box.memory.begin_recall

        def search(self, *arguments, **more):
            go.wait(60)
            return real(*arguments, **more)

    slow = ToolBox(Slow())
    answer = slow.call("memory_search", {"query": "gateway"})
    go.set()
    slow.close()

    SHAPES["memory_search"].validate(answer.content)
    assert answer.is_error
    assert answer.content["results"] == []
    assert (answer.content["unavailable"], answer.content["timedOut"]) == (True, True)
    assert answer.content["timeoutMs"] == 30
    assert "did not answer within 30 ms" in answer.text
    (recall,) = box.memory.recalls.page().recalls
    assert {one.reason for one in recall.lines} == {"too late"}
    assert recall.tokens == 0


def test_a_memory_that_cannot_be_searched_is_no_empty_memory(box, workspace):
    workspace.rename(workspace.with_name("elsewhere"))

    answer = box.call("memory_search", {"query": "gateway"})

    assert answer.is_error
    assert answer.content["unavailable"] is True
    assert answer.content["results"] == []
    assert "there is no workspace" in answer.content["error"]
    assert answer.content["action"]


def test_reading_gives_lines_and_where_to_go_on(box, workspace):
    (workspace / "memory" / "long.md").write_text("".join(f"line {n}\n" for n in range(1, 301)))

    first = box.ok("memory_get", path="memory/long.md").content
    assert (first["status"], first["from"], first["lines"], first["nextFrom"]) == ("ok", 1, 120, 121)
    assert first["truncated"] is True
    last = box.ok("memory_get", path="memory/long.md", **{"from": 299, "lines": 10})
    assert (last.content["text"], last.content["lines"]) == ("line 299\nline 300", 2)
    assert "nextFrom" not in last.content
    assert box.ok("memory_get", path="memory/long.md#L3-L4").content["text"] == "line 3\nline 4"


def test_reading_past_the_end_says_so(box):
    answer = box.ok("memory_get", path="MEMORY.md", **{"from": 50})

    assert (answer.content["text"], answer.content["lines"]) == ("", 0)
    assert "the file ends before it" in answer.text


def test_reading_keeps_a_budget_of_its_own(box, workspace):
    (workspace / "memory" / "wide.md").write_text(("x" * 400 + "\n") * 100)

    content = box.ok("memory_get", path="memory/wide.md").content

    assert len(content["text"]) <= 12_000
    assert content["nextFrom"] == content["lines"] + 1


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("memory/none.md", "not_found", "MEMORY_NOT_FOUND"),
        ("../secret.md", "error", "MEMORY_PATH_NOT_ALLOWED"),
        ("/etc/passwd", "error", "MEMORY_PATH_NOT_ALLOWED"),
        ("memory/../MEMORY.md", "error", "MEMORY_PATH_NOT_ALLOWED"),
        ("README.txt", "error", "MEMORY_PATH_NOT_ALLOWED"),
    ],
)
def test_what_is_not_of_the_memory_is_refused_with_the_reason(box, path, status, code):
    answer = box.call("memory_get", {"path": path})

    assert answer.is_error
    assert (answer.content["status"], answer.content["code"]) == (status, code)
    assert answer.content["error"]


def test_what_stays_true_goes_to_the_curated_memory(box, workspace):
    saved = box.ok("memory_append", text="Ana likes oolong.", durable=True).content

    assert saved["path"] == "MEMORY.md"
    assert "Ana likes oolong." in (workspace / "MEMORY.md").read_text()


def test_a_fact_is_corrected_in_its_place_and_what_it_was_can_be_brought_back(box, memory, workspace):
    edited = box.ok("memory_edit", path="MEMORY.md#L3", old="a Mac Studio", new="a Pi").content

    assert edited == {"status": "ok", "path": "MEMORY.md", "line": 3}
    assert "runs on a Pi in the cellar" in (workspace / "MEMORY.md").read_text()
    assert "a Pi" in box.ok("memory_search", query="what does the gateway run on?").text
    [before] = [version for version in memory.history("MEMORY.md") if version.available]
    memory.restore(before.id)
    assert "runs on a Mac Studio in" in (workspace / "MEMORY.md").read_text()


@pytest.mark.parametrize(
    ("path", "old", "status"),
    [
        ("MEMORY.md", "a toaster", "not_found"),
        ("MEMORY.md", "e", "not_found"),
        ("memory/none.md", "x", "not_found"),
        ("../secret.md", "x", "error"),
    ],
)
def test_what_cannot_be_corrected_is_said_and_stays(box, workspace, path, old, status):
    before = (workspace / "MEMORY.md").read_text()
    answer = box.call("memory_edit", {"path": path, "old": old, "new": "y"})

    assert answer.is_error
    assert answer.content["status"] == status
    assert answer.content["action"] or answer.content["error"]
    assert (workspace / "MEMORY.md").read_text() == before


def test_the_mark_of_a_hidden_secret_takes_no_secret_s_place(box, workspace):
    (workspace / "MEMORY.md").write_text("The root password is: Kx8#qPz!Lw2v of the cellar.\n")
    shown = box.ok("memory_get", path="MEMORY.md").text
    [mark] = re.findall(r"\[redacted:[^]]*\]", shown)
    answer = box.call(
        "memory_edit", {"path": "MEMORY.md", "old": "of the cellar", "new": f"{mark} of the attic"}
    )

    assert answer.is_error
    assert "words before or after" in answer.text
    assert "Kx8#qPz!Lw2v of the cellar" in (workspace / "MEMORY.md").read_text()


def test_a_group_corrects_its_own_notes_alone(memory, workspace):
    with Memory(workspace, home=memory.home, config={"scope": {"default": "allow", "rules": []}}) as opened:
        group = Box(opened, GROUP)
        saved = group.ok("memory_append", text="the group meets on Monday").content
        group.ok("memory_edit", path=saved["path"], old="Monday", new="Tuesday")
        refused = group.call("memory_edit", {"path": "MEMORY.md", "old": "Mac Studio", "new": "toaster"})
        durable = group.call("memory_append", {"text": "we are the owners", "durable": True})

    assert "on Tuesday" in (workspace / saved["path"]).read_text()
    assert refused.content["denied"]
    assert durable.content["denied"]
    assert (workspace / "MEMORY.md").read_text().count("Mac Studio") == 1


def test_a_complaint_spells_the_tool_as_it_is_called(box):
    answer = box.call("memory_search", {})

    complaint, advice = answer.text.splitlines()
    assert complaint == "memory_search needs the argument `query`."
    assert advice.startswith('Call memory_search with {"query": text')


def test_a_saved_note_is_found_by_the_next_search(box, workspace):
    saved = box.ok("memory_append", text="the pelican lands on Tuesday").content

    assert "pelican" in (workspace / saved["path"]).read_text()
    hits = box.ok("memory_search", query="when does the pelican land?").content["results"]
    assert hits[0]["path"] == saved["path"]


def test_forgetting_takes_two_steps(box, workspace):
    preview = box.ok("memory_forget", what="tea, not coffee")
    assert preview.content["status"] == "preview"
    assert preview.content["lines"] == [
        {
            "path": "memory/2026-02-10.md",
            "startLine": 3,
            "endLine": 3,
            "text": "- tea, not coffee, for the meeting",
        }
    ]
    assert "Nothing was removed yet" in preview.text
    assert "tea" in (workspace / "memory/2026-02-10.md").read_text()

    gone = box.ok("memory_forget", what="tea, not coffee", confirm=preview.content["confirm"])

    assert gone.content["status"] == "forgotten"
    assert gone.content["places"] == ["memory/2026-02-10.md#L3"]
    assert "tea" not in (workspace / "memory/2026-02-10.md").read_text()


@pytest.mark.parametrize("confirm", ["true", "yes", "00000000"])
def test_a_code_that_nobody_gave_removes_nothing(box, workspace, confirm):
    answer = box.call("memory_forget", {"what": "tea, not coffee", "confirm": confirm})

    assert answer.is_error
    assert answer.content["status"] == "preview"
    assert "does not stand for these lines" in answer.text
    assert "tea" in (workspace / "memory/2026-02-10.md").read_text()


def test_a_code_is_worth_nothing_once_the_lines_have_changed(box, workspace):
    code = box.ok("memory_forget", what="tea, not coffee").content["confirm"]
    with (workspace / "memory/2026-02-10.md").open("a") as file:
        file.write("- another tea, not coffee\n")

    assert box.call("memory_forget", {"what": "tea, not coffee", "confirm": code}).is_error
    assert "tea" in (workspace / "memory/2026-02-10.md").read_text()


def test_a_preview_keeps_the_budget_and_says_how_much_there_is(box, workspace):
    (workspace / "memory" / "tea.md").write_text("".join(f"tea {n} {'x' * 90}\n" for n in range(200)))

    answer = box.ok("memory_forget", what="tea")

    assert answer.content["total"] == 201
    assert sum(len(one["text"]) for one in answer.content["lines"]) <= 4000
    assert "201 places would be removed" in answer.text


def test_forgetting_what_is_not_there_says_so(box):
    answer = box.call("memory_forget", {"what": "zyzzyva"})

    assert (answer.is_error, answer.content["status"]) == (True, "not_found")


def test_the_status_tells_no_places_on_disk(box, workspace, tmp_path):
    box.ok("memory_search", query="tea")

    answer = box.ok("memory_status")

    assert (answer.content["status"], answer.content["files"], answer.content["provider"]) == (
        "ok",
        2,
        "builtin",
    )
    assert str(tmp_path) not in answer.text
    assert str(tmp_path) not in json.dumps(answer.content)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_search", {"query": "gateway"}),
        ("memory_get", {"path": "MEMORY.md"}),
        ("memory_append", {"text": "a note"}),
        ("memory_edit", {"path": "MEMORY.md", "old": "Mac Studio", "new": "toaster"}),
        ("memory_forget", {"what": "gateway"}),
        ("memory_status", {}),
    ],
)
def test_where_the_memory_may_not_be_used_every_tool_says_denied(memory, name, arguments):
    answer = Box(memory, STRANGER).call(name, arguments)

    assert answer.is_error
    assert answer.content["denied"] is True
    assert answer.content["code"] == "MEMORY_DENIED"
    assert "gateway" not in json.dumps(answer.content).replace(json.dumps(arguments), "")
    assert "Studio" not in answer.text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_find", "{}"),
        ("", "{}"),
        ("memory_search", "not json"),
        ("memory_search", {"query": 3}),
        ("memory_get", {"path": "MEMORY.md", "lines": "all"}),
        ("memory_append", {}),
        ("memory_append", {"text": "   "}),
        ("memory_forget", {"what": "ab"}),
        ("memory_status", {"x": 1}),
    ],
)
def test_a_mistake_of_the_model_is_an_answer_that_says_what_to_do(box, name, arguments):
    answer = box.call(name, arguments)

    assert answer.is_error
    assert answer.content["error"]
    assert answer.content["action"]
    assert answer.text.count("\n") == 1


def test_a_tool_that_was_not_given_cannot_be_called(memory, workspace):
    box = Box(memory, tools=(SEARCH,))

    answer = box.call("memory_append", {"text": "a note"})

    assert answer.content["code"] == "UNKNOWN_TOOL"
    assert "the tools are: memory_search" in answer.content["action"].lower()
    assert box.box.tools == (SEARCH,)


def test_a_hit_without_a_chance_is_given_only_where_so_many_are_asked_for(workspace, box):
    for number in range(8):
        (workspace / "memory" / f"{number}.md").write_text(
            f"# Heap {number}\n\nA mason may sleep beside gravel.\n"
        )
    (workspace / "memory" / "ferry.md").write_text("# Ferry\n\nThe ferryman of the lake sleeps until noon.\n")

    def scores(**more):
        found = box.ok("memory_search", query="until when does the ferryman of the lake sleep", **more)
        return [hit["score"] for hit in found.content["results"]]

    assert min(scores(maxResults=5)) < 0.005 < min(scores())
    assert min(scores(minScore=0)) < 0.005
    assert scores()[0] == scores(maxResults=5)[0]


@pytest.mark.parametrize("given", ["My key is [redacted:openai#8242]", "[redacted:password#00ff]"])
def test_an_agent_that_gives_the_mark_of_a_hidden_secret_is_told_that_it_is_one(box, given):
    for name, arguments in (
        ("memory_edit", {"path": "MEMORY.md", "old": given, "new": "revoked"}),
        ("memory_forget", {"what": given}),
    ):
        answer = box.call(name, arguments)

        assert answer.is_error
        assert "stands in the place of a secret that is hidden from you" in answer.text
        assert "FILE.md#L4" in answer.text
    assert (
        "match to the letter"
        in box.call("memory_edit", {"path": "MEMORY.md", "old": "[redacted]", "new": "no"}).text
    )


def test_a_mark_that_somebody_has_written_is_a_text_like_any_other(workspace, box):
    (workspace / "MEMORY.md").write_text("- The log says [redacted:openai#8242].\n")

    box.ok("memory_edit", path="MEMORY.md", old="[redacted:openai#8242]", new="nothing")

    assert "says nothing" in (workspace / "MEMORY.md").read_text()
