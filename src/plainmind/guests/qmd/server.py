"""What agents get of QMD: the four tools of `qmd mcp`, answered from our own index, and the skill of `qmd skill`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.files.safe_open import user_home
from plainmind.guests.qmd.desk import Desk, Line, Refusal, find_document, search, similar_paths
from plainmind.guests.qmd.formats import Result, excerpt, number_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, TypeAlias

    from plainmind.guests.qmd.documents import Listed

    Answer: TypeAlias = dict[str, Any]


_VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
_INVALID, _NO_METHOD, _NO_JSON = -32602, -32601, -32700
_SNIPPET_CHARS = 300
_MOST_BYTES = 65_536
_MARKDOWN = "text/markdown"
_RANGE = pattern(r"(.+?):(\d+)(?::(\d+))?")

_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_TYPED = {
    "type": "object",
    "properties": {"type": {"type": "string", "enum": ["lex", "vec", "hyde"]}, "query": _TEXT},
    "required": ["type", "query"],
}
_QUESTION = {
    "query": {**_TEXT, "description": "A question in words. Give either this or `searches`."},
    "searches": {"type": "array", "maxItems": 10, "items": _TYPED},
    "limit": {**_NUMBER, "default": 10},
    "minScore": {**_NUMBER, "default": 0},
    "candidateLimit": _NUMBER,
    "collections": {"type": "array", "items": _TEXT},
    "intent": _TEXT,
    "rerank": {**_FLAG, "default": True},
}
_LINES = {"maxLines": _NUMBER, "lineNumbers": {**_FLAG, "default": True}}


def _tool(name: str, title: str, text: str, properties: Mapping[str, Any], *required: str) -> Answer:
    schema: Answer = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    hints = {"readOnlyHint": True, "openWorldHint": False}
    return {"name": name, "title": title, "description": text, "inputSchema": schema, "annotations": hints}


TOOLS = (
    _tool(
        "query",
        "Query",
        "Find documents by a question in words (`query`), or by several at once (`searches`). `line` is where the best"
        " line of a result stands: `get` reads around it.",
        _QUESTION,
    ),
    _tool(
        "get",
        "Get Document",
        "Read a document by its path or #docid; `file.md:100:40` reads 40 lines from line 100 on.",
        {"file": _TEXT, "fromLine": _NUMBER, **_LINES},
        "file",
    ),
    _tool(
        "multi_get",
        "Multi-Get Documents",
        "Read several documents, by a glob or a list with commas.",
        {"pattern": _TEXT, "maxBytes": {**_NUMBER, "default": _MOST_BYTES}, **_LINES},
        "pattern",
    ),
    _tool("status", "Index Status", "Say which collections there are, and how many documents.", {}),
)
_TEMPLATE = {
    "name": "document",
    "uriTemplate": "qmd://{+path}",
    "title": "QMD Document",
    "description": "A document of a collection.",
    "mimeType": _MARKDOWN,
}
_FIXED: Mapping[str, Answer] = {
    "tools/list": {"tools": list(TOOLS)},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": [_TEMPLATE]},
    "ping": {},
}


def serve(index: str | None, incoming: Iterable[bytes], outgoing: IO[bytes]) -> None:
    """Answer each line that comes in, until there are no more."""
    for line in incoming:
        if not line.strip():
            continue
        said = answer(index, line)
        if said is not None:
            outgoing.write(json.dumps(said, ensure_ascii=False).encode() + b"\n")
            outgoing.flush()


def answer(index: str | None, data: bytes) -> Answer | None:
    """Answer one request; None for a notification, which wants no answer."""
    said = _answer(index, data)
    return None if said is None else {"jsonrpc": "2.0", **said}


def _answer(index: str | None, data: bytes) -> Answer | None:
    try:
        asked = json.loads(data)
        name, own_id = asked["method"], asked.get("id")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {"id": None, "error": {"code": _NO_JSON, "message": "this is no request"}}
    if own_id is None:
        return None  # a notification
    given = asked.get("params")
    try:
        result = _result(index, name, given if isinstance(given, dict) else {})
    except LookupError as error:
        code = _NO_METHOD if error.args[:1] == ("method",) else _INVALID
        return {"id": own_id, "error": {"code": code, "message": str(error.args[-1])}}
    return {"id": own_id, "result": result}


def _result(index: str | None, name: str, params: Answer) -> Answer:
    if name in _FIXED:
        return dict(_FIXED[name])
    if name == "initialize":
        return _welcome(index, params)
    if name == "tools/call":
        return _call(index, str(params.get("name")), params.get("arguments"))
    if name == "resources/read":
        return _resource(index, str(params.get("uri")))
    raise LookupError("method", f"there is no method `{name}`")


def _welcome(index: str | None, params: Answer) -> Answer:
    from plainmind.guests.qmd.commands import SPEAKS

    wanted = params.get("protocolVersion")
    names = ", ".join(_desk(index).catalogue.readable) or "none yet"
    return {
        "protocolVersion": wanted if wanted in _VERSIONS else _VERSIONS[0],
        "capabilities": {"resources": {"listChanged": False}, "tools": {"listChanged": False}},
        "serverInfo": {"name": "qmd", "version": SPEAKS},
        "instructions": f"Search with `query`, read with `get` and `multi_get`. Collections: {names}.",
    }


def _desk(index: str | None, *, looks_twice: bool = True) -> Desk:
    """A new one for each call: it sees the files as they are now."""
    options = {"index": index} if index else {}
    return Desk(Line([], options if looks_twice else {**options, "no-rerank": ""}, []))


def _call(index: str | None, name: str, given: object) -> Answer:
    work = _CALLS.get(name)
    if work is None:
        raise LookupError("tool", f"Tool {name} not found")
    try:
        return work(index, given if isinstance(given, dict) else {})
    except (Refusal, PlainmindError) as error:
        return _said(str(error), isError=True)
    except KeyError as missing:
        return _said(f"Invalid arguments for tool {name}: `{missing.args[0]}` is missing", isError=True)
    except (TypeError, ValueError, AttributeError) as error:
        return _said(f"Invalid arguments for tool {name}: {error}", isError=True)


def _said(text: str, **more: object) -> Answer:
    return {"content": [{"type": "text", "text": text}], **more}


def _questions(given: Answer) -> list[str]:
    """What is asked for: one question, or several at once."""
    typed = given.get("searches") or []
    questions = [str(given["query"])] if given.get("query") else [str(each["query"]) for each in typed]
    if not questions:
        raise Refusal("give a `query`, or `searches`")
    return questions


def _found(desk: Desk, given: Answer) -> list[Result]:
    """What answers a query, the best first."""
    questions, typed = _questions(given), given.get("searches") or []
    known = desk.catalogue.readable
    wanted = given.get("collections") or [name for name, shelf in known.items() if shelf.is_default]
    # Words alone are looked for as words: what has none of them is no result.
    is_lexical = bool(typed) and all(each.get("type") == "lex" for each in typed)
    names = [name for name in wanted if name in known]
    limit = int(given.get("limit") or 10)
    found = search(desk, "search" if is_lexical else "query", questions, names, limit)
    least = float(given.get("minScore") or 0)
    return [result for result in found if result.score >= least][:limit]


def _desk_for(index: str | None, given: Answer) -> Desk:
    return _desk(index, looks_twice=given.get("rerank") is not False)


def results_of(index: str | None, given: Answer) -> list[Answer]:
    """What answers a query, as `POST /query` of QMD's server says it: a document by its whole address."""
    desk, question = _desk_for(index, given), _questions(given)[0]
    rows = [(result, _item(result, question)) for result in _found(desk, given)]
    return [
        {
            **{name: said for name, said in item.items() if name != "collection"},
            "file": desk.address(result.document),
        }
        for result, item in rows
    ]


def _query(index: str | None, given: Answer) -> Answer:
    question, results = _questions(given)[0], _found(_desk_for(index, given), given)
    if not results:
        return _said(f'No results found for "{question}"', structuredContent={"results": []})
    lines = [
        f"#{result.document.docid} {round(result.score * 100)}% {result.document.cited} - {result.document.title}"
        for result in results
    ]
    count = f"{len(results)} result{'s' if len(results) > 1 else ''}"
    text = "\n".join((f'Found {count} for "{question}":', "", *lines))
    return _said(text, structuredContent={"results": [_item(result, question) for result in results]})


def _item(result: Result, question: str) -> Answer:
    found = excerpt(result, question, _SNIPPET_CHARS)
    heading, _, text = found.text.partition("\n")
    return {
        "docid": f"#{result.document.docid}",
        "file": result.document.cited,
        "collection": result.document.collection,
        "title": result.document.title,
        "score": round(result.score, 2),
        "context": result.context,
        "line": found.line,
        "snippet": f"{heading}\n{number_lines(text, max(found.line - 1, 1))}",
    }


def _get(index: str | None, given: Answer) -> Answer:
    desk, asked = _desk(index), str(given["file"])
    ranged = _RANGE.fullmatch(asked)
    name = ranged[1] if ranged is not None else asked
    document = find_document(desk, name)
    if document is None:
        near = similar_paths(name, desk.documents)
        also = "".join(f"\n  - {each}" for each in near)
        raise Refusal(
            f"Document not found: {asked}" + (f"\n\nDid you mean one of these?{also}" if near else "")
        )
    first = given.get("fromLine") or (int(ranged[2]) if ranged is not None else None)
    most = given.get("maxLines") or (int(ranged[3]) if ranged is not None and ranged[3] else None)
    return {"content": [_page(desk, document, given, first=first, most=most)]}


def _multi_get(index: str | None, given: Answer) -> Answer:
    from plainmind.guests.qmd.documents import masks_of

    desk, asked = _desk(index), str(given["pattern"])
    errors: list[str] = []
    if "," in asked and not any(sign in asked for sign in "*?{"):
        found = []
        for name in filter(None, (each.strip() for each in asked.split(","))):
            document = find_document(desk, name)
            if document is None:
                errors.append(f"File not found: {name}")
            else:
                found.append(document)
    else:
        tests = masks_of(asked)
        found = [
            each
            for each in desk.documents
            if any(test(name) for test in tests for name in (each.path, each.cited))
        ]
        if not found:
            errors.append(f"No files matched pattern: {asked}")
    content: list[Answer] = [{"type": "text", "text": "Errors:\n" + "\n".join(errors)}] if errors else []
    most_bytes = int(given.get("maxBytes") or _MOST_BYTES)
    for document in found:
        if document.size > most_bytes:
            sizes = f"{round(document.size / 1024)}KB > {round(most_bytes / 1024)}KB"
            content.append(
                {"type": "text", "text": f"[SKIPPED: {document.cited} - File too large ({sizes})]"}
            )
        else:
            content.append(_page(desk, document, given, most=given.get("maxLines")))
    return {"content": content}


def _page(
    desk: Desk, document: Listed, given: Answer, *, first: object = None, most: object = None
) -> Answer:
    """A document as a resource, or some lines of it."""
    begin = max(int(str(first)), 1) if first else 1
    lines = desk.body(document).split("\n")[begin - 1 :]
    text = "\n".join(lines[: int(str(most))] if most else lines)
    if given.get("lineNumbers") is not False:
        text = number_lines(text, begin)
    context = desk.catalogue.context_of(document.collection, document.path)
    text = f"<!-- Context: {context} -->\n\n{text}" if context else text
    return {
        "type": "resource",
        "resource": {"uri": desk.address(document), "mimeType": _MARKDOWN, "text": text},
    }


def _resource(index: str | None, address: str) -> Answer:
    desk = _desk(index)
    document = find_document(desk, address)
    if document is None:
        raise LookupError("resource", f"Document not found: {address}")
    page: Answer = _page(desk, document, {})["resource"]
    return {"contents": [{**page, "name": document.cited, "title": document.title}]}


def _status(index: str | None, given: Answer) -> Answer:
    del given
    desk = _desk(index)
    documents = desk.documents
    rows = [
        {
            "name": name,
            "path": shelf.path,
            "pattern": shelf.pattern,
            "documents": sum(document.collection == name for document in documents),
        }
        for name, shelf in desk.catalogue.shelves.items()
    ]
    lines = ["QMD Index Status:", f"  Total documents: {len(documents)}", "  Needs embedding: 0"]
    lines += ["  Vector index: yes", f"  Collections: {len(rows)}"]
    lines += [f"    - {row['name']}: {row['path']} ({row['documents']} docs)" for row in rows]
    facts = {
        "totalDocuments": len(documents),
        "needsEmbedding": 0,
        "hasVectorIndex": True,
        "collections": rows,
    }
    return _said("\n".join(lines), structuredContent=facts)


_CALLS: Mapping[str, Callable[[str | None, Answer], Answer]] = {
    "query": _query,
    "get": _get,
    "multi_get": _multi_get,
    "status": _status,
}


# --- what an agent is told about searching with `qmd`, shown, and put where agents look ---


_SKILL = "qmd"
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skills")
_FILE = "SKILL.md"
_SKILL_USAGE = """\
Usage: qmd skill <show|install> [options]

Commands:
  show                 Print the skill
  install              Write it to ./.agents/skills/qmd

Options:
  --global             Write it to ~/.agents/skills/qmd
  --yes                Write it to .claude/skills/qmd as well
  -f, --force          Replace one that is there"""
_SKILLS_USAGE = """\
Usage: qmd skills <list|get|path> [options]

Commands:
  list                 Name the skills
  get <name>           Print one; --all prints all of them
  path [name]          Say where they are

Options:
  --json               Print JSON"""


def skill(line: Line, words: Sequence[str]) -> str:
    """Show the skill, or install it; what to print."""
    match words[0] if words else "help":
        case "show":
            return f"QMD Skill\n\n{_skill_text()}"
        case "install":
            return _install(line)
        case "help":
            return _SKILL_USAGE
        case other:
            raise Refusal(f"Unknown subcommand: {other}\nRun 'qmd skill help' for usage")


def skills(line: Line, words: Sequence[str]) -> str:
    """List the skills, which is one, show it, or say where it is; what to print."""
    verb, *names = words or ["list"]
    if verb == "help":
        return _SKILLS_USAGE
    if any(name != _SKILL for name in names):
        raise Refusal(f"Skill not found: {next(name for name in names if name != _SKILL)}")
    folder = os.path.join(_FOLDER, _SKILL)
    match verb:
        case "list":
            about = _description()
            return _printed(line, [{"name": _SKILL, "description": about}], f"  {_SKILL}  {about}")
        case "get" if names or line.has("all"):
            return _printed(line, [{"name": _SKILL, "content": f"{_skill_text()}\n"}], _skill_text())
        case "get":
            raise Refusal("No skill name provided. Usage: qmd skills get <name>")
        case "path":
            where = {"name": _SKILL, "path": folder} if names else {"paths": [_FOLDER]}
            return _printed(line, where, folder if names else _FOLDER)
        case other:
            raise Refusal(f"Unknown skills subcommand: {other}")


def _printed(line: Line, data: object, text: str) -> str:
    return json.dumps({"success": True, "data": data}, ensure_ascii=False) if line.has("json") else text


def _skill_text() -> str:
    from plainmind.files.system import read_file

    return read_file(os.path.join(_FOLDER, _SKILL, _FILE)).decode().rstrip("\n")


def _description() -> str:
    found = (line for line in _skill_text().splitlines() if line.startswith("description:"))
    return next(found, "").partition(":")[2].strip()


def _install(line: Line) -> str:
    """Write the skill where agents look for some; what is there is replaced only with `--force`."""
    from plainmind.files.atomic import write_atomically
    from plainmind.files.system import SYSTEM, make_folders

    top = user_home() if line.has("global") else os.getcwd()
    places = [os.path.join(top, ".agents", "skills", _SKILL)]
    if line.has("yes"):
        places.append(os.path.join(top, ".claude", "skills", _SKILL))
    for place in places:
        if os.path.lexists(os.path.join(place, _FILE)) and not line.has("force"):
            raise Refusal(f"Skill already exists: {place} (use --force to replace it)")
    for place in places:
        make_folders(SYSTEM, place, 0o777)
        write_atomically(os.path.join(place, _FILE), f"{_skill_text()}\n".encode(), mode=0o666)
    return "\n".join(f"✓ Installed the QMD skill to {place}" for place in places)
