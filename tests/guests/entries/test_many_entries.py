"""Thousands of entries: each is found, said again in other words it is refused, and what is forgotten is nowhere."""

from __future__ import annotations

import itertools
import json
import os

import pytest
from tests.guests.entries.conftest import files_with

from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.embed.protocol import EmbeddingSettings, create_embedder
from plainmind.guests.entries.memory import open_entries

ROOMS = 10 if os.environ.get("PLAINMIND_FAULTS") == "full" else 2
COUNT = 1_000 * ROOMS
NAMES = ("Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Irene", "Jakob")
THINGS = (
    "ladder",
    "printer",
    "archive",
    "piano",
    "compass",
    "kettle",
    "lantern",
    "projector",
    "anchor",
    "loom",
)
PLACES = (
    "school",
    "harbour",
    "library",
    "theatre",
    "bakery",
    "museum",
    "station",
    "chapel",
    "garden",
    "mill",
)
GROUP = "group:42"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def facts():
    """A thousand sentences about who keeps what, in several rooms each."""
    for number, (name, thing, place) in enumerate(itertools.product(NAMES, THINGS, PLACES)):
        for room in range(ROOMS):
            yield name, thing, place, number * 10 + room


def said(name, thing, place, room):
    return f"{name} keeps the {thing} of the {place} in room {room}"


def said_otherwise(name, thing, place, room):
    return f"In room {room}, that is where {name} is keeping the {place}'s {thing}!"


@pytest.fixture(scope="module", params=["lancedb", "sqlite"])
def many(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("entries")
    with (folder / "entries.jsonl").open("w") as file:
        for number, fact in enumerate(facts()):
            scope = GROUP if number % 100 == 7 else PRIVATE
            file.write(json.dumps({"id": f"E{number:05}", "text": said(*fact), "scope": scope}) + "\n")
    embedder = create_embedder("builtin", EmbeddingSettings(provider="builtin"))
    entries = open_entries(str(folder), embedder, driver=request.param)
    assert len(entries.list(scopes=EVERY_SCOPE)) == COUNT
    entries.recall("the first question makes the index", scopes=EVERY_SCOPE)
    yield folder, entries
    entries.close()


CHOSEN = list(enumerate(facts()))[:: COUNT // 99]


def test_every_entry_is_the_first_answer_to_a_question_about_it(many):
    _, entries = many
    for number, (name, thing, place, room) in CHOSEN:
        scopes = frozenset({GROUP if number % 100 == 7 else PRIVATE})
        asked = f"what does {name} keep in room {room} of the {place}? the {thing}?"
        (first, *_) = entries.recall(asked, scopes=scopes).found
        assert first.entry.id == f"E{number:05}"


def test_a_group_is_given_only_what_is_its_own(many):
    _, entries = many
    for _, fact in CHOSEN[:30]:
        recall = entries.recall(said(*fact), scopes=frozenset({GROUP}), limit=20)
        assert {each.entry.scope for each in recall.found} <= {GROUP}


def test_what_is_there_in_other_words_is_refused_and_another_room_is_not(many):
    _, entries = many
    for number, fact in CHOSEN:
        scope = GROUP if number % 100 == 7 else PRIVATE
        stored = entries.store(said_otherwise(*fact), scope=scope)
        assert stored.twin is not None
        assert stored.twin.id == f"E{number:05}"
    name, thing, place, _ = CHOSEN[5][1]
    assert entries.store(said_otherwise(name, thing, place, 77_777), scope=PRIVATE).entry is not None


def test_forgotten_text_is_in_no_file(many):
    folder, entries = many
    word = "zanzibar"
    kept = entries.store(f"the password of the harbour master is {word}", scope=PRIVATE).entry
    assert kept is not None
    assert files_with(folder, word)
    before = len(entries.list(scopes=EVERY_SCOPE))
    (_, first), (number, second) = CHOSEN[10], CHOSEN[11]
    entries.forget([kept.id, f"E{number:05}"], scopes=EVERY_SCOPE)

    assert files_with(folder, word) == []
    assert files_with(folder, said(*second)) == []
    assert len(entries.list(scopes=EVERY_SCOPE)) == before - 2
    assert entries.recall(said(*first), scopes=EVERY_SCOPE).found[0].entry.text == said(*first)
    assert all(
        each.entry.text != said(*second) for each in entries.recall(said(*second), scopes=EVERY_SCOPE).found
    )
