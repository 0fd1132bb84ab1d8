"""Where the text of the notes is kept besides this machine, because the index is there."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.config.secrets import resolve_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.wiring import Parts


def store_destination(parts: Parts) -> str | None:
    """The host or bucket that holds the index; None when it is on this machine, or nowhere that could be read."""
    settings = parts.loaded.settings.store
    if settings.driver == "lancedb":
        return settings.uri if settings.uri and "://" in settings.uri else None
    if settings.driver != "postgres":
        return None
    from plainmind.guests.postgres.connection import hosts_elsewhere

    try:
        found = hosts_elsewhere(resolve_secret(settings.dsn, parts.environ) or "")
    except ConfigError:
        return None  # it cannot be read, or the variable that names it is not set: nothing is sent either
    return ", ".join(found) or None
