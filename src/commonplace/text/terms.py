"""Keyword terms: the words under which a text is filed, and those that a query looks up.

Words lose case, accents and English endings. Identifiers (paths, versions, symbols, addresses) are kept
whole as one term and also filed under their parts. Scripts without spaces are filed by pairs of characters.
Both sides follow the same rules word by word, so a word copied from a text always finds it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache

from commonplace.text.cjk import bigrams, spaceless_run
from commonplace.text.hashing import sha256_text
from commonplace.text.stemming import fold, stem
from commonplace.text.stopwords import ACRONYMS, STOP_WORDS

# Part of the index fingerprint: change it whenever the same text would give other terms.
TERMS_VERSION = "1"

LONGEST_TERM = 64
_LONGEST_DIVIDED = 256  # a longer word is data (base64, a minified script): its parts mean nothing
_LONGEST_KNOWN = 40
_MOST_KNOWN = 60_000  # words whose terms are remembered, about 15 MB

# Vowel signs and points, which `\w` leaves out, belong to the words of their scripts.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0df3\u0f71-\u0f84\u0f90-\u0fbc\u135d-\u135f"
)
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
# A number with thousands separators, or letters joined by single marks. The repeat is bounded because the
# matcher's memory grows with it.
_WORD_RULE = (
    r"(?P<number>(?<!\w)\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?)"
    r"|[@#]?LETTER+(?:(?:://|::|[-./:@\\'’])LETTER+){0,40}(?:\+\+|(?<=\b\w)\#)?"
)
_ASCII_WORD = re.compile(_WORD_RULE.replace("LETTER", r"\w"))
_JOINT = re.compile(r"://|::|[-./:@\\#+]+")
_PATH_JOINT = re.compile(r"://|[/\\]")
_CONTRACTED = re.compile(r"'(?:ll|re|ve|d|m|s)$", re.IGNORECASE)
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_CAPITALS = re.compile(r"[A-Z]{2,}s?")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s|am|pm)")
_ALL_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """What a query looks up. `exact` are the identifiers among the terms: rare, and matched as written."""

    terms: tuple[str, ...]  # distinct, in the order of the query
    exact: frozenset[str]
    only_stop_words: bool = False  # then `terms` are those words, which no document is filed under


@dataclass(slots=True)
class _Found:
    """What the words of a text gave so far."""

    terms: list[str] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)
    stop_words: list[str] = field(default_factory=list)


_known: dict[str, tuple[str, ...]] = {}


def document_terms(text: str) -> list[str]:
    """Return the terms of a text in order, repeats included."""
    terms: list[str] = []
    for word in _normalized(text).split():
        found = _known.get(word)
        terms.extend(_learn(word) if found is None else found)
    return terms


def query_terms(text: str) -> QueryTerms:
    """Return the distinct terms of a query; a query of stop words alone keeps them and says so."""
    text = _normalized(text)
    words = text.split()
    if len(words) > 3 and text.isupper():  # a shouted sentence is not a row of acronyms
        words = [word.lower() if word.isascii() else word for word in words]
    found = _Found()
    for word in words:
        _read(word, found)
    only_stop_words = bool(found.stop_words) and not found.terms
    terms = found.stop_words if only_stop_words else found.terms
    return QueryTerms(tuple(dict.fromkeys(terms)), frozenset(found.exact), only_stop_words)


def _normalized(text: str) -> str:
    if text.isascii():
        return text
    for character in _INVISIBLE:
        text = text.replace(character, "")
    return unicodedata.normalize("NFKC", text)


@cache
def _any_word() -> re.Pattern[str]:
    return re.compile(_WORD_RULE.replace("LETTER", rf"[\w{_MARKS}]"))


def _learn(word: str) -> tuple[str, ...]:
    found = _Found()
    _read(word, found)
    terms = tuple(found.terms)
    if len(word) <= _LONGEST_KNOWN:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[word] = terms
    return terms


def _read(word: str, found: _Found) -> None:
    """Read what stands between two spaces."""
    if word.isascii():
        _read_spaced(word, found)
        return
    for number, stretch in enumerate(spaceless_run().split(word)):
        if number % 2:
            found.terms.extend(bigrams(stretch))
        else:
            _read_spaced(stretch, found)


def _read_spaced(stretch: str, found: _Found) -> None:
    pattern = _ASCII_WORD if stretch.isascii() else _any_word()
    for match in pattern.finditer(stretch):
        token = match[0].replace("’", "'")
        if match["number"]:
            token = token.replace(",", "")
        if "'" in token:
            _add_with_apostrophe(token, found)
        else:
            _add_token(token, found)


def _add_with_apostrophe(token: str, found: _Found) -> None:
    """Read Anna's as Anna, they'll as they, O'Brien as O and Brien."""
    if fold(token) in STOP_WORDS:
        found.stop_words.append(fold(token))
        return
    for part in _CONTRACTED.sub("", token).split("'"):
        _add_token(part, found)


def _add_token(token: str, found: _Found) -> None:
    identifier = _add(token, found)
    if identifier:
        found.exact.append(identifier)


def _add(token: str, found: _Found) -> str:
    """Add the terms of one token; return its whole form when it is an identifier."""
    joints = _PATH_JOINT if _PATH_JOINT.search(token) else _JOINT
    parts = [part for part in joints.split(token) if part]
    if parts == [token]:
        return _add_joined(token, found)
    whole = _bounded(fold(token))
    if whole in STOP_WORDS:
        found.stop_words.append(whole)
        return ""
    found.terms.append(whole)
    for part in parts:
        _add(part, found)
    return whole


def _add_joined(word: str, found: _Found) -> str:
    """Add a word without punctuation inside: it may still be snake_case, camelCase or letters and digits."""
    if not (word.startswith("__") and word.endswith("__") and word.strip("_")):
        word = word.strip("_")  # Markdown's emphasis and rules; only Python's double ones name something
    folded = fold(word)
    if folded in STOP_WORDS and word not in ACRONYMS:
        found.stop_words.append(folded)
        return ""
    parts = _parts(word)
    if parts is None:
        _append(stem(folded), found)
        return folded if len(folded) > 4 and _ALL_DIGITS.fullmatch(folded) else ""
    whole = _append(folded, found)
    for part in parts:
        _add_part(part, whole, found)
    return "" if _ORDINAL.fullmatch(folded) else whole


def _parts(word: str) -> list[str] | None:
    """Divide an identifier; None when the word is an ordinary one."""
    if len(word) > _LONGEST_DIVIDED:
        return []
    if "_" in word:
        return [part for part in word.split("_") if part]
    if _CAPITALS.fullmatch(word):
        return [word.lower()]
    if _CAMEL.search(word):
        return _CAMEL_PART.findall(word)
    if word.isalpha() or not word.isalnum() or word.isdigit():
        return None
    # Numerals of other scripts (፩) are neither letters nor `\d`: a word of them is its own only part.
    return [part for part in _LETTERS.findall(word) if part != word]


def _add_part(part: str, whole: str, found: _Found) -> None:
    before = len(found.terms)
    _add_joined(part, found)
    if found.terms[before:] == [whole]:
        del found.terms[before:]  # an acronym that is its own stem counts once


def _append(term: str, found: _Found) -> str:
    term = _bounded(term)
    if term:
        found.terms.append(term)
    return term


def _bounded(term: str) -> str:
    if len(term) <= LONGEST_TERM:
        return term
    digest = sha256_text(term)[:16]
    return f"{term[: LONGEST_TERM - len(digest) - 1]}~{digest}"
