"""A second look at the best results: when people ask for it, and for agents where it is installed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import plainmind_reranker
import pytest

from plainmind import Memory, SearchContext
from plainmind.agent.scope import THE_OWNER
from plainmind.agent.tools import ToolBox
from plainmind.base.errors import ConfigError
from plainmind.guests.rerank.reranker import OnnxReranker
from plainmind.memory import index

WEIGHTS = Path(plainmind_reranker.__file__).parent
PIECES = (WEIGHTS / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
ASKED: list[tuple[str, list[str], float]] = []


class Doubter:
    """Finds the last of what it is shown the best; some have time for less than all."""

    def __init__(self, in_time: int = 99) -> None:
        self.in_time = in_time

    @property
    def name(self) -> str:
        return "doubter-1"

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        ASKED.append((question, list(passages), seconds))
        return [float(10 * at) for at in range(len(passages))][: self.in_time]


def doubter() -> Doubter:
    return Doubter()


def slow_doubter() -> Doubter:
    return Doubter(2)


def damaged() -> OnnxReranker:
    return OnnxReranker(os.environ["WEIGHTS_OF_THE_TEST"])


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


def test_a_second_look_that_had_too_little_time_says_so(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_notes(notes) as memory:
        assert memory.search("garden gate", deep=True).degraded == ()
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:slow_doubter")
    with open_notes(notes) as memory:
        (told,) = memory.search("garden gate", deep=True).degraded
        assert memory.search("garden gate").degraded == ()

    assert told == (
        "second look: there was time for 2 of the best 3 results (`rerank.deadlineMs` is 300);"
        " the others are as the first look had them"
    )


def test_whoever_asks_is_told_that_the_second_look_was_short_and_not_that_something_is_missing(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = notes / "memory" / "shared-with" / "telegram" / "group--100"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.md").write_text(f"# Gate {number}\n\n- garden gate {number}\n")
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:slow_doubter")
    group = SearchContext("anna", "group", "agent:main:telegram:group:-100", group="-100")
    with open_notes(notes, scope={"rules": [{"action": "allow"}]}) as memory:
        mine, theirs = (memory.within(who).search("garden gate") for who in (THE_OWNER, group))

        text = ToolBox(memory.within(group)).call("memory_search", {"query": "garden gate"}).text

    assert len(theirs.hits) == 3
    assert "second look: there was time for 2 of the best 3 results" in text
    assert "not everything was consulted" not in text
    assert [told.partition(":")[0] for told in (*mine.degraded, *theirs.degraded)] == ["second look"] * 2


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


def test_the_status_names_the_reranker_and_says_whose_searches_it_reads_in(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(mode: str) -> object:
        with open_notes(notes, rerank={"mode": mode}) as memory:
            return memory.status()["reranker"]

    there = {"installed": True, "model": "doubter-1", "problem": None, "hint": None}
    assert told("auto") == {**there, "mode": "auto", "agents": True}
    assert told("off") == {**there, "mode": "off", "agents": False}
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:nobody")
    not_there = {"installed": False, "model": None, "agents": False, "problem": None, "hint": None}
    assert told("auto") == {**not_there, "mode": "auto"}


def test_the_doctor_lets_the_reranker_read_and_says_whether_there_is_time_for_it(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(**settings: object) -> tuple[str, str, str | None]:
        with open_notes(notes, rerank=settings) as memory:
            (check,) = (check for check in memory.doctor() if check.name == "reranker")
        return check.verdict, check.detail, check.hint

    assert told() == (
        "ok", "doubter-1 reads again for agents, and for people with --deep: 32 passages of 32 in 300 ms", None,
    )  # fmt: skip
    assert (
        told(mode="always", results=4)[1]
        == "doubter-1 reads again in every search: 8 passages of 8 in 300 ms"
    )
    assert told(mode="off")[1].startswith("doubter-1 reads again for people with --deep alone:")
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:slow_doubter")
    verdict, detail, hint = told()
    assert (verdict, detail.rpartition(": ")[2]) == ("warning", "2 passages of 32 in 300 ms")
    assert "rerank.deadlineMs" in str(hint)
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:nobody")
    verdict, detail, hint = told()
    assert (verdict, detail) == ("ok", "not installed: agents and people look once")
    assert "plainmind-reranker" in str(hint)
    verdict, detail, hint = told(mode="always")
    assert (verdict, detail) == ("problem", "not installed, and `rerank.mode` is always: no search works")
    assert "plainmind-reranker" in str(hint)


def test_an_explained_search_says_what_the_reranker_read_and_where_each_result_was_before(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_notes(notes) as memory:
        assert "secondLook" not in dict(memory.search("garden gate", explain=True).hits[0].explanation or {})
        assert memory.search("garden gate", deep=True).notes == ()
        explained = memory.search("garden gate", explain=True, deep=True)
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:slow_doubter")
    with open_notes(notes) as memory:
        cut = memory.search("garden gate", explain=True, deep=True)

    assert [(hit.explanation or {})["secondLook"] for hit in explained.hits] == [
        {"place": 3, "logOdds": 20.0}, {"place": 2, "logOdds": 10.0}, {"place": 1, "logOdds": 0.0},
    ]  # fmt: skip
    assert re.fullmatch(r"second look: doubter-1 read 3 of 3 results in \d+ ms", explained.notes[0])
    unread = [told for hit in cut.hits if "unread" in (told := (hit.explanation or {})["secondLook"])]
    assert unread == [{"place": 3, "logOdds": None, "unread": "time"}]
    assert cut.notes[0].startswith("second look: doubter-1 read 2 of 3 results in ")


@pytest.mark.parametrize(
    ("name", "text"),
    [("model.json", "[]"), ("pieces.txt", "\n".join([*PIECES, *map(str, range(9)), "gate", "garden", ""]))],
    ids=["a name that is none", "pieces of other weights"],
)
def test_with_files_that_do_not_belong_together_the_first_look_answers(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    weights = tmp_path / "weights"
    shutil.copytree(WEIGHTS, weights)
    (weights / name).write_text(text)
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:damaged")
    monkeypatch.setenv("WEIGHTS_OF_THE_TEST", str(weights))
    with open_notes(notes) as memory:
        plain, deep = memory.search("garden gate"), memory.search("garden gate", deep=True)

    assert deep.hits == plain.hits
    assert deep.degraded[0].startswith("second look: the reranker cannot be opened: ")


def test_with_damaged_weights_the_first_look_answers_and_the_result_says_so(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "pieces.txt").write_text("[UNK]\n")
    (weights / "model.onnx").write_bytes(b"half of it")
    monkeypatch.setattr(index, "_RERANKER", f"{__name__}:damaged")
    monkeypatch.setenv("WEIGHTS_OF_THE_TEST", str(weights))
    hers = notes / "memory" / "shared-with" / "telegram" / "anna" / "1.md"
    hers.parent.mkdir(parents=True)
    hers.write_text("# Gate\n\n- garden gate\n")
    with open_notes(notes, scope={"rules": [{"action": "allow"}]}) as memory:
        plain, deep = memory.search("garden gate"), memory.search("garden gate", deep=True)
        anna = memory.within(SearchContext("anna", "direct", "agent:main:telegram:dm:anna")).search(
            "garden gate"
        )
        told = memory.status()["reranker"]
        (check,) = (check for check in memory.doctor() if check.name == "reranker")

    assert deep.hits == plain.hits
    assert deep.degraded[0].startswith("second look: the reranker cannot be opened: ")
    assert anna.degraded == (
        "a part of the memory could not be consulted",
    )  # where things are is not for her
    assert told["problem"].startswith("the reranker cannot be opened: ")
    assert (check.verdict, "plainmind-reranker" in str(check.hint)) == ("problem", True)
