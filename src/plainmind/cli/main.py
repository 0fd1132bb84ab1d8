"""The command `plainmind`: every command by name, the one that is meant, and errors as sentences."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import TextIOWrapper

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.value import value
from plainmind.cli.console import Console
from plainmind.cli.options import (
    TAKING_A_VALUE,
    HelpFormatter,
    add_shared_options,
    fill_in_shared_options,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import NoReturn


@value
class Command:
    """A command that need not be imported to be listed."""

    name: str
    module: str  # below plainmind; has `add_<name>(parser)`
    summary: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Tell the parser what the command takes, and what it runs."""
        from importlib import import_module

        module = import_module(f"plainmind.{self.module}")
        add: Callable[[ArgumentParser], None] = getattr(module, f"add_{self.name.replace('-', '_')}")
        add(parser)


_IN_ORDER = (
    Command("init", "cli.notes", "make a workspace to keep notes in"),
    Command("remember", "cli.notes", "write a note down"),
    Command("search", "cli.search", "find the lines that answer a question"),
    Command("get", "cli.notes", "read lines of a file"),
    Command("list", "cli.notes", "list the files of the memory"),
    Command("edit", "cli.notes", "replace a text in a file, or open it in your editor"),
    Command("forget", "cli.forget", "remove lines for good, from everywhere"),
    Command("history", "cli.notes", "show what was changed, and what files were before"),
    Command("restore", "cli.notes", "bring back what a file was"),
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
    Command("mcp", "cli.mcp", "serve the memory to any program that speaks MCP"),
    Command(
        "import", "guests.importers.commands", "copy the conversations of other programs, to search them"
    ),
    Command("redact", "cli.redact", "show which secrets of a text would be hidden"),
    Command("export", "cli.export", "write the whole memory into one file"),
    Command("bench", "guests.evaluation.commands", "measure how good the answers are"),
    Command("completion", "cli.completion", "print a completion script for your shell"),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _IN_ORDER}


FAILED, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

_DESCRIPTION = """\
The memory of an AI agent, kept in plain Markdown: found again by meaning and by word, on this machine.

Notes stay in your workspace, a folder of Markdown files. The index, which can always be made anew, and the history
of edits are kept in ~/.plainmind (PLAINMIND_HOME moves it)."""
_EPILOG = """\
Examples:

    plainmind init
    plainmind remember "The printer is on VLAN 40."
    plainmind search "which VLAN is the printer on?"

`plainmind COMMAND --help` explains a command. Exit status: 0 done, 1 failed, 2 wrong usage, 3 not everything could be
consulted and --strict was given, 4 `redact` found secrets."""
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


class UsageError(Exception):
    """The command line cannot be understood."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong usage the way every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of leaving the program."""
        raise UsageError(message, f"`{self.prog} --help` explains it")


def run() -> NoReturn:
    """Be the program."""
    # Looking for garbage cycles costs a search 5 ms on its way and 6 ms at the end, and finds next to nothing.
    gc.set_threshold(50_000, 20, 100)
    _open_what_is_closed()
    status = main(sys.argv[1:])
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
            console.error(type(error).__name__, str(error), error.hint or _hint_for(error))
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
    return status


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line. Raises UsageError, or SystemExit after a help text."""
    name = _command_name(argv)
    if name is not None and name not in COMMANDS:
        raise _unknown_command(name)
    parser = _parser_for([COMMANDS[name]] if name else [])
    arguments, rest = parser.parse_known_args(argv)
    _take_words_after_options(arguments, rest, help_of=f"plainmind {name}" if name else "plainmind")
    fill_in_shared_options(arguments)
    arguments.command = name
    arguments.parser = parser
    return arguments


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of everything, for the reference pages and for completion."""
    return _parser_for(COMMANDS.values())


def _run(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    if arguments.command is None:
        arguments.parser.print_help()
        return 0
    console = Console(json=arguments.json, quiet=arguments.quiet, color=not arguments.no_color)
    status: int = arguments.run(arguments, console)
    return status


def _parser_for(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """Make a parser that knows the arguments of some commands; of the others it knows only that they exist."""
    parser = Parser(
        prog="plainmind",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add_shared_options(parser, level=0)
    below = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    known = list(commands)
    for command in known or COMMANDS.values():
        added = below.add_parser(
            command.name,
            help=command.summary,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        if known:
            command.add_arguments(added)
            add_shared_options(added, level=1)
    return parser


def _command_name(argv: Sequence[str]) -> str | None:
    """Find the first word that is neither an option nor the value of one."""
    words = iter(argv)
    for word in words:
        if word in TAKING_A_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _unknown_command(name: str) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(name[:50], COMMANDS, n=1)
    hint = f"did you mean `plainmind {close[0]}`?" if close else "`plainmind --help` lists all commands"
    return UsageError(f"there is no command `{name[:50]}`", hint)


def _take_words_after_options(arguments: argparse.Namespace, rest: list[str], *, help_of: str) -> None:
    """Let words go on after an option: `search red -n 3 apples`. argparse gives only the first run of words."""
    words = rest[1:] if rest[:1] == ["--"] else rest
    unknown = [word for word in words if word.startswith("-") and word != "-"] if words is rest else []
    if unknown or (words and "words" not in vars(arguments)):
        raise UsageError(
            f"unknown {'option' if unknown else 'argument'}: {(unknown or words)[0]}",
            f"`{help_of} --help` lists what there is",
        )
    if words:
        arguments.words = [*arguments.words, *words]


def _hint_for(error: PlainmindError) -> str:
    if isinstance(error, ConfigError):
        return "correct it, or leave it out: every setting has a default"
    return "`plainmind doctor` looks for the cause"


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
