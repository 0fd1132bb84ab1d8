"""A citation of a message shows who said what and when, and never more than asked for."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.transcript_files import line, message

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError
from plainmind.notes.excerpt import read_excerpt
from plainmind.notes.workspace import Workspace
from plainmind.sessions.transcripts import Transcripts, read_messages


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "a.jsonl").write_bytes(
        b'{"type":"session","id":"a"}\n'
        + line("user", "where is\nthe gateway?", timestamp="2026-02-10T09:31:07Z")
        + line("toolResult", "a table of servers")
        + line("assistant", "In the cellar, its key is s3cret.")
        + b"{torn\n"
        + message("user", "thanks")
    )
    return tmp_path


@pytest.fixture
def get(folder):
    source = Transcripts(
        str(folder / "sessions"), redact=lambda text: text.replace("s3cret", "[hidden]"), zone=UTC
    )

    def read(path, **how):
        return read_excerpt(Workspace(str(folder)), path, transcripts=source, **how)

    return read


@pytest.mark.parametrize("path", ["sessions/a.jsonl#L2", "sessions/a.jsonl:2", "./sessions/a.jsonl#L2-L3"])
def test_a_cited_message_is_shown_with_its_speaker_and_its_time(get, path):
    found = get(path)

    assert found.text == "User (2026-02-10 09:31): where is\nthe gateway?"
    assert (found.path, found.first_line, found.truncated) == ("sessions/a.jsonl", 2, True)
    assert found.next_line == 2 + found.line_count


def test_a_whole_conversation_is_shown_without_tools_and_without_secrets(get):
    found = get("sessions/a.jsonl")

    assert found.text.split("\n\n") == [
        "User (2026-02-10 09:31): where is\nthe gateway?",
        "Assistant: In the cellar, its key is [hidden].",
        "User: thanks",
    ]
    assert (found.line_count, found.truncated, found.next_line) == (6, False, None)


def test_secrets_are_shown_when_they_are_asked_for(folder):
    source = Transcripts(str(folder / "sessions"), redact=lambda text: text.replace("s3cret", "[hidden]"))

    found = read_messages(source, "sessions/a.jsonl", 4, 1, None, redacted=False)

    assert found.text == "Assistant: In the cellar, its key is s3cret."


def test_a_line_without_a_message_is_there_and_says_nothing(get):
    found = get("sessions/a.jsonl#L3")

    assert (found.text, found.line_count, found.next_line) == ("", 1, 4)


@pytest.mark.parametrize("first_line", [7, 10**12])
def test_past_the_end_there_is_nothing(get, first_line):
    found = get("sessions/a.jsonl", first_line=first_line)

    assert (found.text, found.line_count, found.truncated) == ("", 0, False)


def test_whole_messages_are_left_for_the_next_time_and_only_a_first_one_is_cut(get):
    first = get("sessions/a.jsonl", max_chars=60)
    second = get("sessions/a.jsonl", max_chars=60, first_line=first.next_line)
    cut = get("sessions/a.jsonl#L2", max_chars=10)

    assert (first.text, first.next_line) == ("User (2026-02-10 09:31): where is\nthe gateway?", 4)
    assert second.text.startswith("Assistant: In the cellar")
    assert (cut.text, cut.truncated) == ("User (2026", True)


def test_what_is_no_transcript_is_refused(get):
    with pytest.raises(PathNotAllowed):
        get("sessions/../MEMORY.md")
    with pytest.raises(NotFound):
        get("sessions/b.jsonl#L3")
    with pytest.raises(NotFound):
        get("sessions/a.jsonl#L0")


def test_without_transcripts_their_paths_are_not_part_of_the_memory(folder):
    with pytest.raises(PlainmindError):
        read_excerpt(Workspace(str(folder)), "sessions/a.jsonl#L2")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(
    st.lists(st.text(max_size=60), max_size=12),
    st.integers(1, 14),
    st.none() | st.integers(1, 14),
    st.none() | st.integers(1, 200),
)
def test_going_on_shows_every_message_once(folder, texts, first, count, most):
    (folder / "sessions" / "b.jsonl").write_bytes(b"".join(line("user", text) for text in texts))
    source = Transcripts(str(folder / "sessions"))

    shown, at = 0, first
    for _ in range(20):
        found = read_messages(source, "sessions/b.jsonl", at, count, most)
        assert most is None or len(found.text) <= most
        assert count is None or found.line_count <= count
        shown += found.line_count
        if found.next_line is None:
            break
        at = found.next_line

    assert shown == max(0, len(texts) - first + 1)
