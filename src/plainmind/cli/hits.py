"""Hits as a person reads them: score, place, the cited lines, and on request why they were chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date

from plainmind.base.model import SearchHit, SearchResult
from plainmind.base.pattern import pattern
from plainmind.cli.console import Console, visible
from plainmind.text.terms import document_terms, query_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORD = pattern(r"\S+")
_PUNCTUATION = "\"'`*_.,;:!?()[]{}<>…“”‘’"


def citation(hit: SearchHit) -> str:
    """`memory/network.md#L3-L7`, or `#L5` for one line."""
    last = "" if hit.end_line == hit.start_line else f"-L{hit.end_line}"
    return f"{hit.path}#L{hit.start_line}{last}"


def print_hits(console: Console, result: SearchResult, *, today: date) -> None:
    """Print all hits, then on stderr what was not consulted."""
    wanted = frozenset(query_terms(result.query).terms) if console.colored else frozenset()
    for number, hit in enumerate(result.hits):
        if number:
            console.answer()
        last = "" if hit.end_line == hit.start_line else f"-{hit.end_line}"
        place = console.styled(f"{visible(hit.path)}:{hit.start_line}{last}", "path")
        console.answer(f"{hit.score:.2f}  {place}")
        for line in console.shown(hit.snippet).split("\n"):
            console.answer(f"  {emphasised(console, line, wanted)}".rstrip())
        if hit.explanation is not None:
            console.answer(
                console.styled(f"  why: {reason(hit.explanation, result.query, hit.path, today)}", "dim")
            )
    for note in (*result.degraded, *result.notes):
        console.note(note)
    if result.fallback is not None:
        console.note("{to} answers in place of {from}: {reason}".format(**result.fallback))


def emphasised(console: Console, line: str, wanted: AbstractSet[str]) -> str:
    """Make the words that the question has too stand out."""
    if not wanted:
        return line
    parts: list[str] = []
    end = 0
    for start, stop in matched_spans(line, wanted):
        parts += (line[end:start], console.styled(line[start:stop], "bold"))
        end = stop
    return "".join(parts) + line[end:]


def matched_spans(line: str, wanted: AbstractSet[str]) -> list[tuple[int, int]]:
    """Where a line has words of the question, in order and without overlaps."""
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
    return _joined(sorted(spans))


def _spans_in(word: str, wanted: AbstractSet[str]) -> Iterator[tuple[int, int]]:
    """Where terms stand within a word: Chinese and Japanese write whole sentences without a space."""
    hits = [term for term in wanted & set(document_terms(word)) if term]
    inside = False
    for term in hits:
        at = word.casefold().find(term)
        while at >= 0:
            inside = True
            yield at, at + len(term)
            at = word.casefold().find(term, at + 1)
    if hits and not inside:  # an accent or an ending makes the difference: the whole word
        yield 0, len(word)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def reason(explanation: Mapping[str, Any], query: str, path: str, today: date) -> str:
    """One readable line about why a hit was chosen."""
    from plainmind.cli.wording import age_in_words
    from plainmind.notes.dates import day_of

    line = f"line {explanation['bestLine']}" if "bestLine" in explanation else "the line"
    parts = [f"{line} has {_words_in_line(explanation, query)}"]
    if explanation.get("exactToken"):
        parts.append("an exact match")
    if explanation.get("speaker"):
        parts.append("said by somebody whom the question names")
    if explanation.get("meaning"):
        parts.append(f"meaning {explanation['meaning']:.2f}")
    if explanation.get("namedDay"):
        parts.append("from a day that the question names")
    day = day_of(path)
    if day and (age := age_in_words(day, today)):
        recency = float(explanation.get("recency", 1.0))
        parts.append(f"{age}, weighs × {recency:.2f}" if recency < 0.995 else age)
    return "; ".join(parts)


def _words_in_line(explanation: Mapping[str, Any], query: str) -> str:
    from plainmind.cli.wording import one_of_many

    words = words_of(query)
    matched = set(explanation.get("matched", ()))
    found = [name for name, terms in words if matched & terms]
    if not found:
        around = explanation.get("nearby") or explanation.get("passage") or explanation.get("keywords")
        return "none of the words" + (", but stands near some" if words and around else "")
    named = one_of_many(found)
    if len(found) < len(words):
        return f"{len(found)} of {len(words)} words ({named})"
    return f"the word ({named})" if len(words) == 1 else f"all {len(words)} words ({named})"


def words_of(query: str) -> list[tuple[str, frozenset[str]]]:
    """Name the words of a question that count, with the terms each stands for; of spaceless text the pairs."""
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
