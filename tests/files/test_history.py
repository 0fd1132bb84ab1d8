"""The history: what was before, what we changed, what may be kept, what must go, and what must not come back."""

from __future__ import annotations

import json
import os
import random
import zlib
from pathlib import Path

import pytest

from plainmind.base.errors import NotFound, PlainmindError, StorageFailure
from plainmind.base.model import sha256_bytes
from plainmind.files import history as module
from plainmind.files.history import APPEND, History, Problem, Tombstones, rewrite, scrub
from plainmind.files.system import SYSTEM, System

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(tmp_path: Path, clock: Clock) -> History:
    return History(str(tmp_path / "history"), max_age_days=90, max_bytes=5_000, clock=clock)


def change(history: History, old: bytes, new: bytes, path: str = "MEMORY.md") -> None:
    history.keep(path, old, "edit")
    history.record(
        path, operation="edit", new_hash=sha256_bytes(new), length=len(new), previous=sha256_bytes(old)
    )


def stored(tmp_path: Path) -> list[bytes]:
    return [zlib.decompress(path.read_bytes()) for path in (tmp_path / "history" / "blobs").iterdir()]


def test_a_chain_of_edits_is_one_line_each_and_all_but_the_last_can_be_read(history: History) -> None:
    change(history, b"one", b"two")
    change(history, b"two", b"three")

    third, second, first = history.versions("MEMORY.md")

    assert [version.available for version in (third, second, first)] == [False, True, True]
    assert (history.read(first.id), history.read(second.id)) == (b"one", b"two")
    assert (first.operation, second.operation, third.operation) == ("before edit", "edit", "edit")
    assert first.at == "2027-01-15T08:00:00.000+00:00"
    assert first.id < second.id < third.id
    assert second.previous == first.hash


def test_versions_of_one_path_do_not_show_others(history: History) -> None:
    change(history, b"one", b"two")
    change(history, b"one", b"two", path="memory/a.md")

    assert {version.path for version in history.versions("memory/a.md")} == {"memory/a.md"}
    assert len(history.versions()) == 4


def test_an_empty_history_is_empty(history: History) -> None:
    assert history.versions() == []
    assert history.prune() == 0
    assert history.erase(lambda data: data) == 0
    assert history.verify(lambda _: None) == []


def test_what_is_not_stored_is_not_found(history: History) -> None:
    change(history, b"one", b"two")
    for unknown in ("01J", history.versions()[0].id):
        with pytest.raises(NotFound) as caught:
            history.read(unknown)
        assert caught.value.hint


def test_a_damaged_content_is_reported_and_stored_anew_when_seen_again(
    history: History, tmp_path: Path
) -> None:
    version = history.keep("MEMORY.md", b"one", "edit")
    blob = tmp_path / "history" / "blobs" / sha256_bytes(b"one")
    for damage in (b"garbage", zlib.compress(b"another")):
        blob.write_bytes(damage)
        with pytest.raises(StorageFailure, match="damaged"):
            history.read(version.id)
        assert [problem.path for problem in history.verify(lambda _: b"")] == [sha256_bytes(b"one")]

    history.keep("MEMORY.md", b"one", "edit")

    assert history.read(version.id) == b"one"


def test_what_is_too_old_goes_but_not_what_was_current_until_lately(
    history: History, clock: Clock, tmp_path: Path
) -> None:
    change(history, b"ancient", b"old")
    clock.now += 80 * DAY
    change(history, b"old", b"new")
    clock.now += 20 * DAY

    assert history.prune() == 1

    assert stored(tmp_path) == [b"old"]
    newest, old = history.versions()
    assert (newest.hash, old.hash) == (sha256_bytes(b"new"), sha256_bytes(b"old"))
    assert history.prune() == 0


def test_when_there_is_too_much_the_oldest_goes_first(history: History, tmp_path: Path) -> None:
    import random

    texts = [random.Random(number).randbytes(1_500) for number in range(6)]
    for text in texts:
        history.keep("MEMORY.md", text, "edit")

    assert history.prune() == 3

    assert sorted(stored(tmp_path)) == sorted(texts[3:])
    assert [version.available for version in history.versions()] == [True] * 3 + [False] * 3


def test_leftovers_of_killed_processes_are_swept_up(history: History, tmp_path: Path) -> None:
    history.keep("MEMORY.md", b"one", "edit")
    blobs = tmp_path / "history" / "blobs"
    (blobs / f".{'0' * 64}.4711.0123456789abcdef.tmp").write_bytes(b"half")
    (blobs / sha256_bytes(b"unknown to the journal")).write_bytes(zlib.compress(b"unknown to the journal"))

    assert history.prune() == 1

    assert stored(tmp_path) == [b"one"]


def without_secrets(data: bytes) -> bytes | None:
    kept = b"".join(line for line in data.splitlines(keepends=True) if b"secret" not in line)
    return kept or None


def test_erased_text_is_in_no_file_and_the_rest_can_still_be_read(history: History, tmp_path: Path) -> None:
    change(history, b"fact\nsecret\n", b"fact\nsecret\nmore\n")
    change(history, b"fact\nsecret\nmore\n", b"fact\n")
    history.keep("other.md", b"secret alone\n", "edit")
    history.keep("harmless.md", b"harmless\n", "edit")
    (tmp_path / "history" / "blobs" / ("a" * 64)).write_bytes(b"damaged, who knows what was in it")

    assert history.erase(without_secrets) == 4

    assert sorted(stored(tmp_path)) == [b"fact\n", b"fact\nmore\n", b"harmless\n"]
    versions = history.versions("MEMORY.md")
    # What is current now has, by chance, the same content as the first version without its secret.
    assert [history.read(version.id) for version in versions] == [b"fact\n", b"fact\nmore\n", b"fact\n"]
    assert [version.length for version in versions] == [5, 10, 5]
    assert versions[0].previous == versions[1].hash
    with pytest.raises(NotFound):
        history.read(history.versions("other.md")[0].id)
    assert history.erase(without_secrets) == 0


def test_an_erased_file_is_overwritten_before_it_is_made_sure_that_its_name_is_gone(
    tmp_path: Path, clock: Clock
) -> None:
    from tests.support.faulty_system import FaultySystem

    blob = tmp_path / "history" / "blobs" / sha256_bytes(b"secret")
    seen: list[tuple[bytes, bool]] = []

    def look(name: str, _: int) -> None:
        if name == "fsync_folder" and seen_by is not None:
            seen.append((os.pread(seen_by, 1_000, 0), blob.exists()))

    seen_by = None
    history = History(str(tmp_path / "history"), clock=clock, system=FaultySystem(before=look))
    history.keep("MEMORY.md", b"secret", "edit")
    size = blob.stat().st_size
    seen_by = os.open(blob, os.O_RDONLY)
    try:
        history.erase(without_secrets)
    finally:
        os.close(seen_by)

    assert seen[-1] == (bytes(size), False)


def test_an_erasure_that_failed_half_way_can_be_finished(tmp_path: Path, clock: Clock) -> None:
    import errno

    from tests.support.faulty_system import FaultySystem

    from plainmind.base.errors import PlainmindError

    for number in range(1, 100):
        folder = tmp_path / str(number)
        history = History(str(folder / "history"), clock=clock, system=FaultySystem())
        change(history, b"fact\nsecret\n", b"fact\n")
        system = FaultySystem(fail_at=number, code=errno.EIO)
        try:
            History(str(folder / "history"), clock=clock, system=system).erase(without_secrets)
        except PlainmindError:
            history.erase(without_secrets)

        assert stored(folder) == [b"fact\n"], system.failed
        assert all(history.read(version.id) == b"fact\n" for version in history.versions())
        if system.failed is None:
            return
    pytest.fail("not one run without a fault")


def note(history: History, path: str, name: str) -> None:
    history.record(path, operation=APPEND, new_hash="0" * 64, length=10, previous=None, record_id=name)


def test_verifying_names_every_appended_note_that_is_gone(history: History) -> None:
    note(history, "memory/a.md", "01JA")
    note(history, "memory/a.md", "01JB")
    note(history, "memory/gone.md", "01JC")
    files = {"memory/a.md": b"- x <!-- m:01JA -->\n"}

    problems = history.verify(files.get)

    assert [problem.path for problem in problems] == ["memory/a.md", "memory/gone.md"]
    assert "`01JB` is no longer in the file" in problems[0].what
    assert "gone" in problems[1].what


def test_a_note_that_our_own_rewrite_removed_is_not_missed(history: History) -> None:
    note(history, "memory/a.md", "01JA")
    change(history, b"old", b"new", path="memory/a.md")
    note(history, "memory/a.md", "01JB")
    history.keep("memory/a.md", b"new 01JB", "edit")

    assert history.verify({"memory/a.md": b"new 01JB"}.get) == []
    assert len(history.verify({"memory/a.md": b"new"}.get)) == 1


def test_journalling_the_same_note_again_tells_it_once(history: History) -> None:
    note(history, "memory/a.md", "01JA")
    note(history, "memory/a.md", "01JA")
    assert len(history.versions()) == 1


def test_journal_lines_that_cannot_be_read_are_reported_and_survive_a_rewrite(
    history: History, tmp_path: Path, clock: Clock
) -> None:
    journal = tmp_path / "history" / "journal.jsonl"
    history.keep("MEMORY.md", b"one", "edit")
    with journal.open("ab") as file:
        file.write(b'no json\n[]\n{"id": 1}\n')

    assert len(history.verify(lambda _: b"")) == 3
    assert isinstance(history.verify(lambda _: b"")[0], Problem)

    clock.now += 100 * DAY
    history.prune()
    assert journal.read_bytes() == b'no json\n[]\n{"id": 1}\n'


def test_the_journal_is_plain_json_lines(history: History, tmp_path: Path) -> None:
    change(history, b"one", b"two", path="memory/日記.md")
    lines = [json.loads(line) for line in (tmp_path / "history" / "journal.jsonl").read_bytes().splitlines()]
    assert [sorted(line) for line in lines] == [
        ["at", "hash", "id", "length", "operation", "path", "previous"]
    ] * 2
    assert lines[1]["path"] == "memory/日記.md"


def test_a_long_journal_is_searched_only_at_its_end(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RECENT_JOURNAL_BYTES", 400)
    history.keep("MEMORY.md", b"one", "edit")
    for number in range(5):
        history.keep(f"{number}.md", b"x", "edit")

    history.keep("MEMORY.md", b"one", "edit")  # too far up to be noticed: told again

    assert len(history.versions("MEMORY.md")) == 2


def test_of_a_long_journal_only_the_lines_of_one_path_are_taken_apart(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        history.keep(f"{number}.md", b"x", "edit")
    kept = history.keep("memory/日記.md", b"one", "edit")
    history.keep("MEMORY.md", b"memory/0.md", "edit")
    taken: list[bytes] = []
    parse = module._parse
    monkeypatch.setattr(module, "_parse", lambda line: (taken.append(line), parse(line))[1])

    assert history.keep("memory/日記.md", b"one", "edit") == kept
    assert len(taken) == 1


def test_recording_drops_what_is_too_old_once_a_day(history: History, clock: Clock, tmp_path: Path) -> None:
    change(history, b"one", b"two")
    clock.now += 200 * DAY
    change(history, b"three", b"four")

    assert stored(tmp_path) == [b"three"]
    assert [version.operation for version in history.versions()] == ["edit", "before edit"]


def test_a_clock_that_was_set_back_does_not_put_off_pruning(
    history: History, clock: Clock, tmp_path: Path
) -> None:
    clock.now += 3_000 * DAY
    change(history, b"one", b"two")
    clock.now -= 3_000 * DAY
    change(history, bytes(20) + random.Random(1).randbytes(6_000), b"x")
    change(history, b"three", b"four")

    assert sum(map(len, stored(tmp_path))) < 5_000


def test_paths_are_found_by_what_their_old_contents_had(history: History) -> None:
    change(history, b"one apple", b"two", path="a.md")
    change(history, b"one pear", b"two", path="b.md")

    assert history.paths_with(lambda data: b"apple" in data) == ["a.md"]
    assert history.paths_with(lambda data: b"plum" in data) == []


HOUR = 3600.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tombstones.jsonl"


def test_what_is_buried_is_buried_in_every_process_at_once(file: Path, clock: Clock) -> None:
    here, there = Tombstones(str(file), clock=clock), Tombstones(str(file), clock=clock)
    assert not there.is_buried("aa")

    here.bury(["aa", "bb", "aa"])
    assert there.is_buried("aa")
    there.bury(["cc"])

    assert [here.is_buried(text_hash) for text_hash in ("aa", "bb", "cc", "dd")] == [True, True, True, False]


def test_burying_nothing_writes_nothing(file: Path) -> None:
    Tombstones(str(file)).bury([])
    assert not file.exists()


def test_a_tombstone_stands_for_a_day_even_if_the_clock_goes_back(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    clock.now -= 100 * HOUR
    assert stones.is_buried("aa")
    clock.now += 100 * HOUR + 23 * HOUR
    assert stones.is_buried("aa")
    clock.now += 2 * HOUR
    assert not stones.is_buried("aa")


def test_the_later_of_two_burials_counts(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    clock.now -= 10 * HOUR
    stones.bury(["aa"])
    clock.now += 25 * HOUR
    assert stones.is_buried("aa")


def test_a_file_that_has_grown_is_rid_of_what_expired(
    file: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPACT_ABOVE_BYTES", 2_000)
    stones = Tombstones(str(file), clock=clock)
    stones.bury(f"{number:064}" for number in range(100))
    clock.now += 20 * HOUR
    stones.bury(["kept"])
    clock.now += 5 * HOUR
    stones.bury(["new"])

    assert file.stat().st_size < 1_000
    assert stones.is_buried("kept")
    assert stones.is_buried("new")
    assert not stones.is_buried(f"{1:064}")


def test_lines_that_cannot_be_read_hide_no_others(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    with file.open("ab") as lines:
        lines.write(b'no json\n[]\n{"at": 1}\n{"at": "x", "hashes": []}\n')
    stones.bury(["bb"])
    assert stones.is_buried("aa")
    assert stones.is_buried("bb")


def test_a_file_that_cannot_be_read_is_an_error_and_not_an_empty_one(file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.raises(PlainmindError, match="could not read"):
        Tombstones(str(file)).is_buried("aa")


def test_a_removed_file_means_that_nothing_is_buried(file: Path, clock: Clock) -> None:
    stones = Tombstones(str(file), clock=clock)
    stones.bury(["aa"])
    assert stones.is_buried("aa")
    file.unlink()
    assert not stones.is_buried("aa")


def test_a_file_elsewhere_that_a_journal_was_linked_to_is_not_cleared_when_the_journal_is_written_anew(
    tmp_path,
):
    outside, journal = tmp_path / "outside.txt", tmp_path / "journal.jsonl"
    outside.write_text("somebody's own\n")
    journal.hardlink_to(outside)

    rewrite(str(journal), b"{}\n", SYSTEM)

    assert outside.read_text() == "somebody's own\n"
    assert journal.read_text() == "{}\n"


def test_a_file_elsewhere_that_was_linked_to_for_a_moment_is_not_cleared_when_a_file_is_scrubbed(tmp_path):
    outside, ours = tmp_path / "outside.txt", tmp_path / "ours.txt"
    outside.write_text("somebody's own\n")
    ours.hardlink_to(outside)

    class Swapped(System):
        def open(self, path, flags, mode=0o600):
            fd = super().open(path, flags, mode)
            ours.unlink()  # what is open has one name now, and that is not ours
            ours.write_text("ours\n")
            return fd

    scrub(str(ours), Swapped())

    assert outside.read_text() == "somebody's own\n"
    assert not ours.exists()
