import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plainmind.notes.watcher import Hint, watch
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
