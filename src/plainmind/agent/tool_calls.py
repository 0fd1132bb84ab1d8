"""A tool call: arguments checked against the schema, mistakes as answers, codes that confirm, threads with deadlines.

Nobody can compute a code, and each works once and for minutes. Work that is no longer waited for goes on by itself, and
is not lost.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from plainmind.agent import answers
from plainmind.agent.answers import ToolAnswer
from plainmind.base.errors import (
    ConflictError,
    IndexUnavailable,
    LockTimeout,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    ScopeDenied,
    StorageFailure,
    WorkspaceError,
)
from plainmind.base.model import sha256_text
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generic, NoReturn, TypeVar

    from plainmind.agent.tools import Tool

    T = TypeVar("T")
else:

    class Generic:
        """What stands for the kind of a result, when nobody checks it."""

        def __class_getitem__(cls, _kind: object) -> type:
            return cls

    T = None


# More is a mistake, and would only be searched for slowly. A note has a limit of its own.
MOST_CHARS = {
    "query": 4_000,
    "path": 4_096,
    "what": 20_000,
    "old": 20_000,
    "new": 50_000,
    "confirm": 100,
    "tag": 200,
    "since": 100,
    "until": 100,
}

_LARGEST = 1e300  # beyond it arithmetic gives up; NaN is on neither side of it

_NAMES = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


class Misuse(Exception):
    """A call that cannot be carried out as it is: what is wrong, and what to do instead."""

    def __init__(self, message: str, action: str) -> None:
        super().__init__(message)
        self.action = action


def read_arguments(tool: Tool, given: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments by name; those that are null count as left out. Raises Misuse."""
    arguments = _parse(tool, given) if isinstance(given, str) else given
    if not isinstance(arguments, Mapping):
        raise Misuse(f"the arguments of {tool.name} are {_describe(arguments)}, not an object", _usage(tool))
    known: Mapping[str, Any] = tool.input_schema["properties"]
    for name in arguments:
        if name not in known:
            raise Misuse(f"{tool.name} has no argument `{str(name)[:60]}`", _usage(tool))
    taken = {name: value for name, value in arguments.items() if value is not None}
    for name in tool.input_schema["required"]:
        if name not in taken:
            raise Misuse(f"{tool.name} needs the argument `{name}`", _usage(tool))
    return {name: _check(name, value, known[name]) for name, value in taken.items()}


def _parse(tool: Tool, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_not_a_number) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Misuse(
            f"the arguments of {tool.name} are not valid JSON: {str(error)[:200]}", _usage(tool)
        ) from error


def _not_a_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number that JSON knows")


def _check(name: str, value: Any, shape: Mapping[str, Any]) -> Any:
    kind = shape["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # 3.0 is a whole number in JSON
    if not _is(kind, value):
        raise Misuse(
            f"`{name}` must be {_NAMES[kind]}, not {_describe(value)}", _correction(name, value, kind)
        )
    least = shape.get("minimum")
    if least is not None and value < least:
        raise Misuse(f"`{name}` is {_describe(value)}", f"give {least} or more, or leave `{name}` out")
    if kind == "string":
        _check_text(name, value)
    return value


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) and value.bit_length() < 64
    if kind == "number":
        return isinstance(value, int | float) and -_LARGEST <= value <= _LARGEST
    return kind == "string" and isinstance(value, str)


def _check_text(name: str, value: str) -> None:
    if not value.strip():
        raise Misuse(f"`{name}` is empty", f"say something in `{name}`, or do not call the tool")
    most = MOST_CHARS.get(name)
    if most is not None and len(value) > most:
        raise Misuse(
            f"`{name}` has {len(value):,} characters; the limit is {most:,}",
            "give less: a sentence is enough",
        )


def _correction(name: str, value: Any, kind: str) -> str:
    if kind in {"integer", "number"} and isinstance(value, str):
        try:
            as_number = json.loads(value)
        except ValueError:
            return f"give `{name}` as a number, or leave it out"
        if _is(kind, as_number):
            return f"write {json.dumps({name: as_number})}, without quotation marks"
    if kind == "string":
        return f"give `{name}` as one text in quotation marks"
    return f"give `{name}` as {_NAMES[kind]}, or leave it out"


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {json.dumps(value[:40])}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 128:
        return "a huge number"  # Python refuses to write out the longest
    return "null" if value is None else json.dumps(value, default=repr)[:40]


def _usage(tool: Tool) -> str:
    """How to call the tool, in one line."""
    properties: Mapping[str, Any] = tool.input_schema["properties"]
    if not properties:
        return f"call {tool.name} with {{}}"
    required = tool.input_schema["required"]
    parts = (
        f'"{name}": {_NAMES[shape["type"]]}' + ("" if name in required else " (optional)")
        for name, shape in properties.items()
    )
    return f"call {tool.name} with {{{', '.join(parts)}}}"


_CODES: tuple[tuple[type[PlainmindError], str], ...] = (
    (ScopeDenied, "MEMORY_DENIED"),
    (PathNotAllowed, "MEMORY_PATH_NOT_ALLOWED"),
    (NotFound, "MEMORY_NOT_FOUND"),
    (ConflictError, "MEMORY_CHANGED"),
    (LockTimeout, "MEMORY_BUSY"),
    (WorkspaceError, "MEMORY_UNAVAILABLE"),
    (StorageFailure, "MEMORY_UNAVAILABLE"),
    (IndexUnavailable, "MEMORY_UNAVAILABLE"),
)
_PYTHONIC = {
    "maxResults": "max_results",
    "minScore": "min_score",
    "from": "first_line",
    "lines": "line_count",
}


@value
class Call:
    """A call that can be carried out: its work, and what is answered when that takes longer than `seconds`."""

    work: Callable[[], ToolAnswer]
    seconds: float | None = None  # None: it is waited for as long as it takes
    late: Callable[[], ToolAnswer] | None = None


def answer_call(call: Call, pool: Pool) -> ToolAnswer:
    """Carry out a call from a thread that waits for it: here, or where it has a deadline in the pool."""
    if call.seconds is None or call.late is None:
        return call.work()
    try:
        return pool.run(call.work, seconds=call.seconds)
    except TimedOut:
        return call.late()


def carry_out(
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    tools: Mapping[str, Tool],
    calls: Mapping[str, Callable[..., ToolAnswer]],
    explained: Callable[[str, PlainmindError], ToolAnswer],
) -> ToolAnswer:
    """Carry out one call, with its arguments as an object or as the JSON text that a model wrote."""
    tool = tools.get(name)
    if tool is None:
        known = ", ".join(tools)
        return answers.failure(
            name, "UNKNOWN_TOOL", f"there is no tool `{name[:60]}`", f"the tools are: {known}"
        )
    try:
        given = read_arguments(tool, arguments)
        return calls[name](**{_PYTHONIC.get(each, each): value for each, value in given.items()})
    except Misuse as misuse:
        return answers.failure(name, "INVALID_ARGUMENTS", str(misuse), misuse.action)
    except PlainmindError as error:
        return explained(name, error)


def code_of(error: PlainmindError) -> str:
    """The short name by which a program tells failures apart."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), "MEMORY_ERROR")


_VALID_S = 600.0
_MOST = 100  # that wait at a time: whoever asks for previews without end makes older codes void, and nothing worse
_RANDOM_BYTES = 8


@value
class _Shown:
    meaning: str  # a hash of exactly what was shown, and in which conversation
    until: float


class Codes:
    """The codes of one process: no other one knows them, and with it they are gone. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._shown: dict[str, _Shown] = {}

    def make(self, *what: str) -> str:
        """A code for what is shown now. It is random: it says nothing about the text, and the text nothing about it."""
        code, now = os.urandom(_RANDOM_BYTES).hex(), self._clock()
        with self._lock:
            waiting = [one for one in self._shown.items() if one[1].until > now]
            self._shown = dict(waiting[1 - _MOST :])
            self._shown[code] = _Shown(_meaning(what), now + _VALID_S)
        return code

    def meaning_of(self, code: str) -> str:
        """What a code stands for, for one that stands for several; "" when it stands for nothing."""
        with self._lock:
            shown = self._shown.get(code)
        return shown.meaning if shown else ""

    def take(self, code: str, *what: str) -> bool:
        """Whether it was made for exactly this, not long ago, and was not taken yet."""
        code, now = code.strip(), self._clock()
        with self._lock:
            shown = self._shown.get(code)
            if shown is None or shown.until <= now or shown.meaning != _meaning(what):
                return False
            del self._shown[code]
        return True


def _meaning(what: tuple[str, ...]) -> str:
    return sha256_text("\n".join(f"{len(part)} {part}" for part in what))


def wrong_code(what: str) -> str:
    """What to say of a code that was refused; what would go is shown once more, with a new one."""
    return (
        f"This code does not stand for {what}: the memory has changed, or the code was used already, is older than"
        f" {_VALID_S / 60:.0f} minutes, or was never given here."
    )


OF_THIS_PROCESS = Codes()


_IDLE_S = 60.0  # how long a thread stays for the next work: it keeps what it has made, such as a stemmer


class TimedOut(Exception):
    """The wait is over, the work is not."""


class Job(Generic[T]):
    """Work that was given to a pool, and what came of it."""

    def __init__(self, work: Callable[[], T], *, has_deadline: bool, on_end: Callable[[], None]) -> None:
        self._work = work
        self._on_end = on_end
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._result: T
        self.has_deadline = has_deadline

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._ended.is_set()

    def run(self) -> None:
        """Do the work; called by a thread of the pool."""
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            self._error = error
        finally:
            self._ended.set()
            self._on_end()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended; False when it takes longer."""
        return self._ended.wait(seconds)

    def result(self) -> T:
        """Give the result, or raise what the work raised."""
        if self._error is not None:
            raise self._error
        return self._result


class Pool:
    """Runs work in threads that stay for the next one.

    SQLite, files and models cannot be interrupted, so that work whose deadline has passed runs on to its end: a first
    search that had to index everything has then done so for the next one. Of such work there is never more than
    `most` at a time: what comes above that is refused at once.
    """

    def __init__(self, most: int = 4, *, name: str = "plainmind pool") -> None:
        self._name = name
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[Job[Any]] = deque()
        self._running: list[Job[Any]] = []
        self._idle = 0

    def start(
        self, work: Callable[[], T], *, has_deadline: bool = False, on_end: Callable[[], None] = lambda: None
    ) -> Job[T]:
        """Give work to a thread; `on_end` is called there when it has ended. Raises TimedOut when it is refused."""
        job: Job[T] = Job(work, has_deadline=has_deadline, on_end=on_end)
        with self._changed:
            if (
                has_deadline
                and sum(one.has_deadline and not one.is_done for one in self._running) >= self._most
            ):
                raise TimedOut
            self._running.append(job)
            self._waiting.append(job)
            if self._idle >= len(self._waiting):
                self._changed.notify_all()
            else:
                # A daemon: a process that wants to end does not wait for an answer that is read by no one.
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        return job

    def run(self, work: Callable[[], T], *, seconds: float) -> T:
        """Do work and give its result, or raise what it raised; TimedOut when it is not done in time."""
        job = self.start(work, has_deadline=True)
        if not job.wait(seconds):
            raise TimedOut
        return job.result()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is running; False when something still is."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._running

    def close(self, timeout_s: float = 10.0) -> None:
        """Wait for what is still running, so that the memory beneath it can be closed."""
        self.wait(timeout_s)

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            with self._changed:
                self._running.remove(job)
                self._changed.notify_all()

    def _next(self) -> Job[Any] | None:
        """The next work; None when there was none for a while."""
        deadline = time.monotonic() + _IDLE_S
        with self._changed:
            self._idle += 1
            try:
                while not self._waiting:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return None
                    self._changed.wait(left)
                return self._waiting.popleft()
            finally:
                self._idle -= 1
