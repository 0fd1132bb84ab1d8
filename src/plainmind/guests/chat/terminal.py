"""A chat at a terminal or through a pipe: what is typed, what is printed, and what Ctrl-C stops."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.cli.console import Console, is_terminal, visible
from plainmind.files.atomic import write_atomically
from plainmind.files.system import read_file
from plainmind.guests.chat.conversation import Conversation, Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any

    from plainmind.guests.chat.model import Reply, ToolCall
    from plainmind.memory.memory import Memory

_AFTER_CHAT = "plainmind.guests.upkeep.desk:after_chat"
_INTERRUPTED = 130
_LONGEST_LINE = 4_000_000
_HELP = """\
/status   how full the context is, and what was saved last
/flush    save what lasts of this conversation now
/compact  shorten the context to a summary
/retry    answer the last turn again that got no answer
/new      begin a new conversation; this one goes to the archive
/quit     leave; so does Ctrl-D
A line that ends with \\ goes on in the next one. Ctrl-C stops an answer."""
_MOST_LINES = 1000
_MOST_BYTES = 4_000_000


class Chat:
    """One run of the command; `/new` changes its conversation."""

    def __init__(self, memory: Memory, conversation: Conversation, console: Console) -> None:
        self.conversation = conversation
        self._memory = memory
        self._console = console
        self._key = conversation.session.key
        self._heard = Heard(console)

    def take_lines(self, lines: Iterator[str], *, resume: bool) -> int:
        """Take each line as a turn, for a program: the first failure ends it."""
        from plainmind.guests.chat.model import ChatFailure

        try:
            if resume and self._turn(None) is False:
                return _INTERRUPTED
            for line in lines:
                if line.strip() and self._turn(line) is False:
                    return _INTERRUPTED
        except ChatFailure:
            if self.conversation.is_unanswered:
                self._console.note("what was said is kept; `plainmind chat --resume` asks again")
            raise
        return 0

    def at_a_terminal(self) -> int:
        """Take turns with a person, until they leave."""
        typed = TypedLines(self._memory.home)
        typed.load()
        model, console = self.conversation.model, self._console
        console.say(console.style(f"{model.name} · {self._key} · /help", "dim"))
        if self.conversation.is_unanswered:
            console.note("the last turn got no answer: here it is")
            self._guarded(None)
        while (line := _typed_line(typed)) is not None:
            if line.startswith("/"):
                if self._command(line.split()[0]):
                    break
            elif line.strip():
                self._guarded(line)
        self._look_after_notes()
        return 0

    def _look_after_notes(self) -> None:
        """Let what could be tidied be proposed, now that nobody waits for an answer."""
        try:
            find_by_name(_AFTER_CHAT)(self._memory, self._console.note)
        except PlainmindError as error:
            self._console.note(f"what could be tidied was not looked for: {error}")

    def _guarded(self, text: str | None) -> None:
        try:
            self._turn(text)
        except PlainmindError as error:
            self._console.error(type(error).__name__, str(error), error.hint or "/retry asks again")

    def _turn(self, text: str | None) -> bool:
        """Say something, or with None answer what was said before; False when the person stopped it."""
        self._heard.begin()
        with self._heard.interruptible():
            if text is None:
                reply = self.conversation.resume(self._heard)
            else:
                reply = self.conversation.say(text, self._heard)
        self._heard.end(reply)
        return not self._heard.stopped()

    def _command(self, name: str) -> bool:
        """Do what a line with a slash asks for; whether to leave."""
        if name in {"/quit", "/exit", "/q"}:
            return True
        commands = {
            "/help": lambda: self._console.answer(_HELP),
            "/status": self._status,
            "/flush": self._flush,
            "/compact": self._compact,
            "/retry": self._retry,
            "/new": self._begin_anew,
        }
        if name not in commands:
            self._console.note(f"there is no command {name}; /help lists them")
            return False
        self._heard.begin()
        try:
            with self._heard.interruptible():
                commands[name]()
        except PlainmindError as error:
            self._console.error(type(error).__name__, str(error), error.hint)
        return False

    def _status(self) -> None:
        entry = self.conversation.session.entry()
        window = self.conversation.model.context_window
        used = entry.get("totalTokens", 0)
        self._console.answer(
            f"context   {used:,} of {window:,} tokens, compacted {entry.get('compactionCount', 0)} times"
        )
        nothing = "nothing new at the last look" if "memoryFlushAt" in entry else "nothing yet"
        self._console.answer(f"saved     {entry.get('memoryFlushNote') or nothing}")
        if failure := entry.get("memoryFlushFailure"):
            self._console.answer(f"failed    {visible(str(failure.get('reason')))}")
        self._console.answer(f"kept in   {self.conversation.session.path}")

    def _flush(self) -> None:
        from plainmind.guests.chat.flush import NOTHING

        if self.conversation.flush(self._heard, by_hand=True).outcome == NOTHING:
            self._console.note("nothing new was worth saving")

    def _compact(self) -> None:
        if self.conversation.compact(self._heard) is None:
            self._console.note("there is nothing to shorten: the latest messages stay (`chat.keepMessages`)")

    def _retry(self) -> None:
        if self.conversation.is_unanswered:
            self._turn(None)
        else:
            self._console.note("the last turn has its answer")

    def _begin_anew(self) -> None:
        from plainmind.guests.chat.access import open_conversation

        before = self.conversation
        self.conversation = open_conversation(self._memory, self._key, model=before.model.name, is_new=True)
        before.close()  # only now: if there is no new one, this one goes on
        self._console.note("a new conversation; `plainmind sessions list --archived` names the one before")


class Heard(Listener):
    """Prints what happens; Ctrl-C while it does means: enough."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_stopped = False
        self._column = 0  # 0: at the beginning of a line
        self._tools: list[dict[str, Any]] = []
        self._notices: list[str] = []

    def begin(self) -> None:
        """Another turn begins."""
        self._is_stopped, self._tools, self._notices = False, [], []

    def text(self, piece: str) -> None:
        """Print a piece of the answer."""
        if self._console.json:
            return
        sys.stdout.write(self._console.printable(piece))
        sys.stdout.flush()
        self._column = 0 if piece.endswith("\n") else 1

    def tool(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        """Say which tool was used."""
        self._tools.append({"name": call.name, "arguments": call.arguments, "isError": is_error})
        if self._console.json or self._console.quiet:
            return
        self._end_line()
        failed = f": {text.splitlines()[0]}" if is_error and text else ""
        given = (
            call.arguments if isinstance(call.arguments, str) else " ".join(map(str, call.arguments.values()))
        )
        print(visible(f"· {call.name} {given[:100]}{failed[:200]}").replace("\n", " "), file=sys.stderr)

    def busy(self, text: str) -> None:
        """Say what takes a while, to a person who waits."""
        if is_terminal(sys.stderr) and not self._console.quiet:
            self._end_line()
            print(f"· {text}", file=sys.stderr)

    def notice(self, text: str) -> None:
        """Say something beside the answer."""
        self._notices.append(text)
        self._end_line()
        self._console.note(text)

    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._is_stopped

    def end(self, reply: Reply | None) -> None:
        """The turn is over."""
        if not self._console.json:
            self._end_line()
            return
        if reply is not None:
            fields = {"text": reply.text, "stopReason": reply.stop, "usage": reply.usage.as_fields()}
            self._console.result(fields | {"tools": self._tools, "notices": self._notices}, lines=True)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C stop the answer, not the program; files are never left half written by it."""

        def stop(_number: int, _frame: FrameType | None) -> None:
            self._is_stopped = True
            if is_terminal(sys.stdout):
                self._column = 1  # terminals show the keys that were pressed, where the cursor stood

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _end_line(self) -> None:
        if self._column:
            print(flush=True)
            self._column = 0


def _typed_line(typed: TypedLines) -> str | None:
    """Ask a person for a line; None when they leave."""
    lines: list[str] = []
    while True:
        try:
            line = input("… " if lines else "› ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:  # only the line is given up
            print()
            lines = []
            continue
        typed.add(line)
        lines.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            return "\n".join(lines)


def lines_of_stdin() -> Iterator[str]:
    """Give the lines of stdin as they come, as UTF-8 whatever the locale says."""
    while line := sys.stdin.buffer.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise PlainmindError(f"a line is longer than {_LONGEST_LINE:,} bytes", hint="say less at once")
        yield line.decode("utf-8", "replace").rstrip("\r\n")


class TypedLines:
    """The lines of earlier chats. Where there is no `readline`, nothing is kept."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "chat-history")
        self._readline = _readline()
        self._lines = self._read() if self._readline is not None else []

    def load(self) -> None:
        """Give them to the arrow keys."""
        if self._readline is None:
            return
        self._readline.set_auto_history(False)
        self._readline.clear_history()
        for line in self._lines:
            self._readline.add_history(line)

    def add(self, line: str) -> None:
        """Keep a line; one that begins with a space is not meant to be kept."""
        if self._readline is None or not line.strip() or line.startswith(" ") or line in self._lines[-1:]:
            return
        self._readline.add_history(line)
        self._lines = [*self._lines, line][-_MOST_LINES:]
        try:
            write_atomically(
                self._path, "".join(f"{each}\n" for each in self._lines).encode("utf-8", "replace")
            )
        except PlainmindError as error:
            import logging

            logging.getLogger(__name__).warning("what was typed is not kept: %s", error)

    def _read(self) -> list[str]:
        try:
            typed = read_file(self._path, most=_MOST_BYTES)
            return typed.decode("utf-8", "replace").splitlines()[-_MOST_LINES:]
        except OSError:
            return []  # none yet, or not ours to read: then there is nothing to scroll through


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # some builds of Python come without
        return None
    return readline
