"""Claude Code: its conversations, `~/.claude/projects/<project>/<session>.jsonl`, and the notes that it makes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from plainmind.agent.recall import without_recalled
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import FileFailure, sha256_text
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import read_file
from plainmind.guests.importers.importer import REMOVED_HERE, CopiedNote, ImportReport
from plainmind.guests.importers.originals import (
    About,
    Conversation,
    JsonlConversation,
    Original,
    blocks_of,
    first_entries,
    folders_below,
    make_id,
    number_id,
    spoken,
    text_block,
    text_in,
    texts_in,
    tool_result,
    unspoken,
    with_name,
    words_of,
)
from plainmind.sessions.entries import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.memory import Memory
    from plainmind.notes.memory_files import MemoryFiles


# What the program itself says in the user's name.
_NOT_THE_USER = (
    "<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "<bash-input>", "<bash-stdout>",
    "<bash-stderr>", "<system-reminder>", "<task-notification>", "Caveat: The messages below were generated",
    "[Request interrupted by user",
)  # fmt: skip
_COMMAND = pattern(r"<command-name>(?P<name>[^<]{1,200})</command-name>")
_ARGUMENTS = pattern(r"(?s)<command-args>(?P<text>.{0,100000}?)</command-args>")
_META = "claude-code.meta"
_TASK = "claude-code.task"
_SUMMARY = "claude-code.summary"


class ClaudeCode:
    """Reads the transcripts of Claude Code."""

    program = "claude-code"
    looks_for = "`<project>/<session>.jsonl`, as in ~/.claude/projects"

    def folders(self, path: str) -> list[str]:
        """`~/.claude` itself holds much that is no conversation."""
        return folders_below(path, "projects")

    def original(self, path: str, given: str) -> Original | None:  # noqa: ARG002
        """Every JSONL file below a project, subagents too."""
        name = os.path.basename(path)
        return Original(path) if name.endswith(".jsonl") and name != "history.jsonl" else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation."""
        entries = first_entries(original.path)
        yield JsonlConversation(original.path, _about(original.path, entries), Translation)


def _about(path: str, entries: list[Entry]) -> About:
    stem = os.path.basename(path).partition(".jsonl")[0]
    session = _first(entries, "sessionId")
    # A subagent's file is named after the subagent, and says within to whose session it belongs.
    name = f"{session}-{stem}" if stem.startswith("agent-") and session else stem
    header = {"timestamp": _first(entries, "timestamp"), "cwd": _first(entries, "cwd")}
    fields = {"gitBranch": _first(entries, "gitBranch"), "cwd": header["cwd"]}
    return About(name, texts_in(header), texts_in(fields))


def _first(entries: list[Entry], name: str) -> str | None:
    found = (entry.get(name) for entry in entries)
    return next((text for text in found if isinstance(text, str) and text), None)


class Translation:
    """Translates the lines of one file, in their order; total, whatever a line says."""

    def __init__(self) -> None:
        self._skipped: dict[str, str | None] = {}  # lines that are not copied, and what they follow
        self._answer: object = (
            None  # the latest answer: each of its blocks has a line, and repeats what it cost
        )

    def __call__(self, line: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        """Give the entries that a line becomes: none, one, or one for each tool that answered."""
        own_id = text_in(line.get("uuid")) or make_id(number, raw)
        parent = self._copied_parent(line.get("logicalParentUuid") or line.get("parentUuid"))
        bodies = self._bodies(line)
        if not bodies:
            self._skipped[own_id] = parent
            return ()
        entries: list[Entry] = []
        for count, body in enumerate(bodies, 1):
            entry = with_name(body, number_id(own_id, count), line.get("timestamp"))
            if "uuid" in line:
                entry["parentId"] = entries[-1]["id"] if entries else parent
            entries.append(entry)
        return tuple(entries)

    def _copied_parent(self, parent: object) -> str | None:
        """The entry that stands for a parent: itself, or the nearest before it that was copied."""
        found = text_in(parent)
        for _ in range(len(self._skipped) + 1):
            if found is None or found not in self._skipped:
                break
            found = self._skipped[found]
        return found

    def _bodies(self, line: Entry) -> list[Entry]:
        kind = line.get("type")
        message = line.get("message")
        if kind == "user" and isinstance(message, dict):
            return _user(line, message.get("content"))
        if kind == "assistant" and isinstance(message, dict):
            return self._assistant(line, message)
        if kind == "attachment":
            return _queued_messages(line.get("attachment"))
        if kind == "summary" and isinstance(line.get("summary"), str):
            data = {"summary": line["summary"], "leafUuid": line.get("leafUuid")}
            return [{"type": "custom", "customType": _SUMMARY, "data": data}]
        name = line.get("customTitle", line.get("aiTitle"))
        if kind in ("custom-title", "ai-title") and isinstance(name, str) and name:
            return [{"type": "session_info", "name": name}]
        return []

    def _assistant(self, line: Entry, message: Entry) -> list[Entry]:
        content = blocks_of(message.get("content"))
        if not content or line.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return []
        answer = spoken("assistant", content, provider="anthropic", model=message.get("model"))
        if message.get("id") is None or message["id"] != self._answer:
            answer["message"] |= _usage(message.get("usage"))
        self._answer = message.get("id")
        answer["message"] |= texts_in({"stopReason": message.get("stop_reason")})
        return [answer]


def _user(line: Entry, content: object) -> list[Entry]:
    if line.get("isCompactSummary") is True:
        return [{"type": "compaction", "summary": words_of(content), "tokensBefore": 0}]
    bodies: list[Entry] = []
    rest: list[object] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            bodies.append(
                tool_result(block.get("tool_use_id"), block.get("content"), is_error=block.get("is_error"))
            )
        else:
            rest.append(block)
    said = blocks_of(rest)
    if said:
        bodies.append(_spoken(line, said))
    return bodies


def _spoken(line: Entry, content: list[Entry]) -> Entry:
    """What stands in the user's name: theirs, a command of theirs, or the program's."""
    if line.get("isMeta") is True:
        return unspoken(_META, content)
    if line.get("isSidechain") is True:
        return unspoken(_TASK, content)
    text = words_of(content).lstrip()
    if text.startswith(_NOT_THE_USER):
        return unspoken(_META, content)
    command = _COMMAND.search(text) if text.startswith("<command-") else None
    if command:
        arguments = _ARGUMENTS.search(text)
        said = f"{command['name']} {arguments['text'] if arguments else ''}".strip()
        content = [text_block(said)]
    return spoken("user", content)


def _queued_messages(attachment: object) -> list[Entry]:
    """What the user typed while the model was at work."""
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return []
    content = blocks_of(attachment.get("prompt"))
    if not content or words_of(content).lstrip().startswith(_NOT_THE_USER):
        return []
    return [spoken("user", content)]


def _usage(usage: object) -> Entry:
    if not isinstance(usage, dict):
        return {}
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "cacheRead": "cache_read_input_tokens",
        "cacheWrite": "cache_creation_input_tokens",
    }
    counted = {ours: usage[theirs] for ours, theirs in names.items() if isinstance(usage.get(theirs), int)}
    return {"usage": counted} if counted else {}


# --- its own notes, `<project>/memory/*.md`: copied when new or changed; what was edited or deleted here stays so ---


PROGRAM = "claude-memory"
CHANGED_HERE = "was copied before, and edited here since"
_FOLDER = "claude-code"  # below memory/
_MOST_BYTES = 10_000_000


@value
class OwnNote:
    """A note of Claude Code, and what its copy is called."""

    path: str
    name: str  # below memory/


def find_notes(path: str) -> list[OwnNote]:
    """List the notes of all projects. Raises NotFound when there are none."""
    projects = os.path.join(path, "projects")
    top = projects if os.path.isdir(projects) else path
    found = sorted(_notes_below(top), key=lambda note: note.path)
    if not found:
        raise NotFound(
            f"there are no notes of Claude Code in {path}",
            hint="looked for `<project>/memory/*.md`, as in ~/.claude/projects",
        )
    return found


def _notes_below(top: str) -> Iterator[OwnNote]:
    for project in os.listdir(top) if os.path.isdir(top) else ():
        folder = os.path.join(top, project, "memory")
        for inside, folders, names in os.walk(folder):
            folders.sort()
            for name in names:
                path = os.path.join(inside, name)
                if name.lower().endswith(".md") and os.path.isfile(path) and not os.path.islink(path):
                    below = os.path.relpath(path, folder).replace(os.sep, "/")
                    yield OwnNote(path, f"{_FOLDER}/{project.strip('-. ') or 'project'}/{below}")


def copy_notes(memory: Memory, path: str, *, again: bool = False, is_rehearsal: bool = False) -> ImportReport:
    """Copy what is new or changed, without secrets and what is private."""
    from plainmind.notes.memory_files import MemoryFiles

    notes = memory.notes
    if not is_rehearsal:
        memory.require_place_for_notes()
    files = MemoryFiles(
        notes.workspace, notes.history, erasures=notes.erasures, state_dir=memory.places.state
    )
    ledger = _Ledger(os.path.join(memory.places.state, "claude-memory.json"))
    copied: list[CopiedNote] = []
    failed: list[FileFailure] = []
    left_out: list[FileFailure] = []
    unchanged = 0
    for note in find_notes(path):
        try:
            data = read_file(note.path, most=_MOST_BYTES)
            text = memory.redactor().without_secrets(without_recalled(data.decode("utf-8", "replace")))
            there = files.read(note.name) if files.is_folder(note.name) is False else None
            refusal = None if again else ledger.refusal(note.name, there.hash if there else None)
            if there is not None and there.text == text:
                unchanged += 1
            elif refusal is not None:
                left_out.append(FileFailure(note.path, refusal))
                continue
            else:
                if not is_rehearsal:
                    _write(files, note.name, text, there.hash if there else None)
                copied.append(CopiedNote(f"memory/{note.name}", note.path, there is None))
            ledger.hashes[note.name] = sha256_text(text)
        except (PlainmindError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            failed.append(FileFailure(note.path, reason or str(error)))
    if not is_rehearsal:
        ledger.save()
    return ImportReport(
        PROGRAM,
        unchanged=unchanged,
        failed=tuple(failed),
        left_out=tuple(left_out),
        is_rehearsal=is_rehearsal,
        notes=tuple(copied),
    )


def _write(files: MemoryFiles, name: str, text: str, base_hash: str | None) -> None:
    if base_hash is None:
        files.create(name, text)
    else:
        files.rewrite(name, text, base_hash=base_hash, reason="import")


class _Ledger:
    """What was copied, by hash: so a copy that somebody edited or deleted here is known."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            found = json.loads(read_file(path))
        except (OSError, ValueError):
            found = {}
        self.hashes: dict[str, str] = found if isinstance(found, dict) else {}
        self._before = dict(self.hashes)

    def refusal(self, name: str, there: str | None) -> str | None:
        """Why a copy must be left as it is; None when it may be written."""
        known = self.hashes.get(name)
        if there is None:
            return None if known is None else REMOVED_HERE
        return None if known == there else CHANGED_HERE

    def save(self) -> None:
        if self.hashes != self._before:
            write_atomically(self._path, json.dumps(self.hashes, indent=1, sort_keys=True).encode() + b"\n")
