"""What QMD is to know of a memory, and what it does know: its collections, its configuration, its index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from commonplace.backends.protocol import Surroundings
from commonplace.backends.qmd.collections import Collection, collections_of, config_text
from commonplace.backends.qmd.command import Homes, configured_models
from commonplace.backends.qmd.exports import Exports
from commonplace.backends.qmd.options import QmdOptions
from commonplace.backends.qmd.pace import Done, Wanted
from commonplace.backends.record import Record
from commonplace.files.atomic import write_atomically
from commonplace.files.failures import explaining
from commonplace.files.system import SYSTEM, make_folders
from commonplace.model import FileFailure
from commonplace.sources.discovery import FoundFile
from commonplace.text.hashing import sha256_text

_BESIDE_THE_INDEX = ("", "-wal", "-shm", "-journal")


class Territory:
    """The files of one memory, as QMD is told of them."""

    def __init__(self, surroundings: Surroundings, options: QmdOptions, record: Record) -> None:
        self.workspace = surroundings.workspace
        self.transcripts = surroundings.transcripts
        self.homes = Homes.beneath(surroundings.folder)
        self._surroundings = surroundings
        self._options = options
        self._record = record
        self._seen: Wanted | None = None
        # As of the last look: the files by how they are cited, the conversations by the paths of their copies.
        self.files: Mapping[str, FoundFile] = {}
        self.copied: Mapping[str, FoundFile] = {}
        folder = options.export_folder or os.path.join(surroundings.folder, "sessions")
        self.exports = (
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

    def collections(self) -> tuple[Collection, ...]:
        """Everything that it is to index."""
        of_files = collections_of(
            self.workspace.root,
            self._surroundings.places,
            agent_id=self._surroundings.agent_id,
            include_default=self._options.include_default_memory,
        )
        return (*of_files, *(self.exports.collections() if self.exports is not None else ()))

    def look(self, now: float) -> Wanted:
        """Look at the files, as they are now."""
        self.files = {found.path: found for found in self.workspace.discover().files}
        self.copied = self.exports.wanted(now) if self.exports is not None else {}
        listed = (*self.files.values(), *self.copied.values())
        listing = "\n".join(
            f"{each.path}\0{each.size}\0{each.mtime_ns}\0{each.inode}\0{each.scope}" for each in listed
        )
        self._seen = Wanted(sha256_text(self._config()), sha256_text(listing))
        return self._seen

    def wanted(self) -> Wanted:
        """How it should be, as of the last look."""
        return self._seen or self.look(0.0)

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

    def is_behind(self) -> bool:
        """Whether the files have changed since it looked at them."""
        done, wanted = self.done(), self.wanted()
        return (done.config, done.listing) != (wanted.config, wanted.listing)

    def prepare(self, now: float) -> tuple[FileFailure, ...]:
        """Write down what it is to index, and make the copies of conversations; what could not be copied."""
        config = self._config()
        names = [collection.name for collection in self.collections()]
        known = self._record["collections"]
        if isinstance(known, list) and not set(known) <= set(names):
            self.delete_index()  # it keeps the text of collections that it is not told of any more
        with explaining("create", self.homes.cache):
            make_folders(SYSTEM, os.path.dirname(self.homes.index_file))
        self._share_models()
        write_atomically(self.homes.config_file, config.encode("utf-8", "surrogateescape"))
        self._record.update(collections=names)
        return self.exports.bring_up_to_date(now) if self.exports is not None else ()

    def was_seen(self, wanted: Wanted, now: float) -> None:
        """Note what it has looked at, and when."""
        self._record.update(updatedAt=now, config=wanted.config, listing=wanted.listing)

    def erase(self) -> None:
        """Delete its index and the copies of conversations."""
        self.delete_index()
        if self.exports is not None:
            self.exports.erase()

    def delete_index(self) -> None:
        """Delete its index: the next update makes it anew."""
        delete_index(self.homes)
        self._record.update(updatedAt=0, embeddedAt=0, embeddingBeganAt=0, config="", listing="")

    def _config(self) -> str:
        return config_text(self.collections(), configured_models(self._surroundings.environ))

    def _share_models(self) -> None:
        """Let it find the models that were fetched for its user: they are gigabytes, and the same for all."""
        environ = self._surroundings.environ
        cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", ""), ".cache")
        shared = os.path.join(cache, "qmd", "models")
        if os.path.isabs(shared) and os.path.isdir(shared):
            with suppress(FileExistsError), explaining("link", self.homes.models):
                os.symlink(shared, self.homes.models)


def delete_index(homes: Homes) -> None:
    """Delete an index, also one that no longer is in use."""
    for ending in _BESIDE_THE_INDEX:
        path = homes.index_file + ending
        with explaining("remove", path), suppress(FileNotFoundError):
            os.unlink(path)
