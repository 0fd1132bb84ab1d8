"""What a tool answers: a JSON object for programs, and a text for the model in which recalled words are fenced."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from plainmind.agent.recall import NOTICE, Recalled, as_data, fence, labels, lines_of
from plainmind.agent.scope import Limits
from plainmind.base.lazy import pattern
from plainmind.base.model import CitedLines, Excerpt, SearchHit, SearchResult
from plainmind.base.value import replace, value
from plainmind.notes.workspace import day_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.notes.notebook import Edited, Forgotten, Remembered


_SOURCE = pattern(r"^[^\S\n]*Source\s*:(?=.*#L\d)", re.IGNORECASE | re.MULTILINE)

NOTHING_CERTAIN = "nothing certain was found: this is only what is nearest, and may not answer the question"
NOTHING_FOUND = "Nothing in the memory matches this. Other words may find it; otherwise say that you looked."
ELLIPSIS = "…"
# Less than this of a snippet tells a reader nothing.
_LEAST_CHARS = 60
# Reading is asked for by name, after a search: it may take more than the search did.
_READING_PER_SEARCH = 3


@value
class ToolAnswer:
    """`content` is ready for JSON; `text` says the same to a model, with everything recalled marked as data."""

    content: Mapping[str, Any]
    text: str
    is_error: bool = False


def fit(hits: Sequence[SearchHit], limits: Limits) -> list[SearchHit]:
    """The first hits that fit, their snippets as data; what is cut off is no longer among the cited lines."""
    taken: list[SearchHit] = []
    left = limits.max_injected_chars
    for hit in hits[: limits.max_results]:
        clean = replace(hit, snippet=as_data(hit.snippet))
        room = min(limits.max_snippet_chars, left)
        if len(clean.snippet) > room and room < min(_LEAST_CHARS, limits.max_snippet_chars):
            break
        taken.append(shorten(clean, room))
        left -= len(taken[-1].snippet)
    return taken


def shorten(hit: SearchHit, room: int) -> SearchHit:
    """A hit whose snippet has at most `room` characters: whole lines, or the beginning of the first.

    It goes on from the line that answers, where that would be cut off.
    """
    if len(hit.snippet) <= room:
        return hit
    # Lines of a conversation have other numbers than their place in the snippet says.
    has_every_line = hit.snippet.count("\n") == hit.end_line - hit.start_line
    if has_every_line and hit.start_line < hit.best_line <= hit.end_line:
        lines = hit.snippet.split("\n")
        until_best = lines[: hit.best_line - hit.start_line + 1]
        if len("\n".join(until_best)) > room:
            rest = "\n".join(lines[len(until_best) - 1 :])
            return shorten(replace(hit, snippet=rest, start_line=hit.best_line), room)
    end = hit.snippet.rfind("\n", 0, room + 1)
    if end > 0:
        text = hit.snippet[:end].rstrip("\n")
    else:
        text = hit.snippet[: max(0, room - 1)].rstrip() + ELLIPSIS if room > 0 else ""
    last = hit.start_line + text.count("\n") if has_every_line else hit.end_line
    return replace(hit, snippet=text, end_line=last)


def reading_chars(limits: Limits) -> int:
    """How much one reading of a file may give."""
    return _READING_PER_SEARCH * limits.max_injected_chars


def search_answer(
    result: SearchResult, limits: Limits, *, shows_citations: bool, warning: str | None, nonce: str
) -> ToolAnswer:
    """The hits of a search that fit the budget, and what was not consulted for them."""
    hits = fit(result.hits, limits)
    careful = [
        labels(f"{hit.headings}\n{hit.snippet}") for hit in result.hits[: len(hits)]
    ]  # before anything was cleaned
    content: dict[str, Any] = {
        "results": [
            _hit(hit, marks, shows_citations=shows_citations)
            for hit, marks in zip(hits, careful, strict=True)
        ],
        "provider": result.provider,
        "model": result.model,
        "fallback": None if result.fallback is None else dict(result.fallback),
        "citations": "on" if shows_citations else "off",
        "mode": result.mode,
        "confidence": round(result.confidence, 4),
        "certain": result.is_certain,
        "degraded": [as_data(reason) for reason in result.degraded],
    }
    if result.understood:
        content["understood"] = [as_data(part) for part in result.understood]
    if warning:
        content["warning"] = warning
    if hits:
        content["notice"] = NOTICE
    items = [
        Recalled(hit.path, hit.snippet, hit.start_line, hit.end_line, hit.source, _remark(hit), marks)
        for hit, marks in zip(hits, careful, strict=True)
    ]
    remarks = [_lacking(reason) for reason in result.degraded]
    remarks += result.notes
    if hits and not result.is_certain:
        remarks.append(NOTHING_CERTAIN)
    if result.understood:
        remarks.append(f"understood: {'; '.join(result.understood)}")
    parts = ["" if hits else NOTHING_FOUND, fence(items, nonce, remarks=remarks), warning]
    return ToolAnswer(content, "\n".join(filter(None, parts)))


def _lacking(reason: str) -> str:
    """What an answer lacks. A second look that was short lacks nothing of the memory, and needs no alarm."""
    from plainmind.search.second_look import SECOND_LOOK

    return reason if reason.startswith(SECOND_LOOK) else f"not everything was consulted: {reason}"


def _remark(hit: SearchHit) -> str:
    """What is said of a hit beside where it is from; headings are text of the memory, and quoted so that it shows."""
    places = f", in {len(hit.also) + 1} places" if hit.also else ""
    says_more = hit.headings and hit.headings != day_of(hit.path)  # whose note it is was said before
    under = f", under {json.dumps(_short(hit.headings), ensure_ascii=False)}" if says_more else ""
    until = f", held until {hit.until}" if hit.until else ""
    if hit.newer is not None:
        text = f": {json.dumps(_short(hit.newer.text), ensure_ascii=False)}" if hit.newer.text else ""
        until += f", now {hit.newer}{text}"
    older = "".join(f", newer than {json.dumps(str(place), ensure_ascii=False)}" for place in hit.older)
    return f"score {hit.score:.2f}{places}{older}{under}{until}"


def _hit(hit: SearchHit, careful: tuple[str, ...], *, shows_citations: bool) -> dict[str, Any]:
    fields = hit.as_fields()
    if hit.headings:
        fields["headings"] = _short(hit.headings)
    if hit.newer is not None:
        fields["newer"]["text"] = _short(hit.newer.text)
    if careful:
        fields["careful"] = list(careful)
    if shows_citations:
        fields["citation"] = str(CitedLines(hit.path, hit.start_line, hit.end_line))
        # A note could end with such a line itself, and name another file.
        own = _SOURCE.sub(r"\\\g<0>", hit.snippet)
        fields["snippet"] = f"{own}\n\nSource: {fields['citation']}"
    return fields


def lines_answer(excerpt: Excerpt, nonce: str) -> ToolAnswer:
    """Lines of a file, and where to go on."""
    text = as_data(excerpt.text)
    content: dict[str, Any] = {
        "status": "ok",
        "path": excerpt.path,
        "text": text,
        "from": excerpt.first_line,
        "lines": excerpt.line_count,
    }
    if excerpt.truncated:
        content["truncated"] = True
    if excerpt.next_line is not None:
        content["nextFrom"] = excerpt.next_line
    if not excerpt.line_count:
        return ToolAnswer(content, f"There is nothing at line {excerpt.first_line}: the file ends before it.")
    content["notice"] = NOTICE
    parts = [fence([lines_of(excerpt)], nonce)]
    if excerpt.next_line is not None:
        parts.append(f"There is more: ask again with from={excerpt.next_line}.")
    elif excerpt.truncated:
        parts.append("The last line is longer than what may be shown at once.")
    return ToolAnswer(content, "\n".join(parts))


def note_answer(note: Remembered) -> ToolAnswer:
    """Where a note stands now."""
    content = {
        "status": "ok",
        "path": note.path,
        "startLine": note.start_line,
        "endLine": note.end_line,
        "id": note.id,
    }
    return ToolAnswer(
        content, f"Saved as {CitedLines(note.path, note.start_line, note.end_line)} (id {note.id})."
    )


def edit_answer(edited: Edited) -> ToolAnswer:
    """Where the new text stands; what it says was just written."""
    content = {"status": "ok", "path": edited.path, "line": edited.line}
    return ToolAnswer(content, f"Changed at {CitedLines(edited.path, edited.line, edited.line)}.")


def exactly(chosen: Forgotten) -> str:
    """What a code has to stand for: these lines of these files as they are now."""
    lines = [[one.path, one.start_line, one.end_line, one.base_hash] for one in chosen.lines]
    return json.dumps([lines, chosen.text, chosen.note_id])


def forget_preview(
    chosen: Forgotten, limits: Limits, *, code: str, nonce: str, warning: str | None = None
) -> ToolAnswer:
    """The lines that would go, and the code that makes them go."""
    shown = _first_lines(chosen, limits)
    total = len(chosen.lines)
    content: dict[str, Any] = {"status": "preview", "lines": shown, "total": total, "confirm": code}
    if warning:
        content["warning"] = warning
    items = [Recalled(one["path"], one["text"], one["startLine"], one["endLine"]) for one in shown]
    what = f"{total} {'place' if total == 1 else 'places'} would be removed for good"
    if not total:
        what = "No file has this any more; it would be removed from older versions and the index, for good"
    more = f"; the first {len(shown)} of them are shown" if len(shown) < total else ""
    return ToolAnswer(
        content,
        "\n".join(
            filter(
                None,
                (
                    warning,
                    f"Nothing was removed yet. {what}{more}.",
                    fence(items, nonce),
                    f'If the user agrees, call memory_forget again with the same `what` and "confirm": "{code}".',
                ),
            )
        ),
        is_error=warning is not None,
    )


def forget_answer(gone: Forgotten) -> ToolAnswer:
    """What went, without saying it again."""
    places = [str(CitedLines(one.path, one.start_line, one.end_line)) for one in gone.lines]
    content = {
        "status": "forgotten",
        "total": len(places),
        "places": places,
        "versionsCleaned": gone.versions_cleaned,
    }
    return ToolAnswer(
        content, f"Removed for good: {len(places)} {'place' if len(places) == 1 else 'places'}."
    )


def _first_lines(chosen: Forgotten, limits: Limits) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    left = limits.max_injected_chars
    for one in chosen.lines:
        text = as_data(one.text)[: limits.max_snippet_chars]
        if len(text) > left and shown:
            break
        left -= len(text)
        shown.append({"path": one.path, "startLine": one.start_line, "endLine": one.end_line, "text": text})
    return shown


# What an agent can use; where things are on the disk is for people, who have `plainmind status`.
_FACTS = (
    "backend", "provider", "model", "files", "chunks", "sourceCounts", "dirty", "pending", "workspaceMissing",
    "withoutVectors", "fallback", "sendsTextTo", "lastFlush", "scope",
)  # fmt: skip


def status_answer(facts: Mapping[str, Any], nonce: str) -> ToolAnswer:
    """How the memory is. Facts may name files, so that they are fenced too."""
    known: dict[str, Any] = {name: facts[name] for name in _FACTS if name in facts}
    known["skippedFiles"] = len(facts.get("skipped", ()))
    if problem := facts.get("store", {}).get("problem"):
        known["problem"] = problem
    told = json.dumps(known, ensure_ascii=False, default=str)
    content = {"status": "ok", **json.loads(told)}
    return ToolAnswer(content, fence([Recalled("memory_status", told, source="status")], nonce))


def failure(
    tool: str, code: str, error: str, action: str | None, more: Mapping[str, Any] | None = None
) -> ToolAnswer:
    """Why a tool could not answer, and what to do; in the shape that the tool's other answers have."""
    content: dict[str, Any] = {"results": []} if tool == "memory_search" else {"status": "error"}
    content |= {"code": code, "error": _short(error)}
    if action:
        content["action"] = _short(action)
    content |= more or {}
    told = [f"{_sentence(content['error'])}", _sentence(content.get("action", ""))]
    return ToolAnswer(content, "\n".join(filter(None, told)), is_error=True)


def _short(text: str) -> str:
    return " ".join(as_data(text).split())[:600]


def _sentence(text: str) -> str:
    is_name = "_" in text.partition(" ")[0]  # of a tool, which a model calls as it is spelt
    begun = text if is_name else text[:1].upper() + text[1:]
    return begun + ("" if not text or text.endswith((".", "?", "!")) else ".")
