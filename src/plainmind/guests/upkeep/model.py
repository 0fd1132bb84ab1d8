"""A proposal: which lines it is about, the exact edit, the reason in a sentence, and who made it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from plainmind.base.model import sha256_text
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# In the order in which they are shown and looked for.
KINDS = (
    "repeated",
    "restated",
    "superseded",
    "keep",
    "stale",
    "expiry",
    "links",
    "tags",
    "people",
    "too-large",
)
MEANINGS: Mapping[str, str] = {
    "repeated": "a line that stands twice",
    "restated": "a line that says the same in other words",
    "superseded": "a line that a newer one contradicts",
    "keep": "a decision or preference in a log, worth keeping for good",
    "stale": "a line whose time is over",
    "expiry": "a line that says until when it holds",
    "links": "a link that leads nowhere, or that is missing",
    "tags": "a tag that is written in two ways",
    "people": "a person without a page",
    "too-large": "a section that makes MEMORY.md too large",
}
_ID_CHARS = 10


@value
class Cite:
    """A line that a proposal rests on, as it was."""

    path: str
    line: int
    text: str

    @property
    def sha256(self) -> str:
        """What its text is known by."""
        return sha256_text(self.text)

    def __str__(self) -> str:
        return f"{self.path}#L{self.line}"


@value
class Edit:
    """What is done to one file: `old` lines from `line` on become `new`; without old ones, new stand before that line.

    With a `section` they stand at its end, and the section is made when it is missing; the file is too.
    """

    path: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    section: str | None = None


@value
class Maker:
    """Who made a proposal: a rule, a model with the tokens it took, or an agent."""

    by: str  # "rule", "model", "agent"
    name: str
    tokens: int = 0


RULE = Maker("rule", "plainmind")


@value
class Proposal:
    """Something that could be done to the notes, if somebody agrees."""

    kind: str
    cites: tuple[Cite, ...]
    edits: tuple[Edit, ...]
    reason: str
    maker: Maker = RULE
    at: str = ""

    @property
    def fingerprint(self) -> str:
        """What it is known by again: its kind and its lines, wherever they stand in their files by now."""
        lines = sorted(f"{cite.path}\n{cite.text}" for cite in self.cites)
        return sha256_text("\n\n".join((self.kind, *lines)))

    @property
    def id(self) -> str:
        """How people call it."""
        return self.fingerprint[:_ID_CHARS]

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "id": self.id,
            "kind": self.kind,
            "reason": self.reason,
            "maker": {"by": self.maker.by, "name": self.maker.name, "tokens": self.maker.tokens},
            "at": self.at,
            "cites": [
                {
                    "path": cite.path,
                    "startLine": cite.line,
                    "endLine": cite.line,
                    "text": cite.text,
                    "sha256": cite.sha256,
                }
                for cite in self.cites
            ],
            "edits": [
                {
                    "path": edit.path,
                    "line": edit.line,
                    "old": list(edit.old),
                    "new": list(edit.new),
                    "section": edit.section,
                }
                for edit in self.edits
            ],
        }

    def texts(self) -> tuple[str, ...]:
        """All words of notes that it carries."""
        lines = [line for edit in self.edits for line in (*edit.old, *edit.new)]
        return (*(cite.text for cite in self.cites), *lines, self.reason)


def proposal_from(facts: Mapping[str, Any]) -> Proposal:
    """Read what `as_dict` has written. Raises KeyError, TypeError or ValueError for anything else."""
    cites = tuple(
        Cite(str(cite["path"]), int(cite["startLine"]), str(cite["text"])) for cite in facts["cites"]
    )
    edits = tuple(
        Edit(
            str(edit["path"]),
            int(edit["line"]),
            _lines(edit["old"]),
            _lines(edit["new"]),
            None if edit.get("section") is None else str(edit["section"]),
        )
        for edit in facts["edits"]
    )
    maker = facts["maker"]
    made = Maker(str(maker["by"]), str(maker["name"]), int(maker["tokens"]))
    if facts["kind"] not in KINDS:
        raise ValueError("not a kind of proposal")
    return Proposal(str(facts["kind"]), cites, edits, str(facts["reason"]), made, str(facts["at"]))


def _lines(found: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(found, str) or not all(isinstance(line, str) for line in found):
        raise TypeError("lines are texts in a list")
    if any("\n" in line or "\r" in line for line in found):
        raise ValueError("a line has no line break")
    return tuple(found)


def written(facts: Mapping[str, Any]) -> bytes:
    """One line of a file of ours."""
    return json.dumps(facts, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


@value
class ModelUse:
    """What a run asked of a model, and what came of it."""

    name: str
    expected_tokens: int  # as told before it was asked
    tokens: int
    asked: int  # lines it was shown
    made: int  # proposals
    dropped: int  # answers that failed a test
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "expectedTokens": self.expected_tokens,
            "tokens": self.tokens,
            "lines": self.asked,
            "made": self.made,
            "dropped": self.dropped,
            "problem": self.problem,
        }


@value
class Run:
    """What was looked at, what was proposed, and why nothing was."""

    at: str
    files: int
    lines: int
    proposed: Mapping[str, int]
    nothing: Mapping[str, str]  # why, by kind
    accepted: tuple[str, ...] = ()  # by a rule of the person
    known: int = 0  # found again: they wait, or were rejected
    model: ModelUse | None = None
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "at": self.at,
            "files": self.files,
            "lines": self.lines,
            "proposed": dict(self.proposed),
            "nothing": dict(self.nothing),
            "accepted": list(self.accepted),
            "known": self.known,
            "model": None if self.model is None else self.model.as_dict(),
            "problem": self.problem,
        }


@value
class Waiting:
    """The proposals that still fit their files, and what the last run said."""

    proposals: tuple[Proposal, ...]
    last_run: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        proposals = [proposal.as_dict() for proposal in self.proposals]
        return {"proposals": proposals, "lastRun": None if self.last_run is None else dict(self.last_run)}


@value
class Outcome:
    """What came of accepting or rejecting some proposals."""

    done: tuple[str, ...]
    void: tuple[tuple[str, str], ...] = ()  # ids, and why
    changed: tuple[str, ...] = ()  # files

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        void = [{"id": name, "why": why} for name, why in self.void]
        return {"done": list(self.done), "void": void, "changed": list(self.changed)}
