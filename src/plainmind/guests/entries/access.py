"""The entry memory of the settings: where it is kept, which tools an agent gets of it, and what it does by itself."""

from __future__ import annotations

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools.toolbox import ToolBox
from plainmind.guests.entries.config import EntryConfig
from plainmind.guests.entries.hooks import EntryHooks
from plainmind.guests.entries.memory import EntryMemory, open_entries
from plainmind.guests.entries.place import entry_folder, require_entries
from plainmind.guests.entries.together import AllTools
from plainmind.guests.entries.tools import ByItself, EntryToolBox
from plainmind.memory.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.scoped import ScopedMemory


def entry_memory_of(memory: Memory) -> EntryMemory:
    """Open the entries of the agent that the settings name; whoever does so closes them. Raises ConfigError."""
    settings = memory.settings
    require_entries(settings)
    config = settings.section(EntryConfig)
    return open_entries(
        entry_folder(memory),
        memory.embedder,
        driver=config.driver,
        redact=memory.redactor().without_secrets,
        forget_vectors=memory.forget_vectors,
        twins_from=config.duplicate_from,
    )


def entry_tools_of(memory: Memory, scoped: ScopedMemory, entries: EntryMemory) -> EntryToolBox:
    """The entries within one conversation, as the settings say."""
    wanted = memory.settings.section(EntryConfig)
    by_itself = ByItself(
        wanted.recall_max_results,
        wanted.recall_min_score,
        wanted.capture_max_chars,
        by_words_only=memory.sends_questions_only,
    )
    return EntryToolBox(entries, scoped.access, memory.limits, by_itself=by_itself)


def tools_within(memory: Memory, context: SearchContext) -> tuple[ToolBox | AllTools, EntryHooks | None]:
    """All tools that an agent gets in a conversation, and what happens by itself there. Close the box when it ends."""
    scoped, wanted = memory.within(context), memory.settings.section(EntryConfig)
    notes = ToolBox(scoped)
    if not wanted.enabled:
        return notes, None
    entries = entry_memory_of(memory)
    box = entry_tools_of(memory, scoped, entries)
    hooks = EntryHooks(box, recalls=wanted.auto_recall, captures=wanted.auto_capture)
    return AllTools(notes, box, on_close=entries.close), hooks
