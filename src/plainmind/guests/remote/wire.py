"""What a provider's wire format must say; requests and answers are values, so it reaches no network itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from plainmind.guests.remote.address import split_base_url
from plainmind.guests.remote.settings import RemoteSettings

Mode: TypeAlias = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class Request:
    """What to post; `path` continues the base URL."""

    path: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What came: vectors in the order of the texts, not yet checked; `tokens` None when nobody counted."""

    vectors: Sequence[Sequence[float]]
    tokens: int | None


class Wire(Protocol):
    """One provider's way to be asked for vectors."""

    name: str
    default_model: str
    default_base_url: str
    key_variables: tuple[str, ...]  # environment variables that hold its key, the first one found counts
    max_items: int  # texts in one request
    known_dims: Mapping[str, int]  # by model, as answered when nothing is asked for
    prices: Mapping[str, float]  # by model, about, USD for a million tokens

    def headers(self, key: str) -> Mapping[str, str]:
        """How the key is shown."""

    def request(self, model: str, texts: Sequence[str], mode: Mode, dims: int | None) -> Request:
        """Ask for the vectors of texts that are not blank."""

    def answer(self, payload: object, count: int) -> Answered:
        """Read a success. Raises BadVector when vectors and texts cannot be matched, AnswerUnreadable otherwise."""


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """Who is asked: vectors, usage and pauses are counted by this. It tells nothing about the credential."""

    provider: str
    model: str
    endpoint: str  # SHA-256, see `provider_key`


def provider_key(wire: Wire, settings: RemoteSettings) -> ProviderKey:
    """Name whom these settings ask; values of headers and the key do not count, only that they are there."""
    model = settings.model or wire.default_model
    origin, path = split_base_url(settings.base_url or wire.default_base_url)
    facts = [wire.name, f"{origin}{path}", model, sorted(name.lower() for name in settings.headers)]
    return ProviderKey(wire.name, model, hashlib.sha256(json.dumps(facts).encode()).hexdigest())


def price_of(wire: Wire, model: str, tokens: int) -> float:
    """What tokens cost, about, in USD; 0 when the price is not known."""
    return wire.prices.get(model.removeprefix("models/"), 0.0) * tokens / 1_000_000


def estimated_tokens(text: str) -> int:
    """Guess the tokens of a text: some four letters each, but one for each character of most other scripts."""
    narrow = sum(1 for char in text if char < "\u0250") if not text.isascii() else len(text)
    return narrow // 4 + (len(text) - narrow) + 1
