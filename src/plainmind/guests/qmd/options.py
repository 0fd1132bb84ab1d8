"""How QMD is used: its settings, and when it is due to look at the files again and to embed what is new."""

from __future__ import annotations

from plainmind.base.value import value
from plainmind.memory.backend import Initiative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias


SearchMode: TypeAlias = "Literal['search', 'vsearch', 'query']"


@value
class QmdOptions:
    """Settings of the program, in seconds where they are times."""

    command: str = "qmd"
    search_mode: SearchMode = "search"
    include_default_memory: bool = True
    export_folder: str | None = None  # of conversations; None: beside its index
    retention_days: int = 30
    update_interval_s: float = 300.0
    embed_interval_s: float = 3600.0
    debounce_s: float = 15.0
    update_on_boot: bool = True
    update_on_search: bool = True
    command_timeout_s: float = 30.0
    update_timeout_s: float = 120.0
    embed_timeout_s: float = 120.0


@value
class Done:
    """What QMD was told last, and when. Times are seconds since the epoch, 0 for never."""

    updated_at: float
    embedding_began_at: float  # whether it came to an end or not
    config: str  # digests of what it was told to index, and of how the files looked
    listing: str


@value
class Wanted:
    """How it should be now."""

    config: str
    listing: str


def update_is_due(
    initiative: Initiative, done: Done, wanted: Wanted, now: float, options: QmdOptions, *, has_booted: bool
) -> bool:
    """Whether to update. What it has never seen cannot wait; changes wait until they have settled."""
    since = _since(done.updated_at, now)
    if initiative == "asked" or not done.updated_at or done.config != wanted.config:
        return True
    if initiative == "background" and options.update_on_boot and not has_booted:
        return True
    if done.listing != wanted.listing and since >= options.debounce_s:
        return True
    return initiative == "background" and since >= options.update_interval_s


def embedding_is_due(initiative: Initiative, done: Done, now: float, options: QmdOptions) -> bool:
    """Whether to embed, which takes long: never while somebody waits for an answer."""
    if options.search_mode == "search" or initiative == "search":
        return False
    return (
        initiative == "asked"
        or not done.embedding_began_at
        or _since(done.embedding_began_at, now) >= options.embed_interval_s
    )


def seconds_until_due(
    done: Done, wanted: Wanted, now: float, options: QmdOptions, *, can_embed: bool = False
) -> float:
    """How long until there is something to do in the background."""
    if not done.updated_at or done.config != wanted.config:
        return 0.0
    wait = options.debounce_s if done.listing != wanted.listing else options.update_interval_s
    left = wait - _since(done.updated_at, now)
    if can_embed and options.search_mode != "search":
        began = done.embedding_began_at
        left = min(left, options.embed_interval_s - _since(began, now) if began else 0.0)
    return max(0.0, left)


def _since(moment: float, now: float) -> float:
    """How long ago; a clock that was set back makes everything long ago, so that nothing waits for it."""
    return now - moment if moment <= now else float("inf")
