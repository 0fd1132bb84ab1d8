"""The settings of remote embedding providers: `remote.*` as users write them, and what one provider takes of them."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import field, value
from plainmind.config.kinds import SENDS, SPENDS, Flag, Number, Text, TextTable, Whole, group, setting


@value
class BatchConfig:
    """Bulk embedding jobs of remote providers: cheaper, but not immediate."""

    enabled: bool = setting(False, Flag(), SENDS, "Send large amounts of text as a bulk job.")
    wait: bool = setting(True, Flag(), SPENDS, "Wait for the job before the sync ends.")
    concurrency: int = setting(2, Whole(1, 16), SPENDS, "Jobs at the same time.")
    poll_interval_ms: int = setting(2000, Whole(100, 600_000), SPENDS, "Pause between two looks at a job.")
    timeout_minutes: int = setting(60, Whole(1, 1440), SPENDS, "Longest wait for a job.")


@value
class RemoteConfig:
    """How a remote embedding provider is reached."""

    section = "remote"

    base_url: str | None = setting(
        None,
        Text("an http:// or https:// address", shape=r"https?://[^\s/]\S*", optional=True),
        SENDS,
        "Address of the provider, or of any server that speaks its language.",
    )
    api_key: str | None = setting(
        None,
        Text(optional=True),
        SPENDS,
        "The key, or `env:NAME` to take it from the environment.",
        secret=True,
    )
    headers: Mapping[str, str] = setting(
        {}, TextTable(), SENDS, "Headers sent with each request.", secret=True
    )
    proxy: str | None = setting(
        None,
        Text("an http:// address", shape=r"http://[^\s/]\S*", optional=True),
        SENDS,
        "A proxy on the way to the provider; none is ever taken from the environment.",
        secret=True,
    )
    concurrency: int = setting(4, Whole(1, 32), SPENDS, "Requests at the same time.")
    query_timeout_ms: int = setting(
        5_000,
        Whole(100, 600_000),
        SPENDS,
        "Longest wait for the vector of a question, retries included; then words alone answer, and the answer says so.",
    )
    document_timeout_ms: int = setting(
        120_000, Whole(100, 3_600_000), SPENDS, "Longest wait for a request of notes, retries included."
    )
    max_tokens_per_day: int | None = setting(
        None,
        Whole(1, 1_000_000_000_000, optional=True),
        SPENDS,
        "Tokens after which no provider is asked any more until tomorrow (UTC).",
    )
    confirm_above_usd: float = setting(
        1.0, Number(0, 1_000_000), SPENDS, "What a sync may cost, about, before it needs your yes."
    )
    batch: BatchConfig = group(BatchConfig)


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
    batch: BatchConfig = BatchConfig(enabled=True)
    concurrency: int = 4
    tokens_per_request: int = 8_000  # counted as one a character
    query_timeout_s: float = 5.0
    batch_timeout_s: float = 120.0
    max_tokens_per_day: int | None = None
    allow_private: bool = False  # the user typed `base_url`, so it may be on a private network
    proxy: str | None = field(default=None, repr=False)  # never taken from the environment
