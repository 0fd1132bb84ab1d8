"""How much recalled text reaches a model at once: snippets are cut at line ends until they fit."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.agent.protocol import Limits
from plainmind.agent.recall import as_data
from plainmind.base.model import SearchHit
from plainmind.base.value import replace

ELLIPSIS = "…"
# Less than this of a snippet tells nobody anything.
_LEAST_CHARS = 60
# Reading is asked for by name, after a search: it may take more than the search did.
_READING_PER_SEARCH = 3


def fitted(hits: Sequence[SearchHit], limits: Limits) -> list[SearchHit]:
    """The first hits that fit, their snippets as data; what is cut off is no longer among the cited lines."""
    taken: list[SearchHit] = []
    left = limits.max_injected_chars
    for hit in hits[: limits.max_results]:
        clean = replace(hit, snippet=as_data(hit.snippet))
        room = min(limits.max_snippet_chars, left)
        if len(clean.snippet) > room and room < min(_LEAST_CHARS, limits.max_snippet_chars):
            break
        taken.append(shortened(clean, room))
        left -= len(taken[-1].snippet)
    return taken


def shortened(hit: SearchHit, room: int) -> SearchHit:
    """A hit whose snippet has at most `room` characters: whole lines, or the beginning of the first."""
    if len(hit.snippet) <= room:
        return hit
    # Lines of a conversation have other numbers than their place in the snippet says.
    has_every_line = hit.snippet.count("\n") == hit.end_line - hit.start_line
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
