"""Each answer is shown once, with how many places have it; what a question left out is not shown."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.base.model import Chunk, Restriction
from plainmind.search import selection
from plainmind.search.pages import Page, RankedChunk
from plainmind.search.selection import each_once, with_a_phrase
from plainmind.search.snippets import Snippet

SENTENCE = "Look at the inbox, the calendar and the weather, and write five lines."


class Read:
    def __init__(self, chunk):
        self.ranked = RankedChunk(chunk, 0.0, 0.0, 0.0)
        self.page = Page(chunk)


def snippet(path, text, best=0, *, day=None, source="memory", score=0.5):
    last = text.count("\n") + 1
    chunk = Chunk(path, source, 0, 1, last + 1, text + "\n", day=day)
    return Snippet(0, (Read(chunk), best), (1, last), text, score=score)


def shown(*snippets, most=6):
    """Where each answer is shown, and where else it stands."""
    return [
        (each.best[0].ranked.chunk.path, [other.best[0].ranked.chunk.path for other in each.also])
        for each in each_once(snippets, most)
    ]


def test_different_answers_are_left_alone():
    assert shown(snippet("a.md", "- tea"), snippet("b.md", "- coffee")) == [("a.md", []), ("b.md", [])]


def test_the_same_text_is_one_answer_and_the_newest_place_is_shown():
    first = snippet("1.md", f"- 08:00 {SENTENCE}", day="2026-11-01", score=0.9)
    second = snippet("2.md", f"* **08:05** {SENTENCE}", day="2026-11-02", score=0.8)
    third = snippet("0.md", f"- 2026-10-31 {SENTENCE}", day="2026-10-31", score=0.7)

    (only,) = each_once([first, second, third], 6)
    assert only is second
    assert (only.score, only.also) == (0.9, [first, third])


def test_a_note_without_a_day_is_shown_before_logs_and_conversations():
    log = snippet("log.md", SENTENCE, day="2026-11-02")
    talk = snippet("sessions/a", SENTENCE, source="sessions")
    note = snippet("MEMORY.md", SENTENCE)

    assert shown(talk, log, note) == [("MEMORY.md", ["log.md", "sessions/a"])]


def test_lines_that_may_be_the_same_are_taken_apart_once_and_not_for_each_other_one(monkeypatch):
    class Counting:
        count = 0

        def sub(self, _by: str, line: str) -> str:
            self.count += 1
            return line

    selection._said.cache_clear()
    monkeypatch.setattr(selection, "_TIME", counting := Counting())
    numbered = [snippet(f"{number}.md", f"- buy {number} litres") for number in range(20)]

    assert len(each_once(numbered, 20)) == 20
    assert counting.count == 20


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("- buy milk", "- Buy milk!", True),
        ("- buy 2 litres", "- buy 3 litres", False),
        ("- buy milk\n- call Anna about the roof", "- buy milk\n- sell the boat in spring", False),
        ("# Plan\n- buy milk\n- call", "- buy milk\n- call\n- and a great deal more of it", True),
        ("---", "---", False),
        ("# The very same long heading, which says nothing about the text below it\n- tea",
         "# The very same long heading, which says nothing about the text below it\n- coffee", False),
        ("# Only a heading", "# Only a heading", False),
        ("- 我们在上周五决定把备份搬到新的服务器", "- 我们在上周五决定把备份搬到新的服务器！\n- 别的", True),
    ],
)  # fmt: skip
def test_what_says_the_same(one, other, is_one):
    best = 1 if one.startswith("# Plan") else 0

    assert len(shown(snippet("a.md", one, best), snippet("b.md", other))) == (1 if is_one else 2)


def test_the_places_of_repeats_go_to_other_answers():
    again = [snippet(f"{number}.md", SENTENCE) for number in range(4)]

    found = shown(*again, snippet("b.md", "- b"), snippet("c.md", "- c"), snippet("a.md", SENTENCE), most=2)
    assert found == [("0.md", ["1.md", "2.md", "3.md"]), ("b.md", [])]
    assert shown(snippet("a.md", "- a"), snippet("b.md", "- b"), most=1) == [("a.md", [])]


def test_a_search_says_how_many_places_have_an_answer(tmp_path):
    (tmp_path / "memory").mkdir()
    for day in ("01", "02", "03"):
        text = f"# Day {day}\n\n## Morning check\n\n{SENTENCE}\n"
        (tmp_path / "memory" / f"2026-11-{day}.md").write_text(text)
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        result = memory.search("what does the morning check look at?", today=date(2026, 11, 16))
        (seen,) = memory.within(THE_OWNER).search("what does the morning check look at?").hits

    (hit,) = result.hits
    assert (hit.path, [str(place) for place in hit.also]) == (
        "memory/2026-11-03.md",
        ["memory/2026-11-02.md#L1-L5", "memory/2026-11-01.md#L1-L5"],
    )
    assert len(seen.also) == 2


def test_who_asks_is_looked_for_where_no_note_is_about_them(tmp_path):
    (tmp_path / "walks.md").write_text("- You know me: I never take the bus.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        found = memory.search("What do you know about me?")

    assert [hit.path for hit in found.hits] == ["walks.md"]
    assert found.hits[0].score < 1.0
    assert found.understood == ()


def test_only_snippets_that_show_a_phrase_or_stand_below_it_are_left():
    only = Restriction(phrases=("blue door",))
    with_it, without = snippet("a.md", "The BLUE  door opens."), snippet("b.md", "The door is blue.")

    assert list(with_a_phrase([with_it, without], only)) == [with_it]


def test_a_phrase_alone_is_found_word_for_word_or_not_at_all(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(
        "# Memory\n\n- The blue door opens.\n\n# House\n\n- The door is blue.\n"
    )
    with Memory(tmp_path / "notes", home=tmp_path / "home") as memory:
        (hit,) = memory.search('"blue door"').hits
        nothing = memory.search('"door blue"')

    assert "The blue door opens." in hit.snippet
    assert nothing.hits == ()
