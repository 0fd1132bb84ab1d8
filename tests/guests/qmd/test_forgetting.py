"""What is forgotten of a memory is gone from the indexes of collections that its files are in, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind.guests.qmd.desk import Desk, Line
from plainmind.memory.memory import Memory

CANARY = "zanzibar7743"


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A user with a folder of notes, which is a memory and a collection."""
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "QMD_CONFIG_DIR",
        "PLAINMIND_HOME",
        "PLAINMIND_WORKSPACE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "trip.md").write_text(f"# Trip\n\n- fly to {CANARY}\n- stay at the sea\n")
    (notes / "other.md").write_text("# Other\n\n- the cat is fed by Anna\n")
    return tmp_path


@pytest.fixture
def qmd(user, capsys):
    from plainmind.cli.main import main

    def run(*words):
        capsys.readouterr()
        main(["qmd", *words])
        return capsys.readouterr().out

    run("collection", "add", str(user / "notes"), "--name", "notes")
    assert CANARY in run("search", CANARY)
    return run


def traces(top: Path, text: str = CANARY) -> list[str]:
    files = [file for file in top.rglob("*") if file.is_file()]
    return [str(file.relative_to(top)) for file in files if text.encode() in file.read_bytes().lower()]


def test_a_line_that_is_forgotten_is_in_no_file_of_the_user_any_more(user, qmd):
    assert any(trace.startswith(".cache/qmd/plainmind/") for trace in traces(user))

    with Memory(user / "notes") as memory:
        assert memory.forget(CANARY).remarks == ()

    assert traces(user) == []
    assert CANARY not in qmd("search", "fly")
    assert "Anna" in qmd("search", "cat")


def test_so_is_a_title_and_with_it_what_the_list_of_documents_says(user, qmd):
    (user / "notes" / "trip.md").write_text(f"# Trip to {CANARY}\n\n- stay at the sea\n")
    qmd("update")
    assert ".cache/qmd/index.sqlite" in traces(user)

    with Memory(user / "notes") as memory:
        memory.forget(CANARY)

    assert traces(user) == []


def test_what_only_the_index_of_collections_still_has_can_be_forgotten(user, qmd):
    (user / "notes" / "trip.md").write_text("# Trip\n\n- stay at the sea\n")

    with Memory(user / "notes") as memory:
        memory.forget(CANARY)

    assert traces(user) == []


def test_an_index_that_a_project_keeps_in_itself_is_cleaned_too(user, monkeypatch):
    from plainmind.cli.main import main

    monkeypatch.chdir(user / "notes")
    main(["qmd", "init"])
    main(["qmd", "collection", "add", ".", "--name", "here"])
    assert any(trace.startswith("notes/.qmd/") for trace in traces(user))

    with Memory(user / "notes") as memory:
        memory.forget(CANARY)

    assert traces(user) == []


def test_an_index_that_cannot_be_cleaned_is_named_with_what_to_do(user, qmd, monkeypatch):
    (user / ".config" / "qmd" / "index.yml").write_text("collections: [\n")

    with Memory(user / "notes") as memory:
        (remark,) = memory.forget(CANARY).remarks

    assert "may still have it" in remark
    assert f"delete `{user}/.cache/qmd/plainmind/index`" in remark
    assert CANARY not in (user / "notes" / "trip.md").read_text()


def test_without_any_collection_nothing_is_made(user):
    with Memory(user / "notes") as memory:
        memory.forget(CANARY)

    assert not (user / ".cache").exists()
    assert Desk(Line([], {}, [])).where.home == str(user / ".cache" / "qmd" / "plainmind" / "index")
