import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.notes.workspace import day_of


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-02-10.md", "2026-02-10"),
        ("memory/2026-02-10-gateway-move.md", "2026-02-10"),
        ("memory/work/2026-02-10-standup.md", "2026-02-10"),
        ("memory/2026/02/2026-02-10.md", "2026-02-10"),
        ("vault/2026-02-10-会议.MD", "2026-02-10"),
        ("2024-02-29.md", "2024-02-29"),
        ("memory/9999-12-31.md", "9999-12-31"),
    ],
)
def test_the_day_is_the_date_in_the_name(path, day):
    assert day_of(path) == day


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "memory/projects.md",
        "memory/2026-02-30.md",
        "memory/2025-02-29.md",
        "memory/2026-13-01.md",
        "memory/0000-01-01.md",
        "memory/2026-2-1.md",
        "memory/2026-02-10-.md",
        "memory/2026-02-100.md",
        "memory/2026-02-10.txt",
        "memory/notes-2026-02-10.md",
        "memory/2026-02-10/notes.md",
        "memory/2026-02-10-a/notes.md",
        "memory/２０２６-02-10.md",
        "memory/2026-02-10.md\n",
        "",
    ],
)
def test_every_other_name_is_evergreen(path):
    assert day_of(path) is None


@given(st.dates(), st.from_regex(r"(-[a-z0-9-]{1,9})?", fullmatch=True))
def test_every_date_of_the_calendar_is_recognised(date, slug):
    assert day_of(f"memory/{date.isoformat()}{slug}.md") == date.isoformat()
