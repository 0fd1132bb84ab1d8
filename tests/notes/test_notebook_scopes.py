"""Notes of groups and of other people go to folders of their own; a note that is tried again stands once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from plainmind.base.errors import ConflictError, PlainmindError, WorkspaceError
from plainmind.base.model import PRIVATE
from plainmind.files.history import History
from plainmind.files.system import Erasures
from plainmind.notes.notebook import Notebook
from plainmind.notes.workspace import Workspace


class Clock:
    """A clock that is set by hand."""

    def __init__(self, at="2026-02-10T12:00", zone="Europe/Vienna"):
        self.zone = ZoneInfo(zone)
        self.now = datetime.fromisoformat(at).replace(tzinfo=self.zone)

    def __call__(self):
        return self.now


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    return tmp_path / "ws"


def notebook(folder, clock):
    state = str(folder.parent / "state")
    return Notebook(
        Workspace(str(folder)),
        History(state + "/history"),
        erasures=Erasures(state),
        state_dir=state,
        now=clock,
    )


def all_notes(folder):
    return "".join(path.read_text() for path in sorted(folder.rglob("*.md")))


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        (PRIVATE, "memory/2026-02-10.md"),
        ("group:-100", "memory/shared-with/group--100/2026-02-10.md"),
        ("group:../../../up", "memory/shared-with/group-..%2F..%2F..%2Fup/2026-02-10.md"),
        ("person:anna", "memory/shared-with/person-anna/2026-02-10.md"),
        ("shared", "memory/shared-with/everyone/2026-02-10.md"),
    ],
)
def test_a_note_goes_to_the_log_of_its_scope(folder, scope, path):
    remembered = notebook(folder, Clock()).remember_for(scope, "the tent is in the cellar")

    assert remembered.path == path
    assert (folder / path).read_text() == (
        f"# 2026-02-10\n\n- 12:00 the tent is in the cellar <!-- m:{remembered.id} -->\n"
    )
    assert len(list(folder.rglob("*.md"))) == 1


def test_a_scope_without_a_folder_takes_no_notes(folder):
    with pytest.raises(WorkspaceError, match="no notes can be kept"):
        notebook(folder, Clock()).remember_for("team:7", "text")


def test_a_folder_that_is_a_link_is_not_written_through(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "memory" / "shared-with").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(WorkspaceError):
        notebook(folder, Clock()).remember_for("group:7", "text")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_on_a_disk_that_takes_both_names_for_one_no_note_goes_to_another_group(folder, monkeypatch):
    book = notebook(folder, Clock())
    book.remember_for("group:abc", "ours")
    shared = folder / "memory" / "shared-with"
    (shared / "group-ABC").symlink_to(shared / "group-abc")  # such a disk finds the one by the other name,
    listed = ["group-abc"]  # and lists only the name that was given first
    monkeypatch.setattr("plainmind.notes.notebook.os.listdir", lambda _: listed)

    with pytest.raises(WorkspaceError, match="takes both names for the same"):
        book.remember_for("group:ABC", "theirs")


@pytest.mark.parametrize("scope", [PRIVATE, "group:-100"])
@pytest.mark.parametrize("text", ["one line", "## several\n\nlines\nof text"])
def test_a_note_that_is_tried_again_stands_once(folder, scope, text):
    book = notebook(folder, Clock())
    first = book.remember_for(scope, text, note_id="flush-1")
    before = all_notes(folder)

    assert book.remember_for(scope, "another wording", note_id="flush-1") == first
    assert all_notes(folder) == before


@pytest.mark.parametrize("days", [-400, -1, 1, 2, 30])
def test_a_note_that_is_tried_again_on_another_day_stands_once(folder, days):
    clock = Clock()
    book = notebook(folder, clock)
    first = book.remember_for(PRIVATE, "text", note_id="flush-1")
    clock.now += timedelta(days=days)

    assert book.remember_for(PRIVATE, "text", note_id="flush-1") == first
    assert all_notes(folder).count("flush-1") == 1


def test_the_place_of_a_standing_note_is_where_it_stands_now(folder):
    book = notebook(folder, Clock())
    first = book.remember_for(PRIVATE, "text", note_id="flush-1")
    log = folder / first.path
    log.write_text("# A title\n\nwritten above it by hand\n" + log.read_text())

    again = book.remember_for(PRIVATE, "text", note_id="flush-1")

    assert (again.start_line, again.end_line) == (first.start_line + 3, first.end_line + 3)


def test_a_note_that_somebody_has_joined_to_another_still_counts(folder):
    clock = Clock()
    book = notebook(folder, clock)
    (folder / "memory" / "2026-02-09.md").write_text("- one <!-- m:a --> and two <!-- m:n-1 -->\r\n")

    again = book.remember_for(PRIVATE, "two", note_id="n-1")

    assert (again.path, again.start_line, again.end_line) == ("memory/2026-02-09.md", 1, 1)


def test_what_is_no_log_of_ours_is_not_looked_at(folder, tmp_path):
    (tmp_path / "elsewhere.md").write_text("- text <!-- m:n-1 -->\n")
    (folder / "memory" / "2026-02-08.md").hardlink_to(tmp_path / "elsewhere.md")
    (folder / "memory" / "2026-02-07.md").symlink_to(tmp_path / "elsewhere.md")
    (folder / "memory" / "people.md").write_text("- text <!-- m:n-1 -->\n")

    assert (
        notebook(folder, Clock()).remember_for(PRIVATE, "text", note_id="n-1").path == "memory/2026-02-10.md"
    )


def test_a_note_that_was_removed_is_not_written_a_second_time_under_its_id(folder):
    book = notebook(folder, Clock())
    first = book.remember_for(PRIVATE, "text", note_id="flush-1")
    (folder / first.path).write_text("# by hand\n")

    with pytest.raises(ConflictError, match="removed since"):
        book.remember_for(PRIVATE, "text", note_id="flush-1")

    assert (folder / first.path).read_text() == "# by hand\n"
    assert book.remember_for(PRIVATE, "text", note_id="flush-2").path == first.path


def test_the_same_id_in_another_scope_is_another_note(folder):
    book = notebook(folder, Clock())

    places = {
        book.remember_for(scope, "text", note_id="n-1").path for scope in (PRIVATE, "group:1", "group:2")
    }

    assert len(places) == 3


def test_an_id_that_is_the_beginning_of_another_is_not_taken_for_it(folder):
    book = notebook(folder, Clock())
    book.remember_for(PRIVATE, "text", note_id="flush-11")

    book.remember_for(PRIVATE, "text", note_id="flush-1")

    assert all_notes(folder).count("<!-- m:flush-1") == 2


def test_two_that_try_the_same_note_around_midnight_write_it_once(folder):
    before = notebook(folder, Clock("2026-02-10T23:59:59"))
    after = notebook(folder, Clock("2026-02-11T00:00:00"))

    with ThreadPoolExecutor(8) as pool:
        places = list(
            pool.map(
                lambda number: (before if number % 2 else after).remember_for(PRIVATE, "text", note_id="n-1"),
                range(16),
            )
        )

    assert len(set(places)) == 1
    assert all_notes(folder).count("m:n-1") == 1


ZONES = [
    "UTC",
    "Etc/GMT+12",
    "Pacific/Kiritimati",
    "Europe/Vienna",
    "America/St_Johns",
    "Australia/Lord_Howe",
]
# Midnight somewhere, clocks set forward and back in Vienna and on Lord Howe, a leap day, the last year of all.
MOMENTS = [
    "2026-02-10T00:00", "2026-02-10T10:00", "2026-02-10T12:00", "2026-02-10T03:30", "2026-03-29T01:00",
    "2026-10-25T01:00", "2026-04-04T15:00", "2026-10-03T15:30", "2028-02-29T23:00", "9999-12-30T12:00",
]  # fmt: skip
instants = st.one_of(
    st.builds(
        lambda moment, seconds: (
            datetime.fromisoformat(moment).replace(tzinfo=UTC) + timedelta(seconds=seconds)
        ),
        st.sampled_from(MOMENTS),
        st.sampled_from([-86_400, -1, 0, 1, 3599, 3600]),
    ),
    st.datetimes(
        datetime.fromisoformat("1990-01-01"), datetime.fromisoformat("9999-12-30"), timezones=st.just(UTC)
    ),
)


@pytest.mark.slow
@pytest.mark.timeout(60)
@settings(max_examples=examples(200), deadline=None)
@given(
    moments=st.lists(instants, min_size=1, max_size=4),
    zone=st.sampled_from(ZONES),
    scope=st.sampled_from([PRIVATE, "group:7"]),
)
def test_whatever_the_clock_does_a_note_goes_to_the_day_of_its_append_and_none_is_lost(
    tmp_path_factory, moments, zone, scope
):
    folder = tmp_path_factory.mktemp("ws")
    (folder / "memory").mkdir()
    clock = Clock(zone=zone)
    book = notebook(folder, clock)

    ids = []
    for number, moment in enumerate(moments):
        clock.now = moment.astimezone(clock.zone)
        remembered = book.remember_for(scope, f"note {number}")
        assert remembered.path.endswith(f"/{clock.now.date().isoformat()}.md")
        ids.append(remembered.id)

    assert len(set(ids)) == len(moments)
    assert all(all_notes(folder).count(note_id) == 1 for note_id in ids)


def test_an_empty_note_is_refused_before_anything_is_made(folder):
    with pytest.raises(PlainmindError, match="nothing to remember"):
        notebook(folder, Clock()).remember_for("group:7", " \n")

    assert not (folder / "memory" / "shared-with").exists()
