"""`migrate-store`: move the index to another store."""

from __future__ import annotations

import argparse

from plainmind.cli.console import Console
from plainmind.cli.opening import opened
from plainmind.cli.options import describe
from plainmind.cli.wording import counted


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
    from plainmind.memory.migrating import prepare_server

    with opened(arguments) as memory:
        schema = prepare_server(
            memory.parts, arguments.dsn, role=arguments.role, is_operator=arguments.operator
        )
    if console.json:
        console.result({"schema": schema, "role": arguments.role})
    else:
        who = f", and {arguments.role} may use it" if arguments.role else ""
        console.say(f"the schema {schema} is ready{who}")
    return 0


def _move(arguments: argparse.Namespace, console: Console) -> int:
    from plainmind.cli.configuring import set_value
    from plainmind.memory.migrating import move_index

    with opened(arguments) as memory, console.progress("copying") as progress:
        old = memory.parts.loaded.settings.store.driver
        copied = move_index(memory.parts, arguments.to, dsn=arguments.dsn, progress=progress)
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
        f"{counted(copied.files, 'file')}, {counted(copied.chunks, 'chunk')}: both indexes have the digest"
        f" {copied.digest[:12]}"
    )
    console.say(f"store.driver = {arguments.to} in {change.path}; the index in {old} stays where it is")
    return 0
