"""What happens around the turns of another program's agent: it is reminded before, and what was said is kept after.

Recall says only what is certain, little of it, and nothing twice. What was recalled is never kept as if somebody had
said it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence

from plainmind.agent.recall import remind, without_recalled
from plainmind.agent.recalls import Asker, lines_of_start
from plainmind.base.model import sha256_text
from plainmind.base.value import record, value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import SYSTEM, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory

START_CHARS = 9_500  # a host cuts what is longer to a few lines, and puts the rest into a file
_TAIL = 2_000  # messages: those that a host tells again are among the last
_STATE_BYTES = 1_000_000
_STATE_DAYS = 30


@value
class Session:
    """A conversation in a host."""

    host: str
    id: str
    folder: str = ""  # where the agent works


@record
class Known:
    """What one conversation has been given already, and which transcripts are its own."""

    lines: set[str]
    own: set[str]


class Turns:
    """The memory around the turns of one host's conversations."""

    def __init__(self, memory: Memory) -> None:
        from plainmind.agent.scope import THE_OWNER

        self._memory = memory
        self._mine: ScopedMemory = memory.within(THE_OWNER)
        self._folder = os.path.join(memory.home, "hosts", "sessions")
        self.has_kept = False  # something that the index does not know yet

    # --- before ---

    def start(self, session: Session, *, goes_on: bool = False, max_chars: int = START_CHARS) -> str:
        """What a conversation begins with, and again when the host has forgotten it; "" when there is nothing.

        One that goes on has it already.
        """
        known = self._known(session)
        if goes_on and known.lines:
            return ""
        recall = self._mine.begin_recall("start", asker=_asker(session))
        begun = self._mine.start_context(max_chars=max_chars)
        recall.end(lines_of_start(begun), begun.text)
        known.lines = _marks(begun.text)
        self._write(session, known)
        return begun.text

    def recall(self, session: Session, prompt: str) -> str:
        """What is certain to help with a prompt and was not given yet; mostly ""."""
        known = self._known(session)
        reminder = remind(
            self._mine,
            prompt,
            asker=_asker(session),
            asked_in=known.own,
            why_not=lambda hit: "given before" if _marks(hit.snippet) <= known.lines else "",
        )
        if reminder.hits:
            for hit in reminder.hits:
                known.lines |= _marks(hit.snippet)
            self._write(session, known)
        return reminder.text

    # --- after ---

    def keep_transcript(self, session: Session, program: str, path: str) -> int:
        """Copy what is new in a host's own transcript; how many messages."""
        report = self._memory.import_sessions(program, path, into_one_agent=True, clean=self._clean)
        self.has_kept |= bool(report.imported)
        self._own(session, [os.path.basename(row.path) for row in report.imported])
        return int(report.messages)

    def keep_messages(self, session: Session, messages: Sequence[Mapping[str, str]]) -> None:
        """Keep what was said in a host whose transcripts no importer reads; what is there already, once."""
        told = [(message, text) for message in messages if (text := self._clean(message["text"]).strip())]
        if not told:
            return
        from plainmind.sessions.entries import mark_of, marks_of

        fields = {"cwd": session.folder} if session.folder else {}
        key = f"{session.host}:{session.id}"
        with self._memory.sessions.open_or_create(key, **fields) as kept:
            there: set[str] = set()
            for entry in kept.tail(_TAIL):  # an import may have brought it too
                there.update((entry["id"], *marks_of(entry)))
            for message, text in told:
                mark = mark_of(message["role"], text, message.get("id"))
                if mark not in there:
                    content = [{"type": "text", "text": text}]
                    kept.append({"role": message["role"], "content": content}, id=mark, look_back_bytes=0)
                    self.has_kept = True
            name = os.path.basename(kept.path)
        self._own(session, [name])

    def keep_summary(self, session: Session, summary: str) -> str | None:
        """Keep the summary that a host made of a conversation, as a note of its own; where it is."""
        text = self._clean(summary).strip()
        if not text:
            return None
        from plainmind.notes.memory_files import MemoryFiles

        memory = self._memory
        memory.require_place_for_notes()
        now = memory.now()
        notes = memory.notes
        files = MemoryFiles(
            notes.workspace, notes.history, erasures=notes.erasures, state_dir=memory.places.state
        )
        where = f" in {session.folder}" if session.folder else ""
        title = f"# A conversation with {session.host}{where}, {now:%Y-%m-%d %H:%M}"
        name = f"{now:%Y-%m-%d}-{session.host}-{sha256_text(session.id + text)[:6]}.md"
        if files.is_folder(name) is None:  # the same summary, told twice, is one note
            files.create(name, f"{title}\n\n{text}\n")
            self.has_kept = True
        return f"memory/{name}"

    def _clean(self, text: str) -> str:
        """A text as it may be kept: without what was recalled, what is private, and secrets."""
        return self._memory.redactor().without_secrets(without_recalled(text))

    # --- what a conversation has been given ---

    def _own(self, session: Session, names: Iterable[str]) -> None:
        known = self._known(session)
        own = {f"sessions/{name}" for name in names}
        if not own <= known.own:
            known.own |= own
            self._write(session, known)

    def _path(self, session: Session) -> str:
        return os.path.join(self._folder, f"{session.host}-{sha256_text(session.id)[:16]}.json")

    def _known(self, session: Session) -> Known:
        try:
            found = json.loads(read_file(self._path(session), most=_STATE_BYTES))
            return Known(set(found["lines"]), set(found["own"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Known(set(), set())

    def _write(self, session: Session, known: Known) -> None:
        self._sweep()
        state = {"lines": sorted(known.lines), "own": sorted(known.own)}
        write_atomically(self._path(session), json.dumps(state).encode())

    def _sweep(self) -> None:
        """Remove what is known of conversations that nobody goes on with."""
        try:
            names = SYSTEM.listdir(self._folder)
        except FileNotFoundError:
            return
        oldest = time.time() - _STATE_DAYS * 86_400
        for name in names if len(names) > 100 else ():
            path = os.path.join(self._folder, name)
            if os.path.getmtime(path) < oldest:
                SYSTEM.unlink(path)


def _asker(session: Session) -> Asker:
    return Asker("hook", session.host, session.id)


def _marks(text: str) -> set[str]:
    """Names for the lines of a text that say something; headings and dates do not."""
    said = (line.strip(" -*\t") for line in text.splitlines())
    return {sha256_text(line)[:12] for line in said if line and not line.startswith(("#", "<", "["))}
