"""Moving the index of a memory to another store, without embedding anything again."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.index.copying import Copied, copy_index
from plainmind.memory.translating import store_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.base.model import ProgressCallback
    from plainmind.index.protocol import IndexStore
    from plainmind.memory.wiring import Parts


def move_index(
    parts: Parts, driver: str, *, dsn: str | None = None, progress: ProgressCallback | None = None
) -> Copied:
    """Copy the index to the store that `driver` names, and make sure that both are equal.

    The old index stays as it is; which of them answers is for the settings to say.
    """
    now = parts.loaded.settings.store.driver
    if driver == now:
        raise ConfigError(f"the index is in {now} already", key="store.driver", hint="name another store")
    target = _open(parts, driver, dsn)
    try:
        return copy_index(parts.store, target, progress=progress)
    finally:
        target.close()


def prepare_server(parts: Parts, dsn: str | None, *, role: str | None, is_operator: bool = False) -> str:
    """Make the schema of this installation, or bring it up to date, and let a role use it; returns its name."""
    from plainmind.guests.postgres.migrations import prepare

    options = store_options("postgres", parts.loaded.settings, parts.environ, dsn=dsn)
    if not options.get("dsn"):
        raise ConfigError(
            "which server is to be prepared?", key="store.dsn", hint="name it with --dsn, or set `store.dsn`"
        )
    schema = options["schema"]
    prepare(options["dsn"], schema=schema, role=role, is_operator=is_operator)
    return schema


def _open(parts: Parts, driver: str, dsn: str | None) -> IndexStore:
    from plainmind.index.opening import open_store

    # A replica may be behind, and both indexes are compared.
    options = dict(store_options(driver, parts.loaded.settings, parts.environ, dsn=dsn))
    options.pop("read_dsn", None)
    return open_store(driver, folder=parts.places.index, **options)
