"""The silent turn of a flush: from a conversation to the text of one note, whatever the model does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from plainmind.agent.tools.definitions import APPEND
from plainmind.guests.chat.flush_prompts import KEPT, NO_TEXT, OTHER_TOOL, USE_THE_TOOL, is_mark, says_nothing
from plainmind.guests.chat.models.protocol import (
    ABORTED,
    ChatFailure,
    ChatModel,
    Message,
    Reply,
    Request,
    ToolCall,
)
from plainmind.guests.chat.retelling import cut, retold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# More than a model can have to say about one context; a longer answer is a model that has lost its way.
MOST_NOTE_CHARS = 40_000
_MOST_ROUNDS = 8
_MOST_REMINDERS = 2  # of a model that speaks instead of saving: each costs the whole conversation again


class FlushTurn:
    """Asks one model once. It gets `memory_append` and nothing else, and even that only collects texts."""

    def __init__(self, model: ChatModel, system_prompt: str, prompt: str) -> None:
        self._model = model
        self._system_prompt = system_prompt
        self._prompt = prompt
        self._texts: list[str] = []

    def text(self, messages: Sequence[Message], *, most_tokens: int, stopped: Callable[[], bool]) -> str:
        """The note that the model wants saved; "" for none. Raises ChatFailure when it said neither."""
        told = retold(messages, most_tokens=most_tokens)
        try:
            self._take_turns([{"role": "user", "content": f"{told}\n\n{self._prompt}"}], stopped)
        except ChatFailure:
            if not self._texts:
                raise
            # What was handed over before the connection broke is better saved than asked for again.
        return cut("\n\n".join(dict.fromkeys(self._texts)), MOST_NOTE_CHARS)

    def _take_turns(self, messages: list[Message], stopped: Callable[[], bool]) -> None:
        reminders = 0
        for _ in range(_MOST_ROUNDS):
            request = Request(self._system_prompt, tuple(messages), (APPEND,))
            reply = self._model.reply(request, stopped=stopped)
            if reply.stop == ABORTED:
                raise ChatFailure("the flush was stopped", hint="`plainmind flush` does it again")
            if not reply.calls and (self._texts or says_nothing(reply.text)):
                return
            reminders += not reply.calls
            if reminders > _MOST_REMINDERS:
                break
            messages += self._answered(reply)
        if not self._texts:
            raise ChatFailure(
                f"{self._model.name} saved nothing, and did not say that there is nothing to save",
                hint="choose a model that can use tools; `plainmind flush` asks again",
            )

    def _answered(self, reply: Reply) -> list[Message]:
        said: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
        said += [block_of(call) for call in reply.calls]
        answers = [
            {
                "role": "toolResult",
                "toolCallId": call.id,
                "toolName": call.name,
                "content": [{"type": "text", "text": self._taken(call)}],
            }
            for call in reply.calls
        ]
        asked_again = [] if reply.calls else [{"role": "user", "content": USE_THE_TOOL}]
        return [{"role": "assistant", "content": said}, *answers, *asked_again]

    def _taken(self, call: ToolCall) -> str:
        """Take the text of a call. Whatever else stands in its arguments, a path or a date, is not ours to follow."""
        if call.name != APPEND.name:
            return OTHER_TOOL
        text = _text_in(call.arguments)
        if is_mark(text):
            return NO_TEXT
        self._texts.append(text.strip())
        return KEPT


def block_of(call: ToolCall) -> dict[str, Any]:
    """A call as transcripts keep it."""
    return {"type": "toolCall", "id": call.id, "name": call.name, "arguments": call.arguments}


def _text_in(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):  # not an object: some models send the bare text, or a JSON string
        try:
            read = json.loads(arguments)
        except (ValueError, RecursionError):
            return ""
        return read if isinstance(read, str) else ""
    text = arguments.get("text")
    return text if isinstance(text, str) else ""
