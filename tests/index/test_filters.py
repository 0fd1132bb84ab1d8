"""Filters: what a question restricts itself to, and what passes."""

from __future__ import annotations

import os
from datetime import date

import pytest

from plainmind import Memory
from plainmind.base.errors import PlainmindError
from plainmind.base.model import EVERY_SCOPE, Chunk, Restriction, SearchFilter
from plainmind.index.filters import (
    day_named,
    has_phrase,
    in_words,
    may_stand_beside,
    path_pattern,
    plain_form,
    read_filters,
    restrict,
    restriction_of,
)

TODAY = date(2026, 11, 16)  # a Monday


def only(**fields) -> Restriction:
    return Restriction(**fields)


@pytest.mark.parametrize(
    ("question", "asked", "restriction"),
    [
        ("which VLAN is the printer on?", "which VLAN is the printer on?", only()),
        ('lighthouse "known errors"', "lighthouse known errors", only(phrases=("known errors",))),
        ("who wrote “known errors”?", "who wrote known errors?", only(phrases=("known errors",))),
        ("“矮冬瓜”这个绰号", "“矮冬瓜”这个绰号", only()),
        ('an odd " quote', 'an odd " quote', only()),
        ('nothing in "" or " ?" here', 'nothing in "" or " ?" here', only()),
        ("printer -office", "printer", only(without=("office",))),
        ("ss -ltnp", "ss -ltnp", only()),
        ("tar -xzf or ls -la", "tar -xzf or ls -la", only()),
        ('printer -"paper jam" tray', "printer tray", only(without=("paper jam",))),
        ("what does tar -x do at -5 degrees", "what does tar -x do at -5 degrees", only()),
        ("Anna -the neighbour", "Anna -the neighbour", only()),
        ("well-known words", "well-known words", only()),
        ("-office", "-office", only()),
        ("roses tag:#garden", "roses", only(tags=("garden",))),
        ("roses tag:# -tag:indoor", "roses", only(without_tags=("indoor",))),
        ("tag:garden", "", only(tags=("garden",))),
        ('Title:"hash table" speed', "hash table speed", only(titles=("hash table",))),
        ("speed -title:draft", "speed", only(without_titles=("draft",))),
        ("speed path:projects/** -path:old", "speed", only(paths=("projects/**",), without_paths=("old",))),
        ("speed since:2026-11 until:yesterday", "speed", only(since="2026-11-01", until="2026-11-15")),
        ("speed since:nonsense -until:2025", "speed since:nonsense -until:2025", only()),
        ("the title: of a page", "the title: of a page", only()),
    ],
)
def test_a_question_says_what_to_look_for_and_what_to_restrict_it_to(question, asked, restriction):
    assert read_filters(question, TODAY) == (asked, restriction)


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("2026-11-02", "2026-11-02", "2026-11-02"),
        ("2026-12", "2026-12-01", "2026-12-31"),
        ("2025", "2025-01-01", "2025-12-31"),
        ("last month", "2026-10-01", "2026-10-31"),
    ],
)
def test_a_day_is_named_by_number_or_in_words(words, first, last):
    days = (day_named(words, TODAY, is_last=False), day_named(words, TODAY, is_last=True))

    assert days == (date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize("words", ["", "someday", "2026-13", "0000", "2026-02-30"])
def test_what_names_no_day_is_none(words):
    assert day_named(words, TODAY, is_last=False) is None


def test_what_a_caller_asks_for_joins_what_the_question_says():
    given = restriction_of(TODAY, paths=["notes"], tags=["#home"], since=date(2026, 1, 1), until="2026-12-31")
    where = SearchFilter(frozenset({"memory"}), EVERY_SCOPE, given)

    asked, joined = restrict('roses "red ones" tag:garden path:other since:2026-02 until:2027', where, TODAY)

    assert asked == "roses red ones"
    assert joined.only == only(
        paths=("notes",),
        tags=("home", "garden"),
        phrases=("red ones",),
        since="2026-02-01",
        until="2026-12-31",
    )
    assert restrict("roses", SearchFilter(frozenset(), EVERY_SCOPE), TODAY)[1].only is None


def test_one_path_or_tag_is_not_taken_for_its_letters():
    assert restriction_of(TODAY, paths="notes/**", tags="#home") == only(paths=("notes/**",), tags=("home",))


def test_a_caller_who_names_no_day_is_told_how_to():
    assert restriction_of(TODAY) is None
    with pytest.raises(PlainmindError, match="`since` names no day: whenever") as told:
        restriction_of(TODAY, since="whenever")
    assert "2026-11-02" in (told.value.hint or "")


def test_filters_are_told_in_words():
    asked = only(
        paths=("a", "b"), tags=("t",), titles=("n",), phrases=("p q",), since="2026-01-01", until="2026-02-01",
        without_paths=("c",), without_tags=("u",), without_titles=("m",), without=("w",),
    )  # fmt: skip

    assert in_words(asked) == (
        "only in a or b", "only tagged #t", "only called “n”", "only with “p q” word for word",
        "only since 2026-01-01 until 2026-02-01",
        "not in c", "not tagged #u", "not called “m”", "without “w”",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("glob", "matched", "others"),
    [
        (
            "projects",
            ["projects/a.md", "x/projects/b/c.md", "Projects.md"],
            ["projects2/a.md", "a/myprojects.md"],
        ),
        ("projects/", ["projects/a.md"], ["a.md"]),
        ("*.md", ["a.md", "x/y.md"], ["a.txt"]),
        ("2026-1?-*", ["memory/2026-11-02.md", "2026-10-30-talk.md"], ["memory/2026-02-10.md"]),
        ("memory/*.md", ["memory/a.md"], ["memory/x/a.md", "x/memory/a.md"]),
        ("memory/**/plan", ["memory/plan.md", "memory/a/b/plan.md"], ["plan.md"]),
        ("./a/**", ["a/b.md", "a/b/c.md"], ["b/a/c.md"]),
        ("[ab]*.md", ["apple.md", "b.md"], ["c.md"]),
        ("[!ab].md", ["c.md"], ["a.md"]),
        ("odd[name", ["x/odd[name.md"], ["oddname.md"]),
    ],
)
def test_a_glob_names_files_and_folders(glob, matched, others):
    pattern = path_pattern(glob)

    assert [path for path in matched + others if pattern.fullmatch(path)] == matched


@pytest.mark.parametrize(
    ("text", "phrase", "stands"),
    [
        ("The **known**\nerrors are", "Known errors", True),
        ("unknown errors", "known errors", False),
        ("known errorss, known errors!", "known errors", True),
        ("at the café", "Cafe", True),
        ("上周五的会议记录", "会议", True),
        ("금요일에 만났다", "금요일", True),
        ("category", "cat", False),
    ],
)
def test_a_phrase_stands_word_for_word(text, phrase, stands):
    assert has_phrase(plain_form(text), plain_form(phrase)) is stands


def test_lines_beside_a_passage_are_shown_only_if_they_may_be():
    beside = Chunk("a.md", "memory", 0, 1, 1, "the office printer", day="2026-11-02")

    assert may_stand_beside(beside, only(without=("tray",)))
    assert may_stand_beside(beside, only(since="2026-11-01"))
    assert not may_stand_beside(beside, only(until="2026-11-01"))
    assert not may_stand_beside(beside, only(without=("offices",)))
    assert not may_stand_beside(beside, only(without=("office printer",)))


NOTES = {
    "MEMORY.md": "# Memory\n\n- The printer stands in the hall.\n- 打印机在走廊。 #工作\n",
    "memory/2026-11-02.md": "# Monday\n\n- The printer had a paper jam again. #office\n",
    "memory/2026-10-01.md": "# Thursday\n\n- The printer in the office got new toner.\n",
    "memory/tools/printer-setup.md": "---\ntags: [office/devices, how-to]\naliases: [LaserJet]\n---\n\n"
    "Press the green button.\n\n## Later\n\nThen wait.\n",
    "memory/tools/scanner.md": "# Flatbed reader\n\nThe scanner replaces the printer's glass.\n",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filters")
    for path, text in NOTES.items():
        place = folder / "workspace" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        os.utime(place, (1_700_000_000, 1_700_000_000))  # in November 2023
    with Memory(folder / "workspace", home=folder / "home") as opened:
        yield opened


def paths(memory, question, **asked):
    result = memory.search(question, max_results=20, min_score=0, today=TODAY, **asked)
    return {hit.path.removeprefix("memory/") for hit in result.hits}


ALL = {"MEMORY.md", "2026-11-02.md", "2026-10-01.md", "tools/printer-setup.md", "tools/scanner.md"}


@pytest.mark.parametrize(
    ("question", "asked", "found"),
    [
        ("printer", {}, ALL),
        ("printer", {"paths": ["tools"]}, {"tools/printer-setup.md", "tools/scanner.md"}),
        ("printer -path:tools", {}, ALL - {"tools/printer-setup.md", "tools/scanner.md"}),
        ("printer", {"since": "2026-10-15"}, {"2026-11-02.md"}),
        ("printer since:2026-10", {"until": "october"}, {"2026-10-01.md"}),
        ("printer", {"until": "2024"}, ALL - {"2026-11-02.md", "2026-10-01.md"}),
        ("printer", {"since": "2026-11-05", "until": "2026-11-01"}, set()),
        ('"paper jam"', {}, {"2026-11-02.md"}),
        ('"paper printer"', {}, set()),
        ('"走廊"', {}, {"MEMORY.md"}),
        ('"廊"', {}, {"MEMORY.md"}),
        ("printer -jam -glass", {}, ALL - {"2026-11-02.md", "tools/scanner.md"}),
        ("printer -走廊", {}, ALL - {"MEMORY.md"}),
        ("printer", {"tags": ["office"]}, {"2026-11-02.md", "tools/printer-setup.md"}),
        ("printer tag:office/devices", {}, {"tools/printer-setup.md"}),
        ("printer tag:工作", {}, {"MEMORY.md"}),
        ("printer -tag:office", {}, ALL - {"2026-11-02.md", "tools/printer-setup.md"}),
        ("wait title:laserjet", {}, {"tools/printer-setup.md"}),
        ("title:printer", {}, {"tools/printer-setup.md"}),
        ('title:"flatbed reader"', {}, {"tools/scanner.md"}),
        ("printer -title:reader", {}, ALL - {"tools/scanner.md"}),
        ("tag:how-to", {}, {"tools/printer-setup.md"}),
        ("since:2026-10", {}, {"2026-11-02.md", "2026-10-01.md"}),
    ],
)
def test_only_what_passes_is_found(memory, question, asked, found):
    assert paths(memory, question, **asked) == found


def test_filters_alone_list_what_passes_newest_first(memory):
    result = memory.search("since:2026", today=TODAY)

    assert [(hit.path, hit.score) for hit in result.hits] == [
        ("memory/2026-11-02.md", 1.0),
        ("memory/2026-10-01.md", 1.0),
    ]
    assert result.understood == ("only since 2026-01-01",)


def test_a_phrase_in_a_longer_question_that_stands_nowhere_is_let_go_aloud(memory):
    result = memory.search('who had the "paper jamboree" in the printer?', today=TODAY)

    assert result.hits[0].path == "memory/2026-11-02.md"
    assert result.notes == ("nothing has “paper jamboree” word for word: these are the nearest",)


def test_a_snippet_does_not_grow_into_what_was_left_out(tmp_path):
    (tmp_path / "MEMORY.md").write_text("# One\n\nThe ferry sails at nine.\n\n# Two\n\nIts secret harbour.\n")
    with Memory(tmp_path, home=tmp_path / "home") as memory:
        with_it, without = memory.search("ferry"), memory.search("ferry -harbour")

    assert "harbour" in with_it.hits[0].snippet
    assert [hit.snippet.strip() for hit in without.hits] == ["# One\n\nThe ferry sails at nine."]
