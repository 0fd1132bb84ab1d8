"""Importing again and again: nothing is doubled, nothing is lost, and no original is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.guests.importers.conftest import add, as_line, looks_of
from tests.guests.importers.test_openclaw import FOLDER, OTHER, SESSION, header, message
from tests.support.examples import examples
from tests.support.waiting import until

from plainmind.base.errors import ConfigError, NotFound, PathNotAllowed
from plainmind.guests.importers import importer
from plainmind.guests.importers.importer import REMOVED_HERE, Importer


@pytest.fixture
def original(write):
    return write(f"{FOLDER}/{SESSION}.jsonl", [header(), message("e1", None, "user", "one")])


def test_importing_twice_adds_nothing(here, original):
    here.take("openclaw", original)
    before = looks_of(here.folder)

    report = here.take("openclaw", original)

    assert (report.imported, report.unchanged) == ((), 1)
    assert looks_of(here.folder) == before


def test_without_its_ledger_an_import_reads_all_again_and_still_adds_nothing(here, original):
    here.take("openclaw", original)
    os.unlink(os.path.join(here.folder, ".plainmind", "imports.json"))

    report = here.take("openclaw", original)

    assert (report.imported, report.unchanged) == ((), 1)
    assert here.spoken(SESSION) == ["User: one"]


def test_a_grown_original_adds_only_its_new_lines_and_only_they_are_read(here, original, monkeypatch):
    here.take("openclaw", original)
    add(original, message("e2", "e1", "user", "two"))
    read = []
    note = importer.SessionCopy._note
    monkeypatch.setattr(
        importer.SessionCopy, "_note", lambda self, piece: (read.append(piece.number), note(self, piece))
    )

    report = here.take("openclaw", original)

    assert read == [3]
    assert [(row.entries, row.is_new) for row in report.imported] == [(1, False)]
    assert here.spoken(SESSION) == ["User: one", "User: two"]
    assert here.entries(SESSION)[1]["imported"]["line"] == 3


def test_originals_are_never_touched(here, original, tmp_path):
    for path in (original, original.parent):
        os.utime(path, (1.7e9, 1.7e9))
    before = looks_of(tmp_path / "state")

    here.take("openclaw", tmp_path / "state")
    here.take("openclaw", tmp_path / "state", again=True)

    assert looks_of(tmp_path / "state") == before


def test_a_read_only_original_is_imported(here, original):
    original.chmod(0o400)
    original.parent.chmod(0o500)

    assert here.take("openclaw", original).messages == 1


def test_a_rehearsal_says_what_would_come_and_writes_nothing(here, original, tmp_path):
    report = here.take("openclaw", original, is_rehearsal=True)

    assert (report.is_rehearsal, report.sessions_begun, report.messages) == (True, 1, 1)
    assert not os.path.exists(here.folder)

    here.take("openclaw", original)
    add(original, message("e2", "e1", "user", "two"))
    before = looks_of(here.folder)

    assert here.take("openclaw", original, is_rehearsal=True).messages == 1
    assert looks_of(here.folder) == before


def test_a_half_written_last_line_waits_for_its_end(here, original):
    whole = as_line(message("e2", "e1", "user", "two"))
    add(original, whole[:40])
    assert here.take("openclaw", original).messages == 1

    add(original, whole[40:])
    report = here.take("openclaw", original)

    assert report.damaged == ()
    assert here.spoken(SESSION) == ["User: one", "User: two"]


def test_a_last_line_without_newline_is_taken_and_not_doubled_when_the_newline_comes(here, original):
    add(original, as_line(message("e2", "e1", "user", "two")).rstrip(b"\n"))
    assert here.take("openclaw", original).messages == 2

    add(original, b"\n", message("e3", "e2", "user", "three"))
    here.take("openclaw", original)

    assert here.spoken(SESSION) == ["User: one", "User: two", "User: three"]


def test_an_original_that_was_replaced_is_read_whole_and_what_we_had_stays(here, original):
    here.take("openclaw", original)
    replaced = original.with_suffix(".new")
    replaced.write_bytes(b"".join(map(as_line, [header(), message("e9", None, "user", "nine")])) * 2)
    replaced.rename(original)

    here.take("openclaw", original)

    assert here.spoken(SESSION) == ["User: one", "User: nine", "User: nine"]


def test_damaged_lines_are_named_and_the_good_ones_around_them_are_kept(here, write):
    path = write(
        f"{FOLDER}/{SESSION}.jsonl",
        [
            b"\xff\xfe not a header\n",
            message("e1", None, "user", "one"),
            b'{"type":"message","id":"e2","mess\n',
            b"\0\0\0\0\n",
            b"\n",
            message("e3", "e2", "user", "three"),
        ],
    )

    report = here.take("openclaw", path)

    assert here.spoken(SESSION) == ["User: one", "User: three"]
    assert report.damaged_count == 3
    assert [(damage.path, damage.line) for damage in report.damaged] == [
        (str(path), 1),
        (str(path), 3),
        (str(path), 4),
    ]


def test_two_lines_with_one_id_are_both_kept_and_still_only_once(here, write):
    path = write(
        f"{FOLDER}/{SESSION}.jsonl",
        [header(), message("e1", None, "user", "one"), message("e1", None, "user", "two")],
    )
    here.take("openclaw", path)
    os.unlink(os.path.join(here.folder, ".plainmind", "imports.json"))
    here.take("openclaw", path)

    assert here.spoken(SESSION) == ["User: one", "User: two"]


def test_what_was_deleted_here_does_not_come_back_unless_it_is_asked_for(here, original):
    here.take("openclaw", original)
    here.store.delete(SESSION)
    unchanged = here.take("openclaw", original)
    add(original, message("e2", "e1", "user", "two"))

    report = here.take("openclaw", original)

    assert [left.reason for left in report.left_out] == [REMOVED_HERE]
    assert [left.reason for left in unchanged.left_out] == [REMOVED_HERE]
    assert unchanged.unchanged == 0
    assert here.store.list() == []

    here.take("openclaw", original, again=True)
    assert here.spoken(SESSION) == ["User: one", "User: two"]


def test_what_was_said_here_after_an_import_stays_when_the_registry_is_lost(here, original):
    here.take("openclaw", original)
    here.store.open(SESSION).append({"role": "user", "content": "said here"})
    os.unlink(os.path.join(here.folder, "sessions.json"))
    os.unlink(os.path.join(here.folder, ".plainmind", "imports.json"))
    add(original, message("e2", "e1", "user", "two"))

    here.take("openclaw", original)

    assert here.spoken(SESSION) == ["User: one", "User: said here", "User: two"]
    assert here.store.entry(SESSION)["importedFrom"]["path"] == str(original)


def test_a_session_of_our_own_with_the_same_id_is_left_alone(here, original):
    here.store.create("agent:main:main", id=SESSION).append({"role": "user", "content": "ours"})

    report = here.take("openclaw", original)

    assert here.spoken("agent:main:main") == ["User: ours"]
    assert here.spoken(report.imported[0].key) == ["User: one"]
    assert here.take("openclaw", original).imported == ()


def test_imported_sessions_are_listed_by_when_they_were_held(here, write, tmp_path):
    for name, year in (("a", 2024), ("b", 2026), ("c", 2025)):
        session = name + SESSION[1:]
        held = message("e1", None, "user", "hi") | {"timestamp": f"{year}-02-10T09:30:00.000Z"}
        write(f"{FOLDER}/{session}.jsonl", [header(session=session), held])

    here.take("openclaw", tmp_path / "state")

    assert [row.id[0] for row in here.store.list()] == ["b", "c", "a"]


def test_an_id_that_can_be_no_file_name_gets_one(here, write):
    path = write(
        "exports/x.json", {"id": "../../etc/passwd", "messages": [{"role": "user", "content": "hi"}]}
    )

    report = here.take("messages", path)

    assert os.listdir(here.folder).count(f"{report.imported[0].id}.jsonl") == 1
    assert here.spoken(report.imported[0].id) == ["User: hi"]


def test_many_sessions_are_entered_in_few_writes(here, write, tmp_path, monkeypatch):
    from plainmind.sessions.registry import Registry

    writes = []
    hold = Registry.hold
    monkeypatch.setattr(Registry, "hold", lambda self, what: (writes.append(what), hold(self, what))[1])
    for number in range(450):
        session = f"{number:08x}{SESSION[8:]}"
        write(f"{FOLDER}/{session}.jsonl", [header(session=session), message("e1", None, "user", "hi")])

    assert here.take("openclaw", tmp_path / "state").sessions_begun == 450
    assert len(writes) == 3
    assert len(here.store.list()) == 450


def test_a_folder_without_conversations_and_a_path_without_a_file_are_said(here, tmp_path):
    with pytest.raises(NotFound, match="no conversations of codex"):
        here.take("codex", tmp_path)
    with pytest.raises(NotFound, match="there is no"):
        here.take("codex", tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="conversations of `icq` cannot be read"):
        here.take("icq", tmp_path)


def test_the_session_folder_is_not_imported_into_itself(here, original):
    here.take("openclaw", original)

    with pytest.raises(PathNotAllowed, match="the session folder itself"):
        here.take("openclaw", here.folder)


def test_lines_that_are_too_long_are_named_and_what_follows_is_kept(here, write):
    limit = 16 << 20
    path = write(
        f"{FOLDER}/{SESSION}.jsonl",
        [
            header(),
            message("e1", None, "user", "x" * limit),  # cannot be read
            message(
                "e2", None, "user", "x" * (limit - 140)
            ),  # could be read, but not with its origin beside it
            message("e3", None, "user", "still here"),
            message("e4", None, "user", "y" * limit),
        ],
    )

    report = here.take("openclaw", path)

    assert [(damage.line, "16 MB" in damage.reason) for damage in report.damaged] == [
        (2, True),
        (3, True),
        (5, True),
    ]
    add(path, message("e5", None, "user", "and here"))
    assert here.take("openclaw", path).damaged == ()
    assert here.spoken(SESSION) == ["User: still here", "User: and here"]


def test_a_transcript_that_vanished_from_our_folder_is_left_out(here, original):
    here.take("openclaw", original)
    os.unlink(here.store.open(SESSION).path)
    add(original, message("e2", "e1", "user", "two"))

    report = here.take("openclaw", original)

    assert (report.imported, [left.reason for left in report.left_out]) == ((), [REMOVED_HERE])


@pytest.mark.parametrize(
    "damage",
    [b"", b"nonsense", b'{"files": 3}', b'{"files": {"/a": 1, "/b": {"is": [], "read": {"x": [1]}}}}'],
)
def test_a_damaged_ledger_costs_only_time(here, original, damage):
    here.take("openclaw", original)
    with open(os.path.join(here.folder, ".plainmind", "imports.json"), "wb") as file:
        file.write(damage)

    assert here.take("openclaw", original).imported == ()
    assert here.spoken(SESSION) == ["User: one"]


def test_progress_names_each_file(here, original, write):
    write(f"{FOLDER}/other-1.jsonl", [header(session="other-1"), message("e1", None, "user", "hi")])
    seen = []

    Importer("openclaw", lambda _: here.folder).run(str(original.parent), progress=seen.append)

    assert [(step.completed, step.total) for step in seen] == [(0, 2), (1, 2)]
    assert {step.label for step in seen} == {f"{SESSION}.jsonl", "other-1.jsonl"}


def test_what_is_neither_file_nor_folder_is_refused(here, tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")

    with pytest.raises(PathNotAllowed, match="neither a file nor a folder"):
        here.take("messages", tmp_path / "pipe.jsonl")


def test_a_link_is_not_followed(here, original, tmp_path):
    (tmp_path / "elsewhere.jsonl").write_bytes(original.read_bytes())
    (original.parent / f"z{SESSION[1:]}.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")

    assert len(here.take("openclaw", original.parent).imported) == 1


def test_watching_imports_again_and_again_until_it_is_enough(here, original):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        add(original, message(f"w{len(waits)}", None, "user", f"round {len(waits)}"))
        return len(waits) == 3

    reports = list(Importer("openclaw", lambda _: here.folder).follow(str(original), wait=wait))

    assert [report.messages for report in reports] == [1, 1, 1]
    assert here.spoken(SESSION) == ["User: one", "User: round 1", "User: round 2"]
    assert min(waits) >= 2.0


def test_watching_outlives_what_fails_for_a_while(here, original):
    away = original.parent.with_name("away")
    steps = [lambda: original.parent.rename(away), lambda: away.rename(original.parent), lambda: None]

    def wait(_):
        steps.pop(0)()
        return not steps

    reports = list(Importer("openclaw", lambda _: here.folder).follow(str(original), wait=wait))

    assert [len(report.failed) for report in reports] == [0, 1, 0]
    with pytest.raises(NotFound):
        next(Importer("openclaw", lambda _: here.folder).follow("/nowhere", wait=lambda _: True))


IMPORT = """
import sys
from plainmind.guests.importers.importer import Importer
Importer("openclaw", lambda _: sys.argv[2]).run(sys.argv[1])
"""


@pytest.mark.timeout(60)
def test_killed_anywhere_an_import_is_finished_by_the_next_one(here, write, tmp_path):
    for number in range(40):
        session = f"{number:08x}{SESSION[8:]}"
        lines = [message(f"e{line}", None, "user", f"{number} {line} {'x' * 200}") for line in range(50)]
        write(f"{FOLDER}/{session}.jsonl", [header(session=session), *lines])
    for made in (0, 1, 4, 9, 20, 35):
        process = subprocess.Popen([sys.executable, "-c", IMPORT, str(tmp_path / "state"), here.folder])
        until(lambda made=made: len([*Path(here.folder).glob("*.jsonl")]) >= made)
        process.send_signal(signal.SIGKILL)
        process.wait()

    here.take("openclaw", tmp_path / "state")

    rows = here.store.list()
    assert len(rows) == 40
    for row in rows:
        number = int(row.id[:8], 16)
        assert here.spoken(row.id) == [f"User: {number} {line} {'x' * 200}" for line in range(50)]


@pytest.mark.timeout(60)
def test_two_imports_at_once_double_nothing(here, write, tmp_path):
    lines = [message(f"e{line}", None, "user", f"{line}") for line in range(300)]
    write(f"{FOLDER}/{SESSION}.jsonl", [header(), *lines])
    command = [sys.executable, "-c", IMPORT, str(tmp_path / "state"), here.folder]

    processes = [subprocess.Popen(command) for _ in range(3)]

    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert here.spoken(SESSION) == [f"User: {line}" for line in range(300)]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(50),
    deadline=None,
)
@given(
    st.lists(
        st.binary(max_size=30) | st.sampled_from([b'{"type":"message","id":"x"}', b"\xef\xbb\xbf{}", b"[1]"])
    ),
    st.binary(max_size=20),
)
def test_no_bytes_make_an_import_raise_or_lose_a_good_line(tmp_path_factory, lines, tail):
    from tests.guests.importers.conftest import Here

    folder = tmp_path_factory.mktemp("any")
    here = Here(str(folder / "ours"))
    path = folder / f"{SESSION}.jsonl"
    good = as_line(message("good", None, "user", "still here"))
    path.write_bytes(b"\n".join([*lines, b""]) + good + tail)

    here.take("openclaw", path)

    assert here.spoken(SESSION).count("User: still here") == 1


def test_a_long_first_message_is_cut_between_words_to_name_the_session(here, write):
    words = (
        "Which of the two woods shall we take for the hull, if the keel is to be oak and the deck is pine?"
    )
    here.take("openclaw", write(f"{FOLDER}/{SESSION}.jsonl", [header(), message("e1", None, "user", words)]))
    here.take(
        "openclaw",
        write(f"{FOLDER}/{OTHER}.jsonl", [header(session=OTHER), message("e1", None, "user", "x" * 99)]),
    )

    title = here.store.entry(SESSION)["displayName"]
    assert 70 < len(title) <= 80
    assert words.startswith(f"{title.removesuffix('…')} ")
    assert here.store.entry(OTHER)["displayName"] == "x" * 79 + "…"
