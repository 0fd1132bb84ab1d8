"""How QMD is to be used: its settings, as far as they are not about places."""

from __future__ import annotations

from plainmind.base.value import value

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
