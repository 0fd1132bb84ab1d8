"""Wiki links and Markdown links are followed as the programs that write them do."""

from __future__ import annotations

import pytest

from plainmind.base.errors import NotFound
from plainmind.notes.links import locate_link, read_links
from plainmind.notes.workspace import Workspace


@pytest.fixture
def vault(tmp_path):
    files = {
        "Index.md": "# Index\n\nup: [[cs/Hash Table|tables]] and [[Missing]]\n\n`[[Code]]` is code\n",
        "cs/Hash Table.md": (
            "---\naliases: [hash map, dict]\ntags: [cs/data]\nup: '[[Index]]'\n---\n# Hash tables\n\n## Collisions\n\n"
            "Chained. ^abc123\n\n"
            "See [[Trees#Red-black trees]], ![[Trees#^tip]], [[#Collisions]] and [trees](Trees.md).\n"
        ),
        "cs/Trees.md": "# Trees\n\n## Red–black trees\n\nBalanced [[HASH MAP]].\n\n- a\n- b\n\n^tip\n",
        "other/Trees.md": "[home](../Index.md#index) [web](https://x.org/Trees.md) ![](pic.png) [[Trees]]\n",
        "Café.md": "[a b](<cs/Hash Table.md>) [c](cs/Hash%20Table.md) [[Hash Table\\|dict]]\n```\n[[Index]]\n```\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return Workspace(str(tmp_path))


def places(links):
    return [(link.line, link.target, link.path, link.target_line, link.is_embed) for link in links]


def test_links_name_their_note_and_the_line_that_is_meant(vault):
    found = read_links(vault, "Hash Table")

    assert found.path == "cs/Hash Table.md"
    assert places(found.links) == [
        (4, "Index", "Index.md", None, False),
        (12, "Trees#Red-black trees", "cs/Trees.md", 3, False),
        (12, "Trees#^tip", "cs/Trees.md", 8, True),
        (12, "#Collisions", "cs/Hash Table.md", 8, False),
        (12, "Trees.md", "cs/Trees.md", None, False),
    ]


def test_a_note_is_led_to_by_its_name_its_path_and_its_aliases(vault):
    assert [(back.path, back.line) for back in read_links(vault, "dict").backlinks] == [
        ("Café.md", 1),
        ("Index.md", 3),
        ("cs/Trees.md", 5),
    ]


def test_links_that_lead_nowhere_say_so_and_code_holds_none(vault):
    (tables, missing) = read_links(vault, "index.md").links

    assert (tables.label, tables.path) == ("tables", "cs/Hash Table.md")
    assert (missing.target, missing.path) == ("Missing", None)


def test_of_two_notes_with_one_name_the_one_beside_is_meant(vault):
    assert [link.path for link in read_links(vault, "other/Trees.md").links] == ["Index.md", "other/Trees.md"]
    with pytest.raises(NotFound, match="2 notes are called") as several:
        read_links(vault, "Trees")
    assert "`cs/Trees.md`, `other/Trees.md`" in several.value.hint


@pytest.mark.parametrize("asked", ["[[Café]]", "Cafe\u0301", "café.md", "./Café.md", "![[Café#x|y]]"])
def test_a_note_may_be_named_in_many_ways(vault, asked):
    assert read_links(vault, asked).path == "Café.md"


def test_a_name_that_no_note_has_is_an_error_with_what_may_be_meant(vault):
    with pytest.raises(NotFound, match="no note is called `Indx`") as missing:
        read_links(vault, "Indx")
    assert "did you mean `Index.md`" in missing.value.hint or "plainmind list" in missing.value.hint


def test_a_link_can_be_read_like_a_path(vault):
    assert locate_link(vault, "[[Hash Table]]") == ("cs/Hash Table.md", 1)
    assert locate_link(vault, "[[Hash Table#Collisions]]") == ("cs/Hash Table.md", 8)
    assert locate_link(vault, "[[Hash Table#^abc123]]") == ("cs/Hash Table.md", 10)
    for wrong in ("[[Hash Table#Nothing]]", "[[]]", "[[Hash Table#^none]]"):
        with pytest.raises(NotFound):
            locate_link(vault, wrong)
