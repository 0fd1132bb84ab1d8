"""Voyage's batch jobs: OpenAI's endpoints, but model and parameters belong to the job and not to each line."""

from __future__ import annotations

from typing import Any, ClassVar

from plainmind.guests.remote.batch_endpoint import jsonl
from plainmind.guests.remote.batch_openai import OpenAIBatches


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
