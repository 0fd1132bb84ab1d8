"""`tidy`: what could be tidied, shown, reviewed in an editor, accepted or rejected."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.cli.console import Console, plural, visible
from plainmind.cli.options import UsageError, commands_below, describe, open_memory
from plainmind.guests.upkeep.model import KINDS, MEANINGS, Cite, Edit, Outcome, Proposal, Run, Waiting
from plainmind.text.note_format import without_note_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.upkeep.desk import Desk

_LINE = pattern(r"(?P<what>accept|reject|a|r)\s+(?P<id>[0-9a-f]{4,64})\b")
_MOST_SHOWN = 20
_QUESTION = "superseded"
_PREAMBLE = """\
# What remains in this file is done when you save and close it. Closed without saving, nothing is done.
#
# Delete a line that begins with `accept` to leave that proposal for later; write `reject` in place of `accept` so that
# it never comes back. `plainmind undo` takes all that was accepted back at once.
"""
_ASKED = """\
# Only you know whether these are true: write `accept` or `reject` in place of `ask`. What says `ask` waits.
"""


def add_tidy(parser: argparse.ArgumentParser) -> None:
    """Say what `tidy` takes."""
    describe(
        parser,
        """\
Look for what could be tidied: lines that stand twice, that a newer line contradicts, whose time is over; decisions
worth keeping for good; links, tags and people; a MEMORY.md that is too large. What is found is proposed, and nothing
changes until you accept it. Logs, one file a day, are never edited.

Proposals are kept in ~/.plainmind, not in your notes, and are void when their lines change; a rejected one never comes
back. All that is accepted at once is one change: `plainmind undo` takes it back. `tidy.accept` names kinds that are
accepted without asking. With --model the model of `plainmind chat` chooses among numbered lines too: they are sent to
it, at most `tidy.maxTokens` of them.""",
        examples=(
            "plainmind tidy",
            "plainmind tidy --review",
            "plainmind tidy accept 3f2a91",
            "plainmind tidy reject 77c0de 41aa02",
        ),
        run=run_tidy,
    )
    parser.add_argument("--review", action="store_true", help="open what waits in $VISUAL or $EDITOR")
    parser.add_argument("--waiting", action="store_true", help="only show what waits; do not look again")
    parser.add_argument("--model", action="store_true", help="let the model of `chat.model` look too")
    parser.add_argument("--kind", choices=KINDS, help="show only these")
    parser.add_argument("--all", action="store_true", help=f"show more than {_MOST_SHOWN}, and every reason")
    parser.add_argument("--once-a-day", action="store_true", help="look only if nothing has looked today")
    add = commands_below(parser)
    accepting = add("accept", "do what proposals say", "plainmind tidy accept 3f2a91", run_accept)
    accepting.add_argument("ids", metavar="ID", nargs="+", help="its id, or the beginning of it")
    rejecting = add("reject", "drop proposals for good", "plainmind tidy reject 77c0de", run_reject)
    rejecting.add_argument("ids", metavar="ID", nargs="+", help="its id, or the beginning of it")
    proposing = add(
        "propose",
        "let an agent propose something, as JSON on standard input; it waits for you",
        "plainmind tidy propose --by codex < proposal.json",
        run_propose,
    )
    proposing.add_argument("--by", metavar="NAME", default="an agent", help="who proposes it")


def run_tidy(arguments: argparse.Namespace, console: Console) -> int:
    """Look, and show what waits."""
    from plainmind.guests.upkeep.desk import Desk, is_due

    if arguments.waiting and arguments.model:
        raise UsageError("--waiting looks at nothing, and --model lets a model look", "leave one of them out")
    with open_memory(arguments) as memory:
        desk = Desk(memory)
        looks = not arguments.waiting and (not arguments.once_a_day or is_due(memory))
        run = desk.run(with_model=arguments.model or None, tell=console.note) if looks else None
        if arguments.review:
            return _review(desk, console)
        waiting = desk.list()
    if console.json:
        facts = waiting.as_dict()
        if arguments.kind:
            facts["proposals"] = [one for one in facts["proposals"] if one["kind"] == arguments.kind]
        console.result(facts | {"run": None if run is None else run.as_dict()})
        return 0
    if run is not None:
        _print_run(console, run, kind=arguments.kind, is_whole=arguments.all)
    _print_waiting(console, waiting, kind=arguments.kind, is_whole=arguments.all)
    return 0


def _print_run(console: Console, run: Run, *, kind: str | None, is_whole: bool) -> None:
    if run.problem:
        console.note(run.problem)
        return
    new = sum(run.proposed.values())
    again = f", {run.known:,} known already" if run.known else ""
    looked = f"{plural(run.lines, 'line')} of {plural(run.files, 'file')}"
    console.say(f"looked at {looked}: {plural(new, 'new proposal')}{again}")
    if run.accepted:
        done = plural(len(run.accepted), "proposal")
        console.say(
            f"accepted {done} by your rule `tidy.accept` ({', '.join(run.accepted)}): `plainmind undo` takes it back"
        )
    if run.model is not None:
        _print_model(console, run.model.as_dict())
    if is_whole or not new:
        for name, why in run.nothing.items():
            if kind in {None, name}:
                console.say(f"  {name:10} {why}")


def _print_model(console: Console, use: Mapping[str, Any]) -> None:
    if not use["lines"]:
        console.note(use["problem"] or "no line was shown to a model: none is new")
        return
    told = f"{use['name']} saw {plural(use['lines'], 'line')}: {plural(use['made'], 'proposal')}"
    dropped = f", {use['dropped']} dropped" if use["dropped"] else ""
    console.say(f"{told}{dropped}; {plural(use['tokens'], 'token')}")
    if use["problem"]:
        console.note(use["problem"])


def _print_waiting(console: Console, waiting: Waiting, *, kind: str | None, is_whole: bool) -> None:
    proposals = [one for one in waiting.proposals if kind in {None, one.kind}]
    shown = proposals if is_whole else proposals[:_MOST_SHOWN]
    for name in KINDS:
        of_kind = [one for one in shown if one.kind == name]
        if of_kind:
            console.answer(console.style(f"{name}: {MEANINGS[name]}", "bold"))
        for proposal in of_kind:
            for line in _lines_of(proposal):
                console.answer(visible(line))
    if len(shown) < len(proposals):
        console.answer(f"and {len(proposals) - len(shown)} more: --all shows them")
    if proposals:
        console.hint(
            "`plainmind tidy --review` opens them in your editor; `tidy accept ID…` and `tidy reject ID…`"
        )
    else:
        console.say("nothing waits")


def _lines_of(proposal: Proposal) -> Iterator[str]:
    """A proposal for people: its id and reason, and the edit as a difference."""
    by = "" if proposal.maker.by == "rule" else f" (proposed by {proposal.maker.name})"
    yield f"  {proposal.id}  {proposal.reason}{by}"
    for edit in proposal.edits:
        yield from _difference(edit)
    edited = {(edit.path, edit.line + at) for edit in proposal.edits for at in range(len(edit.old))}
    for cite in proposal.cites:
        if (cite.path, cite.line) not in edited:
            yield f"      {cite}   {without_note_ids(cite.text).strip()}"


_MOST_LINES = 6


def _difference(edit: Edit) -> Iterator[str]:
    place = f"{edit.path}#L{edit.line}" if edit.old else edit.path
    if edit.section is not None:
        place = f"{edit.path}, at the end of “{edit.section}”"
    for sign, lines in (("-", edit.old), ("+", edit.new)):
        for line in lines[:_MOST_LINES]:
            yield f"    {sign} {place}   {without_note_ids(line).strip()}"
        if len(lines) > _MOST_LINES:
            yield f"    {sign} {place}   … {len(lines) - _MOST_LINES} more lines"


def _review(desk: Desk, console: Console) -> int:
    """Let a person decide in an editor."""
    waiting = desk.list().proposals
    if not waiting:
        console.say("nothing waits")
        return 0
    page = _edited(desk, page_of(waiting))
    accepted, rejected = decisions_in(page)
    outcomes = []
    if rejected:
        outcomes.append(("rejected", desk.reject(rejected)))
    if accepted:
        outcomes.append(("accepted", desk.accept(accepted)))
    if console.json:
        console.result({name: outcome.as_dict() for name, outcome in outcomes})
        return 0
    for name, outcome in outcomes:
        _print_outcome(console, name, outcome)
    left = len(waiting) - len(set(accepted) | set(rejected))
    if left:
        console.say(f"{plural(left, 'proposal')} left for later")
    return 0


def _edited(desk: Desk, page: str) -> str:
    """What a person makes of a page in an editor. Raises PlainmindError when it was not saved."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise PlainmindError(
            "there is no editor to open", hint="set EDITOR, or use `plainmind tidy accept ID…`"
        )
    import shlex
    import subprocess

    place = desk.ledger.write_review(page)
    before = _stamp(place)
    try:
        ended = subprocess.run([*shlex.split(editor), place], check=False)  # noqa: S603 (the user's own editor)
    except (FileNotFoundError, PermissionError, ValueError) as error:
        raise PlainmindError(f"the editor `{editor}` could not be started", hint="check EDITOR") from error
    finally:
        after = _stamp(place)
        text = desk.ledger.take_review()
    if not ended.returncode and after == before:
        raise PlainmindError(
            "the page was closed without saving; nothing was done",
            hint="save it, changed or not, to accept what it lists; an editor that does not wait needs an option to"
            " (`code --wait`)",
        )
    if ended.returncode:
        raise PlainmindError(f"the editor ended with status {ended.returncode}", hint="nothing was done")
    return text


def _stamp(place: str) -> tuple[int, int] | None:
    """Which file lies there, and when it was written."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def page_of(proposals: Sequence[Proposal]) -> str:
    """What is opened in an editor."""
    parts = [_PREAMBLE]
    for kind in KINDS:
        of_kind = [one for one in proposals if one.kind == kind]
        if of_kind:
            parts.append(f"\n# {kind}: {MEANINGS[kind]}\n")
        if of_kind and kind == _QUESTION:
            parts.append(_ASKED)
        for proposal in of_kind:
            first, *others = map(visible, _lines_of(proposal))
            told = "".join(f"#{line}\n" for line in others)
            parts.append(f"\n{'ask' if kind == _QUESTION else 'accept'} {first.strip()}\n{told}")
    return "".join(parts)


def decisions_in(page: str) -> tuple[list[str], list[str]]:
    """The ids that a page accepts, and those that it rejects."""
    found: dict[str, list[str]] = {"a": [], "r": []}
    for line in page.split("\n"):  # and nowhere else: what a note says begins no line
        if decided := _LINE.match(line.strip()):
            found[decided["what"][0]].append(decided["id"])
    return found["a"], found["r"]


def run_accept(arguments: argparse.Namespace, console: Console) -> int:
    """Do what some proposals say."""
    from plainmind.guests.upkeep.desk import Desk

    with open_memory(arguments) as memory:
        outcome = Desk(memory).accept(arguments.ids)
    return _answer(console, "accepted", outcome)


def run_reject(arguments: argparse.Namespace, console: Console) -> int:
    """Drop some proposals for good."""
    from plainmind.guests.upkeep.desk import Desk

    with open_memory(arguments) as memory:
        outcome = Desk(memory).reject(arguments.ids)
    return _answer(console, "rejected", outcome)


def _answer(console: Console, name: str, outcome: Outcome) -> int:
    if console.json:
        console.result(outcome.as_dict())
    else:
        _print_outcome(console, name, outcome)
    return int(bool(outcome.void) and not outcome.done)


def _print_outcome(console: Console, name: str, outcome: Outcome) -> None:
    if outcome.done:
        places = f" in {', '.join(outcome.changed)}" if outcome.changed else ""
        console.say(f"{name} {plural(len(outcome.done), 'proposal')}{places}")
    if outcome.done and outcome.changed:
        console.hint("`plainmind undo` takes all of it back")
    for void, why in outcome.void:
        console.note(f"{void} is void: {why}")


def run_propose(arguments: argparse.Namespace, console: Console) -> int:
    """Keep what an agent proposes."""
    from plainmind.guests.upkeep.desk import Desk

    try:
        wanted = json.load(sys.stdin)
        cites = [Cite(str(one["path"]), int(one["line"]), str(one["text"])) for one in wanted["cites"]]
        edits = [
            Edit(str(one["path"]), int(one["line"]), tuple(map(str, one["old"])), tuple(map(str, one["new"])))
            for one in wanted["edits"]
        ]
        kind, reason = str(wanted["kind"]), str(wanted["reason"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PlainmindError(
            "standard input is no proposal in JSON",
            hint='{"kind", "reason", "cites": [{"path", "line", "text"}], "edits": [{"path", "line", "old", "new"}]}',
        ) from error
    with open_memory(arguments) as memory:
        proposal = Desk(memory).propose(kind, cites, edits, reason, agent=arguments.by)
    if console.json:
        console.result(proposal.as_dict())
    else:
        console.say(f"{proposal.id} waits for a person: `plainmind tidy`")
    return 0
