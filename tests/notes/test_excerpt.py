import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError
from plainmind.base.model import Excerpt, split_lines
from plainmind.notes.excerpt import excerpt, read_excerpt
from plainmind.notes.workspace import Workspace


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "ten.md").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    (tmp_path / "memory" / "empty.md").write_text("")
    (tmp_path / "memory" / "long.md").write_text("".join(f"{number}\n" for number in range(1, 301)))
    return Workspace(str(tmp_path))


def test_a_short_file_is_read_whole(workspace):
    text = "\n".join(f"line {number}" for number in range(1, 11))

    assert read_excerpt(workspace, "memory/ten.md") == Excerpt("memory/ten.md", text, 1, 10, truncated=False)


def test_a_long_file_stops_after_120_lines_and_says_where_to_go_on(workspace):
    first = read_excerpt(workspace, "memory/long.md")
    second = read_excerpt(workspace, "memory/long.md", first_line=first.next_line)
    third = read_excerpt(workspace, "memory/long.md", first_line=second.next_line)

    assert [(e.first_line, e.line_count, e.truncated, e.next_line) for e in (first, second, third)] == [
        (1, 120, True, 121),
        (121, 120, True, 241),
        (241, 60, False, None),
    ]
    assert "\n".join(e.text for e in (first, second, third)).split("\n") == [str(n) for n in range(1, 301)]


def test_no_line_count_reads_to_the_end(workspace):
    assert read_excerpt(workspace, "memory/long.md", first_line=2, line_count=None).line_count == 299


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("memory/ten.md#L3-L4", "line 3\nline 4"),
        ("memory/ten.md#L3-4", "line 3\nline 4"),
        ("memory/ten.md#l3-l4", "line 3\nline 4"),
        ("memory/ten.md#L10", "line 10"),
        ("memory/ten.md:3-4", "line 3\nline 4"),
        ("memory/ten.md:3", "line 3"),
        ("memory/ten.md:9-400", "line 9\nline 10"),
        ("./memory/ten.md#L1", "line 1"),
    ],
)
def test_a_citation_names_its_lines(workspace, path, text):
    result = read_excerpt(workspace, path, first_line=7, line_count=1)

    assert result.text == text
    assert result.path == "memory/ten.md"


def test_past_the_end_there_is_no_text(workspace):
    for path, first in (("memory/ten.md", 11), ("memory/ten.md", 10**18), ("memory/empty.md", 1)):
        assert read_excerpt(workspace, path, first_line=first) == Excerpt(path, "", first, 0, truncated=False)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"first_line": 0}, NotFound, "no line 0"),
        ({"first_line": -3}, NotFound, "no line -3"),
        ({"line_count": 0}, PlainmindError, "cannot read 0 lines"),
        ({"line_count": -1}, PlainmindError, "cannot read -1 lines"),
        ({"max_chars": 0}, PlainmindError, "cannot read 0 characters"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(workspace, arguments, kind, words):
    with pytest.raises(kind, match=words) as caught:
        read_excerpt(workspace, "memory/ten.md", **arguments)
    assert caught.value.hint


@pytest.mark.parametrize("path", ["memory/ten.md#L0", "memory/ten.md:7-3"])
def test_a_citation_of_impossible_lines_is_refused(workspace, path):
    with pytest.raises(PlainmindError):
        read_excerpt(workspace, path)


def test_a_path_outside_stays_outside_with_line_numbers_too(workspace):
    with pytest.raises(PathNotAllowed):
        read_excerpt(workspace, "../secret.md#L1-L2")


def test_a_limit_of_characters_drops_whole_lines(workspace):
    result = read_excerpt(workspace, "memory/ten.md", max_chars=15)

    assert (result.text, result.line_count, result.truncated, result.next_line) == (
        "line 1\nline 2",
        2,
        True,
        3,
    )


def test_a_limit_that_ends_exactly_with_a_line_keeps_it():
    assert excerpt("p", "abc\ndef\n", 1, None, 3) == Excerpt("p", "abc", 1, 1, truncated=True, next_line=2)
    assert excerpt("p", "abc\ndef\n", 1, None, 7) == Excerpt("p", "abc\ndef", 1, 2, truncated=False)


def test_a_first_line_over_the_limit_is_cut_and_reading_goes_on_after_it():
    assert excerpt("p", "abcdef\nghi", 1, 2, 4) == Excerpt("p", "abcd", 1, 1, truncated=True, next_line=2)
    assert excerpt("p", "abcdef", 1, 2, 4) == Excerpt("p", "abcd", 1, 1, truncated=True, next_line=None)


def test_a_million_lines_are_read_without_listing_them(tmp_path):
    (tmp_path / "MEMORY.md").write_text("some text\n" * 1_000_000)

    result = read_excerpt(Workspace(str(tmp_path)), "MEMORY.md", first_line=999_999)

    assert (result.line_count, result.next_line) == (2, None)


LINE_ENDS = [b"\n", b"\r", b"\r\n"]
NO_LINE_ENDS = ["\u2028", "\x0b", "\x0c", "\x85", "\x1c", "日", "\U0001f600", "word "]
BAD_BYTES = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\xe6\x97"]
PIECES = st.lists(
    st.sampled_from([*LINE_ENDS, *BAD_BYTES, *(text.encode() for text in NO_LINE_ENDS)]), max_size=60
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(pieces=PIECES, step=st.integers(1, 5))
def test_the_lines_of_an_excerpt_are_the_lines_of_the_index(workspace, pieces, step):
    with open(f"{workspace.path}/memory/fuzz.md", "wb") as file:
        file.write(b"".join(pieces))
    indexed = split_lines(workspace.read("memory/fuzz.md")[0].text)

    seen = []
    next_line = 1
    while next_line is not None:
        part = read_excerpt(workspace, "memory/fuzz.md", first_line=next_line, line_count=step)
        assert part.truncated == (part.next_line is not None)
        if part.line_count:
            seen += part.text.split("\n")
        next_line = part.next_line

    assert seen == indexed
    for number, line in enumerate(indexed, start=1):
        assert read_excerpt(workspace, f"memory/fuzz.md#L{number}").text == line


@given(
    text=st.text(alphabet="a\n", max_size=40),
    first=st.integers(1, 12),
    count=st.none() | st.integers(1, 12),
    max_chars=st.none() | st.integers(1, 20),
)
def test_an_excerpt_is_a_slice_of_the_lines(text, first, count, max_chars):
    lines = split_lines(text)
    wanted = lines[first - 1 :][:count]

    result = excerpt("p", text, first, count, max_chars)

    if max_chars is None or len("\n".join(wanted)) <= max_chars:
        assert (result.text, result.line_count) == ("\n".join(wanted), len(wanted))
        assert result.truncated == (first - 1 + len(wanted) < len(lines) and bool(wanted))
    else:
        assert len(result.text) <= max_chars
        assert "\n".join(wanted).startswith(result.text)
        assert result.line_count == result.text.count("\n") + 1
        assert result.truncated
    assert result.next_line in {None, first + result.line_count}
