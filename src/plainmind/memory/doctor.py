"""Everything that could be wrong with a memory, checked one by one, each with what to do about it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence

from plainmind.base.errors import PlainmindError, shell_word
from plainmind.base.lazy import find_by_name, pattern
from plainmind.base.model import SyncReport, sha256_bytes, split_lines
from plainmind.base.value import value
from plainmind.config.load import home_folder, make_home
from plainmind.files.history import APPEND, History
from plainmind.files.safe_open import user_home_or_root
from plainmind.files.system import hold_lock, try_lock
from plainmind.memory.workspace_setup import NO_NOTES
from plainmind.notes.discovery import CONFLICT_COPY, markdown_in
from plainmind.notes.source import NO_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from plainmind.files.history import Version
    from plainmind.memory.index import Index
    from plainmind.memory.memory import Memory
    from plainmind.notes.discovery import FoundFile
    from plainmind.notes.workspace import Workspace

# What a guest that keeps the index has to say of it, given the facts of the store.
_STORES = {"postgres": "plainmind.guests.postgres.config:examine"}
# What is wrong with the hosts that are connected, if there are any.
_CONNECTIONS = "plainmind.guests.hosts.health:examine_connections"
# What is wrong with the entry memory, if there is one, told by the guest that keeps it.
_ENTRIES = "plainmind.guests.entries.access:examine_entries"
# Whether there is a reranker, and time for it.
_RERANKER = "plainmind.guests.rerank.reranker:examine_reranker"

Verdict: TypeAlias = "Literal['ok', 'warning', 'problem']"

ENOUGH_FREE_BYTES = 100_000_000
_NUMBERED = pattern(r"(.+?)(?: \(?[1-9]\)?)(\.md)", re.IGNORECASE)


@value
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    detail: str
    hint: str | None = None


def examine(memory: Memory, *, verify: bool) -> list[Check]:
    """Run every check; `verify` also reads all that was ever written, which takes a while."""
    examiners: list[Callable[[Memory], Iterator[Check]]] = [
        _former_home,  # before anything else has made the new one
        _home,
        _former_path,
        _workspace,
        _skipped_files,
        _files_without_text,
        _conflicted_copies,
        _notes_beside,
        _secrets,
        _permissions,
        _disk_space,
        _locks,
        _embedder,
        _index,
        _engine,
        _reranker,
        _entries,
        _sharing,
        _settings,
        _missing_notes,
        _connections,
    ]
    if verify:
        examiners += [_written_notes, _index_equals_files]
    checks: list[Check] = []
    for examiner in examiners:
        name = examiner.__name__.strip("_").replace("_", " ")
        try:
            checks += examiner(memory)
        except (PlainmindError, OSError) as error:
            checks.append(
                Check(name, "problem", str(error), error.hint if isinstance(error, PlainmindError) else None)
            )
    return checks


def _workspace(memory: Memory) -> Iterator[Check]:
    path = memory.notes.workspace.path
    if not os.path.isdir(path):
        yield Check(
            "workspace", "problem", f"{path} does not exist", f"run `plainmind init {shell_word(path)}`"
        )
        return
    found = memory.notes.workspace.discover()
    if found.root_missing:
        yield Check("workspace", "problem", f"{path} cannot be read", "check its permissions and its disk")
        return
    files = f"{len(found.files):,} {'file' if len(found.files) == 1 else 'files'}"
    yield Check("workspace", "ok", f"{path}: {files} ({memory.places.workspace.reason})")
    for file in found.files:
        if not os.access(file.real, os.R_OK):
            hint = "its text is not found until you make it readable"
            yield Check("workspace", "warning", f"no permission to read {file.path}", hint)
    if not os.access(path, os.W_OK):
        yield Check("workspace", "warning", f"{path} is read-only", "searching works; remembering does not")


def _skipped_files(memory: Memory) -> Iterator[Check]:
    on_purpose = 0
    for skipped in memory.notes.workspace.discover().skipped:
        if skipped.reason == CONFLICT_COPY:
            continue  # told of by another check
        if skipped.reason == "hidden" or skipped.reason.startswith("ignored by"):
            on_purpose += 1
        else:
            yield Check("skipped files", "warning", f"{skipped.path}: {skipped.reason}")
    if on_purpose:
        names = "1 name is" if on_purpose == 1 else f"{on_purpose} names are"
        yield Check("skipped files", "ok", f"{names} hidden or ignored; `plainmind status` lists them")


def _files_without_text(memory: Memory) -> Iterator[Check]:
    """Name pictures, programs and the like that are called `.md`."""
    for file in memory.notes.workspace.discover().files:
        try:
            document, state = memory.notes.workspace.read(file)
        except (PlainmindError, OSError):
            continue  # said by another check
        if state.size and not document.text:
            yield Check("files without text", "warning", f"{file.path}: {NO_TEXT}", "nothing of it is found")


_MERGE = "merge it by hand, then delete the copy"


def _conflicted_copies(memory: Memory) -> Iterator[Check]:
    """Name the copies that programs made which keep folders in step: by their names, or because they say the same."""
    look = memory.notes.workspace.discover()
    for skipped in look.skipped:
        if skipped.reason == CONFLICT_COPY:
            yield Check("conflicted copies", "warning", f"{skipped.path}: {skipped.reason}, not read", _MERGE)
    notes = {found.path: found for found in look.files}
    for path, found in notes.items():
        numbered = _NUMBERED.fullmatch(path)
        original = notes.get(f"{numbered[1]}{numbered[2]}") if numbered else None
        if original is not None and _say_the_same(memory.text_of(original), memory.text_of(found)):
            detail = (
                f"{path} says much the same as {original.path}: perhaps a copy of iCloud, or of a download"
            )
            yield Check("conflicted copies", "warning", detail, _MERGE)


def _say_the_same(one: str, other: str) -> bool:
    """Whether most lines of the shorter text stand in the longer one."""
    lines = [{line.strip() for line in split_lines(text) if line.strip()} for text in (one, other)]
    return len(lines[0] & lines[1]) * 2 > min(map(len, lines))


_MOST_LOOKED_AT = 20_000


def _notes_beside(memory: Memory) -> Iterator[Check]:
    """Say of an agent's workspace how much Markdown lies in it that is not read: somebody may expect it to be."""
    detail = unread_in(memory.notes.workspace)
    if detail is not None:
        hint = "an empty `.plainmindignore` makes all of them the memory, `extraPaths` some of them"
        yield Check("notes beside", "ok", detail, hint)


def unread_in(
    workspace: Workspace, *, most_entries: int = _MOST_LOOKED_AT, is_more: bool = False
) -> str | None:
    """What Markdown of a workspace is not read, in words; with `is_more` only where it is more than what is read."""
    files = workspace.discover().files
    beside = unread_files(workspace, files, most_entries=most_entries)
    if not beside or (is_more and len(beside) <= len(files)):
        return None
    return f"{unread_in_words(beside)}: this is an agent's workspace, of MEMORY.md and memory/"


def unread_files(
    workspace: Workspace, files: Sequence[FoundFile], *, most_entries: int = _MOST_LOOKED_AT
) -> list[str]:
    """The Markdown in a workspace that is not among the files of its memory, by its paths there."""
    if workspace.is_folder_of_notes:
        return []
    read = {found.real for found in files}
    top = workspace.root.real
    beside = sorted(set(markdown_in(top, most_entries=most_entries)) - read)
    names = (os.path.relpath(path, top) for path in beside)
    return [name for name in names if name not in NO_NOTES]


def unread_in_words(beside: Sequence[str]) -> str:
    """How many files are not read, and one of them."""
    files = "1 Markdown file is" if len(beside) == 1 else f"{len(beside):,} Markdown files are"
    return f"{files} not read, such as {beside[0]}"


_MOST_SECRETS_NAMED = 20


def _secrets(memory: Memory) -> Iterator[Check]:
    """Name the places of secrets in notes, and their kind; never the secret itself."""
    redactor = memory.redactor()
    places: list[str] = []
    for file in memory.notes.workspace.discover().files:
        try:
            text = memory.notes.workspace.read(file.path)[0].text
        except (PlainmindError, OSError):
            continue  # said by another check
        for found in redactor.redact(text).found:
            line = len(split_lines(f"{text[: found.start]}."))
            places.append(f"{file.path}:{line}: {found.kind}")
    count = len(places)
    places = list(dict.fromkeys(places))  # two in one line are named once
    if not places:
        return
    hidden = memory.policy.values.hides_secrets
    for place in places[:_MOST_SECRETS_NAMED]:
        yield Check("secrets", "warning", place)
    left = (
        f"; {len(places) - _MOST_SECRETS_NAMED:,} more places are not named here"
        if len(places) > _MOST_SECRETS_NAMED
        else ""
    )
    shown = "agents see marks in their place" if hidden else "agents see them: `redaction.notes` is false"
    yield Check(
        "secrets",
        "warning",
        f"{count:,} {'secret' if count == 1 else 'secrets'} in notes{left}; {shown}",
        "keep secrets in a password manager, and in the note where to look; `plainmind redact FILE` shows the lines",
    )


def _former_home(memory: Memory) -> Iterator[Check]:
    """Find what was kept before this program had its name: it is not looked into by itself."""
    own = user_home_or_root(memory.environ)
    former = os.path.join(own, ".commonplace")
    if not os.path.isdir(former):
        return
    home = home_folder({"HOME": own})
    hint = f"mv {shell_word(former)} {shell_word(home)}"
    if os.path.isdir(home):  # into which `mv` would put it
        aside = (
            f"mv {shell_word(home)} {shell_word(home + '-new')}"
            if os.listdir(home)
            else f"rmdir {shell_word(home)}"
        )
        hint = f"{aside} && {hint}"
    yield Check(
        "former home",
        "warning",
        f"{former} is the home of Commonplace, as this program was called: nothing in it is used",
        hint,
    )


def _home(memory: Memory) -> Iterator[Check]:
    make_home(memory.home)
    if not os.access(memory.home, os.W_OK):
        yield Check(
            "home",
            "problem",
            f"{memory.home} cannot be written: the index and the history are kept there",
            "make it writable for this user, or set PLAINMIND_HOME to a folder that you may write",
        )


def _former_path(memory: Memory) -> Iterator[Check]:
    """Find the history of a workspace that had another path: it is not looked into by itself."""
    own = memory.places.state
    states = os.path.dirname(own)
    if memory.notes.history.latest_changes() or not os.path.isdir(states):
        return
    for name in sorted(os.listdir(states)):
        former = os.path.join(states, name)
        if former == own or not _has_made(memory, History(os.path.join(former, "history")).latest_changes()):
            continue
        aside = f"mv {shell_word(own)} {shell_word(own + '-aside')}"  # it is there: the next check makes it
        yield Check(
            "former path",
            "warning",
            f"{former} has the history of these notes at another path: `history` and `undo` do not see it",
            f"if the workspace was moved here, and not copied: {aside} && mv {shell_word(former)} {shell_word(own)}",
        )


def _has_made(memory: Memory, changes: Sequence[Version]) -> bool:
    """Whether some files are as the latest of these changes has left them."""
    for change in changes[:1]:
        try:
            _, data = memory.notes.notebook.read_bytes(change.path)
        except PlainmindError:
            return False
        if change.operation == APPEND:
            return f"<!-- m:{change.id} -->".encode() in data
        return bool(data) and sha256_bytes(data) == change.hash
    return False


def _permissions(memory: Memory) -> Iterator[Check]:
    home = memory.places.home
    if not os.path.isdir(home):
        return
    mode = stat.S_IMODE(os.stat(home).st_mode)
    if mode & 0o077:
        yield Check("permissions", "warning", f"{home} can be read by others ({mode:o})", f"chmod 700 {home}")
    else:
        yield Check("permissions", "ok", f"{home} is yours alone")


def _disk_space(memory: Memory) -> Iterator[Check]:
    for path in dict.fromkeys((memory.notes.workspace.path, memory.places.home)):
        if os.path.isdir(path):
            free = shutil.disk_usage(path).free
            verdict: Verdict = "ok" if free >= ENOUGH_FREE_BYTES else "warning"
            hint = None if verdict == "ok" else "free some space: a full disk refuses every note"
            yield Check("disk space", verdict, f"{free / 1e9:.1f} GB free at {path}", hint)


def _locks(memory: Memory) -> Iterator[Check]:
    """Some network mounts grant every lock: then two writers would believe that they are alone."""
    path = os.path.join(memory.places.state, "locks", "self-test.lock")
    with hold_lock(path, operation="self-test"):
        second = try_lock(path, operation="self-test")
    if second is None:
        yield Check("locks", "ok", "a second holder is refused")
    else:
        second.release()
        yield Check(
            "locks",
            "problem",
            f"the file system of {memory.places.home} grants one lock to two holders",
            "move PLAINMIND_HOME to a local disk",
        )


def _embedder(memory: Memory) -> Iterator[Check]:
    if memory.index.providers is not None:
        yield from memory.index.providers.examine()
        return
    identity = memory.index.embedder.identity
    if not identity.dims:
        yield Check(
            "embedding", "warning", "no provider: keywords answer alone", "set `provider` to `builtin`"
        )
        return
    memory.index.embedder.embed_query("a short question")
    yield Check(
        "embedding",
        "ok",
        f"{identity.provider} {identity.model}, {identity.dims} dimensions, on this machine",
    )


def _index(memory: Memory) -> Iterator[Check]:
    reason = None
    if memory.index.providers is None:
        reason = memory.index.indexer.rebuild_reason()
    else:
        from plainmind.memory.status import embedding_of

        with memory.index.store.reading() as reader:
            made = reader.fingerprint()
        status = embedding_of(memory, made, deep=False)
        reason = status.rebuild
        if status.fallback is not None:
            yield Check(
                "index", "warning", "made with {to} in place of {from}: {reason}".format(**status.fallback)
            )
    facts = memory.index.store.describe()
    if reason is not None:
        yield Check("index", "warning", f"out of date: {reason}", "run `plainmind sync`")
    else:
        yield Check("index", "ok", f"{facts['driver']} at {facts['path']}")
    if recovered := facts.get("recovered"):
        yield Check("index", "warning", f"a damaged index was replaced {recovered}")
    if memory.store_driver in _STORES:
        yield from find_by_name(_STORES[memory.store_driver])(facts)


def _engine(memory: Memory) -> Iterator[Check]:
    """Ask an engine that is not ours for its version, though it may be paused: it may have been mended."""
    if memory.index.backend is None:
        return
    facts = memory.index.backend.describe(deep=True)
    name = f"{facts['name']} {facts.get('version') or '(version unknown)'}"
    hint = "the built-in index answers in its place; `plainmind sync` tries it again"
    if not facts["healthy"]:
        known = f"{facts['hint']}; until then " if facts.get("hint") else ""
        yield Check("engine", "warning", f"{name} does not answer: {facts['problem']}", f"{known}{hint}")
    elif facts.get("behind"):
        yield Check("engine", "warning", f"{name} has not seen the latest changes", "run `plainmind sync`")
    else:
        yield Check("engine", "ok", f"{name} at {facts.get('command', facts['name'])}")


def _reranker(memory: Memory) -> Iterator[Check]:
    checks: Iterator[Check] = find_by_name(_RERANKER)(memory)
    return checks


def _entries(memory: Memory) -> Iterator[Check]:
    checks: Iterator[Check] = find_by_name(_ENTRIES)(memory)
    return checks


def _connections(memory: Memory) -> Iterator[Check]:
    if not os.path.isdir(os.path.join(memory.home, "hosts")):
        return iter(())
    checks: Iterator[Check] = find_by_name(_CONNECTIONS)(memory)
    return checks


def _sharing(memory: Memory) -> Iterator[Check]:
    """Say of folders without a channel, once, that they are for an id in all of them."""
    folders = sorted(
        {
            "/".join(found.path.split("/")[:3])
            for found in memory.notes.workspace.discover().files
            if found.scope.startswith(("group:", "person:"))
        }
    )
    if folders:
        yield Check(
            "sharing",
            "ok",
            f"shared with an id in whatever channel: {', '.join(folders)}",
            "move a folder into memory/shared-with/CHANNEL/ to give it to that one alone:"
            " docs/guides/share-with-groups.md",
        )


def _settings(memory: Memory) -> Iterator[Check]:
    for note in memory.remarks:
        yield Check("settings", "warning", note)


def _missing_notes(memory: Memory) -> Iterator[Check]:
    for note in memory.missing_notes():
        yield Check(
            "missing notes",
            "warning",
            f"a note of {note.at[:16].replace('T', ' ')} is no longer in {note.path}, perhaps saved over by an editor",
            f"`plainmind restore {note.id}` puts it back, `plainmind forget {note.id}` lets it go",
        )


def _written_notes(memory: Memory) -> Iterator[Check]:
    def read_file(path: str) -> bytes | None:
        try:
            return memory.notes.notebook.read_bytes(path)[1]
        except PlainmindError:
            return None

    problems = memory.notes.history.verify(read_file)
    for problem in problems:
        yield Check(
            "written notes",
            "problem",
            f"{problem.path}: {problem.what}",
            "`plainmind history` tells what was written; an editor may have saved over it",
        )
    if not problems:
        yield Check("written notes", "ok", "every note that was acknowledged is in its file")


def _index_equals_files(memory: Memory) -> Iterator[Check]:
    with memory.index.store.reading() as reader:
        if reader.counts().files.get("sessions"):
            memory.index.take_in_conversations()  # as a search for them has, whatever the settings say
    report = _sync(memory.index)
    if report.withheld:
        # A rebuild would take them for deleted, and a disk that is not mounted for an empty one.
        yield Check(
            "index equals files",
            "warning",
            f"not compared: {len(report.withheld)} files of the index are missing on disk",
            "mount the disk they are on; files that are gone for good leave the index after a minute",
        )
        return
    before = memory.index.store.digest()
    _sync(memory.index, force=True)
    if memory.index.store.digest() == before:
        yield Check("index equals files", "ok", "a rebuild gives the same index")
    else:
        yield Check("index equals files", "warning", "the index differed from its files and was made anew")


def _sync(index: Index, *, force: bool = False) -> SyncReport:
    if index.providers is None:
        return index.indexer.sync(force=force)
    from plainmind.memory.providers import Asked

    return index.providers.sync(index, Asked(initiative="background", force=force))
