"""Files that an index knows as they were, and that have been renamed, deleted or rewritten since."""

from __future__ import annotations

from collections.abc import Callable

from plainmind.index.plan import plan_sync
from plainmind.index.protocol import IndexStore
from plainmind.memory.wiring import Parts

_ALL_LINES = 1_000_000_000


def outdated_with(parts: Parts, store: IndexStore, has_it: Callable[[str], bool]) -> list[str]:
    """Name those of which the index holds a text; a sync takes them out, but leaves words of them for a while."""
    found = parts.workspace.discover()
    source = parts.workspace.source
    with store.reading() as reader:
        plan = plan_sync(found, reader.files(), source)
        return [
            path
            for path in (*(file.path for file in plan.to_read), *plan.missing, *plan.hidden)
            if any(has_it(chunk.text) for chunk in reader.chunks_between(source, path, 1, _ALL_LINES))
        ]
