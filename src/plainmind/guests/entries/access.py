"""The entry memory of the settings: where it is kept, which tools an agent gets of it, and what it does by itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools.toolbox import ToolBox
from plainmind.guests.entries.config import EntryConfig
from plainmind.guests.entries.hooks import EntryHooks
from plainmind.guests.entries.memory import EntryMemory, open_entries
from plainmind.guests.entries.place import entry_folder, require_entries
from plainmind.guests.entries.together import AllTools
from plainmind.guests.entries.tools import ByItself, EntryToolBox
from plainmind.memory.memory import Memory
from plainmind.memory.translation import limits_of
from plainmind.memory.wiring import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.scoped import ScopedMemory


def entry_memory_of(parts: Parts) -> EntryMemory:
    """Open the entries of the agent that the settings name; whoever does so closes them. Raises ConfigError."""
    settings = parts.loaded.settings
    require_entries(settings)
    config = settings.section(EntryConfig)

    def forget_vectors(hashes: Sequence[str]) -> None:
        if os.path.exists(parts.places.cache):  # also where the provider of today does not use it
            from plainmind.memory.cache import opened_cache

            with opened_cache(parts) as cache:
                cache.forget(hashes)

    return open_entries(
        entry_folder(parts),
        parts.embedder,
        driver=config.driver,
        redact=parts.redactor.without_secrets,
        forget_vectors=forget_vectors,
        twins_from=config.duplicate_from,
    )


def entry_tools_of(parts: Parts, scoped: ScopedMemory, entries: EntryMemory) -> EntryToolBox:
    """The entries within one conversation, as the settings say."""
    settings = parts.loaded.settings
    wanted = settings.section(EntryConfig)
    by_itself = ByItself(
        wanted.recall_max_results,
        wanted.recall_min_score,
        wanted.capture_max_chars,
        by_words_only=parts.embedder.sends_text_to is not None and not settings.send_sessions,
    )
    return EntryToolBox(entries, scoped.access, limits_of(settings), by_itself=by_itself)


def tools_within(memory: Memory, context: SearchContext) -> tuple[ToolBox | AllTools, EntryHooks | None]:
    """All tools that an agent gets in a conversation, and what happens by itself there. Close the box when it ends."""
    scoped, wanted = memory.within(context), memory.parts.loaded.settings.section(EntryConfig)
    notes = ToolBox(scoped)
    if not wanted.enabled:
        return notes, None
    entries = entry_memory_of(memory.parts)
    box = entry_tools_of(memory.parts, scoped, entries)
    hooks = EntryHooks(box, recalls=wanted.auto_recall, captures=wanted.auto_capture)
    return AllTools(notes, box, on_close=entries.close), hooks
