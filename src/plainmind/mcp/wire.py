"""Standard input and output taken out of everybody's reach, so that only messages go over them."""

from __future__ import annotations

import fcntl
import os
import sys

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value


@value
class Wire:
    """Where messages come in, and where they go out."""

    reads: int
    writes: int


def take_wire() -> Wire:
    """Take both for messages: from now on a `print` goes to stderr, a prompt reads nothing, and so do children."""
    if _is_nothing(0) or _is_nothing(1):  # or closed: the command line opens on nothing what was closed
        raise PlainmindError(
            "standard input or output is closed or /dev/null, and MCP is spoken over both",
            hint="let an MCP client start this command, or serve over HTTP: plainmind mcp --http",
        )
    sys.stdout.flush()
    reads = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    writes = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    return Wire(reads, writes)


def _is_nothing(descriptor: int) -> bool:
    return os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
