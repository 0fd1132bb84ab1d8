"""How notes hang together: tags, links to and fro, and the graph around a note."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock

from plainmind.base.errors import PlainmindError
from plainmind.base.model import split_lines
from plainmind.guests.page import requests, shapes
from plainmind.guests.page.call import Call, Reply
from plainmind.notes.links import FoundLink, Notes, find_links, links_among
from plainmind.notes.workspace import day_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.notes.discovery import FoundFile

    Stamp: TypeAlias = tuple[int, int, int]
    Edges: TypeAlias = Mapping[str, Counter[str]]

_NOWHERE: Counter[str] = Counter()


class Network:
    """The owner's notes by what they are called and where they lead; only files that changed are read again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stamps: dict[str, Stamp] = {}
        self._texts: dict[str, Sequence[str]] = {}
        self._found: dict[str, Sequence[FoundLink]] = {}  # in a note
        self._leads: dict[str, Counter[str]] | None = None
        self._notes = Notes({})

    def notes(self, call: Call) -> Notes:
        """The notes that the caller may see."""
        files = call.files()
        if not call.caller.is_page:
            return Notes({found.path: _lines(call, found) for found in files})
        with self._lock:
            return self._caught_up(call, files)

    def edges(self, call: Call) -> tuple[Notes, Edges]:
        """The notes, and how often each leads to which others."""
        notes = self.notes(call)
        with self._lock:
            if notes is self._notes and self._leads is not None:
                return notes, self._leads
            known = self._found
        found = {
            path: known[path] if path in known else tuple(find_links(lines))
            for path, lines in notes.texts.items()
        }
        leads = {path: _targets(notes, path, links) if links else _NOWHERE for path, links in found.items()}
        with self._lock:
            if notes is self._notes:
                self._found, self._leads = found, leads
        return notes, leads

    def _caught_up(self, call: Call, files: Sequence[FoundFile]) -> Notes:
        stamps = {found.path: (found.mtime_ns, found.size, found.inode) for found in files}
        if stamps == self._stamps:
            return self._notes
        same = {path for path, stamp in stamps.items() if self._stamps.get(path) == stamp}
        names = {path: known for path, known in self._notes.names.items() if path in same}
        self._found = {path: links for path, links in self._found.items() if path in same}
        self._texts = {
            found.path: self._texts[found.path] if found.path in same else _lines(call, found)
            for found in files
        }
        self._stamps, self._leads = stamps, None
        self._notes = Notes(self._texts, names)
        return self._notes


def _lines(call: Call, found: FoundFile) -> list[str]:
    try:
        text = call.memory.text_of(found)
    except PlainmindError:
        return []  # it cannot be read: it still has a name
    return split_lines(call.shown(text))


def _targets(notes: Notes, path: str, links: Sequence[FoundLink]) -> Counter[str]:
    found = (notes.follow(link, path) for link in links)
    return Counter(target for target in found if target is not None and target != path)


def _title(notes: Notes, path: str) -> str:
    names = notes.names[path]
    return names.title or names.name


def list_tags(call: Call) -> Reply:
    """List all tags, the most used first."""
    notes = call.keeper.network.notes(call)
    counts = Counter(tag for names in notes.names.values() for tag in dict.fromkeys(names.tags))
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    return Reply(shapes.Tags(tuple(shapes.TagCount(tag, count) for tag, count in rows)))


def read_tag(call: Call) -> Reply:
    """List the notes that have a tag, or one below it."""
    from plainmind.index.filters import is_tagged
    from plainmind.text.front_matter import tags_in

    wanted = call.parameters["tag"].removeprefix("#")
    notes = call.keeper.network.notes(call)
    rows = []
    for path, names in sorted(notes.names.items()):
        if is_tagged(wanted, names.tags):
            lines = notes.texts[path]
            places = (
                number + 1
                for number, tag in tags_in(lines, start=names.front_matter_lines)
                if is_tagged(wanted, [tag])
            )
            rows.append(
                shapes.TaggedNote(path, _title(notes, path), day_of(path), tuple(dict.fromkeys(places)))
            )
    return Reply(shapes.Tagged(wanted, tuple(rows)))


def read_links(call: Call) -> Reply:
    """Which notes a note leads to, and which lead to it."""
    notes, leads = call.keeper.network.edges(call)
    wanted = notes.ask(call.parameters["path"])
    found = links_among(notes, wanted, [path for path, targets in leads.items() if wanted in targets])
    return Reply(
        shapes.Links(
            found.path,
            _title(notes, found.path),
            found.names.aliases,
            found.names.tags,
            tuple(
                shapes.Link(one.line, one.target, one.label, one.is_embed, one.path, one.target_line)
                for one in found.links
            ),
            tuple(shapes.Backlink(one.path, one.line, one.text, one.is_embed) for one in found.backlinks),
        )
    )


def read_graph(call: Call) -> Reply:
    """The notes around one, one or two links away; without one, the most linked ones."""
    asked: requests.GraphQuery = call.query
    notes, leads = call.keeper.network.edges(call)
    beside: dict[str, set[str]] = {path: set(targets) for path, targets in leads.items()}
    for path, targets in leads.items():
        for target in targets:
            beside[target].add(path)
    if asked.note is None:
        linked = sorted(
            (path for path in beside if beside[path]), key=lambda path: (-len(beside[path]), path)
        )
        depths = dict.fromkeys(linked[: asked.limit], 0)
        truncated = len(linked) > asked.limit
    else:
        depths, truncated = _around(notes.ask(asked.note), beside, asked.depth, asked.limit)
    nodes = tuple(
        shapes.GraphNode(path, _title(notes, path), depth, notes.names[path].tags, len(beside[path]))
        for path, depth in depths.items()
    )
    edges = tuple(
        shapes.GraphEdge(path, target, count)
        for path in depths
        for target, count in leads[path].items()
        if target in depths
    )
    return Reply(shapes.Graph(nodes, edges, truncated))


def _around(
    start: str, beside: Mapping[str, set[str]], depth: int, limit: int
) -> tuple[dict[str, int], bool]:
    """How many links away each note is, the nearest and most linked first; and whether some were left out."""
    depths, ring = {start: 0}, [start]
    for away in range(1, depth + 1):
        found = {path for one in ring for path in beside[one]} - depths.keys()
        ring = sorted(found, key=lambda path: (-len(beside[path]), path))
        room = limit - len(depths)
        depths |= dict.fromkeys(ring[:room], away)
        if len(ring) > room:
            return depths, True
    return depths, False
