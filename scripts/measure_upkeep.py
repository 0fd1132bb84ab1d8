"""How right the proposals of `plainmind tidy` are: notes with a key in evals/upkeep, looked at by the rules alone.

    .venv/bin/python scripts/measure_upkeep.py [--misses] [NAME…]

docs/upkeep.md says which of them were looked at while rules were chosen, and what the others gave when first measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.guests.upkeep.model import Proposal
from plainmind.guests.upkeep.outdated import endings, updates
from plainmind.guests.upkeep.repeats import repeats
from plainmind.guests.upkeep.structure import Asked, lasting
from plainmind.guests.upkeep.survey import Survey, read_page

ROOT = Path(__file__).resolve().parent.parent / "evals" / "upkeep"
MEASURED = ("repeated and restated", "superseded", "keep", "stale", "expiry")
CHANGED_ON = "2026-11-15"  # every file was touched lately, as files of a memory in use are


class Score:
    """Counts of one kind: proposals that were made, those that are right, and lines that were planted."""

    def __init__(self) -> None:
        self.made = self.right = self.planted = self.found = 0
        self.wrong: list[str] = []
        self.missed: list[str] = []

    def add(self, other: Score) -> None:
        """Take another workspace in."""
        self.made += other.made
        self.right += other.right
        self.planted += other.planted
        self.found += other.found
        self.wrong += other.wrong
        self.missed += other.missed

    @property
    def share_right(self) -> float:
        """How many of the proposals are right."""
        return self.right / self.made if self.made else 1.0

    @property
    def share_found(self) -> float:
        """How much of what was planted is proposed."""
        return self.found / self.planted if self.planted else 1.0


def names(wanted: Sequence[str] = ()) -> list[str]:
    """The workspaces of the set, or those that are wanted."""
    return sorted(file.stem for file in ROOT.glob("*.json") if not wanted or file.stem in wanted)


def read_survey(name: str) -> tuple[Survey, Mapping[str, Any], dict[tuple[str, int], Asked]]:
    """A workspace, its key, and how often its lines were asked for."""
    folder, key = ROOT / name, json.loads((ROOT / f"{name}.json").read_text(encoding="utf-8"))
    pages = [
        read_page(
            file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8"), changed_on=CHANGED_ON
        )
        for file in sorted(folder.rglob("*.md"))
    ]
    survey = Survey(pages, key["today"])
    times: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for recall in key["recalls"]:
        questions, days = times.setdefault((recall["path"], recall["text"]), (set(), set()))
        questions.add(recall["question"])
        days.add(recall["day"])
    asked = {
        (line.path, line.number): Asked(frozenset(known[0]), frozenset(known[1]))
        for line in survey.lines
        if (known := times.get((line.path, line.text)))
    }
    return survey, key, asked


def measure(name: str) -> dict[str, Score]:
    """Look at one workspace."""
    survey, key, asked = read_survey(name)
    embedder = BuiltinEmbedder()
    proposals = [
        *repeats(survey, embedder.embed_documents),
        *updates(survey),
        *lasting(survey, asked, "MEMORY.md"),
        *endings(survey),
    ]
    embedder.close()
    same = [[(line["path"], line["text"]) for line in group] for group in key["same"]]
    scores = {
        "repeated and restated": _score_pairs(
            [one for one in proposals if one.kind in {"repeated", "restated"}], same
        ),
        "superseded": _score_updates(proposals, key["superseded"]),
    }
    for kind in ("keep", "stale", "expiry"):
        scores[kind] = _score_lines([one for one in proposals if one.kind == kind], key[kind])
    return scores


def _score_pairs(proposals: Sequence[Proposal], groups: Sequence[Sequence[tuple[str, str]]]) -> Score:
    score = Score()
    left = [[*group] for group in groups]
    score.planted = sum(len(group) - 1 for group in groups)
    for proposal in proposals:
        gone, kept = ((cite.path, cite.text) for cite in proposal.cites)
        score.made += 1
        place = next((at for at, group in enumerate(groups) if gone in group and kept in group), None)
        if place is None:
            score.wrong.append(_told(proposal))
        else:
            score.right += 1
            score.found += 1
            left[place].remove(gone)
    score.missed = [" / ".join(text for _, text in group) for group in left if len(group) > 1]
    return score


def _score_updates(proposals: Iterable[Proposal], key: Sequence[Mapping[str, Any]]) -> Score:
    score = Score()
    pairs = {(each["old"]["path"], each["old"]["text"]): each["new"]["text"] for each in key}
    score.planted = len(pairs)
    found = set()
    for proposal in proposals:
        if proposal.kind != "superseded":
            continue
        score.made += 1
        old, new = proposal.cites
        if pairs.get((old.path, old.text)) == new.text:
            score.right += 1
            found.add((old.path, old.text))
        else:
            score.wrong.append(_told(proposal))
    score.found = len(found)
    score.missed = [text for path, text in pairs if (path, text) not in found]
    return score


def _score_lines(proposals: Sequence[Proposal], key: Sequence[Mapping[str, str]]) -> Score:
    score = Score()
    wanted = {(each["path"], each["text"]) for each in key}
    score.planted, score.made = len(wanted), len(proposals)
    cited = {(one.cites[0].path, one.cites[0].text): one for one in proposals}
    score.right = score.found = len(wanted & set(cited))
    score.wrong = [_told(one) for place, one in cited.items() if place not in wanted]
    score.missed = [text for path, text in sorted(wanted - set(cited))]
    return score


def _told(proposal: Proposal) -> str:
    return f"{proposal.kind}: " + " / ".join(cite.text for cite in proposal.cites)


def measure_all(wanted: Sequence[str]) -> dict[str, Score]:
    """Look at several workspaces, and add up."""
    total = {kind: Score() for kind in MEASURED}
    for name in wanted:
        for kind, score in measure(name).items():
            total[kind].add(score)
    return total


def table(scores: Mapping[str, Score]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "| Kind | Planted | Proposed | Right | Found |"
    yield "|---|---|---|---|---|"
    for kind, score in scores.items():
        right, found = f"{score.share_right:.0%}", f"{score.share_found:.0%}"
        yield f"| {kind} | {score.planted} | {score.made} | {right} | {found} |"


def main(arguments: Sequence[str]) -> int:
    """Print what was measured."""
    shows = "--misses" in arguments
    wanted = names([name for name in arguments if not name.startswith("--")])
    for half in ("home", "work", "club", "shop", "trip"):
        of_half = [name for name in wanted if name.endswith(half)]
        if not of_half:
            continue
        scores = measure_all(of_half)
        print(f"{half}: {', '.join(of_half)}\n")
        print("\n".join(table(scores)), "\n")
        for kind, score in scores.items() if shows else ():
            for told in score.wrong:
                print(f"wrong   {kind}: {told}")
            for told in score.missed:
                print(f"missed  {kind}: {told}")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
