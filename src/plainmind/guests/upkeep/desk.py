"""The desk: looks for proposals, keeps those that wait, and does what a person accepts. Others find it by name.

What waits, what was rejected and what a model has judged is in the ledger: in the home, never in the workspace.
Proposals carry text of notes; all else is hashes. What was forgotten is taken out of there as well, bytes and all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from plainmind.agent.recalls import mark_of
from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.lazy import find_by_name, pattern
from plainmind.base.model import split_lines
from plainmind.base.value import replace
from plainmind.files.append import new_id
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.history import rewrite, scrub
from plainmind.files.system import SYSTEM, explain_errors, hold_lock, make_folders, read_file, try_lock
from plainmind.guests.upkeep.changes import Plan, fit
from plainmind.guests.upkeep.config import TidyValues, tidy_values
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
    proposal_from,
    written,
)
from plainmind.guests.upkeep.survey import Survey, is_log, survey
from plainmind.notes.workspace import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.upkeep.structure import Asked
    from plainmind.memory.memory import Memory


# --- the ledger ---


_REVIEW = "review.txt"
_FILES = ("proposals.jsonl", "rejected.txt", "accepted.txt", "judged.txt", "last-run.json")
_ACCEPTING = "accepting.jsonl"
_HASH = pattern(r"[0-9a-f]{64}")
_MOST_JUDGED = 200_000


class Ledger:
    """What is known of the proposals of one workspace. Processes take turns by a lock."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._proposals, self._rejected, self._accepted, self._judged, self._last_run = (
            os.path.join(folder, name) for name in _FILES
        )
        self._accepting = os.path.join(folder, _ACCEPTING)

    @contextmanager
    def alone(self, operation: str) -> Iterator[None]:
        """Wait to be the only one who changes it."""
        with explain_errors("make", self._folder):
            make_folders(SYSTEM, self._folder)
        with hold_lock(os.path.join(self._folder, "ledger.lock"), operation=operation):
            yield

    @contextmanager
    def running(self) -> Iterator[bool]:
        """Whether this is the only run; another one is not waited for."""
        with explain_errors("make", self._folder):
            make_folders(SYSTEM, self._folder)
        lock = try_lock(os.path.join(self._folder, "run.lock"), operation="tidy")
        if lock is None:
            yield False
            return
        with lock:
            yield True

    def waiting(self) -> list[Proposal]:
        """The proposals, oldest first; a line that cannot be read is passed over."""
        return [found for line in self._lines(self._proposals) if (found := _read(line)) is not None]

    def write_waiting(self, proposals: Iterable[Proposal]) -> None:
        """Put these in the place of all that wait. Needs the lock."""
        data = b"".join(written(proposal.as_dict()) for proposal in proposals)
        self._write(self._proposals, data)

    def begin(self, change: str, proposals: Iterable[Proposal]) -> None:
        """Note which proposals are about to be done, and what the journal will call that. Needs the lock."""
        data = b"".join(written(proposal.as_dict()) for proposal in proposals)
        self._write(self._accepting, written({"change": change}) + data)

    def end(self) -> None:
        """Nothing is about to be done any more. Needs the lock."""
        if self.is_begun():
            with explain_errors("remove", self._accepting):
                scrub(self._accepting, SYSTEM)

    def is_begun(self) -> bool:
        """Whether somebody is accepting, or was killed while accepting."""
        return os.path.exists(self._accepting)

    def begun(self) -> tuple[str, list[Proposal]]:
        """What a killed process was about to do, and how the journal calls it if it was done. Needs the lock."""
        lines = self._lines(self._accepting)
        try:
            change = str(json.loads(lines[0])["change"])
        except (IndexError, KeyError, TypeError, ValueError):
            return "", []
        return change, [found for line in lines[1:] if (found := _read(line)) is not None]

    def rejected(self) -> set[str]:
        """Fingerprints of what must not come back."""
        return self._hashes(self._rejected)

    def reject(self, fingerprints: Iterable[str]) -> None:
        """Remember that these must not come back. Needs the lock."""
        self._write_hashes(self._rejected, dict.fromkeys((*self._listed(self._rejected), *fingerprints)))

    def accepted(self) -> set[str]:
        """Fingerprints of what a rule has accepted: who takes it back is not overruled."""
        return self._hashes(self._accepted)

    def accept(self, fingerprints: Iterable[str]) -> None:
        """Remember that a rule has accepted these. Needs the lock."""
        self._write_hashes(self._accepted, dict.fromkeys((*self._listed(self._accepted), *fingerprints)))

    def judged(self) -> set[str]:
        """Hashes of the lines that a model has seen."""
        return self._hashes(self._judged)

    def judge(self, hashes: Iterable[str]) -> None:
        """Remember that a model has seen these. Needs the lock."""
        known = list(dict.fromkeys((*self._listed(self._judged), *hashes)))
        self._write_hashes(self._judged, known[-_MOST_JUDGED:])

    def last_run(self) -> Mapping[str, Any] | None:
        """What the last run said."""
        for line in self._lines(self._last_run):
            try:
                found = json.loads(line)
            except ValueError:
                return None
            return found if isinstance(found, dict) else None
        return None

    def write_last_run(self, facts: Mapping[str, Any]) -> None:
        """Keep what a run said. Needs the lock."""
        self._write(self._last_run, written(facts))

    def write_review(self, text: str) -> str:
        """Write a page for an editor; where it is."""
        path = os.path.join(self._folder, _REVIEW)
        write_atomically(path, text.encode("utf-8", "replace"))
        return path

    def take_review(self) -> str:
        """What became of that page; it is gone then, and "" when it was."""
        path = os.path.join(self._folder, _REVIEW)
        with explain_errors("read", path, outcome="nothing was done"):
            try:
                text = read_file(path).decode("utf-8", "replace")
            except FileNotFoundError:
                return ""
            scrub(path, SYSTEM)
        return text

    def erase(self, has_it: Callable[[str], bool]) -> int:
        """Take out every proposal with forgotten text, so that no byte of it is left; how many there were."""
        if not os.path.isdir(self._folder):
            return 0
        with self.alone("forget"):
            self.take_review()  # left by an editor that was killed
            lines = self._lines(self._proposals)
            kept: list[bytes] = []
            for line in lines:
                found = _read(line)
                if found is not None and not any(map(has_it, found.texts())):
                    kept.append(line + b"\n")
            if len(kept) < len(lines) or self._has_remains():
                self._write(self._proposals, b"".join(kept))
            with explain_errors("clear", self._accepting):
                remove_abandoned(self._accepting, SYSTEM)
            change, begun = self.begun()
            clean = [one for one in begun if not any(map(has_it, one.texts()))]
            if len(clean) < len(begun):
                self.begin(change, clean)
            return len(lines) - len(kept) + len(begun) - len(clean)

    def _has_remains(self) -> bool:
        """Whether a killed process left what the file was, or was to become."""
        with explain_errors("look into", self._folder):
            names = SYSTEM.listdir(self._folder)
        return any(_FILES[0] in name and name != _FILES[0] for name in names)

    def _lines(self, path: str) -> list[bytes]:
        with explain_errors("read", path, outcome="nothing was changed"):
            try:
                return [line for line in read_file(path).split(b"\n") if line.strip()]
            except FileNotFoundError:
                return []

    def _listed(self, path: str) -> list[str]:
        return [
            name for line in self._lines(path) if _HASH.fullmatch(name := line.decode("ascii", "replace"))
        ]

    def _hashes(self, path: str) -> set[str]:
        return set(self._listed(path))

    def _write_hashes(self, path: str, hashes: Iterable[str]) -> None:
        self._write(path, "".join(f"{name}\n" for name in hashes).encode("ascii"))

    def _write(self, path: str, data: bytes) -> None:
        """Write a file anew; what it was is overwritten on the disk."""
        with explain_errors("write", path):
            remove_abandoned(path, SYSTEM)
            rewrite(path, data, SYSTEM)


def _read(line: bytes) -> Proposal | None:
    try:
        return proposal_from(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


# --- the desk ---


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
        seen = survey(memory.notes.workspace, memory.now().date(), memory.notes.notebook.line_days.day_of)
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
    from plainmind.guests.upkeep.outdated import endings, updates
    from plainmind.guests.upkeep.repeats import repeats
    from plainmind.guests.upkeep.structure import lasting, structure, too_large

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
    from plainmind.guests.upkeep.structure import Asked

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
