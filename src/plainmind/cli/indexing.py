"""`sync` and `watch`: bring the index up to date, and keep it so."""

from __future__ import annotations

import argparse
import sys

from plainmind.cli.console import Console, is_terminal
from plainmind.cli.opening import opened
from plainmind.cli.options import describe
from plainmind.cli.wording import counted, duration_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.model import SyncReport
    from plainmind.memory.spending import Cost

DEGRADED = 3


def add_sync(parser: argparse.ArgumentParser) -> None:
    """Say what `sync` takes."""
    describe(
        parser,
        """\
Bring the index up to date now. A search does this by itself; this does it ahead of time and says what it did.

Reads the workspace, writes only the index in ~/.plainmind.""",
        examples=("plainmind sync", "plainmind sync --force", "plainmind sync --no-wait"),
        run=run_sync,
    )
    parser.add_argument(
        "--force", action="store_true", help="make the index anew; files that are missing count as deleted"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask, whatever the embedding provider may cost"
    )
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="leave batch jobs of the embedding provider running; a later sync takes in what they made",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when a file or an embedding provider failed"
    )


def run_sync(arguments: argparse.Namespace, console: Console) -> int:
    """Sync and print what was done."""
    with opened(arguments) as memory:
        with console.progress("indexing") as progress:
            report = memory.sync(
                force=arguments.force,
                progress=progress,
                wait=False if arguments.no_wait else None,
                confirm=lambda cost: _agreed(cost, console, yes=arguments.yes),
            )
        is_empty = not report.indexed and not report.unchanged and not report.withheld
        workspace = memory.workspace
    if console.json:
        console.result(_as_json(report))
    else:
        console.say(summary(report))
        _print_notes(report, console)
        if is_empty:
            console.note(f"there are no notes in {workspace} yet")
            console.hint('write the first one: plainmind remember "…"')
    return DEGRADED if arguments.strict and (report.failed or report.degraded or report.fallback) else 0


def _agreed(cost: Cost, console: Console, *, yes: bool) -> bool:
    """Show what is about to be spent, and ask where it is more than was allowed."""
    from plainmind.memory.spending import in_words

    where = f" ({cost.host})" if cost.host else ""
    if not cost.needs_yes or yes:
        if not console.json:
            console.note(f"{in_words(cost).rstrip(',')}{where}")
        return True
    if console.json or not is_terminal(sys.stdin):
        return False
    print(f"{in_words(cost).rstrip(',')}{where}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Say what `watch` takes."""
    describe(
        parser,
        """\
Keep the index up to date until you press Ctrl-C; prints a line for each change it took in.

Reads the workspace, writes only the index in ~/.plainmind. Searches work without it, a little slower.""",
        examples=("plainmind watch", "plainmind watch --json"),
        run=run_watch,
    )


def run_watch(arguments: argparse.Namespace, console: Console) -> int:
    """Sync whenever something changed, until a signal says stop."""
    import signal
    import threading

    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with opened(arguments) as memory:
            reports = memory.watch(stop)
            console.say(f"watching {memory.workspace} (Ctrl-C ends it)")
            for number, report in enumerate(reports):
                if number == 0 or _did_something(report):
                    _print_sync(report, console)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _print_sync(report: SyncReport, console: Console) -> None:
    from datetime import datetime

    now = datetime.now().astimezone()
    if console.json:
        console.result({"at": now.isoformat(timespec="seconds"), **_as_json(report)}, lines=True)
        return
    looked = report.unchanged or report.indexed or report.removed or report.failed or not report.degraded
    if not console.quiet:
        print(f"{now:%H:%M:%S} {summary(report) if looked else 'could not look for changes'}", flush=True)
    _print_notes(report, console)


def _did_something(report: SyncReport) -> bool:
    return bool(report.indexed or report.removed or report.failed or report.rebuilt or report.degraded)


def summary(report: SyncReport) -> str:
    """One line about a sync."""
    parts = []
    if report.indexed:
        parts.append(f"indexed {counted(len(report.indexed), 'file')} ({counted(report.chunks, 'chunk')})")
    if report.removed:
        parts.append(f"removed {len(report.removed)}")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    parts.append(
        f"{report.unchanged:,} unchanged" if parts else f"up to date, {counted(report.unchanged, 'file')}"
    )
    return ", ".join(parts) + f" in {duration_in_words(report.seconds)}"


def _print_notes(report: SyncReport, console: Console) -> None:
    if report.rebuilt:
        console.note(f"built a whole new index: {report.rebuilt}")
    for failure in report.failed:
        console.note(f"not indexed: {failure.path}: {failure.reason}")
    if report.skipped:
        console.note(f"{counted(len(report.skipped), 'file')} left out; `plainmind status` says why")
    if report.withheld:
        console.note(
            f"{counted(len(report.withheld), 'file')} missing on disk, kept in the index until it is sure they are gone"
        )
    for reason in (*report.degraded, *report.notes):
        console.note(reason)
    if report.fallback is not None:
        console.note("{to} embeds in place of {from}: {reason}".format(**report.fallback))


def _as_json(report: SyncReport) -> dict[str, Any]:
    return {
        "indexed": list(report.indexed),
        "removed": list(report.removed),
        "unchanged": report.unchanged,
        "skipped": [{"path": left.path, "reason": left.reason} for left in report.skipped],
        "failed": [{"path": failure.path, "reason": failure.reason} for failure in report.failed],
        "chunks": report.chunks,
        "rebuilt": report.rebuilt,
        "withheld": list(report.withheld),
        "degraded": list(report.degraded),
        "notes": list(report.notes),
        "fallback": None if report.fallback is None else dict(report.fallback),
        "seconds": report.seconds,
    }
