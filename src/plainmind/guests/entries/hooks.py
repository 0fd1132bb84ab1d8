"""What the entry memory does around a turn, without being called: remind the model, and propose what was said."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.errors import PlainmindError
from plainmind.guests.chat.listener import Listener
from plainmind.guests.chat.models.protocol import Message
from plainmind.guests.entries.tools import EntryToolBox
from plainmind.sessions.entries import text_of


class EntryHooks:
    """Called by whoever leads a conversation; a memory that fails is mentioned, and costs no turn."""

    def __init__(self, box: EntryToolBox, *, recalls: bool, captures: bool) -> None:
        self._box = box
        self._recalls = recalls
        self._captures = captures

    def before(self, messages: Sequence[Message], listener: Listener) -> str:
        """What the model is reminded of in this turn: data, for a user's turn; "" mostly.

        It is not for the transcript: what is forgotten would stay there.
        """
        said = last_words(messages)
        return self._box.recalled_for(said, listener.notice) if self._recalls and said else ""

    def after(self, messages: Sequence[Message], listener: Listener) -> None:
        """Propose what the user said in the turn that was answered just now."""
        said = last_words(messages)
        if not self._captures or not said:
            return
        try:
            proposed = self._box.capture([said])
        except PlainmindError as error:
            listener.notice(f"what was said could not be proposed for keeping: {error}")
            return
        if proposed:
            listener.notice("proposed for keeping; `plainmind entries review` shows it")


def last_words(messages: Sequence[Message]) -> str:
    """What the user said last."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return text_of(message.get("content"))
    return ""


def reminded(messages: Sequence[Message], reminder: str) -> tuple[Message, ...]:
    """Put a reminder before what the user said last."""
    if not reminder:
        return tuple(messages)
    users = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    at = users[-1] if users else 0
    return (*messages[:at], {"role": "user", "content": reminder}, *messages[at:])
