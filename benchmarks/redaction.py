"""Measure redaction: how fast it reads, which secrets it misses, and what it takes for a secret that is none.

python benchmarks/redaction.py                        # this repository as prose and code
python benchmarks/redaction.py ../notes ../chats      # any folders of text and conversations
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from plainmind.redaction.engine import Redactor  # noqa: E402 (works without being installed)
from plainmind.redaction.names import FAR_NAMES, NAMES  # noqa: E402

MEGABYTE = 1_000_000
PROSE, CODE = (".md", ".txt", ".jsonl"), (".py", ".sql", ".toml", ".sh")
MOST_BYTES = 20 * MEGABYTE
SECRETS_A_TYPE = 10
SLOWEST_SHOWN = 4
REDACTOR = Redactor(["Zq8vTr5mLpQx"], key=b"a key to measure with")


def main(folders: list[str]) -> int:
    """Print all figures."""
    roots = [Path(folder) for folder in folders] or [ROOT]
    for name, endings in (("prose", PROSE), ("code", CODE)):
        texts = list(_texts(roots, endings))
        if texts:
            _print_reading(name, texts)
    _print_recall()
    _print_hostile()
    return 0


def _texts(roots: Iterable[Path], endings: tuple[str, ...]) -> Iterator[str]:
    left = MOST_BYTES
    for root in roots:
        for path in sorted(root.rglob("*")):
            # The tests of redaction are made of secrets.
            if (
                path.suffix in endings
                and path.is_file()
                and not {".venv", ".git", "redaction"} & set(path.relative_to(root).parts)
            ):
                text = path.read_text("utf-8", "replace")
                left -= len(text)
                if left < 0:
                    return
                yield text


def _seconds(work: Callable[[], object]) -> float:
    """Take the quickest of three runs, in seconds of this process alone: whatever else runs here does not count."""
    took = []
    for _ in range(3):
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
    return min(took)


def _print_reading(name: str, texts: list[str]) -> None:
    size = sum(len(text.encode("utf-8", "replace")) for text in texts) / MEGABYTE
    found = Counter(one.kind for text in texts for one in REDACTOR.redact(text).found)
    seconds = _seconds(lambda: [REDACTOR.without_secrets(text) for text in texts])
    hits = ", ".join(f"{count} {kind}" for kind, count in found.most_common()) or "none"
    print(
        f"{name:8} {size:7.2f} MB in {len(texts)} texts: {seconds * 1_000 / size:.0f} ms a MB, "
        f"{found.total() / size:.2f} hits a MB ({hits})"
    )


def _print_recall() -> None:
    samples = _module("tests.redaction.samples")
    tried: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for name, make in samples.TYPES.items():
        rng = random.Random(f"measured {name}")
        for _ in range(SECRETS_A_TYPE):
            snippet, secret = make(rng)
            for _place, text in samples.placed(snippet):
                tried[name] += 1
                missed[name] += secret in REDACTOR.redact(text).text
    share = 1 - missed.total() / tried.total()
    worst = ", ".join(f"{name} {count}" for name, count in missed.most_common(3) if count) or "none"
    places = len(list(samples.placed("x")))
    print(
        f"recall   {share:.2%} of {tried.total()} secrets: {len(tried)} types in {places} places; missed: {worst}"
    )


def _print_hostile() -> None:
    """Print by kind of text how long the usual one takes and the slowest ones, with and without secrets in them."""
    hostile = _module("tests.redaction.test_hostile_texts")
    hostile.LENGTH = MEGABYTE // 2
    for kind, texts in _hostile_texts(hostile).items():
        rows = []
        for name, text in texts.items():
            size = len(text.encode()) / MEGABYTE
            milliseconds = _seconds(lambda text=text: REDACTOR.without_secrets(text)) * 1_000  # type: ignore[misc]
            rows.append((milliseconds / size, len(REDACTOR.redact(text).found) / size, name))
        rows.sort(reverse=True)
        within = sum(row[0] <= 50 for row in rows)
        print(
            f"hostile  {kind}: {len(rows)} texts, {within} within 50 ms a MB, "
            f"half of them within {rows[len(rows) // 2][0]:.0f}; the slowest:"
        )
        for milliseconds, hits, name in rows[:SLOWEST_SHOWN]:
            print(f"         {milliseconds:6.0f} ms a MB, {hits:7.0f} hits a MB  {name[:60]}")


def _hostile_texts(hostile: Any) -> dict[str, dict[str, str]]:
    names = [name.anchor for name in (*NAMES, *FAR_NAMES)]
    rng = random.Random("hostile")
    values = ["".join(rng.choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789!#", k=12)) for _ in range(5_000)]
    words = [
        "house",
        "lake",
        "über",
        "señor",
        "garçon",
        "中文",
        "日本語",
        "한국어",
        "слово",
        "3 May",
        "`code`",
        "it's",
    ]
    return {
        "a sign or a shape repeated": {repr(shape): hostile.repeated(shape) for shape in hostile.SHAPES},
        "a word repeated": {repr(word): hostile.repeated(word) for word in (*hostile.WORDS, *names)},
        "the beginning of a token repeated": {
            repr(beginning): hostile.repeated(beginning) for beginning in hostile.BEGINNINGS
        },
        "everything in any order": {
            f"joined by {joint!r}": hostile.mixed(hostile.BEGINNINGS + hostile.WORDS, joint)
            for joint in ("", " ", "=", "\n")
        },
        "names in any order, no values": {
            f"joined by {joint!r}": hostile.mixed(names + words, joint) for joint in (" ", "\n", ", ", " = ")
        },
        "names and made-up values": {
            f"joined by {joint!r}": hostile.mixed(names + values, joint) for joint in (" ", "\n", ": ", " = ")
        },
    }


def _module(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
