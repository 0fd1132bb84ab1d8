"""Searches of an index in PostgreSQL beside the same in SQLite: python benchmarks/postgres.py --chunks 100000.

Without --dsn it starts the server that the tests use; with it, the role must be allowed to create schemas.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from speed.corpus import Corpus, Question
from speed.workload import (
    EVERYTHING,
    NEAREST,
    WARM_UP,
    as_vector,
    exact_neighbours,
    fill,
    search,
)

from plainmind.base.model import EmbedderIdentity, IndexFingerprint
from plainmind.index.protocol import IndexStore, vector_candidates
from plainmind.index.store import open_store

SCHEMA = "plainmind_bench"
MOST = 48  # up to which the protocol promises 98 of 100


def main() -> int:
    """Fill both stores with the same corpus, ask both the same questions, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--questions", type=int, default=160)
    parser.add_argument("--dsn", help="a server of yours")
    parser.add_argument("--stores", default="sqlite,postgres")
    asked = parser.parse_args()
    dsn = asked.dsn or server_for_tests()
    with tempfile.TemporaryDirectory() as folder:
        for driver in asked.stores.split(","):
            options = {"dsn": dsn, "schema": SCHEMA, "agent": "bench"} if driver == "postgres" else {}
            place = os.path.join(folder, "bench", f"{asked.chunks}x{asked.dims}")
            store = open_store(driver, folder=place, **options)
            try:
                report(driver, store, Corpus(asked.chunks, asked.dims), asked.questions)
            finally:
                store.close()
    return 0


def server_for_tests() -> str:
    """Start the server that the tests use; it stops when this process ends."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    support = importlib.import_module("tests.support.postgres_server")
    return str(support.running_server().dsn)


def report(driver: str, store: IndexStore, corpus: Corpus, questions: int) -> None:
    """Fill one store, unless it is filled, and search it."""
    made = IndexFingerprint(EmbedderIdentity("synthetic", "clusters", dims=corpus.dims), "bench", "1", 1)
    with store.reading() as reader:
        is_filled = reader.fingerprint() == made
    if not is_filled:
        begun = time.perf_counter()
        filled = fill(corpus, store, made)
        seconds = time.perf_counter() - begun - filled.making_seconds
        print(
            f"{driver}: {corpus.chunks / seconds:,.0f} chunks a second into the store, {seconds:.1f} s in all"
        )
    found = search(corpus, store, corpus.questions(questions), budget_s=20.0)
    for kind, times in found.times.items():
        spent = (
            f"p50 {times.p50_ms:.1f} ms, p95 {times.p95_ms:.1f} ms, {times.cpu_p50_ms:.1f} ms in this process"
        )
        print(f"{driver}: {kind:14} {spent}")
    asked = corpus.questions(questions)[WARM_UP:]
    for count in (NEAREST, MOST):
        share = recall(corpus, store, asked, count)
        print(f"{driver}: finds {share:.3f} of the nearest {count}", flush=True)


def recall(corpus: Corpus, store: IndexStore, questions: Sequence[Question], count: int) -> float:
    """The share of the truly nearest chunks that a store finds."""
    shares = []
    with store.reading() as reader:
        for question, nearest in zip(
            questions, exact_neighbours(corpus, questions, count=count), strict=True
        ):
            found = vector_candidates(reader, as_vector(question.vector), where=EVERYTHING, limit=count)
            places = {(each.chunk.path, each.chunk.ordinal) for each in found}
            shares.append(len(places & {corpus.place(chunk) for chunk in nearest}) / count)
    return sum(shares) / len(shares)


if __name__ == "__main__":
    sys.exit(main())
