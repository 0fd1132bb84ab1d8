"""The same index in SQLite, LanceDB and PostgreSQL: python benchmarks/stores.py --chunks 100000.

Each store is filled by one process and searched by others, so that the memory of a search is not that of the build.
PostgreSQL is the server that the tests use, or the one of --dsn, whose role must be allowed to create schemas.
With --dataset the questions of a dataset (a folder for `plainmind bench eval`) are asked of all as well.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from page_parts import markdown_table, publish
from speed.corpus import LAST_DAY, Corpus
from speed.report import TIMES, times
from speed.resident import taken
from speed.timing import machine
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

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
START = "<!-- other stores: written by `make bench`, edits here are lost -->"
END = "<!-- other stores: end -->"
STORES = {"sqlite": "SQLite", "lancedb": "LanceDB", "postgres": "PostgreSQL"}
SCHEMA = "plainmind_bench"
MOST = 48  # up to which the protocol promises 98 of 100
MEGABYTE = 1_000_000

Figures = Mapping[str, str]


def main() -> int:
    """Let processes of their own fill and search each store; print what it took, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="+", default=[100_000])
    parser.add_argument("--dims", type=int, default=256)
    parser.add_argument("--questions", type=int, default=160)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--dsn", help="a PostgreSQL of yours")
    parser.add_argument("--dataset", help="a dataset of questions, such as LoCoMo")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/performance.md")
    parser.add_argument("--task", choices=sorted(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.task:
        print(json.dumps(TASKS[asked.task](asked)))
        return 0
    sizes = {chunks: measure(asked, chunks) for chunks in asked.chunks}
    part = part_of(sizes, asked, dt.datetime.now(dt.UTC).date())
    print(part)
    if asked.record:
        publish(PAGE, part, start=START, end=END)
        print(f"\nwritten to {os.path.relpath(PAGE)}")
    return 0


def measure(asked: argparse.Namespace, chunks: int) -> Mapping[str, Figures]:
    """What each store took for a corpus of one size."""
    tasks = ["build", "search", "ask", *(["answer"] if asked.dataset else [])]
    dsn = (asked.dsn or server_for_tests()) if "postgres" in asked.stores else ""
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="plainmind-stores-") as folder:
        for driver in asked.stores:
            figures: dict[str, str] = {}
            for task in tasks:
                print(f"{driver}, {chunks:,} chunks: {task}", file=sys.stderr, flush=True)
                place = os.path.join(folder, driver)
                figures |= in_a_process(task, asked, stores=driver, chunks=str(chunks), folder=place, dsn=dsn)
            found[driver] = figures
    return found


def in_a_process(task: str, asked: argparse.Namespace, **own: str) -> Figures:
    """Do one task in a process of its own, for a store, a size and a place; its figures."""
    options = {"task": task, "dims": str(asked.dims), "questions": str(asked.questions), **own}
    options |= {"dataset": asked.dataset} if asked.dataset else {}
    words = [word for name, option in options.items() for word in (f"--{name}", option)]
    done = subprocess.run(
        [sys.executable, __file__, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def server_for_tests() -> str:
    """Start the server that the tests use; it stops when this process ends."""
    sys.path.insert(0, str(ROOT))
    return str(importlib.import_module("tests.support.postgres_server").running_server().dsn)


def build(asked: argparse.Namespace) -> Figures:
    """Fill a store."""
    corpus, store = opened(asked)
    made = IndexFingerprint(EmbedderIdentity("synthetic", "clusters", dims=corpus.dims), "bench", "1", 1)
    filled = fill(corpus, store, made)
    store.close()
    size = sum(file.stat().st_size for file in Path(asked.folder).rglob("*") if file.is_file())
    on_disk = f"{size / MEGABYTE:,.0f} MB, {size / filled.text_bytes:.2f} × the text"
    return {
        "chunks a second into the store": f"{filled.store.chunks_per_second:,.0f}",
        "most memory while it is filled": f"{(taken()['peak'] or 0) / MEGABYTE:,.0f} MB",
        "on disk": "in the server" if asked.stores == ["postgres"] else on_disk,
    }


NAMES = {
    "hybrid": "hybrid search",
    "keyword": "keyword search",
    "vector": "vector search",
    "keywordLookup": "looking up words alone",
    "vectorLookup": "looking up vectors alone",
}


def searched(asked: argparse.Namespace) -> Figures:
    """Search a store."""
    corpus, store = opened(asked)
    found = search(corpus, store, corpus.questions(asked.questions), budget_s=20.0)
    figures = {NAMES[kind]: times(measured) for kind, measured in found.times.items()}
    figures["nearest 24 that are found"] = f"{found.recall:.4f}"
    figures[f"nearest {MOST}"] = f"{recall(corpus, store, asked.questions):.4f}"
    store.close()
    return figures


def asked_only(asked: argparse.Namespace) -> Figures:
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
    return {"most memory of a process that searches": f"{(taken()['peak'] or 0) / MEGABYTE:,.0f} MB"}


def answered(asked: argparse.Namespace) -> Figures:
    """Ask the questions of a dataset."""
    (driver,) = asked.stores
    settings = {"store.driver": driver, **({"store.dsn": asked.dsn} if driver == "postgres" else {})}
    summary = summarise(
        evaluate(read_dataset(asked.dataset), opened_memory, Asking(settings=settings)).answers
    )
    return {f"recall@6 of {summary.count:,} questions": f"{summary.overall['recall6']:.4f}"}


def recall(corpus: Corpus, store: IndexStore, count: int) -> float:
    """The share of the truly nearest that a store finds, where many are wanted."""
    questions = corpus.questions(count)
    shares = []
    for question, nearest in zip(questions, exact_neighbours(corpus, questions, count=MOST), strict=True):
        with store.reading() as reader:
            near = vector_candidates(reader, as_vector(question.vector), where=EVERYTHING, limit=MOST)
        places = {(each.chunk.path, each.chunk.ordinal) for each in near}
        shares.append(sum(corpus.place(chunk) in places for chunk in nearest) / MOST)
    return sum(shares) / len(shares)


def opened(asked: argparse.Namespace) -> tuple[Corpus, IndexStore]:
    """The corpus, and the store of it."""
    (driver,), (chunks,) = asked.stores, asked.chunks
    options = {"dsn": asked.dsn, "schema": SCHEMA, "agent": "bench"} if driver == "postgres" else {}
    folder = os.path.join(asked.folder, f"{chunks}x{asked.dims}")
    return Corpus(chunks, asked.dims), open_store(driver, folder=folder, **options)


def part_of(sizes: Mapping[int, Mapping[str, Figures]], asked: argparse.Namespace, day: dt.date) -> str:
    """The part of the page that this program writes."""
    facts = machine()
    where = f"{facts['cores']} cores ({facts['processor']}), {facts['system']}"
    parts = ["## The same in other stores", f"{day}, {where}; {asked.dims} dimensions; times are {TIMES}."]
    for chunks, figures in sizes.items():
        parts.append(markdown_table(table_of(f"{chunks:,} chunks", figures)))
    return "\n\n".join(parts)


def table_of(title: str, figures: Mapping[str, Figures]) -> list[tuple[str, ...]]:
    """A row a figure, a column a store."""
    names = list(dict.fromkeys(name for one in figures.values() for name in one))
    body = [(name, *(one.get(name, "–") for one in figures.values())) for name in names]
    return [(title, *(STORES[driver] for driver in figures)), *body]


TASKS: Mapping[str, Callable[[argparse.Namespace], Figures]] = {
    "build": build,
    "search": searched,
    "ask": asked_only,
    "answer": answered,
}


if __name__ == "__main__":
    sys.exit(main())
