"""What commands take: shared options, kinds of values, texts from arguments, files and stdin, and the memory."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from plainmind.base.errors import PlainmindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date
    from typing import Any

    from plainmind.memory.memory import Memory


# argparse gives a command a fresh namespace, which then overwrites the outer one: what is repeated on several
# levels needs a name of its own on each.
_SETTINGS_BY_LEVEL = ("settings_before", "settings_within", "settings_after")
_UNSET: Mapping[str, Any] = {
    "workspace": None,
    "home": None,
    "agent": None,
    "json": False,
    "quiet": False,
    "no_color": False,
}
TAKING_A_VALUE = ("--workspace", "--home", "--agent", "--config")


def add_shared_options(parser: argparse.ArgumentParser, *, level: int) -> None:
    """Add the options of every command. Below the top only the two that matter most are shown in the help."""

    def shown(text: str) -> str:
        return argparse.SUPPRESS if level else text

    shared = parser.add_argument_group("options everywhere" if level else "options before or after a command")
    shared.add_argument(
        "--workspace",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="the folder that holds the notes (default: the nearest one, then ~/.plainmind/workspace)",
    )
    shared.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for programs"
    )
    hidden: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
        (("--home",), {"metavar": "DIR", "help": "where index and history are kept (~/.plainmind)"}),
        (("--agent",), {"metavar": "ID", "help": "whose index to use (main)"}),
        (("-q", "--quiet"), {"action": "store_true", "help": "print nothing but the answer"}),
        (("--no-color",), {"action": "store_true", "help": "print without colours"}),
        (
            ("--config",),
            {
                "metavar": "KEY=VALUE",
                "action": "append",
                "dest": _SETTINGS_BY_LEVEL[level],
                "type": key_and_value,
                "help": "set a setting for this run; may be repeated",
            },
        ),
        (("--version",), {"action": "version", "version": _version(), "help": "print the version"}),
    )
    for names, facts in hidden:
        facts["help"] = shown(facts["help"])
        shared.add_argument(*names, default=argparse.SUPPRESS, **facts)


def fill_in_shared_options(arguments: argparse.Namespace) -> None:
    """Give every shared option a value, and collect the settings of all levels in `settings`."""
    given = vars(arguments)
    for name, value in _UNSET.items():
        given.setdefault(name, value)
    arguments.settings = {key: value for level in _SETTINGS_BY_LEVEL for key, value in given.get(level) or ()}
    arguments.asked_agents = ()
    if arguments.agent is not None:
        # Several can be asked, and nothing else can be done with them: elsewhere `a,b` is no name, and refused.
        can_be_several = "all_agents" in given
        names = (
            [name.strip() for name in arguments.agent.split(",") if name.strip()] if can_be_several else []
        )
        arguments.asked_agents = tuple(names) if len(names) > 1 else ()
        arguments.settings["agentId"] = names[0] if names else arguments.agent


def key_and_value(text: str) -> tuple[str, str]:
    """Read `query.maxResults=3`."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise argparse.ArgumentTypeError(f"`{text}` must be KEY=VALUE, such as query.maxResults=3")
    return key.strip(), value


def whole_number(least: int, most: int = 1_000_000_000) -> Callable[[str], int]:
    """Make the reader of a whole number in a range."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"`{text}` must be a whole number from {least} to {most:,}")
        return number

    return read


def some_text(text: str) -> str:
    """Read a text that says something."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"`{text}` must be a number from 0 to 1")
    return number


def day(text: str) -> date:
    """Read a date."""
    from datetime import date

    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` must be a date such as 2026-02-10") from None


class HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs to the width of the terminal and leaves indented ones, examples, as they are."""

    def __init__(self, prog: str) -> None:
        # argparse makes one for every argument, help or not, and would import `shutil` to measure the terminal.
        super().__init__(prog, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import fill

        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            part
            if part.startswith(" ")
            else fill(part, width, initial_indent=indent, subsequent_indent=indent)
            for part in paragraphs
        )


def describe(
    parser: argparse.ArgumentParser, text: str, *, examples: Sequence[str], run: Callable[..., int]
) -> None:
    """Say what a command is for and how it is used, and name the function that does it."""
    parser.description = text
    shown = "\n".join(f"    {example}" for example in examples)  # Markdown reads this as code
    parser.epilog = f"Examples:\n\n{shown}\n\nMore options that work everywhere: `plainmind --help`."
    parser.set_defaults(run=run)


def commands_below(parser: argparse.ArgumentParser) -> Callable[..., argparse.ArgumentParser]:
    """Let a command have commands of its own: returns what adds one, `add(name, text, example, run)`."""
    below = parser.add_subparsers(title="what to do", metavar="WHAT")

    def add(name: str, text: str, example: str, run: Callable[..., int]) -> argparse.ArgumentParser:
        added = below.add_parser(name, help=text, formatter_class=HelpFormatter, allow_abbrev=False)
        describe(added, f"{text[0].upper()}{text[1:]}.", examples=(example,), run=run)
        add_shared_options(added, level=2)
        return added

    return add


def _columns() -> int:
    """How wide a help text may be: what COLUMNS says, or the terminal, or 80."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:  # no terminal
        return 80


def _version() -> str:
    from plainmind import __version__

    return f"plainmind {__version__}"


# More than any note or question; a pipe that never ends must not fill the memory of the machine.
MOST_BYTES = 64_000_000


def open_memory(arguments: argparse.Namespace) -> Memory:
    """Open the memory that the options name."""
    from plainmind.memory.memory import Memory

    return Memory(arguments.workspace, home=arguments.home, config=arguments.settings)


def text_of(words: list[str]) -> str:
    """Join the words of an argument; `-` alone is what stdin has to say."""
    if words == ["-"]:
        return text_of_stdin()
    return text_of_argument(" ".join(words))


def text_of_stdin() -> str:
    """Read stdin to its end, as UTF-8 whatever the locale says."""
    return _decode(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")


def text_of_file(path: str) -> str:
    """Read a text file; `-` is stdin."""
    if path == "-":
        return text_of_stdin()
    with open(path, "rb") as file:
        return _decode(file.read(MOST_BYTES + 1), path)


def text_of_argument(argument: str) -> str:
    """Refuse an argument that is not text: bytes that are no UTF-8 would be lost on the way."""
    try:
        return os.fsencode(argument).decode()  # the bytes that were typed, whatever the locale made of them
    except UnicodeError:
        if not any("\ud800" <= sign <= "\udfff" for sign in argument):
            return argument
        raise PlainmindError(
            "the text on the command line is not valid UTF-8", hint="save it as UTF-8 and give it through `-`"
        ) from None


def _decode(data: bytes, origin: str) -> str:
    if len(data) > MOST_BYTES:
        raise PlainmindError(f"{origin} is longer than {MOST_BYTES:,} bytes", hint="give less at once")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlainmindError(
            f"{origin} is not valid UTF-8 (byte {error.start + 1:,})",
            hint="convert it first, for example with `iconv -f latin1 -t utf-8`",
        ) from None
