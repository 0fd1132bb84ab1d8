"""Two processes make the same index as one, and nothing is lost or left behind when one of them dies."""

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from tests.index.conftest import make_desk
from tests.support.waiting import until

from plainmind.base.model import Document, EmbedderIdentity
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.embed.protocol import NoEmbedder
from plainmind.index import sync_process
from plainmind.index.chunks import Preparation
from plainmind.index.plan import ChunkingSettings
from plainmind.index.sync_process import SecondProcess, WorkerFailed, can_share

SOURCE = Path(sync_process.__file__).parents[2]
TEXT = "\n".join(
    f"## Part {number}\n\n- The gateway moved to Hetzner, see `db-{number}`. 网关搬到了赫茨纳 {number}。\n"
    for number in range(40)
)


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(sync_process, "usable_cores", lambda: 2)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    for number in range(24):
        path = tmp_path / "workspace" / "memory" / f"2026-02-{number + 1:02}.md"
        path.write_text(f"# Day {number}\n\n{TEXT.replace('Part', f'Part {number}.')}")
    return tmp_path / "workspace"


def sync(tmp_path, folder, monkeypatch, *, shared, embedder=None):
    monkeypatch.setattr(sync_process, "WORTH_IT_BYTES", 0 if shared else 10**12)
    monkeypatch.setattr(sync_process, "SHARED_CHARACTERS", 3_000)
    desk = make_desk(tmp_path, folder, embedder=embedder or BuiltinEmbedder())
    return desk.store, desk.indexer.sync()


@pytest.fixture
def given(monkeypatch):
    """How many batches went to the other process; it is always waited for, so that it gets some."""
    count = []
    has_room, give = SecondProcess.has_room, SecondProcess.give

    def waiting(self):
        until(lambda: has_room.fget(self) or self.is_ready)
        return has_room.fget(self)

    def counting(self, documents):
        count.append(len(documents))
        give(self, documents)

    monkeypatch.setattr(SecondProcess, "has_room", property(waiting))
    monkeypatch.setattr(SecondProcess, "give", counting)
    return count


def wait_for(other: SecondProcess) -> None:
    while not other.has_room:
        time.sleep(0.01)


def test_two_processes_make_the_same_index_as_one(tmp_path, folder, monkeypatch, two_cores, given):
    alone, _ = sync(tmp_path, folder, monkeypatch, shared=False)
    assert not given
    together, report = sync(tmp_path, folder, monkeypatch, shared=True)

    assert len(given) > 2
    assert report.degraded == ()
    assert report.indexed == tuple(f"memory/2026-02-{number + 1:02}.md" for number in range(24))
    assert together.digest() == alone.digest()
    with alone.reading() as one, together.reading() as other:
        for path in report.indexed:
            assert other.chunks_between("memory", path, 1, 10**6) == one.chunks_between(
                "memory", path, 1, 10**6
            )


def test_without_vectors_two_processes_work_too(tmp_path, folder, monkeypatch, two_cores, given):
    alone, _ = sync(tmp_path, folder, monkeypatch, shared=False, embedder=NoEmbedder())
    together, _ = sync(tmp_path, folder, monkeypatch, shared=True, embedder=NoEmbedder())

    assert given
    assert together.digest() == alone.digest()


def test_when_the_other_process_is_killed_everything_is_indexed_all_the_same(
    tmp_path, folder, monkeypatch, two_cores, given
):
    alone, _ = sync(tmp_path, folder, monkeypatch, shared=False)
    counting = SecondProcess.give

    def killing(self, documents):
        counting(self, documents)
        if len(given) == 2:
            self._process.kill()

    monkeypatch.setattr(SecondProcess, "give", killing)
    together, report = sync(tmp_path, folder, monkeypatch, shared=True)

    assert together.digest() == alone.digest()
    assert len(report.degraded) == 1
    assert "the second process ended unexpectedly" in report.degraded[0]


def test_when_no_process_can_be_started_everything_is_indexed_all_the_same(
    tmp_path, folder, monkeypatch, two_cores
):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python-that-is-not-there"))
    _, report = sync(tmp_path, folder, monkeypatch, shared=True)

    assert len(report.indexed) == 24
    assert "could not be started" in report.degraded[0]


def test_a_python_that_has_another_model_is_not_used(tmp_path, folder, monkeypatch, two_cores, given):
    monkeypatch.setattr(sync_process, "_BOOT", "import sys; sys.stdout.write('hello')")
    _, report = sync(tmp_path, folder, monkeypatch, shared=True)

    assert not given
    assert len(report.indexed) == 24
    assert len(report.degraded) == 1


def test_an_answer_that_was_not_agreed_on_is_refused():
    other = SecondProcess(ChunkingSettings(), EmbedderIdentity("none", "somebody else's", dims=3))
    try:
        with pytest.raises(WorkerFailed, match="another model"):
            wait_for(other)
    finally:
        other.close()


def test_what_comes_back_is_what_was_prepared_here():
    documents = [
        Document("memory/2026-02-10.md", "memory", TEXT, "2026-02-10"),
        Document("sessions/s.jsonl", "sessions", "User: hi\nAssistant: ho", None, (2, 5)),
        Document(
            "sessions/t.jsonl", "sessions", "User: hi\nAssistant: ho", None, (2, 5), ("2026-02-10", None)
        ),
        Document("memory/empty.md", "memory", ""),
        Document("memory/odd.md", "memory", "half a character \ud800 and a \u2028 line"),
    ]
    here = Preparation(ChunkingSettings(), BuiltinEmbedder())
    with SecondProcess(here.chunking, here.embedder.identity) as other:
        wait_for(other)
        other.give(documents)
        assert other.take(documents, wait=True) == here.prepare(documents)


def test_closing_leaves_no_process_no_thread_and_no_descriptor():
    import threading

    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    running = set(threading.enumerate())
    other = SecondProcess(ChunkingSettings(), NoEmbedder.identity)
    other.give([Document("a.md", "memory", TEXT)])
    other.close()

    assert other._process.returncode is not None
    assert set(threading.enumerate()) <= running
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("provider", "executable", "cores", "shared"),
    [
        ("builtin", "/usr/bin/python3.11", 2, True),
        ("none", "/usr/bin/python3", 2, True),
        ("openai", "/usr/bin/python3", 2, False),
        ("builtin", "/usr/bin/python3", 1, False),
        ("builtin", "/usr/bin/uwsgi", 2, False),
        ("builtin", "", 2, False),
        ("builtin", None, 2, False),
    ],
)
def test_work_is_shared_only_where_that_can_be_done(monkeypatch, provider, executable, cores, shared):
    monkeypatch.setattr(sync_process, "usable_cores", lambda: cores)
    monkeypatch.setattr(sys, "executable", executable)

    assert can_share(EmbedderIdentity(provider, "m", dims=3)) is shared


def test_a_frozen_program_does_not_start_itself_again(monkeypatch, two_cores):
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert not can_share(EmbedderIdentity("builtin", "m"))


SCRIPT = """
print("main runs", flush=True)
from plainmind.index import sync_process
sync_process.usable_cores = lambda: 2
sync_process.WORTH_IT_BYTES = 0
from plainmind import Memory
from plainmind.index.drivers.memory import MemoryStore
with Memory({folder!r}, home={home!r}, config={{"provider": {provider!r}}}) as memory:
    vars(memory.index)["store"] = MemoryStore()
    report = memory.sync()
    print(len(report.indexed), report.degraded)
"""


def test_a_program_without_a_main_guard_runs_once(tmp_path, folder):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(folder), home=str(tmp_path / "home"), provider="builtin"))
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout == "main runs\n24 ()\n"


def test_a_zipped_program_can_share_its_work(tmp_path, folder):
    archive = tmp_path / "program.pyz"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in (SOURCE / "plainmind").rglob("*.py"):
            zipped.write(path, path.relative_to(SOURCE))
        main = SCRIPT.format(folder=str(folder), home=str(tmp_path / "home"), provider="none")
        zipped.writestr("__main__.py", main)
    done = subprocess.run([sys.executable, archive], check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout == "main runs\n24 ()\n"


LIVING = """
import os, sys, time
from plainmind.embed.protocol import NoEmbedder
from plainmind.index.plan import ChunkingSettings
from plainmind.index.sync_process import SecondProcess
other = SecondProcess(ChunkingSettings(), NoEmbedder.identity)
while not other.has_room:
    time.sleep(0.01)
if sys.argv[1] == "forked" and not os.fork():
    time.sleep(60)
print(other._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("kind", ["plain", "forked"])
def test_killing_a_program_leaves_no_second_process(kind):
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", LIVING, kind],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        worker = int(program.stdout.readline())
        assert is_running(worker)
        program.kill()
        program.wait()
        until(lambda: not is_running(worker))
    finally:
        program.stdout.close()
        if kind == "forked":
            os.killpg(program.pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
