"""The program QMD: how it is used and when it is due, where it is, what is said to it, one process of it at a time."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.files.safe_open import expand_user
from plainmind.guests.qmd.keeper import NOT_STARTED
from plainmind.memory.backend import BackendBusy, BackendFailed, Initiative, Record, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from selectors import BaseSelector
    from subprocess import Popen
    from typing import Literal, TypeAlias


# --- how it is used, and when it is due ---


SearchMode: TypeAlias = "Literal['search', 'vsearch', 'query']"


@value
class QmdOptions:
    """Settings of the program, in seconds where they are times."""

    command: str = "qmd"
    search_mode: SearchMode = "search"
    include_default_memory: bool = True
    export_folder: str | None = None  # of conversations; None: beside its index
    retention_days: int = 30
    update_interval_s: float = 300.0
    embed_interval_s: float = 3600.0
    debounce_s: float = 15.0
    update_on_boot: bool = True
    update_on_search: bool = True
    command_timeout_s: float = 30.0
    update_timeout_s: float = 120.0
    embed_timeout_s: float = 120.0


@value
class Done:
    """What QMD was told last, and when. Times are seconds since the epoch, 0 for never."""

    updated_at: float
    embedding_began_at: float  # whether it came to an end or not
    config: str  # digests of what it was told to index, and of how the files looked
    listing: str


@value
class Wanted:
    """How it should be now."""

    config: str
    listing: str


def update_is_due(
    initiative: Initiative, done: Done, wanted: Wanted, now: float, options: QmdOptions, *, has_booted: bool
) -> bool:
    """Whether to update. What it has never seen cannot wait; changes wait until they have settled."""
    since = _since(done.updated_at, now)
    if initiative == "asked" or not done.updated_at or done.config != wanted.config:
        return True
    if initiative == "background" and options.update_on_boot and not has_booted:
        return True
    if done.listing != wanted.listing and since >= options.debounce_s:
        return True
    return initiative == "background" and since >= options.update_interval_s


def embedding_is_due(initiative: Initiative, done: Done, now: float, options: QmdOptions) -> bool:
    """Whether to embed, which takes long: never while somebody waits for an answer."""
    if options.search_mode == "search" or initiative == "search":
        return False
    return (
        initiative == "asked"
        or not done.embedding_began_at
        or _since(done.embedding_began_at, now) >= options.embed_interval_s
    )


def seconds_until_due(
    done: Done, wanted: Wanted, now: float, options: QmdOptions, *, can_embed: bool = False
) -> float:
    """How long until there is something to do in the background."""
    if not done.updated_at or done.config != wanted.config:
        return 0.0
    wait = options.debounce_s if done.listing != wanted.listing else options.update_interval_s
    left = wait - _since(done.updated_at, now)
    if can_embed and options.search_mode != "search":
        began = done.embedding_began_at
        left = min(left, options.embed_interval_s - _since(began, now) if began else 0.0)
    return max(0.0, left)


def _since(moment: float, now: float) -> float:
    """How long ago; a clock that was set back makes everything long ago, so that nothing waits for it."""
    return now - moment if moment <= now else float("inf")


# --- how it is run ---


ENDS_WITHIN_S = 1.0  # after it was asked to, before it is made to
_ENDED_FOR_SURE_S = 2 * ENDS_WITHIN_S + 1.0
_LAST_WORDS = 2000  # of what it says to people
_BLOCK = 1 << 16
_BY_SIGNAL = 128

_FLAGS = ("-I", "-S", *(("-B",) if sys.dont_write_bytecode else ()))
# Isolated from the environment and from the working folder, but with our own path.
_BOOT = (
    "import sys; n = int(sys.argv[1]) + 2; sys.path[:] = sys.argv[2:n]; del sys.argv[1:n];"
    " from plainmind.guests.qmd.keeper import main; main()"
)
_PASSED_ON = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"}
)
_PASSED_ON_PREFIXES = ("CUDA_", "GGML_", "LC_", "LLAMA_", "NODE_LLAMA_CPP_", "QMD_")
_KEPT_BACK_PREFIX = "QMD_TRUST_"  # lets a folder that it stands in run programs
# By its name: without one, a folder `.qmd` where it stands, or above, takes the place of its home.
OWN_INDEX = ("--index", "index")
# Characters; the system refuses to start a program with more than 128 KiB in one argument.
_MOST_ASKED = 8_000
_NOT_TEXT = pattern(r"[\x00-\x20\x7f-\xa0\ud800-\udfff]+")
_EXCLUSION = pattern(r'(?<!\S)-+(?=[\w"])')
_KIND_OF_LINE = pattern(r"(?i)^(lex|vec|hyde|expand|intent):")
# What it takes when nobody has said otherwise; a name is enough to see whether it was fetched.
_USUAL_MODELS = {
    "embed": "embeddinggemma-300M-Q8_0.gguf",
    "generate": "qmd-query-expansion-1.7B-q4_k_m.gguf",
    "rerank": "qwen3-reranker-0.6b-q8_0.gguf",
}
_VERSION = pattern(r"\d+\.\d+(?:\.\d+)?[\w.+-]{0,40}")
_MOST_SAID = 64_000


class TookTooLong(BackendFailed):
    """The program was ended because its time was over."""


@value
class Outcome:
    """How a program ended, and what it said."""

    status: int  # as a shell tells it: 128 and more for signals
    output: bytes
    complaints: str  # the last of what it wrote to its standard error


class Sidecar:
    """Runs programs one after the other. Whatever one of them starts is gone soon after its deadline."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._starting = threading.Lock()  # or closing: nothing is started that nobody ends
        self._running: Popen[bytes] | None = None
        self._is_closed = False

    def run(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: str,
        timeout_s: float,
        max_output: int | None = None,
    ) -> Outcome:
        """Run a program to its end. Raises BackendFailed; TookTooLong, at the latest, when the time is over.

        It may say `max_output` bytes; None: as much as it likes, and nobody listens.

        When it raises, the program is still being ended; the next one does not start before that is done.
        """
        deadline = time.monotonic() + timeout_s
        if not self._turn.acquire(timeout=max(0.0, timeout_s)):
            raise BackendBusy("it is busy with something else")
        try:
            self._require_the_last_one_gone(deadline)
            process = self._started(command, environ, cwd, max(0.0, deadline - time.monotonic()))
            try:
                outcome = _Listening(process, deadline, max_output).outcome(command[0])
            finally:
                _let_go(process)
            if self._is_closed:
                raise BackendBusy("it was closed")
            return outcome
        finally:
            self._turn.release()

    def close(self) -> None:
        """End what runs, and wait until it is gone."""
        with self._starting:
            self._is_closed = True
            process = self._running
        if process is not None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            _wait_for(process, _ENDED_FOR_SURE_S)

    def _require_the_last_one_gone(self, deadline: float) -> None:
        process = self._running
        if process is not None and not _wait_for(process, deadline - time.monotonic(), insist=False):
            raise BackendBusy("what it did last is still being ended")
        self._running = None

    def _started(
        self, command: Sequence[str], environ: Mapping[str, str], cwd: str, seconds: float
    ) -> Popen[bytes]:
        import subprocess

        if not os.path.basename(sys.executable or "").lower().startswith(("python", "pypy")):
            raise BackendFailed("there is no Python here to watch over it")
        path = [str(len(sys.path)), *sys.path]
        keeping = [str(os.getpid()), f"{seconds:.3f}", str(ENDS_WITHIN_S)]
        with self._starting:
            if self._is_closed:
                raise BackendBusy("it was closed")
            try:
                self._running = subprocess.Popen(  # noqa: S603 (an absolute path, and never a shell)
                    [sys.executable, *_FLAGS, "-c", _BOOT, *path, *keeping, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=cwd,
                    env=dict(environ),
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise BackendFailed(f"it cannot be started: {error}") from error
            return self._running


class _Listening:
    """Takes in what a program says until it has ended, said too much, or its time is over."""

    def __init__(self, process: Popen[bytes], deadline: float, max_output: int | None) -> None:
        self._process = process
        self._deadline = deadline
        self._max_output = max_output
        self._output = bytearray()
        self._complaints = b""

    def outcome(self, name: str) -> Outcome:
        """Wait for the end."""
        from selectors import EVENT_READ, DefaultSelector

        with DefaultSelector() as selector:
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, EVENT_READ)
            while selector.get_map():
                self._take_in(selector, name)
        left = self._deadline - time.monotonic()
        has_ended = _wait_for(self._process, left, insist=False)
        # Its keeper looks at the time too, and may be faster than we on a machine that is busy.
        if not has_ended or (self._process.returncode > _BY_SIGNAL and time.monotonic() >= self._deadline):
            raise self._too_long(name)
        return Outcome(self._process.returncode, bytes(self._output), self._last_words())

    def _take_in(self, selector: BaseSelector, name: str) -> None:
        left = self._deadline - time.monotonic()
        ready = selector.select(left) if left > 0 else []
        if not ready:
            raise self._too_long(name)
        for key, _ in ready:
            piece = os.read(key.fd, _BLOCK)
            if not piece:
                selector.unregister(key.fileobj)
            elif key.fileobj is self._process.stderr:
                self._complaints = (self._complaints + piece)[-_LAST_WORDS:]
            elif self._max_output is not None:
                self._output += piece
                if len(self._output) > self._max_output:
                    raise BackendFailed(
                        f"{os.path.basename(name)} said more than {self._max_output:,} bytes, and was stopped"
                    )

    def _last_words(self) -> str:
        return self._complaints.decode("utf-8", "replace")

    def _too_long(self, name: str) -> TookTooLong:
        return TookTooLong(f"{os.path.basename(name)} took too long, and was stopped")


def _let_go(process: Popen[bytes]) -> None:
    """Close the pipes: that also ends a program that still runs, and does not wait for it."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _wait_for(process: Popen[bytes], seconds: float, *, insist: bool = True) -> bool:
    """Wait for the end of a keeper; one that does not come to it is killed, if that is what is wanted."""
    import subprocess

    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        if not insist:
            return False
        process.kill()
        process.wait()
    return True


@value
class Homes:
    """The folders that the program takes for its own."""

    config: str
    cache: str

    @classmethod
    def beneath(cls, folder: str) -> Homes:
        """In a folder that is ours."""
        return cls(os.path.join(folder, "xdg-config"), os.path.join(folder, "xdg-cache"))

    @property
    def config_file(self) -> str:
        """Where it looks for its collections."""
        return os.path.join(self.config, "qmd", "index.yml")

    @property
    def index_file(self) -> str:
        """Where it keeps its index."""
        return os.path.join(self.cache, "qmd", "index.sqlite")

    @property
    def models(self) -> str:
        """Where it keeps models that it has fetched."""
        return os.path.join(self.cache, "qmd", "models")


def environment(environ: Mapping[str, str], homes: Homes, program: str) -> dict[str, str]:
    """Let through what it needs. `CI` is not among it: set, it turns its models off; empty, it makes it crash."""
    kept = {
        name: text
        for name, text in environ.items()
        if name in _PASSED_ON
        or (name.startswith(_PASSED_ON_PREFIXES) and not name.startswith(_KEPT_BACK_PREFIX))
    }
    # A program that was installed beside its own Node finds it there.
    path = os.pathsep.join(filter(None, (kept.get("PATH"), os.path.dirname(program))))
    return {
        **kept,
        "PATH": path,
        "NO_COLOR": "1",
        "XDG_CONFIG_HOME": homes.config,
        "XDG_CACHE_HOME": homes.cache,
        "QMD_CONFIG_DIR": os.path.dirname(homes.config_file),
    }


def find_program(command: str, environ: Mapping[str, str]) -> str:
    """The program's absolute path. Raises BackendFailed when there is none."""
    from shutil import which

    wanted = expand_user(command, environ)
    # An empty path would be that of this process, and a relative one would depend on where somebody stands.
    path = os.pathsep.join(part for part in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(part))
    found = which(wanted, path=path or os.devnull) if os.path.isabs(wanted) or "/" not in wanted else None
    if found is None:
        raise BackendFailed(
            f"there is no program `{command}`",
            hint="install it with `npm install -g @tobilu/qmd`, or give its absolute path as `qmd.command`",
        )
    return found


def configured_models(environ: Mapping[str, str]) -> dict[str, str]:
    """The models that somebody has chosen, by what they are for."""
    chosen = {kind: environ.get(f"QMD_{kind.upper()}_MODEL", "") for kind in _USUAL_MODELS}
    return {kind: model for kind, model in chosen.items() if model}


def present_models(environ: Mapping[str, str], homes: Homes) -> frozenset[str]:
    """Which models are on this machine, by what they are for: it hangs when it has to fetch one and cannot."""
    try:
        fetched = [name.casefold() for name in os.listdir(homes.models)]
    except OSError:
        fetched = []
    wanted = _USUAL_MODELS | configured_models(environ)
    return frozenset(kind for kind, model in wanted.items() if _is_present(model, fetched))


def _is_present(model: str, fetched: Sequence[str]) -> bool:
    if os.path.isabs(model):
        return os.path.isfile(model)
    return any(name.endswith(os.path.basename(model).casefold()) for name in fetched)


def in_one_line(query: str) -> str:
    """A question as it can be handed to a program; empty when nothing of it can be."""
    return " ".join(_NOT_TEXT.sub(" ", query).split())[:_MOST_ASKED]


def search_arguments(
    query: str, mode: SearchMode, models: frozenset[str], collections: Sequence[str], limit: int
) -> tuple[list[str], str | None]:
    """The arguments of a search, and what it does without: never a command that would wait for a missing model.

    With a model for embedding alone, it is told what to look for by words and what by meaning, so that it need not
    ask a second model to say the question in other words, nor a third to compare.
    """
    asked = in_one_line(query)
    wanted = [part for name in collections for part in ("-c", name)]
    options = ["--json", "-n", str(limit), *wanted]
    if mode == "search":
        return ["search", *options, "--", asked], None
    if "embed" not in models:
        without = "qmd has no model for meaning here: words alone were searched"
        return ["search", *options, "--", asked], without
    if mode == "vsearch":
        return ["query", *options, "--no-rerank", "--", _by_meaning(asked)], None
    if {"generate", "rerank"} <= models:
        return ["query", *options, "--", _KIND_OF_LINE.sub(r"\1 ", asked)], None
    both = "\n".join(filter(None, (_by_words(asked), _by_meaning(asked))))
    return ["query", *options, "--no-rerank", "--", both], None


def _by_words(asked: str) -> str:
    """A line for words; none when only quotation marks would be left. It refuses one without its other half."""
    words = asked.replace('"', " ").strip() if asked.count('"') % 2 else asked
    return f"lex: {words}" if words else ""


def _by_meaning(asked: str) -> str:
    """A line for meaning, in which it refuses words that are to be left out."""
    return f"vec: {_EXCLUSION.sub('', asked)}"


class Program:
    """Runs QMD in its own home, one process at a time."""

    def __init__(self, surroundings: Surroundings, options: QmdOptions, record: Record) -> None:
        self._environ = surroundings.environ
        self._options = options
        self._record = record
        # Not the workspace: programs take settings, and code, from the folder that they stand in.
        self._cwd = surroundings.folder
        self._homes = Homes.beneath(surroundings.folder)
        self._sidecar = Sidecar()
        self._path: str | None = None

    def path(self) -> str:
        """Its absolute path, looked for once. Raises BackendFailed."""
        if self._path is None:
            self._path = find_program(self._options.command, self._environ)
        return self._path

    def models(self) -> frozenset[str]:
        """Which of its models are on this machine."""
        return present_models(self._environ, self._homes)

    def run(self, arguments: Sequence[str], timeout_s: float, *, max_output: int | None = None) -> Outcome:
        """Run it to its end: a verb, and what goes with it. Raises BackendFailed."""
        path, (verb, *others) = self.path(), arguments
        outcome = self._sidecar.run(
            [path, verb, *OWN_INDEX, *others],
            environ=environment(self._environ, self._homes, path),
            cwd=self._cwd if os.path.isdir(self._cwd) else "/",
            timeout_s=timeout_s,
            max_output=max_output,
        )
        if outcome.status == NOT_STARTED:
            self._path = None  # it may have moved
        return outcome

    def version(self) -> str:
        """Ask for its version. Raises BackendFailed."""
        outcome = self.run(["--version"], self._options.command_timeout_s, max_output=_MOST_SAID)
        found = _VERSION.search(outcome.output.decode("utf-8", "replace"))
        if outcome.status or found is None:
            raise BackendFailed(f"`{self.path()} --version` tells no version")
        self._record.update(version=found[0])
        return found[0]

    def close(self) -> None:
        """End what runs."""
        self._sidecar.close()
