"""What a question names and its results do not have: an identifier, or a person. What is left is hardly the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plainmind.base.lazy import DOTALL, IGNORECASE, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.search.pages import ParsedQuery
    from plainmind.search.snippets import Snippet


# In log-odds. Of questions of ten sets that nothing answers, all that name an identifier are told by it, and no right
# answer is doubted for it.
OF_MISSING_IDENTIFIER = -3.0
# Of questions with another person's name put in, 27 % had something certain, and 6 % have with it; of 909 right first
# answers it doubts three.
OF_MISSING_PERSON = -2.2

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


def doubt_of(question: str, exact: Iterable[str], first: str, texts: Iterable[str]) -> float:
    """What speaks against the first result, in log-odds, because of what it, or all the texts, do not have."""
    of_identifier = OF_MISSING_IDENTIFIER if lacks_identifier(exact, texts) else 0.0
    return of_identifier + (OF_MISSING_PERSON if lacks_person(question, first) else 0.0)


def doubt_of_first(query: ParsedQuery, weighed: Sequence[tuple[float, bool, Snippet]]) -> float:
    """The same of snippets, each with the chunk that it is from."""
    texts = (
        _all_of(snippet) for _, _, snippet in weighed
    )  # most questions name nothing that is looked for in all
    return doubt_of(query.text, query.exact, _all_of(weighed[0][2]), texts)


def _all_of(snippet: Snippet) -> str:
    chunk = snippet.best[0].ranked.chunk
    return f"{snippet.text} {chunk.headed_text} {chunk.path}"
