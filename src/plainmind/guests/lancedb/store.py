"""The index in a folder or an object store, for many threads, and for many processes or hosts at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress

from plainmind.base.errors import ConfigError, IndexCorrupt, IndexUnavailable, PlainmindError
from plainmind.base.model import Chunk, IndexFingerprint, Source
from plainmind.base.value import replace
from plainmind.files.safe_open import expand_user
from plainmind.guests.lancedb.library import TableFault, plain_faults, refusal
from plainmind.guests.lancedb.place import LocalPlace, Place, Pointer, RemotePlace, Turn
from plainmind.guests.lancedb.rows import chunk_body
from plainmind.guests.lancedb.table import Draft, GenerationTable, next_generation, open_table
from plainmind.guests.lancedb.view import LanceContents, LanceView, facts_of, new_cache, sizes_of
from plainmind.index.reader import Reader
from plainmind.index.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


_MOST_BYTES = 24_000_000  # that wait in a build


class LanceDriver:
    """Follows the pointer to the newest state before each view and each change."""

    is_being_built = False

    def __init__(
        self, folder: str, storage_options: Mapping[str, str] | None = None, *, is_named: bool = True
    ) -> None:
        self.place: Place = (
            RemotePlace(folder, storage_options, is_named=is_named) if "://" in folder else LocalPlace(folder)
        )
        self._guard = threading.Lock()  # never held while waiting for a turn
        self._one_at_a_time = threading.RLock()
        self._view: LanceView | None = None
        self._joint: Draft | None = None
        self._written: tuple[Pointer, Draft] | None = None  # what we wrote last, which need not be read again

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """One consistent view, of the newest published index."""
        with self._newest() as view:
            yield Reader(view)

    @contextmanager
    def changing(self, operation: str) -> Iterator[Draft]:
        """One change, written at the end of the block, or with those that it is joined with."""
        with self._one_at_a_time:
            if self._joint is not None:
                yield self._joint
                return
            with self.place.turn(operation) as turn:
                pointer = turn.pointer
                with self._publish_damage(turn):
                    table, draft = self._begin(pointer)
                before = draft.changes
                self._joint, self._written = draft, None
                try:
                    yield draft
                finally:
                    self._joint = None
                if table is not None and draft.changes != before:
                    revision = pointer.revision + draft.changes - before
                    with self._publish_damage(turn, writing=True):
                        self._write(turn, table, draft, revision)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make the changes of a block in one go."""
        with self.changing("change the index"):
            yield

    def body_of(self, chunk: Chunk) -> bytes:
        """What the row of a chunk holds beside numbers."""
        return chunk_body(chunk)

    @contextmanager
    def build(self, fingerprint: IndexFingerprint, reason: str) -> Iterator[LanceBuild]:  # noqa: ARG002
        """Build a new generation beside the one that answers."""
        database = self.place.database()
        with ExitStack() as using:
            with self.place.turn("begin a rebuild") as turn, plain_faults():
                number = next_generation(database, turn.pointer)
                using.enter_context(self.place.using(number))
                made = GenerationTable.create(database, Pointer(generation=number, fingerprint=fingerprint))
            beside = LanceBuild(made, self.place, self._one_at_a_time, using)
            try:
                yield beside
            except BaseException:
                self._discard(number, beside.pointer.generation)
                raise

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files so that their text is in no byte of any table: what lives moves to a new one.

        LanceDB's own compaction leaves a fragment alone of which only a few rows are gone, and their text in it.
        """
        with self._one_at_a_time, self.place.turn("erase files") as turn:
            pointer = turn.pointer
            try:
                with self._publish_damage(turn):
                    self._erase(turn, pointer, source, paths)
            except IndexCorrupt:
                self._drop_others(turn, pointer)  # a damaged table, too, holds the text
                raise
            self._drop_others(turn, pointer)

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        with self._newest() as view:
            return facts_of(view, self.place.uri)

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part."""
        with self._newest() as view:
            return sizes_of(view)

    @contextmanager
    def contents(self) -> Iterator[LanceContents]:
        """All that the newest published index holds."""
        with self._newest() as view:
            yield LanceContents(view)

    def close(self) -> None:
        """Let go of the tables; the next use opens them again."""
        with self._guard:
            self._view = None
            self._written = None
        self.place.close()

    def _begin(self, pointer: Pointer) -> tuple[GenerationTable | None, Draft]:
        """The table to write to, and an empty draft on it."""
        if pointer.fingerprint is None:
            return None, Draft((), {}, None, next_id=1, next_owner=1)
        table = GenerationTable.open(self.place.database(), pointer)
        if self._written is not None and self._written[0] == pointer:
            return table, self._written[1]
        return table, table.draft(self._view_of(pointer))

    def _write(self, turn: Turn, table: GenerationTable, draft: Draft, revision: int) -> None:
        """Commit a draft and let it answer. Only then may versions go that answered before."""
        table.write(draft)
        table.pointer = replace(table.pointer, revision=revision)
        turn.publish(table.pointer)
        if table.is_untidy:
            table.compact()
            turn.publish(table.pointer)
            table.clean()
        self._written = table.pointer, draft

    def _erase(self, turn: Turn, pointer: Pointer, source: Source, paths: Sequence[str]) -> None:
        """Let a copy without some files answer."""
        table, draft = self._begin(pointer)
        self._written = None
        number = next_generation(self.place.database(), pointer)
        if table is None:
            # A table that is being built is dropped all the same, and no other may ever have its number.
            turn.publish(replace(pointer, generation=number))
            return
        before = draft.changes
        for path in paths:
            draft.remove(source, path)
        table.write(draft)
        with _drop_unless_made(self.place, number):
            new = table.copy_to(number)
        turn.publish(replace(new.pointer, revision=pointer.revision + draft.changes - before))

    def _drop_others(self, turn: Turn, replaced: Pointer) -> None:
        self.close()
        self.place.drop_others(turn.pointer.generation, replaced.generation)

    def _discard(self, *begun: int) -> None:
        """Drop tables of a rebuild that has failed; one that answers by now has not."""
        with suppress(PlainmindError):  # what brought us here is on its way; the next rebuild sweeps up
            for number in set(begun) - {self.place.pointer().generation}:
                self.place.drop(number)

    @contextmanager
    def _newest(self) -> Iterator[LanceView]:
        with self.place.current() as pointer, self._set_aside_damage(pointer):
            yield self._view_of(pointer)

    def _view_of(self, pointer: Pointer) -> LanceView:
        """The view of a state; made once for all who ask."""
        with self._guard:
            view = self._view
            if view is None or view.pointer != pointer:
                before = view if view and view.pointer.generation == pointer.generation else None
                table = None
                if pointer.fingerprint is not None:
                    self.place.check(pointer)
                    table = open_table(self.place.database(), pointer)
                view = LanceView(pointer, table, before.cache if before else new_cache(), before)
                self._view = view
            return view

    @contextmanager
    def _set_aside_damage(self, pointer: Pointer) -> Iterator[None]:
        """When a block finds its table damaged, let an empty index, which asks to be rebuilt, answer instead."""
        try:
            yield
        except (IndexCorrupt, TableFault) as error:
            with self._guard:
                self._view = None
            if isinstance(error, TableFault) and not error.is_damage:
                raise refusal(error) from error
            with self.place.turn("replace a damaged index") as turn:
                if turn.pointer != pointer:
                    # The version that was looked at is too old, or gone with its table: what answers now may be whole.
                    raise IndexUnavailable(
                        "the index was replaced while it was read", hint="try again"
                    ) from error
                self._publish_nothing(turn, str(error))
            raise _damage(error) from error

    @contextmanager
    def _publish_damage(self, turn: Turn, *, writing: bool = False) -> Iterator[None]:
        """The same for a block that has its turn already. What LanceDB says of rows to be written is not damage."""
        try:
            yield
        except (IndexCorrupt, TableFault) as error:
            if isinstance(error, TableFault) and not (error.is_missing if writing else error.is_damage):
                raise refusal(error) from error
            self._publish_nothing(turn, str(error))
            raise _damage(error) from error

    def _publish_nothing(self, turn: Turn, reason: str) -> None:
        with plain_faults():
            number = next_generation(self.place.database(), turn.pointer)
        turn.publish(Pointer(generation=number, recovered=reason))


class LanceBuild:
    """A new generation while it is built: files wait in memory, and are written in large batches."""

    is_being_built = True

    def __init__(
        self, table: GenerationTable, place: Place, publishing_lock: threading.RLock, using: ExitStack
    ) -> None:
        """`using` keeps the table from being dropped; the threads that publish or change the old index share a lock."""
        self._one_at_a_time = threading.RLock()
        self._table = table
        self._place = place
        self._publishing_lock = publishing_lock
        self._using = using
        self._failure: Exception | None = None
        with _plain_faults_of_build():
            self._draft = table.draft(table.view())

    @property
    def pointer(self) -> Pointer:
        """What is to be published."""
        return replace(self._table.pointer, revision=self._draft.changes)

    def finish(self) -> None:
        """Write all that waits, pack it, and index it: the long part, in which others may change the old index."""
        with self._one_at_a_time, _plain_faults_of_build():
            self._write()
            self._table.pack(self._draft)
            self._table.index_vectors(sum(file.chunks for file in self._draft.files.values()))

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Have the turn, and let this table answer at the end."""
        with self._publishing_lock, self._place.turn("publish a rebuild") as turn:
            yield
            with plain_faults():
                spare = next_generation(self._place.database(), turn.pointer)
                with _drop_unless_made(self._place, spare):
                    self._settle(spare)
                turn.publish(self.pointer)
            self._using.close()
            self._place.drop_unused(self.pointer.generation)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Look at what has been put in so far."""
        with self._look() as view:
            yield Reader(view)

    @contextmanager
    def changing(self, operation: str) -> Iterator[Draft]:  # noqa: ARG002
        """One change, which waits with others to be written."""
        with self._one_at_a_time, _plain_faults_of_build():
            yield self._draft
            if self._draft.waiting_bytes > _MOST_BYTES:
                self._write(closing=False)

    def joined(self) -> AbstractContextManager[None]:
        """Do nothing: changes wait for one another as it is."""
        return nullcontext()

    def body_of(self, chunk: Chunk) -> bytes:
        """What the row of a chunk holds beside numbers."""
        return chunk_body(chunk)

    def build(self, fingerprint: IndexFingerprint, reason: str) -> NoReturn:  # noqa: ARG002
        """Refuse: this is a rebuild already."""
        raise IndexUnavailable("an index that is being built cannot be rebuilt", hint="leave the block first")

    def erase(self, source: Source, paths: Sequence[str]) -> None:
        """Drop files; nothing of them is published."""
        for path in paths:
            with self.changing("erase files") as draft:
                draft.remove(source, path)

    def describe(self) -> Mapping[str, Any]:
        """Say what this is."""
        return {"driver": "lancedb", "path": None, "building": True}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part of what was built so far."""
        with self._look() as view:
            return sizes_of(view)

    @contextmanager
    def contents(self) -> Iterator[LanceContents]:
        """All that was built so far."""
        with self._look() as view:
            yield LanceContents(view)

    def close(self) -> None:
        """Do nothing: the end of the `build()` block closes it."""

    def _settle(self, spare: int) -> None:
        """Write what was caught up on; what was taken out again is in no version of the table that is published."""
        with self._one_at_a_time, _plain_faults_of_build():
            self._write()
            self._table.check_whole()
            if self._table.deleted:
                self._table = self._table.copy_to(spare)

    @contextmanager
    def _look(self) -> Iterator[LanceView]:
        with _plain_faults_of_build():
            with self._one_at_a_time:
                self._write()
                view = self._table.view()
            yield view

    def _write(self, *, closing: bool = True) -> None:
        """Write what waits, unless text was erased meanwhile and the table dropped: it may be in that too."""
        if self._failure is not None:
            raise self._failure  # it is not known how much of the draft is in the table
        try:
            self._table.check_whole()
            self._table.write(self._draft, closing=closing)
        except Exception as error:
            self._failure = error
            raise


@contextmanager
def _plain_faults_of_build() -> Iterator[None]:
    """Say in words what LanceDB refused; a table that is gone was dropped, mostly because text was erased."""
    try:
        yield
    except TableFault as fault:
        if fault.is_missing:
            raise IndexUnavailable(
                "text was erased while the index was rebuilt, or another host has rebuilt it: this one was dropped",
                hint="run `plainmind sync`: it begins again",
            ) from fault
        with plain_faults():
            raise


@contextmanager
def _drop_unless_made(place: Place, number: int) -> Iterator[None]:
    """Leave nothing of a table behind that a block did not finish. Needs a turn."""
    try:
        yield
    except BaseException:
        with suppress(PlainmindError):  # what brought us here is on its way; the next rebuild sweeps up
            place.drop(number)
        raise


def _damage(error: Exception) -> IndexCorrupt:
    return IndexCorrupt(f"the index is damaged: {error}", hint="run `plainmind sync`: it is built anew")


class LanceStore(Store):
    """An index in a local folder, made when it is missing, or in an object store: `s3://bucket/prefix`."""

    driver: LanceDriver

    def __init__(
        self, folder: str, *, storage_options: Mapping[str, str] | None = None, is_named: bool = True
    ) -> None:
        super().__init__(LanceDriver(folder, storage_options, is_named=is_named))


def open_lance_store(
    folder: str,
    uri: str | None = None,
    workspace: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> LanceStore:
    """Open the index of an agent and a workspace: in its folder, or beneath `uri` in an object store.

    The last two names of `folder` are those of the agent and the workspace. Hosts that share a workspace may know it by
    different folders: `workspace` is then what all of them call it. In an object store it is needed: other hosts have
    folders of the same name, and would find each other's notes.
    """
    if uri is None:
        return LanceStore(folder)
    agent, name = os.path.split(os.path.abspath(folder))
    place = "/".join((_whole_address(uri).rstrip("/"), os.path.basename(agent), workspace or name))
    return LanceStore(place, storage_options=storage_options, is_named=bool(workspace))


def _whole_address(uri: str) -> str:
    """An address, or a path that means the same wherever a program is started. Raises ConfigError."""
    if "://" in uri:
        return uri
    path = expand_user(uri)
    if not os.path.isabs(path):
        raise ConfigError(
            f"`store.uri` is neither an address nor a whole path: {uri}",
            key="store.uri",
            hint="write s3://bucket/folder, gs://… or az://…, or a path that begins with / or ~",
        )
    return path
