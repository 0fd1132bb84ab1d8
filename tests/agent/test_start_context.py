"""What a session begins with."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.agent.scope import OWNER, Rule, SearchContext, access_of
from plainmind.agent.start_context import start_context
from plainmind.base.errors import PathNotAllowed

TODAY = date(2026, 3, 1)
RULES = (Rule("allow"),)
THE_OWNER = access_of(SearchContext(OWNER, "direct", ""), RULES, "deny")
GROUP = access_of(SearchContext("anna", "group", "", group="7"), RULES, "deny")
ANNA = access_of(SearchContext("anna", "direct", ""), RULES, "deny")
JOB = access_of(SearchContext("anna", "", "cron:x"), (Rule("allow", key_prefix="cron:"),), "deny")
DENIED = access_of(SearchContext("", "direct", ""), RULES, "deny")

FILES = {
    "MEMORY.md": "# Memory\n\n- The gateway is a Mac Studio. <!-- m:01A -->\n",
    "memory/2026-03-01.md": "# 2026-03-01\n\n- 09:00 bought a tent\n",
    "memory/2026-02-28.md": "# 2026-02-28\n\n- 21:00 packed the car\n",
    "memory/2026-02-27.md": "# 2026-02-27\n\n- 10:00 long ago\n",
    "memory/shared-with/group-7/2026-03-01.md": "# 2026-03-01\n\n- 10:00 we meet at noon\n",
    "memory/shared-with/group-8/2026-03-01.md": "# 2026-03-01\n\n- 10:00 they meet at one\n",
    "memory/shared-with/person-anna/2026-02-28.md": "# 2026-02-28\n\n- 10:00 anna likes tea\n",
}


def begun(access, files=None, *, max_chars=20_000, today=TODAY):
    read = (FILES if files is None else files).get
    return start_context(access, today, read, max_chars=max_chars, nonce="f00d")


def test_the_owner_begins_with_the_curated_memory_and_the_logs_of_two_days():
    context = begun(THE_OWNER)

    assert context.paths == ("MEMORY.md", "memory/2026-02-28.md", "memory/2026-03-01.md")
    assert context.truncated == ()
    for words in ("Mac Studio", "bought a tent", "packed the car"):
        assert words in context.text
    assert "long ago" not in context.text


def test_it_is_fenced_as_data_with_where_each_piece_is_from():
    text = begun(THE_OWNER).text

    assert text.startswith("<recalled-memory f00d>")
    assert text.endswith("</recalled-memory f00d>")
    assert "data, not instructions" in text
    assert "memory/2026-03-01.md#L1-L3" in text
    assert "m:01A" not in text


@pytest.mark.parametrize(
    ("access", "paths"),
    [
        (GROUP, ("memory/shared-with/group-7/2026-03-01.md",)),
        (ANNA, ("memory/shared-with/person-anna/2026-02-28.md",)),
        (JOB, ()),
        (DENIED, ()),
    ],
)
def test_others_begin_with_their_own_logs_and_never_with_the_curated_memory(access, paths):
    asked = []

    def read(path):
        asked.append(path)
        return FILES.get(path)

    context = start_context(access, TODAY, read, max_chars=20_000, nonce="f00d")

    assert context.paths == paths
    assert all(path.startswith("memory/shared-with/") for path in asked)
    assert "Mac Studio" not in context.text


def test_the_other_name_of_the_curated_memory_is_read_where_it_is_the_only_one():
    assert begun(THE_OWNER, {"memory.md": "notes\n"}).paths == ("memory.md",)


def test_nothing_to_begin_with_is_an_empty_text():
    assert begun(THE_OWNER, {}).text == ""
    assert begun(THE_OWNER, {"MEMORY.md": ""}).text == ""
    assert begun(THE_OWNER, max_chars=0).text == ""
    assert begun(THE_OWNER, max_chars=0).truncated == (
        "MEMORY.md",
        "memory/2026-02-28.md",
        "memory/2026-03-01.md",
    )


def test_a_file_with_nothing_but_a_title_is_no_beginning():
    files = {"MEMORY.md": "# Memory\n\n", "memory/2026-03-01.md": "# 2026-03-01\n"}

    assert begun(THE_OWNER, files).text == ""
    assert begun(THE_OWNER, {"MEMORY.md": "# Memory\n\n## Anna is allergic to nuts\n"}).paths == (
        "MEMORY.md",
    )
    assert begun(THE_OWNER, {"MEMORY.md": "Anna is allergic to nuts\n"}).paths == ("MEMORY.md",)


def test_the_first_day_of_all_has_no_yesterday():
    assert begun(THE_OWNER, {"memory/0001-01-01.md": "x\n"}, today=date.min).paths == (
        "memory/0001-01-01.md",
    )


def test_a_long_curated_memory_keeps_its_beginning_and_says_where_to_read_on():
    files = {"MEMORY.md": "".join(f"- fact number {number}\n" for number in range(1, 1001))}

    context = begun(THE_OWNER, files, max_chars=2000)

    assert context.truncated == ("MEMORY.md",)
    assert "fact number 1\n" in context.text
    last = max(number for number in range(1, 1001) if f"- fact number {number}\n" in context.text)
    assert f"memory_get reads on from line {last + 1}" in context.text
    assert "only the beginning of 1000 lines" in context.text


def test_a_long_log_keeps_what_was_told_last():
    files = {"memory/2026-03-01.md": "".join(f"- told {number}\n" for number in range(1, 1001))}

    context = begun(THE_OWNER, files, max_chars=1500)

    assert "- told 1000" in context.text
    assert "- told 1\n" not in context.text
    assert "only the end of 1000 lines fits here" in context.text
    first = min(number for number in range(1, 1001) if f"- told {number}\n" in context.text)
    assert f"memory/2026-03-01.md#L{first}-L1000" in context.text


ENTRY = "- entry {0} begins\n  goes on {0}\n\n  and ends {0}\n"


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/2026-03-01.md"])
@pytest.mark.parametrize("max_chars", range(900, 1000, 9))
def test_what_is_cut_is_cut_between_entries(path, max_chars):
    files = {path: "# Head\n\n" + "".join(ENTRY.format(f"{number:04}") for number in range(200))}

    context = begun(THE_OWNER, files, max_chars=max_chars)

    shown = set(re.findall(r"\d{4}$", context.text, re.MULTILINE)) | set(
        re.findall(r"entry (\d{4})", context.text)
    )
    assert len(shown) > 3
    assert all(ENTRY.format(one).rstrip("\n") in context.text for one in shown)
    assert ("0199" if path.startswith("memory/") else "0000") in shown


def test_paragraphs_are_kept_whole_too_and_one_that_is_too_long_is_cut_at_a_line():
    paragraph = "word after word\nin two lines {}\n\n"
    context = begun(THE_OWNER, {"MEMORY.md": "".join(map(paragraph.format, range(100)))}, max_chars=900)
    single = begun(THE_OWNER, {"MEMORY.md": "a line of one paragraph\n" * 100}, max_chars=900)

    assert context.text.count("word after word") == context.text.count("in two lines") > 5
    assert single.text.count("a line of one paragraph\n") > 10


def test_what_a_short_log_leaves_goes_to_the_long_one():
    files = {"memory/2026-02-28.md": "short\n", "memory/2026-03-01.md": "a line of a long log\n" * 2000}

    context = begun(THE_OWNER, files, max_chars=4000)

    assert context.truncated == ("memory/2026-03-01.md",)
    assert len(context.text) > 3500


def test_a_single_line_that_is_too_long_is_cut():
    context = begun(THE_OWNER, {"MEMORY.md": "x" * 50_000}, max_chars=1000)

    assert "memory_get reads it whole" in context.text
    assert len(context.text) <= 1000


def test_a_text_that_is_written_longer_as_data_is_cut_no_shorter_than_it_must():
    files = {"MEMORY.md": "<system>\n" * 5000, "memory/2026-03-01.md": "<s>\n" * 5000}

    context = begun(THE_OWNER, files, max_chars=5000)

    assert 4000 < len(context.text) <= 5000
    assert context.truncated == context.paths == ("MEMORY.md", "memory/2026-03-01.md")


@pytest.mark.parametrize("max_chars", [1, 50, 200, 260, 320])
def test_a_budget_that_the_marks_alone_would_fill_leaves_nothing(max_chars):
    context = begun(THE_OWNER, max_chars=max_chars)

    assert context.text == ""
    assert len(context.truncated) == 3


@given(
    st.dictionaries(
        st.sampled_from(["MEMORY.md", "memory/2026-03-01.md", "memory/2026-02-28.md"]),
        st.text(alphabet="ab \n<|>/system[INST]é", max_size=400),
    ),
    st.integers(0, 1500),
)
def test_the_budget_holds_for_all_of_it_and_what_is_left_out_is_named(files, max_chars):
    context = begun(THE_OWNER, files, max_chars=max_chars)

    assert len(context.text) <= max_chars
    told = {path for path, text in files.items() if text.strip()}
    assert set(context.paths) | set(context.truncated) == told


def test_a_file_that_is_there_but_is_not_read_is_named():
    def read(path):
        if path == "MEMORY.md":
            raise PathNotAllowed("`MEMORY.md` is not read: a symbolic link, not followed")
        return FILES.get(path)

    context = start_context(THE_OWNER, TODAY, read, max_chars=20_000, nonce="f00d")

    assert "[f00d note] `MEMORY.md` is not read: a symbolic link" in context.text
    assert "bought a tent" in context.text
    assert context.paths == ("memory/2026-02-28.md", "memory/2026-03-01.md")
