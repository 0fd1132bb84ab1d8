"""The body of an answer, in pieces: never more than it may have, and noticed when it ends too early."""

from __future__ import annotations

import http.client
import zlib
from collections.abc import Iterator, Mapping

from plainmind.guests.remote.failures import AnswerTooLarge, AnswerUnreadable, ConnectionLost

_PIECE = 65_536


def pieces_of(response: http.client.HTTPResponse, cap: int, host: str) -> Iterator[bytes]:
    """Read at most `cap` bytes. Raises AnswerTooLarge or ConnectionLost."""
    if response.length is not None and response.length > cap:
        raise _too_large(cap, host)
    size = 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > cap:
            raise _too_large(cap, host)
        yield piece
    if response.length:
        raise ConnectionLost(
            f"{host} closed the connection in the middle of an answer", hint="it is asked again by itself"
        )


def decoded(pieces: Iterator[bytes], fields: Mapping[str, str], cap: int, host: str) -> Iterator[bytes]:
    """Undo gzip, the one encoding that we ask for."""
    encoding = fields.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        yield from pieces
    elif encoding in ("gzip", "x-gzip"):
        yield from _unzipped(pieces, cap, host)
    else:
        raise AnswerUnreadable(f"{host} answered in an encoding that was not asked for")


def _unzipped(pieces: Iterator[bytes], cap: int, host: str) -> Iterator[bytes]:
    """Decompress at most `cap` bytes, whatever a few bytes of zeros claim to be."""
    unzip = zlib.decompressobj(wbits=31)
    size = 0
    try:
        for piece in pieces:
            rest = piece
            while rest:
                plain = unzip.decompress(rest, _PIECE)
                size += len(plain)
                if size > cap:
                    raise _too_large(cap, host)
                yield plain
                rest = unzip.unconsumed_tail
                if unzip.eof:
                    rest = b""
    except zlib.error:
        raise AnswerUnreadable(f"{host} answered with damaged compression") from None
    if not unzip.eof:
        raise ConnectionLost(
            f"{host} closed the connection in the middle of an answer", hint="it is asked again by itself"
        )


def _too_large(cap: int, host: str) -> AnswerTooLarge:
    return AnswerTooLarge(
        f"{host} answered with more than {cap // 1024:,} KB, which no answer to this request needs",
        hint="check `remote.baseUrl`: is it the address of an embeddings API?",
    )
