"""The thin layer over the operating system, and the words for its refusals."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest
from tests.support.faulty_system import FaultySystem

from plainmind.base.errors import PathNotAllowed, PlainmindError, StorageFailure, WorkspaceError
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    explanation,
    make_folders,
    read_range,
    write_all,
)


def test_descriptors_are_not_inherited_and_symlinks_not_followed(tmp_path: Path) -> None:
    fd = SYSTEM.open(str(tmp_path / "a"), os.O_RDWR | os.O_CREAT)
    try:
        assert not os.get_inheritable(fd)
        assert SYSTEM.write(fd, b"abc") == 3
        assert SYSTEM.position(fd) == 3
        SYSTEM.fsync(fd)
        SYSTEM.fdatasync(fd)
    finally:
        SYSTEM.close(fd)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic"):
        SYSTEM.open(str(tmp_path / "link"), os.O_RDONLY)
    SYSTEM.fsync_folder(str(tmp_path))


def test_ranges_are_read_whole_even_if_the_system_reads_less(tmp_path: Path) -> None:
    class Slow(System):
        def pread(self, fd: int, count: int, offset: int) -> bytes:
            return super().pread(fd, min(count, 2), offset)

    (tmp_path / "a").write_bytes(b"abcdefgh")
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    assert read_range(Slow(), fd, 1, 6) == b"bcdef"
    assert read_range(Slow(), fd, 5, 100) == b"fgh"
    os.close(fd)


def test_writing_all_ends_when_the_disk_takes_nothing(tmp_path: Path) -> None:
    class Stuck(System):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            return 0

    with pytest.raises(OSError, match="no more bytes"):
        write_all(Stuck(), -1, b"abc")


def test_folders_are_made_private_and_a_race_for_them_is_no_error(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"

    def be_faster(name: str, _: int) -> None:
        if name == "mkdir" and not (tmp_path / "a").exists():
            (tmp_path / "a").mkdir()

    make_folders(FaultySystem(before=be_faster), str(deep))

    assert deep.is_dir()
    assert deep.stat().st_mode & 0o777 == 0o700
    make_folders(FaultySystem(fail_at=1, code=errno.EIO), str(deep))


@pytest.mark.parametrize("sync", ["fsync", "fdatasync"])
def test_the_drives_own_cache_is_flushed_where_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    asked: list[int] = []
    answers = iter([None, errno.ENOTSUP, errno.EIO])

    def full_sync(fd: int, command: int) -> None:
        asked.append(command)
        if code := next(answers):
            raise OSError(code, "")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    with (tmp_path / "a").open("wb") as file:
        getattr(SYSTEM, sync)(file.fileno())
        getattr(SYSTEM, sync)(file.fileno())  # a network disk: falls back to fsync
        with pytest.raises(OSError):  # noqa: PT011 -- the errno is the message
            getattr(SYSTEM, sync)(file.fileno())
    assert asked == [51, 51, 51]


def test_a_file_system_without_folder_sync_is_no_error_but_a_failing_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing_with(code: int) -> None:
        def fail(fd: int) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fail)

    failing_with(errno.EINVAL)
    SYSTEM.fsync_folder(str(tmp_path))
    failing_with(errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        SYSTEM.fsync_folder(str(tmp_path))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, StorageFailure),
        (errno.EDQUOT, StorageFailure),
        (errno.EROFS, WorkspaceError),
        (errno.EACCES, WorkspaceError),
        (errno.ENOTDIR, WorkspaceError),
        (errno.ELOOP, PathNotAllowed),
        (errno.EIO, StorageFailure),
    ],
)
def test_every_refusal_becomes_a_sentence_with_a_hint(code: int, kind: type[PlainmindError]) -> None:
    error = explanation(OSError(code, os.strerror(code)), "write", "/a/b", outcome="the old text is intact")
    assert type(error) is kind
    assert str(error) == f"could not write /a/b: {os.strerror(code)}"
    assert str(error.hint).endswith("; the old text is intact")


def test_a_refusal_with_words_of_its_own_keeps_them() -> None:
    error = explanation(OSError(errno.ELOOP, "a link stands there"), "write", "/a/b")

    assert str(error) == "could not write /a/b: a link stands there"


def test_an_error_without_a_number_keeps_its_own_words() -> None:
    with (
        pytest.raises(StorageFailure, match="could not read /a: something odd"),
        explain_errors("read", "/a"),
    ):
        raise OSError("something odd")
