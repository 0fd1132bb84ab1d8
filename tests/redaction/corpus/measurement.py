"""Measures a redaction on one half of the corpus: what it hides, what it spares, and what it takes for a secret."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from random import Random

from tests.redaction.corpus import values
from tests.redaction.corpus.cases import Case, cases, fill, ordinary

from plainmind.base.value import value

Redact = Callable[[str], str]
_WORD = re.compile(
    r"[a-zA-Z0-9À-ɏ_]+|[^\W\d_]{1,2}"
)  # where no spaces are written, two signs count as a word


@value
class Tally:
    """How many were tried, and how many went well."""

    tried: int
    well: int

    @property
    def share(self) -> float:
        """The part that went well; 1 where nothing was tried."""
        return self.well / self.tried if self.tried else 1.0


@value
class Miss:
    """A secret that can still be read: the row of characters that gives it away."""

    case: str
    kind: str
    language: str
    row: str
    text: str
    redacted: str


@value
class Loss:
    """Words around a secret that were hidden with it."""

    case: str
    words: tuple[str, ...]
    redacted: str


@value
class Alarm:
    """An ordinary text that was taken for a secret."""

    language: str
    topic: str
    text: str
    redacted: str


@value
class Figures:
    """What was measured. Tallies count secrets, not cases: a place may hold several."""

    cases: int
    secrets: Tally
    kinds: Mapping[str, Tally]
    languages: Mapping[str, Tally]
    places: Mapping[str, Tally]
    words: Tally
    misses: tuple[Miss, ...]
    losses: tuple[Loss, ...]
    ordinary_lines: int
    ordinary_words: int
    alarms: tuple[Alarm, ...]


def measure(
    redact: Redact, half: str, *, seed: int = 1, limit: int | None = None, every: bool = False
) -> Figures:
    """Redact the cases and the ordinary lines of a half; `limit` takes the first cases, `every` all that fit."""
    count = _Count()
    given = cases(half, every=every)[:limit]
    for case in given:
        count.add(case, seed, redact)
    lines = [
        (line.language, line.topic, values.fill(line.text, Random(f"{seed} {line.text}")))
        for line in ordinary(half)
    ]
    return Figures(
        cases=len(given),
        secrets=Tally(tried=count.tried["all", ""], well=count.well["all", ""]),
        kinds=count.tallies("kind"),
        languages=count.tallies("language"),
        places=count.tallies("place"),
        words=Tally(tried=count.words, well=count.kept),
        misses=tuple(count.misses),
        losses=tuple(count.losses),
        ordinary_lines=len(lines),
        ordinary_words=sum(number_of_words(text) for _language, _topic, text in lines),
        alarms=tuple(alarms(redact, lines)),
    )


def alarms(redact: Redact, texts: Iterable[tuple[str, str, str]]) -> Iterator[Alarm]:
    """Yield each text (language, topic, text) without a secret that is changed all the same."""
    for language, topic, text in texts:
        redacted = redact(text)
        if redacted != text:
            yield Alarm(language=language, topic=topic, text=text, redacted=redacted)


def lines_below(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the lines of the Markdown and text files below a folder, with their file as the topic."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".md", ".txt", ".rst"} and path.is_file():
            for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
                yield "any", f"{path}:{number}", line


def number_of_words(text: str) -> int:
    """Count words; two signs are one in languages that write no spaces."""
    return len(_WORD.findall(text))


class _Count:
    """Adds up cases."""

    def __init__(self) -> None:
        self.tried: Counter[tuple[str, str]] = Counter()
        self.well: Counter[tuple[str, str]] = Counter()
        self.words = 0
        self.kept = 0
        self.misses: list[Miss] = []
        self.losses: list[Loss] = []

    def add(self, case: Case, seed: int, redact: Redact) -> None:
        filled = fill(case, seed)
        redacted = redact(filled.text)
        for secret in filled.secrets:
            row = secret.row_in(redacted)
            place = case.place.removeprefix(f"{case.language}/").split("/")[0]
            for key in (("all", ""), ("kind", secret.kind), ("language", case.language), ("place", place)):
                self.tried[key] += 1
                self.well[key] += row is None
            if row is not None:
                self.misses.append(
                    Miss(
                        case=case.id,
                        kind=secret.kind,
                        language=case.language,
                        row=row,
                        text=filled.text,
                        redacted=redacted,
                    )
                )
        lost = tuple(word for word in filled.words if word not in redacted)
        self.words += len(filled.words)
        self.kept += len(filled.words) - len(lost)
        if lost:
            self.losses.append(Loss(case=case.id, words=lost, redacted=redacted))

    def tallies(self, of: str) -> dict[str, Tally]:
        return {
            name: Tally(tried=tried, well=self.well[group, name])
            for (group, name), tried in sorted(self.tried.items())
            if group == of
        }
