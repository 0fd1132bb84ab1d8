"""What QMD prints: lines around what was found, and results and documents in each of its formats."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainmind.base.value import value
from plainmind.guests.qmd.documents import Listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMATS = ("cli", "json", "csv", "md", "xml", "files")
_CHARS_AS_JSON, _CHARS = 300, 500
_RULE = "=" * 60


@value
class Excerpt:
    """A few lines of a document around the best of them."""

    line: int
    text: str  # under a heading that says which lines they are
    has_a_word: bool  # of the question


@value
class Result:
    """A document that was found."""

    document: Listed
    score: float
    body: str
    context: str | None
    first_line: int  # of the lines that were found
    last_line: int
    best_line: int = 0  # 0: that is for the words of the question to say
    path: str | None = None  # on disk, where that is shown instead of the name


def excerpt(result: Result, query: str, most: int) -> Excerpt:
    """The lines around the one that has all words of the question; else around the one that answers it best."""
    lines = result.body.split("\n")
    words = query.lower().split()
    first, end = max(result.first_line - 1, 0), min(result.last_line, len(lines))
    counts = [sum(word in line.lower() for word in words) for line in lines[first:end]]
    most_words = max(counts, default=0)
    best = first + counts.index(most_words) if counts else 0
    if result.best_line and most_words < len(words):  # `where is the` stands in many lines
        best = min(result.best_line, len(lines)) - 1
    start, stop = max(best - 1, 0), min(best + 3, len(lines))
    shown = "\n".join(lines[start:stop])
    has_a_word = any(word in shown.lower() for word in words)
    if len(shown) > most:
        shown = f"{shown[: most - 3]}..."
    heading = f"@@ -{start + 1},{stop - start} @@ ({start} before, {len(lines) - stop} after)"
    return Excerpt(best + 1, f"{heading}\n{shown}", has_a_word)


def number_lines(text: str, first: int = 1) -> str:
    """A text with the number of each line before it."""
    return "\n".join(f"{number}: {line}" for number, line in enumerate(text.split("\n"), first))


def on_disk(real: str, cwd: str) -> str:
    """A path as it is shown: from here if it lies here."""
    real, here = os.path.realpath(real), os.path.realpath(cwd)
    return f"./{os.path.relpath(real, here)}" if real.startswith(f"{here}/") else real


def address(document: Listed, index: str) -> str:
    """How a document is named, everywhere."""
    return f"qmd://{document.cited}" + ("" if index == "index" else f"?index={index}")


# --- results ---


@value
class Wishes:
    """How results are to be shown."""

    format: str
    query: str
    index: str
    full: bool = False  # whole documents
    numbered: bool = False


def print_results(results: Sequence[Result], wishes: Wishes) -> str:
    """All results, in the format that is wished for."""
    if wishes.format == "json":
        return _as_json([_json(result, wishes) for result in results])
    if wishes.format == "csv":
        rows = (_csv(result, wishes) for result in results)
        return "\n".join(("docid,score,file,title,context,line,snippet", *rows))
    if wishes.format == "files":
        return "\n".join(_file(result, wishes) for result in results)
    if wishes.format == "md":
        return "\n".join(_markdown(result, wishes) for result in results)
    if wishes.format == "xml":
        return "\n".join(_xml(result, wishes) for result in results)
    return "\n\n\n".join(_plain(result, wishes) for result in results)


def print_nothing(format_: str, *, is_below: bool) -> str:
    """What is printed when nothing was found, or nothing above a score."""
    if format_ == "json":
        return "[]"
    if format_ == "csv":
        return "docid,score,file,title,context,line,snippet"
    if format_ == "xml":
        return "<results></results>"
    if format_ in {"md", "files"}:
        return ""
    return "No results found above minimum score threshold." if is_below else "No results found."


def _name(result: Result, wishes: Wishes) -> str:
    return result.path or address(result.document, wishes.index)


def _docid(result: Result) -> str:
    return "" if result.path else f"#{result.document.docid}"


def _content(result: Result, wishes: Wishes, *, numbers_from_line: bool = False) -> tuple[Excerpt, str]:
    found = excerpt(result, wishes.query, _CHARS)
    content = result.body if wishes.full else found.text
    if wishes.numbered:
        content = number_lines(content, found.line if numbers_from_line and not wishes.full else 1)
    return found, content


def _json(result: Result, wishes: Wishes) -> dict[str, Any]:
    found = excerpt(result, wishes.query, _CHARS_AS_JSON)
    content = result.body if wishes.full else found.text
    score = round(result.score, 2)
    item: dict[str, Any] = {"docid": _docid(result)} if _docid(result) else {}
    item |= {"score": int(score) if score == int(score) else score, "file": _name(result, wishes)}
    item |= {"line": found.line, "title": result.document.title}
    if result.context:
        item["context"] = result.context
    item["body" if wishes.full else "snippet"] = number_lines(content) if wishes.numbered else content
    return item


def _csv(result: Result, wishes: Wishes) -> str:
    found, content = _content(result, wishes, numbers_from_line=True)
    fields = (_name(result, wishes), result.document.title, result.context or "", str(found.line), content)
    return ",".join((_docid(result), f"{result.score:.4f}", *map(_field, fields)))


def _file(result: Result, wishes: Wishes) -> str:
    context = f',"{result.context.replace(chr(34), chr(34) * 2)}"' if result.context else ""
    docid = f"{_docid(result)}," if _docid(result) else ""
    return f"{docid}{result.score:.2f},{_name(result, wishes)}{context}"


def _markdown(result: Result, wishes: Wishes) -> str:
    _, content = _content(result, wishes)
    docid = f"**docid:** `{_docid(result)}`\n" if _docid(result) else ""
    context = f"**context:** {result.context}\n" if result.context else ""
    heading = result.document.title or _name(result, wishes)
    return f"---\n# {heading}\n**file:** `{_name(result, wishes)}`\n{docid}{context}\n{content}\n"


def _xml(result: Result, wishes: Wishes) -> str:
    _, content = _content(result, wishes)
    facts = {
        "docid": _docid(result),
        "name": _name(result, wishes),
        "title": result.document.title,
        "context": result.context or "",
    }
    attributes = "".join(
        f' {name}="{fact.replace(chr(34), "&quot;")}"' for name, fact in facts.items() if fact
    )
    return f"<file{attributes}>\n{content}\n</file>\n"


def _plain(result: Result, wishes: Wishes) -> str:
    found, content = _content(result, wishes, numbers_from_line=True)
    line = f":{found.line}" if found.has_a_word else ""
    docid = f" {_docid(result)}" if _docid(result) else ""
    lines = [f"{_name(result, wishes)}{line}{docid}"]
    if result.document.title:
        lines.append(f"Title: {result.document.title}")
    if result.context:
        lines.append(f"Context: {result.context}")
    lines.append(f"Score: {result.score * 100:3.0f}%")
    return "\n".join((*lines, "", content))


def _field(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if any(sign in text for sign in ',"\n') else text


def _as_json(found: object) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False)


# --- documents ---


@value
class Shown:
    """A document that was asked for by name."""

    name: str
    docid: str  # "" where the name is a path on disk
    title: str
    context: str | None
    body: str
    refusal: str = ""  # why it is not shown


def print_documents(documents: Iterable[Shown], format_: str) -> str:
    """Documents in the format that is wished for."""
    shown = list(documents)
    if format_ == "json":
        return _as_json([_document(each) for each in shown])
    if format_ == "csv":
        rows = (
            ",".join(
                map(
                    _field,
                    (
                        each.docid,
                        each.name,
                        each.title,
                        each.context or "",
                        "true" if each.refusal else "false",
                        each.refusal or each.body,
                    ),
                )
            )
            for each in shown
        )
        return "\n".join(("docid,file,title,context,skipped,body", *rows))
    if format_ == "files":
        return "\n".join(_listed(each) for each in shown)
    lines: list[str] = []
    for each in shown:
        lines += _BY_FORMAT.get(format_, _plain_document)(each)
    if format_ == "xml":
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<documents>", *lines, "</documents>"]
    return "\n".join(lines)


def _document(each: Shown) -> dict[str, Any]:
    item: dict[str, Any] = {"file": each.name}
    if each.docid:
        item["docid"] = each.docid
    item["title"] = each.title
    if each.context:
        item["context"] = each.context
    return item | ({"skipped": True, "reason": each.refusal} if each.refusal else {"body": each.body})


def _listed(each: Shown) -> str:
    docid = f"{each.docid}," if each.docid else ""
    context = f',"{each.context.replace(chr(34), chr(34) * 2)}"' if each.context else ""
    return f"{docid}{each.name}{context}{',[SKIPPED]' if each.refusal else ''}"


def _markdown_document(each: Shown) -> Iterator[str]:
    yield f"## {each.name}\n"
    if each.docid:
        yield f"**docid:** `{each.docid}`\n"
    if each.title and each.title != each.name:
        yield f"**Title:** {each.title}\n"
    if each.context:
        yield f"**Context:** {each.context}\n"
    if each.refusal:
        yield f"> {each.refusal}\n"
    else:
        yield from ("```", each.body, "```\n")


def _xml_document(each: Shown) -> Iterator[str]:
    from xml.sax.saxutils import escape

    def safe(text: str) -> str:
        return escape(text, {'"': "&quot;", "'": "&apos;"})

    docid = f' docid="{each.docid}"' if each.docid else ""
    yield f"  <document{docid}>"
    yield f"    <file>{safe(each.name)}</file>"
    yield f"    <title>{safe(each.title)}</title>"
    if each.context:
        yield f"    <context>{safe(each.context)}</context>"
    if each.refusal:
        yield "    <skipped>true</skipped>"
        yield f"    <reason>{safe(each.refusal)}</reason>"
    else:
        yield f"    <body>{safe(each.body)}</body>"
    yield "  </document>"


def _plain_document(each: Shown) -> Iterator[str]:
    docid = f"  {each.docid}" if each.docid else ""
    yield from ("", _RULE, f"File: {each.name}{docid}", _RULE, "")
    if each.refusal:
        yield f"[SKIPPED: {each.refusal}]"
        return
    if each.context:
        yield f"Folder Context: {each.context}\n---\n"
    yield each.body


_BY_FORMAT = {"md": _markdown_document, "xml": _xml_document}


# --- sizes and times, in few letters ---


def size_in_words(size: int) -> str:
    """`100 B`, `1.5 KB`."""
    if size < 1024:
        return f"{size} B"
    for unit, factor in (("KB", 1 << 10), ("MB", 1 << 20)):
        if size < factor << 10:
            return f"{size / factor:.1f} {unit}"
    return f"{size / (1 << 30):.1f} GB"


def age_in_words(seconds: float) -> str:
    """`16s ago`, `3d ago`."""
    age = max(0, int(seconds))
    for unit, length, most in (("s", 1, 60), ("m", 60, 3600), ("h", 3600, 86_400)):
        if age < most:
            return f"{age // length}{unit} ago"
    return f"{age // 86_400}d ago"


# --- what it says of itself ---

HELP = """\
qmd — the command line of QMD {version}, answered by Plainmind {own}

Usage:
  qmd <command> [options]

Searching:
  qmd search <query>             - By words; a question in words is answered by meaning as well
  qmd vsearch <query>            - What is certain, by meaning and by word
  qmd query <query>              - What is nearest, looked at twice where the reranker is installed
  qmd query 'lex:..\\nvec:...'    - Several questions at once: lex:, vec: and hyde: lines
  qmd get <file>[:from[:count]]  - Show a document, by path, qmd://… or #docid
  qmd multi-get <pattern>        - Show several, by a glob or a list with commas

Collections and context:
  qmd collection add <path> [--name NAME] [--mask GLOB]
  qmd collection list|show|remove|rename|include|exclude|update-cmd
  qmd context add|list|rm        - What files are about, shown with every result
  qmd ls [collection[/path]]     - List files

Keeping it:
  qmd status                     - What is known, and where it is kept
  qmd update                     - Look at all files now; every search does so too
  qmd init                       - Make an index of its own for this folder: .qmd/
  qmd mcp                        - Serve query, get, multi_get and status to programs that speak MCP
  qmd mcp --http [--port 8181]   - The same over HTTP, beside /query and /health; --daemon in the background, mcp stop
  qmd bench <fixture.json>       - How good the answers to questions with known files are
  qmd skill show|install         - What an agent is told about `qmd`, shown, or put where agents look
  qmd embed | pull | cleanup | doctor

Options:
  --index <name>                 - Another index (default: index)
  -c, --collection <name>        - Only in one or more collections (multiple -c flags)
  -n <num>                       - At most so many results (5, or 20 for json and files)
  --all                          - All results
  --min-score <num>              - From this score on, 0 to 1
  --full                         - Whole documents instead of a few lines
  --full-path                    - Paths on disk instead of qmd:// and #docid
  --format <kind>                - cli | json | csv | md | xml | files; also as --json, --csv, …
  --line-numbers, --no-line-numbers
  --no-rerank                    - Look once
  -l <num>, --from <line>, --max-bytes <num>  - How much of a document

Index: {ledger}"""
COLLECTION_HELP = """\
Usage: qmd collection <command> [options]

Commands:
  list                      List all collections
  add <path> [--name NAME] [--mask|--glob GLOB]  Add a collection
  remove <name>             Remove a collection
  rename <old> <new>        Rename a collection
  show <name>               Show collection details
  update-cmd <name> [cmd]   Set pre-update command (e.g., 'git pull')
  include <name>            Include in default queries
  exclude <name>            Exclude from default queries"""

# --- how good the answers are ---

_COLUMNS = {
    "P@k": "precision_at_k",
    "R@1": "recall_at_1",
    "R@3": "recall_at_3",
    "R@5": "recall_at_5",
    "MRR": "mrr",
    "F1": "f1",
}


def print_measured(found: Mapping[str, Any], *, is_json: bool) -> str:
    """What `bench` has measured: a row for each question and engine, then the averages."""
    if is_json:
        return _as_json(found)
    heads = " ".join(f"{head:6}" for head in _COLUMNS)
    lines = ["", f"{'Query':25} {'Backend':8} {heads} ms", "-" * 88]
    for row in found["results"]:
        for engine, scores in row["backends"].items():
            told = " ".join(f"{scores[name]:5.2f} " for name in _COLUMNS.values())
            lines.append(f"{row['id'][:25]:25} {engine:8} {told}{scores['latency_ms']:7.0f}ms")
        lines.append("")
    lines += ["Summary:", "-" * 70]
    for engine, averages in found["summary"].items():
        told = " ".join(
            f"{head}={averages['avg_' + name.removesuffix('_at_k')]:6.3f}" for head, name in _COLUMNS.items()
        )
        lines.append(f"  {engine:8} {told} Avg={averages['avg_latency_ms']:.0f}ms")
    return "\n".join(lines)
