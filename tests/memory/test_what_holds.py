"""A search knows what no longer holds: expired lines, superseded ones, and what a person thought of a line."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tools import ToolBox
from plainmind.base.model import NewerLine, SearchHit, sha256_bytes
from plainmind.guests.hosts.turns import Session, Turns
from plainmind.search.selection import LEAST_OF_VERDICTS, MOST_OF_VERDICTS, heed
from plainmind.text.note_format import mark_of

PAST, FUTURE = "2020-01-31", "2999-12-31"
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", channel="telegram", group="7")


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    return folder


@pytest.fixture
def memory(workspace, tmp_path):
    with Memory(workspace, home=tmp_path / "home", config={"scope": {"default": "allow"}}) as memory:
        yield memory


def given_to_an_agent(memory, question, context=THE_OWNER):
    return ToolBox(memory.within(context)).call("memory_search", {"query": question})


# --- what has expired ---


@pytest.mark.parametrize(
    "text",
    [
        f"- parking is behind the house\n- the guest network is called Lindenblatt (until {PAST})\n",
        f"- parking is behind the house\n- the guest network is called Lindenblatt <!-- expires: {PAST} -->\n",
        f"# House\n\nparking is behind it\n\n## Network (until {PAST})\n\nthe guest network is called Lindenblatt\n",
        f"---\nexpires: {PAST}\n---\n\nthe guest network is called Lindenblatt\n",
        f"- network (until {PAST})\n  - the guest network is called Lindenblatt\n- parking is behind the house\n",
    ],
    ids=["form", "comment", "section", "front matter", "below an item"],
)
def test_what_has_expired_is_not_recalled_and_stays_in_the_file(memory, workspace, text):
    (workspace / "MEMORY.md").write_text(text)
    answer = given_to_an_agent(memory, "what is the guest network called?")
    assert "Lindenblatt" not in answer.text
    assert "Lindenblatt" not in memory.within(THE_OWNER).start_context().text
    assert "Lindenblatt" not in Turns(memory).recall(
        Session("codex", "1"), "what is the guest network called?"
    )
    assert (workspace / "MEMORY.md").read_text() == text


def test_a_person_finds_what_has_expired_marked_as_such(memory, workspace):
    line = f"- the guest network is called Lindenblatt (until {PAST})"
    (workspace / "MEMORY.md").write_text(f"{line}\n")
    (hit,) = memory.search("what is the guest network called?", explain=True).hits
    assert hit.until == PAST
    assert hit.newer is None
    assert hit.explanation["until"] == PAST
    assert hit.explanation["change"] < 0
    assert (
        memory.search("what is the guest network called?", today=date(2020, 1, 31)).hits[0].score > hit.score
    )


def test_the_last_day_still_counts_and_so_does_what_ends_later(memory, workspace):
    (workspace / "MEMORY.md").write_text(f"- the guest network is called Lindenblatt (until {FUTURE})\n")
    answer = given_to_an_agent(memory, "what is the guest network called?")
    assert "Lindenblatt" in answer.text
    assert f"held until {FUTURE}" in answer.text


def test_a_front_matter_speaks_for_a_file_of_many_pieces(memory, workspace):
    filler = "\n\n".join(f"## Part {n}\n\n" + f"words about matter {n} and more. " * 60 for n in range(6))
    text = (
        f"---\ntitle: Trip\nexpires: {PAST}\n---\n\n{filler}\n\n## Hotel\n\nWe sleep in the Albergo Sole.\n"
    )
    (workspace / "memory" / "trip.md").write_text(text)
    (workspace / "MEMORY.md").write_text("- the hotel in Bern is the Bellevue\n")
    assert "Albergo" in memory.search("which hotel do we sleep in?").hits[0].snippet
    answer = given_to_an_agent(memory, "which hotel do we sleep in?")
    assert "Albergo" not in answer.text
    assert "Bellevue" in answer.text


def test_other_answers_take_the_place_of_what_is_left_out(memory, workspace):
    for number in range(12):
        over = f" (until {PAST})" if number < 6 else ""
        (workspace / "memory" / f"cable-{number}.md").write_text(
            f"the gateway has the blue cable {number}{over}\n"
        )
    answer = given_to_an_agent(memory, "which blue cable has the gateway?")
    assert len(answer.content["results"]) == 6
    assert PAST not in answer.text


def test_words_that_look_like_it_change_nothing(memory, workspace):
    text = "- we wait until 2pm for the gateway, until 2026 at the latest\n- it expires: never\n"
    (workspace / "MEMORY.md").write_text(text)
    by_person = memory.search("how long do we wait for the gateway?").hits
    by_agent = memory.within(THE_OWNER).search("how long do we wait for the gateway?", deep=False).hits
    assert by_person == by_agent
    assert by_person[0].until is None


# --- what was superseded ---


def test_a_superseded_line_comes_below_and_shows_what_holds_now(memory, workspace):
    (workspace / "MEMORY.md").write_text("# Network\n\n- the gateway runs at Hetzner\n")
    old = "- ~~the gateway runs on the Mac Studio~~ (until 2026-11-15, now MEMORY.md#L3)\n"
    (workspace / "memory" / "gateway.md").write_text(old)
    first, second = memory.search("where does the gateway run, on the Mac Studio?", explain=True).hits
    assert first.path == "MEMORY.md"
    assert second.newer == NewerLine("MEMORY.md", 3, "the gateway runs at Hetzner")
    assert second.until == "2026-11-15"
    assert second.explanation["newer"] == "MEMORY.md#L3"
    assert first.score >= second.score
    assert first.explanation["insteadOf"] == "memory/gateway.md#L1"
    answer = given_to_an_agent(memory, "where does the gateway run, on the Mac Studio?")
    assert 'now MEMORY.md#L3: "the gateway runs at Hetzner"' in answer.text
    assert answer.content["results"][1]["newer"]["citation"] == "MEMORY.md#L3"


def test_the_newer_line_is_found_again_when_it_has_moved(memory, workspace):
    old = "- ~~the gateway runs on the Mac Studio~~ (until 2026-11-15, now MEMORY.md#L1)\n"
    (workspace / "memory" / "gateway.md").write_text(old)
    (workspace / "MEMORY.md").write_text(
        "- Anna likes tea\n- Bo likes coffee\n- the gateway runs at Hetzner\n"
    )
    hit = next(hit for hit in memory.search("Mac Studio").hits if hit.path == "memory/gateway.md")
    assert hit.newer == NewerLine("MEMORY.md", 3, "the gateway runs at Hetzner")


def test_a_newer_line_that_is_gone_leaves_its_place(memory, workspace):
    old = "- ~~the gateway runs on the Mac Studio~~ (until 2026-11-15, now MEMORY.md#L1)\n"
    (workspace / "memory" / "gateway.md").write_text(old)
    (workspace / "MEMORY.md").write_text("- Anna likes tea\n")
    hit = next(hit for hit in memory.search("Mac Studio").hits if hit.path == "memory/gateway.md")
    assert hit.newer == NewerLine("MEMORY.md", 1, "")


def test_newer_lines_are_followed_to_the_newest(memory, workspace):
    (workspace / "memory" / "gateway.md").write_text(
        "- ~~the gateway runs on a laptop~~ (until 2026-01-15, now memory/gateway.md#L3)\n\n"
        "- ~~the gateway runs on the Mac Studio~~ (until 2026-11-15, now MEMORY.md#L1)\n"
    )
    (workspace / "MEMORY.md").write_text("- the gateway runs at Hetzner\n")
    hit = next(hit for hit in memory.search("laptop gateway").hits if hit.path == "memory/gateway.md")
    assert str(hit.newer) == "MEMORY.md#L1"


def test_a_group_is_not_shown_a_newer_line_that_is_not_for_it(memory, workspace):
    shared = workspace / "memory" / "shared-with" / "everyone"
    shared.mkdir(parents=True)
    (shared / "house.md").write_text(
        "- ~~the gateway runs on the Mac Studio~~ (until 2026-11-15, now MEMORY.md#L1)\n"
    )
    (workspace / "MEMORY.md").write_text("- the gateway runs at Hetzner\n")
    answer = given_to_an_agent(memory, "where does the gateway run?", GROUP)
    assert "Mac Studio" in answer.text
    assert "Hetzner" not in answer.text
    assert "newer" not in answer.content["results"][0]


# --- verdicts ---


def judged(memory, question, verdict, path):
    """Let an agent ask, and a person judge the line of a file that it was given."""
    given_to_an_agent(memory, question)
    recall = memory.recalls.page().recalls[0]
    line = next(number for number, one in enumerate(recall.lines, 1) if one.path == path)
    memory.recalls.judge(recall.id, verdict, line=line)


@pytest.fixture
def two_notes(workspace):
    (workspace / "memory" / "one.md").write_text("the gateway runs in the cellar of the house\n")
    (workspace / "memory" / "two.md").write_text("the gateway runs in the attic of the house\n")


QUESTION = "where in the house does the gateway run?"


def score_of(memory, path):
    return next((hit.score for hit in memory.search(QUESTION).hits if hit.path == path), None)


@pytest.mark.parametrize(
    ("verdict", "is_more"), [("useful", True), ("wrong", False), ("outdated", False), ("never-again", False)]
)
def test_a_verdict_moves_its_line_and_is_explained(memory, two_notes, verdict, is_more):
    before = score_of(memory, "memory/one.md"), score_of(memory, "memory/two.md")
    judged(memory, QUESTION, verdict, "memory/one.md")
    hits = {hit.path: hit for hit in memory.search(QUESTION, explain=True).hits}
    assert (hits["memory/one.md"].score > before[0]) is is_more
    assert hits["memory/two.md"].score == pytest.approx(before[1])
    assert hits["memory/one.md"].explanation["verdicts"] == {verdict: 1}
    assert "verdicts" not in hits["memory/two.md"].explanation


def test_a_line_that_should_never_come_again_does_not_reach_an_agent(memory, two_notes):
    judged(memory, QUESTION, "never-again", "memory/one.md")
    answer = given_to_an_agent(memory, QUESTION)
    assert "cellar" not in answer.text
    assert "attic" in answer.text
    assert "cellar" in "".join(hit.snippet for hit in memory.search(QUESTION).hits)


def test_a_verdict_that_was_taken_back_or_whose_line_has_changed_counts_no_more(memory, two_notes, workspace):
    before = score_of(memory, "memory/one.md")
    judged(memory, QUESTION, "never-again", "memory/one.md")
    judged(memory, "gateway?", "wrong", "memory/two.md")
    memory.recalls.judge(memory.recalls.page().recalls[1].id, "")
    recall = memory.recalls.page().recalls[1]
    for number in range(len(recall.lines)):
        memory.recalls.judge(recall.id, "", line=number + 1)
    assert score_of(memory, "memory/one.md") == pytest.approx(before)
    lowered = score_of(memory, "memory/two.md")
    (workspace / "memory" / "two.md").write_text("the gateway runs in the attic of the house!\n")
    assert score_of(memory, "memory/two.md") > lowered


def test_many_verdicts_move_a_line_no_further_than_the_bound():
    hit = SearchHit("a.md", 1, 1, 0.5, "a line", "memory", best_line=1, explanation={})
    mark = ("a.md", mark_of("a line"))
    for verdict, bound in (("useful", MOST_OF_VERDICTS), ("outdated", LEAST_OF_VERDICTS)):
        (moved,) = heed(
            [hit],
            today="2026-11-16",
            lines_of=lambda _path: ["a line"],
            verdicts={mark: [verdict] * 1000},
            with_expired=True,
        )
        assert moved.explanation["change"] == bound


# --- what was corrected since ---

MOVED = "# 2026-05-18\n\n- 08:00 Moved house: Jonas and Mei now live in Leipzig, Karl-Liebknecht-Str. 88.\n"
KEPT = "# Memory\n\n- Jonas Weber lives in Freiburg, Talstr. 14.\n- Printer: Brother, in the study.\n"


@pytest.fixture
def moved(memory, workspace):
    """A line was kept, and a log tells that it changed."""
    (workspace / "MEMORY.md").write_text(KEPT)
    (workspace / "memory" / "2026-05-18.md").write_text(MOVED)
    first = memory.search("where does Jonas live?").hits[0]
    assert (first.path, [place.path for place in first.older]) == ("memory/2026-05-18.md", ["MEMORY.md"])
    return memory


def where_he_lives(memory):
    first, *others = memory.search("where does Jonas live?").hits
    assert all(not other.older for other in others)
    return first.path, [str(place) for place in first.older]


def by_edit(memory, workspace):
    memory.edit("MEMORY.md", "Freiburg, Talstr. 14", "Dresden, Louisenstr. 5")


def by_writing_it_anew(memory, workspace):
    text = KEPT.replace("Freiburg, Talstr. 14", "Dresden, Louisenstr. 5")
    memory.write("MEMORY.md", text, base_hash=sha256_bytes(KEPT.encode()))


def by_an_agent(memory, workspace):
    memory.within(THE_OWNER).edit("MEMORY.md", "Freiburg, Talstr. 14", "Dresden, Louisenstr. 5")


def by_claudes_tool(memory, workspace):
    files = memory.within(THE_OWNER).memory_files()
    text = KEPT.replace("Freiburg, Talstr. 14", "Dresden, Louisenstr. 5")
    files.rewrite("MEMORY.md", text, base_hash=sha256_bytes(KEPT.encode()), reason="edit")


def by_a_new_note(memory, workspace):
    (workspace / "MEMORY.md").write_text("# Memory\n\n- Printer: Brother, in the study.\n")
    memory.remember("Jonas Weber lives in Dresden, Louisenstr. 5.", durable=True)


@pytest.mark.parametrize(
    "correct", [by_edit, by_writing_it_anew, by_an_agent, by_claudes_tool, by_a_new_note]
)
def test_what_was_corrected_stands_before_the_log_that_told_of_an_earlier_change(moved, workspace, correct):
    correct(moved, workspace)

    assert where_he_lives(moved) == ("MEMORY.md", ["memory/2026-05-18.md#L3"])
    told = given_to_an_agent(moved, "where does Jonas live?").text
    assert told.index("Dresden") < told.index("Leipzig")


def test_a_line_beside_the_corrected_one_is_no_newer_than_it_was(moved):
    moved.edit("MEMORY.md", "Brother", "Canon")
    assert where_he_lives(moved) == ("memory/2026-05-18.md", ["MEMORY.md#L3"])


def test_a_correction_that_was_taken_back_counts_no_more(moved, workspace):
    by_edit(moved, workspace)
    moved.undo()
    assert where_he_lives(moved) == ("memory/2026-05-18.md", ["MEMORY.md#L3"])


def test_nothing_is_kept_of_a_corrected_line_that_was_forgotten(moved, workspace, tmp_path):
    by_edit(moved, workspace)
    mark = mark_of("- Jonas Weber lives in Dresden, Louisenstr. 5.").encode()
    kept = [path for path in (tmp_path / "home").rglob("line-days.json") if mark in path.read_bytes()]
    assert kept

    moved.forget("Louisenstr.")
    assert not any(mark in path.read_bytes() for path in kept)


def test_days_of_lines_that_cannot_be_read_are_no_days(moved, workspace, tmp_path):
    by_edit(moved, workspace)
    (place,) = (tmp_path / "home").rglob("line-days.json")
    for damaged in ("{", "[]"):
        place.write_text(damaged)
        assert where_he_lives(moved) == ("memory/2026-05-18.md", ["MEMORY.md#L3"])


def test_a_text_that_was_brought_along_is_no_correction(memory, tmp_path):
    memory.write("memory/handbook.md", "".join(f"- rule {number}\n" for number in range(600)), base_hash=None)
    assert not list((tmp_path / "home").rglob("line-days.json"))
