"""What a note is called and what it is about, read from its own lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import split_lines
from plainmind.text.front_matter import name_of, note_names, read_front_matter, tags_in, title_in


def fields(text):
    return dict(read_front_matter(split_lines(f"---\n{text}\n---\n")).fields)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("title: Hash Table", {"title": ("Hash Table",)}),
        ("title: 'It''s here'", {"title": ("It's here",)}),
        (r'title: "A \"quoted\" word"', {"title": ('A "quoted" word',)}),
        ("title: Notes: a primer", {"title": ("Notes: a primer",)}),
        ("title: C# in depth # a remark", {"title": ("C# in depth",)}),
        ("aliases: [hash map, 'dict, or map']", {"aliases": ("hash map", "dict, or map")}),
        ("aliases:\n  - hash map\n  - dictionary", {"aliases": ("hash map", "dictionary")}),
        ("aliases:\n- hash map\n- dictionary", {"aliases": ("hash map", "dictionary")}),
        ("aliases: []\ntitle: x", {"aliases": (), "title": ("x",)}),
        ("aliases: [a,\n  b]", {"aliases": ("a", "b")}),
        ("Tags: a", {"tags": ("a",)}),
        ("up: [[Home]]", {"up": ("[[Home]]",)}),
        ("summary: >\n  two\n  lines\ntitle: x", {"summary": ("two lines",), "title": ("x",)}),
        ("nothing here", {}),
        ("date: 2026-02-10 09:30", {"date": ("2026-02-10 09:30",)}),
        ("empty:\ntitle: x", {"empty": (), "title": ("x",)}),
        ("map: {a: 1}", {"map": ()}),
        ("title: one\n  sentence\n", {"title": ("one sentence",)}),
        ("tags: #home", {"tags": ("#home",)}),
    ],
)
def test_fields_are_read_as_people_write_them(written, read):
    assert fields(written) == read


def test_toml_is_read_too():
    matter = read_front_matter(["+++", 'title = "Zola"', 'tags = ["a", "b"]', "+++", "text"])

    assert (matter.fields, matter.line_count) == ({"title": ("Zola",), "tags": ("a", "b")}, 4)


def test_properties_of_logseq_are_read_and_stay_part_of_the_text():
    names = note_names("pages/x.md", ["title:: The Reef", "tags:: diving, #sea", "", "- text"])

    assert (names.title, names.tags, names.front_matter_lines) == ("The Reef", ("diving", "sea"), 0)
    assert note_names("x.md", ["tags:: , #sea"]).tags == ("sea",)


def test_a_rule_that_is_never_closed_is_no_front_matter():
    assert read_front_matter(["---", "title: x", "text"]).line_count == 0
    assert read_front_matter([]).line_count == 0


def test_a_note_is_called_by_its_title_its_heading_and_its_file():
    given_title = note_names("a/Hash Table.md", split_lines("---\ntitle: Hashing\n---\n# Other\n"))
    heading = note_names("a/x.MD", split_lines("intro\n\n# Hash *Table* <!-- m:1 --> ##\n"))
    underlined = note_names("x.md", split_lines("Hash Table\n=====\n"))

    assert (given_title.name, given_title.title) == ("Hash Table", "Hashing")
    assert (heading.name, heading.title) == ("x", "Hash *Table*")
    assert underlined.title == "Hash Table"
    assert note_names("x.md", ["no heading", "## second level"]).title == ""
    assert name_of("Makefile") == "Makefile"


def test_the_heading_of_a_part_is_not_the_title_of_the_note():
    parts = split_lines("Gnu Debugger\n\n# Running\n\ngdb\n\n# Commands\n\nbreak\n")

    assert title_in(parts) == ""
    assert title_in(parts[1:]) == "Running"
    assert title_in(parts[:5]) == "Running"
    assert title_in(split_lines("\nHash Table\n=====\n\n# Other\n")) == "Hash Table"


def test_what_looks_like_a_heading_in_code_is_none():
    assert title_in(split_lines("```sh\n# comment\n~~~\n```\n# Real\n")) == "Real"


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("#todo at the start, and (#done).", ["todo", "done"]),
        ("#projects/lighthouse/", ["projects/lighthouse"]),
        ("# heading", []),
        ("C# and issue#12 and https://x.y/#part", []),
        ("#12 is a number, #12a is none", ["12a"]),
        ("`#code` #text", ["text"]),
        ("``a ` #code`` #text", ["text"]),
        ("#日本語 と #学习，#한국어", ["日本語", "学习", "한국어"]),
        ("[[Note#Heading]] and [x](#anchor)", []),
        ("#a-b_c", ["a-b_c"]),
    ],
)
def test_tags_of_the_text(line, tags):
    assert [tag for _, tag in tags_in([line])] == tags


def test_tags_of_both_places_are_told_once():
    text = "---\ntags: [home, Big Plans]\ntag: x y, #z, #\nkeywords: a b\n---\ntext #home #new\n"

    assert note_names("n.md", split_lines(text)).tags == ("home", "Big", "Plans", "x-y", "z", "a", "b", "new")


@given(st.text(alphabet="-+:=[]#'\"\\`~ \nab>|{}", max_size=80))
def test_any_text_has_names(text):
    names = note_names("x.md", split_lines(f"---\n{text}"))

    assert names.front_matter_lines <= len(split_lines(text)) + 1
    assert all(tag and tag == tag.strip() for tag in names.tags)
