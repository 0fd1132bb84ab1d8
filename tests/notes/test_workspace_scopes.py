"""What a workspace says about who may see its files."""

import pytest

from plainmind.base.model import PRIVATE, SHARED
from plainmind.notes.discovery import ExtraPath
from plainmind.notes.workspace import Workspace


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    return tmp_path / "ws"


def note(path, text="text\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def scopes(workspace):
    """The scope of each file, told in all the ways in which a workspace tells it."""
    found = workspace.discover().files
    for file in found:
        assert workspace.read(file)[1].scope == file.scope
        assert workspace.look_at(file.path).scope == file.scope
        assert workspace.scope_of(file.path) == file.scope
    return {file.path: file.scope for file in found}


def test_files_are_private_unless_their_folder_names_others(folder):
    for path in (
        "MEMORY.md",
        "memory/2026-02-10.md",
        "memory/shared-with/everyone/wifi.md",
        "memory/shared-with/group--100/2026-02-10.md",
        "memory/shared-with/person-anna/a/b.md",
        "memory/shared-with/loose.md",
    ):
        note(folder / path)

    assert scopes(Workspace(str(folder))) == {
        "MEMORY.md": PRIVATE,
        "memory/2026-02-10.md": PRIVATE,
        "memory/shared-with/everyone/wifi.md": SHARED,
        "memory/shared-with/group--100/2026-02-10.md": "group:-100",
        "memory/shared-with/loose.md": PRIVATE,
        "memory/shared-with/person-anna/a/b.md": "person:anna",
    }


def test_an_extra_path_is_private_unless_it_says_that_it_is_shared(folder, tmp_path):
    note(tmp_path / "handbook" / "rules.md")
    note(tmp_path / "diary" / "may.md")
    extra = [ExtraPath(str(tmp_path / "handbook"), scope=SHARED), ExtraPath(str(tmp_path / "diary"))]

    assert scopes(Workspace(str(folder), extra_paths=extra)) == {
        "handbook/rules.md": SHARED,
        "diary/may.md": PRIVATE,
    }


def test_a_single_shared_file_shares_nothing_beside_it(folder, tmp_path):
    note(tmp_path / "docs" / "open.md")
    note(tmp_path / "docs" / "closed.md")
    workspace = Workspace(
        str(folder), extra_paths=[ExtraPath(str(tmp_path / "docs" / "open.md"), scope=SHARED)]
    )

    assert scopes(workspace) == {"docs/open.md": SHARED}
    assert workspace.scope_of("docs/closed.md") == PRIVATE


@pytest.mark.parametrize("shared_first", [True, False])
def test_a_private_folder_in_a_shared_one_stays_private_whichever_is_named_first(
    folder, tmp_path, shared_first
):
    note(tmp_path / "docs" / "open.md")
    note(tmp_path / "docs" / "inner" / "closed.md")
    extra = [
        ExtraPath(str(tmp_path / "docs"), scope=SHARED),
        ExtraPath(str(tmp_path / "docs" / "inner")),
    ]

    found = scopes(Workspace(str(folder), extra_paths=extra if shared_first else extra[::-1]))

    assert found.pop("docs/open.md") == SHARED
    assert list(found.values()) == [PRIVATE]


def test_patterns_share_one_folder_out(folder, tmp_path):
    note(tmp_path / "docs" / "public-a.md")
    note(tmp_path / "docs" / "internal-a.md")
    extra = [
        ExtraPath(str(tmp_path / "docs"), pattern="public-*.md", scope=SHARED),
        ExtraPath(str(tmp_path / "docs"), pattern="internal-*.md"),
    ]

    found = scopes(Workspace(str(folder), extra_paths=extra))

    assert {path.rpartition("/")[2]: scope for path, scope in found.items()} == {
        "public-a.md": SHARED,
        "internal-a.md": PRIVATE,
    }


@pytest.mark.parametrize("extra", [".", "..", "memory", "memory/work", "MEMORY.md"])
def test_sharing_a_folder_around_the_memory_shares_none_of_its_own_files(folder, extra):
    for path in ("MEMORY.md", "memory/2026-02-10.md", "memory/work/x.md", "memory.md"):
        note(folder / path)

    found = scopes(Workspace(str(folder), extra_paths=[ExtraPath(extra, scope=SHARED)]))

    assert set(found.values()) == {PRIVATE}


def test_a_path_that_nothing_leads_to_is_private(folder):
    workspace = Workspace(str(folder))

    for path in ("docs/x.md", "sessions/x.jsonl", "", "/etc/passwd", "../x.md"):
        assert workspace.scope_of(path) == PRIVATE
