"""`completion`: scripts for shells, made from the parsers, so that they never know less than the program."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from plainmind.base.value import value
from plainmind.cli.console import Console
from plainmind.cli.options import describe

# What stands for a path of the memory, and what for one of the file system.
_MEMORY_PATH = "PATH"
_FOLDERS, _FILES = {"DIR"}, {"FILE"}


@value
class Option:
    """An option as a shell must know it."""

    names: tuple[str, ...]
    help: str
    value: str  # "" for a switch, else what the value is called
    choices: tuple[str, ...]


@value
class Completed:
    """One command, `config set` being one too."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]  # commands below, or the choices of its first argument
    takes: str  # what its first argument is called


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Say what `completion` takes."""
    describe(
        parser,
        """\
Print a script that teaches your shell the commands and options.

Only prints; you decide where it goes.""",
        examples=(
            'eval "$(plainmind completion bash)"          # in ~/.bashrc',
            'eval "$(plainmind completion zsh)"           # in ~/.zshrc, after compinit',
            "plainmind completion fish > ~/.config/fish/completions/plainmind.fish",
        ),
        run=run_completion,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")


def run_completion(arguments: argparse.Namespace, console: Console) -> int:
    """Print the script."""
    from plainmind.cli.completion_scripts import SCRIPTS
    from plainmind.cli.main import build_parser

    script = SCRIPTS[arguments.shell](list(completed(build_parser(), "", ())))
    if console.json:
        console.result({"shell": arguments.shell, "script": script})
    else:
        console.answer(script.rstrip("\n"))
    return 0


def completed(parser: argparse.ArgumentParser, text: str, path: tuple[str, ...]) -> Iterator[Completed]:
    """Walk the parser: itself, then all commands below."""
    options: list[Option] = []
    words: tuple[str, ...] = ()
    takes = ""
    below: list[tuple[str, str, argparse.ArgumentParser]] = []
    for action in parser._actions:  # noqa: SLF001 (argparse shows its arguments in no other way)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            below = [(name, summaries.get(name, ""), inner) for name, inner in action.choices.items()]
            words = tuple(action.choices)
        elif action.option_strings:
            options.append(_option(action))
        elif not takes:
            takes, words = str(action.metavar or action.dest), tuple(map(str, action.choices or ()))
    yield Completed(path, text, tuple(options), words, takes)
    for name, summary, inner in below:
        yield from completed(inner, summary, (*path, name))


def _option(action: argparse.Action) -> Option:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest)
    text = "" if action.help in {None, argparse.SUPPRESS} else str(action.help)
    return Option(tuple(action.option_strings), text, value, tuple(map(str, action.choices or ())))


def kind_of(name: str) -> str:
    """What a shell offers for a value: `memory`, `folders`, `files` or nothing."""
    if name == _MEMORY_PATH:
        return "memory"
    return "folders" if name in _FOLDERS else "files" if name in _FILES else ""
