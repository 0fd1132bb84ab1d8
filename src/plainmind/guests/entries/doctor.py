"""What could be wrong with the entry memory, for `doctor`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plainmind.guests.entries.status import entry_status
from plainmind.memory.doctor import Check
from plainmind.memory.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAME = "entries"


def examine_entries(memory: Memory) -> Iterator[Check]:
    """Nothing where there are none and nobody has switched them on."""
    facts = entry_status(memory, deep=True)
    if facts is None:
        return
    if facts["entries"] is not None:
        kept = f"{facts['entries']} in {facts['path']}" + (
            "" if facts["enabled"] else ", not given to agents"
        )
        yield Check(_NAME, "ok", kept)
    if facts["waiting"]:
        yield Check(_NAME, "ok", f"{facts['waiting']} to be reviewed", "run `plainmind entries review`")
    if facts["unreadable"]:
        yield Check(
            _NAME,
            "warning",
            f"lines of {facts['path']} that are no entries: {facts['unreadable']}",
            "nobody finds them, and forgetting does not see them; each line is a JSON object with an `id` and a `text`",
        )
    if facts["problem"] is not None:
        # What is switched off harms nobody until somebody forgets something.
        yield Check(_NAME, "problem" if facts["enabled"] else "warning", facts["problem"], facts["hint"])
    else:
        yield from _index(facts["driver"], facts["index"])


def _index(driver: str, index: Mapping[str, Any]) -> Iterator[Check]:
    if not index["behind"]:
        yield Check(_NAME, "ok", f"their index is in {driver}, and up to date")
    else:
        changes = f"{index['behind']} {'change' if index['behind'] == 1 else 'changes'}"
        how = f"lacks {changes}" if index["made"] else "is not made yet"
        yield Check(_NAME, "ok", f"their index in {driver} {how}; the next recall sees to it")
    if index["recovered"]:
        yield Check(_NAME, "warning", f"their damaged index was replaced {index['recovered']}")
