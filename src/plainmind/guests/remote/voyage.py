"""Voyage: OpenAI's wire and batch jobs, except that it embeds questions and documents differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from plainmind.guests.remote.batch_endpoint import jsonl
from plainmind.guests.remote.openai import OpenAIBatches, OpenAIWire
from plainmind.guests.remote.wire import Mode, Request


class VoyageWire(OpenAIWire):
    """OpenAI's, but for the names of some parameters."""

    name = "voyage"
    default_model = "voyage-4-large"
    default_base_url = "https://api.voyageai.com/v1"
    key_variables: tuple[str, ...] = ("VOYAGE_API_KEY",)
    max_items = 1000
    known_dims: Mapping[str, int] = {
        "voyage-4-large": 1024,
        "voyage-4": 1024,
        "voyage-4-lite": 1024,
        "voyage-3-large": 1024,
        "voyage-3.5": 1024,
        "voyage-3.5-lite": 1024,
        "voyage-code-3": 1024,
        "voyage-finance-2": 1024,
        "voyage-law-2": 1024,
    }
    prices: Mapping[str, float] = {
        "voyage-4-large": 0.12,
        "voyage-4": 0.06,
        "voyage-4-lite": 0.02,
        "voyage-3-large": 0.18,
        "voyage-3.5": 0.06,
        "voyage-3.5-lite": 0.02,
        "voyage-code-3": 0.18,
        "voyage-finance-2": 0.12,
        "voyage-law-2": 0.12,
    }

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:
        """Say by `input_type` whether these are questions."""
        payload: dict[str, Any] = {"model": model, "input": [*texts], "input_type": mode}
        if dims is not None:
            payload["output_dimension"] = dims
        if self._packed:
            payload["encoding_format"] = "base64"
        return Request("embeddings", payload)


class VoyageBatches(OpenAIBatches):
    """Jobs of 100,000 texts at most, done within twelve hours at two thirds of the price."""

    max_items = 100_000
    price_factor = 0.67
    completion_window: ClassVar[str] = "12h"

    def line(self, hash: str, text: str) -> bytes:  # noqa: A002
        """One request, as a line of the input file with its line end."""
        return jsonl({"custom_id": hash, "body": {"input": self._body(text)["input"]}})

    def _parameters(self) -> dict[str, Any]:
        parameters = {name: value for name, value in self._body("any").items() if name != "input"}
        return {"request_params": parameters}
