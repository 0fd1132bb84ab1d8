"""The shape of mem0 over entries: what is added is found, for each user apart, and kept by the next process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.guests.integrations.mem0 import Memory

ANNA = {"user_id": "anna"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("plainmind.guests.integrations.framework._has_lancedb", lambda: False)
    return tmp_path / "notes"


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    made = Memory(folder)
    yield made
    made.close()


def test_what_was_added_is_found_by_the_next_one(memory: Memory, folder: Path) -> None:
    added = memory.add("I prefer tea over coffee", user_id="anna", metadata={"topic": "drinks"})["results"]
    assert [one["event"] for one in added] == ["ADD"]

    again = Memory(folder)
    (found,) = again.search("tea or coffee?", filters=ANNA)["results"]
    again.close()

    assert found["id"] == added[0]["id"]
    assert found["memory"] == "I prefer tea over coffee"
    assert found["user_id"] == "anna"
    assert found["metadata"] == {"topic": "drinks"}
    assert 0 < found["score"] <= 1


def test_users_see_only_their_own(memory: Memory) -> None:
    memory.add("I prefer tea over coffee", user_id="anna")
    assert memory.search("tea or coffee?", filters={"user_id": "ben"})["results"] == []
    assert memory.search("tea or coffee?")["results"] == []
    assert memory.get_all(filters={"user_id": "ben"})["results"] == []


def test_the_same_is_not_kept_twice_and_recalled_text_not_at_all(memory: Memory) -> None:
    said = {"role": "user", "content": "I prefer tea over coffee"}
    recalled = "<recalled-memory 0123456789abcdef>\nold\n</recalled-memory 0123456789abcdef>"
    for _ in range(2):
        memory.add(
            [said, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": recalled}],
            user_id="anna",
        )
    assert [one["memory"] for one in memory.get_all(filters=ANNA)["results"]] == ["I prefer tea over coffee"]


def test_without_inference_every_message_is_kept(memory: Memory) -> None:
    memory.add(
        [{"role": "user", "content": "one thing"}, {"role": "assistant", "content": "another thing"}],
        user_id="anna",
        infer=False,
    )
    assert len(memory.get_all(filters=ANNA)["results"]) == 2


def test_a_memory_is_changed_under_its_id_and_knows_what_it_was(memory: Memory) -> None:
    (added,) = memory.add("I prefer tea over coffee", user_id="anna", metadata={"a": 1})["results"]
    memory.update(added["id"], "I prefer water over everything", metadata={"b": 2})

    found = memory.get(added["id"])
    assert found is not None
    assert found["memory"] == "I prefer water over everything"
    assert found["metadata"] == {"a": 1, "b": 2}
    assert memory.search("who drinks water?", filters=ANNA)["results"][0]["id"] == added["id"]
    assert [(one["event"], one["old_memory"]) for one in memory.history(added["id"])] == [
        ("ADD", None),
        ("UPDATE", "I prefer tea over coffee"),
    ]


def test_metadata_runs_and_agents_narrow_what_is_found(memory: Memory) -> None:
    memory.add("The red bicycle is broken", user_id="anna", run_id="r1", metadata={"topic": "bike"})
    memory.add("The blue bicycle is new", user_id="anna", run_id="r2", metadata={"topic": "bike"})
    assert len(memory.get_all(filters={**ANNA, "topic": "bike"})["results"]) == 2
    assert len(memory.get_all(filters={**ANNA, "topic": "car"})["results"]) == 0
    (found,) = memory.search("which bicycle?", filters={**ANNA, "run_id": "r2"})["results"]
    assert found["memory"] == "The blue bicycle is new"


def test_deleting_takes_one_or_all_of_somebody(memory: Memory) -> None:
    (added,) = memory.add("I prefer tea over coffee", user_id="anna")["results"]
    memory.add("the bicycle is blue", user_id="anna")
    memory.add("the bicycle is red", user_id="ben")
    memory.delete(added["id"])
    assert memory.get(added["id"]) is None
    with pytest.raises(NotFound):
        memory.delete(added["id"])
    memory.delete_all(user_id="anna")
    assert memory.get_all(filters=ANNA)["results"] == []
    assert len(memory.get_all(filters={"user_id": "ben"})["results"]) == 1


def test_nothing_is_removed_wholesale(memory: Memory) -> None:
    with pytest.raises(PlainmindError):
        memory.reset()
    with pytest.raises(PlainmindError):
        memory.delete_all()
