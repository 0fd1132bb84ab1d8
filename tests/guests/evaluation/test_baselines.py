"""The recipes that ours is compared with do what they are known for, faults included."""

from __future__ import annotations

from datetime import date

import pytest

from plainmind.base.model import Document
from plainmind.guests.evaluation import commands as bench
from plainmind.guests.evaluation.baselines import BASELINES, SeedRecipe, WordOverlap
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.runner import Asking, evaluate
from plainmind.guests.evaluation.scoring import Shown

TODAY = date(2026, 3, 12)
ANY_SCORE = Asking(min_score=0.0)


def seed(*documents, asking=ANY_SCORE, decays=False):
    return SeedRecipe(documents, asking, decays=decays)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_answers_a_whole_dataset(dataset, name):
    answers = evaluate(read_dataset(str(dataset)), BASELINES[name], Asking(min_score=0.05)).answers

    assert answers[0].shown[0].path == "memory/network.md"
    assert [one.question.id for one in answers] == ["gateway", "cellar", "nowhere"]
    assert ("sessions/a.jsonl", 2) in {(one.path, one.end_line) for one in answers[1].shown}


def test_the_command_line_offers_every_baseline():
    assert tuple(BASELINES) == bench.BASELINES


def test_seed_counts_a_keyword_only_when_all_words_are_there():
    recipe = seed(Document("memory/a.md", "memory", "the gateway runs on a Mac Studio"))

    (all_there,) = recipe.ask("gateway studio", today=TODAY)
    (one_missing,) = recipe.ask("gateway studio zebrafish", today=TODAY)

    assert all_there.score - one_missing.score > 0.3 - 0.7 * 0.5
    assert all_there.score > 0.3


def test_seed_shows_the_first_characters_of_a_chunk_and_their_lines():
    text = "\n".join(f"line {number} speaks of boats and ropes" for number in range(1, 41))
    recipe = seed(Document("memory/a.md", "memory", text), asking=Asking(min_score=0.0, snippet_chars=100))

    first = min(recipe.ask("boats and ropes", today=TODAY), key=lambda shown: shown.start_line)

    assert (first.path, first.start_line, first.end_line, first.chars) == ("memory/a.md", 1, 4, 100)


def test_seed_cites_the_lines_of_the_transcript():
    document = Document("sessions/a.jsonl", "sessions", "User: boats\nAssistant: ropes", None, (4, 9))

    (shown,) = seed(document).ask("boats", today=TODAY)

    assert (shown.start_line, shown.end_line) == (4, 9)


def test_seed_drops_what_is_below_its_threshold():
    documents = [Document("memory/a.md", "memory", "the gateway runs on a Mac Studio")]

    assert seed(*documents, asking=Asking()).ask("weather of tomorrow", today=TODAY) == []
    assert seed(*documents, asking=Asking()).ask("gateway runs on a Mac Studio", today=TODAY)


def test_seed_can_let_dated_notes_fade():
    old = Document("memory/2026-02-10.md", "memory", "boats and ropes", "2026-02-10")
    evergreen = Document("memory/b.md", "memory", "boats and ropes")

    kept, faded = seed(old, evergreen, decays=True).ask("boats and ropes", today=TODAY)

    assert (kept.path, faded.path) == ("memory/b.md", "memory/2026-02-10.md")
    assert faded.score == pytest.approx(kept.score / 2, rel=1e-3)


def test_seed_has_nothing_to_say_about_nothing():
    assert seed().ask("boats", today=TODAY) == []
    assert seed(Document("memory/a.md", "memory", "boats")).ask(" ", today=TODAY) == []


def test_grep_ranks_lines_by_the_words_they_share():
    documents = [
        Document("memory/a.md", "memory", "boats\n\nBoats and ropes\nnothing"),
        Document("sessions/a.jsonl", "sessions", "User: ropes", None, (7,)),
    ]

    assert WordOverlap(documents, Asking(snippet_chars=10)).ask("boats, ropes?", today=TODAY) == [
        Shown("memory/a.md", 3, 3, 10, 1.0),
        Shown("memory/a.md", 1, 1, 5, 0.5),
        Shown("sessions/a.jsonl", 7, 7, 10, 0.5),
    ]
