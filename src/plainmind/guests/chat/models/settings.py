"""How a chat model is reached."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import field, value


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
    allow_private: bool = False  # somebody typed this address, so it may be on a private network
