"""A fuzzer led by coverage: bytes are changed by chance, and those that reach a new line are changed further."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

from plainmind.base.value import record

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 4_000
MOST_SECONDS = 5.0  # of CPU for one case; the slowest honest one takes a hundredth of it
_MOST_KEPT = 300
# Every so manieth case is watched, since to watch takes longer than to run; fewer where many have reached nothing new.
_LOOK_EACH, _LOOK_SELDOM, _DULL = 4, 64, 250


@record
class Outcome:
    """What a run has seen."""

    target: str
    cases: int = 0
    lines: int = 0
    kept: int = 0
    seconds: float = 0.0
    faults: tuple[str, ...] = ()


class Watch:
    """The lines that were reached, ever, in files with `code` in their path; and whether the last case reached more."""

    def __init__(self, code: str) -> None:
        self._code = code
        self.reached: set[tuple[CodeType, int]] = set()
        self._full: set[CodeType] = set()
        self._before: Any = None
        self._seen = 0

    def __enter__(self) -> Self:
        self._seen = len(self.reached)
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    @property
    def is_new(self) -> bool:
        """Whether the last block has reached a line that none had before."""
        return len(self.reached) > self._seen

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code in self._full:
            return None
        if self._code not in code.co_filename:
            self._full.add(code)
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        code = frame.f_code
        if event == "line":
            self.reached.add((code, frame.f_lineno))
        elif event == "return":
            lines = {line for _, _, line in code.co_lines() if line is not None}
            if all((code, line) in self.reached for line in lines - {code.co_firstlineno}):
                self._full.add(code)
        return self._line


class Corpus:
    """Cases that reach something, in one file a target: text as it is, bytes that are none as Latin-1."""

    def __init__(self, name: str) -> None:
        self.path = CORPUS / f"{name}.jsonl"

    def read(self) -> list[bytes]:
        """All of them."""
        if not self.path.exists():
            return []
        return [_bytes_of(json.loads(line)) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def write(self, cases: Sequence[bytes]) -> None:
        """Put these in place of all."""
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("".join(_line_of(case) + "\n" for case in cases), encoding="utf-8")


def _bytes_of(kept: dict[str, str]) -> bytes:
    return kept["text"].encode() if "text" in kept else kept["bytes"].encode("latin-1")


def _line_of(case: bytes) -> str:
    try:
        return json.dumps({"text": case.decode()}, ensure_ascii=True)
    except UnicodeDecodeError:
        return json.dumps({"bytes": case.decode("latin-1")}, ensure_ascii=True)


_INTERESTING = [
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b" ", b"\\", b'"', b"'", b"`",
    b"-1", b"0", b"1e999", b"99999999999999999999", b"NaN", b"null", b"true", b"[]", b"{}", b"[[", b"]]",
    "\u2028".encode(), "\u200b".encode(), "\u0130".encode(), "ß".encode(), "漢字".encode(), "🜂".encode(),
    b"\xed\xa0\x80", b"\\ud800", b"../", b"%2e%2e/", b"%00", b"---\n", b"```\n", b"# ", b"- ", b"<!-- ", b" -->",
]  # fmt: skip


def mutate(case: bytes, pool: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> bytes:
    """A case that is like another one."""
    data = bytearray(case)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        kind = chance.randrange(8)
        at = chance.randint(0, len(data))
        end = min(len(data), at + chance.choice((1, 1, 2, 4, 16, 64)))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end] * chance.choice((1, 2, 30))
        elif kind == 3:
            data[at:at] = chance.choice((*_INTERESTING, bytes([chance.randrange(256)])))
        elif kind == 4:
            data[at:at] = chance.choice(words) if words else b"?"
        elif kind == 5:
            other = chance.choice(pool)
            begin = chance.randint(0, len(other))
            data[at:end] = other[begin : begin + chance.choice((4, 32, 400))]
        elif kind == 6:
            data[at:end] = chance.choice(words) if words else bytes([chance.randrange(256)])
        else:
            to = chance.randint(0, len(data))
            data[to:to] = data[at:end]
    return bytes(data[:MOST_BYTES])


def fuzz(
    name: str,
    attempt: Callable[[bytes], object],
    words: Sequence[bytes],
    *,
    cases: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    keep: bool = False,
    code: str = "/plainmind/",
) -> Outcome:
    """Try the kept cases, then others, until so many were tried or so much CPU was used; three faults are enough.

    `attempt` raises when something is wrong. With `keep` the cases that reach more are written down.
    """
    chance, watch, corpus = random.Random(seed), Watch(code), Corpus(name)
    outcome, begun = Outcome(name), time.process_time()
    pool: list[bytes] = []
    look_each, dull = _LOOK_EACH, 0

    def is_over() -> bool:
        return (
            len(outcome.faults) >= 3
            or (cases is not None and outcome.cases >= cases)
            or (seconds is not None and time.process_time() - begun > seconds)
        )

    def attempt_one(case: bytes, *, is_watched: bool) -> None:
        nonlocal look_each, dull
        outcome.cases += 1
        fault = _fault(attempt, case, watch if is_watched else None)
        if fault is not None:
            outcome.faults += (f"{name}: {fault}\n  case {case!r}",)
        elif is_watched and watch.is_new:
            pool.append(case)
            look_each, dull = _LOOK_EACH, 0
        elif is_watched:
            dull += 1
            if dull == _DULL:
                look_each, dull = min(2 * look_each, _LOOK_SELDOM), 0

    for case in [b"", *words, *corpus.read()]:
        attempt_one(case, is_watched=True)
    pool = pool or [b""]
    with suppress(KeyboardInterrupt):  # who has seen enough wants to know what was found
        while not is_over():
            # A recent find is more promising than an old one.
            at = max(chance.randrange(len(pool)), chance.randrange(len(pool)))
            case = mutate(pool[at], pool, words, chance)
            attempt_one(case, is_watched=outcome.cases % look_each == 0)
    if keep:
        corpus.write(sorted(set(pool), key=lambda case: (len(case), case))[:_MOST_KEPT])
    outcome.lines, outcome.kept, outcome.seconds = len(watch.reached), len(pool), time.process_time() - begun
    return outcome


def _fault(attempt: Callable[[bytes], object], case: bytes, watch: Watch | None) -> str | None:
    begun = time.thread_time()
    try:
        if watch is None:
            attempt(case)
        else:
            with watch:
                attempt(case)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
        return f"{type(error).__name__}: {error}; {' < '.join(_places(error))}"
    spent = time.thread_time() - begun
    return f"it took {spent:.1f} s" if spent > MOST_SECONDS else None


def _places(error: BaseException) -> Iterator[str]:
    trace, places = error.__traceback__, []
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    yield from reversed(places[-4:])
