"""What a provider's wire format must say; requests and answers are values, so it reaches no network itself."""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from plainmind.base.errors import BadVector, ConfigError
from plainmind.base.value import value
from plainmind.guests.net.address import split_base_url
from plainmind.guests.net.failures import AnswerUnreadable
from plainmind.guests.remote.config import RemoteSettings

Mode: TypeAlias = Literal["query", "document"]


@value
class Request:
    """What to post; `path` continues the base URL."""

    path: str
    payload: Mapping[str, Any]


@value
class WireAnswer:
    """What came: vectors in the order of the texts, not yet checked; `tokens` None when they were not counted."""

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

    def answer(self, payload: object, count: int) -> WireAnswer:
        """Read a success. Raises BadVector when vectors and texts cannot be matched, AnswerUnreadable otherwise."""


@value
class ProviderKey:
    """Who is asked: vectors, usage and pauses are counted by this. It tells nothing about the credential."""

    provider: str
    model: str
    endpoint: str  # SHA-256, see `provider_key`


def provider_key(wire: Wire, settings: RemoteSettings) -> ProviderKey:
    """Name whom these settings ask; values of headers and the key do not count, only that they are there."""
    model = settings.model or wire.default_model
    origin, path = split_base_url(settings.base_url or wire.default_base_url, settings="remote")
    facts = [wire.name, f"{origin}{path}", model, sorted(name.lower() for name in settings.headers)]
    return ProviderKey(wire.name, model, hashlib.sha256(json.dumps(facts).encode()).hexdigest())


def price_of(wire: Wire, model: str, tokens: int) -> float:
    """What tokens cost, about, in USD; 0 when the price is not known."""
    return wire.prices.get(model.removeprefix("models/"), 0.0) * tokens / 1_000_000


_NUMBERS = {float, int}
_MOST_TOKENS = 1_000_000_000


def field_of(payload: object, name: str) -> Any:
    """Take a field of a JSON object. Raises AnswerUnreadable without repeating any of it."""
    if not isinstance(payload, dict) or name not in payload:
        raise AnswerUnreadable(
            f"the answer has no `{name}`",
            hint="check `remote.baseUrl`: is it the address of an embeddings API?",
        )
    return payload[name]


def in_order(rows: object, count: int) -> list[Any]:
    """Put rows where their `index` says; without any index they are in order. Raises BadVector.

    A vector under the wrong text is never noticed later, so a doubt about the order is an error.
    """
    if not isinstance(rows, list) or len(rows) != count:
        came = len(rows) if isinstance(rows, list) else 0
        raise BadVector(f"{count} vectors were expected and {came} came")
    by_place = {row.get("index"): row for row in rows if isinstance(row, dict)}
    if set(by_place) <= {None}:
        return rows
    if not all(type(place) is int for place in by_place) or set(by_place) != set(range(count)):
        raise BadVector("the vectors are not numbered so that each text has one")
    return [by_place[place] for place in range(count)]


def numbers(value: object) -> Sequence[float]:
    """Read a list of numbers, or base64 of little-endian float32. Raises BadVector."""
    if isinstance(value, str):
        return _unpack(value)
    # Python counts true and false among the numbers; no vector has any.
    if not isinstance(value, list) or not set(map(type, value)) <= _NUMBERS:
        raise BadVector("a vector is not a list of numbers")
    return value


def _unpack(text: str) -> array[float]:
    values = array("f")
    try:
        values.frombytes(b64decode(text, validate=True))
    except ValueError:
        raise BadVector("a vector is neither a list of numbers nor base64 of them") from None
    if sys.byteorder == "big":
        values.byteswap()
    return values


def tokens_in(usage: object, *names: str) -> int | None:
    """How many tokens the provider counted, when it says so in a way to be believed."""
    for name in names:
        count = usage.get(name) if isinstance(usage, dict) else None
        if type(count) is int and 0 <= count <= _MOST_TOKENS:
            return count
    return None


REMOTE_PROVIDERS = ("openai", "gemini", "voyage")


def wire_for(name: str, settings: RemoteSettings) -> Wire:
    """Choose the wire format; base64 only where its provider is known to have it."""
    from plainmind.guests.remote.vendors import GeminiWire, OpenAIWire, VoyageWire

    packed = settings.base_url is None
    if name == "openai":
        return OpenAIWire(packed=packed)
    if name == "voyage":
        return VoyageWire(packed=packed)
    if name == "gemini":
        return GeminiWire()
    raise ConfigError(
        f"unknown remote embedding provider: `{name}`",
        key="provider",
        hint=f"use one of {', '.join(REMOTE_PROVIDERS)}",
    )
