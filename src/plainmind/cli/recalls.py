"""`recalls`: what agents asked and were given, what was found and not given, and what a person thinks of it."""

from __future__ import annotations

import argparse

from plainmind.cli.console import Console, plural
from plainmind.cli.options import commands_below, day, describe, open_memory, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.recalls import Recall, RecalledLines

_USUAL_MOST = 20
_KINDS = {"read": "(read)", "start": "(began a session)"}


def add_recalls(parser: argparse.ArgumentParser) -> None:
    """Say what `recalls` takes."""
    describe(
        parser,
        """\
Show what agents asked this memory and which lines they were given, through MCP, hooks, chat and other programs. Without
a word more, lists the latest. A search that you type yourself is not among them.

Kept on this machine alone, in ~/.plainmind/state, for 90 days (`recalls.days`); secrets in questions are hidden, and of
the lines only their place is kept. `forget` takes out what concerns it. `recalls.enabled` switches it off.""",
        examples=(
            "plainmind recalls",
            "plainmind recalls show 01KA5XB2",
            "plainmind recalls judge 01KA5XB2 outdated --line 2",
        ),
        run=run_list,
    )
    parser.set_defaults(most=_USUAL_MOST, day=None, cursor=None)
    add = commands_below(parser)

    listing = add(
        "list", "list recalls, the latest first", "plainmind recalls list --day 2026-11-16", run_list
    )
    listing.add_argument(
        "-n", dest="most", metavar="N", type=whole_number(1), default=_USUAL_MOST, help="at most N (20)"
    )
    listing.add_argument("--day", metavar="DAY", type=day, help="only those of a day such as 2026-11-16")
    listing.add_argument(
        "--after", dest="cursor", metavar="CURSOR", help="go on behind what was listed before"
    )
    showing = add("show", "show one recall with its lines", "plainmind recalls show 01KA5XB2", run_show)
    showing.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    judging = add(
        "judge",
        "say what a line was worth: later searches heed it",
        "plainmind recalls judge 01KA5XB2 useful",
        run_judge,
    )
    judging.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    judging.add_argument(
        "verdict",
        metavar="VERDICT",
        choices=("useful", "wrong", "outdated", "never-again", "none"),
        help="useful, wrong, outdated, never-again; none takes it back",
    )
    judging.add_argument(
        "--line",
        metavar="N",
        type=whole_number(1),
        default=1,
        help="which of its lines, as `show` counts (1)",
    )
    add("clear", "remove all recalls; verdicts stay", "plainmind recalls clear", run_clear)


def run_list(arguments: argparse.Namespace, console: Console) -> int:
    """Print one line a recall."""
    with open_memory(arguments) as memory:
        log = memory.recalls
        wanted = None if arguments.day is None else arguments.day.isoformat()
        page = log.page(arguments.most, cursor=arguments.cursor, day=wanted)
    if console.json:
        console.result({"recalls": [as_json(recall) for recall in page.recalls], "cursor": page.cursor})
        return 0
    for recall in page.recalls:
        _print_row(recall, console)
    if not page.recalls:
        console.note("no agent has asked anything yet" if log.is_on else "recalls are not written down")
        console.hint(
            "`plainmind connect` lets an agent use this memory"
            if log.is_on
            else "`plainmind config set recalls.enabled true` switches it on"
        )
    elif page.cursor is not None:
        console.hint(f"there are more: plainmind recalls list --after {page.cursor}")
    return 0


def run_show(arguments: argparse.Namespace, console: Console) -> int:
    """Print one recall."""
    with open_memory(arguments) as memory:
        recall = memory.recalls.get(arguments.id)
    _print(recall, console)
    return 0


def run_judge(arguments: argparse.Namespace, console: Console) -> int:
    """Set a verdict, and print the recall as it is now."""
    with open_memory(arguments) as memory:
        verdict = "" if arguments.verdict == "none" else arguments.verdict
        recall = memory.recalls.judge(arguments.id, verdict, line=arguments.line)
    _print(recall, console)
    return 0


def run_clear(arguments: argparse.Namespace, console: Console) -> int:
    """Remove all recalls."""
    with open_memory(arguments) as memory:
        days = memory.recalls.clear()
    if console.json:
        console.result({"days": days})
    else:
        console.say(f"removed the recalls of {plural(days, 'day')}")
    return 0


def as_json(recall: Recall) -> dict[str, Any]:
    """A recall for programs."""
    return {
        "id": recall.id,
        "at": recall.at,
        "kind": recall.kind,
        "question": recall.question,
        "surface": recall.surface,
        "host": recall.host,
        "session": recall.session,
        "agent": recall.agent,
        "scope": recall.scope,
        "tokens": recall.tokens,
        "milliseconds": recall.milliseconds,
        "lines": [
            {
                "path": one.path,
                "startLine": one.start_line,
                "endLine": one.end_line,
                "bestLine": one.best_line,
                "score": one.score,
                "given": one.is_given,
                "reason": one.reason,
                "verdict": one.verdict,
            }
            for one in recall.lines
        ],
    }


def _print_row(recall: Recall, console: Console) -> None:
    if console.quiet:
        console.answer(recall.id)
        return
    when = console.style(recall.at[:16].replace("T", " "), "dim")
    who = console.style(console.printable(recall.host or recall.surface), "path")
    more = console.style(f"{_counts(recall)}  {recall.id}", "dim")
    console.answer(f"{when}  {who}  {console.printable(_question(recall))}  {more}")


def _print(recall: Recall, console: Console) -> None:
    if console.json:
        console.result(as_json(recall))
        return
    who = "  ".join(filter(None, (recall.surface, recall.host, recall.session)))
    console.say(console.style(console.printable(_question(recall)), "bold"))
    spent = f"{recall.tokens} tokens  {recall.milliseconds:g} ms"
    console.say(
        console.style(f"{recall.at.replace('T', ' ')}  {console.printable(who)}  {spent}  {recall.id}", "dim")
    )
    for number, one in enumerate(recall.lines, 1):
        console.answer(_line(number, one, console))
    if not recall.lines:
        console.note("nothing was found")


def _line(number: int, one: RecalledLines, console: Console) -> str:
    place = console.style(console.printable(_place(one)), "path")
    score = "   " if one.score is None else f"{one.score:.2f}"
    outcome = console.style(f"not given: {one.reason}" if one.reason else "given", "dim")
    verdict = f"  {console.style(one.verdict, 'yellow')}" if one.verdict else ""
    return f"{number:>3}  {score}  {place}  {outcome}{verdict}"


def _place(one: RecalledLines) -> str:
    if not one.start_line:
        return one.path
    last = f"-L{one.end_line}" if one.end_line > one.start_line else ""
    return f"{one.path}#L{one.start_line}{last}"


def _question(recall: Recall) -> str:
    return _KINDS.get(recall.kind) or f"“{recall.question}”"


def _counts(recall: Recall) -> str:
    withheld = len(recall.withheld)
    others = f", {withheld} not" if withheld else ""
    return f"{len(recall.given)} given{others}  {recall.tokens} tokens  {recall.milliseconds:g} ms"
