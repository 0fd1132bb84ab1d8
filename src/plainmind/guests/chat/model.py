"""What an agent asks of a chat model, and what it gets back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from plainmind.base.errors import PlainmindError
from plainmind.base.value import field, value
from plainmind.text.chunking import estimated_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.agent.tools import Tool


# As transcripts keep them: {"role": "user" | "assistant" | "toolResult", "content": text or blocks, …}.
Message: TypeAlias = Mapping[str, Any]

# Why an answer ended, in the words of transcripts.
STOPPED, LENGTH, TOOL_USE, ABORTED, FAILED = "stop", "length", "toolUse", "aborted", "error"


@value
class ToolCall:
    """What a model wants done. `arguments` is the text that it sent when that is not a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str


@value
class Usage:
    """Tokens of one answer. What came from a cache is not counted in `input`."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    is_estimated: bool = False  # the endpoint did not say

    @property
    def total(self) -> int:
        """How full the context is after the answer."""
        return self.input + self.output + self.cache_read + self.cache_write

    def as_fields(self) -> dict[str, Any]:
        """As a transcript keeps it."""
        counted = {"input": self.input, "output": self.output, "totalTokens": self.total}
        cached = {"cacheRead": self.cache_read, "cacheWrite": self.cache_write}
        return counted | {name: count for name, count in cached.items() if count} | self._how()

    def _how(self) -> dict[str, Any]:
        return {"estimated": True} if self.is_estimated else {}


@value
class Request:
    """One question: the system's words, the conversation, and the tools that may be used."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()


@value
class Reply:
    """What a model said, and what it wants done."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage(0, 0)
    stop: str = STOPPED


class ChatFailure(PlainmindError):
    """A chat model did not answer, or not to the end; `partial` is what it had said by then."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        is_too_long: bool = False,
        partial: Reply | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.is_too_long = is_too_long  # the conversation, for this model
        self.partial = partial


def unheard(text: str) -> None:
    """Nothing listens while the model speaks."""


def never() -> bool:
    """Nothing stops the model."""
    return False


class ChatModel(Protocol):
    """A model that speaks. Safe to use from one thread at a time."""

    @property
    def provider(self) -> str:
        """Whose language its endpoint speaks."""

    @property
    def name(self) -> str:
        """Which model it is."""

    @property
    def context_window(self) -> int:
        """How many tokens it takes, its answer included."""

    def reply(
        self,
        request: Request,
        *,
        on_text: Callable[[str], None] = unheard,
        stopped: Callable[[], bool] = never,
    ) -> Reply:
        """Answer; `on_text` hears it piece by piece.

        When `stopped` turns true, what was said by then is the answer, without calls and with `stop` "aborted".
        Raises ChatFailure.
        """

    def close(self) -> None:
        """Let go of connections."""


@value
class ChatModelSettings:
    """One endpoint and one model of it."""

    model: str
    base_url: str | None = None  # None: the provider's own
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str | None = field(default=None, repr=False)
    context_window: int | None = None  # None: what models of this provider usually take
    max_output_tokens: int | None = None
    silence_s: float = 300.0  # longest wait for the next word
    answer_s: float = 3600.0  # longest answer
    allow_private: bool = False  # a person typed this address, so it may be on a private network


_A_MESSAGE = 4  # role and marks


def tokens_in(message: Message) -> int:
    """Guess the tokens of one message; images count like a page of text."""
    return _A_MESSAGE + sum(map(estimated_tokens, _texts_of(message.get("content"))))


def tokens_of(request: Request) -> int:
    """Guess the tokens of a whole request."""
    spoken = estimated_tokens(request.system) + sum(map(tokens_in, request.messages))
    return spoken + sum(
        estimated_tokens(tool.description + _json(tool.input_schema)) for tool in request.tools
    )


def estimated_usage(request: Request, reply: Reply) -> Usage:
    """Guess what an answer has used."""
    calls = (f"{call.name} {_json(call.arguments)}" for call in reply.calls)
    said = estimated_tokens(reply.text) + sum(map(estimated_tokens, calls))
    return Usage(input=tokens_of(request), output=said, is_estimated=True)


def _texts_of(content: object) -> Iterable[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            if block.get("type") == "image":
                yield " " * 6000
            else:
                yield _json({name: found for name, found in block.items() if name != "type"})


def _json(found: object) -> str:
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
