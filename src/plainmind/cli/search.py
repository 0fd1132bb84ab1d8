"""`search`: ask the memory a question, and print the hits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import dropwhile, takewhile

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.value import replace
from plainmind.cli.console import Console, age_in_words, first_few, plural, visible
from plainmind.cli.options import (
    UsageError,
    day,
    describe,
    open_memory,
    share,
    stands_beside,
    text_of,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from datetime import date
    from typing import Any

    from plainmind.base.model import ProgressCallback, SearchHit, SearchResult
    from plainmind.memory.memory import Memory


DEGRADED = 3
_MOST_LOOKED_AT_UNASKED = 5_000
_MOST_BYTES_READ_UNASKED = 50_000_000
_SOURCES = {"memory": ("memory",), "sessions": ("sessions",), "all": ("memory", "sessions")}
_WORD = pattern(r"[^\s|]+")  # a bar stands between cells, and between a link and its label
# What stands at the beginning of a line and is none of its words.
_FIELD_OR_ITEM = pattern(r"[\w-]+:|\s+\S|- ")
_FIELD = pattern(r"[\w-]+:")
_CALLS = pattern(r"(?:title|alias|aliases|tags?|keywords)\s*:", IGNORECASE)
_FIRST_FIELD = 2  # the line of it: above it stands nothing but the mark
_MARKS_BEFORE = pattern(r"^\s*(?:[-*+]\s+|>\s*|#+\s+|\d+[.)]\s+)*")
_ITEM = pattern(r"\s*(?:[-*+]|\d+[.)])\s")
_QUESTION = pattern(r"(?:[?？؟]|か。?)[\"'”»*_)）」\s]*$")
_LINES_TO_REPLY = 4
_FENCE = pattern(r"\s*(?:`{3}|~{3})")
_RULE = pattern(r"[-=*_|:\s]+$")  # of a table, too
_BELOW_HEAD = pattern(r"[\s|:]*-[-\s|:]*$")
_NUMBER = pattern(r"\d+")
_LEAST_LINES = 4  # of a hit: fewer tell nothing
_PUNCTUATION = "\"'`*_.,;:!?()[]{}<>…“”‘’"


def add_search(parser: argparse.ArgumentParser) -> None:
    """Say what `search` takes."""
    describe(
        parser,
        """\
Find the lines that answer a question, by meaning and by word, best first. Every edit that was saved before is seen.

In the question, "an exact phrase" must stand there word for word, -word must not, and tag:garden, title:printer,
path:projects, since:2026-11 and until:yesterday restrict where to look. A shell takes quotes away: put others around.

Reads the workspace and keeps an index of it in ~/.plainmind; nothing else is written.""",
        examples=(
            "plainmind search which VLAN is the printer on",
            """plainmind search 'printer "paper jam" -office' --path 'projects/**' --since 'last month'""",
            "plainmind search ERR_LEDGER_SKEW -n 1 --explain",
            "echo 'what did we decide on Friday?' | plainmind search - --json",
        ),
        run=run_search,
    )
    parser.add_argument(
        "words",
        metavar="QUERY",
        nargs="*",
        help="the question; quotes are optional, - reads stdin; without one, what passes the filters is listed",
    )
    parser.add_argument(
        "-n", dest="max_results", metavar="N", type=whole_number(1, 1000), help="at most N hits (6)"
    )
    parser.add_argument(
        "--min-score", metavar="S", type=share, help="leave out hits below S, from 0 to 1 (0)"
    )
    parser.add_argument("--source", choices=tuple(_SOURCES), help="look only here")
    parser.add_argument(
        "--tool-output",
        action="store_true",
        help="look in what tools gave in conversations, by its words; it is in no index, so all of them are read",
    )
    parser.add_argument(
        "--path",
        dest="paths",
        metavar="GLOB",
        action="append",
        help="only in files or folders of this name, such as projects, '2026-*' or 'work/**/plan.md'; may be repeated",
    )
    parser.add_argument(
        "--tag", dest="tags", metavar="TAG", action="append", help="only what has this tag; with several, all"
    )
    parser.add_argument(
        "--since",
        metavar="DAY",
        help="only from this day on: 2026-11-02, 2026-11, yesterday; a note without a day has that of its file",
    )
    parser.add_argument("--until", metavar="DAY", help="only up to this day")
    parser.add_argument(
        "--snippet-chars",
        metavar="C",
        type=whole_number(20, 100_000),
        help="at most C characters of each hit (700)",
    )
    parser.add_argument(
        "--all-agents",
        action="store_true",
        help="ask the indexes of all agents as they are, or of some with --agent a,b; on a server an operator may",
    )
    parser.add_argument(
        "--brief", action="store_true", help="print one line a hit: the one that answers best"
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="let a model read the best results once more (package: plainmind-reranker)",
    )
    parser.add_argument("--explain", action="store_true", help="say why each hit is where it is")
    parser.add_argument("--today", metavar="DATE", type=day, help="search as if it were this day")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when not everything could be consulted"
    )


def run_search(arguments: argparse.Namespace, console: Console) -> int:
    """Search and print the hits."""
    query = text_of(arguments.words)
    if not arguments.words and not (arguments.tags or arguments.paths or arguments.since or arguments.until):
        raise UsageError(
            "QUERY is missing", "ask something, or say what to list: plainmind search --tag garden"
        )
    with open_memory(arguments) as memory:
        with console.progress("indexing") as progress:
            result = _answer(memory, query, arguments, progress)
        if console.json:
            remarks = tuple(_beside_the_question(memory, arguments, result))
            result = replace(result, notes=(*result.notes, *remarks)) if remarks else result
            console.result(_as_json(result, with_citations=memory.shows_citations))
        else:
            today = arguments.today or memory.now().date()
            whole = not console.is_terminal or arguments.snippet_chars is not None
            if result.hits and not result.is_certain:
                console.note("nothing certain was found; this is nearest:")
            is_asked = arguments.min_score is not None or arguments.max_results is not None
            shown = result if is_asked else replace(result, hits=result.worth_a_look)
            print_hits(console, shown, today=today, whole=whole, brief=arguments.brief)
            if len(shown.hits) < len(result.hits):
                left = plural(len(result.hits) - len(shown.hits), "hit")
                console.note(f"{left} with a score of 0.00 left out; --min-score 0 shows them")
            if not result.hits:
                # How much others have is not known here.
                is_empty = not _asks_several(arguments) and not memory.status()["files"]
                _explain_nothing(console, result, is_empty=is_empty, workspace=memory.workspace)
            for remark in _beside_the_question(memory, arguments, result):
                console.hint(remark)
    return DEGRADED if arguments.strict and (result.degraded or result.fallback) else 0


def _has_a_word(result: SearchResult) -> bool:
    """Whether any hit has a word of the question, or is only near to it."""
    from plainmind.text.terms import query_terms

    wanted = frozenset(query_terms(result.query).terms)
    return any(_has_words(hit.snippet, wanted) for hit in result.hits)


def _beside_the_question(
    memory: Memory, arguments: argparse.Namespace, result: SearchResult
) -> Iterator[str]:
    """Where else an answer may be, when none is certain: the folder one is in, conversations, the output of tools."""
    if result.is_certain or not result.query.strip():
        return
    yield from _left_out(memory)
    yield from _beside_the_notes(memory, is_more=bool(result.hits))
    if not os.path.isdir(memory.places.sessions):
        return
    if arguments.tool_output or arguments.source == "memory" or not (rows := memory.sessions.list()):
        return
    if "sessions" not in memory.sources and arguments.source is None:
        yield (
            "conversations were not searched: `plainmind search --source all` does that, and"
            " `plainmind config set sources memory,sessions` lets every search do it"
        )
    if _has_a_word(result):
        return
    if sum(row.size_bytes for row in rows) > _MOST_BYTES_READ_UNASKED:
        yield "what tools gave was not searched: `plainmind search --tool-output …` looks there"
    elif memory.search_tool_output(result.query, max_results=1).hits:
        yield "the words stand in the output of a tool: `plainmind search --tool-output …` shows it"


def _left_out(memory: Memory) -> Iterator[str]:
    """Which notes were not read, though nobody has said so: too large, or behind a link."""
    from plainmind.files.safe_open import SYMBOLIC_LINK
    from plainmind.notes.discovery import OVER_THE_LIMIT

    left = [
        f"{each.path} ({each.reason})"
        for each in memory.index.left_out
        if each.reason == SYMBOLIC_LINK or OVER_THE_LIMIT in each.reason
    ]
    if left:
        more = f" and {plural(len(left) - 1, 'other')}" if len(left) > 1 else ""
        yield f"left out of every search: {left[0]}{more}; `plainmind status` lists what is and why"


def _beside_the_notes(memory: Memory, *, is_more: bool) -> Iterator[str]:
    """Which Markdown nearby was not read; with `is_more` only where it is more than what was."""
    if stands_beside(memory):
        yield (
            "the folder you are in holds Markdown too: `plainmind search --workspace . …` searches it, and"
            " `plainmind init .` makes it a memory of its own"
        )
    if memory.workspace_origin.kind in {"found", "flag"} and not memory.is_folder_of_notes:
        from plainmind.memory.doctor import unread_in

        unread = unread_in(memory.notes.workspace, most_entries=_MOST_LOOKED_AT_UNASKED, is_more=is_more)
        if unread is not None:
            yield f"{unread}; an empty `.plainmindignore` makes all of it the memory"


def _answer(
    memory: Memory, query: str, arguments: argparse.Namespace, progress: ProgressCallback | None
) -> SearchResult:
    wanted: dict[str, Any] = {
        "max_results": arguments.max_results,
        "min_score": arguments.min_score,
        "sources": _SOURCES[arguments.source] if arguments.source else None,
        "snippet_chars": arguments.snippet_chars,
        "explain": arguments.explain,
        "today": arguments.today,
        "paths": arguments.paths or (),
        "tags": arguments.tags or (),
        "since": arguments.since,
        "until": arguments.until,
    }
    if arguments.tool_output:
        return memory.search_tool_output(query, max_results=arguments.max_results)
    if _asks_several(arguments):
        if arguments.deep:
            raise PlainmindError(
                "--deep looks at the results of one index", hint="leave out --all-agents and --agent a,b"
            )
        return memory.search_agents(query, arguments.asked_agents or None, **wanted)
    return memory.search(query, progress=progress, deep=arguments.deep, **wanted)


def _asks_several(arguments: argparse.Namespace) -> bool:
    return bool(arguments.all_agents or arguments.asked_agents)


def _hit_as_json(hit: SearchHit, *, with_citations: bool) -> dict[str, Any]:
    fields = hit.as_fields()
    if with_citations:
        fields["citation"] = hit.citation or citation(hit)
    if hit.explanation is not None:
        fields["explanation"] = dict(hit.explanation)
    return fields


def _as_json(result: SearchResult, *, with_citations: bool) -> dict[str, Any]:
    answer = {
        "query": result.query,
        "results": [_hit_as_json(hit, with_citations=with_citations) for hit in result.hits],
        "provider": result.provider,
        "model": result.model,
        "mode": result.mode,
        "confidence": round(result.confidence, 4),
        "certain": result.is_certain,
        "degraded": list(result.degraded),
        "timings": dict(result.timings),
    }
    if result.fallback is not None:
        answer["fallback"] = dict(result.fallback)
    if result.notes:
        answer["notes"] = list(result.notes)
    if result.understood:
        answer["understood"] = list(result.understood)
    return answer


def _explain_nothing(console: Console, result: SearchResult, *, is_empty: bool, workspace: str) -> None:
    if is_empty:
        console.note(f"there is nothing to search in {workspace} yet")
        console.hint('write something down: plainmind remember "…", or put Markdown files into memory/')
    elif any(part.startswith(("only", "not ", "without")) for part in result.understood):
        console.note(f"nothing was found; understood: {'; '.join(result.understood)}")
        console.hint("try other words, or ask without what restricts the question")
    elif not result.query.strip():
        console.note("the question is empty")
    else:
        console.note(
            "nothing was found; try other words, a lower --min-score, or `plainmind list` to see what there is"
        )


def citation(hit: SearchHit) -> str:
    """`memory/network.md#L3-L7`, or `#L5` for one line."""
    from plainmind.base.model import CitedLines

    return str(CitedLines(hit.path, hit.start_line, hit.end_line))


# What a question says of where to look, and not of what to look for.
_FILTERS = pattern(
    r"""(?<!\S)(?:-(?=[\w"])|-?(?:tag|path|since|until):)(?:"[^"]*"|\S+)|(?<!\S)title:""", IGNORECASE
)


def words_asked(result: SearchResult) -> str:
    """The question without its filters."""
    return _FILTERS.sub(" ", result.query) if result.understood else result.query


def print_hits(
    console: Console, result: SearchResult, *, today: date, whole: bool = True, brief: bool = False
) -> None:
    """Print all hits, each whole or as much as fits the terminal, then on stderr what was not consulted."""
    wanted: AbstractSet[str] = frozenset()
    if console.has_colors or brief:
        from plainmind.text.terms import query_terms

        wanted = frozenset(query_terms(words_asked(result)).terms)
    if result.understood and any(hit.explanation is not None for hit in result.hits):
        console.answer(console.style(f"understood: {visible('; '.join(result.understood))}", "dim"))
        console.answer()
    room = None if whole else _room_for(len(result.hits))
    for number, hit in enumerate(result.hits):
        if brief:
            _print_briefly(console, hit, wanted, words_asked(result), today)
        else:
            if number:
                console.answer()
            _print_hit(console, hit, wanted, room)
        if hit.explanation is not None:
            why = reason(hit.explanation, words_asked(result), hit.path, today)
            console.answer(console.style(f"  why: {why}", "dim"))
            if hit.also:
                also = ", ".join(f"{visible(place.path)}:{place.start_line}" for place in hit.also)
                console.answer(console.style(f"  also: {also}", "dim"))
    for note in (*result.degraded, *result.notes):
        console.note(note)
    if result.fallback is not None:
        console.note("{to} answers in place of {from}: {reason}".format(**result.fallback))


def _print_hit(
    console: Console, hit: SearchHit, wanted: AbstractSet[str], room: tuple[int, int] | None
) -> None:
    last = "" if hit.end_line == hit.start_line else f"-{hit.end_line}"
    place = console.style(f"{visible(hit.path)}:{hit.start_line}{last}", "path")
    console.answer(f"{hit.score:.2f}  {place}{_other_places(hit)}")
    if hit.headings:
        console.answer(console.style(f"  {_headings_that_fit(hit.headings, room)}", "dim"))
    for line in _lines_to_print(console.printable(hit.snippet), hit, room):
        console.answer(f"  {emphasise(console, line, wanted)}".rstrip())
    if hit.until:
        console.answer(console.style(f"  {_held_until(hit)}", "yellow"))


def _print_briefly(
    console: Console, hit: SearchHit, wanted: AbstractSet[str], question: str, today: date
) -> None:
    """Print the line of a hit that answers best, as much of it as fits."""
    lines = hit.snippet.split("\n")
    best = hit.best_line - hit.start_line
    best = best if 0 <= best < len(lines) else 0
    told, under = _below_front_matter(lines)
    if best not in told:
        best = max(best, under)
    elif best < under and _has_words(lines[under], wanted) and not _has_words(lines[best], wanted):
        best = under  # the title is what was asked for, and the field only stands above it
    numbers = frozenset(_NUMBER.findall(question))
    if lines[best].startswith("#"):
        heading, best = best, _answer_below(lines, best, wanted | numbers)
        best = _one_that_holds(lines, best, wanted, question, today, below=lines[heading])
        text = _words_alone(lines[best])
        if best != heading:
            name = _words_alone(lines[heading])
            text = f"{name} {text}" if _QUESTION.search(name) else f"{name}: {text}"
    else:
        best = _row_asked_for(
            lines, _reply_to(lines, best, is_talk=hit.source == "sessions"), wanted | numbers
        )
        if hit.source != "sessions":
            best = _one_that_holds(lines, best, wanted, question, today)
        text = _words_alone(lines[best])
    place = f"{visible(hit.path)}:{hit.start_line + best}"
    if console.is_terminal:
        from plainmind.cli.console import columns, fitting

        width = columns() - len(place) - 8
        text = text if len(text) < width // 2 else fitting(text, max(width, 20))
    console.answer(
        f"{hit.score:.2f}  {console.style(place, 'path')}  {emphasise(console, text, wanted)}{_other_places(hit)}"
    )


def _answer_below(lines: Sequence[str], heading: int, wanted: AbstractSet[str]) -> int:
    """Where below a heading the line stands that has most words of the question, of several the first."""
    below = range(heading + 1, len(lines))
    section = takewhile(
        lambda at: not lines[at].startswith("#"), dropwhile(lambda at: _is_no_text(lines[at]), below)
    )
    answers = [at for at in section if not _is_frame(lines[at])]
    if not answers:
        return heading
    return _row_asked_for(lines, max(answers, key=lambda at: len(_words_in(lines[at], wanted))), wanted)


def _row_asked_for(lines: Sequence[str], at: int, wanted: AbstractSet[str]) -> int:
    """Of a table's head, where the row stands that has most words of the question, in cells of their own if it can.

    A head says what the cells below it are, and none of what they hold; it stays where no row has any word.
    """
    head = next((each for each in (at, at - 1) if 0 <= each < len(lines) and _is_head(lines, each)), None)
    if head is None:
        return at
    rows = list(takewhile(lambda each: "|" in lines[each], range(head + 2, len(lines))))
    worth = [(len(_words_in(lines[row], wanted)), _cells_alone(lines[row], wanted)) for row in rows]
    best = max(worth, default=(0, 0))
    return rows[worth.index(best)] if best[0] else head


def _is_head(lines: Sequence[str], at: int) -> bool:
    return "|" in lines[at] and at + 1 < len(lines) and _BELOW_HEAD.match(lines[at + 1]) is not None


def _cells_alone(row: str, wanted: AbstractSet[str]) -> int:
    """How many cells of a row have words of the question and no others."""
    from plainmind.text.terms import document_terms

    cells = [set(document_terms(cell)) for cell in row.split("|")]
    return sum(bool(cell) and cell <= wanted for cell in cells)


def _one_that_holds(
    lines: Sequence[str], best: int, wanted: AbstractSet[str], question: str, today: date, *, below: str = ""
) -> int:
    """For a line that says how it was, where the one of its section stands that says as much of how it is."""
    from plainmind.text.function_words import ASKS_ABOUT_THEN, FROM_NOW, HOLDS, OVER
    from plainmind.text.terms import mentioned_days

    if not OVER.search(_words_alone(lines[best])) or FROM_NOW.search(lines[best]):
        return best
    if ASKS_ABOUT_THEN.search(question) or mentioned_days(question, today):
        return best
    first = next((at + 1 for at in range(best, -1, -1) if lines[at].startswith("#")), 0)
    section = takewhile(lambda at: not lines[at].startswith("#"), range(first, len(lines)))
    # What stands below a heading need not say again what it is about.
    said = (
        len(_words_in(lines[best], wanted) - _words_in(below, wanted)) - 1
        if below
        else len(_words_in(lines[best], wanted))
    )
    holding = [
        at
        for at in section
        if (HOLDS.search(lines[at]) or FROM_NOW.search(lines[at]))
        and not OVER.search(_words_alone(lines[at]))
        and len(_words_in(lines[at], wanted)) >= max(said, not below)
        and all(span.first <= today for span in mentioned_days(lines[at], today))
    ]
    return holding[-1] if holding else best


def _is_no_text(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _is_frame(line: str) -> bool:
    """Whether a line has no words of its own: what begins and ends code, and rules."""
    return not line.strip() or _FENCE.match(line) is not None or _RULE.match(line) is not None


def _reply_to(lines: Sequence[str], best: int, *, is_talk: bool) -> int:
    """Where the reply stands to a line that is a question itself; the line where there is none."""
    asked = lines[best]
    if not _QUESTION.search(asked):
        return best
    from plainmind.text.terms import speaker_of

    asks = speaker_of(asked)
    for at in range(best + 1, min(best + 1 + _LINES_TO_REPLY, len(lines))):
        line = lines[at]
        if not line.strip() or _FENCE.match(line):
            continue
        if line.startswith("#") or _QUESTION.search(line) or _RULE.match(line):
            break
        if asks is not None and (is_talk or speaker_of(line) is not None):
            if speaker_of(line) != asks:
                return at
            continue
        # The next item of a list is another matter, unless it stands below this one.
        is_below = _indent_of(line) > _indent_of(asked)
        return at if is_below or not (_ITEM.match(asked) or _ITEM.match(line)) else best
    return best


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def _has_words(line: str, wanted: AbstractSet[str]) -> bool:
    return bool(_words_in(line, wanted))


def _words_in(line: str, wanted: AbstractSet[str]) -> AbstractSet[str]:
    from plainmind.text.terms import document_terms

    return wanted & {*document_terms(line), *_NUMBER.findall(line)}


def _below_front_matter(lines: list[str]) -> tuple[dict[int, str], int]:
    """The fields at the top of a note that tell something, by their places, and where its words begin.

    What a note is called, and its tags, answer nothing: they have led to it.
    """
    end = lines.index("---") if "---" in lines else 0
    is_matter = end and all(_FIELD_OR_ITEM.match(line) for line in lines[:end] if line.strip())
    below = [at for at, line in enumerate(lines) if at > end and line.strip()] if is_matter else []
    if not below:
        return {}, 0
    told = {}
    is_told = False
    for at, line in enumerate(lines[:end]):
        if _FIELD.match(line):
            is_told = not _CALLS.match(line)
        if is_told:
            told[at] = line
    return told, below[0]


def _held_until(hit: SearchHit) -> str:
    """Until when a line holds, and what holds now."""
    if hit.newer is None:
        return f"until {hit.until}"
    return f"until {hit.until}, now {visible(str(hit.newer))}: {visible(hit.newer.text)}".rstrip(": ")


def _other_places(hit: SearchHit) -> str:
    places = f"  (in {len(hit.also) + 1} places)" if hit.also else ""
    older = ", ".join(f"{visible(place.path)}:{place.start_line}" for place in hit.older)
    return f"{places}  (newer than {older})" if older else places


def _words_alone(line: str) -> str:
    return " ".join(_MARKS_BEFORE.sub("", visible(line)).split())


def _room_for(hits: int) -> tuple[int, int]:
    """How many columns and lines of text each of some hits has, so that all fit a terminal, if they are few."""
    from plainmind.cli.console import columns, rows

    return max(columns() - 2, 20), max(_LEAST_LINES, (rows() - 2) // max(hits, 1) - 3)


def _headings_that_fit(headings: str, room: tuple[int, int] | None) -> str:
    """The path of headings, without its first ones where it is too long."""
    if room is None:
        return visible(headings)
    from plainmind.cli.console import cells, fitting

    parts = visible(headings).split(" › ")
    while len(parts) > 2 and cells(" › ".join(parts)) > room[0]:
        parts[:2] = ["…"]
    if len(parts) == 2 and cells(" › ".join(parts)) > room[0]:
        parts[0] = fitting(parts[0], max(room[0] - cells(parts[1]) - 3, 8))
    return fitting(" › ".join(parts), room[0])


def _lines_to_print(snippet: str, hit: SearchHit, room: tuple[int, int] | None) -> list[str]:
    """The lines of a snippet below its headings, from the one that answers where they are too many."""
    lines = snippet.split("\n")
    known = hit.headings.split(" › ")
    best = hit.best_line - hit.start_line if len(lines) == hit.end_line - hit.start_line + 1 else 0
    fields, first = _below_front_matter(lines) if hit.start_line <= _FIRST_FIELD else ({}, 0)
    told, best = fields.values(), max(best, first)
    while first < len(lines) - 1 and (not lines[first] or lines[first].lstrip("# ") in known):
        first += 1
    if room is None:
        return [*told, *lines[first:]]
    from plainmind.cli.console import wrapped

    width, most = room
    before = [part for line in lines[first:best] for part in wrapped(line, width)]
    if len(before) >= most:  # what answers would not be seen
        first = best
    # Other sections fill up what an agent reads; a person sees where they are.
    end = next(
        (at for at in range(max(first, best) + 1, len(lines)) if lines[at].startswith("#")), len(lines)
    )
    shown = [part for line in (*told, *lines[first:end]) for part in wrapped(line.rstrip(), width)]
    while len(shown) > 1 and not shown[-1]:
        shown.pop()
    if len(shown) > most:
        shown = shown[:most]
        while not shown[-1]:
            shown.pop()
        shown[-1] += " …" if len(shown[-1]) < width - 2 else "…"
    return shown


def emphasise(console: Console, line: str, wanted: AbstractSet[str]) -> str:
    """Make the words that the question has too stand out."""
    if not wanted:
        return line
    parts: list[str] = []
    end = 0
    for start, stop in matched_spans(line, wanted):
        parts += (line[end:start], console.style(line[start:stop], "bold"))
        end = stop
    return "".join(parts) + line[end:]


def matched_spans(line: str, wanted: AbstractSet[str]) -> list[tuple[int, int]]:
    """Where a line has words of the question, in order and without overlaps."""
    from plainmind.text.terms import document_terms

    spans: list[tuple[int, int]] = []
    for found in _WORD.finditer(line):
        word = found[0]
        if word.isascii():
            bare = word.strip(_PUNCTUATION)
            if bare and not wanted.isdisjoint(document_terms(word)):
                start = found.start() + word.index(bare)
                spans.append((start, start + len(bare)))
        else:
            spans += (
                (found.start() + start, found.start() + stop) for start, stop in _spans_in(word, wanted)
            )
    return _join(sorted(spans))


def _spans_in(word: str, wanted: AbstractSet[str]) -> Iterator[tuple[int, int]]:
    """Where terms stand within a word: Chinese and Japanese write whole sentences without a space."""
    from plainmind.text.terms import document_terms, may_be_spaceless

    hits = [term for term in wanted & set(document_terms(word)) if term]
    if hits and not may_be_spaceless(word):
        bare = word.strip(_PUNCTUATION + "¿¡«»„")
        yield word.index(bare), word.index(bare) + len(bare)
        return
    inside = False
    for term in hits:
        at = word.casefold().find(term)
        while at >= 0:
            inside = True
            yield at, at + len(term)
            at = word.casefold().find(term, at + 1)
    if hits and not inside:  # an accent or an ending makes the difference: the whole word
        yield 0, len(word)


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def reason(explanation: Mapping[str, Any], query: str, path: str, today: date) -> str:
    """One readable line about why a hit was chosen."""
    from plainmind.notes.workspace import day_of

    line = f"line {explanation['bestLine']}" if "bestLine" in explanation else "the line"
    parts = [f"{line} has {_words_in_line(explanation, query)}"]
    parts += _found_by(explanation)
    if verdicts := explanation.get("verdicts"):
        told = ", ".join(f"{name} × {count}" for name, count in verdicts.items())
        parts.append(f"judged {told}: {explanation['change']:+.1f}")
    if "insteadOf" in explanation:
        parts.append(f"took the place of a line in {explanation['insteadOf']}")
    if "newer" in explanation:
        parts.append(f"superseded by {explanation['newer']}: {explanation['change']:+.1f}")
    elif "until" in explanation and explanation["change"]:
        parts.append(f"held until {explanation['until']}: {explanation['change']:+.1f}")
    day = day_of(path)
    if day and (age := age_in_words(day, today)):
        recency = float(explanation.get("recency", 1.0))
        parts.append(f"{age}, weighs × {recency:.2f}" if recency < 0.995 else age)
    return "; ".join(parts)


def _found_by(explanation: Mapping[str, Any]) -> Iterator[str]:
    """What spoke for a hit beside its words."""
    if explanation.get("exactToken"):
        yield "an exact match"
    if explanation.get("speaker"):
        yield "said by somebody whom the question names"
    if explanation.get("meaning"):
        yield f"meaning {explanation['meaning']:.2f}"
    if explanation.get("namedDay"):
        yield "from a day that the question names"
    if "secondLook" in explanation:
        yield _second_look(explanation["secondLook"])


_UNREAD = {"time": "had no time for it", "language": "does not know the language"}


def _second_look(seen: Mapping[str, Any]) -> str:
    """What the reranker says, and where the result stood without it."""
    said = f"{seen['logOdds']:+.1f}" if "unread" not in seen else _UNREAD[seen["unread"]]
    return f"second look {said}, from place {seen['place']}"


def _words_in_line(explanation: Mapping[str, Any], query: str) -> str:
    words = words_of(query)
    matched = set(explanation.get("matched", ()))
    found = [name for name, terms in words if matched & terms]
    if not found:
        around = explanation.get("nearby") or explanation.get("passage") or explanation.get("keywords")
        return "none of the words" + (", but stands near some" if words and around else "")
    named = first_few(found)
    if len(found) < len(words):
        return f"{len(found)} of {len(words)} words ({named})"
    return f"the word ({named})" if len(words) == 1 else f"all {len(words)} words ({named})"


def words_of(query: str) -> list[tuple[str, frozenset[str]]]:
    """Name the words of a question that count, with the terms each stands for; of spaceless text the pairs."""
    from plainmind.text.terms import query_terms

    units: dict[str, frozenset[str]] = {}
    for word in query.split():
        found = query_terms(word)
        if found.only_stop_words:
            continue
        if word.isascii():
            bare = word.strip(_PUNCTUATION)
            if found.terms:
                units[bare] = frozenset(found.terms)
        else:
            units |= {term: frozenset({term}) for term in found.terms}
    return list(units.items())
