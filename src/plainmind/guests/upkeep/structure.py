"""Where lines belong: links, tags and people, what MEMORY.md keeps for good, and what makes it too large to be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE
from plainmind.base.value import value
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import Line, Page, Survey, frame_of
from plainmind.notes.links import Notes, find_links
from plainmind.text.front_matter import tags_in, without_code
from plainmind.text.markdown import read_blocks
from plainmind.text.note_format import DURABLE_SECTION, without_note_ids
from plainmind.text.sentences import adds_nothing, category_of, same_words

MOST_OF_A_KIND = 20  # in one run; the rest comes with the next
_CLOSE = 0.8
_LEAST_TITLE = 6
_LEAST_FILES = 3
_NAME = pattern(
    r"(?<![\w\[/#@.-])(?P<name>[A-ZÄÖÜ][a-zäöüßéèáóñç]{2,}(?: [A-ZÄÖÜ][a-zäöüßéèáóñç]{2,}){1,2})(?![\w\]/])"
)
_NO_PERSON = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december the a an this that our my in on at for from with and or new old north south east west
    street road square park lake river mount hotel cafe restaurant school university station airport street platz straße
    montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember der
    die das ein eine mein unser im am bei für von mit und oder neue neuer neues alte alter united kingdom states
    """.split()  # noqa: SIM905
)
# What stands before or behind the name of a person, and seldom beside that of a product. English, German.
_BEFORE_PEOPLE = pattern(
    r"(?:\b(?:mr|mrs|ms|dr|prof|frau|herrn?|uncle|aunt|onkel|tante|h/t|thanks to|called|phoned|rang|met|asked"
    r"|told|emailed|invited"
    r"|visited|(?:call|lunch|dinner|coffee|meeting|meet|talk|talked|spoke|chat|interview|walk) (?:with|to|of"
    r"|from)|introduced(?: to)?"
    r"|colleague|friend|neighbou?r|boss|sister|brother|daughter|son|wife|husband|mother|father|cousin|teacher"
    r"|landlord|client"
    r"|traf|treffen mit|gespräch mit|telefonat mit|essen mit|angerufen|kollegin?|kollege|freundin?|nachbarin?"
    r"|schwester|bruder"
    r"|tochter|sohn|frau|mann|mutter|vater|chefin?|lehrerin?|birthday of|geburtstag von)\.?,?:?\s+)$",
    re.IGNORECASE,
)
_AFTER_PEOPLE = pattern(
    r"\s+(?:said|says|asked|asks|wants|wanted|prefers|likes|loves|hates|lives|lived|told|wrote|called|rang"
    r"|phoned|joined|retired|teaches"
    r"|married|moved to|thinks|agreed|is (?:my|our|his|her|allergic|married|a friend|the (?:boss|owner|bosun"
    r"|teacher|landlord))"
    r"|was born|sagt|sagte|fragt|fragte|möchte|mag|wohnt|arbeitet|rief|schrieb|meint|heiratet|ist (?:mein"
    r"|unser|allergisch)\w*)\b"
    r"|['’]s (?:birthday|wife|husband|mother|father|daughter|son|phone|address|team)\b|\s\((?:born|geb\.)",
)
_OTHER_FILE = pattern(r"\.[A-Za-z]\w{1,4}$")  # a picture is no note
_UNSAFE = pattern(r"[^\w -]")


def structure(survey: Survey) -> Iterator[Proposal]:
    """What could be linked, tagged in one way, or given a page."""
    texts = {page.path: page.raw for page in survey.pages if page.scope == PRIVATE}
    notes = Notes(texts)
    for found in (
        _dead_links(survey, notes),
        _missing_links(survey, notes),
        _tags(survey),
        _people(survey, notes),
    ):
        for number, proposal in enumerate(found):
            if number >= MOST_OF_A_KIND:
                break
            yield proposal


def _editable(survey: Survey) -> Iterator[Page]:
    return (page for page in survey.pages if not page.is_log and page.scope == PRIVATE)


def _dead_links(survey: Survey, notes: Notes) -> Iterator[Proposal]:
    """Links to a note that is not there, where one with nearly that name is."""
    known = {names.name: path for path, names in notes.names.items()}
    for page in _editable(survey):
        for found in find_links(page.raw):
            if notes.follow(found, page.path) is not None:
                continue
            wanted = found.target.rpartition("/")[2].removesuffix(".md")
            if _OTHER_FILE.search(wanted):
                continue
            close = get_close_matches(wanted, known, n=2, cutoff=_CLOSE)
            if len(close) != 1 or known[close[0]] == page.path:
                continue
            line = page.raw[found.line - 1]
            new = line.replace(wanted, close[0], 1)
            if found.is_path or new == line or f"[[{wanted}" not in line:
                continue
            yield _edited(
                "links",
                page,
                found.line,
                new,
                f"no note is called `{wanted}`, but one is called `{close[0]}`",
            )


def _missing_links(survey: Survey, notes: Notes) -> Iterator[Proposal]:
    """The first mention of another note in a file, where notes are linked by their names."""
    if not any("[[" in line for page in survey.pages for line in page.raw):
        return
    titles = {
        names.name: path
        for path, names in notes.names.items()
        if len(names.name) >= _LEAST_TITLE and " " in names.name and not names.name.islower()
    }
    if not titles:
        return
    mention = re.compile(
        r"(?<![\w\[/|#])("
        + "|".join(sorted(map(re.escape, titles), key=len, reverse=True))
        + r")(?![\w\]/|])"
    )
    for page in _editable(survey):
        linked = {notes.follow(found, page.path) for found in find_links(page.raw)}
        for line in page.lines:
            found = mention.search(without_code(line.text))
            if found is None or titles[found[1]] == page.path or titles[found[1]] in linked:
                continue
            linked.add(titles[found[1]])
            start = line.text.index(found[1])
            new = f"{line.text[:start]}[[{found[1]}]]{line.text[start + len(found[1]) :]}"
            yield _edited(
                "links", page, line.number, new, f"`{titles[found[1]]}` is the note about {found[1]}"
            )


def _tags(survey: Survey) -> Iterator[Proposal]:
    """Tags that differ only in capitals or in an `s`: the rarer one becomes the other."""
    counts: Counter[str] = Counter()
    for page in survey.pages:
        counts.update(tag for _, tag in tags_in(page.raw))
    forms: dict[str, list[str]] = {}
    for tag in counts:
        forms.setdefault(tag.casefold().removesuffix("s"), []).append(tag)
    for spellings in forms.values():
        if len(spellings) < 2:
            continue
        best = max(spellings, key=lambda tag: (counts[tag], tag))
        for other in spellings:
            if other != best and counts[other] < counts[best]:
                yield from _renamed_tag(survey, other, best)


def _renamed_tag(survey: Survey, other: str, best: str) -> Iterator[Proposal]:
    mark = re.compile(rf"(?<!\w)#{re.escape(other)}(?![\w/-])")
    for page in _editable(survey):
        for number in {number for number, tag in tags_in(page.raw) if tag == other}:
            line = page.raw[number]
            new = mark.sub(f"#{best}", line)
            if new != line:
                yield _edited("tags", page, number + 1, new, f"elsewhere it is written #{best}")


def _people(survey: Survey, notes: Notes) -> Iterator[Proposal]:
    """People that stand in three files or more, and have no note of their own.

    Products, features and places have capitals as well. A person is one of whom is told what people do, and whose
    name is made of no words that the notes also write small.
    """
    where: dict[str, dict[str, Line]] = {}
    told: set[str] = set()
    for line in survey.lines:
        if line.scope != PRIVATE:
            continue
        for found in _NAME.finditer(line.words):
            name = found["name"]
            if any(word.casefold() in _NO_PERSON for word in name.split()):
                continue
            where.setdefault(name, {}).setdefault(line.path, line)
            if _BEFORE_PEOPLE.search(line.words[: found.start()]) or _AFTER_PEOPLE.match(
                line.words[found.end() :]
            ):
                told.add(name)
    often = {name for name in told if len(where[name]) >= _LEAST_FILES and not _has_note(notes, name)}
    small = _written_small(survey, {word for name in often for word in name.split()})
    for name, lines in sorted(where.items()):
        if name not in often or not small.isdisjoint(name.split()):
            continue
        cited = list(lines.values())[:10]
        path = f"memory/people/{_UNSAFE.sub('', name)}.md"
        new = (f"# {name}", "", *(f"- in {line.path}{_under(line)}" for line in cited))
        yield Proposal(
            "people",
            tuple(Cite(line.path, line.number, line.text) for line in cited[:_LEAST_FILES]),
            (Edit(path, 1, (), new),),
            f"{name} stands in {len(lines)} files and has no page",
        )


def _written_small(survey: Survey, words: set[str]) -> set[str]:
    """Those of some words that a note writes without a capital somewhere."""
    if not words:
        return set()
    small = re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(word.lower()) for word in sorted(words))})(?!\w)")
    found = {each for page in survey.pages for line in page.raw for each in small.findall(line)}
    return {word for word in words if word.lower() in found}


def _under(line: Line) -> str:
    return f", under “{line.heading}”" if line.heading and not line.is_log else ""


def _has_note(notes: Notes, name: str) -> bool:
    wanted = name.casefold()
    return any(
        wanted
        in {names.name.casefold(), names.title.casefold(), *(alias.casefold() for alias in names.aliases)}
        for names in notes.names.values()
    )


def _edited(kind: str, page: Page, number: int, new: str, reason: str) -> Proposal:
    old = page.raw[number - 1]
    return Proposal(kind, (Cite(page.path, number, old),), (Edit(page.path, number, (old,), (new,)),), reason)


def too_large(survey: Survey, asked_lines: Mapping[str, set[int]], most_chars: int) -> Iterator[Proposal]:
    """Sections of MEMORY.md that no question ever led to, the largest first, until the rest is small enough."""
    page = survey.by_path.get("MEMORY.md") or survey.by_path.get("memory.md")
    if page is None:
        return
    size = sum(len(line) + 1 for line in page.raw)
    over = size - most_chars
    asked = asked_lines.get(page.path, set())
    sections = sorted(_sections(page.raw), key=lambda each: -_size(page.raw, *each[1:]))
    for title, first, last in sections:
        if over <= 0:
            return
        if any(number in asked for number in range(first, last + 1)):
            continue
        path = f"memory/topics/{_UNSAFE.sub('', title).strip().replace(' ', '-').lower() or 'section'}.md"
        if path in survey.by_path:
            continue
        taken = _size(page.raw, first, last)
        if taken < _LEAST_SECTION:
            return
        over -= taken
        old = tuple(page.raw[first - 1 : last])
        heading = old[0]
        name = path.rpartition("/")[2].removesuffix(".md")
        yield Proposal(
            "too-large",
            tuple(Cite(page.path, first + at, line) for at, line in enumerate(old)),
            (
                Edit(path, 1, (), (f"# {without_note_ids(title)}", *old[1:])),
                Edit(page.path, first, old, (heading, "", f"- see [[{name}]] ({path})", "")),
            ),
            f"{page.path} has {size:,} characters of {most_chars:,}; nothing ever asked for this section of {taken:,}",
        )


_LEAST_SECTION = 400


def _sections(raw: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """The sections of the second level: title, first and last line."""
    headings = [block for block in read_blocks(raw) if block.level and block.level <= 2]
    for at, block in enumerate(headings):
        if block.level == 2:
            last = headings[at + 1].first if at + 1 < len(headings) else len(raw)
            yield block.title, block.first + 1, last


def _size(raw: Sequence[str], first: int, last: int) -> int:
    return sum(len(line) + 1 for line in raw[first - 1 : last])


# --- keep for good: a decision or preference in a log that was asked for again and again, copied as it stands ---


_LASTING = frozenset({"decision", "preference"})
_LEAST_TIMES = 2  # different questions, or days on which it was asked for
_LEAST_TERMS = 3
_BOILERPLATE_FROM = 3  # logs in which the same frame stands
# Decisions as people write them into a log, beside those that are said in conversation.
_WRITTEN_DECISION = pattern(
    r"(?i)^(?:decision|decided|agreed|entscheidung|entschieden|beschlossen|vereinbart|决定|约定|定了)\s*[:：,]?"
    r"|\b(?:decided (?:to|on|against)|agreed (?:to|on|that)|prefers?|preferred|favou?rite|always wants?|never wants?"
    r"|allergic|entschieden|beschlossen|vereinbart|bevorzugt|mag (?:keine?[nrms]?|lieber|am liebsten)|lieblings\w+"
    r"|am liebsten|möchte (?:immer|nie|keine?[nrms]?)|allergisch)\b"
    r"|决定|约定|说好|喜欢|不喜欢|更喜欢|最爱|偏好|讨厌|过敏|以后都"
)


@value
class Asked:
    """How often a line was given as an answer."""

    questions: frozenset[str]
    days: frozenset[str]

    @property
    def is_often(self) -> bool:
        """Whether it was for two different questions, or on two days."""
        return max(len(self.questions), len(self.days)) >= _LEAST_TIMES


def is_lasting(words: str) -> bool:
    """Whether a line says what somebody decided or prefers."""
    found = category_of(words)
    if found is not None and found[0] in _LASTING:
        return True
    return _WRITTEN_DECISION.search(words) is not None and not words.rstrip().endswith(("?", "？"))


def lasting(survey: Survey, asked: Mapping[tuple[str, int], Asked], into: str) -> Iterator[Proposal]:
    """Lines of logs that belong into the curated memory; `into` is its path."""
    for line in survey.lines:
        if not line.is_log or line.scope != PRIVATE or line.is_task or line.is_settled:
            continue
        often = asked.get((line.path, line.number))
        if often is None or not often.is_often or not is_lasting(line.words):
            continue
        if is_boilerplate(line, survey) or is_known(line, survey):
            continue
        yield keep_proposal(line, line.words, into, _reason(often))


def _reason(often: Asked) -> str:
    questions, days = len(often.questions), len(often.days)
    if questions >= _LEAST_TIMES:
        return f"a decision or preference that answered {questions} different questions, and stands in a log alone"
    return f"a decision or preference that was asked for on {days} days, and stands in a log alone"


def keep_proposal(line: Line, words: str, into: str, reason: str) -> Proposal:
    """Copy what a line says into the curated memory, with the way back to it."""
    new = f"- {words} (from {line})"
    return Proposal(
        "keep",
        (Cite(line.path, line.number, line.text),),
        (Edit(into, 0, (), (new,), section=DURABLE_SECTION),),
        reason,
    )


def is_boilerplate(line: Line, survey: Survey) -> bool:
    """Whether a line says next to nothing, or begins as lines of other logs do: what comes every day is no decision."""
    if len(survey.terms(line.words)) < _LEAST_TERMS:
        return True
    frame = frame_of(line.words)
    return len({other.path for other in survey.frames.get(frame, ()) if other.is_log}) >= _BOILERPLATE_FROM


def is_known(line: Line, survey: Survey) -> bool:
    """Whether the curated memory or another durable file says it already."""
    terms = survey.terms(line.words)
    for other in survey.durable:
        if other.scope != PRIVATE:
            continue
        theirs = survey.terms(other.words)
        if len(terms & theirs) < 0.6 * len(terms):
            continue
        if same_words(line.words, other.words) or (terms <= theirs and adds_nothing(line.words, other.words)):
            return True
    return False
