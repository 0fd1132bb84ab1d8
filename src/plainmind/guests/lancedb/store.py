"""The index in LanceDB, for many threads, and for many processes or hosts at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from plainmind.base.errors import ConfigError, IndexCorrupt, IndexUnavailable, PlainmindError
from plainmind.base.model import IndexFingerprint, Source
from plainmind.base.value import replace
from plainmind.guests.lancedb.building import BuildingStore
from plainmind.guests.lancedb.changes import Changes
from plainmind.guests.lancedb.describing import digest_of, facts_of, sizes_of
from plainmind.guests.lancedb.library import TableFault, plainly, refused
from plainmind.guests.lancedb.local_place import LocalPlace
from plainmind.guests.lancedb.pointer import Place, Pointer, Turn
from plainmind.guests.lancedb.reader import LanceReader
from plainmind.guests.lancedb.remote_place import RemotePlace
from plainmind.guests.lancedb.table import Draft, GenerationTable, next_generation, opened
from plainmind.guests.lancedb.view import CACHE_BYTES, View
from plainmind.index.protocol import IndexStore
from plainmind.index.reader import RecentlyUsed
from plainmind.index.store import leave_as_is

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LanceStore(Changes):
    """Follows the pointer to the newest state before each view and each change."""

    neighbours = None

    def __init__(self, folder: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        """Use a local folder, made when it is missing, or a place in an object store: `s3://bucket/prefix`."""
        self._place: Place = RemotePlace(folder, storage_options) if "://" in folder else LocalPlace(folder)
        self._guard = threading.Lock()  # never held while waiting for a turn
        self._one_at_a_time = threading.RLock()
        self._view: View | None = None
        self._joint: Draft | None = None
        self._known: tuple[Pointer, Draft] | None = None  # what we wrote last, which need not be read again

    @property
    def place_uri(self) -> str:
        """Where the tables are."""
        return self._place.uri

    @contextmanager
    def reading(self) -> Iterator[LanceReader]:
        """Open one consistent view, of the newest published index."""
        with self._newest() as view:
            yield LanceReader(view)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make the changes of a block in one go."""
        with self._one_at_a_time:
            if self._joint is not None:
                yield
                return
            with self._place.turn("change the index") as turn:
                pointer = turn.pointer
                with self._minding_damage(turn):
                    table, draft = self._begun(pointer)
                before = draft.changes
                self._joint, self._known = draft, None
                try:
                    yield
                finally:
                    self._joint = None
                if table is not None and draft.changes != before:
                    revision = pointer.revision + draft.changes - before
                    with self._minding_damage(turn, writing=True):
                        self._write(turn, table, draft, revision)

    @contextmanager
    def rebuild(
        self,
        fingerprint: IndexFingerprint,
        *,
        reason: str,  # noqa: ARG002
        catch_up: Callable[[IndexStore], None] = leave_as_is,
    ) -> Iterator[BuildingStore]:
        """Build a new index beside this one and publish it at the end of the block."""
        database = self._place.database()
        with ExitStack() as kept:
            with self._place.turn("begin a rebuild") as turn, plainly():
                number = next_generation(database, turn.pointer)
                kept.enter_context(self._place.using(number))
                made = GenerationTable.create(database, Pointer(generation=number, fingerprint=fingerprint))
            beside = BuildingStore(made)
            try:
                yield beside
                beside.finish()
                with self._one_at_a_time, self._place.turn("publish a rebuild") as turn:
                    catch_up(beside)
                    with plainly():
                        spare = next_generation(database, turn.pointer)
                        with self._dropping_unless_made(spare):
                            beside.settle(spare)
                        turn.publish(beside.pointer)
                    kept.close()
                    self._place.drop_unused(beside.pointer.generation)
            except BaseException:
                self._discard(number, beside.pointer.generation)
                raise

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files so that their text is in no byte of any table: what lives moves to a new one.

        LanceDB's own compaction leaves a fragment alone of which only a few rows are gone, and their text in it.
        """
        with self._one_at_a_time, self._place.turn("erase files") as turn:
            pointer = turn.pointer
            try:
                with self._minding_damage(turn):
                    self._erase(turn, pointer, source, paths)
            except IndexCorrupt:
                self._drop_others(turn, pointer)  # a damaged table, too, holds the text
                raise
            self._drop_others(turn, pointer)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        with self._newest() as view:
            return facts_of(view.pointer, self.place_uri, view.table)

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        with self._newest() as view:
            return sizes_of(view)

    def digest(self) -> str:
        """Hash everything that a rebuild would write again."""
        with self._newest() as view:
            return digest_of(view)

    def close(self) -> None:
        """Let go of the tables; the next use opens them again."""
        with self._guard:
            self._view = None
            self._known = None
        self._place.close()

    @contextmanager
    def _changing(self, operation: str) -> Iterator[Draft]:  # noqa: ARG002
        with self.joined():
            assert self._joint is not None  # `joined` has just seen to it
            yield self._joint

    def _begun(self, pointer: Pointer) -> tuple[GenerationTable | None, Draft]:
        """The table to write to, and an empty draft on it."""
        if pointer.fingerprint is None:
            return None, Draft((), {}, None, next_id=1, next_owner=1)
        table = GenerationTable.open(self._place.database(), pointer)
        if self._known is not None and self._known[0] == pointer:
            return table, self._known[1]
        return table, table.draft(self._followed(pointer).overview)

    def _write(self, turn: Turn, table: GenerationTable, draft: Draft, revision: int) -> None:
        """Commit a draft and let it answer. Only then may versions go that answered before."""
        table.write(draft)
        table.pointer = replace(table.pointer, revision=revision)
        turn.publish(table.pointer)
        if table.is_untidy:
            table.compact()
            turn.publish(table.pointer)
            table.clean()
        self._known = table.pointer, draft

    def _erase(self, turn: Turn, pointer: Pointer, source: Source, paths: Iterable[str]) -> None:
        """Let a copy without some files answer."""
        table, draft = self._begun(pointer)
        self._known = None
        number = next_generation(self._place.database(), pointer)
        if table is None:
            # A table that is being built is dropped all the same, and no other may ever have its number.
            turn.publish(replace(pointer, generation=number))
            return
        before = draft.changes
        for path in paths:
            draft.remove_file(source, path)
        table.write(draft)
        with self._dropping_unless_made(number):
            new = table.copy_to(number)
        turn.publish(replace(new.pointer, revision=pointer.revision + draft.changes - before))

    def _drop_others(self, turn: Turn, replaced: Pointer) -> None:
        self.close()
        self._place.drop_others(turn.pointer.generation, replaced.generation)

    @contextmanager
    def _dropping_unless_made(self, number: int) -> Iterator[None]:
        """Leave nothing of a table behind that a block did not finish. Needs a turn."""
        try:
            yield
        except BaseException:
            with suppress(PlainmindError):  # what brought us here is on its way; the next rebuild sweeps up
                self._place.drop(number)
            raise

    def _discard(self, *begun: int) -> None:
        """Drop tables of a rebuild that has failed; one that answers by now has not."""
        with suppress(PlainmindError):  # as above
            for number in set(begun) - {self._place.pointer().generation}:
                self._place.drop(number)

    @contextmanager
    def _newest(self) -> Iterator[View]:
        with self._place.current() as pointer, self._setting_aside(pointer):
            yield self._followed(pointer)

    def _followed(self, pointer: Pointer) -> View:
        """The view of a state; made once for all who ask."""
        with self._guard:
            view = self._view
            if view is None or view.pointer != pointer:
                before = view if view and view.pointer.generation == pointer.generation else None
                cache = before.cache if before else RecentlyUsed(CACHE_BYTES)
                table = None
                if pointer.fingerprint is not None:
                    table = opened(self._place.database(), pointer)
                view = self._view = View(pointer, table, cache, before)
            return view

    @contextmanager
    def _setting_aside(self, pointer: Pointer) -> Iterator[None]:
        """When a block finds its table damaged, let an empty index, which asks to be rebuilt, answer instead."""
        try:
            yield
        except (IndexCorrupt, TableFault) as error:
            with self._guard:
                self._view = None
            if isinstance(error, TableFault) and not error.is_damage:
                raise refused(error) from error
            with self._place.turn("replace a damaged index") as turn:
                if turn.pointer != pointer:
                    # The version that was looked at is too old, or gone with its table: what answers now may be whole.
                    raise IndexUnavailable(
                        "the index was replaced while it was read", hint="try again"
                    ) from error
                self._publish_nothing(turn, str(error))
            raise _damaged(error) from error

    @contextmanager
    def _minding_damage(self, turn: Turn, *, writing: bool = False) -> Iterator[None]:
        """The same for a block that has its turn already. What LanceDB says of rows to be written is not damage."""
        try:
            yield
        except (IndexCorrupt, TableFault) as error:
            if isinstance(error, TableFault) and not (error.is_missing if writing else error.is_damage):
                raise refused(error) from error
            self._publish_nothing(turn, str(error))
            raise _damaged(error) from error

    def _publish_nothing(self, turn: Turn, reason: str) -> None:
        with plainly():
            number = next_generation(self._place.database(), turn.pointer)
        turn.publish(Pointer(generation=number, recovered=reason))


def open_lance_store(
    folder: str,
    uri: str | None = None,
    workspace: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> LanceStore:
    """Open the index of an agent and a workspace: in its folder, or beneath `uri` in an object store.

    The last two names of `folder` are those of the agent and the workspace. Hosts that share a workspace may know it by
    different folders: `workspace` is then what all of them call it.
    """
    if uri is None:
        return LanceStore(folder)
    agent, name = os.path.split(os.path.abspath(folder))
    uri = _whole(uri)
    place = "/".join((uri.rstrip("/"), os.path.basename(agent), workspace or name))
    return LanceStore(place, storage_options=storage_options)


def _whole(uri: str) -> str:
    """An address, or a path that means the same wherever a program is started. Raises ConfigError."""
    if "://" in uri:
        return uri
    path = os.path.expanduser(uri)
    if not os.path.isabs(path):
        raise ConfigError(
            f"`store.uri` is neither an address nor a whole path: {uri}",
            key="store.uri",
            hint="write s3://bucket/folder, gs://… or az://…, or a path that begins with / or ~",
        )
    return path


def _damaged(error: Exception) -> IndexCorrupt:
    return IndexCorrupt(f"the index is damaged: {error}", hint="run `plainmind sync`: it is built anew")
