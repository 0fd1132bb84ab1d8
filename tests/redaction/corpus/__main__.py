"""`python -m tests.redaction.corpus dev`: what our redaction hides, spares and takes for a secret."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tests.redaction.corpus.cases import SETS
from tests.redaction.corpus.measurement import (
    Figures,
    Tally,
    alarms,
    lines_below,
    measure,
    number_of_words,
)

from plainmind.redaction.engine import Redactor


def main() -> None:
    """Print the figures of a half, or the false alarms in a folder of ordinary text."""
    parser = argparse.ArgumentParser(prog="python -m tests.redaction.corpus", description=main.__doc__)
    parser.add_argument("half", choices=SETS)
    parser.add_argument("--seed", type=int, default=1, help="makes other values (1)")
    parser.add_argument(
        "--every", action="store_true", help="every kind in every place that fits it: some 18,000 cases"
    )
    parser.add_argument("--limit", type=int, help="take only the first cases")
    parser.add_argument(
        "--misses",
        type=int,
        help="how many misses, losses and alarms to show (20 of dev, none of the others: who reads them tunes on them)",
    )
    parser.add_argument(
        "--prose", type=Path, help="look for false alarms in the files of this folder instead"
    )
    given = parser.parse_args()
    redact = Redactor(key=b"a key to measure with").without_secrets
    shown = given.misses if given.misses is not None else 20 * (given.half == "dev")
    if given.prose:
        lines = list(lines_below(given.prose))
        words = sum(number_of_words(text) for _language, _topic, text in lines)
        found = list(alarms(redact, lines))
        print(f"{len(found)} alarms in {words} words")
        for alarm in found[:shown]:
            print(f"  {alarm.topic}\n    {alarm.text}\n    {alarm.redacted}")
        return
    _print(measure(redact, given.half, seed=given.seed, limit=given.limit, every=given.every), shown)


def _print(figures: Figures, shown: int) -> None:
    print(f"{figures.cases} cases; hidden: {_line(figures.secrets)} secrets")
    print(f"words around them that stay: {_line(figures.words)}")
    alarm_count = len(figures.alarms)
    print(f"ordinary: {alarm_count} alarms in {figures.ordinary_lines} lines, {figures.ordinary_words} words")
    _print_table("language", figures.languages)
    _print_table("place", figures.places)
    _print_table("kind", figures.kinds)
    for miss in figures.misses[:shown]:
        print(f"\nMISS {miss.case}: {miss.row!r}\n{miss.text}\n  became\n{miss.redacted}")
    for loss in figures.losses[:shown]:
        print(f"\nLOST {loss.case}: {', '.join(loss.words)}\n{loss.redacted}")
    for alarm in figures.alarms[:shown]:
        print(f"\nALARM {alarm.language}/{alarm.topic}\n{alarm.text}\n{alarm.redacted}")


def _print_table(name: str, tallies: Mapping[str, Tally]) -> None:
    """Print the worst first."""
    print(f"\nby {name}")
    for key, tally in sorted(tallies.items(), key=lambda item: item[1].share):
        print(f"  {key:28}{_line(tally)}")


def _line(tally: Tally) -> str:
    return f"{tally.share:.2%} ({tally.well} of {tally.tried})"


if __name__ == "__main__":
    main()
