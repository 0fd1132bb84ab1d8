"""From answers to hits: only of files that were found at a look, that may be seen, and while there is time."""

from __future__ import annotations

import math
import time

import pytest

from plainmind.base.model import EVERY_SCOPE
from plainmind.files.system import Erasures
from plainmind.guests.qmd.answers import Answer, Hits
from plainmind.guests.qmd.options import QmdOptions
from plainmind.guests.qmd.program import TookTooLong
from plainmind.guests.qmd.territory import Territory
from plainmind.memory.backend import Question, Record, Surroundings
from plainmind.notes.workspace import Workspace

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


def answer(path, text, score=0.5, collection="memory-dir-main"):
    return Answer(collection, path, score, 1, 1, (text,))


def test_a_path_in_the_spelling_of_older_versions_is_understood_if_only_one_file_can_be_meant(territory):
    assert found(territory, answer("birds-trees.md", "the falcon")) == ["memory/Birds & Trees.md"]
    assert found(territory, answer("a-b.md", "first"), answer("a-b.md", "second")) == []


def test_what_is_below_the_score_or_of_no_collection_that_was_asked_is_no_hit(territory):
    low = answer("a b.md", "first", 0.2)
    assert found(territory, low) == ["memory/a b.md"]

    assert found(territory, low, min_score=0.3) == []
    assert found(territory, answer("a b.md", "first", collection="other")) == []


def test_a_place_that_is_named_twice_is_one_hit_and_the_best_come_first(territory):
    hits = found(
        territory,
        answer("a b.md", "first", 0.1),
        answer("A_B.md", "second", 0.9),
        answer("a b.md", "first", 0.4),
    )

    assert hits == ["memory/A_B.md", "memory/a b.md"]


def test_what_may_not_be_seen_is_no_hit_whatever_collection_it_is_said_to_be_of(territory):
    everything = [answer("a b.md", "first"), answer("shared-with/everyone/trip.md", "for all")]

    assert found(territory, *everything, scopes=frozenset({"shared"})) == [
        "memory/shared-with/everyone/trip.md"
    ]


def test_a_file_that_is_gone_since_the_look_is_no_hit(territory, tmp_path):
    look = territory.look()
    (tmp_path / "ws/memory/a b.md").unlink()

    assert found(territory, answer("a b.md", "first"), look=look) == []


def test_when_time_is_over_there_is_what_was_found_by_then(territory):
    known, gone = answer("a b.md", "first", 0.9), answer("A_B.md", "changed", 0.8)

    assert found(territory, known, answer("A_B.md", "second"), deadline=0.0) == ["memory/a b.md"]
    with pytest.raises(TookTooLong):
        found(territory, gone, deadline=0.0)
