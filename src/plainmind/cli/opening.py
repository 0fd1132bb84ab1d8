"""From the command line to an open memory, and texts from arguments, files and stdin."""

from __future__ import annotations

import argparse
import os
import sys

from plainmind.base.errors import PlainmindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.facade import Memory

# More than any note or question; a pipe that never ends must not fill the memory of the machine.
MOST_BYTES = 64_000_000


def opened(arguments: argparse.Namespace) -> Memory:
    """Open the memory that the options name."""
    from plainmind.memory.facade import Memory

    return Memory(arguments.workspace, home=arguments.home, config=arguments.settings)


def text_of(words: list[str]) -> str:
    """Join the words of an argument; `-` alone is what stdin has to say."""
    if words == ["-"]:
        return text_of_stdin()
    return checked(" ".join(words))


def text_of_stdin() -> str:
    """Read stdin to its end, as UTF-8 whatever the locale says."""
    return _decoded(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")


def text_of_file(path: str) -> str:
    """Read a text file; `-` is stdin."""
    if path == "-":
        return text_of_stdin()
    with open(path, "rb") as file:
        return _decoded(file.read(MOST_BYTES + 1), path)


def checked(argument: str) -> str:
    """Refuse an argument that is not text: bytes that are no UTF-8 would be lost on the way."""
    try:
        return os.fsencode(argument).decode()  # the bytes that were typed, whatever the locale made of them
    except UnicodeError:
        if not any("\ud800" <= sign <= "\udfff" for sign in argument):
            return argument
        raise PlainmindError(
            "the text on the command line is not valid UTF-8", hint="save it as UTF-8 and give it through `-`"
        ) from None


def _decoded(data: bytes, origin: str) -> str:
    if len(data) > MOST_BYTES:
        raise PlainmindError(f"{origin} is longer than {MOST_BYTES:,} bytes", hint="give less at once")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlainmindError(
            f"{origin} is not valid UTF-8 (byte {error.start + 1:,})",
            hint="convert it first, for example with `iconv -f latin1 -t utf-8`",
        ) from None
