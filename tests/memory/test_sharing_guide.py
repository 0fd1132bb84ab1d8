"""What the guide to sharing shows works as it is written there."""

import re
from pathlib import Path

import pytest

from plainmind import OWNER, Memory, SearchContext
from plainmind.notes.scopes import scope_of_path

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "share-with-groups.md").read_text()


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PLAINMIND_HOME", raising=False)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Memory\n\n- The safe opens with 1234.\n")
    return tmp_path


def test_the_python_in_the_guide_does_what_it_says(notes, capsys):
    [program] = blocks("python")

    exec(compile(program, "share-with-groups.md", "exec"), {})

    printed = capsys.readouterr().out
    assert "we meet at the bakery on Tuesday" in printed
    assert "that file is not for this conversation" in printed
    assert "The safe opens with 1234." in printed.partition("not for this conversation")[2]
    assert "1234" not in printed.partition("not for this conversation")[0]


def test_the_settings_in_the_guide_let_a_group_in(notes):
    rules, handbook = blocks("json5")
    (notes / "handbook").mkdir()
    (notes / "handbook" / "tea.md").write_text("Tea is at four.\n")
    settings = notes / ".plainmind" / "plainmind.json5"
    settings.parent.mkdir()
    settings.write_text("{" + rules.strip()[1:-1].rstrip().rstrip(",") + "," + handbook.strip()[1:-1] + "}")

    with Memory(notes / "notes") as memory:
        group = memory.within(SearchContext("anna", "group", "", channel="telegram", group="-100123"))
        assert group.search("when is tea?").hits[0].path == "handbook/tea.md"
        assert not memory.within(
            SearchContext("anna", "group", "", channel="irc", group="7")
        ).access.is_allowed
        assert memory.within(SearchContext(OWNER, "", "cron:daily")).access.sees_everything


def test_the_folders_in_the_guide_are_those_of_their_scopes():
    folders = [line for line in GUIDE.splitlines() if line.startswith("memory/shared-with/")]

    assert [scope_of_path(line.split()[0]) for line in folders] == [
        "shared",
        "telegram/group:-100123",
        "person:anna",
    ]
