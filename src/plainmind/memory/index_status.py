"""What the index holds and who keeps it; while they do not answer, why not: facts for `status`."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind import __version__
from plainmind.base.errors import IndexCorrupt, IndexUnavailable, LockTimeout
from plainmind.base.model import FileState, IndexFingerprint, Source
from plainmind.base.value import value
from plainmind.index.protocol import IndexCounts
from plainmind.memory.wiring import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class IndexStatus:
    """What could be found out about the index."""

    known: Mapping[tuple[Source, str], FileState]
    counts: IndexCounts
    made: IndexFingerprint | None
    store: dict[str, Any]
    trouble: IndexUnavailable | LockTimeout | None = None  # nothing of the above is known then

    @property
    def files(self) -> int | None:
        """How many files are indexed; None while nobody knows: an index that cannot be asked is not an empty one."""
        return None if self.trouble else sum(self.counts.files.values())

    @property
    def chunks(self) -> int | None:
        """How many chunks are indexed; None while nobody knows."""
        return None if self.trouble else sum(self.counts.chunks.values())


def index_of(parts: Parts) -> IndexStatus:
    """Ask the index once: a server that is gone takes seconds to be given up."""
    try:
        with parts.store.reading() as reader:
            known, counts, made = reader.files(), reader.counts(), reader.fingerprint()
        return IndexStatus(known, counts, made, dict(parts.store.describe()))
    except IndexCorrupt:
        raise  # it is set aside, and whoever asks again is answered
    except (IndexUnavailable, LockTimeout) as error:
        driver = parts.loaded.settings.store.driver
        facts = {"driver": driver, "problem": str(error), "hint": error.hint}
        return IndexStatus({}, IndexCounts(files={}, chunks={}), None, facts, error)


def engine_of(parts: Parts, index: IndexStatus, *, deep: bool) -> dict[str, Any]:
    """Who indexes and searches, which version, and whether it works."""
    if parts.backend is not None:
        return dict(parts.backend.describe(deep=deep))
    driver = parts.loaded.settings.store.driver
    if index.trouble is not None:
        name = "builtin" if driver == "sqlite" else driver
        return {"name": name, "version": None, "healthy": False, **_reason(index.store)}
    if driver == "sqlite":
        return {"name": "builtin", "version": __version__, "healthy": True}
    return {"name": driver, "version": index.store.get(driver), "healthy": True}


def _reason(store: Mapping[str, Any]) -> dict[str, Any]:
    return {"problem": store["problem"], "hint": store["hint"]}
