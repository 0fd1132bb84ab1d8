"""The memory as one of OpenAI's vector stores, and as QMD answers questions over HTTP: search, and nothing else."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence

from plainmind.agent.recall import as_data
from plainmind.agent.recalls import Asker, lines_of_hits
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.model import sha256_text
from plainmind.guests.page.call import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.model import SearchHit

STORE = "vs_memory"
_MOST = 50  # results of one search
_USUAL = 10
_MOST_QUESTIONS = 10
_STARTED = time.monotonic()


# --- OpenAI ---


def list_stores(call: Call) -> Reply:
    """There is one: all that the token may see."""
    store = _store(call)
    return Reply({"object": "list", "data": [store], "first_id": STORE, "last_id": STORE, "has_more": False})


def read_store(call: Call) -> Reply:
    """What it is called, and how much is in it."""
    _require_store(call)
    return Reply(_store(call))


def search(call: Call) -> Reply:
    """Find the lines that answer, with the score that they have here: a probability."""
    _require_store(call)
    body = call.body or {}
    questions = _questions(body.get("query"))
    most = whole(body, "max_num_results", _USUAL, most=_MOST)
    ranking = body.get("ranking_options") or {}
    least = ranking.get("score_threshold") if isinstance(ranking, dict) else None
    filters = body.get("filters")
    hits = found_for(
        call,
        questions,
        surface="openai",
        most=_MOST if filters else most,
        min_score=float(least) if isinstance(least, int | float) else None,
    )
    kept = [hit for hit in hits if filters is None or _passes(filters, _attributes(hit))][:most]
    data = [
        {
            "file_id": f"file_{sha256_text(hit.path)[:24]}",
            "filename": hit.path,
            "score": round(hit.score, 4),
            "attributes": _attributes(hit),
            "content": [{"type": "text", "text": as_data(hit.snippet)}],
        }
        for hit in kept
    ]
    return Reply(
        {
            "object": "vector_store.search_results.page",
            "search_query": questions,
            "data": data,
            "has_more": False,
            "next_page": None,
        }
    )


def _store(call: Call) -> dict[str, Any]:
    files = call.files()
    count = len(files)
    changed = max((found.mtime_ns for found in files), default=0) // 1_000_000_000
    counts = {"total": count, "completed": count, "in_progress": 0, "failed": 0, "cancelled": 0}
    return {
        "id": STORE,
        "object": "vector_store",
        "name": "memory",
        "created_at": changed,
        "last_active_at": changed,
        "status": "completed",
        "usage_bytes": sum(found.size for found in files),
        "file_counts": counts,
        "metadata": {},
    }


def _require_store(call: Call) -> None:
    if call.parameters["store"] != STORE:
        raise NotFound(
            f"there is no vector store `{call.parameters['store'][:60]}`", hint=f"the memory is `{STORE}`"
        )


def _attributes(hit: SearchHit) -> dict[str, str | float]:
    from plainmind.notes.workspace import day_of

    facts: dict[str, str | float] = {
        "path": hit.path,
        "source": hit.source,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "headings": as_data(hit.headings)[:512],
        "day": day_of(hit.path) or "",
    }
    if hit.until:
        facts["until"] = hit.until
    if hit.newer is not None:
        facts["newer"] = str(hit.newer)
    return facts


_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda one, others: one in others,
    "nin": lambda one, others: one not in others,
}
_DEEPEST = 8


def _passes(wanted: object, facts: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a result is as a filter wants it. Raises PlainmindError for what is no filter."""
    if not isinstance(wanted, dict) or depth > _DEEPEST:
        raise PlainmindError("`filters` must be a comparison, or some of them joined by `and` or `or`")
    kind = wanted.get("type")
    if kind in {"and", "or"} and isinstance(wanted.get("filters"), list):
        results = [_passes(each, facts, depth + 1) for each in wanted["filters"]]
        return all(results) if kind == "and" else any(results)
    key, compared = wanted.get("key"), _COMPARED.get(str(kind))
    if compared is None or not isinstance(key, str):
        raise PlainmindError(
            f"there is no filter of type `{str(kind)[:40]}`", hint=f"use {', '.join(_COMPARED)}, `and`, `or`"
        )
    if key not in {*facts, "until", "newer"}:
        raise PlainmindError(
            f"results have no attribute `{key[:60]}`", hint=f"they have {', '.join(sorted(facts))}"
        )
    try:
        return bool(compared(facts.get(key, ""), wanted.get("value")))
    except TypeError:
        return False


# --- QMD ---


def tell_health(_call: Call) -> Reply:
    """Say that somebody is there."""
    return Reply({"status": "ok", "uptime": int(time.monotonic() - _STARTED)})


def query(call: Call) -> Reply:
    """Answer searches of any type by the one search that there is here, which looks for words and meaning."""
    body = call.body or {}
    searches = body.get("searches")
    if not isinstance(searches, list) or not searches:
        raise PlainmindError(
            "`searches` is missing", hint='send {"searches": [{"type": "lex", "query": "…"}]}'
        )
    questions = _questions([one.get("query") if isinstance(one, dict) else None for one in searches])
    least = body.get("minScore")
    hits = found_for(
        call,
        questions,
        surface="qmd",
        most=whole(body, "limit", _USUAL, most=_MOST),
        min_score=float(least) if isinstance(least, int | float) else None,
    )
    wanted = body.get("collections")
    if isinstance(wanted, list) and wanted:
        hits = [hit for hit in hits if hit.source in wanted]
    return Reply({"results": [_as_qmd(hit) for hit in hits]})


def _as_qmd(hit: SearchHit) -> dict[str, Any]:
    count = hit.end_line - hit.start_line + 1
    title = hit.headings.split(" › ")[0] if hit.headings else hit.path.rpartition("/")[2].removesuffix(".md")
    return {
        "docid": f"#{sha256_text(hit.path)[:6]}",
        "file": f"qmd://{hit.source}/{hit.path}",
        "title": as_data(title),
        "score": round(hit.score, 2),
        "context": None,
        "line": hit.best_line or hit.start_line,
        "snippet": f"@@ -{hit.start_line},{count} @@\n{as_data(hit.snippet)}",
    }


# --- both ---


def found_for(
    call: Call, questions: Sequence[str], *, surface: str, most: int, min_score: float | None
) -> list[SearchHit]:
    """What answers any of some questions, the best first; it goes into the recall log as what an agent was given."""
    scoped = call.memory.within(call.caller.context, asker=Asker(surface, call.caller.name))
    best: dict[tuple[str, int, int], SearchHit] = {}
    for question in questions:
        recall = scoped.begin_recall("search", question)
        hits = scoped.search(question, max_results=most, min_score=min_score).hits
        recall.end(lines_of_hits(hits), "\n".join(hit.snippet for hit in hits))
        for hit in hits:
            place = hit.path, hit.start_line, hit.end_line
            if place not in best or best[place].score < hit.score:
                best[place] = hit
    return sorted(best.values(), key=lambda hit: -hit.score)[:most]


def _questions(given: object) -> list[str]:
    texts = given if isinstance(given, list) else [given]
    if not texts or len(texts) > _MOST_QUESTIONS:
        raise PlainmindError(f"there must be 1 to {_MOST_QUESTIONS} questions", hint="ask less at once")
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise PlainmindError("a question must be a text that is not empty", hint="say what to look for")
    return [str(text) for text in texts]


def whole(body: Mapping[str, Any], name: str, usual: int, *, most: int) -> int:
    """A whole number of a body, between 1 and `most`. Raises PlainmindError."""
    found = body.get(name)
    if found is None:
        return usual
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= most:
        raise PlainmindError(f"`{name}` must be a whole number between 1 and {most}")
    return found
