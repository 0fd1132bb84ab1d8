"""Which of the snippets are shown: those that a question did not leave out, and each answer once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plainmind.base.lazy import pattern
from plainmind.base.model import Chunk, Restriction, SearchFilter, Source
from plainmind.base.value import replace
from plainmind.search.pages import ParsedQuery, RankedChunk
from plainmind.search.snippets import Snippet
from plainmind.text.terms import letters_without_spaces, may_be_spaceless, query_terms, stem, weight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.protocol import IndexReader

# --- what a question restricts itself to ---


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


def newest_first(reader: IndexReader, where: SearchFilter, most: int) -> list[RankedChunk]:
    """What passes, where nothing else was asked: the newest first, and each note from its beginning."""
    ids = reader.passing(where) or []
    found = sorted(
        zip(reader.chunks(ids), ids, strict=True), key=lambda each: (each[0].path, each[0].ordinal)
    )
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
# What people say of a day as a whole, besides words that tell nothing anyway.
_OF_ANY_DAY = """
    anything day diary did do doing done entries entry event everything going happen happened happening journal list log
    logs new news note notes recorded show something stuff tell things today up what write written wrote
    geschah geschehen gemacht getan los notiz notizen passiert tagebuch was
    diario hecho hemos hice hicimos hubo notas ocurrio ocurrido paso que
    avons eu fait journal passe quoi
    """
_OF_ANY_DAY_EAST_ASIAN = """
    发生 發生 什么 什麼 事情 事 做 干 记 記 录 錄 笔记 日记 有 了 的 吗 呢 过 我 们 們 都 啥 写 寫 情况
    こと 何 なに なん が を は に の か あった ありました した しました だった どう 出来事 メモ 日記 教えて 書いた
    무슨 일이 일 있었지 있었어 있었나 있었나요 했지 했어 했나 뭐 뭘 알려줘 알려 줘 에 은 는 이 가 의 메모 일기 기록
    """


def days_alone(query: ParsedQuery) -> Restriction | None:
    """The days of a question that asks for nothing but what was on them; None for any other."""
    first, last = min(span.first for span in query.days), max(span.last for span in query.days)
    rest = query.text
    for span in query.days:
        rest = rest.replace(span.text, " ")
    if (last - first).days >= MOST_DAYS or not _says_nothing(rest):
        return None
    return Restriction(since=first.isoformat(), until=last.isoformat())


def _says_nothing(rest: str) -> bool:
    if may_be_spaceless(rest):
        for words in sorted(_OF_ANY_DAY_EAST_ASIAN.split(), key=len, reverse=True):
            rest = rest.replace(words, " ")
        if may_be_spaceless(rest) and letters_without_spaces(rest):
            return False
    found = query_terms(rest)
    told = {stem(word) for word in _OF_ANY_DAY.split()}
    return found.only_stop_words or told.issuperset(found.terms)


# --- each answer once ---

# Of the smaller of two passages, by letters: so much has to stand in the other one.
MOSTLY_THE_SAME = 0.8
# In characters of English: a line of this length says the same wherever it stands.
LONG_LINE = 60
_TIME = pattern(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|(?<!\d)\d\d?:\d\d(?::\d\d)?(?!\d)")
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


def _letters(line: str) -> str:
    return "".join(filter(str.isalpha, line)).casefold()


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


def _said(line: str) -> tuple[str, tuple[str, ...]]:
    """The letters of a line, and its numbers that are no days or times."""
    return _letters(line), tuple(_NUMBER.findall(_TIME.sub(" ", line)))


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
