"""What QMD is to know of a memory, and what it does know: its collections, copies of conversations, its index.

Copies are Markdown, without secrets, a folder for each scope, and not for ever. A copy has as many parts as the
transcript has pieces: one of any length is copied, gone on with and cited from while no more than a piece of it is in
memory. Where each part begins in the transcript is kept beside the copy.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import (
    EVERY_SCOPE,
    PRIVATE,
    SHARED_FOLDER,
    Document,
    FileFailure,
    FileState,
    Source,
    sha256_text,
)
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.safe_open import Root
from plainmind.files.system import SYSTEM, Erasures, explain_errors, make_folders, read_file
from plainmind.guests.qmd.program import Done, Homes, QmdOptions, Wanted, configured_models
from plainmind.memory.backend import BackendBusy, Place, Record, Surroundings, names_in
from plainmind.notes.discovery import FoundFile, reading_in
from plainmind.notes.scopes import scope_of_path
from plainmind.notes.source import START, Mark, extent_of
from plainmind.sessions.transcripts import FOLDER, Transcripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.notes.source import Piece


# --- what it indexes, by name ---


EVERY_NOTE = "**/*.md"
_CURATED = "{MEMORY,memory,USER,TOOLS,IDENTITY,SOUL}.md"
_UNSAFE = pattern(r"[^A-Za-z0-9_]+")
_GLOB = pattern(r"([\\*?\[\]{}()!+@|])")
_NEVER_ENTERED = frozenset({"build", "dist", "node_modules", "vendor"})  # nor hidden ones, as we do not


@value
class Collection:
    """Files of one folder. `memory/` before a path relative to it gives how it is cited."""

    name: str
    folder: str
    pattern: str
    cited: str  # what stands before the relative path: "", or with a final slash
    scope: str = PRIVATE  # who may see it, beside the owner
    source: Source = "memory"
    is_part: bool = False  # its files are in another collection too, that only the owner may ask


def collections_of(
    root: Root,
    places: Sequence[Place],
    *,
    agent_id: str,
    include_default: bool,
    is_folder_of_notes: bool = False,
    others: Sequence[Collection] = (),
) -> tuple[Collection, ...]:
    """The collections of the memory files, and `others`; those of a group or a person are folders of their own."""
    own = _default(root, agent_id, is_folder_of_notes=is_folder_of_notes) if include_default else ()
    found = [*own, *others]
    taken = {collection.name for collection in found}
    found.extend(_of_place(place, taken) for place in places)
    return tuple(found)


def left_out(paths: Iterable[str], collections: Sequence[Collection]) -> list[str]:
    """Which cited paths it leaves out of every collection, without a word, because of what a folder is called."""
    doubtful = (path for path in paths if not _NEVER_ENTERED.isdisjoint(path.split("/")[:-1]))
    return [path for path in doubtful if not any(_enters(each, path) for each in collections)]


def _enters(collection: Collection, path: str) -> bool:
    below = path.removeprefix(collection.cited).split("/")[:-1]
    return path.startswith(collection.cited) and _NEVER_ENTERED.isdisjoint(below)


def _default(root: Root, agent_id: str, *, is_folder_of_notes: bool) -> Iterator[Collection]:
    if is_folder_of_notes:
        yield Collection(f"memory-root-{agent_id}", root.real, EVERY_NOTE, "")
    else:
        yield Collection(f"memory-root-{agent_id}", root.real, _CURATED, "")
        yield Collection(f"memory-dir-{agent_id}", os.path.join(root.real, "memory"), EVERY_NOTE, "memory/")
    for cited, scope in _shared(root, SHARED_FOLDER):
        folder = os.path.join(root.real, cited)
        name = f"{key_of_scope(scope)}-{agent_id}"
        yield Collection(name, folder, EVERY_NOTE, f"{cited}/", scope, is_part=True)


def _shared(root: Root, cited: str) -> Iterator[tuple[str, str]]:
    """The folders of groups, people and everyone, as cited, with who may see them; some lie in one of a channel."""
    try:
        names = sorted(os.listdir(os.path.join(root.real, cited)))
    except OSError:
        return
    for name in names:
        below = f"{cited}/{name}"
        folder = os.path.join(root.real, below)
        if os.path.islink(folder) or not os.path.isdir(folder):
            continue
        scope = scope_of_path(f"{below}/x.md")
        if scope != PRIVATE:
            yield below, scope
        elif cited == SHARED_FOLDER:
            yield from _shared(root, below)


def _of_place(place: Place, taken: set[str]) -> Collection:
    mount = place.mount
    folder, cited, mask = mount.real, mount.cited, place.pattern
    if folder.lower().endswith(".md") and not os.path.isdir(folder):
        folder, mask = os.path.dirname(folder), _GLOB.sub(r"\\\1", os.path.basename(folder))
        cited = os.path.dirname(cited)
    name = _UNSAFE.sub("-", cited.removeprefix("qmd/")).strip("-_")[:60] or "workspace"
    numbered = (f"{name}-{number}" if number > 1 else name for number in range(1, 10_000))
    name = next(each for each in numbered if each not in taken)
    taken.add(name)
    return Collection(name, folder, mask, f"{cited}/" if cited else "", mount.scope)


def key_of_scope(scope: str) -> str:
    """A name for a scope that names nobody."""
    return "private" if scope == PRIVATE else f"scope-{sha256_text(scope)[:16]}"


def askable(
    collections: Iterable[Collection], scopes: frozenset[str], sources: Sequence[Source]
) -> tuple[Collection, ...]:
    """The collections that a question may be put to: others are not even named."""
    everything = scopes == EVERY_SCOPE
    return tuple(
        collection
        for collection in collections
        if collection.source in sources
        and (not collection.is_part if everything else collection.scope in scopes)
    )


def config_text(collections: Iterable[Collection], models: Mapping[str, str]) -> str:
    """What stands in its configuration, as JSON, which YAML has as a part of it.

    Written by us each time it should be another one, with the models in it: it keeps the first ones it was told of.
    """
    wanted = {
        collection.name: {"path": collection.folder, "pattern": collection.pattern}
        for collection in collections
    }
    config: dict[str, object] = {"collections": wanted}
    if models:
        config["models"] = dict(models)
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def folded(path: str) -> str:
    """A path as older versions of it write them: small letters, and a dash for everything unusual."""
    stem = re.sub(r"\.md$", "", path.casefold())
    return "/".join(re.sub(r"[^\w]+|_", "-", part).strip("-") for part in stem.split("/"))


# --- copies of conversations ---


ENDING = ".parts"
_OUR_FOLDER = pattern(r"private|scope-[0-9a-f]{16}")
_UNFINISHED = pattern(r"\..+\.\d+\.[0-9a-f]{16}\.tmp", re.DOTALL)  # left by a process that was killed
_NAME = pattern(r"(?P<stem>.+?)(?:%part(?P<number>[1-9]\d{0,8}))?\.(?:md|parts)", re.DOTALL)
_DAY_S = 86_400


@value
class Ledger:
    """The parts of one copy. It holds no text."""

    begins: tuple[Mark, ...] = ()  # of each part that was written
    state: FileState | None = None  # how the transcript looked, as far as it was copied
    resumes_at: Mark = START  # behind the last part, or at its beginning when it may grow
    is_complete: bool = False

    def is_of(self, found: FoundFile) -> bool:
        """Whether all of a transcript, as it looks now, has been copied."""
        state = self.state
        return (
            self.is_complete
            and state is not None
            and (state.size, state.mtime_ns, state.inode) == (found.size, found.mtime_ns, found.inode)
        )


def ledger_after(piece: Piece, begins: Sequence[Mark]) -> Ledger:
    """What is known once the last of the parts was written, which a piece is in, if it has a text."""
    resumes_at = (begins[-1] if begins else START) if piece.is_last else piece.end
    return Ledger(tuple(begins), piece.state, resumes_at, piece.is_last)


def read_ledger(path: str, found: FoundFile) -> Ledger:
    """What was copied of a transcript; nothing, when that cannot be told."""
    try:
        written = json.loads(read_file(path))
        size, mtime_ns, inode = map(int, written["seen"])
        begins = tuple(map(_mark, written["begins"]))
        resumes_at = _mark(written["resumesAt"])
        is_complete = written["complete"] is True
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Ledger()
    state = FileState(found.path, "sessions", "", size, mtime_ns, inode)
    return Ledger(begins, state, resumes_at, is_complete)


def write_ledger(path: str, ledger: Ledger) -> None:
    """Keep it. Raises StorageFailure."""
    state = ledger.state
    written: dict[str, Any] = {
        "begins": [str(mark) for mark in ledger.begins],
        "complete": ledger.is_complete,
        "resumesAt": str(ledger.resumes_at),
        "seen": None if state is None else [state.size, state.mtime_ns, state.inode],
    }
    write_atomically(path, json.dumps(written).encode())


def _mark(written: str) -> Mark:
    found = extent_of(written)
    if found is None:
        raise ValueError(written)
    return found.whole


class Exports:
    """The copies of one agent's conversations in one folder."""

    def __init__(
        self,
        transcripts: Transcripts,
        folder: str,
        erasures: Erasures,
        *,
        agent_id: str,
        retention_days: int,
    ) -> None:
        self.folder = folder
        self._transcripts = transcripts
        self._erasures = erasures
        self._agent_id = agent_id
        self._retention_s = retention_days * _DAY_S

    def discover(self) -> tuple[FoundFile, ...]:
        """The conversations that there are."""
        return self._transcripts.discover().files

    def collections(self, conversations: Iterable[FoundFile]) -> tuple[Collection, ...]:
        """One for each scope that a copy may be made for, and one for the owner's own."""
        scopes = {PRIVATE: None} | dict.fromkeys(found.scope for found in conversations)
        return tuple(
            Collection(
                f"sessions-{'' if scope == PRIVATE else key_of_scope(scope) + '-'}{self._agent_id}",
                os.path.join(self.folder, key_of_scope(scope)),
                EVERY_NOTE,
                FOLDER,
                scope,
                "sessions",
            )
            for scope in scopes
        )

    def wanted(self, conversations: Iterable[FoundFile], now: float) -> dict[str, FoundFile]:
        """The conversations that are to be copied, by the path of the first part."""
        return {
            os.path.join(self.folder, key_of_scope(found.scope), export_name(found.path)): found
            for found in conversations
            if now - found.mtime_ns / 1e9 < self._retention_s
        }

    def superfluous(self, wanted: Mapping[str, FoundFile]) -> list[str]:
        """What there is of conversations that are too old or gone."""
        return [path for path in _present(self.folder) if conversation_of(path)[0] not in wanted]

    def bring_up_to_date(self, wanted: Mapping[str, FoundFile], deadline: float) -> tuple[FileFailure, ...]:
        """Copy what is new or has grown, and remove what is superfluous; what could not be copied, and why.

        Raises BackendBusy when there is more to copy than time; what was copied is kept, and gone on with next time.
        """
        for path in self.superfluous(wanted):
            _remove(path)
        present: dict[str, set[str]] = {}
        for path in _present(self.folder):
            present.setdefault(conversation_of(path)[0], set()).add(path)
        failures = []
        for first, found in wanted.items():
            try:
                self._copy(first, found, present.get(first, set()), deadline)
            except BackendBusy:
                raise
            except PlainmindError as error:
                failures.append(FileFailure(found.path, str(error)))
                for path in _present(self.folder):
                    if conversation_of(path)[0] == first:
                        _remove(path)
        return tuple(failures)

    def piece(self, path: str, wanted: Mapping[str, FoundFile]) -> Document | None:
        """The lines of the conversation that a part was made of, as they are now; None when there is no such part."""
        first, number = conversation_of(path)
        found = wanted.get(first)
        if found is None:
            return None
        ledger = read_ledger(_ledger_of(first), found)
        if number > len(ledger.begins):
            return None
        pieces = self._transcripts.read_on(found, ledger.state, ledger.begins[number - 1])
        return next(pieces).document

    def erase(self) -> None:
        """Remove every copy."""
        erase_copies(self.folder)

    def _copy(self, first: str, found: FoundFile, there: set[str], deadline: float) -> None:
        """Copy one conversation, from where it was left."""
        stamp = self._erasures.stamp()
        ledger = read_ledger(_ledger_of(first), found)
        parts = {part_path(first, number) for number in range(1, len(ledger.begins) + 1)}
        if not parts <= there:
            ledger = Ledger()
        elif ledger.is_of(found) and there == parts | {_ledger_of(first)}:
            return
        begins = [begin for begin in ledger.begins if begin.offset < ledger.resumes_at.offset]
        for piece in self._transcripts.read_on(found, ledger.state, ledger.resumes_at):
            if piece.begin == START:
                begins = []  # it is not the file that it was, or has only one part
            is_over = piece.is_last or time.monotonic() >= deadline
            with self._erasures.hold_off():
                self._require_that_nothing_was_erased_since(stamp)
                if piece.document.text:
                    begins.append(piece.begin)
                    _write(part_path(first, len(begins)), _name_of(first), piece.document.text)
                if is_over:
                    write_ledger(_ledger_of(first), ledger_after(piece, begins))
            if is_over and not piece.is_last:
                raise BackendBusy("it has not been given all conversations yet, and gets more next time")
        for path in there - {part_path(first, number + 1) for number in range(len(begins))}:
            if path != _ledger_of(first):
                _remove(path)

    def _require_that_nothing_was_erased_since(self, stamp: Any) -> None:
        """Nothing that was read before an erasure is written after it."""
        if self._erasures.stamp() != stamp:
            raise BackendBusy("something was forgotten meanwhile")


def erase_copies(exports: str) -> None:
    """Remove every copy from a folder of exports, also from one that is no longer in use."""
    for path in _present(exports):
        _remove(path)


def export_name(cited: str) -> str:
    """The name of a copy: `abc.md` of `sessions/abc.jsonl`, and another one of each other file."""
    name = cited.removeprefix(FOLDER)
    stem = name.removesuffix(".jsonl")
    is_plain = stem != name and "/" not in stem and "%" not in stem and not stem.endswith(".md")
    return f"{stem}.md" if is_plain else f"{name.replace('%', '%25').replace('/', '%2F')}.md"


def part_path(first: str, number: int) -> str:
    """Where a part is: `abc.md`, `abc%part2.md`; in other names each percent sign has a number behind it."""
    return first if number == 1 else f"{first.removesuffix('.md')}%part{number}.md"


def conversation_of(path: str) -> tuple[str, int]:
    """The path of the first part, and the number of this one."""
    folder, name = os.path.split(path)
    found = _NAME.fullmatch(name)
    return (os.path.join(folder, f"{found['stem']}.md"), int(found["number"] or 1)) if found else (path, 1)


def _ledger_of(first: str) -> str:
    return first.removesuffix(".md") + ENDING


def _name_of(first: str) -> str:
    return os.path.basename(first).removesuffix(".md")


def _write(path: str, name: str, text: str) -> None:
    write_atomically(path, f"# Session {name}\n\n{text}\n".encode("utf-8", "replace"))


def _present(exports: str) -> Iterator[str]:
    """The copies that there are; of other files nothing is known, and nothing removed."""
    for name in filter(_OUR_FOLDER.fullmatch, names_in(exports)):
        folder = os.path.join(exports, name)
        for file in names_in(folder):
            if _NAME.fullmatch(file) or _UNFINISHED.fullmatch(file):
                yield os.path.join(folder, file)


def _remove(path: str) -> None:
    with explain_errors("remove", path), suppress(FileNotFoundError):
        SYSTEM.unlink(path)


# --- all that it knows ---


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
