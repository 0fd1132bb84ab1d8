"""The settings of QMD, `qmd.*`."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from plainmind.base.value import value
from plainmind.config.kinds import (
    KEEPS,
    READS,
    RUNS,
    Duration,
    ExtraPath,
    Flag,
    OneOf,
    Paths,
    Text,
    Whole,
    setting,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.config.settings import Settings
    from plainmind.memory.translation import Wishes


@value
class QmdConfig:
    """The external program `qmd`, when it is the `backend`."""

    section = "qmd"

    command: str = setting("qmd", Text("a command"), RUNS, "The program.")
    search_mode: str = setting("search", OneOf("search", "vsearch", "query"), RUNS, "How it searches.")
    include_default_memory: bool = setting(True, Flag(), READS, "Give it `MEMORY.md` and `memory/`.")
    paths: tuple[ExtraPath, ...] = setting((), Paths(), READS, "More folders for it to index.")
    sessions_enabled: bool = setting(False, Flag(), READS, "Give it transcripts.", name="sessions.enabled")
    retention_days: int = setting(
        30, Whole(1, 36_500), KEEPS, "Days that exported transcripts are kept.", name="sessions.retentionDays"
    )
    export_dir: str | None = setting(
        None,
        Text("a path", optional=True),
        KEEPS,
        "Folder of exported transcripts.",
        name="sessions.exportDir",
    )
    update_interval_s: float = setting(
        300.0, Duration(), RUNS, "How often it updates its index.", name="update.interval"
    )
    embed_interval_s: float = setting(
        3600.0, Duration(), RUNS, "How often it embeds.", name="update.embedInterval"
    )
    debounce_ms: int = setting(
        15_000, Whole(0, 3_600_000), RUNS, "Least time between two updates.", name="update.debounceMs"
    )
    on_boot: bool = setting(True, Flag(), RUNS, "Update it at the start.", name="update.onBoot")
    command_timeout_ms: int = setting(
        30_000, Whole(100, 3_600_000), RUNS, "Longest wait for its version.", name="update.commandTimeoutMs"
    )
    update_timeout_ms: int = setting(
        120_000, Whole(100, 86_400_000), RUNS, "Longest update of its index.", name="update.updateTimeoutMs"
    )
    embed_timeout_ms: int = setting(
        120_000, Whole(100, 86_400_000), RUNS, "Longest it may embed at a time.", name="update.embedTimeoutMs"
    )


def wishes(settings: Settings) -> Wishes:
    """The folders that were named for it, whether it is to know conversations, and which program it is."""
    from plainmind.memory.translation import Wishes

    config = settings.section(QmdConfig)
    return Wishes(config.paths, config.sessions_enabled, config.command)
