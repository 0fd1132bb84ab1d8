"""What an entry is, and what storing and recalling give."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CATEGORIES = ("preference", "fact", "decision", "entity", "other")
USUAL_IMPORTANCE = 0.7
MOST_CHARS = 2_000  # an entry is a sentence or two; what is longer is a note
_LATEST_MS = 253_402_300_799_999  # the last day that a calendar knows
# Ids stand in commands and between quotation marks: nothing else may.
_ID = pattern(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")


@value
class Entry:
    """One thing worth remembering."""

    id: str
    text: str
    category: str
    importance: float  # 0..1
    created_at: int  # milliseconds since 1970
    scope: str = PRIVATE  # who may see it
    origin: str = "stored"  # or "captured": nobody asked for it
    is_waiting: bool = False  # until somebody has accepted it; nobody recalls it before
    details: Mapping[str, Any] | None = (
        None  # what another program wants to be kept with it; JSON, not searched
    )

    def as_json(self) -> dict[str, Any]:
        """The entry as it is kept and printed."""
        facts: dict[str, Any] = {
            "id": self.id,
            "text": self.text,
            "importance": self.importance,
            "category": self.category,
            "createdAt": self.created_at,
            "scope": self.scope,
            "origin": self.origin,
        }
        if self.details:
            facts["details"] = dict(self.details)
        return {**facts, "waiting": True} if self.is_waiting else facts

    @property
    def day(self) -> str:
        """The day it was stored, in UTC."""
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self.created_at / 1000, UTC).date().isoformat()


@value
class RecalledEntry:
    """An entry that answers a question, and how well: 0..1."""

    entry: Entry
    score: float
    similarity: float  # the cosine
    word_score: float  # how much of the question's words it has, by how rare they are


@value
class Recall:
    """What was recalled, best first, and everything that was not consulted for it."""

    found: tuple[RecalledEntry, ...]
    degraded: tuple[str, ...] = ()


@value
class Stored:
    """What became of an entry: kept, or refused because a twin of it is there."""

    entry: Entry | None
    twin: Entry | None = None
    similarity: float = 0.0
    degraded: tuple[str, ...] = ()


def entry_of(facts: Mapping[str, Any]) -> Entry | None:
    """The entry that a JSON object says; None when it is none, whoever wrote it."""
    id_, text = facts.get("id"), facts.get("text")
    created = facts.get("createdAt", 0)
    if not isinstance(id_, str) or not _ID.fullmatch(id_) or not isinstance(text, str) or not text.strip():
        return None
    category, importance = facts.get("category"), facts.get("importance", USUAL_IMPORTANCE)
    scope = facts.get("scope", PRIVATE)
    return Entry(
        id_,
        text,
        category if category in CATEGORIES else "other",
        _share(importance),
        int(created) if isinstance(created, int | float) and 0 <= created <= _LATEST_MS else 0,
        # What nobody could have meant is for its owner alone.
        scope if isinstance(scope, str) and scope not in {"", *EVERY_SCOPE} else PRIVATE,
        "captured" if facts.get("origin") == "captured" else "stored",
        facts.get("waiting") is True,
        details if isinstance(details := facts.get("details"), dict) else None,
    )


def checked(text: str, category: str, importance: float) -> tuple[str, str, float]:
    """What is to be stored, or a sentence about why it cannot be."""
    text = text.strip()
    if not text:
        raise PlainmindError("an entry needs a text", hint="say in a sentence what to remember")
    if len(text) > MOST_CHARS:
        raise PlainmindError(
            f"the text has {len(text):,} characters; an entry has at most {MOST_CHARS:,}",
            hint="say it in a sentence or two, or keep it as a note with `plainmind remember`",
        )
    if category not in CATEGORIES:
        raise PlainmindError(
            f"there is no category `{category[:60]}`", hint=f"use one of {', '.join(CATEGORIES)}"
        )
    if not 0.0 <= importance <= 1.0:
        raise PlainmindError(
            f"an importance of {importance} is not between 0 and 1", hint="0.7 is usual, 1 is the most"
        )
    return text, category, importance


def checked_id(id_: str) -> str:
    """An id that another program has chosen, or a sentence about why it cannot be one."""
    if not _ID.fullmatch(id_):
        raise PlainmindError(
            f"`{id_[:60]}` cannot be the id of an entry",
            hint="use letters, digits, `_`, `.`, `:` and `-`, at most 100",
        )
    return id_


def _share(number: object) -> float:
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number <= 1:
        return USUAL_IMPORTANCE
    return float(number)
