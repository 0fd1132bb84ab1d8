"""Filters: how a question names them, and which passages of an index pass them, whichever driver keeps it.

A question names them in its own words, `"exact phrase"`, `-word`, `tag:`, `title:`, `path:`, `since:` and `until:`, and
a caller beside it. Postings and the names of files tell which passages may pass; where words are not enough, those few
are read. What does not pass is not ranked: the places of a search are filled by what does.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import Chunk, FileState, Restriction, SearchFilter, Source, date_of
from plainmind.base.value import replace
from plainmind.text.chunking import BREADCRUMB
from plainmind.text.front_matter import NoteNames, name_of, note_names, read_front_matter, tags_in
from plainmind.text.terms import (
    DayRange,
    clues,
    document_terms,
    fold,
    may_be_spaceless,
    mentioned_days,
    normalize,
    query_terms,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.index.reader import Reader

    FileKey: TypeAlias = tuple[Source, str]

# --- how a question names them ---

_WRITTEN = pattern(
    r'(?<![^\s(])(?P<no>-?)(?:(?P<field>tag|title|path|since|until):)?(?:"(?P<phrase>[^"]+)"|(?P<word>[^\s"]+))',
    re.IGNORECASE,
)
_CURLY = str.maketrans("“”„", '"""')
_A_WORD = pattern(r"[^\W\d_]\w")  # "-5" and "-v" are no wish to leave something out
# Neither are the options of a command, "-la" and "-ltnp": one or two letters, or letters that nobody can say.
_OPTIONS = pattern(r"[a-zA-Z]{1,2}|(?i:[b-df-hj-np-tv-xz]+)")
_AROUND_PHRASES = " .,;:!?…"
_YEAR, _MONTH = pattern(r"\d{4}"), pattern(r"\d{4}-\d\d")
# A day that nobody names lies outside.
_FIRST_YEAR, _LAST_YEAR = 1970, 2099


def read_filters(question: str, today: dt.date) -> tuple[str, Restriction]:
    """What a question asks for in words, and what it restricts itself to."""
    text = question if may_be_spaceless(question) else question.translate(_CURLY)
    found: dict[str, list[str]] = {}
    days: dict[str, str] = {}
    words: list[str] = []
    end = 0
    for written in _WRITTEN.finditer(text):
        kept = _read_one(written, found, days, today)
        if kept is not None:
            words += (text[end : written.start()], kept)
            end = written.end()
    words.append(text[end:])
    asked = " ".join("".join(words).split())
    restriction = Restriction(**{name: tuple(given) for name, given in found.items()}, **days)  # type: ignore[arg-type]
    if not asked and not _names_anything(restriction):
        return question, Restriction()  # nothing but what is not wanted is no question
    return asked, restriction


def _read_one(
    written: re.Match[str], found: dict[str, list[str]], days: dict[str, str], today: dt.date
) -> str | None:
    """Take one filter, and say which words stay; None for what is none."""
    is_without, field = bool(written["no"]), (written["field"] or "").lower()
    given = (written["phrase"] or written["word"]).strip()
    if field in {"since", "until"}:
        day = None if is_without else day_named(given, today, is_last=field == "until")
        if day is not None:
            days[field] = day.isoformat()
        return None if day is None else ""
    if field:
        given = given.lstrip("#") if field == "tag" else given
        if given:
            found.setdefault(f"without_{field}s" if is_without else f"{field}s", []).append(given)
        return given if field == "title" and not is_without else ""
    phrase = given.strip(_AROUND_PHRASES)
    if is_without and _can_be_left_out(phrase, is_quoted=bool(written["phrase"])):
        found.setdefault("without", []).append(phrase)
        return ""
    if is_without or not written["phrase"] or not phrase:
        return None
    found.setdefault("phrases", []).append(phrase)
    return given


def _can_be_left_out(words: str, *, is_quoted: bool) -> bool:
    terms = query_terms(words)
    if not terms.terms or terms.only_stop_words:
        return False
    return is_quoted or (_A_WORD.match(words) is not None and _OPTIONS.fullmatch(words) is None)


def _names_anything(restriction: Restriction) -> bool:
    only = restriction
    return bool(only.paths or only.tags or only.titles or only.phrases or only.since or only.until)


def day_named(words: str, today: dt.date, *, is_last: bool) -> dt.date | None:
    """The first or last day that words name: `2026-11-02`, `2026-11`, `2025`, `yesterday`, `last monday`."""
    span = _span_named(words.strip(), today)
    if span is None:
        return None
    return span.last if is_last else span.first


def _span_named(words: str, today: dt.date) -> DayRange | None:
    try:
        if _YEAR.fullmatch(words):
            return DayRange(dt.date(int(words), 1, 1), dt.date(int(words), 12, 31), words)
        if _MONTH.fullmatch(words):
            first = dt.date.fromisoformat(f"{words}-01")
            following = dt.date(first.year + first.month // 12, first.month % 12 + 1, 1)
            return DayRange(first, following - dt.timedelta(days=1), words)
    except (ValueError, OverflowError):
        return None
    return next(iter(mentioned_days(words, today)), None)


def restriction_of(
    today: dt.date,
    *,
    paths: Iterable[str] = (),
    tags: Iterable[str] = (),
    since: dt.date | str | None = None,
    until: dt.date | str | None = None,
) -> Restriction | None:
    """What a caller asks for beside the question; None for nothing. Raises PlainmindError for what is no day."""
    tags = (tags,) if isinstance(tags, str) else tags  # and not one for each of its letters
    only = Restriction(
        paths=(paths,) if isinstance(paths, str) else tuple(paths),
        tags=tuple(tag.strip().lstrip("#") for tag in tags),
        since=_day_given("since", since, today),
        until=_day_given("until", until, today),
    )
    return None if only == Restriction() else only


def _day_given(name: str, given: dt.date | str | None, today: dt.date) -> str | None:
    if given is None:
        return None
    if isinstance(given, str):
        day = day_named(given, today, is_last=name == "until")
    else:
        day = date_of(given, f"`{name}`", "a day (date or text)")
    if day is None:
        raise PlainmindError(
            f"`{name}` names no day: {given}",
            hint="say it as 2026-11-02, 2026-11, yesterday, last Monday or March",
        )
    return day.isoformat()


def restrict(question: str, where: SearchFilter, today: dt.date) -> tuple[str, SearchFilter]:
    """The words of a question, and a filter with all that it and its caller ask for."""
    asked, own = read_filters(question, today)
    given = where.only or Restriction()
    only = Restriction(
        paths=given.paths or own.paths,
        tags=given.tags + own.tags,
        titles=own.titles,
        phrases=own.phrases,
        since=max(filter(None, (given.since, own.since)), default=None),
        until=min(filter(None, (given.until, own.until)), default=None),
        without_paths=own.without_paths,
        without_tags=own.without_tags,
        without_titles=own.without_titles,
        without=own.without,
    )
    return asked, replace(where, only=None if only == Restriction() else only)


def in_words(only: Restriction) -> tuple[str, ...]:
    """What is asked for, for people to read."""
    parts = []
    if only.paths:
        parts.append(f"only in {' or '.join(only.paths)}")
    parts += [f"only tagged #{tag}" for tag in only.tags]
    parts += [f"only called “{title}”" for title in only.titles]
    parts += [f"only with “{phrase}” word for word" for phrase in only.phrases]
    if only.since or only.until:
        parts.append(
            "only "
            + " ".join(f"{word} {day}" for word, day in (("since", only.since), ("until", only.until)) if day)
        )
    parts += [f"not in {path}" for path in only.without_paths]
    parts += [f"not tagged #{tag}" for tag in only.without_tags]
    parts += [f"not called “{title}”" for title in only.without_titles]
    parts += [f"without “{words}”" for words in only.without]
    return tuple(parts)


# --- what passes ---


def path_pattern(glob: str) -> re.Pattern[str]:
    """What a glob matches. Without a slash it names a file or a folder anywhere; what it names holds all below it.

    `*` and `?` stay within a folder, `**` does not; capitals make no difference, and `.md` may be left out.
    """
    bare = glob.strip().removeprefix("./").strip("/")
    anywhere = "" if "/" in bare else "(?:.*/)?"
    return re.compile(f"{anywhere}{_expression(bare)}(?:\\.md|/.*)?", re.IGNORECASE | re.DOTALL)


_GLOB_PART = pattern(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|[^*?\[]+|\[")


def _expression(glob: str) -> str:
    by_mark = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = []
    for part in _GLOB_PART.findall(glob):
        if part[0] == "[" and len(part) > 2:
            inner = part[1:-1].replace("\\", "\\\\")
            parts.append(f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]")
        else:
            parts.append(by_mark.get(part) or re.escape(part))
    return "".join(parts)


def plain_form(text: str) -> str:
    """A text without case, accents, emphasis and line breaks: what stands word for word in it is a part of this."""
    bare = normalize(text).replace("*", "").replace("`", "").replace("’", "'")
    return " ".join(fold(bare).split())


def has_phrase(form: str, phrase: str) -> bool:
    """Whether a text has a phrase, both in their plain form: whole words, where there are spaces between words."""
    at = form.find(phrase) if phrase else -1  # of nothing but marks nothing is left, and that stands nowhere
    while at >= 0:
        end = at + len(phrase)
        if not (_is_joined(form[at - 1 : at], phrase[0]) or _is_joined(phrase[-1], form[end : end + 1])):
            return True
        at = form.find(phrase, at + 1)
    return False


def _is_joined(one: str, other: str) -> bool:
    return one.isalnum() and other.isalnum() and not may_be_spaceless(one + other)


def _stands_in(chunk: Chunk, phrase: str) -> bool:
    """Whether a passage under its headings has a phrase in its plain form; a rough look tells most of it."""
    text = chunk.headed_text.casefold()
    if has_phrase(text, phrase):
        return True
    if phrase.isascii() and text.isascii() and not all(word in text for word in phrase.split()):
        return False
    return has_phrase(plain_form(text), phrase)


def text_with_headings(chunk: Chunk) -> str:
    """The plain form of a passage under its headings."""
    return plain_form(chunk.headed_text)


def may_stand_beside(chunk: Chunk, only: Restriction) -> bool:
    """Whether a passage may be shown with others that pass."""
    if chunk.day is not None and not (only.since or "") <= chunk.day <= (only.until or "9"):
        return False
    if not only.without:
        return True
    terms, form = set(document_terms(chunk.headed_text)), text_with_headings(chunk)
    return not any(_has_words(words, terms, form) for words in only.without)


def _has_words(words: str, terms: AbstractSet[str], form: str) -> bool:
    asked = query_terms(words).terms
    if len(asked) == 1 and asked[0].isascii():
        return asked[0] in terms
    return has_phrase(form, plain_form(words))


def is_tagged(tag: str, tags: Iterable[str]) -> bool:
    """Whether one of the tags is this one, or below it: `work/lighthouse` is below `work`."""
    wanted = fold(tag)
    return any(own == wanted or own.startswith(f"{wanted}/") for own in map(fold, tags))


class _Title:
    """A title that is looked for."""

    def __init__(self, words: str) -> None:
        self._terms = frozenset(document_terms(words))
        self._form = plain_form(words)

    def may_be(self, path: str) -> bool:
        """Whether the name of a file may be it; found out faster than whether it is."""
        lowered = path.casefold()
        return not path.isascii() or all(
            any(clue in lowered for clue in clues(term)) for term in self._terms if term.isascii()
        )

    def is_one_of(self, *names: str) -> bool:
        """Whether one of these names has all its words."""
        return any(
            (self._terms and self._terms <= set(document_terms(name))) or self._form in plain_form(name)
            for name in filter(None, names)
        )


class Passing:
    """The places that pass a restriction: those `within`, or all, but for those `without`."""

    __slots__ = ("within", "without")

    def __init__(self, within: set[int] | None, without: set[int]) -> None:
        self.within = within if within is None else within - without
        self.without = without

    def has(self, place: int) -> bool:
        """Whether what stands at a place passes."""
        return place in self.within if self.within is not None else place not in self.without

    def lengths(self, first_place: int, lengths: memoryview) -> memoryview:
        """Lengths of a segment, uint16 by position, with 0 for what does not pass."""
        if self.within is None:
            kept = array("H", lengths)
            for place in self.without:
                if 0 <= place - first_place < len(kept):
                    kept[place - first_place] = 0
        else:
            kept = array("H", bytes(2 * len(lengths)))
            for place in self.within:
                at = place - first_place
                if 0 <= at < len(kept):
                    kept[at] = lengths[at]
        return memoryview(kept)


def passing(reader: Reader, where: SearchFilter) -> Passing:
    """Which places of a view pass."""
    assert where.only is not None
    sieve = _Sieve(reader, where)
    only = where.only
    kept: list[set[int]] = []
    if only.paths:
        kept.append(sieve.in_paths(only.paths))
    kept += [sieve.tagged(tag) for tag in only.tags]
    kept += [sieve.called(title) for title in only.titles]
    if only.since or only.until:
        kept.append(sieve.between(only.since, only.until))
    kept += [sieve.with_phrase(phrase) for phrase in only.phrases]
    dropped: set[int] = sieve.in_paths(only.without_paths) if only.without_paths else set()
    dropped = dropped.union(
        *(sieve.tagged(tag) for tag in only.without_tags),
        *(sieve.called(title) for title in only.without_titles),
        *(sieve.with_words(words) for words in only.without),
    )
    return Passing(set.intersection(*kept) if kept else None, dropped)


# A front matter that is longer than its passage is read on as far as this.
_FIRST_LINES = 120


class _Sieve:
    """Finds the places of one view that have something in common."""

    def __init__(self, reader: Reader, where: SearchFilter) -> None:
        self._reader = reader
        self._where = where
        self._files = {
            key: state for key, state in reader.files().items() if where.admits(key[0], state.scope)
        }

    def in_paths(self, globs: Sequence[str]) -> set[int]:
        patterns = [path_pattern(glob) for glob in globs]
        return self._of_files(key for key in self._files if any(each.fullmatch(key[1]) for each in patterns))

    def tagged(self, tag: str) -> set[int]:
        """All of the notes whose front matter has the tag, and the passages that have it in their text."""
        mark, files = f"#{fold(tag)}", []
        found: set[int] = set()
        for place, chunk in self._with_all_terms(tag):
            text = chunk.text
            if not chunk.ordinal and is_tagged(tag, self._at_the_top(chunk).tags):
                files.append(_key(chunk))
            elif mark in fold(text) and is_tagged(tag, [each for _, each in tags_in(text.split("\n"))]):
                found.add(place)
        return found | self._of_files(files)

    def called(self, title: str) -> set[int]:
        """All of the notes that are called so: by file, title, other name; and what stands under such a top heading."""
        asked = _Title(title)
        files = [key for key in self._files if asked.may_be(key[1]) and asked.is_one_of(name_of(key[1]))]
        found: set[int] = set()
        for place, chunk in self._with_all_terms(title):
            if asked.is_one_of(chunk.context.partition(BREADCRUMB)[0]):
                found.add(place)
            elif not chunk.ordinal:
                names = self._at_the_top(chunk)
                if asked.is_one_of(names.title, *names.aliases):
                    files.append(_key(chunk))
        return found | self._of_files(files)

    def between(self, since: str | None, until: str | None) -> set[int]:
        """The passages of these days. What has no day of its own counts as of the day on which its file was changed."""
        first = dt.date.fromisoformat(since) if since else dt.date(_FIRST_YEAR, 1, 1)
        last = dt.date.fromisoformat(until) if until else dt.date(_LAST_YEAR, 12, 31)
        if last < first:
            return set()
        dated = self._with_any_term(_terms_between(first, last))
        changed = [key for key, state in self._files.items() if first <= _day_of_change(state) <= last]
        if not changed:
            return dated
        years = [f"year:{year}" for year in range(_FIRST_YEAR, _LAST_YEAR + 1)]
        return dated | (self._of_files(changed) - self._with_any_term(years))

    def with_phrase(self, phrase: str) -> set[int]:
        form = plain_form(phrase)
        return {place for place, chunk in self._with_all_terms(phrase) if _stands_in(chunk, form)}

    def with_words(self, words: str) -> set[int]:
        """The passages with a word in any of its forms, or with a phrase."""
        terms = query_terms(words).terms
        if len(terms) == 1 and terms[0].isascii():
            return self._reader.places_with(terms[0], where=self._where)
        return self.with_phrase(words)

    def _at_the_top(self, chunk: Chunk) -> NoteNames:
        """What the front matter says of which a passage is the beginning."""
        lines = chunk.text.split("\n")
        if (
            lines[0].rstrip() in {"---", "+++"} and lines[0].rstrip() not in lines[1:]
        ):  # it goes on after the passage
            for each in self._reader.chunks_between(
                chunk.source, chunk.path, chunk.end_line + 1, _FIRST_LINES
            ):
                lines += each.text.split("\n")
        return note_names(chunk.path, lines[: read_front_matter(lines).line_count])

    def _with_all_terms(self, words: str) -> list[tuple[int, Chunk]]:
        """The passages with all the terms that words are filed under; all there are, where there is no such term."""
        terms = [term for term in dict.fromkeys(document_terms(words)) if not _may_be_part(term)]
        if terms:
            places = set.intersection(*(self._reader.places_with(term, where=self._where) for term in terms))
        else:
            places = self._of_files(self._files)
        ordered = sorted(places)
        return list(zip(ordered, self._reader.chunks_at(ordered, where=self._where), strict=True))

    def _with_any_term(self, terms: Iterable[str]) -> set[int]:
        return self._reader.places_with(*terms, where=self._where)

    def _of_files(self, keys: Iterable[FileKey]) -> set[int]:
        return self._reader.places_of_files(list(dict.fromkeys(keys)))


def _may_be_part(term: str) -> bool:
    """Whether a text may have a term without being filed under it: one letter of a script without spaces."""
    return len(term) == 1 and may_be_spaceless(term)


def _key(chunk: Chunk) -> FileKey:
    return chunk.source, chunk.path


def _day_of_change(state: FileState) -> dt.date:
    seconds = abs(state.mtime_ns) // 1_000_000_000
    year, month, day, *_ = time.localtime(seconds)
    return dt.date(year, month, day)


def _terms_between(first: dt.date, last: dt.date) -> Iterator[str]:
    """The fewest terms that name every day of a span and no other: whole years, then whole months, then days."""
    day = first
    while day <= last:
        end_of_year = dt.date(day.year, 12, 31)
        following = dt.date(day.year + day.month // 12, day.month % 12 + 1, 1)
        end_of_month = following - dt.timedelta(days=1)
        if (day.month, day.day) == (1, 1) and end_of_year <= last:
            yield f"year:{day.year:04d}"
            day = end_of_year
        elif day.day == 1 and end_of_month <= last:
            yield f"month:{day.isoformat()[:7]}"
            day = end_of_month
        else:
            yield f"day:{day.isoformat()}"
        day += dt.timedelta(days=1)
