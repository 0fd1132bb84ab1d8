"""What a user can set about a provider on another machine."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import field, value


@value
class BatchSettings:
    """Jobs that a provider works off in its own time, for half the price."""

    enabled: bool = True
    wait: bool = True
    concurrency: int = 2
    poll_interval_ms: int = 2_000
    timeout_minutes: int = 60


@value
class RemoteSettings:
    """Where the provider is, how it knows us, and how much it is asked at once.

    None for `base_url` and `model` means the provider's own. `api_key` is the key itself, no longer a reference.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str | None = None
    dims: int | None = None  # None: as many as the model has by itself
    batch: BatchSettings = BatchSettings()
    concurrency: int = 4
    tokens_per_request: int = 8_000  # counted as one a character
    query_timeout_s: float = 60.0
    batch_timeout_s: float = 120.0
    max_tokens_per_day: int | None = None
    allow_private: bool = False  # the operator typed `base_url`, so it may be on a private network
    proxy: str | None = field(default=None, repr=False)  # never taken from the environment
