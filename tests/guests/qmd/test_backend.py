"""From what a program prints to hits: answers or a reason, and each hit of lines that stand in the file now."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import EVERY_SCOPE, Document
from plainmind.files.system import Erasures
from plainmind.guests.qmd.backend import Answer, Hits, placed, read_answers
from plainmind.guests.qmd.program import QmdOptions, TookTooLong
from plainmind.guests.qmd.territory import Territory
from plainmind.memory.backend import BackendFailed, Question, Record, Surroundings
from plainmind.notes.workspace import Workspace

REAL = {
    "docid": "#168867",
    "score": 0.61,
    "file": "qmd://memory-dir-main/network.md",
    "line": 7,
    "title": "Network and machines",
    "snippet": "@@ -6,4 @@ (5 before, 14 after)\n- gull\n- tern: gateway\n\n## Hosted",
}
READ = Answer("memory-dir-main", "network.md", 0.61, 7, 6, ("- gull", "- tern: gateway", "", "## Hosted"))


def printed(*items):
    return json.dumps(items).encode()


def test_an_answer_as_the_program_prints_it():
    assert read_answers(printed(REAL)) == (READ,)


def test_nothing_found_is_an_answer_in_each_of_its_forms():
    assert read_answers(b"[]\n") == ()
    assert read_answers(b"No results found.\n") == ()


def test_answers_are_found_among_other_things():
    noise = b"[1/2] loading [fast]\n" + printed(REAL) + b"\nggml_abort: [backtrace]"

    assert read_answers(noise) == (READ,)


@pytest.mark.parametrize(
    "output", [b"", b"   ", b"error: no such table", b"{}", b"[{ not json", b"\xff\xfe" * 100, b"[" * 100_000,
               b'[{"score": NaN, "file": "qmd://a/b.md"}]', b"[1, 2]", b'[{"title": "no file"}]']
)  # fmt: skip
def test_what_cannot_be_read_is_a_failure_and_never_no_results(output):
    with pytest.raises(BackendFailed, match="printed"):
        read_answers(output)


def test_a_collection_beside_a_path_is_understood():
    (answer,) = read_answers(printed({"file": "a/b.md", "collection": "docs", "start_line": 3, "body": "x"}))

    assert (answer.collection, answer.path, answer.first_line, answer.text) == ("docs", "a/b.md", 3, ("x",))


def test_the_name_of_an_index_is_no_part_of_a_path():
    (answer,) = read_answers(printed({**REAL, "file": "qmd://docs/a b.md?index=other"}))

    assert answer.path == "a b.md"


def test_a_line_that_was_cut_short_is_not_taken_for_a_line_of_the_file():
    (answer,) = read_answers(printed({**REAL, "snippet": "@@ -1,2 @@\nwhole line\nhalf a li..."}))

    assert (answer.text, answer.cut) == (("whole line",), "half a li")


def test_a_mark_at_the_very_beginning_of_a_file_is_no_part_of_its_first_line():
    (answer,) = read_answers(printed({**REAL, "line": 1, "snippet": "@@ -1,1 @@\n\ufefffirst"}))

    assert answer.text == ("first",)


@pytest.mark.parametrize("score", [None, "0.5", True, [], -1, 1e30])
def test_a_score_that_is_none_is_the_lowest(score):
    (answer,) = read_answers(printed({**REAL, "score": score}))

    assert answer.score == 0.0


def test_some_answers_that_cannot_be_read_do_not_cost_the_others():
    assert read_answers(printed({"file": 7}, REAL, {"file": "qmd://nothing"})) == (READ,)


@given(st.binary(max_size=300))
def test_any_bytes_are_answers_or_a_failure(output):
    with suppress(BackendFailed):
        assert isinstance(read_answers(output), tuple)


JSON = st.sampled_from(
    [None, True, False, 0, -1, 7, 10**30, 0.5, -0.0, 1e300, "", "7", "qmd://", "qmd://a", "qmd://a/b.md", "a/b.md",
     "@@ -0,0 @@", "@@ -999999999,1 @@\nx", "@@ -5 @@", "a\n\nb...", "\ud83d\ude00\n", [], [1], {}, {"a": []}]
)  # fmt: skip
ITEMS = st.dictionaries(
    st.sampled_from(["file", "collection", "score", "line", "start_line", "snippet", "body"]), JSON
)


@given(st.lists(ITEMS, max_size=4))
def test_any_objects_are_answers_or_a_failure(items):
    try:
        answers = read_answers(printed(*items))
    except BackendFailed:
        return
    for answer in answers:
        assert 0.0 <= answer.score <= 1.0
        assert answer.line >= 1
        assert answer.first_line >= 1


TEXT = "# Network\n\n- gull: builds\n- tern: gateway\n\n## Hosted\n- skagen: tides\n"


def document(text=TEXT, **more):
    return Document("memory/network.md", "memory", text, **more)


def answer(first, *lines, line=None, cut=""):
    return Answer("memory-dir-main", "network.md", 0.5, line or first, first, lines, cut)


def place(found, doc=None, *, offset=0, snippet_chars=700):
    return placed(found, doc or document(), offset=offset, snippet_chars=snippet_chars)


def test_the_lines_of_a_hit_are_the_lines_of_its_snippet():
    hit = place(answer(3, "- gull: builds", "- tern: gateway", "", "## Hosted", line=4))

    assert (hit.start_line, hit.end_line) == (3, 6)
    assert hit.snippet == "- gull: builds\n- tern: gateway\n\n## Hosted"


def test_lines_that_have_moved_are_found_where_they_are_now():
    hit = place(answer(3, "- gull: builds", line=3), document("new\nnew\nnew\n" + TEXT))

    assert hit.start_line == 6


def test_of_equal_lines_the_nearest_is_meant():
    repeated = document("a\nsame\nb\nc\nd\nsame\n")

    assert place(answer(5, "same"), repeated).start_line == 6
    assert place(answer(3, "same"), repeated).start_line == 2


def test_text_that_the_file_does_not_have_any_more_is_no_hit():
    assert place(answer(3, "- gull: builds", "- secret: forgotten", line=4)) is None
    assert place(answer(3, "- secret: forgotten")) is None


def test_when_only_what_stood_around_it_has_changed_the_best_line_is_left():
    hit = place(answer(3, "- gull: tests", "- tern: gateway", line=4))

    assert (hit.start_line, hit.end_line, hit.snippet) == (4, 4, "- tern: gateway")


def test_without_any_text_the_line_counts_if_there_is_one():
    assert place(answer(4)).snippet == "- tern: gateway"
    assert place(answer(400)) is None
    assert place(answer(2)) is None  # an empty line says nothing


def test_a_long_snippet_keeps_the_best_line_and_what_fits_around_it():
    hit = place(answer(3, "- gull: builds", "- tern: gateway", "", "## Hosted", line=4), snippet_chars=30)

    assert (hit.start_line, hit.end_line, hit.snippet) == (4, 6, "- tern: gateway\n\n## Hosted")


def test_a_line_longer_than_a_snippet_is_cut():
    hit = place(answer(1, "x" * 100), document("x" * 100), snippet_chars=40)

    assert (hit.snippet, hit.start_line, hit.end_line) == ("x" * 40, 1, 1)


LONG = document("\n".join(["x" * 600, "the falcon " + "y" * 600, "z" * 600]))


def test_the_best_line_is_found_behind_a_long_one_that_is_all_that_was_shown():
    hit = place(answer(1, line=2, cut="x" * 497), LONG)

    assert (hit.start_line, hit.end_line, hit.snippet[:10]) == (2, 2, "the falcon")
    assert place(answer(1, line=2, cut="other"), LONG) is None


def test_a_line_that_was_shown_in_part_is_known_by_its_beginning():
    hit = place(answer(1, "x" * 600, line=2, cut="the fal"), LONG)
    alone = place(answer(1, "something else", line=2, cut="the fal"), LONG)

    assert (hit.start_line, alone.start_line) == (2, 2)
    assert place(answer(1, "something else", line=2, cut="the owl"), LONG) is None


def test_the_head_of_an_export_is_passed_over_and_lines_lead_back_to_the_transcript():
    talk = document("User: hello\nAssistant: the gateway\n", line_map=(4, 7))
    shown = ("# Session abc", "", "User: hello", "Assistant: the gateway")

    hit = place(answer(1, *shown, line=4), talk, offset=2)

    assert (hit.start_line, hit.end_line) == (4, 7)
    assert hit.snippet == "User: hello\nAssistant: the gateway"


LINES = st.lists(st.sampled_from(["", "a", "b", "c c", "  d"]), min_size=1, max_size=12)


@given(LINES, st.data())
def test_a_snippet_is_always_the_cited_lines_of_the_file(lines, data):
    first = data.draw(st.integers(1, len(lines) + 3))
    shown = data.draw(st.lists(st.sampled_from(["", "a", "b", "c c"]), max_size=4))
    best = data.draw(st.integers(1, len(lines) + 5))
    chars = data.draw(st.integers(1, 40))
    cut = data.draw(st.sampled_from(["", "a", "c"]))

    hit = place(answer(first, *shown, line=best, cut=cut), document("\n".join(lines)), snippet_chars=chars)

    if hit is not None:
        cited = "\n".join(lines[hit.start_line - 1 : hit.end_line])
        assert hit.snippet == cited[:chars]
        assert len(hit.snippet) == len(cited) or hit.start_line == hit.end_line


@given(LINES, st.data())
def test_lines_of_the_file_are_always_found_in_it(lines, data):
    first = data.draw(st.integers(0, len(lines) - 1))
    shown = tuple(line.rstrip() for line in lines[first : first + 3])
    moved = data.draw(st.integers(1, len(lines) + 3))

    hit = place(answer(moved, *shown, line=moved), document("\n".join(lines)))

    if any(line.strip() for line in shown):
        assert hit is not None


def test_the_ids_of_notes_are_not_shown():
    noted = "- 19:39 the ferry leaves at seven <!-- m:01M7GBJ900BG8D8JFH3F1Q88CW -->"
    hit = place(answer(1, noted), document(noted + "\n"))

    assert hit.snippet == "- 19:39 the ferry leaves at seven"


NOTES = {
    "memory/Birds & Trees.md": "the falcon\n",
    "memory/a b.md": "first\n",
    "memory/A_B.md": "second\n",
    "memory/shared-with/everyone/trip.md": "for all\n",
}


@pytest.fixture
def territory(tmp_path):
    for path, text in NOTES.items():
        (tmp_path / "ws" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ws" / path).write_text(text)
    surroundings = Surroundings(
        agent_id="main",
        folder=str(tmp_path / "engine"),
        workspace=Workspace(str(tmp_path / "ws")),
        places=(),
        transcripts=None,
        sources=("memory",),
        erasures=Erasures(str(tmp_path / "state")),
        environ={},
    )
    return Territory(surroundings, QmdOptions(), Record(str(tmp_path / "record.json")), time.time)


def found(territory, *answers, deadline=math.inf, look=None, **question):
    look = look or territory.look()
    asked = Question("x", question.pop("scopes", EVERY_SCOPE), 4.0, **question)
    hits = Hits(asked, territory, look, deadline).of(answers, look.collections)
    return [hit.path for hit in hits]


def answer_of(path, text, score=0.5, collection="memory-dir-main"):
    return Answer(collection, path, score, 1, 1, (text,))


def test_a_path_in_the_spelling_of_older_versions_is_understood_if_only_one_file_can_be_meant(territory):
    assert found(territory, answer_of("birds-trees.md", "the falcon")) == ["memory/Birds & Trees.md"]
    assert found(territory, answer_of("a-b.md", "first"), answer_of("a-b.md", "second")) == []


def test_what_is_below_the_score_or_of_no_collection_that_was_asked_is_no_hit(territory):
    low = answer_of("a b.md", "first", 0.2)
    assert found(territory, low) == ["memory/a b.md"]

    assert found(territory, low, min_score=0.3) == []
    assert found(territory, answer_of("a b.md", "first", collection="other")) == []


def test_a_place_that_is_named_twice_is_one_hit_and_the_best_come_first(territory):
    hits = found(
        territory,
        answer_of("a b.md", "first", 0.1),
        answer_of("A_B.md", "second", 0.9),
        answer_of("a b.md", "first", 0.4),
    )

    assert hits == ["memory/A_B.md", "memory/a b.md"]


def test_what_may_not_be_seen_is_no_hit_whatever_collection_it_is_said_to_be_of(territory):
    everything = [answer_of("a b.md", "first"), answer_of("shared-with/everyone/trip.md", "for all")]

    assert found(territory, *everything, scopes=frozenset({"shared"})) == [
        "memory/shared-with/everyone/trip.md"
    ]


def test_a_file_that_is_gone_since_the_look_is_no_hit(territory, tmp_path):
    look = territory.look()
    (tmp_path / "ws/memory/a b.md").unlink()

    assert found(territory, answer_of("a b.md", "first"), look=look) == []


def test_when_time_is_over_there_is_what_was_found_by_then(territory):
    known, gone = answer_of("a b.md", "first", 0.9), answer_of("A_B.md", "changed", 0.8)

    assert found(territory, known, answer_of("A_B.md", "second"), deadline=0.0) == ["memory/a b.md"]
    with pytest.raises(TookTooLong):
        found(territory, gone, deadline=0.0)
