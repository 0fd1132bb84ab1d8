"""What QMD is to know of a memory, and what it does know: its collections, its configuration, its index."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from plainmind.base.model import Document, FileFailure, sha256_text
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import SYSTEM, explain_errors, make_folders
from plainmind.guests.qmd.collections import Collection, collections_of, config_text, left_out
from plainmind.guests.qmd.exports import Exports, erase_copies
from plainmind.guests.qmd.options import Done, QmdOptions, Wanted
from plainmind.guests.qmd.program import Homes, configured_models
from plainmind.memory.backend import Record, Surroundings
from plainmind.notes.discovery import FoundFile, reading_in

_BESIDE_THE_INDEX = ("", "-wal", "-shm", "-journal")


@value
class Look:
    """What there was at one look."""

    wanted: Wanted
    collections: tuple[Collection, ...]
    files: Mapping[str, FoundFile]  # by how they are cited
    copied: Mapping[str, FoundFile]  # conversations, by the paths of their copies
    left_out: int  # files that it will not read


class Territory:
    """The files of one memory, as QMD is told of them."""

    def __init__(
        self, surroundings: Surroundings, options: QmdOptions, record: Record, now: Callable[[], float]
    ) -> None:
        self.workspace = surroundings.workspace
        self.homes = Homes.beneath(surroundings.folder)
        self._surroundings = surroundings
        self._options = options
        self._record = record
        self._now = now
        folder = options.export_folder or exports_in(surroundings.folder)
        self._exports = (
            Exports(
                surroundings.transcripts,
                folder,
                surroundings.erasures,
                agent_id=surroundings.agent_id,
                retention_days=options.retention_days,
            )
            if surroundings.transcripts is not None
            else None
        )

    def look(self) -> Look:
        """Look at the files, as they are now."""
        files = {found.path: found for found in self.workspace.discover().files}
        conversations = self._exports.discover() if self._exports is not None else ()
        copied = self._exports.wanted(conversations, self._now()) if self._exports is not None else {}
        collections = collections_of(
            self.workspace.root,
            self._surroundings.places,
            agent_id=self._surroundings.agent_id,
            include_default=self._options.include_default_memory,
            is_folder_of_notes=self.workspace.is_folder_of_notes,
            others=self._exports.collections(conversations) if self._exports is not None else (),
        )
        listing = "\n".join(
            f"{each.path}\0{each.size}\0{each.mtime_ns}\0{each.inode}\0{each.scope}"
            for each in (*files.values(), *copied.values())
        )
        wanted = Wanted(sha256_text(self._config(collections)), sha256_text(listing))
        return Look(wanted, collections, files, copied, len(left_out(files, collections)))

    def done(self) -> Done:
        """How it is."""
        if not os.path.exists(self.homes.index_file):
            return Done(0.0, 0.0, "", "")
        record = self._record
        return Done(
            record.number("updatedAt"),
            record.number("embeddingBeganAt"),
            str(record["config"] or ""),
            str(record["listing"] or ""),
        )

    def is_behind(self, look: Look) -> bool:
        """Whether the files have changed since it looked at them."""
        done = self.done()
        return (done.config, done.listing) != (look.wanted.config, look.wanted.listing)

    def prepare(self, look: Look, deadline: float) -> tuple[FileFailure, ...]:
        """Write down what it is to index, and make the copies of conversations; what could not be copied.

        Raises BackendBusy when that takes too long; it is gone on with next time.
        """
        folders = {collection.name: collection.folder for collection in look.collections}
        self._drop_what_is_not_wanted(folders)
        with explain_errors("create", self.homes.cache):
            make_folders(SYSTEM, os.path.dirname(self.homes.index_file))
        self._share_models()
        config = self._config(look.collections)
        write_atomically(self.homes.config_file, config.encode("utf-8", "surrogateescape"))
        self._record.update(collections=folders)
        if self._exports is None:
            return ()
        if self._exports.superfluous(look.copied):
            self._record.update(isUntidy=True)  # first: whoever is killed now does not come back to it
        return self._exports.bring_up_to_date(look.copied, deadline)

    def was_seen(self, look: Look, began: float) -> None:
        """Note what it has looked at, and when."""
        if not self.drop_what_was_erased():
            self._record.update(updatedAt=began, config=look.wanted.config, listing=look.wanted.listing)

    def drop_what_was_erased(self) -> bool:
        """Delete its index if something was erased since it was begun: it may have read that before, or still do."""
        has_changed = bool(self._erasure() != self._record["erasure"])
        if has_changed:
            self.delete_index()
        return has_changed

    def piece(self, path: str, conversations: Mapping[str, FoundFile]) -> Document | None:
        """The lines that a copy, or a part of one, was made of; None when it is of none of these conversations."""
        return None if self._exports is None else self._exports.piece(path, conversations)

    def erase(self) -> None:
        """Delete its index and the copies of conversations."""
        self.delete_index()
        if self._exports is not None:
            self._exports.erase()

    def delete_index(self) -> None:
        """Delete its index: the next update makes it anew."""
        delete_index(self.homes)
        self._record.update(
            updatedAt=0, embeddedAt=0, embeddingBeganAt=0, config="", listing="", isUntidy=False
        )

    def _drop_what_is_not_wanted(self, folders: Mapping[str, str]) -> None:
        """Delete what it keeps of folders that it is not told of any more, and what was read before an erasure.

        It has no way to forget a text for good, but to begin anew.
        """
        record = self._record
        known = record["collections"]
        erasure = self._erasure()
        if (
            not self.drop_what_was_erased()
            and isinstance(known, dict)
            and not known.items() <= folders.items()
        ):
            self.delete_index()
        self._drop_copies_with_secrets()
        exports = None if self._exports is None else self._exports.folder
        for old in {str(record["exports"] or exports_in(self._surroundings.folder))} - {exports}:
            erase_copies(old)
        record.update(erasure=erasure, exports=exports)

    def _drop_copies_with_secrets(self) -> None:
        """Delete copies that were made by older rules, or before a secret was known, and the index made of them."""
        transcripts = self._surroundings.transcripts
        if self._exports is None or transcripts is None:
            return
        if reading_in(str(self._record["reading"] or "")).is_older_than(transcripts.reading):
            self.delete_index()
            self._exports.erase()
            self._record.update(reading=str(transcripts.reading))

    def _erasure(self) -> list[int]:
        """What changes with every erasure."""
        return list(self._surroundings.erasures.stamp() or ())

    def _config(self, collections: tuple[Collection, ...]) -> str:
        return config_text(collections, configured_models(self._surroundings.environ))

    def _share_models(self) -> None:
        """Let it find the models that were fetched for its user: they are gigabytes, and the same for all."""
        environ = self._surroundings.environ
        cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", ""), ".cache")
        shared = os.path.join(cache, "qmd", "models")
        if os.path.isabs(shared) and os.path.isdir(shared):
            with explain_errors("link", self.homes.models), suppress(FileExistsError):
                SYSTEM.symlink(shared, self.homes.models)


def exports_in(folder: str) -> str:
    """Where copies of conversations are, when no other place was chosen for them."""
    return os.path.join(folder, "sessions")


def delete_index(homes: Homes) -> None:
    """Delete an index, also one that no longer is in use."""
    for ending in _BESIDE_THE_INDEX:
        path = homes.index_file + ending
        with explain_errors("remove", path), suppress(FileNotFoundError):
            SYSTEM.unlink(path)


def erase_folder(folder: str) -> None:
    """Delete all copies of text that QMD keeps for a workspace in this folder, and where it exported conversations."""
    delete_index(Homes.beneath(folder))
    erase_copies(exports_in(folder))
    elsewhere = Record(os.path.join(folder, "record.json"))["exports"]
    if isinstance(elsewhere, str):
        erase_copies(elsewhere)
