import contextlib
import hashlib
import os
import subprocess
import sys
import threading
import unicodedata
from datetime import date
from pathlib import Path

import pytest
from tests.support.descriptors import open_in, watched

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError, WorkspaceError
from plainmind.base.model import FileState
from plainmind.notes.discovery import MAX_DEPTH, Discovery, ExtraPath
from plainmind.notes.workspace import LineDays, Workspace, nearest


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    return tmp_path / "ws"


def note(path: Path, text: str = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def paths(discovery: Discovery) -> list[str]:
    return [found.path for found in discovery.files]


def reasons(discovery: Discovery) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in discovery.skipped}


def test_curated_memory_daily_logs_and_topics_are_found_in_a_fixed_order(folder):
    for path in ("memory/b.md", "memory/2026-02-10.md", "memory/work/x.md", "MEMORY.md", "memory/a.MD"):
        note(folder / path)
    for path in ("README.md", "memory/a.txt", "memory/x.mdx", "memory/md", "notes/x.md", "Memory.md"):
        note(folder / path)

    discovery = Workspace(str(folder)).discover()

    assert paths(discovery) == [
        "MEMORY.md",
        "memory/2026-02-10.md",
        "memory/a.MD",
        "memory/b.md",
        "memory/work/x.md",
    ]
    assert discovery.skipped == ()
    assert not discovery.root_missing


def test_a_found_file_says_how_it_looks(folder):
    path = note(folder / "memory" / "a.md")
    status = path.stat()

    (found,) = Workspace(str(folder)).discover().files

    assert found.real == str(path)
    assert (found.size, found.mtime_ns, found.inode, found.ctime_ns) == (
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        status.st_ctime_ns,
    )


def test_lower_case_memory_is_used_when_there_is_no_other(folder):
    note(folder / "memory.md")

    assert paths(Workspace(str(folder)).discover()) == ["memory.md"]


def test_lower_case_memory_beside_the_other_is_left_out_aloud(folder):
    note(folder / "memory.md", "old")
    note(folder / "MEMORY.md", "new")
    if len(os.listdir(folder)) < 3:
        pytest.skip("case does not matter on this file system")
    workspace = Workspace(str(folder))

    discovery = workspace.discover()

    assert paths(discovery) == ["MEMORY.md"]
    assert reasons(discovery) == {"memory.md": "`MEMORY.md` is used instead"}
    with pytest.raises(PathNotAllowed, match=r"`MEMORY\.md` is used instead"):
        workspace.read("memory.md")


def test_a_link_called_memory_does_not_hide_the_file_it_leads_to(folder):
    note(folder / "memory.md")
    (folder / "MEMORY.md").symlink_to("memory.md")

    discovery = Workspace(str(folder)).discover()

    assert paths(discovery) == ["memory.md"]
    assert reasons(discovery) == {"MEMORY.md": "a symbolic link, not followed"}


def test_what_is_left_out_is_named_with_its_reason(folder, tmp_path):
    memory = folder / "memory"
    note(memory / "kept.md")
    note(memory / ".git" / "x.md")
    note(memory / ".draft.md")
    note(memory / ".DS_Store")
    note(memory / "log.sync-conflict-20260210-120000-ABCDEF.md")
    note(memory / "line\nbreak.md")
    note(memory / "back\\slash.md")
    note(memory / "bell\x07" / "x.md")
    note(memory / "big.md", "x" * 1001)
    os.mkfifo(memory / "pipe.md")
    os.link(note(tmp_path / "elsewhere.md"), memory / "hard.md")
    (memory / "soft.md").symlink_to("kept.md")
    (memory / "soft").symlink_to(tmp_path)
    Path(os.fsdecode(os.fsencode(str(memory)) + b"/latin\xe9.md")).write_text("x")

    discovery = Workspace(str(folder), max_file_bytes=1000).discover()

    assert paths(discovery) == ["memory/kept.md"]
    assert reasons(discovery) == {
        "memory/.git": "hidden",
        "memory/.draft.md": "hidden",
        "memory/log.sync-conflict-20260210-120000-ABCDEF.md": "a copy left by a sync conflict",
        "memory/line\\nbreak.md": "the name cannot be cited: it contains a control character",
        "memory/back\\slash.md": "the name cannot be cited: it contains a backslash",
        "memory/bell\\x07": "the name cannot be cited: it contains a control character",
        "memory/latin\\udce9.md": "the name cannot be cited: it is not valid UTF-8",
        "memory/big.md": "1,001 bytes, over the limit of 1,000 bytes",
        "memory/pipe.md": "not a regular file",
        "memory/hard.md": "a hard link: the same bytes have another name",
        "memory/soft.md": "a symbolic link, not followed",
        "memory/soft": "a symbolic link, not followed",
    }
    assert discovery.unseen == ()


def bytes_read() -> int:
    """By this process, from wherever."""
    with open("/proc/self/io", encoding="ascii") as counters:
        return int(next(line for line in counters if line.startswith("rchar")).split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes in /proc")
def test_huge_files_are_left_out_without_being_read(folder):
    for name, size in (("one_line.md", 200_000_000), ("sparse.md", 1_000_000_000)):
        with open(folder / "memory" / name, "wb") as file:
            file.truncate(size)
    workspace = Workspace(str(folder))

    before = bytes_read()
    discovery = workspace.discover()
    with pytest.raises(PathNotAllowed, match=r"1\.0 GB, over the limit of 16\.0 MB"):
        workspace.read("memory/sparse.md")
    read = bytes_read() - before

    assert reasons(discovery) == {
        "memory/one_line.md": "200.0 MB, over the limit of 16.0 MB",
        "memory/sparse.md": "1.0 GB, over the limit of 16.0 MB",
    }
    assert read < 1_000_000


def test_a_memory_folder_that_is_a_link_is_not_followed(tmp_path):
    note(tmp_path / "elsewhere" / "x.md")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "memory").symlink_to(tmp_path / "elsewhere")

    discovery = Workspace(str(tmp_path / "ws")).discover()

    assert paths(discovery) == []
    assert reasons(discovery) == {"memory": "a symbolic link, not followed"}


def test_a_memory_that_is_a_file_is_left_out(tmp_path):
    note(tmp_path / "memory")

    assert reasons(Workspace(str(tmp_path)).discover()) == {"memory": "not a `.md` file"}


def test_a_workspace_may_itself_be_a_link(folder, tmp_path):
    note(folder / "memory" / "a.md")
    (tmp_path / "link").symlink_to(folder)
    workspace = Workspace(str(tmp_path / "link"))

    assert workspace.path == str(tmp_path / "link")
    assert paths(workspace.discover()) == ["memory/a.md"]
    assert workspace.read("memory/a.md")[0].text == "text\n"


def test_a_loop_of_links_ends(folder):
    (folder / "memory" / "again").symlink_to(folder / "memory")

    assert reasons(Workspace(str(folder)).discover()) == {"memory/again": "a symbolic link, not followed"}


def test_very_deep_folders_are_left_out_aloud(folder):
    deepest = folder / "memory" / "/".join(["d"] * (MAX_DEPTH - 1))
    note(deepest / "kept.md")
    note(deepest / "d" / "lost.md")

    discovery = Workspace(str(folder)).discover()

    assert [path.rpartition("/")[2] for path in paths(discovery)] == ["kept.md"]
    assert list(reasons(discovery).values()) == ["more than 64 folders deep"]


def test_names_that_differ_only_by_unicode_form_are_two_files_always(folder):
    names = [unicodedata.normalize(form, "memory/café.md") for form in ("NFC", "NFD")]
    for name in names:
        note(folder / name, f"this one is {name.encode()!r}")
    if len(os.listdir(folder / "memory")) == 1:
        pytest.skip("this file system has one name for both")
    workspace = Workspace(str(folder))

    assert sorted(paths(workspace.discover())) == sorted(names)
    assert [workspace.read(name)[0].text for name in names] == [f"this one is {n.encode()!r}" for n in names]
    (folder / names[0]).unlink()
    with pytest.raises(NotFound):
        workspace.read(names[0])


def test_names_that_differ_only_by_case_are_two_files(folder):
    note(folder / "memory" / "A.md", "upper")
    note(folder / "memory" / "a.md", "lower")
    workspace = Workspace(str(folder))

    assert paths(workspace.discover()) == ["memory/A.md", "memory/a.md"]
    assert workspace.read("memory/A.md")[0].text == "upper"


def test_a_missing_workspace_is_told_apart_from_an_empty_one(tmp_path):
    (tmp_path / "empty").mkdir()

    assert Workspace(str(tmp_path / "none")).discover().root_missing
    assert not Workspace(str(tmp_path / "empty")).discover().root_missing
    assert Workspace(str(tmp_path / "none")).discover().may_hide("memory/a.md")
    assert not Workspace(str(tmp_path / "empty")).discover().may_hide("memory/a.md")


def test_a_workspace_that_is_a_file_counts_as_missing_with_the_reason(tmp_path):
    discovery = Workspace(str(note(tmp_path / "file"))).discover()

    assert discovery.root_missing
    assert reasons(discovery) == {".": "Not a directory"}


def test_a_missing_workspace_keeps_what_lies_elsewhere(tmp_path):
    note(tmp_path / "vault" / "a.md")
    workspace = Workspace(
        str(tmp_path / "none"), extra_paths=[ExtraPath(str(tmp_path / "vault")), ExtraPath("docs")]
    )

    discovery = workspace.discover()

    assert discovery.root_missing
    assert paths(discovery) == ["vault/a.md"]
    with pytest.raises(WorkspaceError, match="cannot be read: it does not exist"):
        workspace.read("memory/a.md")


def test_a_folder_that_cannot_be_opened_hides_only_what_is_in_it(folder, monkeypatch):
    note(folder / "memory" / "closed" / "a.md")
    note(folder / "memory" / "open" / "b.md")
    really_open = os.open

    def open_unless_closed(path, flags, mode=0o777, *, dir_fd=None):
        if path == "closed":
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_unless_closed)  # as root, nothing is ever closed
    workspace = Workspace(str(folder))
    discovery = workspace.discover()

    assert paths(discovery) == ["memory/open/b.md"]
    assert reasons(discovery) == {"memory/closed": "Permission denied"}
    assert discovery.may_hide("memory/closed/a.md")
    assert not discovery.may_hide("memory/closed2/a.md")
    with pytest.raises(WorkspaceError, match="Permission denied"):
        workspace.read("memory/closed/a.md")


def test_a_failing_disk_hides_what_it_held_and_nothing_is_taken_as_deleted(folder, monkeypatch):
    note(folder / "memory" / "a.md")
    note(folder / "MEMORY.md")

    def failing(*_, **__):
        raise OSError(5, "Input/output error")

    workspace = Workspace(str(folder))
    monkeypatch.setattr(os, "scandir", failing)
    listing_failed = workspace.discover()
    monkeypatch.setattr(os, "stat", failing)
    status_failed = workspace.discover()

    assert paths(listing_failed) == ["MEMORY.md"]
    assert listing_failed.may_hide("memory/a.md")
    assert not listing_failed.may_hide("MEMORY.md")
    assert status_failed.may_hide("MEMORY.md")
    assert reasons(status_failed)["MEMORY.md"] == "Input/output error"


def test_a_file_that_vanishes_while_we_look_is_simply_not_there(folder, monkeypatch):
    note(folder / "memory" / "a.md")
    note(folder / "memory" / "sub" / "b.md")
    note(folder / "memory" / "z.md")
    really_open = os.open

    def open_and_tidy(path, flags, mode=0o777, *, dir_fd=None):
        if path == "sub":  # between the listing of memory/ and the look at z.md
            (folder / "memory" / "z.md").unlink()
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_and_tidy)
    discovery = Workspace(str(folder)).discover()

    assert paths(discovery) == ["memory/a.md", "memory/sub/b.md"]
    assert (discovery.skipped, discovery.unseen) == ((), ())


def test_a_folder_swapped_for_a_link_after_it_was_listed_is_not_entered(folder, tmp_path, monkeypatch):
    note(folder / "memory" / "sub" / "b.md")
    note(tmp_path / "outside" / "secret.md")
    really_open = os.open

    def swap_and_open(path, flags, mode=0o777, *, dir_fd=None):
        if path == "sub":
            os.rename(folder / "memory" / "sub", tmp_path / "aside")
            os.symlink(tmp_path / "outside", folder / "memory" / "sub")
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_and_open)
    discovery = Workspace(str(folder)).discover()

    assert paths(discovery) == []
    assert reasons(discovery) == {"memory/sub": "a symbolic link, not followed"}


def test_a_sweep_loads_nothing_heavy(folder):
    note(folder / "memory" / "a.md")
    program = (
        "import sys; from plainmind.notes.workspace import Workspace; "
        "assert len(Workspace(sys.argv[1]).discover().files) == 1; "
        "print(sorted({'ctypes', 'difflib', 'watchfiles', 'numpy', 'glob'} & sys.modules.keys()))"
    )
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    run = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=unmeasured,
    )

    assert run.stdout == "[]\n"


def test_extra_paths_inside_the_workspace_are_cited_as_they_are(folder):
    note(folder / "docs" / "guide" / "a.md")
    note(folder / "TODO.md")
    note(folder / "other.md")
    extra = [ExtraPath("docs"), ExtraPath(str(folder / "TODO.md"))]

    assert paths(Workspace(str(folder), extra_paths=extra).discover()) == ["docs/guide/a.md", "TODO.md"]


def test_extra_paths_outside_are_cited_by_a_name(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    note(tmp_path / "home" / "vault" / "sub" / "a.md")
    note(tmp_path / "sibling" / "b.md")
    note(tmp_path / "work" / "todo.md")
    note(tmp_path / "deep" / "x" / "c.md")
    extra = [
        ExtraPath("~/vault"),
        ExtraPath("../sibling"),
        ExtraPath(str(tmp_path / "work" / "todo.md")),
        ExtraPath(str(tmp_path / "deep" / "x"), name="team/notes"),
    ]

    workspace = Workspace(str(folder), extra_paths=extra)

    assert paths(workspace.discover()) == [
        "vault/sub/a.md",
        "sibling/b.md",
        "work/todo.md",
        "team-notes/c.md",
    ]
    for path in paths(workspace.discover()):
        assert workspace.read(path)[0].path == path


def test_names_of_extra_paths_never_collide(folder, tmp_path):
    note(folder / "docs" / "a.md")
    for place in ("one/docs", "two/docs", "three/memory", "four/Sessions", "five/.hidden"):
        note(tmp_path / place / "a.md", place)
    places = ["one/docs", "two/docs", "three/memory", "four/Sessions", "five/.hidden"]
    extra = [ExtraPath("docs"), *(ExtraPath(str(tmp_path / place)) for place in places)]

    workspace = Workspace(str(folder), extra_paths=extra)

    assert paths(workspace.discover()) == [
        "docs/a.md",
        "docs-2/a.md",
        "docs-3/a.md",
        "memory-2/a.md",
        "Sessions-2/a.md",
        "hidden/a.md",
    ]
    assert workspace.read("docs-3/a.md")[0].text == "two/docs"


def test_two_files_with_one_cited_path_are_reported_and_the_first_stays(folder, tmp_path):
    note(folder / "docs" / "a.md", "mine")
    note(tmp_path / "docs" / "a.md", "other")
    extra = [ExtraPath("."), ExtraPath(str(tmp_path / "docs"))]
    workspace = Workspace(str(folder), extra_paths=extra)

    discovery = workspace.discover()

    assert paths(discovery) == ["docs/a.md"]
    assert "give that extra path a `name`" in reasons(discovery)["docs/a.md"]
    assert workspace.read("docs/a.md")[0].text == "mine"


def test_a_pattern_chooses_the_files_of_a_folder(folder, tmp_path):
    for path in ("a.md", "x/a.md", "x/b.md", "y.txt"):
        note(tmp_path / "vault" / path)
        note(folder / "docs" / path)
    extra = [ExtraPath(str(tmp_path / "vault"), pattern="*.md"), ExtraPath("docs", pattern="x/**/a*.md")]
    workspace = Workspace(str(folder), extra_paths=extra)

    assert paths(workspace.discover()) == ["vault/a.md", "docs/x/a.md"]
    with pytest.raises(NotFound):
        workspace.read("vault/x/a.md")


def test_overlapping_paths_give_each_file_once(folder, tmp_path):
    note(folder / "memory" / "a.md")
    note(folder / "MEMORY.md")
    (tmp_path / "link").symlink_to(folder / "memory")
    extra = [ExtraPath("memory"), ExtraPath("."), ExtraPath(str(folder)), ExtraPath(str(tmp_path / "link"))]

    discovery = Workspace(str(folder), extra_paths=extra).discover()

    assert paths(discovery) == ["MEMORY.md", "memory/a.md"]
    assert discovery.skipped == ()


def test_an_extra_path_outside_may_be_a_link_that_the_operator_chose(folder, tmp_path):
    note(tmp_path / "real" / "a.md")
    note(tmp_path / "real" / "todo-v2.md")
    (tmp_path / "vault").symlink_to("real")
    (tmp_path / "todo.md").symlink_to("real/todo-v2.md")
    extra = [ExtraPath(str(tmp_path / "todo.md"), name="lists"), ExtraPath(str(tmp_path / "vault"))]

    workspace = Workspace(str(folder), extra_paths=extra)

    assert paths(workspace.discover()) == ["lists/todo.md", "vault/a.md"]
    assert workspace.read("lists/todo.md")[0].text == "text\n"


def test_an_extra_path_inside_the_workspace_may_not_be_a_link(folder, tmp_path):
    note(tmp_path / "real" / "a.md")
    (folder / "vault").symlink_to(tmp_path / "real")
    workspace = Workspace(str(folder), extra_paths=[ExtraPath("vault")])

    assert reasons(workspace.discover()) == {"vault": "a symbolic link, not followed"}
    with pytest.raises(PathNotAllowed, match="symbolic link"):
        workspace.read("vault/a.md")


def test_a_missing_extra_path_hides_what_is_known_of_it(folder, tmp_path):
    extra = [ExtraPath(str(tmp_path / "unmounted")), ExtraPath("docs"), ExtraPath("bad\\name")]
    discovery = Workspace(str(folder), extra_paths=extra).discover()

    assert reasons(discovery)["unmounted"] == "does not exist"
    assert reasons(discovery)["docs"] == "does not exist"
    assert "backslash" in reasons(discovery)["bad\\name"]
    assert discovery.may_hide("unmounted/a.md")
    assert not discovery.may_hide("memory/a.md")


def test_an_extra_file_must_be_markdown(folder, tmp_path):
    note(tmp_path / "data.csv")

    discovery = Workspace(str(folder), extra_paths=[ExtraPath(str(tmp_path / "data.csv"))]).discover()

    assert reasons(discovery) == {"data.csv": "not a `.md` file"}


def test_reading_gives_the_text_its_day_and_the_hash_of_the_bytes(folder):
    raw = b"\xef\xbb\xbfone\r\ntwo\xff\r\n"
    (folder / "memory" / "2026-02-10-x.md").write_bytes(raw)
    workspace = Workspace(str(folder))
    (found,) = workspace.discover().files

    document, state = workspace.read(found)

    assert (document.path, document.source, document.day) == (
        "memory/2026-02-10-x.md",
        "memory",
        "2026-02-10",
    )
    assert document.text == "one\ntwo\ufffd\n"
    assert document.line_map is None
    assert state == FileState(
        found.path, "memory", hashlib.sha256(raw).hexdigest(), len(raw), found.mtime_ns, found.inode
    )


def test_a_file_that_vanished_after_it_was_found_is_not_found(folder):
    path = note(folder / "memory" / "a.md")
    workspace = Workspace(str(folder))
    (found,) = workspace.discover().files
    path.unlink()

    with pytest.raises(NotFound):
        workspace.read(found)


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("README.md", PathNotAllowed, "not part of the memory"),
        ("does/not/exist.md", PathNotAllowed, "not part of the memory"),
        ("memory/a.txt", PathNotAllowed, "only `.md` files"),
        ("memory", PathNotAllowed, "only `.md` files"),
        ("memory/none.md", NotFound, "not in the memory"),
        ("MEMORY.md", NotFound, "not in the memory"),
        ("memory/.git/a.md", PathNotAllowed, "`memory/.git/a.md` in `memory/.git` is not read: hidden"),
        ("memory/a.md/b.md", NotFound, "not in the memory"),
        ("memory/../README.md", PathNotAllowed, "part `..`"),
        ("", PathNotAllowed, "empty"),
    ],
)
def test_only_what_discovery_lists_is_located(folder, path, kind, words):
    for name in ("README.md", "memory/a.md", "memory/a.txt", "memory/.git/a.md"):
        note(folder / name)

    with pytest.raises(kind, match=words) as caught:
        Workspace(str(folder)).locate(path)
    assert caught.value.hint


def test_locating_agrees_with_discovery(folder, tmp_path):
    for name in ("README.md", "memory/a.md", "memory/x/b.md", "memory/.h/c.md", "docs/d.md", "docs/e.txt"):
        note(folder / name)
        note(tmp_path / "vault" / name)
    (folder / "memory" / "link.md").symlink_to("a.md")
    extra = [ExtraPath("docs"), ExtraPath(str(tmp_path / "vault"), pattern="**/[a-c].md")]
    workspace = Workspace(str(folder), extra_paths=extra)
    candidates = {
        prefix + os.path.relpath(os.path.join(top, name), start)
        for prefix, start in (("", folder), ("vault/", tmp_path / "vault"))
        for top, _, names in os.walk(start)
        for name in names
    }
    located = set()
    for path in candidates:
        with contextlib.suppress(PlainmindError):
            located.add(workspace.locate(path).path)

    assert len(candidates) == 13
    assert located == set(paths(workspace.discover()))


def test_a_leading_dot_slash_is_forgiven(folder):
    note(folder / "memory" / "a.md")

    assert Workspace(str(folder)).locate("./memory/a.md").path == "memory/a.md"


def test_an_absolute_path_is_refused_with_the_one_to_use(folder):
    note(folder / "memory" / "a.md")

    with pytest.raises(PathNotAllowed, match="absolute") as caught:
        Workspace(str(folder)).locate(str(folder / "memory" / "a.md"))
    assert caught.value.hint == "use `memory/a.md`"
    with pytest.raises(PathNotAllowed, match="absolute") as caught:
        Workspace(str(folder)).locate("/etc/passwd")
    assert "inside the memory" in caught.value.hint


@pytest.mark.parametrize(
    "path", ["2026-02-10.md", "memory/2026-02-1.md", "Memory/2026-02-10.MD", "memory/2026-02-10"]
)
def test_a_near_miss_is_answered_with_the_nearest_name(folder, path):
    note(folder / "memory" / "2026-02-10.md")

    with pytest.raises((NotFound, PathNotAllowed)) as caught:
        Workspace(str(folder)).locate(path)
    assert caught.value.hint == "did you mean `memory/2026-02-10.md`?"


def test_the_nearest_names_stay_few():
    assert nearest("note.md", [f"memory/{n}/note.md" for n in range(9)]) == tuple(
        f"memory/{n}/note.md" for n in range(3)
    )
    assert nearest("zzz.md", ["memory/a.md"]) == ()


def test_a_thousand_files_in_many_folders_are_each_found_once(folder):
    wanted = {f"memory/{number % 20:02}/{number}.md" for number in range(1000)}
    for path in wanted:
        note(folder / path)

    found = [file.path for file in Workspace(str(folder)).discover().files]
    assert len(found) == 1000
    assert set(found) == wanted


def test_discovery_and_locating_leave_no_descriptor_open(folder):
    note(folder / "memory" / "x" / "a.md")
    (folder / "memory" / "link").symlink_to("x")
    workspace = Workspace(str(folder), extra_paths=[ExtraPath("none"), ExtraPath("memory/x/a.md")])
    before = watched()

    for _ in range(5):
        workspace.discover()
        workspace.read("memory/x/a.md")
        with contextlib.suppress(PlainmindError):
            workspace.read("memory/link/a.md")

    workspace.close()
    assert not open_in(folder)
    assert watched() <= before


def test_the_watched_paths_cover_everything_that_discovery_lists(folder, tmp_path):
    workspace = Workspace(str(folder), extra_paths=[ExtraPath(str(tmp_path / "vault")), ExtraPath("docs")])

    assert workspace.watched_paths() == (
        f"{folder}/MEMORY.md",
        f"{folder}/memory.md",
        f"{folder}/USER.md",
        f"{folder}/TOOLS.md",
        f"{folder}/IDENTITY.md",
        f"{folder}/SOUL.md",
        f"{folder}/memory",
        f"{tmp_path}/vault",
        f"{folder}/docs",
    )


def test_a_name_that_reads_like_a_citation_of_another_file_is_left_out(folder):
    note(folder / "memory" / "x.md#L1 Source: MEMORY.md#L3.md")
    note(folder / "memory" / "issue #12.md")

    found = Workspace(str(folder)).discover()

    assert paths(found) == ["memory/issue #12.md"]
    assert [skipped.reason for skipped in found.skipped] == [
        "the name cannot be cited: it reads like a citation of another file"
    ]


def test_days_of_lines_that_are_told_at_once_are_all_kept(tmp_path):
    def correct(who):
        for number in range(10):
            LineDays(str(tmp_path)).tell(f"{who}-{number}.md", b"", b"- the new line\n", date(2026, 11, 18))

    threads = [threading.Thread(target=correct, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    days = LineDays(str(tmp_path))
    known = [days.day_of(f"{who}-{number}.md", "- the new line") for who in range(4) for number in range(10)]
    assert known == ["2026-11-18"] * 40


def test_a_pipe_in_the_place_of_the_days_of_lines_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "line-days.json")

    assert LineDays(str(tmp_path)).day_of("MEMORY.md", "- a line") is None
