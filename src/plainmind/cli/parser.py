"""What argparse is for: help texts, wrong usage said in our words, and every command line that is not plain."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainmind.base.lazy import pattern
from plainmind.cli.console import columns
from plainmind.cli.options import UsageError, add_shared_options, fill_in_shared_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from plainmind.cli.main import Command

_TAKING_A_VALUE = ("--workspace", "--home", "--agent", "--config")
_TYPED_AS_COMMANDS = {"help": "--help", "version": "--version"}
# What other programs call what we have.
_OTHER_WORDS = {
    "search": "ask find grep lookup query recall",
    "remember": "add append new note save store write",
    "get": "cat open read show view",
    "list": "files ls",
    "forget": "del delete erase remove rm",
    "history": "diff log",
    "undo": "revert rollback",
    "sync": "index reindex refresh update",
    "config": "configure set settings",
    "connect": "install setup",
    "page": "browser gui ui web",
}
_OTHER_OPTIONS = {"-n": "--count --limit --max --max-results --num --results --top --top-k"}
# No option of ours has one dash and several letters.
_LEFT_OUT = pattern(r"-[^\W\d_]{2}\S*|-(?:tag|title|path):.+")
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


class HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs to the width of the terminal and leaves indented ones, examples, as they are."""

    def __init__(self, prog: str) -> None:
        # argparse makes one for every argument, help or not, and would import `shutil` to measure the terminal.
        super().__init__(prog, width=columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import fill

        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            part
            if part.startswith(" ")
            else fill(part, width, initial_indent=indent, subsequent_indent=indent)
            for part in paragraphs
        )


class Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong usage the way every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of leaving the program."""
        raise UsageError(message, f"`{self.prog} --help` explains it")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            from difflib import get_close_matches

            close = get_close_matches(str(value)[:50].lower(), map(str, action.choices or ()), n=1)
            hint = f"did you mean `{close[0]}`? " if close else ""
            raise UsageError(str(error), f"{hint}`{self.prog} --help` explains it") from error


def read_line(argv: Sequence[str], commands: Mapping[str, Command]) -> argparse.Namespace:
    """Read a command line. Raises UsageError, or SystemExit after a help text."""
    name = _command_name(argv)
    if name in _TYPED_AS_COMMANDS:
        argv = [*(word for word in argv if word != name), _TYPED_AS_COMMANDS[name]]
        name = _command_name(argv)
    if name is not None and name not in commands:
        raise _unknown_command(name, commands)
    parser = parser_for([commands[name]] if name else [], listed=commands.values())
    left_out = [word for word in argv if _LEFT_OUT.fullmatch(word)] if "search" in argv[:2] else []
    arguments, rest = parser.parse_known_args([word for word in argv if word not in left_out])
    _take_words_after_options(
        arguments, [*rest, *left_out], left_out, parser, help_of=f"plainmind {name}" if name else "plainmind"
    )
    fill_in_shared_options(arguments)
    arguments.command = name
    arguments.parser = parser
    return arguments


def parser_for(commands: Iterable[Command], *, listed: Iterable[Command] = ()) -> argparse.ArgumentParser:
    """Make a parser that knows the arguments of some commands, or without any that those listed exist."""
    parser = Parser(
        prog="plainmind",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add_shared_options(parser, level=0, suppress=argparse.SUPPRESS)
    below = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    known = list(commands)
    for command in known or listed:
        added = below.add_parser(
            command.name,
            help=command.summary,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        if known:
            command.add_arguments(added)
            add_shared_options(added, level=1, suppress=argparse.SUPPRESS, looks_around=command.looks_around)
    return parser


def _command_name(argv: Sequence[str]) -> str | None:
    """Find the first word that is neither an option nor the value of one."""
    words = iter(argv)
    for word in words:
        if word in _TAKING_A_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _unknown_command(name: str, commands: Iterable[str]) -> UsageError:
    from difflib import get_close_matches

    close = [known for known, others in _OTHER_WORDS.items() if name.lower() in others.split()]
    close = close or get_close_matches(name[:50].lower(), commands, n=1)
    hint = f"did you mean `plainmind {close[0]}`?" if close else "`plainmind --help` lists all commands"
    return UsageError(f"there is no command `{name[:50]}`", hint)


def _unknown_option(word: str, parser: argparse.ArgumentParser, help_of: str) -> UsageError:
    from difflib import get_close_matches

    name = word.partition("=")[0]
    options = set(_options(parser))
    close = [known for known, others in _OTHER_OPTIONS.items() if name in others.split() and known in options]
    close = close or get_close_matches(
        name[:50].lower(), sorted(one for one in options if one.startswith("--")), n=1, cutoff=0.75
    )
    hint = f"did you mean `{close[0]}`? " if close else ""
    return UsageError(f"unknown option: {word}", f"{hint}`{help_of} --help` lists what there is")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a parser, and of those below it."""
    for action in parser._actions:  # noqa: SLF001 (argparse tells them nowhere else)
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _options(below)


def _take_words_after_options(
    arguments: argparse.Namespace,
    rest: list[str],
    left_out: Sequence[str],
    parser: argparse.ArgumentParser,
    *,
    help_of: str,
) -> None:
    """Let words go on after an option: `search red -n 3 apples`. argparse gives only the first run of words.

    Those that a search is to leave out, as in `search apples -red`, are words too.
    """
    words = rest[1:] if rest[:1] == ["--"] else rest
    known = ("-", *left_out)
    unknown = [word for word in words if word.startswith("-") and word not in known] if words is rest else []
    if unknown:
        raise _unknown_option(unknown[0], parser, help_of)
    if words and "words" not in vars(arguments):
        raise UsageError(
            f"unknown argument: {words[0]}",
            "say which text is which: plainmind edit PATH --old TEXT --new TEXT"
            if help_of == "plainmind edit"
            else f"`{help_of} --help` lists what there is",
        )
    if words:
        arguments.words = [*arguments.words, *words]
