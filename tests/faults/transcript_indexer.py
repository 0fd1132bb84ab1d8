"""A process that indexes a folder of transcripts over and over, in small pieces, until it is killed or told to end."""

from __future__ import annotations

import os
import sys

from plainmind.embed.protocol import EmbeddingSettings, create_embedder
from plainmind.files.system import Erasures
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.plan import ChunkingSettings
from plainmind.index.sync import Disappearances, Indexer
from plainmind.sessions.transcripts import Transcripts

PIECE_CHARACTERS = 2_000


def indexer_of(sessions: str, index: str, store: SqliteStore) -> Indexer:
    return Indexer(
        [Transcripts(sessions, piece_characters=PIECE_CHARACTERS)],
        store,
        create_embedder("builtin", EmbeddingSettings()),
        ChunkingSettings(),
        Disappearances(index),
        erasures=Erasures(index),
    )


def main(sessions: str, index: str, end: str) -> None:
    store = SqliteStore(index)
    indexer = indexer_of(sessions, index, store)
    while not os.path.exists(end):
        report = indexer.sync(thorough=False)
        assert not report.failed, report.failed
        os.write(1, b"synced\n")
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
