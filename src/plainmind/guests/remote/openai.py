"""The wire of OpenAI, and of every server that speaks like it: Ollama, LM Studio, vLLM, OpenRouter, llama-server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plainmind.guests.remote.vectors import field_of, in_order, numbers, tokens_in
from plainmind.guests.remote.wire import Answered, Mode, Request


class OpenAIWire:
    """`packed` asks for base64, a quarter of the bytes; OpenAI itself has it, other servers know it or fail."""

    name = "openai"
    default_model = "text-embedding-3-small"
    default_base_url = "https://api.openai.com/v1"
    key_variables: tuple[str, ...] = ("OPENAI_API_KEY",)
    max_items = 2048
    known_dims: Mapping[str, int] = {
        "text-embedding-3-small": 1536,
        "text-embedding-3-large": 3072,
        "text-embedding-ada-002": 1536,
    }
    prices: Mapping[str, float] = {
        "text-embedding-3-small": 0.02,
        "text-embedding-3-large": 0.13,
        "text-embedding-ada-002": 0.10,
    }

    def __init__(self, *, packed: bool = False) -> None:
        self._packed = packed

    def headers(self, key: str) -> Mapping[str, str]:
        """Show the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"}

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:  # noqa: ARG002
        """Nothing but model and input, unless more was asked for: some servers refuse what they do not know."""
        payload: dict[str, Any] = {"model": model, "input": [*texts]}
        if dims is not None:
            payload["dimensions"] = dims
        if self._packed:
            payload["encoding_format"] = "base64"
        return Request("embeddings", payload)

    def answer(self, payload: object, count: int) -> Answered:
        """Read `data[].embedding` by `data[].index`; some servers leave out the index, some the usage."""
        rows = in_order(field_of(payload, "data"), count)
        vectors = [numbers(field_of(row, "embedding")) for row in rows]
        usage = payload.get("usage") if isinstance(payload, dict) else None
        return Answered(vectors, tokens_in(usage, "total_tokens", "prompt_tokens"))
