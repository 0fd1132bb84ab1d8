"""`kill -9` strikes `plainmind chat` at chosen moments: no turn is lost, no note doubled, no cycle unflushed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from tests.support.scripted_chat_model import KEY, Asked, Call, Say, ScriptedModel, scripted_model

import plainmind

# Each test starts some seven processes: on a busy machine half a minute goes by.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SOURCE = str(Path(plainmind.__file__).parents[1])
PROGRAM = str(Path(__file__).with_name("dying_chat.py"))
TURNS = 5
OLD_LOG = b"# A log\n\n- 09:00 an older note\nwithout its last line end"

# At which request of which kind, and at which moment of it, the process is killed.
MOMENTS = [
    ("turn", 1, "asked"),
    ("turn", 1, "speaking"),
    ("turn", 3, "said"),
    ("flush", 1, "asked"),
    ("flush", 1, "said"),
    ("flush", 2, "said"),
    ("compaction", 1, "asked"),
    ("compaction", 1, "said"),
]
if FULL:
    MOMENTS += [
        ("turn", 1, "said"),
        ("turn", 2, "asked"),
        ("turn", 3, "asked"),
        ("flush", 1, "speaking"),
        ("flush", 2, "asked"),
        ("flush", 3, "asked"),
        ("compaction", 1, "speaking"),
        ("compaction", 2, "asked"),
    ]


def script(asked: Asked) -> Say:
    """Answer every turn after a look into the memory; the context fills up with every message."""
    if asked.kind == "flush":
        if "Noted" in asked.last:
            return Say("NO_REPLY")
        return Say(calls=[Call("memory_append", {"text": "They chose larch.", "path": "MEMORY.md"})])
    if asked.kind == "compaction":
        return Say("In short: larch.")
    usage = (18_000 * len(asked.messages), 10)
    if asked.messages[-1]["role"] == "user":
        return Say(calls=[Call("memory_search", {"query": "boat"})], usage=usage)
    return Say(f"answer to {turns_in(asked.text)[-1]}", usage=usage)


def turns_in(text: str) -> list[str]:
    return [f"turn-{word[0]}" for word in text.split("turn-")[1:]]


@dataclass
class Life:
    """One conversation through all its processes."""

    folder: Path
    server: ScriptedModel
    logs: list[bytes] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    starts: int = 0
    acknowledged: list[str] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return next((self.folder / "notes/memory").glob("2*.md"))

    def entries(self) -> list[dict]:
        """Whatever stands in a transcript; one that was only begun has nothing but its header."""
        files = (self.folder / "home/agents/main/sessions").glob("*.jsonl")
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines(keepends=True)]

    def said(self, role: str) -> list[str]:
        messages = [entry["message"] for entry in self.entries() if entry["type"] == "message"]
        return [json.dumps(message["content"]) for message in messages if message["role"] == role]

    def start(self, fatal: int = 0) -> None:
        settings = {
            "provider": "none",
            "chat.baseUrl": self.server.openai_url,
            "chat.apiKey": KEY,
            "chat.model": "larch-1",
            "chat.contextWindow": "150000",
            "chat.keepMessages": "0",
        }
        options = [word for name, value in settings.items() for word in ("--config", f"{name}={value}")]
        places = ["--workspace", str(self.folder / "notes"), "--home", str(self.folder / "home")]
        self.starts += 1
        errors = (self.folder / "stderr").open("wb")
        self.process = subprocess.Popen(
            [
                *[sys.executable, PROGRAM, SOURCE, str(fatal), str(self.folder / f"tally-{self.starts}")],
                *["chat", "--resume", *places, *options],
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        errors.close()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=60)

    def take(self, turn: str) -> None:
        """Say something, as often as it takes until it is in the transcript, and wait for its answer."""
        while f"answer to {turn}" not in self.acknowledged:
            if self.process is None:
                self.start()
            assert self.process is not None
            known = any((self.folder / "home").rglob("*.jsonl")) and any(
                turn in said for said in self.said("user")
            )
            try:
                if not known:
                    assert self.process.stdin is not None
                    self.process.stdin.write(f"{turn} ?\n".encode())
                    self.process.stdin.flush()
                self._listen(turn)
            except BrokenPipeError:
                self.mourn()

    def _listen(self, turn: str) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.endswith(b"\n"):
                self.acknowledged.append(line.decode().strip())
            if line == f"answer to {turn}\n".encode():
                return
        self.mourn()
        # It may have been killed between its answer and our ears: then it is in the transcript, and not given again.
        if any(f"answer to {turn}" in said for said in self.said("assistant")):
            self.acknowledged.append(f"answer to {turn}")

    def mourn(self) -> None:
        """Look at what a dead process has left."""
        assert self.process is not None
        self.process.wait(timeout=60)
        assert self.process.returncode == -9, (self.folder / "stderr").read_text()
        self.close_pipes()
        self.process = None
        self.deaths += 1
        self.logs.append(self.log.read_bytes())

    def end(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            assert self.process.wait(timeout=60) in {0, -9}, (self.folder / "stderr").read_text()
            if self.process.returncode:
                self.deaths += 1
            self.close_pipes()
        self.process = None
        self.logs.append(self.log.read_bytes())

    def close_pipes(self) -> None:
        assert self.process is not None
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


@pytest.fixture
def life(tmp_path):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    (tmp_path / "notes" / "MEMORY.md").write_text("# Memory\n\n- The boat is called Ida.\n")
    today = datetime.now().astimezone().date()
    (tmp_path / "notes" / "memory" / f"{today}.md").write_bytes(OLD_LOG)
    with scripted_model(script) as server:
        yield Life(tmp_path, server)


def lived(life: Life) -> None:
    for number in range(TURNS):
        life.take(f"turn-{number}")
    life.end()
    # One more process, so that whatever the last one left undone is finished.
    life.take(f"turn-{TURNS}")
    life.end()


def check(life: Life) -> None:
    """What must hold whenever the process died."""
    entries = life.entries()
    asked = Counter(turn for said in life.said("user") for turn in turns_in(said))
    assert asked == {f"turn-{number}": 1 for number in range(TURNS + 1)}, "a turn was lost or doubled"
    answers = " ".join(life.said("assistant"))
    assert all(f"answer to turn-{number}" in answers for number in range(TURNS + 1))

    for earlier, later in zip([OLD_LOG, *life.logs], life.logs, strict=False):
        assert later.startswith(earlier), "the log did not only grow"
    assert (life.folder / "notes/MEMORY.md").read_text() == "# Memory\n\n- The boat is called Ida.\n"
    files = {path.name for path in (life.folder / "notes").rglob("*.md")}
    assert files == {"MEMORY.md", life.log.name}

    compactions = [entry for entry in entries if entry["type"] == "compaction"]
    assert len(compactions) >= 2
    cycle, flushed = 0, set()
    for entry in entries:
        if entry["type"] == "custom" and entry["customType"] == "memory_flush":
            flushed.add((entry["data"]["compactionCount"], entry["data"]["noteId"]))
        if entry["type"] == "compaction":
            assert any(number == cycle for number, _ in flushed), "compacted before what lasts was saved"
            cycle += 1
    cycles = {number for number, _ in flushed}
    assert len(flushed) == len(cycles), "one cycle has two notes"
    log = life.log.read_text()
    assert log.count("They chose larch.") == len(cycles)
    assert all(log.count(f"<!-- m:{note} -->") == 1 for _, note in flushed)
    registry = json.loads((life.folder / "home/agents/main/sessions/sessions.json").read_text())[
        "agent:main:main"
    ]
    assert registry["memoryFlushCompactionCount"] == max(cycles)
    assert registry["compactionCount"] == cycle


def test_a_life_without_accidents_is_what_the_others_are_compared_with(life):
    lived(life)

    check(life)
    assert life.deaths == 0
    kinds = Counter(asked.kind for asked in life.server.asked)
    assert kinds["flush"] == 2 * kinds["compaction"] >= 4


@pytest.mark.parametrize(("kind", "nth", "moment"), MOMENTS)
def test_a_kill_at_a_chosen_moment_of_a_request_loses_and_doubles_nothing(life, kind, nth, moment):
    seen: list[Asked] = []

    def strike(now: str, asked: Asked) -> None:
        if now == "asked" and asked.kind == kind:
            seen.append(asked)
        if life.deaths == 0 and now == moment and len(seen) == nth and seen[-1] is asked:
            assert life.process is not None
            life.kill()

    def on_disk(asked: Asked) -> None:
        """Whatever reaches the model is in the transcript already."""
        for turn in turns_in(asked.text) if asked.kind == "turn" else ():
            assert any(turn in said for said in life.said("user"))

    failures: list[AssertionError] = []

    def at(now: str, asked: Asked) -> None:
        try:
            on_disk(asked)
        except AssertionError as error:
            failures.append(error)
        strike(now, asked)

    life.server.at = at
    lived(life)

    assert life.deaths == 1
    assert failures == []
    check(life)


def _steps() -> list[int]:
    """Steps on the disk, over the whole life of the first process; in the full run every one of them."""
    return list(range(1, 211)) if FULL else [3, 27, 61]


@pytest.mark.parametrize("fatal", _steps())
def test_a_kill_at_any_step_on_the_disk_loses_and_doubles_nothing(life, fatal):
    life.start(fatal)
    lived(life)

    check(life)
    if life.deaths == 0:
        assert int((life.folder / "tally-1").read_text()) < fatal
