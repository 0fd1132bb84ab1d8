"""An index as the rest of the program uses it, whichever driver keeps it; drivers are found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from plainmind.base.errors import ConfigError, IndexCorrupt
from plainmind.base.lazy import find_by_name, offers
from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.index.driver import Change, Driver, NewIndex
    from plainmind.index.protocol import IndexStore, Neighbours
    from plainmind.index.reader import Reader

ANY_CONTENT = "*"  # replace what the index holds for a file, whatever it is
ENTRY_POINTS = "plainmind.stores"

_BUILT_IN: Mapping[str, str] = {
    "lancedb": "plainmind.guests.lancedb.store:open_lance_store",
    "memory": "plainmind.index.drivers.memory:open_memory_store",
    "postgres": "plainmind.guests.postgres.store:open_postgres_store",
    "sqlite": "plainmind.index.drivers.sqlite:SqliteStore",
}
# The options that a driver takes beside its folder.
_OPTIONS: Mapping[str, frozenset[str]] = {
    "lancedb": frozenset({"uri", "workspace"}),
    "postgres": frozenset({"dsn", "read_dsn", "schema", "workspace"}),
}
# The drivers that need packages which not every installation has: the extra that brings them.
_EXTRAS = frozenset({"lancedb", "postgres"})


# What no driver raises whose rows are as they were written, whatever is asked of it.
_SURPRISES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def leave_as_is(_store: IndexStore) -> None:
    """Catch up on nothing: for an index that only one process writes to."""


class Store:
    """Keeps its promises, those of `IndexStore`, by the calls of a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def neighbours(self) -> Neighbours | None:
        """None: most indexes are folders of their own."""
        return None

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open one consistent view, of the newest published index."""
        with self._looking_into_surprises(), self.driver.reading() as reader:
            yield reader

    def replace_file(
        self,
        file: FileState,
        chunks: Sequence[EmbeddedChunk],
        *,
        expecting: IndexFingerprint | None = None,
        replacing: str | None = ANY_CONTENT,
        keeping: int = 0,
    ) -> bool:
        """Swap in the chunks of `file`, all or nothing."""
        from plainmind.index import writer

        writer.check_following(chunks, keeping)
        portions = writer.prepare_chunks(self.driver, chunks)
        with self._changing("index a file") as change:
            return writer.replace_file(
                change, file, portions, expecting=expecting, replacing=replacing, keeping=keeping
            )

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text did not change."""
        with self._changing("touch a file") as change:
            change.touch(file)

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks."""
        with self._changing("remove a file") as change:
            change.remove(source, path)

    def joined(self) -> AbstractContextManager[None]:
        """Make the changes of a block in one, where that is cheaper."""
        return self.driver.joined()

    def rebuild(
        self,
        fingerprint: IndexFingerprint,
        *,
        reason: str,
        catch_up: Callable[[IndexStore], None] = leave_as_is,
    ) -> AbstractContextManager[Store]:
        """Build a new index beside this one and publish it at the end of the block."""
        return self._rebuild(self.driver.build(fingerprint, reason), catch_up)

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files so that their text is in no byte of the store."""
        self.driver.erase(source, paths)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        return self.driver.describe()

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        return self.driver.sizes()

    def digest(self) -> str:
        """Hash everything that a rebuild would write again."""
        from plainmind.index.digest import digest_of

        with self.driver.contents() as contents:
            return digest_of(contents)

    def close(self) -> None:
        """Let go of files and locks; the next use opens them again."""
        self.driver.close()

    @contextmanager
    def _changing(self, operation: str) -> Iterator[Change]:
        with self._looking_into_surprises(), self.driver.changing(operation) as change:
            yield change

    @contextmanager
    def _looking_into_surprises(self) -> Iterator[None]:
        """When a block fails in a way that nobody expected, look whether the index is to blame.

        All of it is read, and its parts are compared: a damaged one raises IndexCorrupt here, and its driver sets it
        aside. If there is nothing wrong with it, the mistake is not the index's, and goes on as it came.
        """
        try:
            yield
        except _SURPRISES as error:
            if not self.driver.is_being_built:
                self._examine(error)
            raise

    def _examine(self, surprise: Exception) -> None:
        from plainmind.index.digest import digest_of

        with self.driver.contents() as contents:
            try:
                digest_of(contents)
            except _SURPRISES as error:
                raise IndexCorrupt(
                    f"the index is damaged ({type(surprise).__name__}: {surprise})",
                    hint="run `plainmind sync`: it is rebuilt from your notes",
                ) from error

    @contextmanager
    def _rebuild(
        self, begun: AbstractContextManager[NewIndex], catch_up: Callable[[IndexStore], None]
    ) -> Iterator[Store]:
        with begun as new:
            beside = Store(new)
            yield beside
            new.finish()
            with new.publishing():
                catch_up(beside)


def open_store(driver: str, **options: Any) -> IndexStore:
    """Open a store by the name of its driver, or by "module:factory"; `options` go to its factory."""
    return _factory(driver)(**options)


def store_options(driver: str, **settings: str | None) -> Mapping[str, str]:
    """Those of the settings of a store that its factory takes, where they are set."""
    taken = _OPTIONS.get(driver, frozenset())
    return {name: setting for name, setting in settings.items() if name in taken and setting is not None}


def _factory(driver: str) -> Callable[..., IndexStore]:
    target = _BUILT_IN.get(driver) or (driver if ":" in driver else offers(ENTRY_POINTS).get(driver))
    if target is None:
        known = ", ".join(sorted({*_BUILT_IN, *offers(ENTRY_POINTS)}))
        raise ConfigError(f"unknown store: `{driver}`", key="store.driver", hint=f"use one of {known}")
    try:
        found: Callable[..., IndexStore] = find_by_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        from plainmind.base.extras import install_hint

        missing = f"install it: {install_hint(driver)}" if driver in _EXTRAS else None
        raise ConfigError(
            f"the store `{driver}` cannot be loaded: {error}",
            key="store.driver",
            hint=missing or f"`{target}` must name a module and a factory in it",
        ) from error
    return found
