"""Where the entries of an agent are kept, and whether there are any, told without loading what keeps them."""

from __future__ import annotations

import os

from plainmind.base.errors import ConfigError
from plainmind.base.extras import install_hint
from plainmind.config.load import index_folder
from plainmind.guests.entries.config import EntryConfig
from plainmind.memory.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.config.settings import Settings


def entry_folder(memory: Memory) -> str:
    """The folder of the agent that the settings name."""
    settings = memory.settings
    return index_folder(
        settings.section(EntryConfig).path,
        home=memory.home,
        agent_id=settings.agent_id,
        environ=memory.environ,
    )


def entry_index_folder(memory: Memory) -> str:
    """The folder of what finds them again."""
    return os.path.join(entry_folder(memory), "index")


def has_entries(memory: Memory) -> bool:
    """Whether there is a file of entries, or an index of one that is gone; they may be switched off by now."""
    folder = entry_folder(memory)
    return any(os.path.lexists(os.path.join(folder, name)) for name in ("entries.jsonl", "index"))


def require_entries(settings: Settings) -> None:
    """Raise ConfigError when what keeps the entries is not installed."""
    from importlib.util import find_spec

    if settings.section(EntryConfig).driver == "lancedb" and find_spec("lancedb") is None:
        raise ConfigError(
            "the entry memory is kept in LanceDB, which is not installed",
            key="entries.driver",
            hint=f"install it: {install_hint('lancedb')}; or `plainmind config set entries.driver sqlite`",
        )
