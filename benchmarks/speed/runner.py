"""The whole benchmark: makes a corpus of each size, indexes it, measures, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.model import EmbedderIdentity, IndexFingerprint, Progress, ProgressCallback
from plainmind.base.value import replace, value
from plainmind.index.store import open_store
from speed.corpus import MOST_CHUNKS_PER_FILE, Corpus, Question
from speed.figures import SizeFigures, SpeedFigures
from speed.others import NAMES, Course, compete, missing
from speed.resident import opened
from speed.timing import (
    Residency,
    cold_searches,
    first_tool_lists,
    machine,
    read_bandwidth,
    residency,
    versions,
)
from speed.workload import Filled, Searches, fill, index_markdown, search, use

QUESTIONS = 160
RESIDENT_QUESTIONS = 50
CHUNKS_PER_SYNCED_FILE = 4
_BYTES_PER_CHUNK = 5_000  # its text as a file and in the index, its terms, and what is written on the way
_MB = 1_000_000
LARGEST_LIMIT = 256 * 1024 * 1024  # that the settings take for a single file


@value
class Plan:
    """What to measure. Budgets are seconds for one kind of work at one size."""

    chunks: tuple[int, ...] = (10_000,)
    dims: int = 256
    seed: int = 7
    against: tuple[str, ...] = NAMES
    large_file_mb: int | None = None
    keeps: bool = False  # what was made is left in the folder
    files_to_sync: int = 1_000
    questions: int = QUESTIONS
    cold_runs: int = 15
    budget_s: float = 10.0


def run(plan: Plan, folder: str, *, progress: ProgressCallback | None = None) -> SpeedFigures:
    """Measure every size, one after the other, in a folder that is the caller's to remove."""
    started = time.perf_counter()
    _refuse_a_full_disk(plan, folder)
    tell = progress or (lambda _: None)
    absent = missing(plan.against)
    notes = [f"not installed, so not measured beside ours: {', '.join(absent)}"] if absent else []
    tell(Progress(0, 1, "memory bandwidth"))
    bytes_per_second = read_bandwidth()
    markdown, nothing_to_do, files = index_markdown(
        Corpus(
            plan.files_to_sync * CHUNKS_PER_SYNCED_FILE, seed=plan.seed, fixed_per_file=CHUNKS_PER_SYNCED_FILE
        ),
        os.path.join(folder, "markdown"),
        budget_s=plan.budget_s,
        progress=_labelled(tell, "first sync of Markdown files"),
    )
    _leave(plan, os.path.join(folder, "markdown"))
    tell(Progress(0, 1, "servers for MCP"))
    served = os.path.join(folder, "served")
    first_tools = first_tool_lists(served, runs=plan.cold_runs, budget_s=plan.budget_s)
    _leave(plan, served)
    sizes = [
        _size(plan, chunks, os.path.join(folder, str(chunks)), tell) for chunks in sorted(set(plan.chunks))
    ]
    large = _large_file(plan, os.path.join(folder, "large"), tell) if plan.large_file_mb else None
    return SpeedFigures(
        machine=machine(),
        versions=versions(),
        dims=plan.dims,
        seed=plan.seed,
        bytes_per_second=bytes_per_second,
        markdown=markdown,
        markdown_files=files,
        nothing_to_do=nothing_to_do,
        sizes=tuple(sizes),
        first_tools=first_tools,
        large_file=large,
        notes=tuple(notes),
        seconds=time.perf_counter() - started,
    )


def _size(plan: Plan, chunks: int, folder: str, tell: ProgressCallback) -> SizeFigures:
    at = f"{chunks:,} chunks"
    corpus = Corpus(chunks, plan.dims, plan.seed)
    questions = corpus.questions(plan.questions)
    workspace, home = os.path.join(folder, "workspace"), os.path.join(folder, "home")
    building = _labelled(tell, f"{at}: building the index")
    filled, searches, index_bytes = _searched(plan, corpus, questions, folder, building)
    tell(Progress(0, 1, f"{at}: whole processes"))
    texts = [question.text for question in questions]
    cold = cold_searches(workspace, home, texts, runs=plan.cold_runs, budget_s=plan.budget_s)
    resident = residency({"workspace": workspace, "home": home, "questions": texts[:RESIDENT_QUESTIONS]})
    tell(Progress(0, 1, f"{at}: a memory in use"))
    with opened(workspace, home) as memory:
        used = use(memory, questions, budget_s=plan.budget_s)
    _leave(plan, folder)
    os.makedirs(folder, exist_ok=True)
    course = Course(corpus, questions, folder, plan.budget_s)
    others = tuple(compete(plan.against, course, progress=_labelled(tell, f"{at}: others")))
    _leave(plan, folder)
    return SizeFigures(
        chunks=chunks,
        files=corpus.files,
        text_bytes=filled.text_bytes,
        index_bytes=index_bytes,
        making_seconds=filled.making_seconds,
        store=filled.store,
        searches=searches.times,
        recall=searches.recall,
        memory=used,
        cold=cold,
        resident=resident,
        others=others,
    )


def _searched(
    plan: Plan, corpus: Corpus, questions: Sequence[Question], folder: str, progress: ProgressCallback
) -> tuple[Filled, Searches, int]:
    """Fill the index of a real memory and search it, or another one where the dimensions are not the memory's."""
    home, workspace = os.path.join(folder, "home"), os.path.join(folder, "workspace")
    with opened(workspace, home) as memory:
        fingerprint = memory.index.indexer.fingerprint
        own_dims = fingerprint.embedder.dims
        own = replace(corpus, dims=own_dims)
        filled = fill(own, memory.index.store, fingerprint, workspace=workspace, progress=progress)
        if own_dims == corpus.dims:
            index_bytes = bytes_in(memory.places.index)
            progress(Progress(1, 1, "searching"))
            return filled, search(corpus, memory.index.store, questions, budget_s=plan.budget_s), index_bytes
    place = os.path.join(folder, "index")
    store = open_store("sqlite", folder=place)
    try:
        identity = EmbedderIdentity("synthetic", "clusters", dims=corpus.dims)
        other = IndexFingerprint(identity, fingerprint.chunking, fingerprint.keywords, fingerprint.schema)
        filled = fill(corpus, store, other, progress=progress)
        index_bytes = bytes_in(place)
        return filled, search(corpus, store, questions, budget_s=plan.budget_s), index_bytes
    finally:
        store.close()


def _large_file(plan: Plan, folder: str, tell: ProgressCallback) -> Residency:
    """Let a process index a single file of many megabytes; one over the limit is left out, which is bounded too."""
    assert plan.large_file_mb is not None
    tell(Progress(0, 1, f"a file of {plan.large_file_mb:,} MB"))
    workspace, home = os.path.join(folder, "workspace"), os.path.join(folder, "home")
    os.makedirs(os.path.join(workspace, "memory"))
    corpus = Corpus(MOST_CHUNKS_PER_FILE, seed=plan.seed)
    text = "\n".join(corpus.file(number).text for number in range(corpus.files)).encode()
    with open(os.path.join(workspace, "memory", "large.md"), "wb") as file:
        for _ in range(-(-plan.large_file_mb * _MB // len(text))):
            file.write(text)
    limit = {"maxFileBytes": min(2 * plan.large_file_mb * _MB, LARGEST_LIMIT)}
    measured = residency({"workspace": workspace, "home": home, "flags": limit})
    _leave(plan, folder)
    return measured


def _leave(plan: Plan, folder: str) -> None:
    """Remove what is not needed any more: the next size may need the room."""
    if not plan.keeps:
        shutil.rmtree(folder)


def bytes_in(folder: str) -> int:
    """What all files beneath a folder take."""
    return sum(
        os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names
    )


def _labelled(tell: ProgressCallback, label: str) -> ProgressCallback:
    def tell_with_label(progress: Progress) -> None:
        more = f", {progress.label}" if progress.label and "/" not in progress.label else ""
        tell(Progress(progress.completed, progress.total, label + more))

    return tell_with_label


def _refuse_a_full_disk(plan: Plan, folder: str) -> None:
    wanted = max(plan.chunks) * (_BYTES_PER_CHUNK + 4 * plan.dims)
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise PlainmindError(
            f"{folder} has {free // _MB:,} MB free, and this takes up to {wanted // _MB:,}",
            hint="name a folder on another disk with TMPDIR or --keep, or fewer --chunks",
        )
