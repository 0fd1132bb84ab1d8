"""The second process of a large sync: takes documents from its standard input and answers with prepared chunks.

Messages are marshalled tuples behind their length, for both sides are the same Python. It lives as long as its input
is open, and not longer than the process that started it.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array

from plainmind.base.model import Chunk, Document, EmbeddedChunk, EmbedderIdentity
from plainmind.embed.protocol import EmbeddingSettings, create_embedder
from plainmind.index.chunks import ChunkingSettings
from plainmind.index.preparing import Preparation
from plainmind.text.terms import TERMS_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, BinaryIO

_LENGTH_BYTES = 8
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_KILL = 9


def send(pipe: BinaryIO, message: Any) -> None:
    """Write one message."""
    data = marshal.dumps(message)
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read one message. Raises EOFError when the other side is gone."""
    length = int.from_bytes(_exactly(pipe, _LENGTH_BYTES), "little")
    return marshal.loads(_exactly(pipe, length))  # noqa: S302 (from our own process)


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


def greeting(chunking: ChunkingSettings, identity: EmbedderIdentity) -> tuple[str, ...]:
    """What both sides must agree on, or their chunks would not belong into one index."""
    return chunking.fingerprint, TERMS_VERSION, repr(identity)


def pack_documents(documents: Sequence[Document]) -> list[tuple[Any, ...]]:
    """Make documents fit for a message."""
    return [(each.path, each.source, each.text, each.day, each.line_map, each.days) for each in documents]


def pack_chunks(documents: Sequence[Sequence[EmbeddedChunk]]) -> list[list[tuple[Any, ...]]]:
    """Make chunks fit for a message: terms as one string, for none has a space in it; vectors as bytes."""
    return [
        [
            (
                *(
                    each.chunk.start_line,
                    each.chunk.end_line,
                    each.chunk.text,
                    each.chunk.context,
                    each.chunk.day,
                ),
                None if each.vector is None else each.vector.tobytes(),
                " ".join(each.terms),
            )
            for each in chunks
        ]
        for chunks in documents
    ]


def unpack_chunks(documents: Sequence[Document], packed: Any) -> list[list[EmbeddedChunk]]:
    """Undo `pack_chunks`."""
    return [list(_unpacked(document, chunks)) for document, chunks in zip(documents, packed, strict=True)]


def _unpacked(document: Document, packed: Any) -> Iterator[EmbeddedChunk]:
    path, source = document.path, document.source
    for ordinal, (first, last, text, context, day, vector, terms) in enumerate(packed):
        yield EmbeddedChunk(
            Chunk(path, source, ordinal, first, last, text, context, day),
            None if vector is None else array("f", vector),
            tuple(terms.split(" ")) if terms else (),
        )


def main() -> None:
    """Answer one message after the other until the input ends."""
    import signal
    import threading
    from queue import SimpleQueue

    _end_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever has started it decides what an interrupt means
    told, answers = sys.stdin.buffer, sys.stdout.buffer
    provider, *sizes = receive(told)
    preparation = Preparation(ChunkingSettings(*sizes), create_embedder(provider, EmbeddingSettings()))
    preparation.embedder.embed_documents(
        ["ready"]
    )  # what it takes to embed is loaded before anybody counts on us
    send(answers, greeting(preparation.chunking, preparation.embedder.identity))
    # The next documents are taken in while these are prepared, so that neither side waits for the other to read.
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(
        target=_take_in, args=(told, waiting), name="plainmind-worker-input", daemon=True
    ).start()
    while (message := waiting.get()) is not None:
        prepared = preparation.prepare([Document(*fields) for fields in message])
        send(answers, (pack_chunks(prepared.documents), prepared.failure))


def _take_in(told: BinaryIO, waiting: Any) -> None:
    try:
        while True:
            waiting.put(receive(told))
    except (EOFError, OSError):
        waiting.put(None)


def _end_with(parent: int) -> None:
    """Ask to be killed when the parent dies: a fork of it could hold our input open."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _KILL)
    if os.getppid() != parent:
        raise SystemExit(1)
