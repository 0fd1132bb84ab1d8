"""The command `plainmind`: every command by name, the one that is meant, and errors as sentences."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.lazy import find_by_name, keep_expressions
from plainmind.base.value import value
from plainmind.cli.console import Console, OutputLost
from plainmind.cli.options import (
    NO_DEFAULT,
    Declarations,
    NotPlain,
    UsageError,
    add_shared_options,
    fill_in_shared_options,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from argparse import ArgumentParser
    from types import SimpleNamespace
    from typing import Any, NoReturn


@value
class Command:
    """A command that need not be imported to be listed."""

    name: str
    module: str  # below plainmind; has `add_<name>(parser)`
    summary: str
    looks_around: bool = True  # whether it takes the memory that lies where it is typed

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Tell the parser what the command takes, and what it runs."""
        add = find_by_name(f"plainmind.{self.module}:add_{self.name.replace('-', '_')}")
        add(parser)


_IN_ORDER = (
    Command("init", "cli.notes", "make a workspace to keep notes in"),
    Command("remember", "cli.notes", "write a note down"),
    Command("search", "cli.search", "find the lines that answer a question"),
    Command("get", "cli.notes", "read lines of a file"),
    Command("list", "cli.notes", "list the files of the memory"),
    Command("links", "cli.notes", "show which notes a note leads to, and which lead to it"),
    Command("edit", "cli.changes", "replace a text in a file, or open it in your editor"),
    Command("forget", "cli.changes", "remove lines for good, from everywhere"),
    Command("history", "cli.changes", "show what was changed, and what files were before"),
    Command("restore", "cli.changes", "bring back what a file was"),
    Command("undo", "cli.changes", "take back the latest note or edit"),
    Command("recalls", "cli.sessions", "show what agents asked and were given, and say what it was worth"),
    Command("tidy", "guests.upkeep.commands", "show what could be tidied, and accept or reject it"),
    Command("sync", "cli.index", "bring the index up to date now"),
    Command("watch", "cli.index", "keep the index up to date until you stop it"),
    Command("status", "cli.health", "say what is known, where it is kept and what leaves this machine"),
    Command("doctor", "cli.health", "look for everything that could be wrong"),
    Command("config", "cli.settings", "show and change settings"),
    Command("migrate-store", "cli.index", "move the index to another store, without embedding again"),
    Command("cache", "cli.index", "look at the cache of embeddings, and make it smaller"),
    Command("sessions", "cli.sessions", "look at conversations, search and change them"),
    Command(
        "entries", "guests.entries.commands", "keep single things to remember, with category and importance"
    ),
    Command("chat", "guests.chat.commands", "talk with a model that has this memory"),
    Command("flush", "guests.chat.commands", "save what lasts of a conversation before it is compacted"),
    Command("page", "guests.page.commands", "look at the memory in a browser, and change it"),
    Command("serve", "guests.page.commands", "serve the page, /v1 and MCP until you stop it"),
    Command(
        "tokens", "guests.page.commands", "let programs use /v1, each with a token and rights of its own"
    ),
    Command("mcp", "cli.mcp", "serve the memory to any program that speaks MCP", looks_around=False),
    Command(
        "connect",
        "guests.hosts.commands",
        "let an agent use this memory: Claude Code, Codex and others",
        looks_around=False,
    ),
    Command("disconnect", "guests.hosts.commands", "take it out of an agent's settings again"),
    Command("hook", "guests.hosts.hook", "answer an agent's hooks; `connect` sees to it", looks_around=False),
    Command(
        "import", "guests.importers.commands", "copy the conversations of other programs, to search them"
    ),
    Command("qmd", "guests.qmd.commands", "be QMD, for programs that were written for it"),
    Command("redact", "cli.health", "show which secrets of a text would be hidden"),
    Command("export", "cli.notes", "write the whole memory into one file"),
    Command("bench", "guests.evaluation.commands", "measure how good the answers are"),
    Command("completion", "cli.completion", "print a completion script for your shell"),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _IN_ORDER}


_KEPT_BYTES = 8 << 20

FAILED, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

# Refusals of the operating system that a person can cause, and mend. Any other one is our mistake.
_REFUSALS = {
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "make it writable, or choose another place with --home or PLAINMIND_HOME",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "it is a folder",
    errno.EEXIST: "choose another name",
    errno.ELOOP: "check the links in the path",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EMFILE: "close some programs or raise `ulimit -n`",
    errno.ENFILE: "close some programs",
    errno.EIO: "check the disk",
    errno.ESTALE: "mount the folder again",
    errno.ENOTCONN: "mount the folder again",
}


def run() -> NoReturn:
    """Run the command of this process, to its end."""
    # Asking the system for memory again and again costs two more: what malloc once got back, it keeps from then on.
    bytes(_KEPT_BYTES)
    _open_what_is_closed()
    called = os.path.basename(sys.argv[0])
    status = main([called, *sys.argv[1:]] if called == "qmd" else sys.argv[1:])
    keep_expressions()
    if not status and "threading" not in sys.modules and not atexit._ncallbacks():  # noqa: SLF001 (nothing else tells it)
        # Nothing is left to be done, and what was printed is out: taking everything apart would take a search 3 ms, and
        # the system does it anyway.
        sys.stderr.flush()
        os._exit(status)
    gc.freeze()
    sys.exit(status)


def _open_what_is_closed() -> None:
    """Let nothing take the place of a standard stream that the caller has closed: what is printed would go into it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115 (for as long as the program)


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Whatever the locale says: notes are UTF-8, and half a character must not stop an answer.
            stream.reconfigure(encoding="utf-8", errors="replace")
    console = Console(json="--json" in argv)
    try:
        try:
            status = _run(argv)
            sys.stdout.flush()
        except UsageError as error:
            console.error("UsageError", str(error), error.hint)
            status = WRONG_USAGE
        except PlainmindError as error:
            _report(console, error)
            status = FAILED
        except SystemExit as leaving:  # argparse has printed a help text or the version
            sys.stdout.flush()
            status = int(leaving.code or 0)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        status = PIPE_CLOSED
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        # An error without a file name is one of stdout, where no JSON can go any more.
        unwritable = _discard_if_unwritable() or error.filename is None
        _report_refusal(Console() if unwritable else console, error)
        status = FAILED
    # To a host, an exit status of 2 from its hook means: stop what the user wants.
    return 0 if argv[:1] == ["hook"] else status


def parse(argv: Sequence[str]) -> argparse.Namespace | SimpleNamespace:
    """Read a command line. Raises UsageError, or SystemExit after a help text."""
    with suppress(NotPlain):
        return _read_plain_line(argv)
    from plainmind.cli.parser import read_line

    return read_line(argv, COMMANDS)


def _read_plain_line(argv: Sequence[str]) -> SimpleNamespace:
    """Read a line that begins with a command and is plain; any other raises NotPlain."""
    command = COMMANDS.get(argv[0]) if argv else None
    if command is None:
        raise NotPlain
    declared: Any = Declarations()
    command.add_arguments(declared)
    add_shared_options(declared, level=1, suppress=NO_DEFAULT, looks_around=command.looks_around)
    arguments: SimpleNamespace = declared.read(argv[1:])
    fill_in_shared_options(arguments)
    arguments.command = command.name
    return arguments


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of everything, for the reference pages and for completion."""
    from plainmind.cli.parser import parser_for

    return parser_for(COMMANDS.values())


def _run(argv: Sequence[str]) -> int:
    if argv[:1] == ["qmd"] and argv[1:]:
        run_qmd: Callable[[Sequence[str]], int] = find_by_name("plainmind.guests.qmd.commands:run")
        return run_qmd(argv[1:])  # its words are not ours to read
    arguments = parse(argv)
    if arguments.command is None:
        arguments.parser.print_help()
        return 0
    console = Console(json=arguments.json, quiet=arguments.quiet, color=not arguments.no_color)
    status: int = arguments.run(arguments, console)
    return status


def _hint_for(error: PlainmindError) -> str:
    if isinstance(error, ConfigError):
        return "correct it, or leave it out: every setting has a default"
    return "`plainmind doctor` looks for the cause"


def _report(console: Console, error: PlainmindError) -> None:
    if isinstance(error, OutputLost):
        _discard_output()
        console = Console()
    console.error(type(error).__name__, str(error), error.hint or _hint_for(error))


def _report_refusal(console: Console, error: OSError) -> None:
    assert error.errno is not None
    reason = os.strerror(error.errno)
    what = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "the output"
    console.error(type(error).__name__, f"{what}: {reason}", _REFUSALS[error.errno])


def _discard_if_unwritable() -> bool:
    """When it was stdout that refused, forget what is left for it: Python would try again on its way out."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
        return True
    return False


def _discard_output() -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # stdout is no file: then nothing is tried again either
