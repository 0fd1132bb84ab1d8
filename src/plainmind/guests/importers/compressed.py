"""Zstandard, where a library for it is installed; none is needed for anything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from plainmind.base.errors import PlainmindError
from plainmind.base.extras import install_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, TypeAlias

MOST_BYTES = 1 << 30  # a small file can unpack to anything
_BLOCK_BYTES = 1 << 20
_LIBRARIES = ("compression.zstd", "backports.zstd", "zstandard")

Opened: TypeAlias = "Callable[[IO[bytes]], IO[bytes]]"  # what reads the plain bytes of a packed file


class CannotUnpack(PlainmindError):
    """No library for Zstandard is installed, or the data is not that."""


def unpacked(data: bytes, *, most: int = MOST_BYTES) -> bytes:
    """Unpack what is small. Raises CannotUnpack."""
    from io import BytesIO

    return b"".join(_blocks(BytesIO(data), most))


@contextmanager
def decompressed(fd: int) -> Iterator[int]:
    """Unpack a file, block by block, into one without a name, and give that. Raises CannotUnpack."""
    from tempfile import TemporaryFile

    with open(os.dup(fd), "rb") as packed, TemporaryFile() as file:
        packed.seek(0)
        file.writelines(_blocks(packed, MOST_BYTES))
        file.flush()
        yield file.fileno()


def _blocks(packed: IO[bytes], most: int) -> Iterator[bytes]:
    opened = _library()
    left = most
    try:
        plain = opened(packed)
        while block := plain.read(_BLOCK_BYTES):
            left -= len(block)
            if left < 0:
                break
            yield block
    except Exception as error:  # each library has an error of its own
        raise CannotUnpack(f"it cannot be unpacked: {error}", hint="the file may be damaged") from error
    if left < 0:
        raise CannotUnpack(f"it unpacks to more than {most:,} bytes", hint="unpack it with `zstd -d` first")


def _library() -> Opened:
    for name in _LIBRARIES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        if name == "zstandard":
            # What was added to a packed file later is a frame of its own.
            return lambda packed: module.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        opened: Opened = module.ZstdFile
        return opened
    raise CannotUnpack(
        "it is compressed with Zstandard, and no library for that is installed",
        hint=f"install one and import again: {install_hint('zstd')}",
    )
