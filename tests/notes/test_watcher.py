"""What may have changed on disk: told by the queue of the system, or hinted at by a watcher."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.descriptors import open_in, watched

from plainmind.notes import watcher
from plainmind.notes.discovery import ExtraPath
from plainmind.notes.watcher import ChangeQueue, Hint, Inotify, is_local, open_inotify, watch
from plainmind.notes.workspace import Workspace


class Watcher:
    """Runs `watch` in a thread and lets a test wait for hints."""

    def __init__(self, paths, **pace):
        self.stop = threading.Event()
        self.hints: list[Hint] = []
        self._arrived = threading.Condition()
        settings = {"debounce_ms": 50, "rescan_s": 60.0, "poll_s": 0.2} | pace
        self._thread = threading.Thread(target=self._run, args=(paths, settings), name="watch under test")

    def _run(self, paths, settings):
        for hint in watch(paths, stop=self.stop, **settings):
            with self._arrived:
                self.hints.append(hint)
                self._arrived.notify_all()

    def wait(self, matches, *, seconds=60.0):
        """Wait for a new hint that matches, forget all hints up to it, and return it."""
        with self._arrived:
            arrived = self._arrived.wait_for(lambda: any(map(matches, self.hints)), seconds)
            assert arrived, f"no such hint among {self.hints}"
            index = next(i for i, hint in enumerate(self.hints) if matches(hint))
            hint = self.hints[index]
            del self.hints[: index + 1]
            return hint

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the watcher did not stop"


def began(hint):
    return hint.cause == "rescan"


def names(path):
    return lambda hint: str(path) in hint.paths


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def test_the_first_hint_comes_at_once(memory):
    with Watcher([str(memory)]) as watcher:
        assert watcher.wait(began) == Hint("rescan")


def test_a_new_a_changed_and_a_deleted_note_are_hinted(memory):
    note = memory / "a.md"
    with Watcher([str(memory)]) as watcher:
        watcher.wait(began)
        note.write_text("one")
        assert watcher.wait(names(note)).cause == "changed"
        note.write_text("two")
        watcher.wait(names(note))
        note.unlink()
        watcher.wait(names(note))


def test_the_curated_file_is_watched_through_saves_by_rename(tmp_path):
    workspace = Workspace(str(tmp_path))
    curated = tmp_path / "MEMORY.md"
    with Watcher(workspace.watched_paths()) as watcher:
        watcher.wait(began)
        for text in ("one", "two", "three"):
            (tmp_path / "scratch").write_text(text)
            os.replace(tmp_path / "scratch", curated)
            watcher.wait(names(curated))


def test_files_written_at_once_into_new_folders_are_not_missed(memory):
    with Watcher([str(memory)]) as watcher:
        watcher.wait(began)
        for number in range(100):
            folder = memory / f"new{number}" / "deep"
            folder.mkdir(parents=True)
            (folder / "a.md").write_text("x")
        # The look at the files after this hint sees all of them; sooner or later each is watched by itself.
        watcher.wait(began)
        watched = memory / "new99" / "deep" / "a.md"
        while not any(map(names(watched), watcher.hints)):
            watched.write_text("changed")
            time.sleep(0.1)


def test_other_files_give_no_hint(memory, tmp_path):
    with Watcher([str(memory), str(tmp_path / "MEMORY.md")]) as watcher:
        watcher.wait(began)
        (memory / ".a.md.123.tmp").write_text("x")
        (memory / ".draft.md").write_text("x")
        (memory / "data.json").write_text("x")
        (tmp_path / "README.md").write_text("x")
        (memory / "last.md").write_text("x")
        assert watcher.wait(lambda _: True) == Hint("changed", frozenset({str(memory / "last.md")}))


def test_a_burst_is_gathered_into_few_hints(memory):
    gathered = []
    with Watcher([str(memory)], debounce_ms=300) as watcher:
        watcher.wait(began)
        for number in range(50):
            (memory / f"{number}.md").write_text("x")
            time.sleep(0.005)
        while str(memory / "49.md") not in {path for hint in gathered for path in hint.paths}:
            gathered.append(watcher.wait(lambda hint: hint.cause == "changed"))

    assert len(gathered) <= 25  # each of them, on a machine that stands still in between
    assert len(frozenset().union(*(hint.paths for hint in gathered))) == 50


def test_a_burst_without_end_is_still_reported(memory):
    with Watcher([str(memory)], debounce_ms=200) as watcher:
        watcher.wait(began)
        number = 0
        while not watcher.hints:
            (memory / f"{number}.md").write_text("x")
            number += 1
            time.sleep(0.02)


def test_a_rescan_comes_even_when_nothing_happens(memory):
    started = time.monotonic()
    with Watcher([str(memory)], rescan_s=0.4) as watcher:
        for _ in range(3):
            watcher.wait(began)
        assert time.monotonic() - started > 0.7


def test_a_folder_may_vanish_and_come_back(memory, tmp_path):
    with Watcher([str(memory)]) as watcher:
        watcher.wait(began)
        shutil.rmtree(memory)
        assert "waiting for" in watcher.wait(lambda hint: hint.reason is not None).reason
        memory.mkdir()
        watcher.wait(lambda hint: began(hint) and hint.reason is None)
        (memory / "a.md").write_text("x")
        watcher.wait(names(memory / "a.md"))
        memory.rename(tmp_path / "aside")
        memory.mkdir()
        watcher.wait(began)
        (memory / "b.md").write_text("x")
        watcher.wait(names(memory / "b.md"))


def test_the_workspace_need_not_exist_at_the_start(tmp_path):
    workspace = Workspace(str(tmp_path / "later"))
    with Watcher(workspace.watched_paths()) as watcher:
        assert "waiting for" in watcher.wait(began).reason
        (tmp_path / "later" / "memory").mkdir(parents=True)
        watcher.wait(lambda hint: began(hint) and hint.reason is None)
        (tmp_path / "later" / "memory" / "a.md").write_text("x")
        watcher.wait(names(tmp_path / "later" / "memory" / "a.md"))


def test_links_and_hidden_folders_are_not_watched(memory, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (memory / ".git").mkdir()
    (memory / "link").symlink_to(elsewhere)
    (memory / "loop").symlink_to(memory)
    with Watcher([str(memory)]) as watcher:
        watcher.wait(began)
        (elsewhere / "a.md").write_text("x")
        (memory / ".git" / "b.md").write_text("x")
        (memory / "last.md").write_text("x")
        assert watcher.wait(lambda _: True).paths == {str(memory / "last.md")}


def test_stopping_is_prompt(memory):
    with Watcher([str(memory)], debounce_ms=600_000, poll_s=600.0, rescan_s=600.0) as watcher:
        watcher.wait(began)
        (memory / "a.md").write_text("x")
        watcher.stop.set()
        watcher._thread.join(30)
        assert not watcher._thread.is_alive()


def test_nothing_is_hinted_once_stopped(memory):
    stop = threading.Event()
    stop.set()

    assert list(watch([str(memory)], debounce_ms=50, stop=stop)) == []


WITHOUT_DESCRIPTORS = """
import os, resource, sys, threading
from plainmind.notes.watcher import watch
import watchfiles
used = max(map(int, os.listdir("/proc/self/fd")))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
spare = []
while True:
    try:
        spare.append(os.dup(0))
    except OSError:
        break
stop = threading.Event()
for number, hint in enumerate(watch([sys.argv[1]], debounce_ms=50, rescan_s=0.5, poll_s=0.1, stop=stop)):
    print(hint.cause, hint.reason, flush=True)
    if number == 2:
        for descriptor in spare:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    if hint.cause == "rescan":
        stop.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_without_descriptors_it_polls_aloud_and_watches_again_when_it_can(memory):
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 256
    lines = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(memory)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()

    assert len(lines) >= 4
    assert all(line.startswith("polling watching failed, looking every 0.1 s instead:") for line in lines[:3])
    assert "open files" in lines[0]
    assert lines[-1] == "rescan None"


def test_thousands_of_new_files_are_all_seen_long_before_the_next_rescan(memory):
    workspace = Workspace(str(memory.parent))

    def write():
        for number in range(4_000):
            if number % 100 == 0:
                (memory / f"{number // 100}").mkdir()
            Path(f"{memory}/{number // 100}/{number}.md").write_text("x")

    with Watcher(workspace.watched_paths(), debounce_ms=200, rescan_s=600.0) as watcher:
        writer = threading.Thread(target=write)
        writer.start()
        while len(workspace.discover().files) < 4_000:  # whoever looks after each hint
            watcher.wait(lambda _: True)
        writer.join()


@pytest.fixture
def places(tmp_path):
    notes, talk = tmp_path / "notes", tmp_path / "sessions"
    notes.mkdir()
    (talk / "groups").mkdir(parents=True)
    return notes, talk


def test_talk_is_told_of_after_a_longer_silence(places):
    notes, talk = places
    with Watcher([str(notes)], transcripts=str(talk), talk_debounce_ms=800) as watcher:
        watcher.wait(began)
        spoken_at = time.monotonic()
        (talk / "a.jsonl").write_text("{}\n")
        (talk / "sessions.json").write_text("{}")
        watcher.wait(names(talk / "a.jsonl"))
        assert time.monotonic() - spoken_at >= 0.7
        (talk / "groups" / "b.json5").write_text("{}\n")
        watcher.wait(names(talk / "groups" / "b.json5"))


def test_a_note_is_told_of_at_once_whoever_speaks(places):
    notes, talk = places
    with Watcher([str(notes)], transcripts=str(talk), talk_debounce_ms=600_000) as watcher:
        watcher.wait(began)
        (talk / "a.jsonl").write_text("{}\n{}\n")
        (notes / "b.md").write_text("words")
        watcher.wait(names(notes / "b.md"))


CHANGER = Path(__file__).parents[1] / "support" / "file_changer.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells at once")


class Changer:
    """Another process that changes files."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CHANGER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, request: str, path: str, text: str = "") -> None:
        self.process.stdin.write(f"{request}\t{path}\t{text}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture
def change(folder):
    changer = Changer(folder)
    yield changer
    changer.process.stdin.close()
    changer.process.stdout.close()
    assert changer.process.wait(60) == 0


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "place" / "ws"
    (folder / "memory" / "work").mkdir(parents=True)
    for path in ("MEMORY.md", "memory/a.md", "memory/work/b.md"):
        (folder / path).write_text(f"text of {path}\n")
    return folder


@pytest.fixture
def workspace(folder):
    workspace = Workspace(str(folder))
    workspace.discover()
    yield workspace
    workspace.close()


def test_the_first_look_watches_nothing(folder):
    workspace = Workspace(str(folder))
    before = watched()

    assert workspace.discover().moment is None
    assert watched() <= before
    assert workspace.describe() == {
        "watching": False, "folders": 0, "maxFolders": 4096, "reason": "not needed yet",
    }  # fmt: skip


def test_nothing_has_changed_when_nothing_happened(workspace):
    moment = workspace.discover().moment

    for _ in range(3):
        since = workspace.changed_since(moment)
        assert since is not None
        assert (since.moment, since.files) == (moment, frozenset())
    assert workspace.describe() == {"watching": True, "folders": 3, "maxFolders": 4096, "reason": None}


@pytest.mark.parametrize(
    ("request_", "path", "text"),
    [
        ("append", "MEMORY.md", "more"),
        ("append", "memory/work/b.md", "more"),
        ("replace", "memory/a.md", "new"),
        ("overwrite", "memory/a.md", "TEXT"),
        ("map_and_close", "memory/a.md", "TEXT"),
        ("touch", "memory/a.md", ""),
        ("chmod", "memory/a.md", "400"),
    ],
)
def test_a_file_that_another_process_has_changed_is_named(workspace, change, request_, path, text):
    moment = workspace.discover().moment
    change(request_, path, text)

    since = workspace.changed_since(moment)
    assert since is not None
    assert since.files == {path}
    assert workspace.changed_since(since.moment).files == frozenset()
    assert workspace.changed_since(moment).files == {path}


@pytest.mark.parametrize(
    ("request_", "path", "text"),
    [("create", "memory/c.md", "new"), ("delete", "memory/a.md", ""), ("rename", "memory/a.md", "z.md")],
)
def test_files_that_came_or_went_are_named_too(workspace, change, request_, path, text):
    moment = workspace.discover().moment
    change(request_, path, text)

    assert path in workspace.changed_since(moment).files


@pytest.mark.parametrize(
    ("request_", "path", "text"),
    [
        ("create", "memory/new/c.md", "in a new folder"),
        ("delete", "memory/work", ""),
        ("delete", "memory", ""),
        ("rename", "memory/work", "elsewhere"),
        ("rename", "memory", "old"),
        ("rename", ".", "../ws2"),
        ("rename", "..", "../place2"),
        ("chmod", "memory/work", "000"),
    ],
)
def test_what_happens_to_folders_calls_for_a_look_at_everything(workspace, folder, request_, path, text):
    moment = workspace.discover().moment
    target = folder / path
    if request_ == "create":
        target.parent.mkdir()
        target.write_text(text)
    elif request_ == "delete":
        subprocess.run(["rm", "-r", str(target)], check=True)
    elif request_ == "chmod":
        target.chmod(int(text, 8))
    else:
        (folder / path).resolve().rename((folder / path).resolve().parent / Path(text).name)

    assert workspace.changed_since(moment) is None
    assert workspace.changed_since(moment) is None


def test_a_look_after_a_change_is_trusted_again(workspace, folder, change):
    moment = workspace.discover().moment
    change("create", "memory/new/c.md", "text")
    assert workspace.changed_since(moment) is None

    moment = workspace.discover().moment
    assert workspace.changed_since(moment).files == frozenset()
    change("append", "memory/new/c.md", "more")
    assert workspace.changed_since(moment).files == {"memory/new/c.md"}


def test_what_happens_while_we_look_is_not_taken_as_seen(workspace, folder, monkeypatch):
    workspace.discover()
    scandir = os.scandir

    def changing(*arguments):
        listing = scandir(*arguments)
        (folder / "memory" / "work" / "b.md").write_text("written after the folder was opened")
        return listing

    monkeypatch.setattr(os, "scandir", changing)
    moment = workspace.discover().moment
    monkeypatch.undo()

    assert workspace.changed_since(moment).files == {"memory/work/b.md"}


def test_a_renamed_folder_gives_its_files_their_new_names(workspace, folder, change):
    workspace.discover()
    (folder / "memory" / "work").rename(folder / "memory" / "home")
    moment = workspace.discover().moment
    change("append", "memory/home/b.md", "more")

    assert workspace.changed_since(moment).files == {"memory/home/b.md"}


def test_other_files_are_not_our_business(workspace, change):
    moment = workspace.discover().moment
    change("create", "build.log", "text")
    change("create", "memory/.a.md.swp", "text")
    change("create", "memory/.hidden.md", "text")

    assert workspace.changed_since(moment).files == frozenset()


def test_a_memory_folder_that_appears_is_noticed(tmp_path):
    workspace = Workspace(str(tmp_path))
    workspace.discover()
    moment = workspace.discover().moment
    assert workspace.changed_since(moment).files == frozenset()
    (tmp_path / "memory").mkdir()

    assert workspace.changed_since(moment) is None
    workspace.close()


def test_extra_paths_are_watched_wherever_they_lie(folder, tmp_path):
    vault = tmp_path / "vault"
    (vault / "deep").mkdir(parents=True)
    (vault / "deep" / "n.md").write_text("text")
    (tmp_path / "single.md").write_text("text")
    (tmp_path / "link").symlink_to(vault)
    workspace = Workspace(
        str(folder),
        extra_paths=[ExtraPath(str(tmp_path / "link"), name="notes"), ExtraPath(str(tmp_path / "single.md"))],
    )
    workspace.discover()
    moment = workspace.discover().moment
    single = next(f.path for f in workspace.discover().files if f.path.endswith("single.md"))
    (vault / "deep" / "n.md").write_text("more")
    (tmp_path / "single.md").write_text("more")

    assert workspace.changed_since(moment).files == {"notes/deep/n.md", single}
    vault.rename(tmp_path / "vault2")
    assert workspace.changed_since(moment) is None
    workspace.close()


def test_a_file_that_two_places_list_calls_for_a_look_at_everything(folder):
    workspace = Workspace(
        str(folder),
        extra_paths=[ExtraPath("memory/work", pattern="*.md"), ExtraPath(str(folder.parent), "x")],
    )
    workspace.discover()
    moment = workspace.discover().moment
    (folder / "memory" / "work" / "b.md").write_text("more")

    since = workspace.changed_since(moment)
    assert since is None or since.files == {"memory/work/b.md"}
    workspace.close()


def test_a_place_that_cannot_be_seen_leaves_nothing_to_trust(folder, tmp_path):
    workspace = Workspace(str(folder), extra_paths=[ExtraPath(str(tmp_path / "not yet there"))])
    workspace.discover()

    assert workspace.discover().moment is None
    assert workspace.describe()["reason"] == "a folder cannot be looked at"
    workspace.close()


def test_after_ten_seconds_a_look_at_everything_is_due(folder):
    now = [100.0]
    opened = ChangeQueue(lambda: [str(folder)], clock=lambda: now[0])
    opened.begin()
    moment = opened.end(opened.begin(), complete=True)
    now[0] += 9.9
    assert opened.changed_since(moment).files == frozenset()
    now[0] += 0.2

    assert opened.changed_since(moment) is None
    opened.close()


def test_where_a_look_takes_long_the_next_is_due_later(folder):
    """With 100,000 notes a look takes seconds: whoever keeps the index fresh makes it, and no search waits for it."""
    now = [100.0]
    opened = ChangeQueue(lambda: [str(folder)], clock=lambda: now[0])
    opened.begin()
    for took, trusted in ((1.5, 90), (0.1, 10), (60.0, 300)):
        began, look = now[0], opened.begin()
        now[0] += took
        moment = opened.end(look, complete=True)
        now[0] = began + trusted - 0.1
        assert opened.changed_since(moment).files == frozenset()
        now[0] = began + trusted + 0.1
        assert opened.changed_since(moment) is None
    opened.close()


def test_a_queue_that_was_full_says_that_anything_may_have_happened(workspace, folder):
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("the queue of this machine is too long to fill")
    moment = workspace.discover().moment
    one, other = folder / "memory" / "a.md", folder / "memory" / "b.md"
    for _ in range(limit // 2 + 10):  # neighbours that are alike are joined, so no two are
        one.touch()
        other.touch()

    assert workspace.changed_since(moment) is None
    moment = workspace.discover().moment
    assert workspace.changed_since(moment).files == frozenset()


def test_when_the_system_has_no_more_watches_every_look_is_at_everything(folder):
    class Used(Inotify):
        def watch(self, folder):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real = open_inotify()
    used = Used(os.dup(real._descriptor), real._system)
    real.close()
    workspace = Workspace(str(folder))
    workspace._queues["changes"] = ChangeQueue(list, has_looked=True, open_queue=lambda: used)
    workspace.discover()

    assert workspace.discover().moment is None
    assert workspace.describe()["reason"] == "a folder cannot be watched: No space left on device"
    workspace.close()


def test_when_the_system_has_no_more_queues_every_look_is_at_everything(folder):
    workspace = Workspace(str(folder))
    workspace._queues["changes"] = ChangeQueue(list, has_looked=True, open_queue=lambda: None)
    workspace.discover()

    assert workspace.discover().moment is None
    assert workspace.changed_since(None) is None
    assert "no more" in workspace.describe()["reason"]


def test_very_many_folders_are_not_watched(folder, monkeypatch):
    monkeypatch.setattr(watcher, "MOST_FOLDERS", 2)
    workspace = Workspace(str(folder))
    workspace.discover()

    assert workspace.discover().moment is None
    assert workspace.describe()["reason"] == "more than 2 folders"
    workspace.close()


def test_folders_that_come_and_go_do_not_use_up_the_watches(folder, monkeypatch):
    monkeypatch.setattr(watcher, "MOST_FOLDERS", 6)
    workspace = Workspace(str(folder))
    for number in range(12):
        workspace.discover()
        (folder / "memory" / f"{number}").mkdir()
        assert workspace.discover().moment is not None or number == 0
        (folder / "memory" / f"{number}").rmdir()

    assert workspace._changes()._inotify.count <= 8
    workspace.close()


def test_only_file_systems_of_this_machine_are_trusted(folder):
    here, kernel = os.open(folder, os.O_RDONLY), os.open("/proc", os.O_RDONLY)

    assert is_local(here)
    assert not is_local(kernel)
    os.close(here)
    os.close(kernel)


def test_a_look_into_a_file_system_of_others_is_not_trusted(folder):
    opened = ChangeQueue(list)
    opened.begin()
    look = opened.begin()
    kernel = os.open("/proc", os.O_RDONLY)
    look.enter(kernel, "")
    look.enter(kernel, "")
    os.close(kernel)

    assert opened.end(look, complete=True) is None
    assert opened.describe()["reason"] == "a file system that other machines may write to"
    opened.close()


def test_a_closed_workspace_can_be_used_on(workspace):
    moment = workspace.discover().moment
    workspace.close()
    workspace.close()

    assert workspace.changed_since(moment) is None
    assert workspace.discover().moment is not None


def test_a_look_that_is_closed_meanwhile_proves_nothing(folder):
    opened = ChangeQueue(list)
    opened.begin()
    look = opened.begin()
    opened.close()
    here = os.open(folder, os.O_RDONLY)
    look.enter(here, "")
    os.close(here)

    assert opened.end(look, complete=True) is None


FORKING = """
import os, sys
from plainmind.notes.workspace import Workspace
from tests.support.descriptors import open_in, watched
workspace = Workspace(sys.argv[1])
workspace.discover()
moment = workspace.discover().moment
with open(sys.argv[1] + "/memory/a.md", "a") as file:
    file.write("more")
child = os.fork()
if not child:
    assert workspace.changed_since(moment) is None
    workspace.discover()
    again = workspace.discover().moment
    assert workspace.changed_since(again).files == frozenset()
    workspace.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert workspace.changed_since(moment).files == {"memory/a.md"}
"""


def test_a_fork_takes_no_events_from_its_parent(folder):
    subprocess.run([sys.executable, "-c", FORKING, str(folder)], check=True, timeout=60)


def test_descriptors_are_given_back_without_being_asked(folder):
    before = watched()
    for _ in range(4):
        workspace = Workspace(str(folder))
        workspace.discover()
        workspace.discover()
        del workspace

    assert watched() <= before
    assert not open_in(folder)
