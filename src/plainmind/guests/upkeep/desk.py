"""The desk: looks for proposals, keeps those that wait, and does what a person accepts. Others find it by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from plainmind.agent.recalls import mark_of
from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.lazy import find_by_name, pattern
from plainmind.base.model import split_lines
from plainmind.base.value import replace
from plainmind.files.append import new_id
from plainmind.guests.upkeep.changes import Plan, fit
from plainmind.guests.upkeep.config import TidyValues, tidy_values
from plainmind.guests.upkeep.ledger import Ledger
from plainmind.guests.upkeep.model import (
    KINDS,
    RULE,
    Cite,
    Edit,
    Maker,
    ModelUse,
    Outcome,
    Proposal,
    Run,
    Waiting,
)
from plainmind.guests.upkeep.survey import Survey, is_log, survey
from plainmind.notes.workspace import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.upkeep.lasting import Asked
    from plainmind.memory.memory import Memory

_JUDGE = "plainmind.guests.upkeep.judge:ask_model"  # imports what speaks to models, which rules do not need
_UNASKED = pattern(r"(?:^|:)(?:cron|subagent|heartbeat|hook)(?::|$)")  # sessions in which no person speaks
_NOT_WANTED = frozenset({"wrong", "outdated", "never-again"})
_REASON = "tidy"  # as the journal calls it
_AGENT = "agent"
_MOST_OF_AGENTS = 50
_LEAST_OF_ID = 4
_MOST_WAITING = 500
_EXPECTED = "`plainmind tidy` looks again, and lists what waits with its ids"


class Desk:
    """Proposals about one memory, for its owner. Nothing is read before something is asked."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.ledger = Ledger(os.path.join(memory.places.state, "upkeep"))

    @property
    def values(self) -> TidyValues:
        """What the settings say."""
        return tidy_values(self._memory.settings)

    def list(self) -> Waiting:
        """The proposals that still fit their files."""
        if self.ledger.is_begun():
            with self.ledger.alone("look"):
                self._settle()
        files = self._files()
        fitting = (fit(proposal, files)[0] for proposal in self.ledger.waiting())
        return Waiting(tuple(found for found in fitting if found is not None), self.ledger.last_run())

    def run(
        self,
        *,
        with_model: bool | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Run:
        """Look now, and keep what is new; `tell` hears what a model is about to cost. One run at a time."""
        memory = self._memory
        memory.notes.require_workspace()
        with self.ledger.running() as is_alone:
            if not is_alone:
                return Run(
                    memory.now().isoformat(timespec="seconds"), 0, 0, {}, {}, problem="another run is at work"
                )
            memory.notes.notebook.recover()
            return self._run(with_model=with_model, tell=tell)

    def _run(self, *, with_model: bool | None, tell: Callable[[str], None]) -> Run:
        memory, values = self._memory, self.values
        seen = survey(memory.notes.workspace, memory.now().date())
        asked = asked_lines(memory, seen)
        found = [*_found(seen, asked, values)]
        use: ModelUse | None = None
        if values.use_model if with_model is None else with_model:
            by_model, use = find_by_name(_JUDGE)(memory, seen, self.ledger, values, tell)
            found += by_model
        at = memory.now().isoformat(timespec="seconds")
        kept, known = self._keep([replace(proposal, at=at) for proposal in found])
        rules = [one for one in kept if one.kind in values.accept and one.maker == RULE]
        accepted = self._accept_by_rule(rules)
        proposed = {kind: count for kind in KINDS if (count := sum(one.kind == kind for one in kept))}
        run = Run(
            at,
            len(seen.pages),
            len(seen.lines),
            proposed,
            _reasons(seen, asked, values, kept, found),
            accepted,
            known,
            use,
        )
        with self.ledger.alone("write down the run"):
            self.ledger.write_last_run(run.as_dict())
        return run

    def _keep(
        self, found: Sequence[Proposal], *, replaced: Iterable[str] = ()
    ) -> tuple[Sequence[Proposal], int]:
        """Add what is new to what waits; what is new, and how many were known.

        What an agent proposed makes room for what is proposed now under the same fingerprint, if that is `replaced`.
        """
        gone = set(replaced)
        # What was forgotten while we looked is in no file any more, and must not be written down.
        with self._memory.notes.erasures.hold_off(), self.ledger.alone("keep proposals"):
            self._settle()
            files = self._files()
            waiting = [
                one
                for old in self.ledger.waiting()
                if not (old.fingerprint in gone and old.maker.by == _AGENT)
                and (one := fit(old, files)[0]) is not None
            ]
            known = {one.fingerprint for one in waiting} | self.ledger.rejected()
            fresh: dict[str, Proposal] = {}
            for proposal in found:
                fits = fit(proposal, files)[0]
                if fits is not None and fits.fingerprint not in known:
                    fresh.setdefault(fits.fingerprint, fits)
            new = list(fresh.values())[: max(0, _MOST_WAITING - len(waiting))]
            self.ledger.write_waiting([*waiting, *new])
        return new, sum(one.fingerprint in known for one in found)

    def _accept_by_rule(self, proposals: Sequence[Proposal]) -> tuple[str, ...]:
        before = self.ledger.accepted()  # who has taken one back does not want it again
        wanted = [one for one in proposals if one.fingerprint not in before]
        if not wanted:
            return ()
        with self.ledger.alone("accept by rule"):
            self.ledger.accept(one.fingerprint for one in wanted)
        return self.accept([one.id for one in wanted]).done

    def accept(self, ids: Sequence[str]) -> Outcome:
        """Do what some proposals say, all that fit, as one change: one `undo` takes all of it back."""
        memory = self._memory
        memory.notes.require_workspace()
        with self.ledger.alone("accept"):
            memory.notes.notebook.recover()
            self._settle()
            waiting = self.ledger.waiting()
            chosen = _chosen(waiting, ids)
            gone = {proposal.fingerprint for proposal in chosen}
            left = [one for one in waiting if one.fingerprint not in gone]
            try:
                plan = self._carry_out(chosen, left)
            except PlainmindError:
                self.ledger.write_waiting(waiting)
                self.ledger.end()
                raise
            self.ledger.write_waiting(left)
            self.ledger.end()
        return Outcome(tuple(one.id for one in plan.done), tuple(plan.void), tuple(plan.paths))

    def _settle(self) -> None:
        """Let what a killed process was about to accept wait again, unless it was done. Needs the lock."""
        if not self.ledger.is_begun():
            return
        notebook = self._memory.notes.notebook
        notebook.recover()
        change, begun = self.ledger.begun()
        if not change or not notebook.is_made(change):
            waiting = self.ledger.waiting()
            known = {one.fingerprint for one in waiting}
            self.ledger.write_waiting([*waiting, *(one for one in begun if one.fingerprint not in known)])
        self.ledger.end()

    def _carry_out(self, chosen: Sequence[Proposal], left: Sequence[Proposal]) -> Plan:
        for last in (False, True):
            plan = Plan(self._files(), self._paths_with_citations)
            for proposal in chosen:
                plan.add(proposal)
            changes = plan.changes()
            if not changes:
                return plan
            # Noted first: killed on the way, what was not done waits again, and what was done never does.
            set_id = new_id()
            self.ledger.begin(f"{_REASON} {set_id}", chosen)
            self.ledger.write_waiting(left)
            try:
                self._memory.notes.notebook.change(changes, reason=_REASON, set_id=set_id)
            except ConflictError:  # saved by somebody between our look and our write
                if last:
                    raise
            else:
                return plan
        raise AssertionError

    def reject(self, ids: Sequence[str]) -> Outcome:
        """Drop some proposals for good: they never come back."""
        with self.ledger.alone("reject"):
            self._settle()
            waiting = self.ledger.waiting()
            chosen = _chosen(waiting, ids)
            gone = {proposal.fingerprint for proposal in chosen}
            self.ledger.reject(gone)
            self.ledger.write_waiting([one for one in waiting if one.fingerprint not in gone])
        return Outcome(tuple(one.id for one in chosen))

    def propose(
        self, kind: str, cites: Sequence[Cite], edits: Sequence[Edit], reason: str, *, agent: str
    ) -> Proposal:
        """Let an agent propose something; it waits for a person. Raises PlainmindError when it does not fit."""
        if kind not in KINDS:
            raise PlainmindError(f"there is no kind `{kind[:40]}`", hint=f"one of {', '.join(KINDS)}")
        at = self._memory.now().isoformat(timespec="seconds")
        proposal = Proposal(
            kind, tuple(cites), tuple(edits), " ".join(reason.split())[:300], Maker(_AGENT, agent[:80]), at
        )
        _require_cited_edits(proposal)
        fits, why = fit(proposal, self._files())
        if fits is None:
            raise PlainmindError(f"it cannot be proposed: {why}", hint="read the lines again")
        if fits.fingerprint in self.ledger.rejected():
            raise PlainmindError("this was rejected before", hint="what a person rejected does not come back")
        own = [one for one in self.ledger.waiting() if one.maker.by == _AGENT]
        if len([one for one in own if one.fingerprint != fits.fingerprint]) >= _MOST_OF_AGENTS:
            raise PlainmindError(
                f"{_MOST_OF_AGENTS} proposals of agents wait already",
                hint="a person accepts or rejects some of them first: `plainmind tidy`",
            )
        kept, _ = self._keep([fits], replaced=[fits.fingerprint])
        if not kept:
            raise PlainmindError(
                "another proposal about these lines waits, or too many do",
                hint="a person decides about it first: `plainmind tidy`",
            )
        return fits

    def lines_of(self, path: str) -> Sequence[str]:
        """The lines of a file as proposals cite them. Raises PlainmindError when it cannot be read."""
        return split_lines(decode(self._memory.notes.notebook.read_bytes(path)[1]))

    def _files(self) -> Files:
        return Files(self._memory)

    def _paths_with_citations(self) -> Iterator[str]:
        """Files that may name lines of others."""
        workspace = self._memory.notes.workspace
        return (
            found.path
            for found in workspace.discover().files
            if found.root is workspace.root and not is_log(found.path)
        )


class Files:
    """The files of a memory as they are now, each read once."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[str, bytes | None] = {}

    def __call__(self, path: str) -> bytes | None:
        """The bytes of a file; None when it is not there."""
        if path not in self._known:
            try:
                self._known[path] = self._memory.notes.notebook.read_bytes(path)[1]
            except PlainmindError:
                self._known[path] = None
        return self._known[path]


def _chosen(waiting: Sequence[Proposal], ids: Iterable[str]) -> list[Proposal]:
    chosen: dict[str, Proposal] = {}
    for name in ids:
        found = [one for one in waiting if one.id.startswith(name.lower())]
        if len(name) < _LEAST_OF_ID:
            raise NotFound(
                f"`{name}` is too short for an id", hint=f"give {_LEAST_OF_ID} characters or more of it"
            )
        if not found:
            raise NotFound(f"no proposal `{name[:40]}` waits", hint=_EXPECTED)
        if len({one.id for one in found}) > 1:
            raise NotFound(f"several proposals begin with `{name[:40]}`", hint="give more of the id")
        chosen[found[0].fingerprint] = found[0]
    return list(chosen.values())


def _require_cited_edits(proposal: Proposal) -> None:
    """What is to change must be cited, and a log changes never."""
    cited = {(cite.path, cite.line): cite.text for cite in proposal.cites}
    for edit in proposal.edits:
        if is_log(edit.path):
            raise PlainmindError(f"`{edit.path}` is a log", hint="logs are never edited")
        for at, line in enumerate(edit.old):
            if cited.get((edit.path, edit.line + at)) != line:
                raise PlainmindError("a line that is to change is not cited", hint="cite every line of `old`")
    if not proposal.cites or not proposal.edits:
        raise PlainmindError("a proposal has lines and an edit", hint="cite what it rests on")


def _found(seen: Survey, asked: Mapping[tuple[str, int], Asked], values: TidyValues) -> Iterator[Proposal]:
    """What the rules find, kind by kind."""
    from plainmind.embed.builtin import BuiltinEmbedder
    from plainmind.guests.upkeep.endings import endings
    from plainmind.guests.upkeep.lasting import lasting
    from plainmind.guests.upkeep.repeats import repeats
    from plainmind.guests.upkeep.structure import structure, too_large
    from plainmind.guests.upkeep.updates import updates

    # Whatever the memory is searched with: nothing leaves this machine to be tidied.
    embedder = BuiltinEmbedder()
    try:
        yield from repeats(seen, embedder.embed_documents)
    finally:
        embedder.close()
    yield from updates(seen)
    curated = "memory.md" if "memory.md" in seen.by_path else "MEMORY.md"
    yield from lasting(seen, asked, curated)
    yield from endings(seen)
    yield from structure(seen)
    lines: dict[str, set[int]] = {}
    for path, number in asked:
        lines.setdefault(path, set()).add(number)
    yield from too_large(seen, lines, values.large_chars)


def asked_lines(memory: Memory, seen: Survey) -> dict[tuple[str, int], Asked]:
    """Which lines answered which questions, and when, as the recall log tells; what no person asked does not count."""
    from plainmind.guests.upkeep.lasting import Asked

    times: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for recall in memory.recalls.each():
        if recall.kind != "search" or _UNASKED.search(recall.session):
            continue
        for given in recall.given:
            if given.mark and given.verdict not in _NOT_WANTED:
                questions, days = times.setdefault((given.path, given.mark), (set(), set()))
                questions.add(" ".join(recall.question.casefold().split()))
                days.add(recall.at[:10])
    paths = {path for path, _ in times}
    found: dict[tuple[str, int], Asked] = {}
    for line in seen.lines:
        if line.path in paths and (known := times.get((line.path, mark_of(line.text)))):
            found[line.path, line.number] = Asked(frozenset(known[0]), frozenset(known[1]))
    return found


def _reasons(
    seen: Survey,
    asked: Mapping[tuple[str, int], Asked],
    values: TidyValues,
    kept: Sequence[Proposal],
    found: Sequence[Proposal],
) -> dict[str, str]:
    """Why there is nothing new of a kind."""
    durable = sum(not page.is_log for page in seen.pages)
    files = "1 file" if durable == 1 else f"{durable:,} files"
    compared = f"of {len(seen.durable):,} lines in {files} that are no logs"
    often = sum(each.is_often for each in asked.values())
    size = sum(
        len(line) + 1 for line in next((page.raw for page in seen.pages if page.path == "MEMORY.md"), ())
    )
    why = {
        "repeated": f"{compared}, none stands twice",
        "restated": f"{compared}, no two say the same",
        "superseded": "no newer line says something else under the same label, or takes an older one back",
        "keep": f"of {often:,} lines that were asked for twice, none is a decision or preference that is not kept yet"
        if asked
        else "agents were given none of these lines yet (`plainmind recalls` shows what they asked for)",
        "stale": "no line names a day that is over",
        "expiry": "no line says in words until when it holds",
        "links": "every link leads to a note, and none is missing",
        "tags": "no tag is written in two ways",
        "people": "every name that stands in three files has a page",
        "too-large": f"MEMORY.md has {size:,} of {values.large_chars:,} characters",
    }
    new = {one.kind for one in kept}
    again = {one.kind for one in found} - new
    return {
        kind: "what was found waits already, or was rejected" if kind in again else sentence
        for kind, sentence in why.items()
        if kind not in new
    }


# --- what others call by name ---


def status_facts(memory: Memory, *, deep: bool) -> dict[str, Any]:  # noqa: ARG001 (as all guests are asked)
    """How many proposals wait, for `status`."""
    ledger = Ledger(os.path.join(memory.places.state, "upkeep"))
    last = ledger.last_run()
    return {"tidy": {"waiting": len(ledger.waiting()), "lastRun": None if last is None else last.get("at")}}


def erase_forgotten(memory: Memory, has_it: Callable[[str], bool]) -> int:
    """Take forgotten text out of the proposals; how many had it."""
    return Ledger(os.path.join(memory.places.state, "upkeep")).erase(has_it)


def after_chat(memory: Memory, tell: Callable[[str], None]) -> None:
    """Look at the end of a conversation, if the settings say so, and say whether something new waits."""
    desk = Desk(memory)
    if not desk.values.after_chat:
        return
    new = sum(desk.run(tell=tell).proposed.values())
    if new:
        tell(
            f"{new} new {'proposal waits' if new == 1 else 'proposals wait'}: `plainmind tidy` shows what to tidy"
        )


def is_due(memory: Memory) -> bool:
    """Whether a hook may look: at most once a day."""
    desk = Desk(memory)
    last = desk.ledger.last_run()
    return desk.values.by_hook and (
        last is None or str(last.get("at"))[:10] != memory.now().date().isoformat()
    )
