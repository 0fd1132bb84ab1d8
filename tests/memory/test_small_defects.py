"""What went wrong in daily use, each seen once and never again."""

from __future__ import annotations

import shutil
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest

from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.memory.memory import Memory


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    with Memory(tmp_path / "notes", home=tmp_path / "home") as made:
        yield made


def log_of(memory, tmp_path, note):
    return (tmp_path / "notes" / note.path).read_text()


def shape(text):
    """The lines without times and ids."""
    import re

    bare = re.sub(r" ?<!-- m:\w+ -->", "", text)
    return [
        re.sub(r"\d\d:\d\d", "TIME", line) for line in bare.split("\n") if line and not line.startswith("# ")
    ]


def test_a_short_note_after_a_long_one_stands_under_its_own_heading(memory, tmp_path):
    memory.remember("first")
    memory.remember("A plan.\n\nWith a second paragraph.")
    memory.remember("second")
    note = memory.remember("third")

    assert shape(log_of(memory, tmp_path, note)) == [
        "- TIME first",
        "## TIME",
        "A plan.",
        "With a second paragraph.",
        "## TIME",
        "second",
        "## TIME",
        "third",
    ]
    memory.forget(note.id)
    assert "third" not in log_of(memory, tmp_path, note)
    assert "second" in log_of(memory, tmp_path, note)


def test_a_short_note_does_not_land_under_a_heading_of_somebody_else(memory, tmp_path):
    note = memory.remember("first")
    with (tmp_path / "notes" / note.path).open("a") as log:
        log.write("\n## Shopping\n\n- milk\n")

    memory.remember("the plumber comes")

    assert shape(log_of(memory, tmp_path, note))[-2:] == ["## TIME", "the plumber comes"]


def test_a_durable_note_after_a_long_one_with_headings_is_not_a_part_of_it(memory, tmp_path):
    note = memory.remember("A plan.\n\n## Steps\n\n- one", durable=True)
    memory.remember("Prefers tea.", durable=True)
    memory.remember("Prefers trains.", durable=True)

    assert shape(log_of(memory, tmp_path, note)) == [
        "A plan.",
        "#### Steps",
        "- one",
        "## Remembered",
        "- Prefers tea.",
        "- Prefers trains.",
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- [ ] call the plumber", "- [ ] TIME call the plumber"),
        ("* [x] call the plumber", "- [x] TIME call the plumber"),
        ("[ ] call the plumber", "- [ ] TIME call the plumber"),
        ("- call the plumber", "- TIME call the plumber"),
        ("-5 degrees", "- TIME -5 degrees"),
        ("[x](y.md) is a link", "- TIME [x](y.md) is a link"),
    ],
)
def test_a_task_stays_a_task(memory, tmp_path, text, written):
    assert shape(log_of(memory, tmp_path, memory.remember(text))) == [written]


def test_what_git_takes_away_is_gone_from_the_index_at_once_and_named(memory, tmp_path):
    folder = tmp_path / "notes"

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)

    (folder / "MEMORY.md").write_text("# Memory\n")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "more")
    for number in range(8):
        (folder / "memory" / f"{number}.md").write_text(f"# Note {number}\n\nabout larch {number}\n")
    git("add", "-A")
    git("commit", "-qm", "two")
    memory.sync()

    git("checkout", "-q", "main")
    report = memory.sync()

    assert (len(report.removed), report.withheld) == (8, ())
    assert not [hit for hit in memory.search("larch", min_score=0).hits if "larch" in hit.snippet]


def test_a_folder_that_is_empty_now_may_only_be_unmounted(memory, tmp_path):
    folder = tmp_path / "notes"
    (folder / "MEMORY.md").write_text("# Memory\n")
    for number in range(8):
        (folder / "memory" / f"{number}.md").write_text(f"about larch {number}\n")
    memory.sync()
    shutil.rmtree(folder / "memory")
    (folder / "memory").mkdir()

    assert len(memory.sync().withheld) == 8


def test_the_latest_note_is_taken_back_and_then_the_one_before(memory, tmp_path):
    memory.remember("first")
    memory.remember("second")
    note = memory.remember("A plan.\n\nWith more.")

    undone = [memory.undo() for _ in range(2)]

    assert [(one.path, one.operation) for one in undone] == [(note.path, "append")] * 2
    assert "A plan." in undone[0].text
    assert shape(log_of(memory, tmp_path, note)) == ["- TIME first"]
    assert memory.missing_notes() == ()
    memory.undo()
    with pytest.raises(NotFound, match="nothing to undo"):
        memory.undo()


def test_an_edit_is_taken_back_and_a_new_change_after_it_first(memory, tmp_path):
    file = tmp_path / "notes" / "MEMORY.md"
    file.write_text("# Memory\n\nThe boat is red.\n")
    memory.edit("MEMORY.md", "red", "blue")
    memory.edit("MEMORY.md", "blue", "green")
    memory.undo()
    assert "blue" in file.read_text()
    memory.edit("MEMORY.md", "blue", "black")

    assert memory.undo().path == "MEMORY.md"
    assert "blue" in file.read_text()
    memory.undo()
    assert "red" in file.read_text()


def test_what_somebody_changed_since_is_not_overwritten(memory, tmp_path):
    file = tmp_path / "notes" / "MEMORY.md"
    file.write_text("# Memory\n\nThe boat is red.\n")
    memory.edit("MEMORY.md", "red", "blue")
    file.write_text("# Memory\n\nThe boat is blue, and old.\n")

    with pytest.raises(ConflictError, match="changed since") as refused:
        memory.undo()
    assert "plainmind history MEMORY.md" in refused.value.hint
    assert "and old" in file.read_text()


def test_what_was_forgotten_stays_forgotten(memory):
    memory.remember("the code is 1234")
    memory.forget("the code is 1234")

    with pytest.raises(PlainmindError, match="forgotten"):
        memory.undo()


@pytest.mark.parametrize("settings", [{}, {"userTimezone": "Europe/Berlin"}], ids=["system's", "named"])
def test_a_time_of_summer_is_told_in_winter_as_the_clock_showed_it(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        (tmp_path / "notes").mkdir()
        with Memory(tmp_path / "notes", home=tmp_path / "home", config=settings) as memory:
            zone = memory.now().tzinfo
        for day, hour in (((2026, 8, 21), 6), ((2026, 12, 21), 7)):
            shown = datetime(*day, hour, tzinfo=UTC).astimezone(zone)
            assert (shown.hour, shown.utcoffset()) == (8, timedelta(hours=8 - hour))
            assert shown == datetime(*day, hour, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
