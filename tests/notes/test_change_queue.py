import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plainmind.notes import change_queue
from plainmind.notes.change_queue import ChangeQueue, Inotify, is_local, open_inotify
from plainmind.notes.discovery import ExtraPath
from plainmind.notes.workspace import Workspace

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
    before = set(os.listdir("/proc/self/fd"))

    assert workspace.discover().moment is None
    assert set(os.listdir("/proc/self/fd")) == before
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
    monkeypatch.setattr(change_queue, "MOST_FOLDERS", 2)
    workspace = Workspace(str(folder))
    workspace.discover()

    assert workspace.discover().moment is None
    assert workspace.describe()["reason"] == "more than 2 folders"
    workspace.close()


def test_folders_that_come_and_go_do_not_use_up_the_watches(folder, monkeypatch):
    monkeypatch.setattr(change_queue, "MOST_FOLDERS", 6)
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
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(4):
        workspace = Workspace(str(folder))
        workspace.discover()
        workspace.discover()
        del workspace

    assert len(os.listdir("/proc/self/fd")) == before
