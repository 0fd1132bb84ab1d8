"""The index in LanceDB, for many threads, and for many processes or hosts at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from commonplace.errors import IndexCorrupt, IndexUnavailable
from commonplace.model import IndexFingerprint, Source
from commonplace.store.lancedb.building import BuildingStore
from commonplace.store.lancedb.changes import Changes
from commonplace.store.lancedb.describing import digest_of, facts_of, sizes_of
from commonplace.store.lancedb.draft import Draft
from commonplace.store.lancedb.generation import GenerationTable, next_generation, opened
from commonplace.store.lancedb.library import TableFault, plainly
from commonplace.store.lancedb.local_place import LocalPlace
from commonplace.store.lancedb.pointer import Place, Pointer, Turn
from commonplace.store.lancedb.reader import LanceReader
from commonplace.store.lancedb.remote_place import RemotePlace
from commonplace.store.lancedb.view import CACHE_BYTES, View
from commonplace.store.protocol import IndexStore, leave_as_is
from commonplace.store.recently_used import RecentlyUsed
from commonplace.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ATTEMPTS = 200


class LanceStore(Changes):
    """Follows the pointer to the newest state before each view and each change."""

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
            with self._place.turn("change the index") as turn, self._minding_damage(turn) as pointer:
                table, draft = self._begun(pointer)
                before = draft.changes
                self._joint, self._known = draft, None
                try:
                    yield
                finally:
                    self._joint = None
                if table is not None and draft.changes != before:
                    table.write(draft)
                    table.tidy()
                    revision = table.pointer.revision + draft.changes - before
                    published = replace(table.pointer, revision=revision)
                    turn.publish(published)
                    self._known = published, draft

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
                        beside.settle(next_generation(database, turn.pointer))
                        turn.publish(beside.pointer)
            except BaseException:
                for each in {number, beside.pointer.generation}:
                    self._place.drop(each)
                raise
        with self._place.turn("drop old indexes") as turn:
            self._place.drop_unused(turn.pointer.generation)

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files so that their text is in no byte of any table: what lives moves to a new one.

        LanceDB's own compaction leaves a fragment alone of which only a few rows are gone, and their text in it.
        """
        with self._one_at_a_time, self._place.turn("erase files") as turn:
            with self._minding_damage(turn) as pointer:
                table, draft = self._begun(pointer)
                self._known = None
                if table is not None:
                    before = draft.changes
                    for path in paths:
                        draft.remove_file(source, path)
                    table.write(draft)
                    new = table.copy_to(next_generation(self._place.database(), pointer))
                    revision = pointer.revision + draft.changes - before
                    turn.publish(replace(new.pointer, revision=revision))
            self.close()
            self._place.drop_others(turn.pointer.generation, pointer.generation)

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

    @contextmanager
    def _newest(self) -> Iterator[View]:
        for _ in range(_ATTEMPTS):
            pointer = self._place.pointer()
            with self._place.using(pointer.generation):
                now = self._place.pointer()
                if now.generation != pointer.generation:
                    continue  # what is kept from being dropped now has been replaced already
                with self._setting_aside(now):
                    yield self._followed(now)
                return
        raise IndexUnavailable("the index changes faster than it can be opened", hint="try again")

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
                raise _unavailable(str(error)) from error
            with self._place.turn("replace a damaged index") as turn:
                if turn.pointer.generation != pointer.generation:
                    raise IndexUnavailable(
                        "the index was replaced while it was read", hint="try again"
                    ) from error
                self._publish_nothing(turn, str(error))
            raise _damaged(error) from error

    @contextmanager
    def _minding_damage(self, turn: Turn) -> Iterator[Pointer]:
        """The same for a block that changes the index, and has its turn already."""
        pointer = turn.pointer
        try:
            yield pointer
        except TableFault as fault:
            if not fault.is_missing:
                raise _unavailable(str(fault)) from fault
            self._publish_nothing(turn, str(fault))
            raise _damaged(fault) from fault

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
    place = "/".join((uri.rstrip("/"), os.path.basename(agent), workspace or name))
    return LanceStore(place, storage_options=storage_options)


def _unavailable(reason: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"LanceDB refused: {reason}", hint="check the folder or the object store, then try again"
    )


def _damaged(error: Exception) -> IndexCorrupt:
    return IndexCorrupt(f"the index is damaged: {error}", hint="run `commonplace sync`: it is built anew")
