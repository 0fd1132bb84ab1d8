"""Which snippets are shown, and why: what a question did not leave out, each answer once, and what holds now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial

from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.model import (
    Chunk,
    CitedLines,
    NewerLine,
    Restriction,
    SearchFilter,
    SearchHit,
    Source,
    date,
    timedelta,
)
from plainmind.base.value import field, replace, value
from plainmind.search.pages import (
    SAME_SUBJECT,
    ParsedQuery,
    QuestionWords,
    RankedChunk,
    TermSet,
    is_one_line,
    places_of,
    units_of,
)
from plainmind.search.snippets import Snippet
from plainmind.text import function_words as little
from plainmind.text.terms import (
    document_terms,
    fold,
    letters_of,
    letters_without_spaces,
    may_be_spaceless,
    query_terms,
    weight,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import TypeVar

    from plainmind.index.protocol import IndexReader
    from plainmind.search.pages import Place
    from plainmind.search.snippets import Hides
    from plainmind.text.terms import DayRange
    from plainmind.text.validity import Validity

    T = TypeVar("T")

# --- what a question restricts itself to ---


def understand(
    reader: IndexReader, query: ParsedQuery, where: SearchFilter, today: date
) -> tuple[ParsedQuery, SearchFilter, tuple[str, ...]]:
    """What to look for, where, and how a question was understood that names days, a restriction, or no subject.

    One that asks for no more than what was on a day, who is asking or what is new is answered by a list, where there is
    anything to list.
    """
    told = tuple(map(_day_in_words, query.days))
    if where.only is not None:
        from plainmind.index.filters import in_words

        return query, where, told + in_words(where.only)
    lists = [(days_alone(query), told)] if query.days else without_subject(query.text, today)
    for only, words in lists:
        if only is not None and reader.passing(replace(where, only=only)):
            return replace(query, text="", terms=()), replace(where, only=only), words
    return query, where, told


def _day_in_words(span: DayRange) -> str:
    last = "" if span.last == span.first else f" to {span.last.isoformat()}"
    return f"“{span.text}” as {span.first.isoformat()}{last}"


def without_missing_phrases(
    reader: IndexReader, question: str, where: SearchFilter
) -> tuple[SearchFilter, tuple[str, ...]]:
    """Let go of phrases in a longer question that stand nowhere: people quote what they remember roughly."""
    only = where.only
    if only is None or not only.phrases or reader.passing(where):
        return where, ()
    if question in only.phrases:
        return where, ()
    told = " and ".join(f"“{phrase}”" for phrase in only.phrases)
    left = replace(only, phrases=())
    return (
        replace(where, only=None if left == Restriction() else left),
        (f"nothing has {told} word for word: these are the nearest",),
    )


def listed(reader: IndexReader, where: SearchFilter, most: int) -> list[RankedChunk]:
    """What passes, where nothing else was asked: the newest first; what is known of who asks as its notes have it."""
    ids = reader.passing(where) or []
    found = sorted(
        zip(reader.chunks(ids), ids, strict=True), key=lambda each: (each[0].path, each[0].ordinal)
    )
    if where.only is not None and where.only.paths == _OF_ASKER:
        found.sort(key=lambda each: [not each[0].path.endswith(name) for name in _OF_ASKER])
    else:
        found.sort(key=lambda each: each[0].day or "", reverse=True)
    return [
        RankedChunk(chunk, 0.0, 0.0, 1.0 - at / len(found), id_=id_)
        for at, (chunk, id_) in enumerate(found[:most])
    ]


def allowed_between(  # noqa: PLR0917 (those of a filter, then those of a range of lines)
    reader: IndexReader, only: Restriction, source: Source, path: str, first: int, last: int
) -> Sequence[Chunk]:
    """The lines around a snippet, without those that must not be shown."""
    chunks = reader.chunks_between(source, path, first, last)
    if not (only.without or only.since or only.until):
        return chunks
    from plainmind.index.filters import may_stand_beside

    return [chunk for chunk in chunks if may_stand_beside(chunk, only)]


def with_a_phrase(snippets: Iterable[Snippet], only: Restriction) -> Iterator[Snippet]:
    """The snippets that show one of the phrases that were asked for, or stand below it."""
    from plainmind.index.filters import has_phrase, plain_form

    phrases = [plain_form(phrase) for phrase in only.phrases]
    for snippet in snippets:
        form = plain_form(f"{snippet.best[0].ranked.chunk.context}\n{snippet.text}")
        if any(has_phrase(form, phrase) for phrase in phrases):
            yield snippet


# --- questions about a day and nothing else ---

# A longer time has too many notes to list them.
MOST_DAYS = 31
# What people do are things too: "what did we work on", but "what happened at work".
_DOES = pattern(
    r"\b(?:i|we|you|they)(?: \w+ly| all| just| ever)? (?:ask|change|get|go|learn|plan|work)\b"
    r"|\b(?:been|was|were) (?:asking|changing|planning|learning)\b",
    IGNORECASE,
)
_ABOUT = pattern(
    r"\b(?:about|regarding|concerning|on|at|in|from|for|of|with)"
    r"((?: (?!(?:what|which|who|that|i|we|you|they)\b)\w+){1,3})",
    IGNORECASE,
)


def days_alone(query: ParsedQuery) -> Restriction | None:
    """The days of a question that asks for nothing but what was on them; None for any other."""
    first, last = min(span.first for span in query.days), max(span.last for span in query.days)
    rest = query.text
    for span in query.days:
        rest = rest.replace(span.text, " ")
    if (last - first).days >= MOST_DAYS or not _says_nothing(rest):
        return None
    return Restriction(since=first.isoformat(), until=last.isoformat())


def _without_words(text: str, words: str) -> str:
    """A text of a script without spaces, without these words; longer ones are taken out first."""
    for word in sorted(words.split(), key=len, reverse=True):
        text = text.replace(word, " ")
    return text


def _says_nothing(rest: str) -> bool:
    from plainmind.text.function_words import (
        NO_SUBJECT,
        OF_ANY_DAY,
        OF_ANY_DAY_EAST_ASIAN,
        OF_ANY_DAY_ENGLISH,
    )

    if may_be_spaceless(rest):
        rest = _without_words(rest, OF_ANY_DAY_EAST_ASIAN)
        if may_be_spaceless(rest) and letters_without_spaces(rest):
            return False
    words = _LETTERS.findall(rest)
    folded = [*map(fold, words)]
    if len(words) > 1 and any(set(told.split()).issuperset(folded) for told in OF_ANY_DAY):
        return True
    said = " ".join(words)
    if any(_tells(follows.split(), NO_SUBJECT) for follows in _ABOUT.findall(said)):
        return False
    return not _tells(_DOES.sub(" ", said).split(), OF_ANY_DAY_ENGLISH)


def _tells(words: Iterable[str], but_for: AbstractSet[str]) -> bool:
    """Whether some words of English name anything besides these."""
    found = query_terms(" ".join(word for word in words if fold(word) not in but_for))
    return bool(found.terms) and not found.only_stop_words


# --- questions without a subject: who is asking, and what is new ---

# What a memory knows of its person stands there; the last are what people call such a note.
_OF_ASKER = ("USER.md", "MEMORY.md", "about me.md", "about-me.md", "about_me.md", "me.md")
_ASKER = pattern(
    r"\b(?:about (?:me|myself|my life|the user)|am i|(?:know|remember|describe) me|my profile"
    r"|(?:uber|kennst du|an) mich|von mir|bin ich|(?:de|sobre) mi|quien soy|(?:de|sur) moi|suis je|di me|chi sono"
    r"|(?:de|sobre) mim|sou eu|over mij|ben ik)\b"
)
_ASKER_EAST_ASIAN = pattern(
    r"(?:关于|關於|了解|瞭解|认识|認識|记得|記得|知道)我|我是[谁誰]|(?:私|僕|俺|自分)(?:について|のこと|は誰)"
    r"|(?:나|저|내)에 ?대해서?|(?:나|내|저)(?:는|가) ?누구|나를|저를"
)
_NEW = pattern(
    r"\b(?:new|news|newest|latest|lately|recent(?:ly)?|neues|neuigkeiten|neulich|kurzlich|zuletzt|neuest\w*"
    r"|nuevo|novedades|ultimamente|recientemente|neuf|nouveau|nouvelles|recemment|dernierement"
    r"|nuovo|novita|recentemente|novidades|novo|nieuws|onlangs)\b"
    r"|最近|最新|新消息|新鲜事|新しい|ニュース|새로운|새 소식|소식|최근|요즘"
)
# What is new: of these last days, or if nothing is, of these.
_NEW_DAYS = (14, 92, 366)


def without_subject(text: str, today: date) -> list[tuple[Restriction, tuple[str, ...]]]:
    """The lists that answer a question about nothing but who asks, or what is new: the first that has anything."""
    if is_about_asker(text):
        return [(Restriction(paths=_OF_ASKER), (f"“{text}” as what the notes about you say",))]
    if not is_about_news(text):
        return []
    firsts = [(today - timedelta(days=days - 1)).isoformat() for days in _NEW_DAYS]
    until = today.isoformat()
    return [
        (Restriction(since=since, until=until), (f"“{text}” as the newest, since {since}",))
        for since in firsts
    ]


def is_about_asker(text: str) -> bool:
    """Whether a question asks for all that is known of who asks, and for nothing else."""
    from plainmind.text.function_words import OF_KNOWING, OF_KNOWING_EAST_ASIAN

    if may_be_spaceless(text):
        rest, found = _ASKER_EAST_ASIAN.subn(" ", text)
        return bool(found) and not letters_without_spaces(_without_words(rest, OF_KNOWING_EAST_ASIAN))
    words = _LETTERS.findall(fold(text))
    rest, found = _ASKER.subn(" ", " ".join(words))
    return bool(found) and set(OF_KNOWING.split()).issuperset(rest.split())


def is_about_news(text: str) -> bool:
    """Whether a question asks for what is new, and for nothing else."""
    folded = fold(text)
    if not may_be_spaceless(text) and " " not in folded:  # a word alone is looked for: it may be a name
        return False
    rest, found = _NEW.subn(" ", folded)
    return bool(found) and _says_nothing(rest)


# --- each answer once ---

# Of the smaller of two passages, by letters: so much has to stand in the other one.
MOSTLY_THE_SAME = 0.8
# In characters of English: a line of this length says the same wherever it stands.
LONG_LINE = 60
_TIME = pattern(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|(?<!\d)\d\d?:\d\d(?::\d\d)?(?!\d)")
_LETTERS = pattern(r"[^\W\d_]+")
_NUMBER = pattern(r"\d+(?:[.,:]\d+)*")
_HEADING = pattern(r" {0,3}#{1,6}[ \t]")


def each_once(snippets: Iterable[Snippet], most: int) -> list[Snippet]:
    """The first snippets that say something else; one that repeats another is among the other places of that.

    Of several places the most durable one is shown, a note without a day, or else the newest.
    """
    kept: list[Snippet] = []
    by_letters: dict[str, list[int]] = {}  # of best lines: where they are among the kept
    has_repeats = False
    for snippet in snippets:
        alike = by_letters.setdefault(snippet.letters, [])
        same = next((at for at in alike if is_repeated(kept[at], snippet)), None)
        if same is not None:
            kept[same] = _joined(kept[same], snippet)
            has_repeats = True
        elif len(kept) == most:
            break
        else:
            alike.append(len(kept))
            kept.append(snippet)
        if len(kept) == most and not has_repeats:
            break
    return kept


def _best_line(snippet: Snippet) -> str:
    read, unit = snippet.best
    return read.page.units[unit]


def is_repeated(one: Snippet, other: Snippet) -> bool:
    """Whether two snippets with the same letters in their best lines say the same: but for marks, days and times."""
    line = _said(_best_line(one))
    if line != _said(_best_line(other)) or not line[0]:
        return False
    if weight(_best_line(one)) >= LONG_LINE and not _HEADING.match(_best_line(one)):
        return True
    first, second = _contents(one), _contents(other)
    shared = sum(size for said, size in first.items() if said in second)
    least = min(sum(first.values()), sum(second.values()))
    return shared > 0 and shared >= MOSTLY_THE_SAME * least


# Of those that may repeat each other, each is compared with every other one.
@lru_cache(maxsize=256)
def _said(line: str) -> tuple[str, tuple[str, ...]]:
    """The letters of a line, and its numbers that are no days or times."""
    return letters_of(line), tuple(_NUMBER.findall(_TIME.sub(" ", line)))


def _contents(snippet: Snippet) -> dict[tuple[str, tuple[str, ...]], int]:
    """The lines of the passage that a snippet grew from, without its headings, and how many letters each has."""
    lines = [line for line in snippet.best[0].page.units if not _HEADING.match(line)]
    return {said: len(said[0]) for said in map(_said, lines) if said[0]}


def _joined(kept: Snippet, repeated: Snippet) -> Snippet:
    """One snippet for two that say the same."""
    shown, other = (repeated, kept) if _durability(repeated) > _durability(kept) else (kept, repeated)
    shown.also = sorted([*kept.also, other], key=_durability, reverse=True)
    shown.score = kept.score
    return shown


def _durability(snippet: Snippet) -> tuple[bool, bool, str]:
    chunk = snippet.best[0].ranked.chunk
    return chunk.source == "memory", chunk.day is None, chunk.day or ""


# --- what no longer holds, and what a person thought of it ---

# What every form in which a line says until when it holds has in it.
FORMS = ("until 2", "expires:")
_FIELD = "expir"  # the term of the word that a front matter, or a comment, has
_ALL_LINES = 1_000_000_000

# What is added to the log-odds of a hit. Verdicts add up, and never to more than this.
OF_VERDICTS = {"useful": 0.5, "wrong": -0.7, "outdated": -1.0, "never-again": -2.0}
MOST_OF_VERDICTS, LEAST_OF_VERDICTS = 1.0, -2.0
OF_SUPERSEDED, OF_EXPIRED = -1.5, -2.0
_STEPS = 5  # from one newer line to the next
_LEAST_IN_COMMON = 2


@value
class Unwanted:
    """What is not recalled for an agent beside what has expired."""

    marks: Mapping[str, frozenset[str]] = field(
        default_factory=dict
    )  # lines of which a person said so, by path
    paths: frozenset[str] = frozenset()  # whole files: the conversation in which it is asked


def hiding(
    reader: IndexReader, where: SearchFilter, unwanted: Unwanted, today: date, question: str
) -> Callable[[Source, str], Hides | None]:
    """What tells of a file which of its lines must not be shown. Nearly no file has any, which is seen at once."""
    asked = _plain(question)
    is_suspect = bool(reader.term_statistics((_FIELD,), where=where).chunks_with.get(_FIELD))
    day = today.isoformat()

    def of_file(source: Source, path: str) -> Hides | None:
        if source != "memory":
            return partial(_echoes, asked)
        marks = unwanted.marks.get(path, frozenset())
        chunks = partial(reader.chunks_between, source, path, 1, _ALL_LINES)
        return partial(_hidden_lines, chunks, marks, day, is_suspect=is_suspect)

    return of_file


def _hidden_lines(
    chunks: Callable[[], Sequence[Chunk]],
    marks: frozenset[str],
    today: str,
    _places: Sequence[Place],
    texts: Iterable[str],
    *,
    is_suspect: bool,
) -> AbstractSet[int]:
    if not is_suspect and not marks and not any(mark in text for text in texts for mark in FORMS):
        return frozenset()
    from plainmind.text.note_format import mark_of
    from plainmind.text.validity import validities

    lines = _lines_in(chunks())
    expired = {number for number, found in validities(lines).items() if found.is_expired(today)}
    never = {number for number, line in enumerate(lines, 1) if marks and mark_of(line) in marks}
    return expired | never


def _echoes(asked: str, places: Sequence[Place], texts: Sequence[str]) -> AbstractSet[int]:
    """Messages that are the question itself: who asked it before has not answered it, and nothing is nearer to it."""
    said: dict[int, str] = {}
    for (line, _), text in zip(
        places, texts, strict=False
    ):  # behind the texts of the lines stand those around them
        said[line] = said.get(line, "") + text
    return {line for line, text in said.items() if asked in {_plain(text), _plain(text.partition(": ")[2])}}


def _plain(text: str) -> str:
    """A text without what may differ when it is said again."""
    return " ".join(text.casefold().split()).rstrip(" ?!.。？！")


def _lines_in(chunks: Iterable[Chunk]) -> list[str]:
    """The lines of a file as far as its chunks have them; the others are blank."""
    pieces: dict[int, dict[int, str]] = {}
    for chunk in chunks:
        units = units_of(chunk.text, one_line=is_one_line(chunk))
        for (line, piece), text in zip(places_of(chunk, units), units, strict=True):
            pieces.setdefault(line, {})[piece] = text
    last = max(pieces, default=0)
    return ["".join(text for _, text in sorted(pieces.get(n, {}).items())) for n in range(1, last + 1)]


def heed(
    hits: Sequence[SearchHit],
    *,
    today: str,
    lines_of: Callable[[str], Sequence[str] | None],
    day_of_line: Callable[[str, str], str | None] = lambda _path, _line: None,
    verdicts: Mapping[tuple[str, str], Sequence[str]],
    with_expired: bool,
) -> tuple[SearchHit, ...]:
    """Put what was superseded, has expired or was judged in its place, each with the reason.

    `lines_of` gives the lines of a file as they are now, `day_of_line` the day since which a path has a line. Without
    `with_expired` what is over is left out; what holds otherwise stays as it was found.
    """
    heeded: list[SearchHit] = []
    for hit in _as_they_were_corrected(hits, lines_of, day_of_line):
        lines = lines_of(hit.path) if hit.source == "memory" and _is_concerned(hit, verdicts) else None
        seen = hit if lines is None else _heeded(hit, lines, today, lines_of, verdicts)
        is_over = seen.until is not None and seen.newer is None and seen.until < today
        is_never = bool(lines) and "never-again" in verdicts.get(_name_of(hit, lines or ()), ())
        if with_expired or not (is_over or is_never):
            heeded.append(seen)
    heeded.sort(key=lambda hit: -hit.score)
    for hit in [hit for hit in heeded if hit.newer is not None]:
        _put_before(heeded, hit)
    return tuple(heeded)


def _as_they_were_corrected(
    hits: Sequence[SearchHit],
    lines_of: Callable[[str], Sequence[str] | None],
    day_of_line: Callable[[str, str], str | None],
) -> Sequence[SearchHit]:
    """Let a line that was kept or corrected since stand before the log that was taken for newer than it."""
    at = next((place for place, hit in enumerate(hits) if hit.older), None)
    if at is None:
        return hits

    def day_at(path: str, number: int) -> str | None:
        lines = lines_of(path) or ()
        return day_of_line(path, lines[number - 1]) if 1 <= number <= len(lines) else None

    log, older = hits[at], hits[at].older[0]
    best = log.best_line or log.start_line
    day, since = day_at(log.path, best), day_at(older.path, older.start_line)
    if since is None or day is None or since < day:
        return hits
    ordered = [replace(hit, older=()) if hit is log else hit for hit in hits]
    for place, hit in enumerate(hits):
        if place > at and hit.path == older.path and hit.start_line <= older.start_line <= hit.end_line:
            newer_than = (CitedLines(log.path, best, best),) if since > day else ()
            ordered.insert(at, replace(ordered.pop(place), score=log.score, older=newer_than))
            ordered[at + 1] = replace(ordered[at + 1], score=hit.score)
            break
    return ordered


def _is_concerned(hit: SearchHit, verdicts: Mapping[tuple[str, str], object]) -> bool:
    # The file as a whole may say it in its front matter: then its best line does not.
    return any(mark in hit.snippet or mark in hit.headings for mark in FORMS) or any(
        path == hit.path for path, _ in verdicts
    )


def _name_of(hit: SearchHit, lines: Sequence[str]) -> tuple[str, str]:
    from plainmind.text.note_format import mark_of

    number = hit.best_line or hit.start_line
    return hit.path, mark_of(lines[number - 1]) if 1 <= number <= len(lines) else ""


def _heeded(
    hit: SearchHit,
    lines: Sequence[str],
    today: str,
    lines_of: Callable[[str], Sequence[str] | None],
    verdicts: Mapping[tuple[str, str], Sequence[str]],
) -> SearchHit:
    from plainmind.text.validity import validities

    best = hit.best_line or hit.start_line
    found = validities(lines).get(best)
    said = verdicts.get(_name_of(hit, lines), ())
    change = sum(OF_VERDICTS.get(verdict, 0.0) for verdict in said)
    change = max(LEAST_OF_VERDICTS, min(MOST_OF_VERDICTS, change))
    why: dict[str, object] = (
        {"verdicts": {each: said.count(each) for each in dict.fromkeys(said)}} if said else {}
    )
    newer = None
    if found is not None:
        newer = _newer(lines[best - 1], found, lines_of) if found.is_superseded else None
        if newer is not None and newer.path == hit.path and hit.start_line <= newer.line <= hit.end_line:
            # Both are shown, and the newer one says it.
            return replace(hit, best_line=newer.line)
        change += OF_SUPERSEDED if newer is not None else OF_EXPIRED if found.is_expired(today) else 0.0
        why["until"] = found.until
    if newer is not None:
        why["newer"] = str(newer)
    score = _shifted(hit.score, change)
    explanation = hit.explanation
    if explanation is not None and why:
        explanation = {**explanation, "score": round(score, 4), "change": round(change, 2), **why}
    until = found.until if found is not None else None
    return replace(hit, score=score, explanation=explanation, until=until, newer=newer)


def _newer(old: str, found: Validity, lines_of: Callable[[str], Sequence[str] | None]) -> NewerLine:
    """The line that holds now: the cited one, or the one that it has become where lines were put in before it."""
    from plainmind.text.note_format import words_of
    from plainmind.text.terms import document_terms
    from plainmind.text.validity import validity_of, without_validity

    assert found.path is not None
    words = set(document_terms(without_validity(old)))
    place = NewerLine(found.path, found.line)
    for _ in range(_STEPS):
        lines = lines_of(place.path) or ()
        cited = lines[place.line - 1] if 1 <= place.line <= len(lines) else ""
        if not cited.strip() or words.isdisjoint(document_terms(cited)):
            others = [
                (len(words & set(document_terms(line))), number)
                for number, line in enumerate(lines, 1)
                if line != old and words and not line.startswith("#")
            ]
            common, number = max(others, default=(0, 0), key=lambda each: (each[0], -each[1]))
            if common < _LEAST_IN_COMMON:
                return NewerLine(place.path, place.line)
            place, cited = NewerLine(place.path, number), lines[number - 1]
        following = validity_of(cited)
        if following is None or following.path is None:
            return NewerLine(place.path, place.line, words_of(without_validity(cited)))
        place = NewerLine(following.path, following.line)
    return place


def _shifted(score: float, change: float) -> float:
    """A probability with its log-odds changed; one that is certain stays so."""
    if not change or not 0.0 < score < 1.0:
        return score
    return 1.0 / (1.0 + math.exp(-(math.log(score / (1.0 - score)) + change)))


def _put_before(hits: list[SearchHit], old: SearchHit) -> None:
    """Let the hit that has the newer line come before the superseded one: it is no less an answer."""
    assert old.newer is not None
    newer = old.newer
    at = hits.index(old)
    for position in range(at + 1, len(hits)):
        hit = hits[position]
        if hit.path == newer.path and hit.start_line <= newer.line <= hit.end_line:
            del hits[position]
            why = hit.explanation
            if why is not None:
                why = {**why, "insteadOf": str(CitedLines(old.path, old.start_line, old.end_line))}
            hits.insert(at, replace(hit, score=max(hit.score, old.score), explanation=why))
            return


# --- now is not then ---

# A line of months ago says less about now than a note that was kept.
MONTHS = timedelta(days=60)


@lru_cache(maxsize=1)
def _told_anew() -> Sequence[tuple[frozenset[str], re.Pattern[str]]]:
    """The terms that ask for something, and what tells it anew."""
    return [
        (frozenset(query_terms(words).terms), pattern(told, IGNORECASE)) for words, told in little.TOLD_ANEW
    ]


def tells_anew(snippet: Snippet, asked: QuestionWords, said: TermSet, question: str) -> bool:
    """Whether the best line of a snippet says what holds now of what another line says of the question."""
    return _tells_anew(_best_line(snippet), snippet.said, asked, said, question)


def _tells_anew(line: str, own: TermSet, asked: QuestionWords, said: TermSet, question: str) -> bool:
    shared = own & said
    share = asked.shares[shared]
    is_meant = lru_cache(None)(lambda word: bool(asked.terms_among(frozenset(document_terms(word))) & shared))
    is_english = little.IN_ENGLISH.match(question) is not None
    if _HEADING.match(line) or (is_english and little.is_of_something_else(line, is_meant)):
        return False
    told = next((told for asks, told in little.TOLD_BY if asks.match(question)), None)
    is_told = (told or little.FROM_NOW).search(line) or any(map(is_meant, little.A_NEW.findall(line)))
    if is_told and share >= SAME_SUBJECT * asked.shares[said]:
        is_by_the_way = (
            told and is_english and little.is_of_something_else(line, is_meant, or_by_the_way=True)
        )
        if not is_by_the_way:
            return True
    for terms, told in _told_anew():
        asks = asked.terms_among(terms) & said
        if asks and told.search(line) and share >= SAME_SUBJECT * asked.shares[said & ~asks] > 0:
            return True
    return False


def newer_line(snippet: Snippet, asked: QuestionWords, question: str, today: date) -> int | None:
    """The line of a snippet that says what holds now of what its best one says, if that is another one."""
    (read, unit), best = snippet.best, _best_line(snippet)
    lines = snippet.text.split("\n")
    has_every_line = len(lines) == snippet.end_line - snippet.start_line + 1
    is_talk = read.ranked.chunk.source == "sessions"
    # A line that was found by its meaning alone has no words that another one could tell anew.
    if is_talk or not snippet.said or little.FROM_NOW.search(best) or not has_every_line:
        return None
    day, own_place, is_over = (
        _day_of(best, question, today),
        read.places[unit][0] - snippet.start_line,
        little.OVER.search(best),
    )
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        own, since = asked.terms_among(frozenset(document_terms(line))), _day_of(line, question, today)
        is_now = is_over and little.HOLDS.search(line) and not little.OVER.search(line)
        holds = is_now and own & snippet.said == snippet.said
        is_anew = holds or _tells_anew(line, own, asked, snippet.said, question)
        if line == best or not is_anew or _is_to_come(line, question, today):
            continue
        # What stands above a line without a day, and has one, was written before it, unless that says that it is over.
        is_before = not holds and at < own_place and day is None and since is not None
        if not is_before and (day is None or since is None or day <= since):
            return snippet.start_line + at
    return None


def _is_to_come(line: str, question: str, today: date) -> bool:
    """Whether a line tells of days to come and of no other; of one that is asked for that is the answer."""
    days = [] if little.ASKS_WHEN.match(question) else _days_in(line, today)
    return bool(days) and min(days) > today


def put_newer_first(
    weighed: list[tuple[float, bool, Snippet]],
    chances: list[float],
    at: int,
    asked: QuestionWords,
    *,
    query: ParsedQuery,
    today: date,
) -> tuple[CitedLines, ...]:
    """Put the best and one that speaks of the same together, the newer first; where the older of them stands."""
    first, other = weighed[0][2], weighed[at][2]
    newer = newer_of(first, other, today=today, asks_for_recent=query.asks_for_recent, question=query.text)
    if newer is None and query.asks_how_it_is:
        is_anew = partial(_is_told_anew, first, other, asked, query.text)
        newer = newer_of(first, other, today=today, asks_for_recent=True, holds=is_anew, question=query.text)
        if newer is None or not is_anew(newer) or _is_to_come(_best_line(newer), query.text, today):
            return ()
    if newer is None:
        return ()
    weighed.insert(0 if newer is other else 1, weighed.pop(at))
    if newer is other:  # it answers what the older one would have answered
        chances.insert(0, chances[0])
        del chances[at + 1 : at + 2]
    older, unit = (first if newer is other else other).best
    texts = older.page.units  # a heading says nothing: what stands below it does
    unit = next(
        (at for at in range(unit, len(texts)) if texts[at].strip() and not _HEADING.match(texts[at])), unit
    )
    line = older.places[unit][0]
    return (CitedLines(older.ranked.chunk.path, line, line),)


def _is_told_anew(
    first: Snippet, other: Snippet, asked: QuestionWords, question: str, newer: Snippet
) -> bool:
    return tells_anew(newer, asked, (first if newer is other else other).said, question)


def holds_from_now(snippet: Snippet) -> bool:
    """Whether its best line says that it holds from its day on."""
    line = _best_line(snippet)
    return little.FROM_NOW.search(line) is not None and not _HEADING.match(line)


def newer_of(
    first: Snippet,
    other: Snippet,
    *,
    today: date,
    asks_for_recent: bool,
    holds: Callable[[Snippet], bool] = holds_from_now,
    question: str = "",
) -> Snippet | None:
    """The one of two snippets about the same that holds now; None where neither is known to.

    What was kept without a day gives way to a newer line that tells a change, and to any newer one if the question is
    about now. A log of months ago gives way to what was kept, unless it `holds`.
    """
    days = [(_newest_day(one, question, today), one) for one in (first, other)]
    (older_day, _), (newer_day, newer) = sorted(days, key=lambda each: each[0] or "")
    if older_day == newer_day or newer_day is None:
        return None
    if any(_HEADING.match(_best_line(one)) for one in (first, other)):
        # A name alone says nothing of when; below it may stand what a newer line has changed.
        return newer if asks_for_recent and holds(newer) else None
    if asks_for_recent:
        is_long_ago = older_day is None and today - date.fromisoformat(newer_day) > MONTHS
        if is_long_ago and not _tells_change(newer) and not holds(newer):
            return first if newer is other else other
        return newer
    return newer if _is_kept(first, other) and _tells_change(newer) else None


def _is_kept(*snippets: Snippet) -> bool:
    """Whether one of them stands in a note without a day of its own."""
    return any(snippet.best[0].ranked.chunk.day is None for snippet in snippets)


def _tells_change(snippet: Snippet) -> bool:
    return little.CHANGE.search(_best_line(snippet)) is not None


def _newest_day(snippet: Snippet, question: str, today: date) -> str | None:
    """The day of a note, or the last one that the line names, if it has passed."""
    day = snippet.best[0].ranked.chunk.day
    return _day_of(_best_line(snippet), question, today) if day is None else day


def _day_of(line: str, question: str, today: date) -> str | None:
    """The last day that a line names; where a time is asked for, others than at its head are what it tells."""
    if little.ASKS_WHEN.match(question):
        line = line.lstrip(" -*+>")[: len("2026-11-20")]
    return max([day.isoformat() for day in _days_in(line, today) if day <= today], default=None)


def _days_in(line: str, today: date) -> list[date]:
    from plainmind.text.terms import mentioned_days

    return [span.first for span in mentioned_days(line, today) if any(map(str.isdecimal, span.text))]


# --- results that are like each other ---


def each_adding_most(scored: Sequence[tuple[T, float, frozenset[str]]], trade_off: float) -> list[T]:
    """Order items, given as (item, score, words), so that each one adds the most."""
    left = list(scored)
    closest = [0.0] * len(left)  # how much each has in common with the nearest of the chosen
    chosen: list[T] = []
    while left:
        worths = [
            trade_off * score - (1.0 - trade_off) * near
            for (_, score, _), near in zip(left, closest, strict=True)
        ]
        position = worths.index(max(worths))
        item, _, words = left.pop(position)
        del closest[position]
        chosen.append(item)
        closest = [
            max(near, jaccard(words, other)) for (_, _, other), near in zip(left, closest, strict=True)
        ]
    return chosen


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two texts have in common."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
