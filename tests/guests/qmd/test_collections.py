"""Collections: who may see what is decided by which of them are asked."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import EVERY_SCOPE, SHARED, SOURCES
from plainmind.files.safe_open import Root
from plainmind.guests.qmd.collections import (
    askable,
    collections_of,
    config_text,
    folded,
    key_of_scope,
)
from plainmind.memory.backend import Place
from plainmind.notes.discovery import ExtraPath, mounts_of


def collections(workspace, *extra, include_default=True):
    root = Root(str(workspace))
    places = [Place(mount, path.pattern) for mount, path in zip(mounts_of(root, extra), extra, strict=True)]
    return collections_of(root, places, agent_id="main", include_default=include_default)


def names(found):
    return [collection.name for collection in found]


def test_the_memory_is_two_collections(tmp_path):
    root, folder = collections(tmp_path)

    assert (root.name, root.folder, root.cited) == ("memory-root-main", str(tmp_path), "")
    assert (folder.name, folder.folder, folder.pattern) == (
        "memory-dir-main",
        f"{tmp_path}/memory",
        "**/*.md",
    )


def test_the_memory_can_be_left_out(tmp_path):
    assert collections(tmp_path, include_default=False) == ()


def test_a_group_is_a_collection_of_its_own_that_the_owner_need_not_ask(tmp_path):
    for name in (
        "everyone",
        "group--100",
        "person-bob",
        "nobody",
        "group-",
        "stray.md",
        "irc/group--100",
        "irc/x/group-7",
    ):
        (tmp_path / "memory/shared-with" / name).mkdir(parents=True)

    found = collections(tmp_path)

    assert {collection.scope for collection in found} == {
        "private",
        SHARED,
        "group:-100",
        "irc/group:-100",
        "person:bob",
    }
    assert names(askable(found, EVERY_SCOPE, SOURCES)) == ["memory-root-main", "memory-dir-main"]
    for_group = askable(found, frozenset({SHARED, "group:-100", "irc/group:-100"}), SOURCES)
    assert {collection.cited for collection in for_group} == {
        "memory/shared-with/everyone/",
        "memory/shared-with/group--100/",
        "memory/shared-with/irc/group--100/",
    }
    assert not any("100" in name or "bob" in name for name in names(found))


def test_a_shared_folder_that_is_a_link_is_nobodys(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "memory/shared-with").mkdir(parents=True)
    (tmp_path / "memory/shared-with/everyone").symlink_to(tmp_path / "elsewhere")

    assert {collection.scope for collection in collections(tmp_path)} == {"private"}


def test_other_paths_keep_their_names_patterns_and_scopes(tmp_path):
    workspace, outside = tmp_path / "ws", tmp_path / "My Docs (new)"
    (workspace / "docs").mkdir(parents=True)
    outside.mkdir()

    found = collections(
        workspace,
        ExtraPath("docs", "**/*.md"),
        ExtraPath(str(outside), "plans/*.md", scope=SHARED, under="qmd"),
        ExtraPath(str(outside), under="qmd"),
        include_default=False,
    )

    assert [(each.name, each.cited, each.pattern, each.scope) for each in found] == [
        ("docs", "docs/", "**/*.md", "private"),
        ("My-Docs-new", "qmd/My Docs (new)/", "plans/*.md", SHARED),
        ("My-Docs-new-2", "qmd/My Docs (new)-2/", found[2].pattern, "private"),
    ]


def test_a_single_file_is_a_folder_with_one_file(tmp_path):
    (tmp_path / "notes [old].md").write_text("x")

    (found,) = collections(tmp_path, ExtraPath("notes [old].md"), include_default=False)

    assert (found.folder, found.pattern, found.cited) == (str(tmp_path), r"notes \[old\].md", "")


def test_the_configuration_is_json_with_the_models_in_it(tmp_path):
    text = config_text(collections(tmp_path), {"embed": "/m.gguf"})

    assert json.loads(text) == {
        "collections": {
            "memory-root-main": {
                "path": str(tmp_path),
                "pattern": "{MEMORY,memory,USER,TOOLS,IDENTITY,SOUL}.md",
            },
            "memory-dir-main": {"path": f"{tmp_path}/memory", "pattern": "**/*.md"},
        },
        "models": {"embed": "/m.gguf"},
    }


def test_paths_are_known_again_as_older_versions_wrote_them():
    assert folded("Projects/Foo Bar (1).md") == folded("projects/foo-bar-1.md")
    assert folded("a/b.md") != folded("a-b.md")


@given(st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True))
def test_no_two_scopes_have_the_same_name(scopes):
    assert len({key_of_scope(f"group:{scope}") for scope in scopes}) == len(scopes)


def test_no_other_folder_takes_the_name_that_others_stand_in(tmp_path):
    workspace, other, docs = tmp_path / "ws", tmp_path / "qmd", tmp_path / "docs"
    for folder in (workspace, other, docs):
        folder.mkdir()

    mounts = mounts_of(Root(str(workspace)), [ExtraPath(str(other)), ExtraPath(str(docs), under="qmd")])

    assert [mount.cited for mount in mounts] == ["qmd-2", "qmd/docs"]
