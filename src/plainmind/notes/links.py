"""Which notes a note leads to and which lead to it: wiki links and Markdown links, found and followed."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from plainmind.base.errors import NotFound, PlainmindError, check_text
from plainmind.base.lazy import pattern
from plainmind.base.model import split_lines
from plainmind.base.value import value
from plainmind.notes.workspace import Workspace, nearest
from plainmind.text.front_matter import NoteNames, note_names, text_lines, without_code

_WIKI = pattern(r"(!?)\[\[([^\[\]|#\n]*)(#[^\[\]|\n]*)?(?:\|([^\[\]\n]*))?\]\]")
_MARKDOWN = pattern(r"(!?)\[([^\[\]\n]*)\]\((?:<([^<>\n]+)>|([^()\s<>]+))(?:[ \t]+[\"'(][^\n]*?[\"')])?\)")
_SCHEME = pattern(r"[A-Za-z][A-Za-z0-9+.-]+:")
_HEADING = pattern(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_BLOCK_ID = pattern(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*$")
_NO_LETTER = pattern(r"[^\w]+")
_LONGEST_LINE = 200


@value
class Link:
    """One link, where it stands, and the note that it leads to."""

    line: int  # that it stands on
    target: str  # as it is written: `Hash Table#Collisions`
    label: str  # what is shown in its place; empty when that is the target
    is_embed: bool
    path: str | None  # of the note, as cited; None when there is none
    target_line: int | None = None  # of the heading or the block that is meant


@value
class Backlink:
    """A line of another note that leads here."""

    path: str
    line: int
    text: str
    is_embed: bool


@value
class NoteLinks:
    """A note, what it is called, and how it hangs together with the others."""

    path: str
    names: NoteNames
    links: tuple[Link, ...]
    backlinks: tuple[Backlink, ...]


@value
class FoundLink:
    """A link as it is written."""

    line: int
    target: str
    part: str  # a heading, or a block as `^id`
    label: str
    is_embed: bool
    is_path: bool  # from the note that it stands in, as Markdown links are


class Notes:
    """All notes by what they are called."""

    def __init__(
        self, texts: Mapping[str, Sequence[str]], known: Mapping[str, NoteNames] | None = None
    ) -> None:
        """`known` are the names of notes whose texts are as they were."""
        self.texts = texts
        known = known or {}
        self.names = {path: known.get(path) or note_names(path, lines) for path, lines in texts.items()}
        self._by_path = {_fold(_bare(path)): path for path in texts}
        self._by_name: dict[str, list[str]] = {}
        self._by_other_name: dict[str, list[str]] = {}
        for path, names in self.names.items():
            self._by_name.setdefault(_fold(names.name), []).append(path)
            for other in (names.title, *names.aliases):
                if other:
                    self._by_other_name.setdefault(_fold(other), []).append(path)

    def ask(self, wanted: str) -> str:
        """The note that a person means. Raises NotFound, naming those that may be meant."""
        target = wanted.strip().removeprefix("!").removeprefix("[[").removesuffix("]]").partition("|")[0]
        target = target.partition("#")[0].strip().removeprefix("./")
        if target in self.texts:
            return target
        found = self._called(target)
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(
                f"{len(found)} notes are called `{target}`",
                hint="name one by its path: " + ", ".join(f"`{path}`" for path in sorted(found)[:5]),
            )
        near = nearest(target, self.texts)
        meant = " or ".join(f"`{path}`" for path in near)
        hint = f"did you mean {meant}?" if near else "`plainmind list` names all notes"
        raise NotFound(f"no note is called `{target}`", hint=hint)

    def follow(self, found: FoundLink, source: str) -> str | None:
        """The note that a link leads to."""
        if not found.target:
            return source
        if found.is_path:
            beside = os.path.join(os.path.dirname(source), found.target)
            start = found.target[1:] if found.target.startswith("/") else os.path.normpath(beside)
            return self._by_path.get(_fold(_bare(start)))
        if "/" in found.target:
            beside = os.path.normpath(os.path.join(os.path.dirname(source), found.target))
            near = self._by_path.get(_fold(_bare(beside)))
            if near is not None:
                return near
        return min(self._called(found.target), key=lambda path: _distance(path, source), default=None)

    def _called(self, target: str) -> list[str]:
        name = _fold(_bare(target.strip("/")))
        if name in self._by_path:
            return [self._by_path[name]]
        if "/" in name:
            ending = "/" + name
            return [path for folded, path in self._by_path.items() if folded.endswith(ending)]
        return list(dict.fromkeys(self._by_name.get(name) or self._by_other_name.get(name) or ()))


def read_links(workspace: Workspace, wanted: str) -> NoteLinks:
    """The links of a note, and those that lead to it. Raises NotFound."""
    check_text(wanted, "a note's name")
    return links_among(Notes(_read_all(workspace)), wanted)


def links_among(notes: Notes, wanted: str, leading: Iterable[str] | None = None) -> NoteLinks:
    """The links of a note, and those that lead to it, among notes that were read. Raises NotFound.

    `leading` names the notes that lead to it, where that is known; else all are looked through.
    """
    path = notes.ask(wanted)
    links = [_link(notes, found, path) for found in find_links(notes.texts[path])]
    return NoteLinks(path, notes.names[path], tuple(links), tuple(_backlinks(notes, path, leading)))


def locate_link(workspace: Workspace, written: str) -> tuple[str, int]:
    """The file and the line that `[[Note]]`, `[[Note#Heading]]` or `[[Note#^block]]` means. Raises NotFound."""
    found = next(find_links([written]), None)
    if found is None:
        raise NotFound(f"`{written}` is no link", hint="write it as `[[Note]]` or `[[Note#Heading]]`")
    notes = Notes(_read_all(workspace))
    path = notes.ask(found.target)
    line = _line_of(notes.texts[path], found.part)
    if line is None:
        raise NotFound(f"`{path}` has no `{found.part}`", hint=f"read it with `plainmind get {path}`")
    return path, line


def find_links(lines: Sequence[str]) -> Iterator[FoundLink]:
    """All links of a text in their order, outside of code; those that leave the notes are passed over."""
    for number, line in text_lines(lines):
        if "](" not in line and "[[" not in line:
            continue
        plain = without_code(line)
        found = [*_wiki_links(plain, number + 1), *_markdown_links(plain, number + 1)]
        yield from (link for _, link in sorted(found, key=lambda one: one[0]))


def _wiki_links(line: str, number: int) -> Iterator[tuple[int, FoundLink]]:
    for match in _WIKI.finditer(line):
        target, part = match[2].strip().removesuffix("\\"), (match[3] or "").removesuffix("\\")
        if target or part:
            label = (match[4] or "").strip()
            found = FoundLink(number, target, part.strip("# "), label, bool(match[1]), is_path=False)
            yield match.start(), found


def _markdown_links(line: str, number: int) -> Iterator[tuple[int, FoundLink]]:
    for match in _MARKDOWN.finditer(line):
        target, _, part = (match[3] or match[4]).partition("#")
        name = os.path.basename(target)
        if _SCHEME.match(target) or (name and "." in name and name[-3:].lower() != ".md"):
            continue
        found = FoundLink(
            number, unquote(target), unquote(part), match[2].strip(), bool(match[1]), is_path=True
        )
        yield match.start(), found


def _link(notes: Notes, found: FoundLink, source: str) -> Link:
    path = notes.follow(found, source)
    line = None if path is None or not found.part else _line_of(notes.texts[path], found.part)
    target = f"{found.target}#{found.part}" if found.part else found.target
    return Link(found.line, target, found.label, found.is_embed, path, line)


def _backlinks(notes: Notes, wanted: str, leading: Iterable[str] | None) -> Iterator[Backlink]:
    for path in notes.texts if leading is None else leading:
        lines = notes.texts[path]
        if path == wanted:
            continue
        seen: set[int] = set()
        for found in find_links(lines):
            if found.line not in seen and notes.follow(found, path) == wanted:
                seen.add(found.line)
                text = lines[found.line - 1].strip()[:_LONGEST_LINE]
                yield Backlink(path, found.line, text, found.is_embed)


def _line_of(lines: Sequence[str], part: str) -> int | None:
    """Where a heading or a block begins; 1 for the note as a whole."""
    if not part:
        return 1
    if part.startswith("^"):
        return _line_of_block(lines, part[1:])
    wanted = _words(part.rpartition("#")[2])  # of `A#B` the last is meant
    for number, line in text_lines(lines):
        heading = _HEADING.match(line)
        if heading and _words(heading[1]) == wanted:
            return number + 1
    return None


def _line_of_block(lines: Sequence[str], block: str) -> int | None:
    for number, line in text_lines(lines):
        found = _BLOCK_ID.search(line)
        if found and found[1] == block:
            if line[: found.start()].strip():
                return number + 1
            above = (before for before in range(number, 0, -1) if lines[before - 1].strip())
            return next(above, number + 1)  # it stands alone, below its block
    return None


def _read_all(workspace: Workspace) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for found in workspace.discover().files:
        try:
            texts[found.path] = split_lines(workspace.read(found)[0].text)
        except PlainmindError:
            texts[found.path] = []  # it cannot be read: it still has a name
    return texts


def _distance(path: str, source: str) -> tuple[bool, int, str]:
    """Which of several notes of one name is meant: that in the same folder, else the one with the shortest path."""
    return os.path.dirname(path) != os.path.dirname(source), path.count("/"), path


def _bare(path: str) -> str:
    return path[:-3] if path[-3:].lower() == ".md" else path


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()


def _words(heading: str) -> str:
    return _NO_LETTER.sub(" ", _fold(heading)).strip()


def as_json(found: NoteLinks) -> dict[str, object]:
    """What `links --json` prints."""
    names = found.names
    return {
        "path": found.path,
        "title": names.title or names.name,
        "aliases": list(names.aliases),
        "tags": list(names.tags),
        "links": [_link_as_json(link) for link in found.links],
        "backlinks": [
            {"path": back.path, "line": back.line, "text": back.text, "embed": back.is_embed}
            for back in found.backlinks
        ],
    }


def _link_as_json(link: Link) -> dict[str, object]:
    fields: dict[str, object] = {
        "line": link.line,
        "target": link.target,
        "path": link.path,
        "embed": link.is_embed,
    }
    if link.label:
        fields["label"] = link.label
    if link.target_line is not None:
        fields["targetLine"] = link.target_line
    return fields
