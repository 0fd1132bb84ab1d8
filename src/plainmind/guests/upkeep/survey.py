"""What is looked at: the notes line by line, each with its headings, its day, and what it says without its marks."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, split_lines
from plainmind.base.value import value
from plainmind.notes.workspace import Workspace, decode, noted_on
from plainmind.text.front_matter import read_front_matter
from plainmind.text.function_words import of_another_language
from plainmind.text.markdown import Block, read_blocks
from plainmind.text.note_format import DURABLE_SECTION, ID_MARK, without_note_ids
from plainmind.text.sentences import is_for_the_assistant, words_of
from plainmind.text.terms import document_terms, fold
from plainmind.text.validity import Validity, indent_of, is_day, validities, without_validity

# Files that are a day's, a week's or a month's: they are read, and never edited.
_LOG = pattern(
    r"(?:^|/)(?P<of>(?P<day>\d{4}-\d{2}-\d{2})|\d{4}-(?:w\d{2}|q\d|\d{2})(?!\d))[^/]*\.md$", re.IGNORECASE
)
_LEAD = pattern(
    r"[ \t]*(?:(?:[-*+]|(?P<step>\d{1,9}[.)]))[ \t]+)?(?:(?P<box>\[[ xX]\])[ \t]+)?(?:\d\d:\d\d[ \t]+)?"
)
_ISO = pattern(r"\d{4}-\d{2}-\d{2}")
_SAID_ON = pattern(
    r"^[(\[]?(?P<first>\d{4}-\d{2}-\d{2})[)\]]?\s*[:–—-]?\s"
    r"|(?:\bas of|\bsince|\bstand|\bseit|\bab(?: dem)?|自从?|截至|从)\s?(?P<since>\d{4}-\d{2}-\d{2})"
    r"|[(（\[](?:(?:noted|updated|checked|notiert|更新于|记于)[ :：]?\s?)?(?P<last>\d{4}-\d{2}-\d{2})[)）\]]\s*$",
    re.IGNORECASE,
)
_FROM = pattern(r"\s*\(from [^()\n]+\.md#L\d+\)\s*$")  # where a line was copied from, as `tidy` writes it
_RECORD = pattern(r"[\[(*`]*(?:\d{4}-\d{2}(?:-\d{2})?|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}:\d{2}|\d{4})\b|\d{4}年")
_LAST_DATE = pattern(r"\s*[(（]\d{4}-\d{2}-\d{2}[)）]\s*$")  # when it was said is not what was said
_NEUTRAL = frozenset(
    {
        *("", DURABLE_SECTION.casefold(), "memory", "notes", "misc", "other"),
        *("gemerkt", "notizen", "sonstiges", "gedächtnis", "记忆", "记住的事", "笔记", "其他"),
    }
)
_DAY_TITLE = pattern(
    r"(?i)\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b|\b(?:mon|diens|donners|frei"
    r"|sams|sonn)tag\b|\bmittwoch\b"
    r"|(?:周|星期)[一二三四五六日天]|[年月日]"
)
_DIGITS = pattern(r"\d+")
_FRAME_WORDS = 4
_RECALLED = "recalled-memory"
_NO_NOTE = ("|", ">", "<!--", "```", "~~~", "![", "<", "---", "***", "___", "$ ", "http://", "https://")
_LEADS_ON = (":", "：", ":**", "：**")  # what it is about follows
# How a step of a list of things to do begins. English, German, Chinese.
_TO_DO = pattern(
    r"(?:then |first |finally |again |dann |zuerst |wieder )?(?:add|apply|backup|bake|boil|build|call|check"
    r"|clean|click|close"
    r"|commit|copy|create|delete|deploy|do|drain|fill|fold|get|go|install|knead|let|make|mix|move|open|pour|press"
    r"|pull|push|put"
    r"|reboot|remove|repeat|reset|restart|rinse|run|save|send|set|start|stir|stop|switch|take|test|turn"
    r"|update|upload|verify"
    r"|wait|wash|write|prüfen|testen|starten|warten|öffnen|schließen|spülen|rühren|kneten|speichern)\b"
    r"|(?:再|先|然后)?(?:检查|测试|重启|打开|关闭|等待|运行|提交|保存|搅拌)",
    re.IGNORECASE,
)
_DRAWING = ".excalidraw.md"  # its words are copies of what stands in a picture
_DATE_FIELDS = ("updated", "modified", "date", "created")
MOST_CHARS = 600  # a longer line is a document
_MOST_LINES_OF_A_TERM = 40


@value
class Line:
    """One thing that a note says, on one line."""

    path: str
    number: int  # from 1
    text: str  # as it stands in the file
    words: str  # without list mark, box, time, id and validity
    headings: tuple[str, ...]  # and the list items that it belongs to
    day: str | None  # when it was said, as far as the file tells
    is_dated: bool  # the line itself tells when
    scope: str
    is_log: bool
    is_record: bool  # it begins with a day or a time, or stands below one: what happened then stays true
    is_item: bool
    is_step: bool  # of a numbered list: its place among the others counts
    is_task: bool
    has_more: bool  # lines that belong to it stand beneath
    is_settled: bool  # superseded, or with an end of its own

    @property
    def heading(self) -> str:
        """The nearest heading above."""
        return self.headings[-1] if self.headings else ""

    def __str__(self) -> str:
        return f"{self.path}#L{self.number}"


@value
class Page:
    """A file as it was read."""

    path: str
    scope: str
    is_log: bool
    changed_on: str  # the day of its time stamp
    raw: tuple[str, ...]
    lines: tuple[Line, ...]


class Survey:
    """All pages of a workspace at one moment."""

    def __init__(self, pages: Sequence[Page], today: str) -> None:
        self.pages = tuple(pages)
        self.today = today
        self._terms: dict[str, frozenset[str]] = {}

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All that is said, in the order of the files."""
        return tuple(line for page in self.pages for line in page.lines)

    @cached_property
    def durable(self) -> tuple[Line, ...]:
        """What is said in files that may be edited."""
        return tuple(line for line in self.lines if not line.is_log)

    @cached_property
    def by_path(self) -> dict[str, Page]:
        """The pages by their names."""
        return {page.path: page for page in self.pages}

    @cached_property
    def frames(self) -> dict[str, list[Line]]:
        """The lines by how they begin."""
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault(frame_of(line.words), []).append(line)
        return found

    def terms(self, words: str) -> frozenset[str]:
        """What is said, without order and form of the words, and without those that tell nothing."""
        found = self._terms.get(words)
        if found is None:
            terms = frozenset(document_terms(without_day(words)))
            idle = of_another_language({fold(word) for word in words_of(words)}, than=0)
            found = self._terms[words] = (terms - idle) or terms
        return found

    @cached_property
    def near(self) -> tuple[tuple[Line, Line], ...]:
        """Lines that share half of their terms, looked for once for all who compare."""
        open_lines = [line for line in self.lines if not line.is_task and not line.is_settled]
        return tuple(self.pairs(open_lines, least=0.5))

    def pairs(self, lines: Sequence[Line], *, least: float) -> Iterator[tuple[Line, Line]]:
        """Lines that share at least so much of the terms of the one that has fewer; each pair once, the earlier first.

        What stands in many lines brings no two together.
        """
        places: dict[str, list[int]] = {}
        terms = [self.terms(line.words) for line in lines]
        for at, own in enumerate(terms):
            for term in own:
                places.setdefault(term, []).append(at)
        for at, own in enumerate(terms):
            shared: dict[int, int] = {}
            for term in own:
                standing = places[term]
                if len(standing) <= _MOST_LINES_OF_A_TERM:
                    for other in standing:
                        if other >= at:
                            break
                        shared[other] = shared.get(other, 0) + 1
            for other in shared:
                if len(own & terms[other]) >= least * min(len(own), len(terms[other])):
                    yield lines[other], lines[at]


def _by_its_id(_path: str, line: str) -> str | None:
    return noted_on(line)


def survey(
    workspace: Workspace, today: dt.date, day_of_line: Callable[[str, str], str | None] = _by_its_id
) -> Survey:
    """Read every file of the workspace itself; what lies elsewhere and is only read along is not ours to tidy.

    `day_of_line` says since when a path has a line, where that is known.
    """
    pages = []
    for found in workspace.discover().files:
        if found.root is not workspace.root or found.path.endswith(_DRAWING):
            continue
        try:
            data, _ = found.root.read(found.relative, max_bytes=workspace.max_file_bytes)
        except PlainmindError:
            continue  # gone or unreadable: `doctor` says so
        changed = dt.datetime.fromtimestamp(found.mtime_ns / 1e9, dt.UTC).date().isoformat()
        pages.append(read_page(found.path, decode(data), day_of_line, scope=found.scope, changed_on=changed))
    return Survey(pages, today.isoformat())


def is_to_do(words: str) -> bool:
    """Whether a line is a step: it says what to do, and not what is so."""
    return _TO_DO.match(words) is not None


def without_day(words: str) -> str:
    """What is said, without the day behind it on which it was said."""
    return _LAST_DATE.sub("", words)


def has_neutral_heading(line: Line) -> bool:
    """Whether the heading above says nothing about a line: notes are put there one after the other."""
    return line.heading.casefold() in _NEUTRAL


def is_about_something(line: Line) -> bool:
    """Whether the heading above tells what a line is about: more than a day, and more than that these are notes."""
    return not has_neutral_heading(line) and any(
        character.isalpha() for character in _DAY_TITLE.sub("", line.heading)
    )


def frame_of(words: str) -> str:
    """How a line begins, whatever its numbers are."""
    bare = _DIGITS.sub("0", words.casefold())
    parts = bare.split()
    return " ".join(parts[:_FRAME_WORDS]) if len(parts) > 1 else bare[:8]


def is_log(path: str) -> bool:
    """Whether a file is a day's log."""
    return _LOG.search(path) is not None


def read_page(
    path: str,
    text: str,
    day_of_line: Callable[[str, str], str | None] = _by_its_id,
    *,
    scope: str = PRIVATE,
    changed_on: str = "9999-12-31",
) -> Page:
    """Read the lines of one file."""
    raw = split_lines(text)
    log = _LOG.search(path)
    reader = _Reader(path, raw, scope, log, day_of_line)
    return Page(path, scope, log is not None, changed_on, tuple(raw), tuple(reader.lines()))


class _Reader:
    """Reads one file from top to bottom."""

    def __init__(
        self,
        path: str,
        raw: Sequence[str],
        scope: str,
        log: re.Match[str] | None,
        day_of_line: Callable[[str, str], str | None],
    ) -> None:
        self._day_of_line = day_of_line
        self._path, self._raw, self._scope, self._is_log = path, raw, scope, log is not None
        self._day_of_log: str | None = log["day"] if log else None
        self._validities: dict[int, Validity] = validities(raw)
        matter = read_front_matter(raw)
        found = _ISO.match(matter.first(*_DATE_FIELDS)) if matter.line_count else None
        self._day_of_file = found[0] if found and is_day(found[0]) else None
        self._first = matter.line_count
        self._headings: list[tuple[int, str]] = []

    def lines(self) -> Iterator[Line]:
        is_recalled = False
        for block in read_blocks(self._raw):
            text = self._raw[block.first]
            if _RECALLED in text or is_recalled:  # what was recalled is no source
                last = self._raw[block.last]
                is_recalled = f"/{_RECALLED}" not in text and f"/{_RECALLED}" not in last
                continue
            if block.level:
                self._headings = [each for each in self._headings if each[0] < block.level]
                self._headings.append((block.level, block.title))
            elif block.first >= self._first:
                yield from self._of_block(block)

    def _of_block(self, block: Block) -> Iterator[Line]:
        if block.indent < 0:
            if block.first == block.last:
                yield from self._line(block.first, is_item=False, has_more=False)
            return
        starts = [block.first, *block.inner_items]
        above: list[
            tuple[int, str]
        ] = []  # the items that the present one belongs to: they say what it is about
        for at, number in enumerate(starts):
            indent = indent_of(self._raw[number])
            above = [each for each in above if each[0] < indent]
            following = starts[at + 1] if at + 1 < len(starts) else block.last + 1
            deeper = following <= block.last and indent_of(self._raw[following]) > indent_of(
                self._raw[number]
            )
            parents = tuple(words for _, words in above)
            yield from self._line(
                number, is_item=True, has_more=deeper or following > number + 1, parents=parents
            )
            above.append((indent, self._raw[number].strip()))

    def _line(
        self, number: int, *, is_item: bool, has_more: bool, parents: tuple[str, ...] = ()
    ) -> Iterator[Line]:
        text = self._raw[number]
        lead = _LEAD.match(text)
        own = text[lead.end() :] if lead else text
        if own.startswith(_NO_NOTE) or len(text) > MOST_CHARS or is_for_the_assistant(own):
            return
        words = _FROM.sub("", without_validity(without_note_ids(own))).strip()
        if not any(character.isalpha() for character in words):
            return
        yield Line(
            path=self._path,
            number=number + 1,
            text=text,
            words=words,
            headings=(*self._titles(), *parents),
            day=self._day(text, words),
            is_dated=ID_MARK in text or _SAID_ON.search(words) is not None,
            scope=self._scope,
            is_log=self._is_log,
            is_record=_RECORD.match(words) is not None or self._is_below_a_day(),
            is_item=is_item,
            is_step=bool(lead and lead["step"]),
            is_task=bool(lead and lead["box"]),
            has_more=has_more or words.endswith(_LEADS_ON),
            is_settled=number + 1 in self._validities,
        )

    def _titles(self) -> tuple[str, ...]:
        """The headings above; in a note that has none, its name says what it is about."""
        if self._headings or self._is_log:
            return tuple(title for _, title in self._headings)
        return (self._path.rpartition("/")[2].removesuffix(".md"),)

    def _is_below_a_day(self) -> bool:
        return not self._is_log and any(_ISO.search(title) for _, title in self._headings)

    def _day(self, text: str, words: str) -> str | None:
        said = _SAID_ON.search(words)
        if said and is_day(named := said["first"] or said["since"] or said["last"]):
            return named
        if self._day_of_log is not None:
            return self._day_of_log
        if (since := self._day_of_line(self._path, text)) is not None:
            return since
        for _, title in reversed(self._headings):
            if (found := _ISO.search(title)) and is_day(found[0]):
                return found[0]
        return self._day_of_file
