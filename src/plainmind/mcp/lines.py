"""Lines in and out of descriptors, without threads: a program that waits here can be told to end at any time."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel

MOST_BYTES = 4_000_000  # of one message
_AT_ONCE = 65_536
# What a pipe or socket takes without blocking once it says that it takes something.
_PIECE = 4_096


class TooLong(Exception):
    """A line was longer than any message may be; what was left of it has been passed over."""


async def lines_from(source: AsyncIterable[bytes]) -> AsyncIterator[bytes | TooLong]:
    """Yield each line, without its end and without empty ones, until there is no more."""
    rest = bytearray()
    is_passing_over = False
    async for data in source:
        *ended, last = data.split(b"\n")
        for line in ended:
            rest += line
            if is_passing_over or len(rest) > MOST_BYTES:
                yield TooLong()
            elif rest.strip():
                yield bytes(rest)
            rest.clear()
            is_passing_over = False
        rest += last
        if len(rest) > MOST_BYTES:
            is_passing_over = True
            rest.clear()
    if is_passing_over:
        yield TooLong()
    elif rest.strip():
        yield bytes(rest)


async def read_from(descriptor: int) -> AsyncIterator[bytes]:
    """Yield what comes, until the other side closes."""
    while data := await _read(descriptor):
        yield data


async def write_line(descriptor: int, line: bytes) -> None:
    """Write one line, waiting while the other side does not read. Raises BrokenPipeError when it is gone."""
    left = memoryview(line + b"\n")
    while left:
        await _until_it_can(anyio.wait_writable, descriptor)
        left = left[os.write(descriptor, left[:_PIECE]) :]


async def _read(descriptor: int) -> bytes:
    try:
        await _until_it_can(anyio.wait_readable, descriptor)
        return os.read(descriptor, _AT_ONCE)
    except ConnectionResetError:
        return b""


async def _until_it_can(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a regular file cannot be waited for, and never blocks
        await anyio.lowlevel.checkpoint()
