"""The map by meaning: two directions in which the notes differ most, kept, so that a new note moves no other."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import Lock

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import explain_errors, read_file
from plainmind.guests.page import shapes
from plainmind.guests.page.call import Call, Reply
from plainmind.notes.workspace import day_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    from plainmind.base.model import FileState, Vector

    Row: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

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
        from plainmind.base.value import asdict

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
