"""A working day of one memory: a chat, a host with hooks, an agent over MCP, the page, a watcher, back-ups, upkeep."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.simulation.life import WORDS
from tests.soak.samples import Notebook, size_of
from tests.support.mcp_process import COMMAND, McpProcess
from tests.support.page_server import PageServer
from tests.support.scripted_chat_model import KEY, Asked, Call, Say, ScriptedModel, scripted_model

NOTES = 120  # older ones are forgotten: what is there stays as much as it is
TALKS_KEPT = 4
TURNS_OF_A_TALK = 40


class Lines:
    """A program that answers each line of its input with one of its output."""

    def __init__(self, *words: str, env: dict[str, str] | None = None) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the program)
        self.process = subprocess.Popen(
            [COMMAND, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=os.environ | (env or {}),
        )

    def ask(self, line: str) -> dict[str, Any]:
        """Say a line, and hear the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        told = self.process.stdout.readline()
        if not told:
            self.errors.seek(0)
            raise AssertionError(f"it has ended: {self.errors.read().decode()[-1500:]}")
        answer: dict[str, Any] = json.loads(told)
        return answer

    def end(self) -> None:
        """Close its input, and wait."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class Day:
    """All programs at work on one memory. `step` lets one of them do something; `take` looks at them."""

    def __init__(self, folder: Path, seed: int, notes: int, stack: ExitStack) -> None:
        self.chance = random.Random(seed)
        self._notes = notes
        self.workspace, self.home = folder / "ws", folder / "home"
        self._backup = folder / "backup.zip"
        self._transcripts = folder / ".claude" / "projects" / "app"
        self._transcripts.mkdir(parents=True)
        self._run("init", "--workspace", str(self.workspace))
        (self.workspace / "memory" / "projects.md").write_text("# Projects\n\n- The first line.\n")
        self.counts: Counter[str] = Counter()
        self._words: list[str] = []  # one of each note that stands, the oldest first
        self._talks: list[str] = []
        self._number = 0
        place = ["--workspace", str(self.workspace), "--home", str(self.home)]
        self.model: ScriptedModel = stack.enter_context(scripted_model(self._answer))
        self.page: PageServer = stack.enter_context(PageServer(self.workspace, self.home))
        self.page.token = self._token()
        self.mcp: McpProcess = stack.enter_context(McpProcess(*place))
        self.mcp.begin()
        chat = [f"chat.baseUrl={self.model.openai_url}", "chat.model=larch-1", "chat.contextWindow=16000"]
        settings = [word for one in chat for word in ("--config", one)]
        self.chat = Lines("chat", "--json", *settings, *place, env={"PLAINMIND_CHAT_APIKEY": KEY})
        stack.callback(self.chat.end)
        self.hooks = Lines("hook", "--serve", *place)
        stack.callback(self.hooks.end)
        self.watcher = subprocess.Popen(
            [COMMAND, "watch", "--json", *place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        stack.callback(self._end_watcher)
        self._steps: list[tuple[int, Callable[[], None]]] = [
            (6, self._read_page),
            (5, self._ask_page),
            (4, self._edit_in_page),
            (3, self._save_in_editor),
            (6, self._talk),
            (5, self._hook),
            (5, self._ask_mcp),
            (4, self._remember_over_mcp),
            (4, self._remember_in_page),
            (1, self._tidy),
            (1, self._back_up),
        ]

    @property
    def processes(self) -> dict[str, int]:
        """Who is looked at."""
        return {
            "page": self.page.process.pid,
            "mcp": self.mcp.process.pid,
            "chat": self.chat.process.pid,
            "hooks": self.hooks.process.pid,
            "watch": self.watcher.pid,
        }

    def settle(self) -> None:
        """Fill the memory, and let everything happen twice: each program has loaded then what it needs."""
        for _ in range(self._notes):
            self._remember_in_page()
        for _, kind in self._steps * 2:
            self._perform(kind)

    def step(self) -> None:
        """Let one thing happen; what there is too much of goes."""
        weights = [weight for weight, _ in self._steps]
        self._perform(self.chance.choices([kind for _, kind in self._steps], weights)[0])

    def _perform(self, kind: Callable[[], None]) -> None:
        kind()
        self.counts[kind.__name__.strip("_").replace("_", " ")] += 1
        while len(self._words) > self._notes:
            self._forget(self._words.pop(0))
        self.model.asked.clear()

    def take(self, notebook: Notebook, at: float) -> None:
        """Write down what every program holds, and the sizes of index and journals."""
        for who, pid in self.processes.items():
            notebook.take_process(at, who, pid)
        home = str(self.home)
        text = size_of(str(self.workspace), (".md",)) + size_of(os.path.join(home, "agents"), (".jsonl",))
        notebook.take(at, "all", "index", size_of(os.path.join(home, "index")) / text)
        journals = size_of(os.path.join(home, "state"), (".jsonl",))
        notebook.take(at, "all", "journals", journals / max(1, self.counts.total()))

    # --- what happens ---

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [COMMAND, *words, "--home", str(self.home)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise AssertionError(f"{words}: {done.stderr[-1500:]}")
        return done.stdout

    def _here(self, *words: str) -> str:
        return self._run(*words, "--workspace", str(self.workspace))

    def _token(self) -> str:
        made = self._here("tokens", "add", "soak", "--rights", "read,write,forget,review", "--json")
        token: str = json.loads(made)["token"]
        return token

    def _text(self) -> str:
        return " ".join(self.chance.choice(WORDS) for _ in range(self.chance.choice((6, 12, 40))))

    def _word(self) -> str:
        self._number += 1
        return f"zq{self._number:06d}w"

    def _answer(self, asked: Asked) -> Say:
        if asked.kind != "turn":
            return Say("They spoke of a harbour." if asked.kind == "compaction" else "NO_REPLY")
        if self.chance.random() < 0.3 and asked.messages[-1]["role"] == "user":
            return Say("", [Call("memory_search", {"query": self._text()[:60]}, id="c1")])
        return Say(f"I see: {self._text()}")

    def _talk(self) -> None:
        answer = self.chat.ask(f"What of the {self._text()}?")
        assert answer["text"], answer

    def _hook(self) -> None:
        turn = self.counts["hook"]
        if turn % TURNS_OF_A_TALK == 0:
            self._talks.append(f"soak-{turn // TURNS_OF_A_TALK}")
        if len(self._talks) > TALKS_KEPT:
            name = self._talks.pop(0)
            rows = json.loads(self._here("sessions", "list", "--json"))["sessions"]
            for row in rows:
                if name in json.dumps(row):
                    self._here("sessions", "delete", row["key"], "--yes")
        event = {
            "id": turn,
            "hook_event_name": "UserPromptSubmit",
            "host": "opencode",
            "session_id": self._talks[-1],
            "prompt": self._text(),
        }
        assert self.hooks.ask(json.dumps(event))["id"] == turn
        path = self._transcripts / f"{self._talks[-1]}.jsonl"
        with path.open("a") as file:
            for number, role in enumerate(("user", "assistant")):
                said = {"role": role, "content": [{"type": "text", "text": self._text()}]}
                line = {
                    "type": role,
                    "uuid": f"u{turn}-{number}",
                    "parentUuid": None,
                    "sessionId": self._talks[-1],
                    "timestamp": f"2026-11-16T09:{turn // 60 % 60:02d}:{turn % 60:02d}.{number}00Z",
                    "message": said,
                }
                file.write(json.dumps(line) + "\n")
        event = {
            "id": -turn,
            "hook_event_name": "Stop",
            "session_id": self._talks[-1],
            "transcript_path": str(path),
        }
        assert self.hooks.ask(json.dumps(event))["id"] == -turn

    def _ask_mcp(self) -> None:
        answer = self.mcp.call(self._next(), "memory_search", query=self._text()[:80])
        is_late = "did not answer within" in json.dumps(
            answer
        )  # which a busy machine may cause, and it says so
        assert is_late or not answer.get("isError"), answer

    def _remember_over_mcp(self) -> None:
        word = self._word()
        answer = self.mcp.call(self._next(), "memory_append", text=f"{self._text()} {word}")
        assert not answer.get("isError"), answer
        self._words.append(word)

    def _next(self) -> str:
        self._number += 1
        return f"call {self._number}"

    def _read_page(self) -> None:
        for target in ("/v1/notes?limit=50&preview=true", "/v1/days", "/v1/history?limit=20", "/v1/status"):
            self.page.get(target)

    def _ask_page(self) -> None:
        self.page.post("/v1/search", {"query": self._text()[:80]})

    def _remember_in_page(self) -> None:
        word = self._word()
        self.page.post("/v1/notes", {"text": f"{self._text()} {word}", "durable": self.chance.random() < 0.2})
        self._words.append(word)

    def _edit_in_page(self) -> None:
        if not self._words:
            return
        at = self.chance.randrange(len(self._words))
        word, new = self._words[at], self._word()
        found = self.page.post("/v1/search", {"query": word, "sources": ["memory"]})["results"]
        path = next((hit["path"] for hit in found if word in hit["snippet"]), None)
        if path is not None:
            answer = self.page.ask("PATCH", f"/v1/notes/{path}", {"old": word, "new": new})
            assert answer.status == 200, answer.body
            self._words[at] = new

    def _save_in_editor(self) -> None:
        path = self.workspace / "memory" / "projects.md"
        lines = "".join(f"- {self._text()}\n" for _ in range(self.chance.randint(5, 30)))
        beside = path.with_name("projects.md~")
        beside.write_text(f"# Projects\n\n{lines}")
        beside.replace(path)

    def _tidy(self) -> None:
        proposals = json.loads(self._here("tidy", "--json"))["proposals"]
        if proposals and self.chance.random() < 0.5:
            self._here("tidy", self.chance.choice(("accept", "reject")), proposals[0]["id"], "--json")

    def _back_up(self) -> None:
        self._here("export", "--format", "zip", "--output", str(self._backup), "--force")

    def _forget(self, word: str) -> None:
        shown = self.page.ask("POST", "/v1/forget", {"what": word})
        if shown.status == 404:
            return  # upkeep has taken the line out
        self.page.post("/v1/forget", {"code": shown.json["code"]})
        self.counts["forget"] += 1

    def _end_watcher(self) -> None:
        self.watcher.terminate()
        self.watcher.wait(20)


@contextmanager
def day(folder: Path, seed: int, notes: int = NOTES) -> Iterator[Day]:
    """Start everything; end everything."""
    with ExitStack() as stack:
        yield Day(folder, seed, notes, stack)
