"""Where the text of the notes is kept besides this machine, because the index is there."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.memory.translation import store_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.wiring import Parts


def store_destination(parts: Parts) -> str | None:
    """The host or bucket that holds the index; None when it is on this machine, or nowhere that could be read."""
    settings = parts.loaded.settings
    try:
        options = store_options(settings.store.driver, settings, parts.environ)
        if settings.store.driver == "lancedb":
            uri = options.get("uri", "")
            return uri if "://" in uri else None
        if settings.store.driver != "postgres":
            return None
        from plainmind.guests.postgres.options import other_hosts

        found = other_hosts(options.get("dsn", ""))
    except ConfigError:
        return None  # it cannot be read, or the variable that names it is not set: nothing is sent either
    return ", ".join(found) or None
