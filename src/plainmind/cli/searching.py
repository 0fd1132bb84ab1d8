"""`search`: ask the memory a question."""

from __future__ import annotations

import argparse

from plainmind.cli.console import Console
from plainmind.cli.opening import opened, text_of
from plainmind.cli.options import day, describe, share, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.model import ProgressCallback, SearchResult
    from plainmind.memory.facade import Memory

DEGRADED = 3
_SOURCES = {"memory": ("memory",), "sessions": ("sessions",), "all": ("memory", "sessions")}


def add_search(parser: argparse.ArgumentParser) -> None:
    """Say what `search` takes."""
    describe(
        parser,
        """\
Find the lines that answer a question, by meaning and by word, best first. Every edit that was saved before is seen.

Reads the workspace and keeps an index of it in ~/.plainmind; nothing else is written.""",
        examples=(
            "plainmind search which VLAN is the printer on",
            "plainmind search ERR_LEDGER_SKEW -n 1 --explain",
            "echo 'what did we decide on Friday?' | plainmind search - --json",
        ),
        run=run_search,
    )
    parser.add_argument(
        "words", metavar="QUERY", nargs="+", help="the question; quotes are optional, - reads stdin"
    )
    parser.add_argument(
        "-n", dest="max_results", metavar="N", type=whole_number(1, 1000), help="at most N hits (6)"
    )
    parser.add_argument(
        "--min-score", metavar="S", type=share, help="leave out hits below S, from 0 to 1 (0.35)"
    )
    parser.add_argument("--source", choices=tuple(_SOURCES), help="look only here")
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
    parser.add_argument("--explain", action="store_true", help="say why each hit is where it is")
    parser.add_argument("--today", metavar="DATE", type=day, help="search as if it were this day")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when not everything could be consulted"
    )


def run_search(arguments: argparse.Namespace, console: Console) -> int:
    """Search and print the hits."""
    query = text_of(arguments.words)
    with opened(arguments) as memory:
        with console.progress("indexing") as progress:
            result = _answer(memory, query, arguments, progress)
        if console.json:
            console.result(_as_json(result, with_citations=memory.parts.loaded.settings.citations != "off"))
        else:
            from plainmind.cli.hits import print_hits

            print_hits(console, result, today=arguments.today or memory.parts.now().date())
            if not result.hits:
                # How much others have is not known here.
                is_empty = not _asks_several(arguments) and not memory.status()["files"]
                _explain_nothing(console, query, is_empty=is_empty, workspace=memory.workspace)
                is_partial = "sessions" not in memory.parts.loaded.settings.sources
                if is_partial and arguments.source is None and memory.sessions.list():
                    console.hint(
                        "conversations were not searched: `plainmind sessions search` does that, and"
                        " `plainmind config set sources memory,sessions` lets every search do it"
                    )
    return DEGRADED if arguments.strict and (result.degraded or result.fallback) else 0


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
    }
    if _asks_several(arguments):
        from plainmind.memory.across_agents import search_agents

        return search_agents(memory.parts, query, arguments.asked_agents or None, **wanted)
    return memory.search(query, progress=progress, **wanted)


def _asks_several(arguments: argparse.Namespace) -> bool:
    return bool(arguments.all_agents or arguments.asked_agents)


def _as_json(result: Any, *, with_citations: bool) -> dict[str, Any]:
    from plainmind.cli.hits import citation

    hits = []
    for hit in result.hits:
        fields = {
            "path": hit.path,
            "startLine": hit.start_line,
            "endLine": hit.end_line,
            "score": round(hit.score, 4),
            "snippet": hit.snippet,
            "source": hit.source,
        }
        if with_citations:
            fields["citation"] = hit.citation or citation(hit)
        if hit.explanation is not None:
            fields["explanation"] = dict(hit.explanation)
        hits.append(fields)
    answer = {
        "query": result.query,
        "results": hits,
        "provider": result.provider,
        "model": result.model,
        "mode": result.mode,
        "degraded": list(result.degraded),
        "timings": dict(result.timings),
    }
    if result.fallback is not None:
        answer["fallback"] = dict(result.fallback)
    if result.notes:
        answer["notes"] = list(result.notes)
    return answer


def _explain_nothing(console: Console, query: str, *, is_empty: bool, workspace: str) -> None:
    if is_empty:
        console.note(f"there is nothing to search in {workspace} yet")
        console.hint('write something down: plainmind remember "…", or put Markdown files into memory/')
    elif not query.strip():
        console.note("the question is empty")
    else:
        console.note(
            "nothing was found; try other words, a lower --min-score, or `plainmind list` to see what there is"
        )
