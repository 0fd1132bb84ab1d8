"""The wire of Gemini, which embeds questions and documents differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plainmind.guests.remote.vectors import field_of, in_order, numbers, tokens_in
from plainmind.guests.remote.wire import Answered, Mode, Request

_TASK_TYPES = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
# From the second generation on, the task stands in front of the text and `taskType` is not taken.
_TASK_PREFIXES = {"query": "task: search result | query: ", "document": "title: none | text: "}
_FIRST_GENERATION = ("gemini-embedding-001", "gemini-embedding-exp", "text-embedding-", "embedding-001")


class GeminiWire:
    """One text is asked for by `embedContent` when it is a question; documents go in batches."""

    name = "gemini"
    default_model = "gemini-embedding-001"
    default_base_url = "https://generativelanguage.googleapis.com/v1beta"
    key_variables: tuple[str, ...] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    max_items = 100
    known_dims: Mapping[str, int] = {
        "gemini-embedding-001": 3072,
        "gemini-embedding-2": 3072,
        "gemini-embedding-2-preview": 3072,
        "text-embedding-004": 768,
    }
    prices: Mapping[str, float] = {
        "gemini-embedding-001": 0.15,
        "gemini-embedding-2": 0.20,
        "gemini-embedding-2-preview": 0.20,
    }

    def headers(self, key: str) -> Mapping[str, str]:
        """Show the key in Google's own header; never in the URL, which gets into logs."""
        return {"x-goog-api-key": key}

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:
        """One request in the batch for each text."""
        name = model.removeprefix("models/")
        requests = [embed_request(name, text, mode, dims) for text in texts]
        if mode == "query" and len(requests) == 1:
            return Request(f"models/{name}:embedContent", requests[0])
        return Request(f"models/{name}:batchEmbedContents", {"requests": requests})

    def answer(self, payload: object, count: int) -> Answered:
        """Read `embedding` or `embeddings`, which are in the order of the requests."""
        if isinstance(payload, dict) and "embedding" in payload:
            rows: object = [payload["embedding"]]
        else:
            rows = field_of(payload, "embeddings")
        vectors = [numbers(field_of(row, "values")) for row in in_order(rows, count)]
        usage = payload.get("usageMetadata") if isinstance(payload, dict) else None
        return Answered(vectors, tokens_in(usage, "totalTokenCount", "promptTokenCount"))


def embed_request(model: str, text: str, mode: Mode, dims: int | None) -> dict[str, Any]:
    """What one text is asked with, alone or in a batch; `model` without `models/`."""
    request: dict[str, Any] = {"model": f"models/{model}"}
    if model.startswith(_FIRST_GENERATION):
        request |= {"content": {"parts": [{"text": text}]}, "taskType": _TASK_TYPES[mode]}
    else:
        request |= {"content": {"parts": [{"text": _TASK_PREFIXES[mode] + text}]}}
    if dims is not None:
        request["outputDimensionality"] = dims
    return request
