"""What every engine must do for a memory, whoever indexes and searches."""

from __future__ import annotations

import pytest
from tests.support.qmd_program import QmdProgram

from plainmind import Memory, SearchContext

GROUP = SearchContext("anna", "group", "agent:main:telegram:group:-100", group="-100")
ENGINES = {
    "builtin": lambda _: {},
    "qmd": lambda program: {"backend": "qmd", "qmd": {"command": program, "update": {"debounceMs": 0}}},
    "qmd that fails": lambda _: {"backend": "qmd", "qmd": {"command": "no-such-program"}},
}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "ws"
    for path, text in {
        "MEMORY.md": "# Ada\n\nAda likes strong coffee.\n",
        "memory/network.md": "# Network\n\n- gull: builds\n- tern: the gateway\n\n## Hosted\n\n- skagen: tides\n",
        "memory/shared-with/group--100/trip.md": "the group takes the tern ferry\n",
        "memory/shared-with/person-bob/note.md": "bob is afraid of the tern\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(params=ENGINES)
def memory(request, tmp_path, workspace):
    program = QmdProgram(tmp_path / "program")
    settings = {
        **ENGINES[request.param](str(program.path)),
        "limits": {"timeoutMs": 30_000},
        "scope": {"rules": [{"action": "allow", "match": {}}]},
    }
    with Memory(workspace, tmp_path / "home", settings) as memory:
        yield memory
    assert program.alive() == []


def files(result):
    return {hit.path for hit in result.hits}


def test_words_are_found_in_the_file_that_has_them(memory):
    assert "memory/network.md" in files(memory.search("skagen tides"))


def test_the_cited_lines_are_the_lines_of_the_snippet(memory, workspace):
    for word in ("gateway", "coffee", "tides", "ferry"):
        hits = memory.search(word).hits
        assert hits
        for hit in hits:
            lines = (workspace / hit.path).read_text().split("\n")
            assert hit.snippet == "\n".join(lines[hit.start_line - 1 : hit.end_line])
            assert hit.snippet in memory.get(f"{hit.path}#L{hit.start_line}-L{hit.end_line}").text


def test_the_best_comes_first_and_no_more_than_were_asked_for(memory):
    result = memory.search("tern", max_results=2)

    scores = [hit.score for hit in result.hits]
    assert len(scores) <= 2
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_no_snippet_is_longer_than_it_may_be(memory):
    hits = memory.search("gateway", snippet_chars=40).hits

    assert hits
    assert all(len(hit.snippet) <= 40 for hit in hits)


def test_a_search_sees_every_write_that_came_before_it(memory):
    for number in range(3):
        memory.remember(f"falcon{number} nests at skagen")
        assert any(f"falcon{number}" in hit.snippet for hit in memory.search(f"falcon{number}").hits)


def test_a_file_that_is_gone_is_not_found(memory, workspace):
    assert memory.search("coffee").hits
    (workspace / "MEMORY.md").write_text("# Ada\n\nnothing\n")

    assert not any("coffee" in hit.snippet for hit in memory.search("coffee").hits)


def test_what_is_forgotten_is_not_found_again(memory):
    memory.search("gateway")

    memory.forget("- tern: the gateway")

    assert not any("gateway" in hit.snippet for hit in memory.search("gateway").hits)


def test_a_group_sees_its_own_and_nobody_elses(memory):
    assert files(memory.within(GROUP).search("tern", min_score=0.0)) == {
        "memory/shared-with/group--100/trip.md"
    }
    assert len(files(memory.search("tern", min_score=0.0))) >= 3


def test_an_empty_question_has_no_answer(memory):
    assert memory.search("   ").hits == ()


def test_a_sync_can_be_asked_for_again_and_again(memory):
    memory.sync()
    memory.sync(force=True)

    assert memory.sync().indexed == ()
    assert memory.search("coffee").hits


def test_status_says_who_searches_and_whether_it_works(memory):
    engine = memory.status(deep=True)["engine"]

    assert engine["name"] in {"builtin", "qmd"}
    assert isinstance(engine["healthy"], bool)
    assert engine["healthy"] or engine["problem"]


def test_closing_twice_is_fine(memory):
    memory.search("coffee")

    memory.close()
    memory.close()
