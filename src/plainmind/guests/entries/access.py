"""The entry memory of the settings: where it is kept, which tools an agent gets of it, and whether it is in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

from plainmind.base.errors import ConfigError, ConflictError, PlainmindError
from plainmind.base.extras import install_hint
from plainmind.base.model import EVERY_SCOPE
from plainmind.config.load import index_folder
from plainmind.guests.entries.config import EntryConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.recalls import Asker
    from plainmind.agent.scope import SearchContext
    from plainmind.agent.tools import Tool, ToolBox
    from plainmind.config.settings import Settings
    from plainmind.guests.entries.memory import EntryMemory
    from plainmind.guests.entries.model import Entry
    from plainmind.guests.entries.toolbox import AllTools, EntryHooks, EntryToolBox
    from plainmind.memory.doctor import Check
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory
    from plainmind.notes.notebook import ForgottenEntry


def entry_folder(memory: Memory) -> str:
    """The folder of the agent that the settings name."""
    settings = memory.settings
    return index_folder(
        settings.section(EntryConfig).path,
        home=memory.home,
        agent_id=settings.agent_id,
        environ=memory.environ,
    )


def entry_index_folder(memory: Memory) -> str:
    """The folder of what finds them again."""
    return os.path.join(entry_folder(memory), "index")


def has_entries(memory: Memory) -> bool:
    """Whether there is a file of entries, or an index of one that is gone; they may be switched off by now."""
    folder = entry_folder(memory)
    return any(os.path.lexists(os.path.join(folder, name)) for name in ("entries.jsonl", "index"))


def require_entries(settings: Settings) -> None:
    """Raise ConfigError when what keeps the entries is not installed."""
    from importlib.util import find_spec

    if settings.section(EntryConfig).driver == "lancedb" and find_spec("lancedb") is None:
        raise ConfigError(
            "the entry memory is kept in LanceDB, which is not installed",
            key="entries.driver",
            hint=f"install it: {install_hint('lancedb')}; or `plainmind config set entries.driver sqlite`",
        )


def require_if_on(settings: Settings) -> None:
    """Raise ConfigError when the entries are switched on and what keeps them is not installed."""
    if settings.section(EntryConfig).enabled:
        require_entries(settings)


def entry_memory_of(memory: Memory) -> EntryMemory:
    """Open the entries of the agent that the settings name; the caller closes them. Raises ConfigError."""
    from plainmind.guests.entries.memory import open_entries
    from plainmind.memory.forget import forget_recalled_entries

    settings = memory.settings
    require_entries(settings)
    config = settings.section(EntryConfig)
    return open_entries(
        entry_folder(memory),
        memory.embedder,
        driver=config.driver,
        redact=memory.redactor().without_secrets,
        forget_vectors=memory.forget_vectors,
        forget_recalls=partial(forget_recalled_entries, memory),
        twins_from=config.duplicate_from,
    )


def entry_tools_of(memory: Memory, scoped: ScopedMemory, entries: EntryMemory) -> EntryToolBox:
    """The entries within one conversation, as the settings say."""
    from plainmind.guests.entries.toolbox import ByItself, EntryToolBox

    wanted = memory.settings.section(EntryConfig)
    by_itself = ByItself(
        wanted.recall_max_results,
        wanted.recall_min_score,
        wanted.capture_max_chars,
        by_words_only=memory.sends_questions_only,
    )
    return EntryToolBox(
        entries,
        scoped.access,
        memory.limits,
        by_itself=by_itself,
        conversation=repr(scoped.context),
        begin_recall=scoped.begin_recall,
        redact=memory.redactor().redact if memory.policy.values.hides_secrets else None,
    )


def are_entries_on(memory: Memory) -> bool:
    """Whether agents get the tools of the entry memory."""
    return memory.settings.section(EntryConfig).enabled


def join_tools(
    memory: Memory, scoped: ScopedMemory, tools: Sequence[Tool]
) -> tuple[AllTools, Callable[[], None]]:
    """A box with the tools of the notes and of the entries, and what closes the entries when it is no longer used."""
    from plainmind.agent.tools import ToolBox
    from plainmind.guests.entries.toolbox import AllTools

    entries = entry_memory_of(memory)
    return AllTools(ToolBox(scoped), entry_tools_of(memory, scoped, entries), tools), entries.close


def tools_within(
    memory: Memory, context: SearchContext, asker: Asker | None = None
) -> tuple[ToolBox | AllTools, EntryHooks | None]:
    """All tools that an agent gets in a conversation, and what happens by itself there. Close the box when it ends."""
    from plainmind.agent.tools import ToolBox
    from plainmind.guests.entries.toolbox import AllTools, EntryHooks

    scoped, wanted = memory.within(context, asker=asker), memory.settings.section(EntryConfig)
    notes = ToolBox(scoped)
    if not wanted.enabled:
        return notes, None
    entries = entry_memory_of(memory)
    box = entry_tools_of(memory, scoped, entries)
    hooks = EntryHooks(box, recalls=wanted.auto_recall, captures=wanted.auto_capture)
    return AllTools(notes, box, on_close=entries.close), hooks


def status_facts(memory: Memory, *, deep: bool) -> dict[str, Any]:
    """What `status` says of the entry memory."""
    return {"entries": entry_status(memory, deep=deep)}


def entry_status(memory: Memory, *, deep: bool) -> dict[str, Any] | None:
    """Facts from the file of entries alone, `deep` also from their index; None when there are none and they are off.

    What is wrong is `problem`, with a `hint`; counts that nobody knows are None.
    """
    wanted = memory.settings.section(EntryConfig)
    if not wanted.enabled and not has_entries(memory):
        return None
    from plainmind.guests.entries.entry_file import EntryFile

    file = EntryFile(entry_folder(memory))
    facts: dict[str, Any] = {
        "enabled": wanted.enabled,
        "driver": wanted.driver,
        "path": file.path,
        "entries": None,
        "waiting": None,
        "unreadable": None,
        "problem": None,
        "hint": None,
    }
    try:
        _, entries = file.read()
        waiting = sum(entry.is_waiting for entry in entries.values())
        facts |= {"entries": len(entries) - waiting, "waiting": waiting, "unreadable": file.unreadable()}
        require_entries(memory.settings)
        if deep:
            facts["index"] = _index_facts(
                memory, {entry.id for entry in entries.values() if not entry.is_waiting}
            )
    except PlainmindError as error:
        facts |= {"problem": str(error), "hint": error.hint}
        facts |= {"index": {"healthy": False}} if deep else {}
    return facts


def _index_facts(memory: Memory, kept: set[str]) -> dict[str, Any]:
    """What their index says, without bringing it up to date: the next recall does that."""
    folder = entry_index_folder(memory)
    if not os.path.isdir(folder):
        return {"healthy": True, "made": False, "behind": len(kept), "recovered": None}
    from plainmind.index.store import open_store

    with closing(open_store(memory.settings.section(EntryConfig).driver, folder=folder)) as store:
        with store.reading() as reader:
            is_made = reader.fingerprint() is not None
            known = {path for _, path in reader.files()}
        recovered = store.describe().get("recovered")
    return {"healthy": True, "made": is_made, "behind": len(kept ^ known), "recovered": recovered}


_NAME = "entries"


def examine_entries(memory: Memory) -> Iterator[Check]:
    """Nothing where there are none and they are switched off."""
    from plainmind.memory.doctor import Check

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
        # What is switched off does no harm until something is to be forgotten.
        yield Check(_NAME, "problem" if facts["enabled"] else "warning", facts["problem"], facts["hint"])
    else:
        yield from _index_checks(facts["driver"], facts["index"])


def _index_checks(driver: str, index: Mapping[str, Any]) -> Iterator[Check]:
    from plainmind.memory.doctor import Check

    if not index["behind"]:
        yield Check(_NAME, "ok", f"their index is in {driver}, and up to date")
    else:
        changes = f"{index['behind']} {'change' if index['behind'] == 1 else 'changes'}"
        how = f"lacks {changes}" if index["made"] else "is not made yet"
        yield Check(_NAME, "ok", f"their index in {driver} {how}; the next recall sees to it")
    if index["recovered"]:
        yield Check(_NAME, "warning", f"their damaged index was replaced {index['recovered']}")


class EntryKeeper:
    """The entries of a memory, as `memory/forget.py` asks for them; their index is opened only to remove some."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def everything(self) -> tuple[list[Entry], tuple[str, ...]]:
        """All entries, also those that wait for a review; and what could not be read of them."""
        if not has_entries(self._memory):
            return [], ()
        from plainmind.guests.entries.entry_file import EntryFile

        file = EntryFile(entry_folder(self._memory))
        try:
            _, entries = file.read()
            unreadable = file.unreadable()
        except PlainmindError as error:
            return [], (_not_looked_into(error),)
        remarks = (f"not looked into: {unreadable} of the lines of {file.path}, which are no entries",)
        return list(entries.values()), remarks if unreadable else ()

    def meant_by(self, what: str, among: Sequence[Entry]) -> list[Entry]:
        """Those that have the words of a text."""
        from plainmind.guests.entries.entry_file import entries_meant

        return entries_meant(among, what)

    def saying(self, lines: Sequence[str], among: Sequence[Entry]) -> list[Entry]:
        """Those that say the same as a line."""
        from plainmind.guests.entries.entry_file import entries_that_say

        return entries_that_say(among, lines)

    def refusal(self) -> PlainmindError | None:
        """Why no entry can be removed now."""
        try:
            require_entries(self._memory.settings)
        except PlainmindError as error:
            return error
        return None

    def erase(self, doomed: Sequence[ForgottenEntry]) -> None:
        """Remove those that are there, and as they were shown: one that is gone by now needs nothing."""
        with closing(entry_memory_of(self._memory)) as entries:
            kept = entries.list(scopes=EVERY_SCOPE)
            waiting = entries.list(scopes=EVERY_SCOPE, waiting=True)
            now = {entry.id: entry.text for entry in (*kept, *waiting)}
            for entry in doomed:
                if now.get(entry.id, entry.text) != entry.text:
                    raise ConflictError(
                        f"the entry `{entry.id}` has changed since it was chosen; nothing was removed",
                        hint="choose it again",
                    )
            entries.forget([entry.id for entry in doomed if entry.id in now], scopes=EVERY_SCOPE)

    def catch_up(self, text: str) -> str | None:
        """Take out of their index what is gone from their file; what to say when that did not work."""
        if not has_entries(self._memory):
            return None

        try:
            with closing(entry_memory_of(self._memory)) as entries:
                entries.recall(text, scopes=EVERY_SCOPE, limit=1, by_words_only=True)
        except PlainmindError as error:
            return _not_looked_into(error)
        return None

    def ids_with(self, texts: Sequence[str]) -> tuple[str, ...]:
        """The entries that have one of some texts."""
        from plainmind.guests.entries.entry_file import EntryFile

        _, entries = EntryFile(entry_folder(self._memory)).read()
        return tuple(entry.id for entry in entries.values() if any(text in entry.text for text in texts))


def _not_looked_into(error: PlainmindError) -> str:
    return f"the entries could not be looked into: {error}" + (f" ({error.hint})" if error.hint else "")
