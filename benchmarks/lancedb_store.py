"""An index in LanceDB beside the same in SQLite: python benchmarks/lancedb_store.py --chunks 100000.

Each store is filled by one process and searched by another, so that the memory of a search is not that of the build.
With --dataset the questions of a dataset (a folder for `plainmind bench eval`) are asked of both as well.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from speed.corpus import LAST_DAY, Corpus
from speed.resident import taken
from speed.workload import (
    EVERYTHING,
    KnownVectors,
    as_vector,
    exact_neighbours,
    fill,
    search,
)

from plainmind.base.model import EmbedderIdentity, IndexFingerprint
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.runner import Asking, evaluate, opened_memory, summarise
from plainmind.index.protocol import IndexStore, vector_candidates
from plainmind.index.store import open_store
from plainmind.search.engine import SearchEngine, SearchSettings

NEAREST = 48
MEGABYTE = 1_000_000


def main() -> int:
    """Let a process of its own do each task, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--questions", type=int, default=160)
    parser.add_argument("--stores", default="sqlite,lancedb")
    parser.add_argument("--dataset", help="a dataset of questions, such as LoCoMo")
    parser.add_argument("--task", choices=sorted(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help="keep the indexes there, and use those that are there already")
    asked = parser.parse_args()
    if asked.task:
        print(json.dumps(TASKS[asked.task](asked)))
        return 0
    with tempfile.TemporaryDirectory() as thrown_away:
        for driver in asked.stores.split(","):
            folder = os.path.join(asked.folder or thrown_away, driver)
            tasks = [] if os.path.isdir(folder) else ["build"]
            for task in [*tasks, "search", "ask", *(["answer"] if asked.dataset else [])]:
                own = ["--task", task, "--stores", driver, "--folder", folder]
                command = [sys.executable, __file__, *sys.argv[1:], *own]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
                for name, figure in json.loads(done.stdout).items():
                    print(f"{driver:8} {name:24} {figure}", flush=True)
    return 0


def build(asked: argparse.Namespace) -> Mapping[str, Any]:
    """Fill a store."""
    corpus, store = opened(asked)
    made = IndexFingerprint(EmbedderIdentity("synthetic", "clusters", dims=corpus.dims), "bench", "1", 1)
    filled = fill(corpus, store, made)
    store.close()
    size = sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(asked.folder)
        for name in names
    )
    return {
        "build": f"{filled.store.chunks_per_second:,.0f} chunks a second,"
        f" {filled.store.cpu_seconds:.1f} s of computing",
        "build, most memory": f"{(taken()['peak'] or 0) / MEGABYTE:.0f} MB",
        "on disk": f"{size / MEGABYTE:.0f} MB, {size / filled.text_bytes:.2f} of the text",
    }


def searched(asked: argparse.Namespace) -> Mapping[str, Any]:
    """Search a store."""
    corpus, store = opened(asked)
    questions = corpus.questions(asked.questions)
    found = search(corpus, store, questions, budget_s=20.0)
    figures = {
        kind: f"p50 {times.p50_ms:.1f} ms, p95 {times.p95_ms:.1f} ms, {times.cpu_p50_ms:.1f} ms of computing"
        for kind, times in found.times.items()
    }
    figures[f"nearest {NEAREST}"] = f"{recall(corpus, store, asked.questions):.4f}"
    store.close()
    return figures


def asked_only(asked: argparse.Namespace) -> Mapping[str, Any]:
    """Ask every question once, and do nothing else that takes memory."""
    corpus, store = opened(asked)
    questions = corpus.questions(asked.questions)
    with store.reading() as reader:
        made = reader.fingerprint()
    assert made is not None
    engine = SearchEngine(store, KnownVectors(questions, made.embedder), SearchSettings())
    for question in questions:
        engine.search(question.text, where=EVERYTHING, today=LAST_DAY)
    store.close()
    return {"search, most memory": f"{(taken()['peak'] or 0) / MEGABYTE:.0f} MB"}


def answered(asked: argparse.Namespace) -> Mapping[str, Any]:
    """Ask the questions of a dataset."""
    asking = Asking(settings={"store.driver": asked.stores})
    summary = summarise(evaluate(read_dataset(asked.dataset), opened_memory, asking).answers)
    return {
        "recall@6": f"{summary.overall['recall6']:.4f} of {summary.count} questions, {summary.mean_ms:.1f} ms each"
    }


def recall(corpus: Corpus, store: IndexStore, count: int) -> float:
    """The share of the truly nearest that a store finds."""
    questions = corpus.questions(count)
    shares = []
    for question, nearest in zip(questions, exact_neighbours(corpus, questions, count=NEAREST), strict=True):
        with store.reading() as reader:
            near = vector_candidates(reader, as_vector(question.vector), where=EVERYTHING, limit=NEAREST)
        places = {(each.chunk.path, each.chunk.ordinal) for each in near}
        shares.append(sum(corpus.place(chunk) in places for chunk in nearest) / NEAREST)
    return sum(shares) / len(shares)


def opened(asked: argparse.Namespace) -> tuple[Corpus, IndexStore]:
    """The corpus, and the store of it."""
    return Corpus(asked.chunks, asked.dims), open_store(asked.stores, folder=asked.folder)


TASKS: Mapping[str, Callable[[argparse.Namespace], Mapping[str, Any]]] = {
    "build": build,
    "search": searched,
    "ask": asked_only,
    "answer": answered,
}


if __name__ == "__main__":
    sys.exit(main())
