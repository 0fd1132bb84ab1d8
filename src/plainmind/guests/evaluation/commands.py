"""`bench`: ask questions whose answers are known, and compare two such runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console, duration_in_words, plural
from plainmind.cli.options import add_shared_options, describe, share, whole_number
from plainmind.cli.parser import HelpFormatter

if TYPE_CHECKING:
    from plainmind.guests.evaluation.runner import Summary
    from plainmind.guests.evaluation.scoring import Difference

SPEED_IS_ELSEWHERE = "speed is measured by a program of the repository, which is not installed"
HOW_TO_MEASURE_SPEED = (
    "in a checkout, `make bench` measures several sizes, "
    "`.venv/bin/python benchmarks/measure_speed.py --help` says what else can be measured"
)
BASELINES = ("seed", "seed-decay", "grep")
_COLUMNS = {
    "recall6": "recall@6",
    "hit1": "hit@1",
    "mrr10": "MRR@10",
    "ndcg10": "nDCG@10",
    "tok6": "tokens of 6",
    "rB2400": "recall@2400",
}


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Say what `bench` takes."""
    describe(
        parser,
        """\
Measure how good the answers are, on workspaces whose questions come with the lines that answer them.

Only reads: indexes are made in a temporary folder and removed. Your own notes and settings play no part.""",
        examples=(
            "plainmind bench eval evals/plainmind",
            "plainmind bench compare before.jsonl after.jsonl evals/plainmind",
        ),
        run=run_eval,
    )
    below = parser.add_subparsers(title="what to do", metavar="WHAT", required=True)

    def add(name: str, text: str, more: str, examples: tuple[str, ...], run: Callable[..., int]) -> Any:
        added = below.add_parser(
            name, help=text, formatter_class=HelpFormatter, allow_abbrev=False, conflict_handler="resolve"
        )
        describe(added, f"{text[0].upper()}{text[1:]}. {more}", examples=examples, run=run)
        add_shared_options(added, level=2, suppress=argparse.SUPPRESS)
        return added

    _add_eval(
        add(
            "eval",
            "ask every question of a dataset and score what is shown",
            """\
A dataset is a folder of workspaces with queries.jsonl in them, or one such workspace. Other questions about them
may stand in files of other names, which --questions reads.

Only reads it; with --out the results go to a file, one line a question.""",
            (
                "plainmind bench eval evals/plainmind",
                "plainmind bench eval evals/plainmind --workspace orchard --snippet-chars 1600 --out wide.jsonl",
                "plainmind bench eval evals/plainmind --baseline seed --json",
            ),
            run_eval,
        )
    )
    comparing = add(
        "compare",
        "say whether a second run is better than a first, or only luckier",
        """\
For each figure the gain with its 95 % interval, by drawing the same questions again and again for both runs.

Only reads.""",
        ("plainmind bench compare before.jsonl after.jsonl evals/plainmind",),
        run_compare,
    )
    for name, text in (("before", "results of the first run"), ("after", "results of the second run")):
        comparing.add_argument(name, metavar="FILE", help=text)
    comparing.add_argument("dataset", metavar="DIR", help="the dataset that both runs were asked about")
    _add_questions(comparing)
    comparing.add_argument(
        "--workspace", metavar="NAME", default=argparse.SUPPRESS, help="only this workspace of it"
    )
    elsewhere = add(
        "speed",
        "say where speed is measured",
        f"{SPEED_IS_ELSEWHERE.capitalize()}: {HOW_TO_MEASURE_SPEED}.",
        ("plainmind bench speed",),
        run_speed,
    )
    for option in ("--chunks", "--dims", "--seed", "--against", "--keep", "--large-file", "--check"):
        elsewhere.add_argument(option, nargs="?", help=argparse.SUPPRESS)  # of the program there


def _add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DIR", help="the dataset, or one workspace of it")
    _add_questions(parser)
    parser.add_argument("--out", metavar="FILE", help="write what was shown there, one line a question")
    # In place of the option that every command has: here it is a name within the dataset.
    parser.add_argument(
        "--workspace", metavar="NAME", default=argparse.SUPPRESS, help="only this workspace of the dataset"
    )
    parser.add_argument(
        "-n",
        dest="max_results",
        metavar="N",
        type=whole_number(1, 1000),
        default=10,
        help="at most N results a question (10)",
    )
    parser.add_argument(
        "--snippet-chars",
        metavar="C",
        type=whole_number(20, 100_000),
        help="at most C characters of each result (700)",
    )
    parser.add_argument(
        "--min-score", metavar="S", type=share, help="leave out results below S, from 0 to 1 (0)"
    )
    parser.add_argument(
        "--baseline", choices=BASELINES, help="ask a simpler recipe instead: hybrid search or word overlap"
    )
    parser.add_argument("--provider", metavar="NAME", help="who turns text into vectors (builtin)")
    parser.add_argument("--deep", action="store_true", help="look twice at the best results, as agents do")


def _add_questions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--questions",
        metavar="NAME",
        default="queries",
        help="ask those in NAME.jsonl of each workspace (queries)",
    )


def run_eval(arguments: argparse.Namespace, console: Console) -> int:
    """Ask, score and print."""
    from plainmind.guests.evaluation import baselines
    from plainmind.guests.evaluation.dataset import read_dataset
    from plainmind.guests.evaluation.runner import Asking, evaluate, opened_memory, summarise
    from plainmind.guests.evaluation.scoring import write_results

    workspaces = read_dataset(arguments.dataset, only=arguments.workspace, queries=arguments.questions)
    settings = dict(arguments.settings)
    if arguments.provider is not None:
        settings["provider"] = arguments.provider
    asking = Asking(
        arguments.max_results, arguments.snippet_chars, arguments.min_score, settings, arguments.deep
    )
    opener = opened_memory if arguments.baseline is None else baselines.BASELINES[arguments.baseline]
    with console.progress("asking") as progress:
        evaluation = evaluate(workspaces, opener, asking, progress=progress)
    if arguments.out is not None:
        write_results(arguments.out, evaluation.answers)
    summary = summarise(evaluation.answers)
    if console.json:
        facts = {"workspaces": [workspace.name for workspace in workspaces], "baseline": arguments.baseline}
        timing = {"indexSeconds": round(evaluation.indexing_seconds, 3), "notes": list(evaluation.notes)}
        console.result({**facts, **as_json(summary), **timing})
        return 0
    for line in table(summary):
        console.answer(line)
    console.answer()
    console.answer(
        f"{plural(len(evaluation.answers), 'question')}, {plural(len(workspaces), 'workspace')}:"
        f" {summary.mean_ms:.1f} ms a question, {summary.p95_ms:.1f} ms at the 95th percentile,"
        f" indexed in {duration_in_words(evaluation.indexing_seconds)}"
    )
    for note in evaluation.notes:
        console.note(note)
    return 0


def table(summary: Summary) -> Iterator[str]:
    """Rows of figures: all questions, then each category, then those that have no answer."""
    names = ["all", *summary.by_category, "absent"]
    width = max(len(name) for name in names)
    yield f"{'':{width}}  {'n':>5}  " + "  ".join(f"{name:>6}" for name in _COLUMNS.values())
    rows = {"all": (summary.count, summary.overall), **summary.by_category}
    for name, (count, figures) in rows.items():
        if figures:
            cells = "  ".join(_cell(metric, figures) for metric in _COLUMNS)
            yield f"{name:{width}}  {count:>5}  {cells}"
    if summary.silent is not None:
        yield f"{'absent':{width}}  {summary.absent_count:>5}  nothing certain shown for {summary.silent:.3f} of them"


def _cell(metric: str, figures: Mapping[str, float]) -> str:
    digits = 0 if metric == "tok6" else 4
    return f"{figures[metric]:>{max(6, len(_COLUMNS[metric]))}.{digits}f}"


def as_json(summary: Summary) -> dict[str, Any]:
    """The same figures for programs, and a few that people rarely ask for."""
    answer: dict[str, Any] = {
        "n": summary.count,
        "all": dict(summary.overall),
        "byCategory": {
            name: {"n": count, **figures} for name, (count, figures) in summary.by_category.items()
        },
        "milliseconds": {"mean": round(summary.mean_ms, 3), "p95": round(summary.p95_ms, 3)},
    }
    if summary.silent is not None:
        answer["absent"] = {"n": summary.absent_count, "silent": round(summary.silent, 4)}
    return answer


def run_compare(arguments: argparse.Namespace, console: Console) -> int:
    """Print what the second run gained."""
    from plainmind.guests.evaluation.dataset import read_dataset
    from plainmind.guests.evaluation.scoring import compare, read_results

    workspaces = read_dataset(arguments.dataset, only=arguments.workspace, queries=arguments.questions)
    count, differences = compare(workspaces, read_results(arguments.before), read_results(arguments.after))
    if console.json:
        console.result({"n": count, "differences": [_as_fields(one) for one in differences]})
        return 0
    console.answer(f"{'':11}  {'before':>9}  {'after':>9}  {'gain':>9}  95 % interval")
    for one in differences:
        if one.metric in _COLUMNS:
            console.answer(_difference(one))
    console.answer()
    console.answer(f"{plural(count, 'question')}; * marks what chance alone would hardly do")
    return 0


def run_speed(_arguments: argparse.Namespace, _console: Console) -> int:
    """Say where the program is."""
    raise PlainmindError(SPEED_IS_ELSEWHERE, hint=HOW_TO_MEASURE_SPEED)


def _difference(one: Difference) -> str:
    digits = 1 if one.metric == "tok6" else 4
    means = f"{one.before:>9.{digits}f}  {one.after:>9.{digits}f}  {one.gain:>+9.{digits}f}"
    mark = " *" if one.is_certain else ""
    return f"{_COLUMNS[one.metric]:11}  {means}  {one.low:+.{digits}f} … {one.high:+.{digits}f}{mark}"


def _as_fields(one: Difference) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "before": round(one.before, 4),
        "after": round(one.after, 4),
        "gain": round(one.gain, 4),
        "low": round(one.low, 4),
        "high": round(one.high, 4),
        "certain": one.is_certain,
    }
