"""A second look at the best results: when people ask for it, and for agents where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.base.errors import ConfigError
from plainmind.memory import index

ASKED: list[tuple[str, list[str], float]] = []


class Doubter:
    """Finds the last of what it is shown the best."""

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        ASKED.append((question, list(passages), seconds))
        return [float(10 * at) for at in range(len(passages))]


def doubter() -> Doubter:
    return Doubter()


def nobody() -> None:
    return None


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ASKED.clear()
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:doubter")
    (tmp_path / "memory").mkdir()
    for number, said in enumerate(("garden gate", "garden gate garden", "the garden gate is green today")):
        (tmp_path / "memory" / f"{number}.md").write_text(f"# Note {number}\n\n- {said} {number}\n")
    return tmp_path


def open_notes(notes: Path, **settings: object) -> Memory:
    return Memory(notes, home=notes / "home", config=settings)


def test_a_plain_search_looks_once(notes: Path) -> None:
    with open_notes(notes) as memory:
        result = memory.search("garden gate")

    assert len(result.hits) == 3
    assert not ASKED
    assert "rerank" not in result.timings


def test_a_deep_search_gives_the_best_of_more_than_was_wanted(notes: Path) -> None:
    with open_notes(notes) as memory:
        plain = memory.search("garden gate")
        deep = memory.search("garden gate", max_results=1, deep=True)

    assert [hit.path for hit in deep.hits] == [plain.hits[-1].path]
    ((question, passages, seconds),) = ASKED
    assert (question, len(passages), seconds) == ("garden gate", 3, 0.3)
    assert deep.timings["total"] >= deep.timings["rerank"]


def test_what_scores_less_than_asked_for_after_the_second_look_is_left_out(notes: Path) -> None:
    with open_notes(notes) as memory:
        assert len(memory.search("garden gate", min_score=0.9, deep=True).hits) < 3


def test_agents_look_twice_where_it_is_installed(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_notes(notes) as memory:
        memory.within(THE_OWNER).search("garden gate")
        assert len(ASKED) == 1
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:nobody")
    with open_notes(notes) as memory:
        assert len(memory.within(THE_OWNER).search("garden gate").hits) == 3


def test_the_settings_say_how_far_and_whether(notes: Path) -> None:
    with open_notes(notes, rerank={"mode": "always", "results": 2, "deadlineMs": 50}) as memory:
        memory.search("garden gate")
    ((_, passages, seconds),) = ASKED
    assert (len(passages), seconds) == (2, 0.05)
    with open_notes(notes, rerank={"mode": "off"}) as memory:
        memory.within(THE_OWNER).search("garden gate")
        assert len(ASKED) == 1
        memory.search("garden gate", deep=True)  # who asks for it by name gets it
        assert len(ASKED) == 2


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_asked_for_and_not_installed_it_is_said_how_to_install_it(
    notes: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:nobody")
    with (
        open_notes(notes, rerank={"mode": mode}) as memory,
        pytest.raises(ConfigError, match="not installed") as raised,
    ):
        memory.search("garden gate", deep=mode == "auto")

    assert "plainmind-reranker" in str(raised.value.hint)
