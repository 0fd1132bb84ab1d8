"""`history` and `restore`: what files were before."""

from __future__ import annotations

import argparse
import sys

from plainmind.base.errors import NotFound
from plainmind.cli.console import Console
from plainmind.cli.opening import opened
from plainmind.cli.options import describe, whole_number
from plainmind.cli.wording import size_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.files.history import Version
    from plainmind.memory.facade import Memory


def add_history(parser: argparse.ArgumentParser) -> None:
    """Say what `history` takes."""
    describe(
        parser,
        """\
Show what was changed through plainmind, newest first. Versions marked * can be shown and restored.

Only reads. Old versions are kept in ~/.plainmind for 90 days, unless the history's settings say otherwise.""",
        examples=(
            "plainmind history MEMORY.md",
            "plainmind history --show 01JM2V7Q9Z5W8K3B4N6P7R8S9T",
        ),
        run=run_history,
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="only changes of this file")
    parser.add_argument(
        "-n", dest="most", metavar="N", type=whole_number(1), default=30, help="at most N (30)"
    )
    parser.add_argument("--show", metavar="ID", help="print what the file was in this version")


def run_history(arguments: argparse.Namespace, console: Console) -> int:
    """Print the changes, or one version."""
    with opened(arguments) as memory:
        if arguments.show is not None:
            return _show(memory, arguments.show, console)
        path = arguments.path and arguments.path.removeprefix("./")
        versions = memory.history(path)[: arguments.most]
    if console.json:
        console.result({"versions": [_as_json(version) for version in versions]})
        return 0
    width = max((len(version.operation) for version in versions), default=0)
    for version in versions:
        mark = "*" if version.available else " "
        when = version.at[:19].replace("T", " ")
        place = console.styled(console.shown(version.path), "path")
        console.answer(
            f"{version.id} {mark} {when}  {version.operation:{width}} {size_in_words(version.length):>9}  {place}"
        )
    if not versions:
        console.note(f"nothing was changed {'in ' + path if path else 'through plainmind'} yet")
    return 0


def _show(memory: Memory, version_id: str, console: Console) -> int:
    data = memory.read_version(version_id)
    if console.json:
        version = next((known for known in memory.history() if known.id == version_id), None)
        if version is None:
            raise NotFound(f"there is no version `{version_id}`", hint="`plainmind history` lists them")
        console.result({**_as_json(version), "text": data.decode("utf-8", "replace")})
    elif console.is_terminal:
        console.answer(console.shown(data.decode("utf-8", "replace").removesuffix("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)  # to the byte: it may be on its way into a file
    return 0


def _as_json(version: Version) -> dict[str, Any]:
    return {
        "id": version.id,
        "at": version.at,
        "path": version.path,
        "operation": version.operation,
        "bytes": version.length,
        "hash": version.hash,
        "previous": version.previous,
        "available": version.available,
    }


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Say what `restore` takes."""
    describe(
        parser,
        """\
Bring back what a file was. What it is now goes into the history first, so this can be undone too.

Changes the file in the workspace.""",
        examples=("plainmind history MEMORY.md", "plainmind restore 01JM2V7Q9Z5W8K3B4N6P7R8S9T"),
        run=run_restore,
    )
    parser.add_argument("version", metavar="ID", help="a version marked * in `plainmind history`")


def run_restore(arguments: argparse.Namespace, console: Console) -> int:
    """Write an old version over the file."""
    with opened(arguments) as memory:
        restored = memory.restore(arguments.version)
    if console.json:
        console.result({"path": restored.path, "hash": restored.hash})
    else:
        console.say(f"restored {console.styled(restored.path, 'path')}")
    return 0
