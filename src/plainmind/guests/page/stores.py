"""The memory as stores of other vendors: Anthropic's memory stores, OpenAI's vector stores, and QMD over HTTP.

Anthropic's begins at `memory/`, and has `MEMORY.md` at its top, as Claude's memory tool has it. Files are changed only
as they were read. An id is made of a path: with a new path a memory has a new id. The others search, and nothing else.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from plainmind.agent.recall import as_data
from plainmind.agent.recalls import Asker, RecalledLines, lines_of_hits
from plainmind.base.errors import ConflictError, NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import sha256_bytes, sha256_text
from plainmind.base.value import value
from plainmind.guests.page.call import Call, Reply, page_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.model import SearchHit
    from plainmind.files.history import Version
    from plainmind.notes.memory_files import MemoryFiles


MEMORY_STORE = "memstore_memory"
MOST_BYTES = 102_400  # of a memory
_MOST_ROWS, _USUAL_ROWS, _MOST_FULL = 100, 20, 20
_DEEPEST = 20
_OPERATIONS = {"create": "created", "delete": "deleted", "rename": "created"}


@value
class _Shelf:
    """The files of a store, and what is told after a change."""

    files: MemoryFiles
    call: Call

    def names(self) -> list[str]:
        """Every file, by name."""
        return sorted(entry.name for entry in self.files.entries(depth=_DEEPEST) if not entry.is_folder)

    def changed(self, *gone: str) -> None:
        """Let the index know."""
        self.call.memory.within(self.call.caller.context).note_change(gone)


# --- Anthropic: the store ---


def list_memory_stores(call: Call) -> Reply:
    """There is one."""
    return Reply({"data": [_memory_store(call)], "next_page": None})


def create_memory_store(_call: Call) -> Reply:
    """Refuse: a memory is one store."""
    raise PlainmindError("no more stores can be made here", hint=f"the memory is `{MEMORY_STORE}`")


def read_memory_store(call: Call) -> Reply:
    """What it is called."""
    _shelf(call)
    return Reply(_memory_store(call))


def _memory_store(call: Call) -> dict[str, Any]:
    files = call.files()
    times = [found.mtime_ns for found in files] or [0]
    return {
        "id": MEMORY_STORE,
        "type": "memory_store",
        "name": "memory",
        "description": "The notes of this memory: MEMORY.md holds what stays true, the others are by day or subject.",
        "metadata": {},
        "created_at": _time(min(times)),
        "updated_at": _time(max(times)),
        "archived_at": None,
    }


def _shelf(call: Call) -> _Shelf:
    if call.parameters.get("store", MEMORY_STORE) != MEMORY_STORE:
        raise NotFound(
            f"there is no memory store `{call.parameters['store'][:60]}`",
            hint=f"the memory is `{MEMORY_STORE}`",
        )
    files = call.scoped.memory_files()
    if files is None:
        raise ScopeDenied("this token has no notes of its own", hint="use a token of the owner")
    return _Shelf(files, call)


# --- Anthropic: memories ---


def list_memories(call: Call) -> Reply:
    """List the files below a prefix; with a depth of 1 what lies deeper is one row a folder."""
    shelf, asked = _shelf(call), call.query
    prefix = asked.get("path_prefix") or "/"
    if not prefix.startswith("/") or not prefix.endswith("/"):
        raise PlainmindError("`path_prefix` must begin and end with `/`")
    depth = _number(asked, "depth", 0)
    is_full = asked.get("view") == "full"
    names = [name for name in shelf.names() if f"/{name}".startswith(prefix)]
    rows = dict.fromkeys(_cut_off(f"/{name}", prefix, depth) for name in names)
    limit = min(_number(asked, "limit", _USUAL_ROWS), _MOST_FULL if is_full else _MOST_ROWS)
    shown, following = page_of(list(rows), limit, asked.get("page") or "", str)
    data = []
    for path in shown:
        if path.endswith("/"):
            data.append({"type": "memory_prefix", "path": path})
            continue
        with suppress(NotFound):  # gone meanwhile
            data.append(_memory(shelf, path[1:], is_full=is_full))
    return Reply({"data": data, "next_page": following})


def _cut_off(path: str, prefix: str, depth: int) -> str:
    parts = path[len(prefix) :].split("/")
    return path if not depth or len(parts) <= depth else prefix + "/".join(parts[:depth]) + "/"


def create_memory(call: Call) -> Reply:
    """Make a file that is not there yet."""
    shelf, body = _shelf(call), call.body or {}
    name = _name(body.get("path"))
    call.memory.require_place_for_notes()
    shelf.files.create(name, _content(body.get("content")))
    shelf.changed()
    return Reply(_memory(shelf, name, is_full=call.query.get("view") == "full"))


def read_memory(call: Call) -> Reply:
    """Read a file."""
    shelf = _shelf(call)
    name = _named(shelf)
    is_full = call.query.get("view") != "basic"
    recall = call.scoped.begin_recall("read", asker=Asker("anthropic", call.caller.name))
    memory = _memory(shelf, name, is_full=is_full)
    if is_full:
        text = memory["content"]
        lines = RecalledLines(shelf.files.citation_of(name), 1, text.count("\n") + 1)
        recall.end([lines], text)
    return Reply(memory)


def update_memory(call: Call) -> Reply:
    """Give a file another text, another path or both, if it is still the one that was read."""
    shelf, body = _shelf(call), call.body or {}
    name = _named(shelf)
    wanted = body.get("precondition")
    if wanted is not None and (not isinstance(wanted, dict) or wanted.get("type") != "content_sha256"):
        raise PlainmindError("`precondition` must be of type `content_sha256`")
    present = shelf.files.read(name)
    if wanted is not None:
        _require_hash(present.text, wanted.get("content_sha256"))
    call.memory.require_place_for_notes()
    if body.get("content") is not None:
        text = _content(body["content"])
        shelf.files.rewrite(name, text, base_hash=present.hash, reason="edit")
    if body.get("path") is not None and _name(body["path"]) != name:
        name, old = _name(body["path"]), name
        shelf.changed(*shelf.files.rename(old, name))
    else:
        shelf.changed()
    return Reply(_memory(shelf, name, is_full=call.query.get("view") == "full"))


def delete_memory(call: Call) -> Reply:
    """Delete a file; `plainmind history` can bring it back."""
    shelf = _shelf(call)
    name = _named(shelf)
    expected = call.query.get("expected_content_sha256")
    if expected is not None:
        _require_hash(shelf.files.read(name).text, expected)
    call.memory.require_place_for_notes()
    shelf.changed(*shelf.files.delete(name))
    return Reply({"id": call.parameters["memory"], "type": "memory_deleted"})


def _memory(shelf: _Shelf, name: str, *, is_full: bool) -> dict[str, Any]:
    content = shelf.files.read(name)
    path = shelf.files.citation_of(name)
    data = content.text.encode("utf-8", "replace")
    changed = _time(shelf.call.memory.notes.workspace.locate(path).mtime_ns)
    return {
        "id": _id(name),
        "type": "memory",
        "memory_store_id": MEMORY_STORE,
        "memory_version_id": _version_id(shelf, path, content.hash),
        "path": f"/{name}",
        "content": data.decode() if is_full else None,
        "content_sha256": sha256_bytes(data),
        "content_size_bytes": len(data),
        "created_at": changed,
        "updated_at": changed,
    }


def _version_id(shelf: _Shelf, path: str, present: str) -> str:
    latest = next((one for one in shelf.call.memory.history(path) if one.hash == present), None)
    return f"memver_{latest.id if latest is not None else present[:26]}"


def _id(name: str) -> str:
    return f"mem_{sha256_text(name)[:24]}"


def _named(shelf: _Shelf) -> str:
    wanted = shelf.call.parameters["memory"]
    found = next((name for name in shelf.names() if _id(name) == wanted), None)
    if found is None:
        raise NotFound(f"there is no memory `{wanted[:60]}`", hint="list them")
    return found


def _name(path: object) -> str:
    if not isinstance(path, str) or not path.startswith("/") or len(path) < 2:
        raise PlainmindError("`path` must begin with `/`, as in `/projects/notes.md`")
    if not path.endswith(".md"):
        raise PlainmindError(
            f"`{path[:100]}` is not the name of a note", hint="notes are Markdown: let it end with `.md`"
        )
    return path[1:]


def _content(given: object) -> str:
    if not isinstance(given, str):
        raise PlainmindError("`content` must be a text")
    if len(given.encode("utf-8", "replace")) > MOST_BYTES:
        raise PlainmindError(f"`content` has more than {MOST_BYTES:,} bytes", hint="write several memories")
    return given


def _require_hash(text: str, wanted: object) -> None:
    if wanted != sha256_text(text):
        raise ConflictError("the memory has changed since it was read", hint="read it again")


# --- Anthropic: versions ---


def list_versions(call: Call) -> Reply:
    """List what was changed, the newest first."""
    shelf = _of_owner(call)
    names = _names_by_path(shelf)
    asked, is_full = call.query, call.query.get("view") == "full"
    rows = [
        one
        for one in call.memory.history()
        if (name := _name_of(one, names)) is not None
        and asked.get("memory_id") in {None, _id(name)}
        and asked.get("operation") in {None, _operation(one)}
    ]
    limit = min(_number(asked, "limit", _USUAL_ROWS), _MOST_FULL if is_full else _MOST_ROWS)
    shown, following = page_of(rows, limit, asked.get("page") or "", lambda one: one.id)
    return Reply(
        {"data": [_version(call, one, names, is_full=is_full) for one in shown], "next_page": following}
    )


def read_version(call: Call) -> Reply:
    """Read what a memory was."""
    names = _names_by_path(_of_owner(call))
    is_full = call.query.get("view") != "basic"
    return Reply(_version(call, _version_named(call), names, is_full=is_full))


def redact_version(call: Call) -> Reply:
    """Take the content of a version out of the history, for good; the present content stays."""
    names = _names_by_path(_of_owner(call))
    version = _version_named(call)
    present = {sha256_bytes(_bytes_of(call, path)) for path in names}
    if version.hash in present:
        raise ConflictError(
            "this version is what the memory is now", hint="change or delete the memory first"
        )
    text = version.text.encode() if version.text is not None else None
    with call.memory.notes.erasures.run_alone():
        call.memory.notes.history.erase(
            lambda data: None if data == text or sha256_bytes(data) == version.hash else data
        )
    return Reply(_version(call, _version_named(call), names, is_full=True))


def _of_owner(call: Call) -> _Shelf:
    call.require_owner("versions are for the owner")
    return _shelf(call)


def _names_by_path(shelf: _Shelf) -> dict[str, str]:
    return {shelf.files.citation_of(name): name for name in shelf.names()}


def _name_of(version: Version, names: Mapping[str, str]) -> str | None:
    if version.path in names:
        return names[version.path]
    return version.path.removeprefix("memory/") if version.path.startswith("memory/") else None


def _bytes_of(call: Call, path: str) -> bytes:
    workspace = call.memory.notes.workspace
    found = workspace.locate(path)
    return found.root.read(found.relative, max_bytes=workspace.max_file_bytes)[0]


def _version_named(call: Call) -> Version:
    wanted = call.parameters["version"].removeprefix("memver_")
    found = next((one for one in call.memory.history() if one.id == wanted), None)
    if found is None:
        raise NotFound(
            f"there is no version `{wanted[:60]}`", hint="what people edit themselves has none; list them"
        )
    return found


def _operation(version: Version) -> str:
    known = _OPERATIONS.get(version.what)
    return known or ("created" if version.previous is None else "modified")


def _version(call: Call, version: Version, names: Mapping[str, str], *, is_full: bool) -> dict[str, Any]:
    name = _name_of(version, names) or version.path
    operation = _operation(version)
    data = None
    if version.available or version.text is not None:
        with suppress(NotFound):
            data = call.memory.read_version(version.id)
    is_redacted = data is None and operation != "deleted"
    shown = data is not None and operation != "deleted"
    return {
        "id": f"memver_{version.id}",
        "type": "memory_version",
        "memory_store_id": MEMORY_STORE,
        "memory_id": _id(name),
        "operation": operation,
        "created_at": version.at,
        "created_by": {"type": "api_actor", "api_key_id": call.caller.name},
        "path": None if is_redacted else f"/{name}",
        "content": data.decode("utf-8", "replace") if shown and is_full and data is not None else None,
        "content_sha256": sha256_bytes(data) if shown and data is not None else None,
        "content_size_bytes": len(data) if shown and data is not None else None,
        "redacted_at": version.at if is_redacted else None,
        "redacted_by": None,
    }


def _number(asked: Mapping[str, str], name: str, usual: int) -> int:
    found = asked.get(name)
    if found is None or not found:
        return usual
    if not found.isdecimal() or len(found) > 6 or (name == "limit" and not int(found)):
        raise PlainmindError(f"`{name}` must be a whole number")
    return int(found)


def _time(nanoseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).isoformat()


# --- OpenAI ---


VECTOR_STORE = "vs_memory"
_MOST_RESULTS = 50  # results of one search
_USUAL_RESULTS = 10
_MOST_QUESTIONS = 10
_STARTED = time.monotonic()


def list_vector_stores(call: Call) -> Reply:
    """There is one: all that the token may see."""
    store = _vector_store(call)
    return Reply(
        {
            "object": "list",
            "data": [store],
            "first_id": VECTOR_STORE,
            "last_id": VECTOR_STORE,
            "has_more": False,
        }
    )


def read_vector_store(call: Call) -> Reply:
    """What it is called, and how much is in it."""
    _require_vector_store(call)
    return Reply(_vector_store(call))


def search_vectors(call: Call) -> Reply:
    """Find the lines that answer, with the score that they have here: a probability."""
    _require_vector_store(call)
    body = call.body or {}
    questions = _questions(body.get("query"))
    most = whole(body, "max_num_results", _USUAL_RESULTS, most=_MOST_RESULTS)
    ranking = body.get("ranking_options") or {}
    least = ranking.get("score_threshold") if isinstance(ranking, dict) else None
    filters = body.get("filters")
    hits = found_for(
        call,
        questions,
        surface="openai",
        most=_MOST_RESULTS if filters else most,
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


def _vector_store(call: Call) -> dict[str, Any]:
    files = call.files()
    count = len(files)
    changed = max((found.mtime_ns for found in files), default=0) // 1_000_000_000
    counts = {"total": count, "completed": count, "in_progress": 0, "failed": 0, "cancelled": 0}
    return {
        "id": VECTOR_STORE,
        "object": "vector_store",
        "name": "memory",
        "created_at": changed,
        "last_active_at": changed,
        "status": "completed",
        "usage_bytes": sum(found.size for found in files),
        "file_counts": counts,
        "metadata": {},
    }


def _require_vector_store(call: Call) -> None:
    if call.parameters["store"] != VECTOR_STORE:
        raise NotFound(
            f"there is no vector store `{call.parameters['store'][:60]}`",
            hint=f"the memory is `{VECTOR_STORE}`",
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
_DEEPEST_FILTER = 8


def _passes(wanted: object, facts: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a result is as a filter wants it. Raises PlainmindError for what is no filter."""
    if not isinstance(wanted, dict) or depth > _DEEPEST_FILTER:
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
        most=whole(body, "limit", _USUAL_RESULTS, most=_MOST_RESULTS),
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


# --- OpenAI and QMD ---


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
