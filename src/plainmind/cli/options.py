"""What commands take: shared options, kinds of values, texts from arguments, files and stdin, and the memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from datetime import date
    from typing import Any, NoReturn

    from plainmind.base.errors import ConfigError
    from plainmind.memory.memory import Memory


NO_DEFAULT = "no default"  # to `Declarations`, what SUPPRESS is to argparse, which knows it by identity

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


def add_shared_options(
    parser: argparse.ArgumentParser, *, level: int, suppress: str, looks_around: bool = True
) -> None:
    """Add the options of every command. Below the top only the two that matter most are shown in the help.

    `suppress` is the mark for what has no default, and for what is not shown.
    """

    def shown(text: str) -> str:
        return suppress if level else text

    first = "the nearest one" if looks_around else "what your settings name"
    shared = parser.add_argument_group("options everywhere" if level else "options before or after a command")
    shared.add_argument(
        "--workspace",
        metavar="DIR",
        default=suppress,
        help=f"the folder that holds the notes (default: {first}, then ~/.plainmind/workspace)",
    )
    shared.add_argument("--json", action="store_true", default=suppress, help="print JSON for programs")
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
        shared.add_argument(*names, default=suppress, **facts)


class UsageError(Exception):
    """The command line cannot be understood."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


_PLAIN_ACTIONS = frozenset({"store", "store_true", "append", "version"})


class NotPlain(Exception):
    """A command line, or what a command takes, is not as plain as `Declarations` are."""


class Declarations:
    """Hears what a command takes, as argparse would, and reads a plain command line: words, `--json`, `-n 3`.

    Nearly all are plain, and argparse takes a cold search 7 ms to load and to set up. Whatever else there may be in one
    (`--name=value`, `--`, a wrong value, something left out, a call for help) is for argparse: then NotPlain is raised.
    """

    def __init__(self) -> None:
        self.description = self.epilog = ""
        self._options: dict[str, tuple[str, str, Callable[[str], Any], Sequence[str]]] = {}
        self._found: dict[str, Any] = {}
        self._takes_words = False

    def set_defaults(self, **facts: Any) -> None:
        """Take over what is the same each time."""
        self._found |= facts

    def add_argument_group(self, _title: str) -> Declarations:
        """Groups matter only for the help."""
        return self

    def add_subparsers(self, **_facts: Any) -> NoReturn:
        """Refuse a command that has commands of its own."""
        raise NotPlain

    add_mutually_exclusive_group = add_subparsers

    def add_argument(
        self,
        *names: str,
        action: str = "store",
        default: Any = None,
        dest: str | None = None,
        type: Callable[[str], Any] = str,  # noqa: A002 (as argparse calls it)
        choices: Sequence[str] = (),
        nargs: str | None = None,
        metavar: str | None = None,
        help: str | None = None,  # noqa: A002
        **others: Any,
    ) -> None:
        """Hear of words, or of an option."""
        del metavar, help
        if names == ("words",) and nargs in {"+", "*"} and not others:
            self._takes_words = True
            return
        is_read_by_type = isinstance(default, str) and default is not NO_DEFAULT and type is not str
        if (
            not names[0].startswith("-")
            or action not in _PLAIN_ACTIONS
            or is_read_by_type
            or nargs is not None
        ):
            raise NotPlain
        if action == "version":
            return
        if others:
            raise NotPlain
        long = [name for name in names if name.startswith("--")]
        name = dest or (long or names)[0].lstrip("-").replace("-", "_")
        if default is not NO_DEFAULT:
            self._found[name] = False if action == "store_true" and default is None else default
        self._options |= dict.fromkeys(names, (name, action, type, choices))

    def read(self, line: Iterable[str]) -> SimpleNamespace:
        """Read what stands after the command. Raises NotPlain."""
        found = dict(self._found)
        words: list[str] = []
        following = iter(line)
        for word in following:
            if word not in self._options:
                if word.startswith("-") and word != "-":
                    raise NotPlain
                words.append(word)
                continue
            name, action, type_, choices = self._options[word]
            if action == "store_true":
                found[name] = True
                continue
            one = _read_value(next(following, "-"), type_, choices)
            found[name] = one if action == "store" else [*(found.get(name) or ()), one]
        if bool(words) != self._takes_words:
            raise NotPlain
        return SimpleNamespace(**found, **({"words": words} if words else {}))


def _read_value(text: str, type_: Callable[[str], Any], choices: Sequence[str]) -> Any:
    if text.startswith("-"):
        raise NotPlain
    try:
        found = type_(text)
    except Exception as error:  # argparse says it better
        raise NotPlain from error
    if choices and found not in choices:
        raise NotPlain
    return found


def fill_in_shared_options(arguments: argparse.Namespace | SimpleNamespace) -> None:
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


def wrong_value(message: str) -> Exception:
    """Make the error by which the reader of a value refuses it."""
    from argparse import ArgumentTypeError

    return ArgumentTypeError(message)


def key_and_value(text: str) -> tuple[str, str]:
    """Read `query.maxResults=3`."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise wrong_value(f"`{text}` must be KEY=VALUE, such as query.maxResults=3")
    return key.strip(), value


def whole_number(least: int, most: int = 1_000_000_000) -> Callable[[str], int]:
    """Make the reader of a whole number in a range."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise wrong_value(f"`{text}` must be a whole number from {least} to {most:,}")
        return number

    return read


def some_text(text: str) -> str:
    """Read a text that says something."""
    if not text.strip():
        raise wrong_value("it is empty")
    return text


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise wrong_value(f"`{text}` must be a number from 0 to 1")
    return number


def day(text: str) -> date:
    """Read a date."""
    from datetime import date

    try:
        return date.fromisoformat(text)
    except ValueError:
        raise wrong_value(f"`{text}` must be a date such as 2026-02-10") from None


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
    from argparse import SUPPRESS

    from plainmind.cli.parser import HelpFormatter

    def add(name: str, text: str, example: str, run: Callable[..., int]) -> argparse.ArgumentParser:
        added = below.add_parser(name, help=text, formatter_class=HelpFormatter, allow_abbrev=False)
        describe(added, f"{text[0].upper()}{text[1:]}.", examples=(example,), run=run)
        add_shared_options(added, level=2, suppress=SUPPRESS)
        return added

    return add


def _version() -> str:
    from plainmind import __version__

    return f"plainmind {__version__}"


# More than any note or question; a pipe that never ends must not fill the memory of the machine.
MOST_BYTES = 64_000_000


def open_memory(
    arguments: argparse.Namespace,
    *,
    looks_around: bool = True,
    assumed: Mapping[str, Any] | None = None,
    broken: list[ConfigError] | None = None,
) -> Memory:
    """Open the memory that the options name, or else the settings, or else what lies where this is typed.

    Without `looks_around` the last does not count: what other programs start is started anywhere; what is `assumed` for
    them holds where nobody has set it. What is `broken` in the settings is an error, or is put into that list.
    """
    from plainmind.memory.memory import Memory

    if not looks_around or broken is not None:
        return Memory.from_environment(
            os.environ,
            cwd=os.getcwd(),
            workspace=arguments.workspace,
            home=arguments.home,
            config=arguments.settings,
            looks_around=looks_around,
            assumed=assumed,
            broken=broken,
        )
    return Memory(arguments.workspace, home=arguments.home, config=arguments.settings)


def stands_beside(memory: Memory) -> bool:
    """Whether the folder one is in holds Markdown of its own, and yet the memory is the one that is used everywhere."""
    if memory.workspace_origin.kind != "default":
        return False
    from plainmind.config.load import is_folder_of_notes
    from plainmind.files.safe_open import user_home_or_root

    return is_folder_of_notes(os.getcwd(), user_home_or_root())


@contextmanager
def looking_beside(memory: Memory) -> Iterator[None]:
    """Where a note is not there, say that the folder one is in may have it."""
    try:
        yield
    except (NotFound, PathNotAllowed) as error:
        if stands_beside(memory):
            here = "the folder you are in holds Markdown too: --workspace . looks there"
            raise NotFound(
                f"{error}, in {memory.workspace}", hint=f"{error.hint}; {here}" if error.hint else here
            ) from error
        raise


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
