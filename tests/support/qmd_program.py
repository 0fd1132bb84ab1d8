"""A program that speaks QMD's command line, remembers what it was told, and fails in whatever way it is asked to."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

NAME = "qmd"


class QmdProgram:
    """The program in a folder of its own. `does` makes it misbehave from the next start on."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / NAME
        source = Path(__file__).read_text()
        self.path.write_text(f"#!{sys.executable} -IS\n{source}\nrun(sys.argv[1:], {str(folder)!r})\n")
        self.path.chmod(0o755)

    def does(self, what: str, *, when: str = "") -> None:
        """Choose what it does: one of `FAULTS`, or "" for its work; `when` only for that verb."""
        (self.folder / "behaviour").write_text(f"{when} {what}".strip() if what else "")

    @property
    def calls(self) -> list[dict]:
        """What it was called with: `argv`, `env`, `cwd`, `umask`."""
        log = self.folder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def verbs(self) -> list[str]:
        return [call["argv"][0] for call in self.calls]

    def alive(self) -> list[int]:
        """The processes that it has started and that are there still, its own included."""
        return [pid for pid in self._noted() if _runs(pid)]

    def all_gone_within(self, seconds: float = 30.0) -> bool:
        until = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def _noted(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.folder / "processes").read_text().split()]
        return []


def _runs(pid: int) -> bool:
    """Whether a process is there, and has not only not been waited for yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def run(argv: list[str], folder: str) -> None:
    """Be the program."""
    _note(folder)
    mask = os.umask(0)
    os.umask(mask)
    with open(f"{folder}/calls.jsonl", "a") as log:
        call = {"argv": argv, "env": dict(os.environ), "cwd": os.getcwd(), "umask": mask}
        log.write(json.dumps(call) + "\n")
    try:
        with open(f"{folder}/behaviour") as file:
            *when, fault = file.read().split() or [""]
    except FileNotFoundError:
        when, fault = [], ""
    if fault and (not when or when == argv[:1]):
        FAULTS[fault](argv, folder)
    else:
        _work(argv)


def _work(argv: list[str]) -> None:
    verb = argv[0]
    if verb == "--version":
        print("qmd 9.8.7 (abcdef0)")
    elif verb == "update":
        _update()
    elif verb in {"search", "query", "vsearch"}:
        print(json.dumps(_found(argv), indent=2))
    elif verb not in {"embed", "cleanup"}:
        sys.exit(1)


def _index() -> str:
    return os.path.join(os.environ["XDG_CACHE_HOME"], "qmd", "index.sqlite")


def _update(wait=lambda: None) -> None:
    import fnmatch

    with open(os.path.join(os.environ["QMD_CONFIG_DIR"], "index.yml")) as file:
        collections = json.load(file)["collections"]
    known = {}
    for name, collection in collections.items():
        masks = ["MEMORY.md", "memory.md"] if "{" in collection["pattern"] else [collection["pattern"]]
        known[name] = {}
        for top, _, files in os.walk(collection["path"]):
            for each in filter(lambda name, top=top: os.path.isfile(os.path.join(top, name)), files):
                path = os.path.relpath(os.path.join(top, each), collection["path"])
                if any(fnmatch.fnmatch(path, mask.replace("**/", "")) for mask in masks):
                    with open(os.path.join(top, each), encoding="utf-8", errors="replace") as file:
                        known[name][path] = file.read()
    wait()
    with open(_index(), "w") as file:
        json.dump(known, file)


def _found(argv: list[str]) -> list[dict]:
    end = argv.index("--")
    query = argv[end + 1].replace("lex:", "").partition("\n")[0].replace("vec:", "").casefold().split()
    names = [argv[place + 1] for place in range(end) if argv[place] == "-c"]
    known = {}
    if os.path.exists(_index()):
        with open(_index()) as file:
            known = json.load(file)
    if missing := [name for name in names if name not in known]:
        sys.stderr.write(f"Collection not found: {missing[0]}\n")
        sys.exit(1)
    answers = []
    for name in names:
        for path, text in known[name].items():
            lines = text.split("\n")
            at = [n for n, line in enumerate(lines) if any(word in line.casefold() for word in query)]
            if at and all(word in text.casefold() for word in query):
                first = max(0, at[0] - 1)
                shown = lines[first : first + 4]
                answers.append(
                    {
                        "docid": "#abc123",
                        "score": 0.9 - 0.01 * len(answers),
                        "file": f"qmd://{name}/{path}",
                        "line": at[0] + 1,
                        "title": path,
                        "snippet": f"@@ -{first + 1},{len(shown)} @@ (0 before, 0 after)\n"
                        + "\n".join(shown),
                    }
                )
    return answers[: int(argv[argv.index("-n") + 1])]


def _note(folder: str) -> None:
    with open(f"{folder}/processes", "a") as file:
        file.write(f"{os.getpid()}\n")


def _hang(argv: list[str], folder: str) -> None:
    time.sleep(600)


def _ignore_term(argv: list[str], folder: str) -> None:
    import signal

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def _crash(argv: list[str], folder: str) -> None:
    os.kill(os.getpid(), 11)


def _refuse(argv: list[str], folder: str) -> None:
    sys.stderr.write("SqliteError: database disk image is malformed\n")
    sys.exit(1)


def _garbage(argv: list[str], folder: str) -> None:
    os.write(1, bytes(range(256)) * 40 + b"[{ not json")


def _flood(argv: list[str], folder: str) -> None:
    block = b"x" * (1 << 16)
    for _ in range((1 << 30) >> 16):
        os.write(1, block)


def _complain(argv: list[str], folder: str) -> None:
    block = b"y" * (1 << 16)
    for _ in range(64):
        os.write(2, block)
    _work(argv)


def _grandchild(argv: list[str], folder: str) -> None:
    """Answer and end, while a child holds the pipes open."""
    if os.fork() == 0:
        _note(folder)
        time.sleep(600)
        os._exit(0)
    _work(argv)


def _escaped(argv: list[str], folder: str) -> None:
    """Leave a process behind that has a session of its own and no parent any more, and hang."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _note(folder)
            time.sleep(600)
        os._exit(0)
    time.sleep(600)


def _launcher(argv: list[str], folder: str) -> None:
    """Be what the real one is: a program that starts another, and dies of a signal without it."""
    import subprocess

    child = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"])
    with open(f"{folder}/processes", "a") as file:
        file.write(f"{child.pid}\n")
    child.wait()


def _abort_after_answer(argv: list[str], folder: str) -> None:
    _work(argv)
    sys.stdout.flush()
    os.kill(os.getpid(), 6)


def _linger(argv: list[str], folder: str) -> None:
    """Update, but between reading and writing wait for a file `go`."""
    with open(f"{folder}/lingers", "w"):
        pass

    def wait() -> None:
        while not os.path.exists(f"{folder}/go"):
            time.sleep(0.01)

    _update(wait)


def _colour(argv: list[str], folder: str) -> None:
    sys.stderr.write("\x1b]0;owned\x07\x1b[2J it is broken\n")
    sys.exit(1)


def _noise(argv: list[str], folder: str) -> None:
    print("[1/2] loading the model [fast]")
    _work(argv)
    print("done")


FAULTS = {
    "hang": _hang,
    "ignore-term": _ignore_term,
    "crash": _crash,
    "refuse": _refuse,
    "garbage": _garbage,
    "flood": _flood,
    "complain": _complain,
    "grandchild": _grandchild,
    "escaped": _escaped,
    "launcher": _launcher,
    "abort-after-answer": _abort_after_answer,
    "noise": _noise,
    "linger": _linger,
    "colour": _colour,
}
