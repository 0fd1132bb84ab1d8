"""`hook`: what a host calls before a prompt, after an answer, at the start and the end. One entry for all of them.

A hook never fails and never waits: it prints what its host can read, or nothing, and its exit status is 0. What it
could not do stands in a file that `doctor` reads.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from plainmind.base.errors import ConfigError, LockTimeout, PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.base.value import value
from plainmind.files.safe_open import expand_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import FrameType
    from typing import IO, Any, NoReturn

    from plainmind.agent.recalls import Asker
    from plainmind.cli.console import Console
    from plainmind.guests.hosts.turns import Session, Turns
    from plainmind.memory.memory import Memory

# What is searched for hosts: also what was said in them.
SOURCES = ("memory", "sessions")
_TIDY_IS_DUE = "plainmind.guests.upkeep.desk:is_due"
_CODEX_START_CHARS = 8_000
_MOST_BYTES = 32_000_000
_STDIN_S = 2.0
# The longest that a host waits for us, whatever happens; a hook that is warm takes a tenth of a second.
_LONGEST_S = {"start": 4.0, "recall": 2.0, "stop": 8.0, "summary": 8.0}
_CATCH_UP_S = 1.0  # of which a recall waits for an index that is being brought up to date


def add_hook(parser: argparse.ArgumentParser) -> None:
    """Say what `hook` takes."""
    from plainmind.cli.options import describe

    describe(
        parser,
        """\
Be the hook of Claude Code, Codex, Copilot, Gemini and Cursor: reads what the host says on standard input, recognises
the host by it, and answers as that host wants it. `plainmind connect` writes it into their settings; nobody types it.

Before a prompt it recalls what is certain and new, if there is such a thing; at the start, and after a compaction, what
a conversation begins with; after an answer it keeps what was said, without secrets and without <private>…</private>.
It is written to the workspace and to ~/.plainmind. Always exits with 0.""",
        examples=(
            """echo '{"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": "…"}' | plainmind hook""",
        ),
        run=run_hook,
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="answer line by line until the input ends, for a plugin that keeps this running",
    )
    parser.add_argument(
        "--catch-up",
        action="store_true",
        help="bring the index up to date, unless a process is at that already: hooks start this, and wait for nothing",
    )


def run_hook(arguments: argparse.Namespace, console: Console) -> int:
    """Answer one event, or with --serve each line that comes."""
    del console  # what is printed is for a program
    from plainmind.cli.options import open_memory

    def open_() -> Memory:
        memory = open_memory(arguments, looks_around=False, assumed={"sources": SOURCES})
        if memory.workspace_origin.kind == "default" and not os.path.lexists(memory.workspace):
            from plainmind.memory.workspace_setup import make_place

            make_place(memory.notes)
        return memory

    if arguments.catch_up:
        catch_up(open_)
        return 0
    if arguments.serve:
        serve_lines(sys.stdin.buffer, sys.stdout.buffer, open_)
        return 0
    answer_once(read_input(0, _STDIN_S), open_)
    return 0


def answer_once(data: bytes, open_: Callable[[], Memory]) -> None:
    """Answer one event on standard output; whatever goes wrong, the host goes on."""
    home = _usual_folder()
    opened: Memory | None = None
    try:
        event = event_of(json.loads(data or b"{}"), os.environ)
        if event.action is None:
            return
        with _alarm(_LONGEST_S[event.action]), open_() as memory:
            opened, home = memory, os.path.join(memory.home, "hosts")
            from plainmind.guests.hosts.turns import Turns

            if event.action == "recall" and not is_settled(memory):
                return  # the tools of the server are there meanwhile
            turns = Turns(memory)
            answer = act(event, turns)
            if answer:
                sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
                sys.stdout.flush()
            if (
                turns.has_kept or event.action == "start"
            ):  # what is certain has to be known before the first prompt
                catch_up_later(memory, memory.sources)
            if turns.has_kept and find_by_name(_TIDY_IS_DUE)(memory):
                tidy_later(memory)
    except _TooLate:
        note_failure(home, "it took too long, and was given up")
        if opened is not None:
            catch_up_later(opened, opened.sources)
    except Exception as error:  # noqa: BLE001 (a host must not stop for a memory; `doctor` tells of it)
        note_failure(home, f"{type(error).__name__}: {error}")


def answer_call(memory: Memory, payload: Mapping[str, Any]) -> str:
    """Answer one event for a host that calls a tool of the server: its JSON as a text, "" for nothing to say."""
    from plainmind.guests.hosts.turns import Turns

    try:
        event = event_of(payload, os.environ)
        answer = None if event.action is None else act(event, Turns(memory))
    except Exception as error:  # noqa: BLE001 (as in `answer_once`)
        note_failure(os.path.join(memory.home, "hosts"), f"{type(error).__name__}: {error}")
        return ""
    return json.dumps(answer, ensure_ascii=False) if answer else ""


# --- what the hosts say ---


@value
class Event:
    """What a host tells, in our words."""

    host: str
    name: str  # as the host calls it
    action: str | None  # start, recall, stop or summary; None: nothing to do
    payload: Mapping[str, Any]

    def text(self, *names: str) -> str:
        """The first of these members that is a text; "" when there is none."""
        found = (self.payload.get(name) for name in names)
        return next((text for text in found if isinstance(text, str)), "")


_ACTIONS = {
    "sessionstart": "start",
    "userpromptsubmit": "recall",
    "userpromptsubmitted": "recall",
    "beforeagent": "recall",
    "beforesubmitprompt": "recall",
    "stop": "stop",
    "agentstop": "stop",
    "afteragent": "stop",
    "afteragentresponse": "stop",
    "sessionend": "stop",
    "postcompact": "summary",
}
_OF_GEMINI = frozenset({"BeforeAgent", "AfterAgent"})
# Where a transcript lies tells whose it is.
_FOLDERS = {
    ".claude": "claude-code",
    ".codex": "codex",
    ".gemini": "gemini",
    ".copilot": "copilot",
    ".cursor": "cursor",
}
_VARIABLES = {
    "COPILOT_CLI": "copilot",
    "GEMINI_SESSION_ID": "gemini",
    "CURSOR_VERSION": "cursor",
    "CODEX_MANAGED_PACKAGE_ROOT": "codex",
}


def event_of(found: object, environ: Mapping[str, str]) -> Event:
    """Read an event, and whose it is: by what it says first, for a host may run within another and have its names."""
    payload: Mapping[str, Any] = found if isinstance(found, dict) else {}
    name = payload.get("hook_event_name") or payload.get("hookEventName") or ""
    return Event(_host(payload, str(name), environ), str(name), _ACTIONS.get(str(name).casefold()), payload)


def _host(payload: Mapping[str, Any], name: str, environ: Mapping[str, str]) -> str:
    told = payload.get("host")
    if isinstance(told, str) and told.isascii() and told.replace("-", "").isalnum():
        return told
    if "cursor_version" in payload or "conversation_id" in payload:
        return "cursor"
    if name in _OF_GEMINI:
        return "gemini"
    path = payload.get("transcript_path") or payload.get("transcriptPath") or ""
    parts = str(path).split("/")
    for folder, host in _FOLDERS.items():
        if folder in parts:
            return host
    if "turn_id" in payload:
        return "codex"
    return next((host for variable, host in _VARIABLES.items() if variable in environ), "claude-code")


# --- what is done ---

# Their transcripts are read as the importers read them.
_IMPORTED = frozenset({"claude-code", "codex", "copilot", "gemini"})


def act(event: Event, turns: Turns) -> dict[str, Any] | None:
    """Do what an event asks for; what the host is to be told, if anything."""
    from plainmind.guests.hosts.turns import START_CHARS, Session

    session = Session(
        event.host, event.text("session_id", "sessionId", "conversation_id") or "unknown", event.text("cwd")
    )
    if event.action == "start":
        most = _CODEX_START_CHARS if event.host == "codex" else START_CHARS
        text = turns.start(session, goes_on=event.text("source") == "resume", max_chars=most)
        return _context(event, text)
    if event.action == "recall":
        prompt = without_own_context(event.text("prompt"))
        text = turns.recall(session, prompt)
        if event.host in _WITHOUT_TRANSCRIPT and prompt:
            turns.keep_messages(session, [{"role": "user", "text": prompt}])
        return _context(event, text)
    if event.action == "summary":
        turns.keep_summary(session, without_scratch(event.text("compact_summary")))
        return None
    _keep(event, session, turns)
    return None


_WITHOUT_TRANSCRIPT = frozenset({"cursor"})
_ALWAYS_WITH_TRANSCRIPT = frozenset({"claude-code", "codex", "copilot"})


def _keep(event: Event, session: Session, turns: Turns) -> None:
    """Keep what was said, by the way that the host offers."""
    path = event.text("transcript_path", "transcriptPath")
    if event.host == "copilot":
        path = path or _copilot_transcript(session.id)
        _await_answer_of_copilot(path)
    if event.host in _IMPORTED and path and os.path.isfile(path):
        turns.keep_transcript(session, event.host, path)
        return
    if event.host in _ALWAYS_WITH_TRANSCRIPT:
        return  # its user wants nothing to be kept
    messages = event.payload.get("messages")
    if isinstance(messages, list):
        turns.keep_messages(session, [message for message in messages if _is_message(message)])
        return
    spoken = [
        {"role": role, "text": text}
        for role, text in (
            ("user", without_own_context(event.text("prompt"))),
            ("assistant", event.text("prompt_response", "last_assistant_message", "text")),
        )
        if text
    ]
    turns.keep_messages(session, spoken)


_LAST_BYTES = 4_000_000
_TRIES, _BETWEEN_S = 5, 0.06


def _copilot_transcript(session_id: str) -> str:
    """Where Copilot keeps a session: at its end it does not say so."""
    folder = os.environ.get("COPILOT_HOME") or expand_user("~/.copilot")
    return os.path.join(folder, "session-state", os.path.basename(session_id), "events.jsonl")


def _await_answer_of_copilot(path: str) -> None:
    """Wait a little until the latest answer is written down: Copilot calls us a moment before."""
    for _ in range(_TRIES):
        if not os.path.isfile(path) or _ends_with_an_answer(path):
            return
        time.sleep(_BETWEEN_S)


def _ends_with_an_answer(path: str) -> bool:
    """Whether the last that was said, by a list of events, is an answer, and not a call of a tool before it."""
    from plainmind.files.system import read_file

    lines = read_file(path, last=_LAST_BYTES).splitlines()
    said = next((line for line in reversed(lines) if b".message" in line[:40]), b"")
    if b"assistant.message" not in said[:40]:
        return False
    try:
        return not json.loads(said)["data"].get("toolRequests")
    except (ValueError, KeyError, AttributeError, TypeError):
        return False  # half of it is written


def _is_message(found: object) -> bool:
    return (
        isinstance(found, dict)
        and found.get("role") in {"user", "assistant"}
        and isinstance(found.get("text"), str)
    )


_SCRATCH = ("<analysis>", "</analysis>")
_SUMMARY = ("<summary>", "</summary>")


def without_scratch(summary: str) -> str:
    """A summary without what the model wrote down to get there, and without the marks around it."""
    text = summary.strip()
    if text.startswith(_SCRATCH[0]) and _SCRATCH[1] in text:
        text = text.partition(_SCRATCH[1])[2].strip()
    if text.startswith(_SUMMARY[0]):
        text = text.removeprefix(_SUMMARY[0]).removesuffix(_SUMMARY[1]).strip()
    return text


_OWN_CONTEXT = ("<hook_context>", "</hook_context>")


def without_own_context(prompt: str) -> str:
    """A prompt without what a hook of ours put before it: Gemini gives it back to us."""
    begin, end = _OWN_CONTEXT
    text = prompt.lstrip()
    if text.startswith(begin) and end in text:
        return text.partition(end)[2].strip()
    return text


def _context(event: Event, text: str) -> dict[str, Any] | None:
    """Say it as the host wants to hear it."""
    if not text:
        return None
    if event.host == "copilot":
        return {"additionalContext": text}  # it reads no other member
    if event.host == "cursor":
        return {"continue": True, "additional_context": text}
    if event.host in {"opencode", "openclaw"}:
        return {"context": text}
    return {
        "hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}
    }  # Codex takes no more


def _catch_up_lock(memory: Memory) -> str:
    return os.path.join(memory.places.state, "locks", "catch-up.lock")


def is_settled(memory: Memory) -> bool:
    """Wait a little for a process that brings the index up to date, rather than do the same once more beside it."""
    path = _catch_up_lock(memory)
    if not os.path.exists(path):
        return True
    from plainmind.files.system import hold_lock

    try:
        with hold_lock(path, operation="recall", timeout_s=_CATCH_UP_S, shared=True):
            return True
    except LockTimeout:
        return False


def catch_up(open_: Callable[[], Memory]) -> None:
    """Bring the index up to date, unless another process is at it; what goes wrong is written down."""
    from plainmind.files.system import try_lock

    home = _usual_folder()
    try:
        with open_() as memory:
            home = os.path.join(memory.home, "hosts")
            held = try_lock(_catch_up_lock(memory), operation="catch up")
            if held is not None:
                with held:
                    memory.sync()
    except (OSError, PlainmindError) as error:
        note_failure(home, f"the index could not be brought up to date: {error}")


def catch_up_later(memory: Memory, sources: Sequence[str]) -> None:
    """Let a process of its own bring the index up to date, so that the next prompt need not wait for that."""
    _start(memory, "hook", "--catch-up", "--config", f"sources={','.join(sources)}")


def tidy_later(memory: Memory) -> None:
    """Let a process of its own look for what could be tidied, once a day."""
    _start(memory, "tidy", "--once-a-day", "--quiet")


def _start(memory: Memory, command: str, *more: str) -> None:
    import subprocess

    from plainmind.guests.hosts.catalogue import own_program

    words = [*own_program(), command, "--workspace", memory.workspace, "--home", memory.home]
    words += ["--agent", memory.agent_id, *more]
    subprocess.Popen(  # noqa: S603 (this program, and a folder of the settings)
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


# --- for a plugin that keeps this running ---


def serve_lines(incoming: Iterable[bytes], outgoing: IO[bytes], open_: Callable[[], Memory]) -> None:
    """Answer each line, an event with an `id`, by a line with the same id, until there are no more."""
    from plainmind.guests.hosts.turns import Turns

    with open_() as memory:
        turns = Turns(memory)
        for line in incoming:
            if not line.strip():
                continue
            answer: dict[str, Any] = {"id": None}
            try:
                asked = json.loads(line)
                answer["id"] = asked.get("id")
                answer["result"] = _answer(asked, turns, memory)
            except PlainmindError as error:
                answer["error"] = {"type": type(error).__name__, "message": str(error), "hint": error.hint}
            except (ValueError, AttributeError, TypeError, KeyError, OSError) as error:
                answer["error"] = {"type": type(error).__name__, "message": str(error), "hint": None}
            outgoing.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
            outgoing.flush()


def _answer(asked: Mapping[str, Any], turns: Turns, memory: Memory) -> Any:
    """What an event asks for: one of those of all hosts, or one for a host whose memory we are."""
    of_memory = _OF_MEMORY.get(str(asked.get("hook_event_name")))
    if of_memory is not None:
        return of_memory(asked, memory)
    event = event_of(asked, {})
    if event.action is None:
        return None
    answer = act(event, turns)
    if turns.has_kept:
        turns.has_kept = False
        memory.sync()
    return answer


def _asker(asked: Mapping[str, Any]) -> Asker:
    """Whose plugin it is: only OpenClaw lets a plugin be its memory."""
    from plainmind.agent.recalls import Asker

    return Asker("hook", str(asked.get("host") or "openclaw"), str(asked.get("session_id") or ""))


def _search(asked: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    from plainmind.agent.recalls import lines_of_hits
    from plainmind.agent.scope import THE_OWNER

    mine = memory.within(THE_OWNER, asker=_asker(asked))
    recall = mine.begin_recall("search", asked["query"])
    found = mine.search(asked["query"], max_results=asked.get("maxResults"), min_score=asked.get("minScore"))
    recall.end(lines_of_hits(found.hits), "\n".join(hit.snippet for hit in found.hits))
    hits = [hit.as_fields() for hit in found.hits]
    return {"hits": hits, "mode": found.mode, "degraded": list(found.degraded)}


def _read(asked: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    from plainmind.agent.recalls import lines_of_excerpt
    from plainmind.agent.scope import THE_OWNER

    mine = memory.within(THE_OWNER, asker=_asker(asked))
    recall = mine.begin_recall("read")
    found = mine.get(asked["path"], first_line=asked.get("from") or 1, line_count=asked.get("lines") or 120)
    recall.end(lines_of_excerpt(found), found.text)
    return {
        "path": found.path,
        "text": found.text,
        "from": found.first_line,
        "lines": found.line_count,
        "nextFrom": found.next_line,
        "truncated": found.truncated,
    }


def _tool(asked: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """Call a tool: its text is what a model may read, with all that was recalled between marks."""
    from plainmind.agent.scope import THE_OWNER
    from plainmind.agent.tools import ToolBox

    box = ToolBox(memory.within(THE_OWNER, asker=_asker(asked)))
    told = box.call(asked["name"], asked.get("arguments") or {})
    box.close()
    return {"text": told.text, "isError": told.is_error}


def _status(_asked: Mapping[str, Any], memory: Memory) -> Mapping[str, Any]:
    return memory.status().as_dict()


def _index(asked: Mapping[str, Any], memory: Memory) -> Mapping[str, Any]:
    if os.path.lexists(memory.workspace):  # OpenClaw makes that of an agent when the agent is started first
        memory.sync(force=bool(asked.get("force")))
    return memory.status().as_dict()


_OF_MEMORY: Mapping[str, Callable[[Mapping[str, Any], Memory], Mapping[str, Any]]] = {
    "Search": _search,
    "Read": _read,
    "Tool": _tool,
    "Status": _status,
    "Index": _index,
}


# --- input, time and what went wrong ---


def read_input(descriptor: int, seconds: float) -> bytes:
    """Read to the end, or until nothing more comes in time: some hosts leave their side open."""
    data = b""
    deadline = time.monotonic() + seconds
    while len(data) < _MOST_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        piece = os.read(descriptor, 1 << 20)
        data += piece
        if not piece or _is_whole(data):
            break
    return data


def _is_whole(data: bytes) -> bool:
    if not data.rstrip().endswith(b"}"):
        return False
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


class _TooLate(BaseException):
    """The host has waited long enough."""


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _usual_folder() -> str:
    """Where it is written down what went wrong before a memory was open; "" where there is no home."""
    from plainmind.config.load import home_folder

    try:
        return os.path.join(home_folder(os.environ), "hosts")
    except ConfigError:
        return ""


_FAILURES = "hook-failures.jsonl"
_MOST_FAILURES = 50
_DAYS = 7


def note_failure(folder: str, reason: str) -> None:
    """Write down why a hook did nothing; the latest fifty are kept."""
    from plainmind.files.atomic import write_atomically

    if not folder:
        return
    path = os.path.join(folder, _FAILURES)
    try:
        line = json.dumps({"at": int(time.time()), "why": reason[:500]}, ensure_ascii=False)
        write_atomically(path, "\n".join([*_failures(path)[1 - _MOST_FAILURES :], line, ""]).encode())
    except (OSError, PlainmindError):
        return  # where nothing can be written nothing can be told


def last_failure(folder: str) -> str | None:
    """The latest reason of the last week, with its day."""
    lines = _failures(os.path.join(folder, _FAILURES))
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return None
    at = found.get("at", 0)
    if time.time() - at > _DAYS * 86_400:
        return None
    return f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(at))}, {found.get('why')}"


def _failures(path: str) -> Sequence[str]:
    from plainmind.files.system import read_file

    try:
        return read_file(path, most=1_000_000).decode(errors="replace").splitlines()
    except OSError:
        return []
