"""The memory flush: before a context is compacted, a silent turn in which the model saves what lasts.

The model can do nothing but hand over texts. What becomes of them is ours, in this order, so that a crash at any moment
loses nothing and doubles nothing:

1. the texts go into the transcript (`custom`, `memory_flush`), with the id that their note will have;
2. the note goes to the log of the day, under that id, which is written once however often it is tried;
3. the registry says that this compaction cycle is flushed.

A flush that was cut off after 1 is finished from the transcript: the model is not asked twice. Compacting is up to the
caller, after `flush` has returned: then 3 is on disk, or the reason why there is no note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plainmind.agent.protocol import AgentMemory
from plainmind.base.errors import ConflictError, PlainmindError, ScopeDenied
from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.guests.chat.flush_prompts import REQUEST, SYSTEM
from plainmind.guests.chat.flush_turn import FlushTurn
from plainmind.guests.chat.models.protocol import ChatModel, Message, never
from plainmind.guests.chat.models.tokens import tokens_in
from plainmind.guests.chat.room import RoomSettings
from plainmind.sessions.entries import Entry, id_of
from plainmind.sessions.store import Session, SessionStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.notes.notebook import Remembered

SAVED, NOTHING, FAILED = "saved", "nothing", "failed"
_RECORD = "memory_flush"


@value
class FlushSettings:
    """When and how to ask."""

    room: RoomSettings
    prompt: str = REQUEST
    system_prompt: str = SYSTEM


@value
class Flushed:
    """What became of a flush."""

    outcome: str  # SAVED, NOTHING or FAILED
    note: Remembered | None = None
    text: str = ""
    reason: str = ""  # why it failed


@value
class _Unsaved:
    """What was said since the last flush, and the record of a flush that was cut off."""

    messages: Sequence[Message]
    through: str | None  # the id of the latest entry that a flush covers, this one included
    record: dict[str, Any] | None


class Flush:
    """Flushes one session."""

    def __init__(
        self,
        store: SessionStore,
        session: Session,
        memory: AgentMemory,
        model: ChatModel,
        settings: FlushSettings,
    ) -> None:
        self._store = store
        self._session = session
        self._memory = memory
        self._model = model
        self._settings = settings

    def run(self, *, by_hand: bool = False, stopped: Callable[[], bool] = never) -> Flushed:
        """Save what lasts of what was said since the last flush.

        One that is asked for by hand leaves that of the compaction cycle to come. What goes wrong is written into the
        registry and returned; only a registry that cannot be written raises.
        """
        try:
            return self._flushed(by_hand=by_hand, stopped=stopped)
        except PlainmindError as error:
            self._record_failure(error)
            return Flushed(FAILED, reason=str(error))

    def _flushed(self, *, by_hand: bool, stopped: Callable[[], bool]) -> Flushed:
        access = self._memory.access
        if not (access.is_allowed and access.writes):
            raise ScopeDenied(access.reason or "nothing may be saved from this conversation")
        entry = self._entry()
        unsaved = self._unsaved(entry.get("memoryFlushThrough"))
        cycle = entry.get("compactionCount", 0)
        if unsaved.record is not None:
            done = self._finish(unsaved.record)
            is_of_cycle = unsaved.record.get("compactionCount") == cycle
            is_enough = not by_hand and not unsaved.record.get("byHand") and is_of_cycle
            unsaved = self._unsaved(unsaved.record.get("through"))
            if is_enough or not unsaved.messages:
                return done
        record = {
            "compactionCount": cycle,
            "through": unsaved.through,
            "noteId": self._note_id(cycle, unsaved.through, by_hand=by_hand),
            "byHand": by_hand,
            "text": self._asked(unsaved.messages, stopped) if unsaved.messages else "",
        }
        if unsaved.messages:
            self._session.append({"type": "custom", "customType": _RECORD, "data": record})
        return self._finish(record)

    def _note_id(self, cycle: object, through: object, *, by_hand: bool) -> str:
        """The id of the note of a cycle, or of one by hand that covers what was said up to an entry."""
        name = f"{self._session.id}:{cycle}" + (f":{through}" if by_hand else "")
        return f"f{sha256_text(name)[:24]}"

    def _is_own(self, record: dict[str, Any]) -> bool:
        """Whether this session was flushed, and not the one that it was forked from."""
        cycle, through, by_hand = (record.get(name) for name in ("compactionCount", "through", "byHand"))
        return bool(record["noteId"] == self._note_id(cycle, through, by_hand=bool(by_hand)))

    def _asked(self, messages: Sequence[Message], stopped: Callable[[], bool]) -> str:
        turn = FlushTurn(self._model, self._settings.system_prompt, self._settings.prompt)
        return turn.text(messages, most_tokens=self._settings.room.compacts_above, stopped=stopped)

    def _finish(self, record: dict[str, Any]) -> Flushed:
        """Take the last two steps, whether they were begun before or not."""
        text = record.get("text") or ""
        note = self._noted(text, record["noteId"]) if text else None
        fields: dict[str, Any] = {
            "memoryFlushAt": round(self._store.clock() * 1000),
            "memoryFlushThrough": record.get("through"),
            "memoryFlushNote": None if note is None else f"{note.path}#L{note.start_line}-L{note.end_line}",
            "memoryFlushFailure": None,
        }
        if not record.get("byHand"):
            fields["memoryFlushCompactionCount"] = record["compactionCount"]
        self._update(fields)
        return Flushed(SAVED if note is not None else NOTHING, note, text)

    def _noted(self, text: str, note_id: str) -> Remembered | None:
        try:
            return self._memory.append(text, note_id=note_id)
        except ConflictError:
            return None  # it was written, and forgotten since: that is no reason to write it again

    def _record_failure(self, error: PlainmindError) -> None:
        at = round(self._store.clock() * 1000)
        cycle = self._entry().get("compactionCount", 0)
        self._update({"memoryFlushFailure": {"at": at, "compactionCount": cycle, "reason": str(error)[:500]}})

    # By its id: its key may be another conversation's by now, begun in another window.

    def _entry(self) -> Entry:
        return self._store.entry(self._session.id)

    def _update(self, fields: dict[str, Any]) -> None:
        self._store.update(self._session.id, **fields)

    def _unsaved(self, since: object) -> _Unsaved:
        """Read back to where the last flush ended."""
        messages: list[Message] = []
        through = since if isinstance(since, str) else None
        left = self._settings.room.compacts_above
        for placed in self._session.path_to():
            entry = placed.entry or {}
            name = id_of(entry)
            if (name is not None and name == since) or left < 0:
                break
            record = _record_of(entry)
            if record is not None and record.get("through") != since:
                if self._is_own(record):
                    return _Unsaved((), through, record)
                since = record.get("through")
            message = _message_of(entry)
            if message is not None:
                through = name if not messages else through
                messages.append(message)
                left -= tokens_in(message)
        return _Unsaved(messages[::-1], through, None)


def _record_of(entry: Entry) -> dict[str, Any] | None:
    data = entry.get("data")
    is_record = entry.get("type") == "custom" and entry.get("customType") == _RECORD
    return data if is_record and isinstance(data, dict) and isinstance(data.get("noteId"), str) else None


def _message_of(entry: Entry) -> Message | None:
    message = entry.get("message")
    return message if entry.get("type") == "message" and isinstance(message, dict) else None
