"""How notes hang together: tags, links to and fro, the graph around a note, and the map by meaning."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text, split_lines
from plainmind.base.value import asdict, value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import explain_errors, read_file
from plainmind.guests.page import requests, shapes
from plainmind.guests.page.call import Call, Reply
from plainmind.notes.links import FoundLink, Notes, find_links, links_among
from plainmind.notes.workspace import day_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    from plainmind.base.model import FileState, Vector
    from plainmind.notes.discovery import FoundFile

    Stamp: TypeAlias = tuple[int, int, int]
    Edges: TypeAlias = Mapping[str, Counter[str]]
    Row: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


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


# --- the map by meaning: two directions in which the notes differ most, kept, so that a new note moves no other ---


_MOST_BYTES = 4 << 20
_MOST_NOTES = 20_000  # that the directions are taken from
_FEW_NOTES = 20  # places of a map of fewer are worth little: twice as many notes, and it is made anew
_DIGITS = 4


@value
class Projection:
    """Which way to look at vectors: from where, along which two directions, and how far apart notes are."""

    model: str
    made_at: str
    made_of: int
    spread: float
    center: tuple[float, ...]
    across: tuple[float, ...]
    up: tuple[float, ...]
    width: float

    def fits(self, model: str, dims: int, notes: int) -> bool:
        """Whether notes can still be shown along it."""
        is_too_small = self.made_of < _FEW_NOTES and notes > 2 * self.made_of
        return self.model == model and len(self.center) == dims and not is_too_small


class NoteMap:
    """The places of all notes, and the directions behind them, in a file of the home."""

    def __init__(self, home: str, workspace: str, agent: str) -> None:
        name = sha256_text(f"{agent}\n{workspace}")[:16]
        self._path = os.path.join(home, "page", f"map-{name}.json")
        self._lock = Lock()
        self._centers: dict[str, tuple[str, Row, int]] = {}  # by path: hash, mean of its vectors, how many

    def show(self, call: Call, *, anew: bool) -> shapes.Map:
        """Every note at its place."""
        with self._lock:
            self._catch_up(call)
            if not self._centers:
                return shapes.Map((), 0, "", "", 0.0)
            projection = self._projection(call, anew=anew)
            return self._drawn(call, projection)

    def _catch_up(self, call: Call) -> None:
        """Take the vectors of notes that the index has read since."""
        with call.memory.index.store.reading() as reader:
            states = {path: state for (source, path), state in reader.files().items() if source == "memory"}
            for path in self._centers.keys() - states.keys():
                del self._centers[path]
            for path, state in states.items():
                self._take(path, state, lambda name: reader.vectors_of("memory", name))

    def _take(self, path: str, state: FileState, vectors_of: Any) -> None:
        known = self._centers.get(path)
        if known is not None and known[0] == state.hash:
            return
        vectors: list[Vector] = [vector for vector in vectors_of(path) if vector is not None]
        center = _mean(vectors)
        if center is None:
            self._centers.pop(path, None)
        else:
            self._centers[path] = (state.hash, center, len(vectors))

    def _projection(self, call: Call, *, anew: bool) -> Projection:
        with call.memory.index.store.reading() as reader:
            made = reader.fingerprint()
        model = f"{made.embedder.provider}/{made.embedder.model}" if made else ""
        dims = len(next(iter(self._centers.values()))[1])
        known = None if anew else self._read()
        if known is not None and known.fits(model, dims, len(self._centers)):
            return known
        rows = [center for _, center, _ in self._centers.values() if len(center) == dims][:_MOST_NOTES]
        at = call.memory.now().isoformat(timespec="seconds")
        made_now = _directions(rows, model, at)
        self._write(made_now)
        return made_now

    def _drawn(self, call: Call, projection: Projection) -> shapes.Map:
        import numpy as np

        titles = call.keeper.network.notes(call).names
        paths = sorted(
            path for path, (_, center, _) in self._centers.items() if len(center) == len(projection.center)
        )
        if not paths:
            return shapes.Map((), 0, projection.model, projection.made_at, projection.spread)
        rows = np.stack([self._centers[path][1] for path in paths]) - np.array(projection.center)
        places = rows @ np.array([projection.across, projection.up]).T / projection.width
        points = tuple(
            shapes.MapPoint(
                path,
                (names.title or names.name) if (names := titles.get(path)) else path,
                day_of(path),
                round(float(x), _DIGITS),
                round(float(y), _DIGITS),
                self._centers[path][2],
            )
            for path, (x, y) in zip(paths, places, strict=True)
        )
        return shapes.Map(
            points, len(points), projection.model, projection.made_at, round(projection.spread, 3)
        )

    def _read(self) -> Projection | None:
        data = _content(self._path)
        if data is None:
            return None
        try:
            facts: Mapping[str, Any] = json.loads(data)
            known: dict[str, Any] = {
                name: tuple(one) if isinstance(one, list) else one for name, one in facts.items()
            }
            return Projection(**known)
        except (AttributeError, ValueError, TypeError):
            return None  # another version wrote it: it is made anew

    def _write(self, made: Projection) -> None:
        write_atomically(self._path, json.dumps(asdict(made)).encode() + b"\n")


def _content(path: str) -> bytes | None:
    with explain_errors("read", path), suppress(FileNotFoundError):
        return read_file(path, most=_MOST_BYTES)
    return None


def _mean(vectors: Iterable[Vector]) -> Row | None:
    import numpy as np

    rows = [np.frombuffer(vector, dtype=np.float32).astype(np.float64) for vector in vectors]
    return np.mean(rows, axis=0) if rows else None


def _directions(rows: list[Row], model: str, at: str) -> Projection:
    """The two directions in which some vectors differ most, each pointing the same way whenever it is computed."""
    import numpy as np

    matrix = np.stack(rows)
    center = matrix.mean(axis=0)
    moved = matrix - center
    values, vectors = np.linalg.eigh(moved.T @ moved)  # the largest last
    total = float(values.clip(0).sum())
    across, up = (_pointing(vectors[:, -number]) for number in (1, 2))
    places = moved @ np.stack([across, up]).T
    width = float(np.quantile(np.abs(places), 0.99)) or 1.0
    spread = float(values[-2:].clip(0).sum()) / total if total > 0 else 0.0
    return Projection(
        model,
        at,
        len(rows),
        spread,
        tuple(center.tolist()),
        tuple(across.tolist()),
        tuple(up.tolist()),
        width,
    )


def _pointing(direction: Row) -> Row:
    import numpy as np

    return direction if direction[int(np.argmax(np.abs(direction)))] >= 0 else -direction


def read_map(call: Call) -> Reply:
    """Every note at its place."""
    return _shown(call, anew=False)


def make_map(call: Call) -> Reply:
    """Give all notes new places, along the directions in which they differ most now."""
    return _shown(call, anew=True)


def _shown(call: Call, *, anew: bool) -> Reply:
    call.require_owner("the map shows all notes, and is their owner's")
    if call.memory.backend_name != "builtin":
        raise PlainmindError(
            f"the engine `{call.memory.backend_name}` keeps no vectors to make a map of",
            hint="`plainmind config set backend builtin`",
        )
    return Reply(call.keeper.map_of(call).show(call, anew=anew))
