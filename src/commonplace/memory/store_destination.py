"""Where the text of the notes is kept besides this machine, because the index is there."""

from __future__ import annotations

from commonplace.config.secrets import resolve_secret
from commonplace.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.memory.wiring import Parts

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def store_destination(parts: Parts) -> str | None:
    """The host or bucket that holds the index; None when it is on this machine, or nowhere that could be read."""
    settings = parts.loaded.settings.store
    if settings.driver == "lancedb":
        return settings.uri if settings.uri and "://" in settings.uri else None
    if settings.driver != "postgres":
        return None
    from psycopg.conninfo import conninfo_to_dict

    try:
        found = conninfo_to_dict(resolve_secret(settings.dsn, parts.environ) or "").get("host")
    except ConfigError:
        return None  # the variable that names it is not set: nothing is sent either
    hosts = [host for host in str(found or "").split(",") if host and not host.startswith("/")]
    return ", ".join(host for host in hosts if host not in _THIS_MACHINE) or None
