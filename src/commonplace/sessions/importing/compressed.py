"""Zstandard, where a library for it is installed; none is needed for anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from commonplace.errors import CommonplaceError
from commonplace.files.system import SYSTEM, read_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

MOST_BYTES = 1 << 30  # a small file can unpack to anything
_MOST_PACKED_BYTES = 1 << 28
_LIBRARIES = ("compression.zstd", "backports.zstd", "zstandard")

Unpack: TypeAlias = Callable[[bytes, int], bytes]


class CannotUnpack(CommonplaceError):
    """No library for Zstandard is installed, or the data is not that."""


def unpacked(data: bytes, *, most: int = MOST_BYTES) -> bytes:
    """Unpack a Zstandard frame. Raises CannotUnpack."""
    unpack = _library()
    try:
        plain = unpack(data, most)
    except Exception as error:  # each library has an error of its own
        raise CannotUnpack(f"it cannot be unpacked: {error}", hint="the file may be damaged") from error
    if len(plain) > most:
        raise CannotUnpack(f"it unpacks to more than {most:,} bytes", hint="unpack it with `zstd -d` first")
    return plain


@contextmanager
def decompressed(fd: int, path: str) -> Iterator[int]:
    """Unpack a file into one without a name, and give that."""
    from tempfile import TemporaryFile

    _library()  # before anything is read in vain
    size = SYSTEM.fstat(fd).st_size
    if size > _MOST_PACKED_BYTES:
        raise CannotUnpack(f"{path} is too large to be unpacked here", hint="unpack it with `zstd -d` first")
    plain = unpacked(read_range(SYSTEM, fd, 0, size))
    with TemporaryFile() as file:
        file.write(plain)
        file.flush()
        yield file.fileno()


def _library() -> Unpack:
    for name in _LIBRARIES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        if name == "zstandard":
            return lambda data, most: bytes(module.ZstdDecompressor().stream_reader(data).read(most + 1))
        return lambda data, most: bytes(module.ZstdDecompressor().decompress(data, most + 1))
    raise CannotUnpack(
        "it is compressed with Zstandard, and no library for that is installed",
        hint="install the package `zstandard` beside commonplace and import again",
    )
