"""Any folder of Markdown is a memory: which files are its notes, and when it is an agent's workspace instead."""

from __future__ import annotations

import os

import pytest

from plainmind.base.errors import NotFound, PathNotAllowed, WorkspaceError
from plainmind.base.model import PRIVATE, SHARED
from plainmind.notes import discovery
from plainmind.notes.discovery import ExtraPath
from plainmind.notes.workspace import Workspace


def put(folder, *paths, text="text\n"):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def read(folder, **more):
    return [found.path for found in Workspace(str(folder), **more).discover().files]


def left_out(folder):
    return {skipped.path: skipped.reason for skipped in Workspace(str(folder)).discover().skipped}


def test_all_markdown_of_a_folder_is_its_memory(tmp_path):
    put(tmp_path, "b.md", "Notes/A.md", "Notes/deep/c.MD", "README.md", "image.png", "page.mdx")

    assert read(tmp_path) == ["Notes/A.md", "Notes/deep/c.MD", "README.md", "b.md"]


@pytest.mark.parametrize("sign", ["MEMORY.md", "memory.md", "memory/2026-02-10.md"])
def test_an_agents_workspace_reads_what_it_always_read(tmp_path, sign):
    put(tmp_path, "README.md", "docs/a.md", sign)

    assert read(tmp_path) == [sign]


def test_the_pages_that_openclaw_keeps_beside_the_memory_are_read(tmp_path):
    put(tmp_path, "MEMORY.md", "USER.md", "TOOLS.md", "IDENTITY.md", "SOUL.md", "AGENTS.md", "skills/x.md")

    assert read(tmp_path) == ["MEMORY.md", "USER.md", "TOOLS.md", "IDENTITY.md", "SOUL.md"]


def test_these_pages_stay_private_whatever_is_shared(tmp_path):
    put(tmp_path, "MEMORY.md", "USER.md", "notes.md")
    workspace = Workspace(str(tmp_path), extra_paths=[ExtraPath(".", scope=SHARED)])

    assert workspace.scope_of("USER.md") == PRIVATE
    assert {found.path: found.scope for found in workspace.discover().files} == {
        "MEMORY.md": PRIVATE,
        "USER.md": PRIVATE,
        "notes.md": SHARED,
    }


def test_an_empty_memory_folder_waits_for_notes_and_one_of_source_code_is_none(tmp_path):
    put(tmp_path, "README.md")
    (tmp_path / "memory").mkdir()
    assert read(tmp_path) == []

    put(tmp_path, "memory/allocator.c")
    assert read(tmp_path) == ["README.md"]


def test_a_memory_that_is_a_link_does_not_open_the_rest_of_the_folder(tmp_path):
    put(tmp_path, "ws/README.md", "elsewhere/x.md")
    (tmp_path / "ws" / "memory").symlink_to(tmp_path / "elsewhere")

    assert read(tmp_path / "ws") == []


def test_our_ignore_file_makes_a_folder_of_notes_of_every_folder(tmp_path):
    put(tmp_path, "MEMORY.md", "memory/a.md", "docs/a.md", "drafts/b.md")
    put(tmp_path, ".plainmindignore", text="drafts/\n")

    assert read(tmp_path) == ["MEMORY.md", "docs/a.md", "memory/a.md"]


def test_what_is_ignored_is_left_out_with_its_reason(tmp_path):
    put(
        tmp_path,
        ".obsidian/a.md",
        ".git/b.md",
        "node_modules/x/README.md",
        "Templates/daily.md",
        "a/templates/x.md",
    )
    put(tmp_path, "secret.md", "private/x.md", "private/keep.md", "a/old.md", "a/b/old.md", "note.md")
    put(tmp_path, ".gitignore", text="secret.md\nprivate/*\n")
    put(tmp_path, ".plainmindignore", text="!private/keep.md\n")
    put(tmp_path, "a/.gitignore", text="/old.md\n")

    assert read(tmp_path) == ["a/b/old.md", "note.md", "private/keep.md"]
    assert left_out(tmp_path) == {
        ".git": "hidden",
        ".obsidian": "hidden",
        "Templates": "ignored by the list of what is never a note",
        "a/old.md": "ignored by `a/.gitignore`",
        "a/templates": "ignored by the list of what is never a note",
        "node_modules": "ignored by the list of what is never a note",
        "private/x.md": "ignored by `.gitignore`",
        "secret.md": "ignored by `.gitignore`",
    }


def test_an_ignored_note_cannot_be_read_by_its_name(tmp_path):
    put(tmp_path, "note.md", "secret.md", ".git/x.md")
    put(tmp_path, ".gitignore", text="secret.md\n")
    workspace = Workspace(str(tmp_path))

    with pytest.raises(PathNotAllowed, match=r"ignored by `\.gitignore`"):
        workspace.read("secret.md")
    with pytest.raises(PathNotAllowed, match="hidden"):
        workspace.read(".git/x.md")
    with pytest.raises(NotFound) as missing:
        workspace.read("nto.md")
    assert "plainmind list" in missing.value.hint or "note.md" in missing.value.hint


def test_an_agents_memory_is_read_although_git_ignores_it(tmp_path):
    put(tmp_path, "MEMORY.md", "memory/a.md")
    put(tmp_path, ".gitignore", text="memory/\nMEMORY.md\n")

    assert read(tmp_path) == ["MEMORY.md", "memory/a.md"]


def test_an_ignore_file_that_is_a_link_says_nothing(tmp_path):
    put(tmp_path, "note.md", "rules")
    (tmp_path / "rules").write_text("*.md\n")
    (tmp_path / ".gitignore").symlink_to("rules")

    assert read(tmp_path) == ["note.md"]


@pytest.mark.parametrize("above", ["", ".."])
def test_a_home_is_too_wide_unless_it_has_a_memory(tmp_path, above):
    home = tmp_path / "home"
    put(home, "note.md")
    folder = os.path.normpath(home / above)

    with pytest.raises(WorkspaceError, match="too wide") as refused:
        Workspace(folder, user_home=str(home)).discover()
    assert "init --agent-workspace" in refused.value.hint

    put(home, f"{above or '.'}/MEMORY.md")
    assert read(folder, user_home=str(home)) == ["MEMORY.md"]


def test_a_folder_in_a_home_is_not_too_wide(tmp_path):
    put(tmp_path, "home/vault/note.md")

    assert read(tmp_path / "home" / "vault", user_home=str(tmp_path / "home")) == ["note.md"]


def test_a_tree_that_is_far_too_large_is_refused_and_what_is_ignored_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(discovery, "MOST_ENTRIES", 10)
    put(tmp_path, *(f"data/{number}.txt" for number in range(12)), "note.md")

    with pytest.raises(WorkspaceError, match="more than a folder of notes"):
        read(tmp_path)

    put(tmp_path, ".plainmindignore", text="data/\n")
    assert read(tmp_path) == ["note.md"]


def test_a_note_shared_by_an_extra_path_is_shared_and_the_others_stay_private(tmp_path):
    put(tmp_path, "docs/a.md", "b.md", "memory.txt", "memory/shared-with/everyone/c.md", ".plainmindignore")
    workspace = Workspace(str(tmp_path), extra_paths=[ExtraPath("docs", scope=SHARED)])

    assert {found.path: found.scope for found in workspace.discover().files} == {
        "b.md": PRIVATE,
        "docs/a.md": SHARED,
        "memory/shared-with/everyone/c.md": SHARED,
    }
    assert workspace.scope_of("docs/new.md") == SHARED
    assert workspace.scope_of("new.md") == PRIVATE


def test_an_extra_path_whose_name_the_folder_has_too_takes_nothing_over(tmp_path):
    put(tmp_path, "vault/docs/a.md", "docs/a.md", "docs/b.md")
    workspace = Workspace(
        str(tmp_path / "vault"), extra_paths=[ExtraPath(str(tmp_path / "docs"), scope=SHARED)]
    )

    assert [found.path for found in workspace.discover().files] == ["docs/a.md", "docs/b.md"]
    assert workspace.scope_of("docs/a.md") == PRIVATE
    assert workspace.place_of("docs/a.md")[0].path == str(tmp_path / "vault")
    assert workspace.place_of("docs/b.md")[0].path == str(tmp_path)


def test_a_change_of_the_rules_is_noticed_at_once(tmp_path):
    put(tmp_path, "a.md", "b.md")
    workspace = Workspace(str(tmp_path))
    workspace.discover()
    moment = workspace.discover().moment
    if moment is None:
        pytest.skip("changes are not reported here")

    put(tmp_path, ".plainmindignore", text="b.md\n")

    assert workspace.changed_since(moment) is None
    assert [found.path for found in workspace.discover().files] == ["a.md"]
    workspace.close()


def test_the_folder_that_obsidian_takes_templates_from_is_left_out_whatever_it_is_called(tmp_path):
    put(tmp_path, "Vorlagen/tag.md", "Muster/woche.md", "Notizen/a.md")
    put(tmp_path, ".obsidian/templates.json", text='{"folder": "Vorlagen"}')
    put(tmp_path, ".obsidian/plugins/templater-obsidian/data.json", text='{"templates_folder": "/Muster/"}')

    assert read(tmp_path) == ["Notizen/a.md"]
    assert left_out(tmp_path)["Vorlagen"] == "ignored by `.obsidian/templates.json`"

    put(tmp_path, ".obsidian/templates.json", text="[")
    put(tmp_path, ".plainmindignore", text="!Muster/\n")
    assert read(tmp_path) == ["Muster/woche.md", "Notizen/a.md", "Vorlagen/tag.md"]
