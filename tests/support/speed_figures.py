"""Figures of a run that never was, for everything that shows figures."""

from __future__ import annotations

from speed.figures import SizeFigures, SpeedFigures
from speed.others import ALL_WORDS, SEED, Contestant
from speed.timing import Bulk, Cold, Residency, Times


def took(milliseconds):
    return Times(9, milliseconds, 2 * milliseconds, milliseconds / 2)


def size(chunks, hybrid_ms, seed_ms=None, seed_chunks=None, recall=0.995):
    kinds = ("hybrid", "keyword", "vector", "keywordLookup", "vectorLookup")
    seed = Contestant(SEED, ALL_WORDS, seed_chunks or chunks, 1.0, took(seed_ms), 1.0) if seed_ms else None
    return SizeFigures(
        chunks=chunks,
        files=chunks // 10,
        text_bytes=1_000 * chunks,
        index_bytes=1_500 * chunks,
        making_seconds=1.0,
        store=Bulk(chunks, 2.0, 1.0),
        searches=dict.fromkeys(kinds, took(hybrid_ms)),
        recall=recall,
        memory={"search": took(9), "edit": took(20)},
        cold=Cold(took(90), took(10)),
        resident=Residency(200_000_000, 50_000_000, 150_000_000, {}),
        others=(seed,) if seed else (),
    )


def figures(*sizes, files=1_000, large_file=None):
    return SpeedFigures(
        machine={"cores": 2, "processor": "a quick one", "system": "Linux"},
        versions={"python": "3"},
        dims=256,
        seed=7,
        bytes_per_second=10e9,
        markdown=Bulk(4_000, 2.0, 3.0),
        markdown_files=files,
        nothing_to_do=took(19.0),
        sizes=sizes,
        large_file=large_file,
    )
