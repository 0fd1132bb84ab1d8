"""docs/compare.md, written from the figures of a run: a plain table, then what is unfair, then how to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from page_parts import markdown_table

from compare.judge import CUT, ENOUGH, FIRST
from compare.peer import paragraphs

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compare.md"
RESULTS = Path(__file__).with_name("results.json")
OURS = "plainmind"
NONE = "–"
_READ = (
    "Times are the processor's, the median; in brackets what a person waited. The best of a row is bold. A dash: "
    "it has no such thing, or this run did not come to it."
)
_BUSY = 1.5  # an empty process that waits longer than it works, on a machine that does much else
_WHEN_BUSY = (
    "The machine did much else at the same time, which makes a person wait several times as long, and everybody "
    "alike; the processor's time is the fairer figure."
)
_WHEN_QUIET = "The machine did little else at the same time."
_PLACES = (
    "`NOTES` is a peer's own copy of the notes, `OWN` its own folder, `URL` the server of vectors, `TOOLS` where "
    "the peers are installed, `BIN` our environment."
)
Figures: TypeAlias = Mapping[str, Any]
# A row of the table: what it says, the figure of a peer or None, how a figure reads, whether more is better.
Row: TypeAlias = tuple[str, Callable[[Figures], float | None], Callable[[float], str], bool]


def page_of(figures: Figures) -> str:
    """The whole page."""
    peers = figures["peers"]
    sections = [
        "<!-- written by `make compare` from benchmarks/compare/results.json, edits here are lost -->",
        "# Beside what you might use instead",
        _opening(figures),
        "## The figures",
        _READ,
        markdown_table(table(peers)),
        "## Where Plainmind is not the best",
        _bullets(losses(peers)) or "In no row.",
        "## Answers by kind of question",
        f"Recall@{FIRST} / hit@1 within {CUT} characters a result.",
        markdown_table(categories(peers)),
        "## What is unfair, and to whom",
        _bullets([*_general(figures), *(note for peer in peers for note in peer["fairness"])]),
        *([_bullets(_left_out(figures))] if _left_out(figures) else []),
        "## What was run",
        markdown_table(
            [
                ("program", "version", "from", "searches by", "when it stays open"),
                *(
                    (p["title"], p["version"], p["registry"], p["finds_by"], p["stays_open_as"])
                    for p in peers
                ),
            ]
        ),
        _PLACES,
        *(_commands(peer) for peer in peers),
        "## Run it yourself",
        _yourself(),
    ]
    return "\n\n".join(sections) + "\n"


def _opening(figures: Figures) -> str:
    work, machine = figures["work"], figures["machine"]
    told = f"""
    The same notes and the same questions for everybody, by turns. {work["files"]:,} Markdown
    files, {work["bytes"] / 1e6:.1f} MB: the eight larger workspaces of [`evals/`](../evals/README.md), in seven
    languages, among invented notes; {work["questions"]:,} questions of their `dev` halves, as people ask.
    {figures["day"]}, {machine["cores"]} cores ({machine["processor"]}), {machine["system"]}, Python
    {figures["python"]}.
    """
    return paragraphs(told)[0]


def table(peers: Sequence[Figures]) -> list[tuple[str, ...]]:
    """What was measured, a column a peer."""
    rows = [("", *(peer["title"] for peer in peers))]
    for label, figure, form, more_is_better in ROWS:
        values = [figure(peer) for peer in peers]
        known = [value for value in values if value is not None]
        best = (max if more_is_better else min)(known) if known else None
        cells = []
        for peer, value in zip(peers, values, strict=True):
            told = _cell(label, peer, value, form)
            cells.append(f"**{told}**" if value is not None and value == best else told)
        rows.append((label, *cells))
    return rows


def _cell(label: str, peer: Figures, value: float | None, form: Callable[[float], str]) -> str:
    if value is None:
        return "not found" if _TIMED.get(label) in peer.get("not_found", ()) else NONE
    wall = peer["times"].get(_TIMED.get(label, ""), {}).get("wall_p50")
    return form(value) if wall is None else f"{form(value)} ({form(wall)})"


def losses(peers: Sequence[Figures]) -> list[str]:
    """The rows in which somebody does better than we do, and by how much."""
    ours = next(peer for peer in peers if peer["name"] == OURS)
    found = []
    for label, figure, form, more_is_better in ROWS:
        mine = figure(ours)
        if mine is None:
            continue
        others = [(figure(peer), peer["title"]) for peer in peers if peer is not ours]
        better = sorted(
            ((value, title) for value, title in others if value is not None and (value > mine) == more_is_better
             and value != mine),
            reverse=more_is_better,
        )  # fmt: skip
        if better:
            told = ", ".join(f"{title} {form(value)}" for value, title in better)
            found.append(f"{label}: Plainmind {form(mine)}; {told}.")
    return found


def categories(peers: Sequence[Figures]) -> list[tuple[str, ...]]:
    """Recall and hits by category."""
    asked = [peer for peer in peers if peer["answers"]]
    names = sorted({name for peer in asked for name in peer["answers"]["categories"]})
    rows = [("kind (questions)", *(peer["title"] for peer in asked))]
    for name in names:
        cells = [peer["answers"]["categories"].get(name) for peer in asked]
        count = next(cell[0] for cell in cells if cell)
        rows.append(
            (f"{name} ({count})", *(f"{_share(c[1])} / {_share(c[2])}" if c else NONE for c in cells))
        )
    return rows


def _general(figures: Figures) -> list[str]:
    empty, asked = figures["empty_python"], figures["work"]["questions"]
    busy = empty["wall_p50"] > _BUSY * empty["cpu_p50"]
    told = paragraphs(
        f"""
        {_WHEN_BUSY if busy else _WHEN_QUIET} An empty Python process took {ms(empty["cpu_p50"])}
        ({ms(empty["wall_p50"])}) here.

        With {asked:,} questions, differences under about {100 / asked**0.5:.0f} points of recall are noise.

        The processor's time of a peer includes what the server of vectors worked for it; a command's
        includes the start of its Python or Node. Everything was compiled and in the page cache before.

        What counts as an answer: the line of the note that answers, in the text of the first {FIRST}
        results, spaces and marks aside; of a line longer than {ENOUGH} characters, any {ENOUGH} of them.
        Once with {CUT} characters of each result, the same for all, and once with all that was shown, which
        favours whoever shows more.

        First index: from nothing, with the vectors where it has them; made once where it takes more than
        half a minute, else up to three times. Who takes longer than that when nothing has changed does it
        once too, and no edit by commands. Edit → found: a line is appended to a note, then asked for until it
        is among the first results.

        Memory is that of all processes of a peer together, looked at twenty times a second, and after each
        answer; pages that they share count for each. Sizes are blocks on the disk.

        The notes and questions were written for this project, before anything was searched: unfair to the
        others where they are like what we had in mind.
        """
    )
    return [*figures.get("remarks", ()), *told]


def _left_out(figures: Figures) -> list[str]:
    absent = [f"{title} took no part: {_one_line(why)}." for title, why in figures["absent"].items()]
    failed = [
        f"{peer['title']} stopped taking part at “{_one_line(peer['failure'])}”; rows after that are empty."
        for peer in figures["peers"]
        if peer["failure"]
    ]
    return [*absent, *failed]


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300].rstrip(".")


def _commands(peer: Figures) -> str:
    kinds = (("index", "first index"), ("again", "nothing changed"), ("search", "search"))
    lines = [f"# {told}\n{line}" for key, told in kinds for line in peer["commands"][key]]
    return f"**{peer['title']}**\n\n```\n" + "\n".join(lines) + "\n```"


def _yourself() -> str:
    return """```
make compare                                          everybody; half an hour and more
make compare COMPARE="--only plainmind ripgrep qmd"   some of them
make compare COMPARE="--around large"                 25.5 MB around the same questions
make compare COMPARE="--evals DIR --out FILE"         other questions, in the format of `bench eval`; writes no page
```

Each is installed from its registry into an environment of its own under `~/.cache/plainmind-compare` (npm, and
`uv` in our environment; ripgrep from Debian); `UPGRADE=1` takes the newest. What cannot be installed is left
out, and the page says so. A model for QMD's vectors is named by `COMPARE_GGUF=/path/to/model.gguf`. The program is
[`benchmarks/compare/`](../benchmarks/compare/__init__.py); a peer is one module there."""


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def ms(milliseconds: float) -> str:
    """Milliseconds, or seconds where they are many."""
    if milliseconds >= 10_000:
        return f"{milliseconds / 1000:.0f} s"
    if milliseconds >= 1_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"


def _mb(amount: float) -> str:
    return f"{amount / 1e6:.0f} MB" if amount >= 10e6 else f"{amount / 1e6:.1f} MB"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _time(what: str, which: str = "cpu_p50") -> Callable[[Figures], float | None]:
    return lambda peer: peer["times"].get(what, {}).get(which)


def _answer(what: str) -> Callable[[Figures], float | None]:
    return lambda peer: peer["answers"].get(what)


def _fact(what: str) -> Callable[[Figures], float | None]:
    return lambda peer: peer.get(what) or None


ROWS: Sequence[Row] = (
    (f"recall@{FIRST}, {CUT} characters a result", _answer("recall_cut"), _share, True),
    (f"hit@1, {CUT} characters", _answer("hit_cut"), _share, True),
    (f"recall@{FIRST}, all that is shown", _answer("recall"), _share, True),
    ("hit@1, all that is shown", _answer("hit"), _share, True),
    (f"characters shown by {FIRST} results", _answer("characters"), _count, False),
    ("search, open", _time("warm"), ms, False),
    ("search, open, p95", _time("warm", "cpu_p95"), ms, False),
    ("search, a command", _time("cold"), ms, False),
    ("first index", _time("first"), ms, False),
    ("index, nothing changed, a command", _time("again"), ms, False),
    ("edit → found, open", _time("edit"), ms, False),
    ("edit → found, commands", _time("edit by commands"), ms, False),
    ("index on the disk", _fact("kept_bytes"), _mb, False),
    ("memory, indexing", _fact("index_peak_bytes"), _mb, False),
    ("memory, open", _fact("open_bytes"), _mb, False),
    ("memory, a search by command", _fact("cold_peak_bytes"), _mb, False),
    ("notes that indexing changed", lambda peer: peer.get("changed_files"), _count, False),
)
# The rows that also say what a person waited, and what they are called in the figures.
_TIMED = {
    "search, open": "warm",
    "search, a command": "cold",
    "first index": "first",
    "index, nothing changed, a command": "again",
    "edit → found, open": "edit",
    "edit → found, commands": "edit by commands",
}
