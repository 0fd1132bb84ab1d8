"""What speaks for a result, and what against it: an identifier, or a person, that the question names and it has not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plainmind.base.lazy import DOTALL, IGNORECASE, pattern
from plainmind.search.pages import names_day
from plainmind.text.terms import speaker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.base.model import date
    from plainmind.search.engine import Recency
    from plainmind.search.pages import ParsedQuery, QuestionWords, TermSet
    from plainmind.search.snippets import ReadChunk, Snippet


# In log-odds. Of questions of ten sets that nothing answers, all that name an identifier are told by it, and no right
# answer is doubted for it.
OF_MISSING_IDENTIFIER = -3.0
# Of questions with another person's name put in, 27 % had something certain, and 6 % have with it; of 909 right first
# answers it doubts three.
OF_MISSING_PERSON = -2.2

# One of many that are numbered is none of the others.
OF_MISSING_NUMBER = -3.0

_NUMBER = pattern(r"\d+")
_NUMBERED = pattern(
    r"\b(?:week|kw|woche|semana|semaine|settimana|room|zimmer|raum|salle|sala|chapter|kapitel|chapitre|capítulo|capitolo"
    r"|lesson|lektion|lección|leçon|page|seite|página|pagina|episode|folge|episodio|épisode|season|staffel|version|release"
    r"|ticket|issue|gate|platform|gleis|line|linie|línea|ligne|linea|bus|tram|flight|flug|vuelo|volo|floor|etage|étage"
    r"|flat|apartment|wohnung|locker|shelf|regal|level|phase|invoice|rechnung|factura|facture|fattura|order|bestellung"
    r"|pedido|commande|table|tisch|mesa|port|vlan|class|klasse|grade|unit|box)"
    r"\s+(?:no\.?\s*|nr\.?\s*|#)?0*(\d{1,6})\b(?![.,:]?\d)",
    IGNORECASE,
)
_SIGNS = pattern(r"[\W_]+")
_CODE = pattern(r"(?=.*\d).*[^\W\d_]|.*_", DOTALL)


def lacks_identifier(exact: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether a question names something like `HW-3001` or `quiet_hours` that none of these has, however spelt."""
    named = {term: bare for term in exact if _CODE.match(term) and (bare := _SIGNS.sub("", term))}
    if not named:
        return False
    there = [text.lower() for text in texts]
    # Most are there as they are named: then nothing has to be taken out of any text.
    missing = [
        bare for term, bare in named.items() if not any(term in text or bare in text for text in there)
    ]
    for text in there:
        if not missing:
            break
        without_signs = _SIGNS.sub("", text)
        missing = [bare for bare in missing if bare not in without_signs]
    return bool(missing)


# Whose something is, or who does it. Nouns have capitals in German too, so there only what follows Herr or Frau counts.
_PERSON = pattern(
    r"\b([^\W\d_a-z][^\W\d_]+)['’]s\b(?! (?:day|eve)\b)"
    r"|\b(?:do|does|did|is|are|was|were|has|have|had|will|would|can|could|should|of|for|by|with"
    r"|de|di|da|do|del|van|Herrn?|Frau) ([^\W\d_a-z][^\W\d_]+)\b"
)
_NOBODY = frozenset(
    """
    what who let it that there here how where when why he she this one everyone someone
    """.split()  # noqa: SIM905
)
_OF_THE_CALENDAR = pattern(
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|christmas|easter|new)",
    IGNORECASE,
)
# A name may be misspelt, or bent, at its end.
_LEAST, _BENT = 3, 2


def people_in(question: str) -> frozenset[str]:
    """The people, and places and things with a name, that a question is about, folded; most name none."""
    if question == question.lower():
        return frozenset()
    found = [(owner or other) for owner, other in _PERSON.findall(question)]
    return frozenset(
        name.casefold()
        for name in found
        if name.casefold() not in _NOBODY and not _OF_THE_CALENDAR.match(name)
    )


def lacks_person(question: str, text: str) -> bool:
    """Whether a question is about somebody of whom a text, with its headings and its place, says nothing."""
    people = people_in(question)
    folded = text.casefold() if people else ""
    return any(name[: max(_LEAST, len(name) - _BENT)] not in folded for name in people)


def lacks_number(question: str, text: str) -> bool:
    """Whether a question is about one of many that are numbered, week 52, and a text does not have that number."""
    numbers = {number.lstrip("0") for number in _NUMBERED.findall(question)}
    return bool(numbers) and not numbers <= {number.lstrip("0") for number in _NUMBER.findall(text)}


def doubt_of(question: str, exact: Iterable[str], first: str, texts: Iterable[str]) -> float:
    """What speaks against the first result, in log-odds, because of what it, or all the texts, do not have."""
    of_identifier = OF_MISSING_IDENTIFIER if lacks_identifier(exact, texts) else 0.0
    of_number = OF_MISSING_NUMBER if lacks_number(question, first) else 0.0
    return of_identifier + of_number + (OF_MISSING_PERSON if lacks_person(question, first) else 0.0)


def doubt_of_first(query: ParsedQuery, weighed: Sequence[tuple[float, bool, Snippet]]) -> float:
    """The same of snippets, each with the chunk that it is from."""
    texts = (
        _all_of(snippet) for _, _, snippet in weighed
    )  # most questions name nothing that is looked for in all
    return doubt_of(query.text, query.exact, _all_of(weighed[0][2]), texts)


def _all_of(snippet: Snippet) -> str:
    chunk = snippet.best[0].ranked.chunk
    return f"{snippet.text} {chunk.headed_text} {chunk.path}"


# --- why a hit is where it is ---


class Explanations:
    """Explains the hits of one question."""

    def __init__(self, query: ParsedQuery, asked: QuestionWords, recency: Recency, today: date) -> None:
        self._query = query
        self._asked = asked
        self._recency = recency
        self._today = today

    def of(self, read: ReadChunk, unit: int, score: float, *, exact: bool) -> Mapping[str, object]:
        """What spoke for one unit of a chunk."""
        query, ranked, wording = self._query, read.ranked, read.wording
        chunk = ranked.chunk
        own, beside, passage = (
            (0, 0, 0.0)
            if wording is None
            else (wording.own[unit], terms_beside(wording.own)[unit], wording.passages[unit])
        )
        recency = self._recency.factor(chunk.day, today=self._today, asked_for_recent=query.asks_for_recent)
        return {
            "score": round(score, 4),
            "raw": round(read.scores[unit], 4),
            "coverage": round(self._asked.share_of_words(own), 4),
            "nearby": round(self._asked.share_of_words(beside), 4),
            "passage": round(passage, 4),
            "keywords": round(ranked.keywords, 4),
            "neighbours": round(ranked.neighbours, 4),
            "meaning": round(ranked.meaning, 4),
            "otherWords": round(ranked.lift, 4),
            "speaker": query.names(speaker_of(read.page.units[unit])),
            "recency": round(recency, 4),
            "namedDay": names_day(query, chunk.day),
            "exactToken": exact,
            "matched": list(self._asked.names_of(own)),
            "bestLine": read.places[unit][0],
        }


def terms_beside(own: Sequence[TermSet]) -> list[TermSet]:
    """For each unit the terms that stand in the two before or the two after it, and not in it."""
    around = [0, 0, *own, 0, 0]
    return [
        (first | second | fourth | fifth) & ~middle
        for first, second, middle, fourth, fifth in zip(
            around, around[1:], own, around[3:], around[4:], strict=False
        )
    ]
