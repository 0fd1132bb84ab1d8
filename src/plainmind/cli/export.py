"""`export`: the whole memory in one file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import SCHEMA_VERSION, Console, plural, size_in_words
from plainmind.cli.options import describe, open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from plainmind.memory.workspace_setup import ExportedFile


def add_export(parser: argparse.ArgumentParser) -> None:
    """Say what `export` takes."""
    describe(
        parser,
        """\
Write every file of the memory into one: JSON lines (path, text, day, sha256, bytes) or a zip of the Markdown files.

Goes to stdout, or to the file that --output names; an existing file is not overwritten.""",
        examples=(
            "plainmind export > memory.jsonl",
            "plainmind export --format zip --output memory.zip",
        ),
        run=run_export,
    )
    parser.add_argument("--format", choices=("jsonl", "zip"), default="jsonl", help="what to write (jsonl)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (stdout)")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def run_export(arguments: argparse.Namespace, console: Console) -> int:
    """Write all files."""
    with open_memory(arguments) as memory:
        files = memory.export()
        if arguments.output is None:
            if arguments.format == "zip" and console.is_terminal:
                raise PlainmindError("a zip file is nothing for a terminal", hint="add --output memory.zip")
            sys.stdout.flush()
            _write(files, arguments.format, sys.stdout.buffer)
            return 0
        with new_file(os.path.abspath(arguments.output), overwrite=arguments.force) as stream:
            count = _write(files, arguments.format, stream)
    size = os.path.getsize(arguments.output)
    if console.json:
        fields = {"output": os.path.abspath(arguments.output), "format": arguments.format}
        console.result({**fields, "files": count, "bytes": size})
    else:
        console.say(f"wrote {plural(count, 'file')} to {arguments.output} ({size_in_words(size)})")
    return 0


def _write(files: Iterator[ExportedFile], form: str, stream: IO[bytes]) -> int:
    return _write_zip(files, stream) if form == "zip" else _write_lines(files, stream)


def _write_lines(files: Iterator[ExportedFile], stream: IO[bytes]) -> int:
    import json

    count = 0
    for file in files:
        count += 1
        fields = {
            "schema_version": SCHEMA_VERSION,
            "path": file.path,
            "text": file.text,
            "day": file.day,
            "sha256": file.sha256,
            "bytes": file.bytes,
        }
        stream.write(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    stream.flush()
    return count


def _write_zip(files: Iterator[ExportedFile], stream: IO[bytes]) -> int:
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    count = 0
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        for file in files:
            count += 1
            # A fixed time: the same memory gives the same bytes.
            entry = ZipInfo(file.path.lstrip("/"), date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.raw)
    return count


@contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Write beside the target and rename: a half-written export never has the name that was asked for."""
    from tempfile import mkstemp

    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise PlainmindError(f"there is no folder {folder}", hint="make it, or choose another place")
    if os.path.lexists(path):
        _check_overwriting(path, overwrite=overwrite)
    descriptor, temporary = mkstemp(dir=folder, prefix=".export-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _give_name(temporary, path, overwrite=overwrite)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _give_name(temporary: str, path: str, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(temporary, path)  # unlike a rename, refuses when something is there
        except FileExistsError:
            _check_overwriting(path, overwrite=False)
        except OSError:
            if os.path.lexists(path):
                _check_overwriting(path, overwrite=False)
        else:
            return
    # Asked for, or a file system without hard links.
    os.replace(temporary, path)


def _check_overwriting(path: str, *, overwrite: bool) -> None:
    if os.path.lexists(path) and not os.path.isfile(path):
        raise PlainmindError(f"{path} is not a file; nothing was written", hint="choose another name")
    if not overwrite:
        raise PlainmindError(
            f"{path} exists already; nothing was written", hint="choose another name, or add --force"
        )
