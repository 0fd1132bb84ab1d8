"""What a note says of itself, in its own words: front matter, title, other names, tags, and the days of a diary."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.text.terms import (
    LONGEST_NAME,
    NAME_MARK,
    document_terms,
    has_digit,
    mentioned_days,
)

# A front matter is a few lines; what goes on for longer is a text between two rules.
_MOST_LINES = 500
_ENDS = {"---": ("---", "..."), "+++": ("+++",)}  # YAML; TOML, as Hugo writes it
_TITLES, _ALIASES, _TAGS = ("title",), ("aliases", "alias"), ("tags", "tag", "keywords")

_FIELD = pattern(r"([A-Za-z0-9_][\w .-]*?)[ \t]*(?::(?=[ \t]|$)|=)[ \t]*(.*)")
_PROPERTY = pattern(r"(?:[-*][ \t]+)?([A-Za-z0-9_][\w-]*)::[ \t]+(\S.*)")  # as Logseq writes it
_ITEM = pattern(r"[ \t]*-(?:[ \t]+(.*))?$")
_COMMENT = pattern(r"(?:^|[ \t])#(?:[ \t].*)?$")
_QUOTED = pattern(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'')
_PART = pattern(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'|[^,"\'\[\]\s][^,\]]*')
_FENCE = pattern(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_CODE = pattern(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = pattern(
    r"(?:^|(?<=[\s\[{,;\"'“„«（、，。])|(?<=[^\]]\()|(?<=^\())#([^\s#.,;:!?()\[\]{}<>\"'`*=+|\\@$%^&~“”„«»（）、，。！？；：]+)"
)
_HEADING = pattern(r" {0,3}#[ \t]+(.+)$")
_UNDERLINE = pattern(r" {0,3}=+[ \t]*$")
_MARKS = pattern(r"[ \t]*(?:<!--.*?-->|\^[\w-]+$)|[ \t]+#+[ \t]*$")


@value
class FrontMatter:
    """The fields at the top of a note by their names in lower case, and how many lines they take with their marks."""

    fields: Mapping[str, tuple[str, ...]]
    line_count: int

    def first(self, *names: str) -> str:
        """The first value of the first of these fields that has one."""
        return next((found[0] for name in names if (found := self.fields.get(name))), "")

    def all(self, *names: str) -> tuple[str, ...]:
        """All values of these fields."""
        return tuple(given for name in names for given in self.fields.get(name, ()))


NONE = FrontMatter({}, 0)


@value
class NoteNames:
    """What a note can be asked for by. Tags have no `#`, and a nested one is whole: `projects/lighthouse`."""

    name: str  # of the file, without `.md`
    title: str  # of the front matter, else the first top heading; empty when it has neither
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    front_matter_lines: int


def note_names(path: str, lines: Sequence[str]) -> NoteNames:
    """What a note is called, by its cited path and its lines."""
    matter = read_front_matter(lines)
    own_tags = (tag for given in matter.all(*_TAGS) for tag in _words_of_tags(given))
    tags = dict.fromkeys((*own_tags, *(tag for _, tag in tags_in(lines, start=matter.line_count))))
    aliases = dict.fromkeys(alias for given in matter.all(*_ALIASES) if (alias := given.strip()))
    return NoteNames(
        name=name_of(path),
        title=matter.first(*_TITLES) or title_in(lines, start=matter.line_count),
        aliases=tuple(aliases),
        tags=tuple(tags),
        front_matter_lines=matter.line_count,
    )


def name_of(path: str) -> str:
    """The name of a file as a wiki link says it: `Hash Table` of `cs/Hash Table.md`."""
    name = path.rpartition("/")[2]
    return name[:-3] if name[-3:].lower() == ".md" else name


# --- the lines at the top ---


def read_front_matter(lines: Sequence[str]) -> FrontMatter:
    """Read what stands between the marks at the top, or the properties there. What makes no sense is passed over."""
    if not lines:
        return NONE
    opening = lines[0].rstrip()
    if opening not in _ENDS:
        return _read_properties(lines) if "::" in lines[0] else NONE
    ends = _ENDS[opening]
    for last in range(1, min(len(lines), _MOST_LINES)):
        if lines[last].rstrip() in ends:
            return FrontMatter(_read_fields(lines[1:last]), last + 1)
    return NONE


def _read_properties(lines: Sequence[str]) -> FrontMatter:
    fields: dict[str, tuple[str, ...]] = {}
    for line in lines[:_MOST_LINES]:
        found = _PROPERTY.match(line)
        if found is None:
            break
        fields[found[1].casefold()] = tuple(part.strip("[]# ") for part in found[2].split(","))
    return FrontMatter(fields, 0)  # they are lines of the text as well


def _read_fields(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    fields: dict[str, tuple[str, ...]] = {}
    name, is_folded, open_list = "", False, ""
    for line in lines:
        if open_list:
            open_list += " " + line.strip()
            fields[name] = _values_of(open_list)
            open_list = "" if "]" in line else open_list
        elif found := _FIELD.match(line):
            name, given = found[1].casefold(), found[2].strip()
            is_folded = given[:1] in {"|", ">"}
            open_list = given if given[:1] == "[" and "]" not in given else ""
            fields[name] = () if is_folded else _values_of(given)
        elif name and line.strip():
            fields[name] = _with_line(fields[name], line, is_folded=is_folded)
    return {name: tuple(filter(None, given)) for name, given in fields.items()}


def _with_line(given: tuple[str, ...], line: str, *, is_folded: bool) -> tuple[str, ...]:
    """The values of a field with what one more line says: an item of a list, or a value that goes on."""
    if is_folded:
        return (" ".join((*given, line.strip())),)
    if item := _ITEM.match(line):
        return given + _values_of(item[1] or "")
    return (*given[:-1], " ".join((*given[-1:], line.strip())))


def _values_of(given: str) -> tuple[str, ...]:
    """One value, or those of a list in brackets; `[[Note]]` is a link and no list."""
    given = given.strip()
    if given[:1] == "[" and given[:2] != "[[":
        return tuple(_plain(part[0]) for part in _PART.finditer(given[1:].rpartition("]")[0] or given[1:]))
    return (_plain(given),) if given and given[0] != "{" else ()


def _plain(given: str) -> str:
    given = given.strip()
    quoted = _QUOTED.match(given)
    if quoted is not None:
        inner = quoted[0][1:-1]
        return (re.sub(r"\\(.)", r"\1", inner) if given[0] == '"' else inner.replace("''", "'")).strip()
    if given[:1] != "#":
        given = _COMMENT.sub("", given)
    return given.strip()


def _words_of_tags(given: str) -> Iterator[str]:
    """Tags may stand in one value, as `a, b` or `a b`."""
    parts = given.split(",") if "," in given else given.split()
    for part in parts:
        tag = part.strip().lstrip("#").strip("/")
        if tag:
            yield re.sub(r"\s+", "-", tag)


# --- the text ---


def title_in(lines: Sequence[str], *, start: int = 0) -> str:
    """The first heading of the highest level, outside of code; empty when there is none.

    Where words stand above it and others of its level below, it is the heading of a part, and not of the note.
    """
    title, is_at_top = "", True
    for number, line in text_lines(lines, start):
        heading = _HEADING.match(line)
        is_underline = number > start and line[:4].lstrip()[:1] == "=" and _UNDERLINE.match(line)
        if heading or (is_underline and lines[number - 1].strip()):
            if title:
                return ""
            title = _MARKS.sub("", heading[1] if heading else lines[number - 1]).strip()
            if is_at_top or (not heading and not any(map(str.strip, lines[start : number - 1]))):
                return title
        is_at_top = is_at_top and not line.strip()
    return title


def tags_in(lines: Sequence[str], *, start: int = 0) -> Iterator[tuple[int, str]]:
    """Each `#tag` of the text with its line (0-based): outside of code, and never a number alone."""
    for number, line in text_lines(lines, start):
        if "#" in line:
            for found in _TAG.finditer(without_code(line)):
                tag = found[1].strip("/-")
                if tag and not tag.isdecimal():
                    yield number, tag


def text_lines(lines: Sequence[str], start: int = 0) -> Iterator[tuple[int, str]]:
    """The lines (0-based) that are no code between fences."""
    fence = ""
    for number in range(start, len(lines)):
        line = lines[number]
        mark = _FENCE.match(line) if line.lstrip(" \t")[:3] in {"```", "~~~"} else None
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def without_code(line: str) -> str:
    """A line without the code that stands within it; as many characters as before."""
    if "`" not in line:
        return line
    return _CODE.sub(lambda found: " " * len(found[0]), line)


# --- the terms under which names are filed ---

# A name is filed as if each of its terms stood there this often divided by their number: the shorter a name, the more
# of it a question says with one word.
_NAME_WEIGHT = 12
_HEADING_WEIGHT = 6
_TAG_WEIGHT = 2

# Names of files that say what a file is for, and nothing about what stands in it.
_EMPTY_NAMES = frozenset({"memory", "readme", "index", "untitled", "notes", "note", "daily", "log"})
_EMPTY_FOLDERS = frozenset({"memory", "notes", "docs", "vault", "daily", "journal", "logs", "log", "archive"})
# Days, times and the numbers of a slip box stand before a name, or for it.
_NUMBERED = pattern(
    r"^(?:\d{4}[-_.]?\d{2}[-_.]?\d{2}[T_ -]?\d*|\d{6,}[a-z]?|0\d{3}(?=[-_. ])|\d{1,3}(?=[-_. ]))[-_. ]*"
)
_NAME_JOINTS = pattern(r"[-_.+\s]+")
_NAME_HUMPS = pattern(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ANY_HEADING = pattern(r"^ {0,3}#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)


# Asked for each chunk of a file in turn.
@lru_cache(maxsize=64)
def words_of_name(path: str) -> str:
    """The name of a file in words: `shell/printer-setup.md` is "printer setup"; empty when it says nothing."""
    stem = _stem(path.rpartition("/")[2])
    words = _words(_NUMBERED.sub("", stem))
    return "" if words.casefold() in _EMPTY_NAMES or _is_letter(words) else words


def name_as_written(path: str) -> str:
    """The name of a file in words, with the number before it and the humps in it: `3-mockito-ThenReturn.md`."""
    return _NAME_JOINTS.sub(" ", _stem(path.rpartition("/")[2])).strip()


@lru_cache(maxsize=64)
def words_of_path(path: str) -> str:
    """The folders and the name of a file in words, without those that say nothing."""
    *folders, _ = path.split("/")
    told = [_words(folder) for folder in folders if folder.casefold() not in _EMPTY_FOLDERS]
    return " ".join(filter(None, [*told, words_of_name(path)]))


def _is_letter(words: str) -> bool:
    return len(words) == 1 and words.isascii()


def _stem(file: str) -> str:
    stem, dot, _ = file.rpartition(".")
    return stem if dot and stem else file


def _words(text: str) -> str:
    return _NAME_JOINTS.sub(" ", _NAME_HUMPS.sub(" ", text)).strip()


def name_terms(names: Iterable[str], headings: Iterable[str], tags: Iterable[str]) -> list[str]:
    """The terms of names, each repeated by how much of the shortest name it is."""
    counts: dict[str, int] = {}
    for texts, weight in ((names, _NAME_WEIGHT), (headings, _HEADING_WEIGHT), (tags, _TAG_WEIGHT)):
        for text in texts:
            terms = dict.fromkeys(document_terms(text))
            if terms and len(terms) <= LONGEST_NAME:
                share = max(1, round(weight / len(terms)))
                for term in terms:
                    counts[term] = max(counts.get(term, 0), share)
    return [NAME_MARK + term for term, count in counts.items() for _ in range(count)]


def headings_of(text: str) -> list[str]:
    """The headings with which a passage begins."""
    if not text.lstrip().startswith("#"):
        return []
    found = []
    for line in text.lstrip().split("\n"):
        match = _ANY_HEADING.match(line)
        if match is None and line.strip():
            break
        if match is not None:
            found.append(match[1])
    return found


# --- diaries: many days in one file ---

_ISO_DAY = pattern(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_ISO_MONTH = pattern(r"(?<!\d)((?:19|20)\d\d)-(\d\d)(?![-\d])")
_A_YEAR = pattern(r"(?<!\d)((?:19|20)\d\d)(?!\d)")


# `- 2026-03-04: …`, `* **2026-03-04** …`, `- [ ] 2026-03-04 …`: no deeper than the list itself.
_DATED_ITEM = pattern(
    r"[-*+][ \t]+(?:\[[ xX]\][ \t]+)?[*_(\[]{0,3}(\d{4}-\d\d-\d\d)(?!\d)[*_)\]]{0,3}(?:[\s:,;–—-]|$)"
)


def day_of_item(line: str) -> str | None:
    """The day at the head of a list item, which is then the day of what it says."""
    found = _DATED_ITEM.match(line) if "-" in line else None
    if found is None:
        return None
    try:
        return dt.date.fromisoformat(found[1]).isoformat()
    except ValueError:
        return None


def days_apart(lines: Sequence[str]) -> list[int]:
    """Where lines must be cut so that no part has items of two days, or of a day and of none; empty when nowhere."""
    cuts: list[int] = []
    day: str | None = None
    for at, line in enumerate(lines):
        if not line[:1].strip():  # blank, or it goes on with the item above
            continue
        own = day_of_item(line)
        if own != day and at:
            cuts.append(at)
        day = own
    return cuts


@lru_cache(maxsize=512)
def day_of_headings(headings: tuple[str, ...], path: str) -> str | None:
    """The day that the headings above a text name, the innermost first; the year may stand above it, or in the path.

    `2026-05-26`, `10. Januar` below `Tagebuch 2026` and `26` below `Mayo de 2026` are days; what mentions one is none.
    """
    if not any(map(has_digit, headings)):
        return None
    whole = " ".join((*headings, path))
    written = _A_YEAR.search(whole)
    last_of_year = dt.date(int(written[1]), 12, 31) if written else None
    month = _ISO_MONTH.search(path)
    for at in range(len(headings) - 1, -1, -1):
        heading = headings[at].strip()
        above = headings[at - 1] if at else (month[0] if month else "")
        day = _day_of_heading(heading, above, last_of_year)
        if day is not None:
            return day.isoformat()
    return None


def _day_of_heading(heading: str, above: str, last_of_year: dt.date | None) -> dt.date | None:
    written = _ISO_DAY.match(heading)
    try:
        if written:
            return dt.date(*map(int, written.groups()))
        if last_of_year is None or not has_digit(heading):
            return None
        if heading.rstrip(".").isdecimal():
            months = [
                span
                for span in mentioned_days(above, last_of_year)
                if span.first.day == 1 < span.last.day < 32
            ]
            return months[0].first.replace(day=int(heading.rstrip("."))) if months else None
    except (ValueError, OverflowError):
        return None
    found = mentioned_days(heading, last_of_year)
    is_day = len(found) == 1 and found[0].first == found[0].last and has_digit(found[0].text)
    # A heading that says more than a day is about something else.
    return found[0].first if is_day and 2 * len(found[0].text) >= len(heading) else None
