import contextlib
import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.descriptors import open_in

from plainmind.base.errors import NotFound, PathNotAllowed, WorkspaceError
from plainmind.files import safe_open
from plainmind.files.safe_open import (
    UNCITABLE,
    Root,
    check_relative,
    in_words,
    name_refusal,
    open_by_components,
    open_by_openat2,
    printable,
)

MB = 1_000_000


@pytest.fixture(params=[open_by_openat2, open_by_components], ids=["openat2", "components"])
def root(request, tmp_path):
    folder = tmp_path / "inside"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("alpha\n")
    (folder / "sub" / "deep" / "b.md").write_text("beta\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret\n")
    return Root(str(folder), opener=request.param)


def inside(root: Root) -> Path:
    return Path(root.path)


def outside(root: Root) -> Path:
    return Path(root.path).parent / "outside"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("../x.md", "part `..`"),
        ("a/../../x.md", "part `..`"),
        ("a/..", "part `..`"),
        ("./a.md", "part `.`"),
        ("a//b.md", "empty part"),
        ("a/", "empty part"),
        ("a\0b.md", "NUL"),
        ("a\\..\\b.md", "backslash"),
        ("a\nb.md", "control character"),
        ("a\x1b[31m.md", "control character"),
        ("a\x7f.md", "control character"),
        ("a\x85b.md", "control character"),
        ("a\u2028b.md", "control character"),
        ("a\udcff.md", "not valid UTF-8"),
        ("a" * 256, "longer than 255 bytes"),
        ("é" * 128, "longer than 255 bytes"),
        ("/".join(["a" * 200] * 21), "longer than 4095 bytes"),
    ],
)
def test_a_path_that_is_not_plainly_relative_is_refused_with_the_reason(path, reason):
    with pytest.raises(PathNotAllowed, match=reason) as caught:
        check_relative(path)
    assert caught.value.hint


@pytest.mark.parametrize(
    "path", ["a.md", "memory/2026-02-10.md", "..a/...md", "日本語/ノート.md", "a b/c'd.md", "é" * 127]
)
def test_an_ordinary_relative_path_is_allowed(path):
    check_relative(path)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_a_refused_path_is_quoted_on_one_line(path):
    message = refusal_of(path)

    assert not UNCITABLE.search(message.replace("\\", ""))


def refusal_of(path: str) -> str:
    try:
        check_relative(path)
    except PathNotAllowed as error:
        return str(error)
    return ""


def test_a_file_is_read_with_how_it_looked(root):
    data, status = root.read("sub/deep/b.md", max_bytes=MB)

    assert data == b"beta\n"
    assert (status.st_size, status.st_ino) == (5, os.stat(inside(root) / "sub/deep/b.md").st_ino)


def test_a_file_that_does_not_exist_is_not_found(root):
    for missing in ("none.md", "sub/none/x.md", "a.md/x.md"):
        with pytest.raises(NotFound, match="does not exist") as caught:
            root.open(missing)
        assert caught.value.hint


def test_a_symbolic_link_is_not_followed_wherever_it_stands(root):
    (inside(root) / "file.md").symlink_to(outside(root) / "secret.md")
    (inside(root) / "folder").symlink_to(outside(root))
    (inside(root) / "sub" / "up").symlink_to("..")
    (inside(root) / "loop").symlink_to("loop")
    (inside(root) / "dangling.md").symlink_to("nowhere")

    for path in ("file.md", "folder/secret.md", "sub/up/a.md", "loop", "loop/x.md", "dangling.md"):
        with pytest.raises(PathNotAllowed, match="symbolic link"):
            root.open(path)


def test_a_hard_link_is_refused_and_the_file_it_leads_to_stays_out(root):
    os.link(outside(root) / "secret.md", inside(root) / "linked.md")

    with pytest.raises(PathNotAllowed, match="hard link") as caught:
        root.open("linked.md")
    assert "copy" in caught.value.hint


def test_what_is_not_a_regular_file_is_refused_without_waiting(root):
    os.mkfifo(inside(root) / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(inside(root))  # a socket's path has to be short
        try:
            server.bind("socket.md")
        finally:
            os.chdir(here)
        for path in ("pipe.md", "socket.md"):
            with pytest.raises(PathNotAllowed, match="not a regular file"):
                root.open(path)
    with pytest.raises(PathNotAllowed, match="a folder"):
        root.open("sub")


def test_a_file_over_the_limit_is_refused_and_one_at_the_limit_is_read(root):
    (inside(root) / "exact.md").write_bytes(b"x" * 1000)

    assert root.read("exact.md", max_bytes=1000)[0] == b"x" * 1000
    with pytest.raises(PathNotAllowed, match=r"1,000 bytes, over the limit of 999 bytes"):
        root.read("exact.md", max_bytes=999)


def test_a_file_that_claims_to_be_small_is_still_read_only_up_to_the_limit():
    status = Root("/proc/self")  # files there report a size of 0

    with pytest.raises(PathNotAllowed, match="over the limit of 10 bytes"):
        status.read("status", max_bytes=10)
    assert b"Name:" in status.read("status", max_bytes=MB)[0]


def test_a_sparse_gigabyte_is_refused_without_being_read(root):
    with open(inside(root) / "huge.md", "wb") as file:
        file.truncate(1_000_000_000)

    with pytest.raises(PathNotAllowed, match=r"1.0 GB, over the limit of 16.0 MB"):
        root.read("huge.md", max_bytes=16 * MB)


def test_a_root_that_is_a_link_is_resolved_once(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.md").write_text("not mine")
    link = tmp_path / "link"
    link.symlink_to("real")
    root = Root(str(link))

    link.unlink()
    link.symlink_to("other")

    assert root.real == str(tmp_path / "real")
    assert root.read("a.md", max_bytes=MB)[0] == b"mine"


def test_a_root_replaced_by_a_link_is_not_followed(root):
    os.rename(inside(root), inside(root).parent / "moved")
    os.symlink(outside(root), inside(root))

    with pytest.raises(PathNotAllowed, match="replaced by a symbolic link"):
        root.open("secret.md")


def test_a_root_may_come_later_and_may_be_gone(tmp_path):
    root = Root(str(tmp_path / "later"))
    assert root.real == str(tmp_path / "later")
    with pytest.raises(WorkspaceError, match="does not exist"):
        root.open("a.md")

    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "a.md").write_text("here")
    (tmp_path / "later").symlink_to("target")

    assert root.read("a.md", max_bytes=MB)[0] == b"here"
    assert root.real == str(tmp_path / "target")


def test_a_root_that_is_a_file_is_a_missing_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="does not exist"):
        Root(str(tmp_path / "file")).open("a.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_without_permission_says_so(root):
    (inside(root) / "a.md").chmod(0)
    with pytest.raises(WorkspaceError, match="no permission"):
        root.open("a.md")


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("EACCES", WorkspaceError, "no permission"),
        ("EPERM", WorkspaceError, "no permission"),
        ("EXDEV", PathNotAllowed, "symbolic link"),
        ("ENAMETOOLONG", PathNotAllowed, "too long"),
        ("ENXIO", PathNotAllowed, "not a regular file"),
        ("EIO", WorkspaceError, "could not be read: Input/output error"),
        ("EMFILE", WorkspaceError, "could not be read: Too many open files"),
    ],
)
def test_what_the_system_says_becomes_an_error_with_a_hint(tmp_path, code, kind, words):
    number = getattr(__import__("errno"), code)

    def refusing(folder, relative, flags):
        raise OSError(number, os.strerror(number), relative)

    with pytest.raises(kind, match=words) as caught:
        Root(str(tmp_path), opener=refusing).open("a.md")
    assert caught.value.hint


def test_a_failing_read_is_an_error_with_a_hint_and_leaves_nothing_open(tmp_path):
    # Reading the memory of our own process at address 0 fails with EIO.
    with pytest.raises(WorkspaceError, match="could not be read"):
        Root("/proc/self").read("mem", max_bytes=MB)
    assert open_in(Path(f"/proc/{os.getpid()}/mem")) == []


def test_a_file_replaced_between_opening_and_checking_is_opened_again(root):
    path = inside(root) / "a.md"
    opened = []

    def slow(folder, relative, flags):
        descriptor = open_by_components(folder, relative, flags)
        if not opened:
            (inside(root) / "new").write_text("new\n")
            os.replace(inside(root) / "new", path)
        opened.append(descriptor)
        return descriptor

    data, _ = Root(root.path, opener=slow).read("a.md", max_bytes=MB)

    assert data == b"new\n"
    assert len(opened) == 2


def test_a_file_system_that_counts_no_links_is_still_read(root):
    def unlinking(folder, relative, flags):
        descriptor = os.open(relative, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder)
        os.write(descriptor, b"text")
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.unlink(relative, dir_fd=folder)
        return descriptor

    assert Root(root.path, opener=unlinking).read("ghost.md", max_bytes=MB)[0] == b"text"


def test_the_kernel_without_openat2_gets_the_other_way(root, monkeypatch):
    def unknown(folder, relative, flags):
        raise OSError(38, "Function not implemented")

    without = Root(root.path, opener=open_by_openat2)
    monkeypatch.setattr(safe_open, "_load_openat2", lambda: unknown)
    assert without.read("sub/deep/b.md", max_bytes=MB)[0] == b"beta\n"
    monkeypatch.setattr(safe_open, "_load_openat2", lambda: None)
    assert without.read("sub/deep/b.md", max_bytes=MB)[0] == b"beta\n"
    with pytest.raises(NotFound):
        without.open("none.md")


def test_openat2_is_loaded_when_more_than_a_few_files_are_read(root, monkeypatch):
    loaded = []
    monkeypatch.setattr(safe_open, "_load_openat2", lambda: loaded.append("openat2"))
    default = Root(root.path)

    assert {default.read("a.md", max_bytes=MB)[0] for _ in range(safe_open._FEW)} == {b"alpha\n"}
    assert loaded == []
    assert default.read("a.md", max_bytes=MB)[0] == b"alpha\n"
    assert loaded == ["openat2"]


def test_opening_and_failing_leaves_no_descriptor_open(root):
    (inside(root) / "link.md").symlink_to("a.md")
    os.mkfifo(inside(root) / "pipe.md")
    before = open_in(inside(root))

    for path in (
        "a.md",
        "sub/deep/b.md",
        "none.md",
        "link.md",
        "sub",
        "sub/none/x",
        "a.md/x",
        "../x",
        "pipe.md",
    ):
        with contextlib.suppress(NotFound, PathNotAllowed):
            os.close(root.open(path))
    os.close(root.open_folder("sub/deep"))
    os.close(root.open_folder())

    assert open_in(inside(root)) == before


def test_a_folder_is_opened_beneath_the_root_only(root):
    (inside(root) / "link").symlink_to(outside(root))

    descriptor = root.open_folder("sub")
    assert os.listdir(descriptor) == ["deep"]
    os.close(descriptor)
    with pytest.raises(OSError, match="symbolic links"):
        root.open_folder("link")
    with pytest.raises(NotADirectoryError):
        root.open_folder("a.md")
    with pytest.raises(PathNotAllowed):
        root.open_folder("..")


def test_one_root_serves_many_threads(root):
    failures = []

    def read_often():
        reads = (root.read("sub/deep/b.md", max_bytes=MB)[0] for _ in range(200))
        failures.extend(data for data in reads if data != b"beta\n")

    threads = [threading.Thread(target=read_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_path_is_shown_on_one_line():
    assert printable("a\nb\x1b\udcff\\c\u2028d é") == "a\\nb\\x1b\\udcff\\c\\u2028d é"


def test_sizes_are_said_the_way_people_do():
    assert [in_words(999), in_words(16 * MB), in_words(2_500 * MB)] == ["999 bytes", "16.0 MB", "2.5 GB"]


def test_a_root_shows_its_path():
    assert repr(Root("/tmp")) == "Root('/tmp')"


def test_what_can_be_printed_can_be_cited_except_a_backslash():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    visible = "".join(filter(str.isprintable, everything))

    assert set(UNCITABLE.findall(visible)) == {"\\"}
    assert name_refusal(f"a{visible.replace(chr(92), '')}") is None
    assert name_refusal("a\\b.md") == "the name cannot be cited: it contains a backslash"
