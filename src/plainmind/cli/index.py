"""`sync`, `watch`, `migrate-store` and `cache`: what is made from the notes."""

from __future__ import annotations

import sys

from plainmind.cli.console import (
    Console,
    duration_in_words,
    is_terminal,
    plural,
    size_in_words,
    visible,
)
from plainmind.cli.options import commands_below, describe, open_memory, whole_number, wrong_value
from plainmind.notes.source import NO_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from plainmind.base.model import SyncReport
    from plainmind.memory.providers import Cost


DEGRADED = 3


_MOST_NAMED = 20


def add_sync(parser: argparse.ArgumentParser) -> None:
    """Say what `sync` takes."""
    describe(
        parser,
        """\
Bring the index up to date now. A search does this by itself; this does it ahead of time and says what it did. It also
leaves no word of deleted text in the files of the index, which otherwise takes an hour at most.

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
    with open_memory(arguments) as memory:
        with console.progress("indexing") as progress:
            report = memory.sync(
                force=arguments.force,
                progress=progress,
                wait=False if arguments.no_wait else None,
                confirm=lambda cost: _agree(cost, console, yes=arguments.yes),
            )
            memory.wipe()
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


def _agree(cost: Cost, console: Console, *, yes: bool) -> bool:
    """Show what is about to be spent, and ask where it is more than was allowed."""
    from plainmind.memory.providers import in_words

    where = f" ({cost.host})" if cost.host else ""
    if not cost.needs_yes or yes:
        if not console.json:
            console.note(f"{in_words(cost).rstrip(',')}{where}")
        return True
    if console.json or not is_terminal(sys.stdin):
        return False
    return console.ask(f"{in_words(cost).rstrip(',')}{where}. Go on?")


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
        with open_memory(arguments) as memory:
            reports = memory.watch(stop)
            console.say(f"watching {memory.workspace} (Ctrl-C ends it)")
            for number, report in enumerate(reports):
                if number == 0 or _has_news(report):
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


def _has_news(report: SyncReport) -> bool:
    return bool(report.indexed or report.removed or report.failed or report.rebuilt or report.degraded)


def summary(report: SyncReport) -> str:
    """One line about a sync."""
    parts = []
    if report.indexed:
        parts.append(f"indexed {plural(len(report.indexed), 'file')} ({plural(report.chunks, 'chunk')})")
    if report.removed:
        parts.append(f"removed {len(report.removed)}")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    parts.append(
        f"{report.unchanged:,} unchanged" if parts else f"up to date, {plural(report.unchanged, 'file')}"
    )
    return ", ".join(parts) + f" in {duration_in_words(report.seconds)}"


def _print_notes(report: SyncReport, console: Console) -> None:
    if report.rebuilt:
        console.note(f"built a whole new index: {report.rebuilt}")
    for path in report.removed[:_MOST_NAMED]:
        console.note(f"gone from disk and from the index: {visible(path)}")
    if len(report.removed) > _MOST_NAMED:
        console.note(f"and {len(report.removed) - _MOST_NAMED:,} more, which --json names")
    for failure in report.failed:
        console.note(f"not indexed: {failure.path}: {failure.reason}")
    without_text = [left for left in report.skipped if left.reason == NO_TEXT]
    for left in without_text[:_MOST_NAMED]:
        console.note(f"left out: {visible(left.path)}: {NO_TEXT}")
    if len(without_text) < len(report.skipped):
        left_out = plural(len(report.skipped) - len(without_text), "file")
        console.note(f"{left_out} left out; `plainmind status` says why")
    if report.withheld:
        console.note(
            f"{plural(len(report.withheld), 'file')} missing on disk, kept in the index until it is sure they are gone"
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


def add_migrate_store(parser: argparse.ArgumentParser) -> None:
    """Say what `migrate-store` takes."""
    describe(
        parser,
        """\
Move the index to another store. Texts and vectors are copied, so that nothing is embedded again; both indexes are
compared, and only when they are equal does `store.driver` change in your settings, in ~/.plainmind. The old index
stays where it is.

With --prepare it makes the schema in PostgreSQL instead, or brings it up to date, and lets a role use it.""",
        examples=(
            "plainmind migrate-store --prepare --dsn postgresql://owner@db.example.org/notes --role plainmind",
            "plainmind migrate-store --to postgres --dsn env:NOTES_DSN",
            "plainmind migrate-store --to sqlite",
        ),
        run=run_migrate_store,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", metavar="STORE", help="sqlite, postgres or lancedb")
    what.add_argument("--prepare", action="store_true", help="make the schema ready in PostgreSQL")
    parser.add_argument("--dsn", metavar="DSN", help="how to reach PostgreSQL, or env:NAME (store.dsn)")
    parser.add_argument("--role", metavar="ROLE", help="with --prepare: who is allowed to use the schema")
    parser.add_argument(
        "--operator", action="store_true", help="with --role: who may also search the indexes of all agents"
    )


def run_migrate_store(arguments: argparse.Namespace, console: Console) -> int:
    """Prepare, or copy and switch over."""
    return _prepare(arguments, console) if arguments.prepare else _move(arguments, console)


def _prepare(arguments: argparse.Namespace, console: Console) -> int:
    with open_memory(arguments) as memory:
        schema = memory.prepare_server(arguments.dsn, role=arguments.role, is_operator=arguments.operator)
    if console.json:
        console.result({"schema": schema, "role": arguments.role})
    else:
        who = f", and {arguments.role} may use it" if arguments.role else ""
        console.say(f"the schema {schema} is ready{who}")
    return 0


def _move(arguments: argparse.Namespace, console: Console) -> int:
    from plainmind.cli.settings import set_value

    with open_memory(arguments) as memory, console.progress("copying") as progress:
        old = memory.store_driver
        copied = memory.move_index(arguments.to, dsn=arguments.dsn, progress=progress)
    if arguments.dsn is not None:
        set_value(arguments, "store.dsn", arguments.dsn)
    change = set_value(arguments, "store.driver", arguments.to)
    if console.json:
        console.result(
            {
                "from": old,
                "to": arguments.to,
                "files": copied.files,
                "chunks": copied.chunks,
                "digest": copied.digest,
                "settings": change.path,
            }
        )
        return 0
    console.say(
        f"{plural(copied.files, 'file')}, {plural(copied.chunks, 'chunk')}: both indexes have the digest"
        f" {copied.digest[:12]}"
    )
    console.say(f"store.driver = {arguments.to} in {change.path}; the index in {old} stays where it is")
    return 0


_SIZES = {"": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Say what `cache` takes."""
    describe(
        parser,
        """\
Show what the cache of embeddings holds, or make it smaller. It remembers vectors that took long or cost money, so that
text is not sent twice; the built-in model does without. Nothing in it is needed: what is dropped is embedded again.

Reads and writes the cache in ~/.plainmind, nothing else.""",
        examples=(
            "plainmind cache stats",
            "plainmind cache prune --unused-days 90",
            "plainmind cache prune --provider openai --max-size 100MB",
        ),
        run=run_stats,
    )
    add = commands_below(parser)

    add("stats", "show what it holds, by provider and model", "plainmind cache stats", run_stats)
    pruning = add(
        "prune",
        "drop what is too old, of one provider, or too much; without options what is beyond the settings",
        "plainmind cache prune --unused-days 90",
        run_prune,
    )
    pruning.add_argument(
        "--unused-days", metavar="N", type=whole_number(0, 36_500), help="drop what was not used for N days"
    )
    pruning.add_argument("--provider", metavar="NAME", help="drop only what this provider made")
    pruning.add_argument(
        "--max-entries", metavar="N", type=whole_number(0), help="keep the N that were used last"
    )
    pruning.add_argument(
        "--max-size", metavar="SIZE", type=size, help="keep as many as fit, such as 100MB; the last used stay"
    )


def run_stats(arguments: argparse.Namespace, console: Console) -> int:
    """Print what the cache holds."""
    from datetime import UTC, datetime

    with open_memory(arguments) as memory:
        stats = memory.cache_stats()
    if console.json:
        rows = [
            {
                "provider": held.provider,
                "model": held.model,
                "endpoint": held.endpoint,
                "entries": held.entries,
                "bytes": held.bytes,
                "usedFirst": held.used_first_ns // 1_000_000,
                "usedLast": held.used_last_ns // 1_000_000,
            }
            for held in stats.held
        ]
        console.result(
            {
                "path": stats.path,
                "used": stats.is_used,
                "entries": stats.entries,
                "bytes": stats.bytes,
                "fileBytes": stats.file_bytes,
                "maxEntries": stats.max_entries,
                "maxBytes": stats.max_bytes,
                "held": rows,
            }
        )
        return 0
    console.answer(f"{stats.path}{'' if stats.is_used else ' (the provider of now does not use it)'}")
    console.answer(
        f"{plural(stats.entries, 'vector')} of at most {stats.max_entries:,},"
        f" {size_in_words(stats.bytes)} of at most {size_in_words(stats.max_bytes)}"
    )
    for held in stats.held:
        last = datetime.fromtimestamp(held.used_last_ns / 1e9, UTC).date()
        console.answer(
            f"  {visible(held.provider)} {visible(held.model)}: {plural(held.entries, 'vector')},"
            f" {size_in_words(held.bytes)}, last used {last}"
        )
    return 0


def run_prune(arguments: argparse.Namespace, console: Console) -> int:
    """Make the cache smaller, and say by how much."""
    with open_memory(arguments) as memory:
        pruned = memory.prune_cache(
            unused_days=arguments.unused_days,
            provider=arguments.provider,
            max_entries=arguments.max_entries,
            max_bytes=arguments.max_size,
        )
    if console.json:
        console.result({"entries": pruned.entries, "bytes": pruned.bytes})
    else:
        console.say(f"dropped {plural(pruned.entries, 'vector')}, {size_in_words(pruned.bytes)}")
    return 0


def size(text: str) -> int:
    """Read `100MB`, `1.5 GB` or a number of bytes."""
    number = text.strip().lower().rstrip("bgkm")
    unit = text.strip().lower()[len(number) :].strip()
    try:
        amount = float(number) * _SIZES[unit]
    except (ValueError, KeyError):
        amount = -1.0
    if not 0 <= amount < 1e18:
        raise wrong_value(f"`{text}` must be a size such as 100MB")
    return int(amount)
