"""Which folder is the workspace, and which one our home."""

from __future__ import annotations

import os

import pytest

from plainmind.base.errors import ConfigError
from plainmind.config.load import Origin, ResolvedWorkspace, home_folder, index_folder, resolve_workspace


@pytest.fixture
def world(tmp_path):
    user = tmp_path / "user"
    (user / "project" / "deep").mkdir(parents=True)
    return user


def resolve(world, *, flag=None, configured=None, cwd=None, **environ):
    environ = {"HOME": str(world), **environ}
    cwd = str(cwd or world / "project" / "deep")
    return resolve_workspace(flag, environ, configured, cwd, str(world / ".plainmind"))


def test_the_home_is_in_the_users_home_unless_moved():
    assert home_folder({"HOME": "/home/ann"}) == "/home/ann/.plainmind"
    assert home_folder({"HOME": "/home/ann", "PLAINMIND_HOME": "/srv/state"}) == "/srv/state"
    assert home_folder({"HOME": "/home/ann", "PLAINMIND_HOME": "~/state/"}) == "/home/ann/state"
    assert home_folder({"PLAINMIND_HOME": "state"}) == os.path.abspath("state")


def test_flag_beats_environment_beats_configuration_beats_what_is_found(world):
    (world / "project" / "MEMORY.md").write_text("x")

    assert resolve(world, flag="a", configured="b", PLAINMIND_WORKSPACE="/c").path == str(
        world / "project" / "deep" / "a"
    )
    assert resolve(world, configured="b", PLAINMIND_WORKSPACE="/c").path == "/c"
    assert resolve(world, configured="~/b").path == str(world / "b")
    assert resolve(world, configured="b").path == str(world / ".plainmind" / "b")
    assert resolve(world).path == str(world / "project")


def test_the_origin_says_why_it_is_this_one(world):
    assert resolve(world, flag="/a").origin == Origin("flag", "--workspace")
    assert resolve(world, PLAINMIND_WORKSPACE="/c").origin == Origin("environment", "PLAINMIND_WORKSPACE")
    assert resolve(world, configured="/b").origin == Origin("user")
    assert resolve(world).origin == Origin("default")
    assert str(resolve(world, flag="/a").origin) == "flag (--workspace)"
    assert str(resolve(world).origin) == "default"


@pytest.mark.parametrize(
    ("kind", "where", "reason"),
    [
        ("default", "", "used wherever no other is named"),
        ("here", "", "the folder you are in"),
        ("found", "/notes/.obsidian", "found by its .obsidian"),
        ("user", "/home/ana/.plainmind/plainmind.json5", "named by /home/ana/.plainmind/plainmind.json5"),
        ("flag", "--workspace", "named by --workspace"),
    ],
)
def test_why_it_is_this_one_is_said_in_words(kind, where, reason):
    assert ResolvedWorkspace("/notes", Origin(kind, where)).reason == reason


def test_an_empty_flag_is_an_error_and_an_empty_variable_is_none(world):
    with pytest.raises(ConfigError):
        resolve(world, flag="")
    assert resolve(world, PLAINMIND_WORKSPACE="").path == str(world / ".plainmind" / "workspace")


@pytest.mark.parametrize("name", ["MEMORY.md", "memory.md", "memory/2026-02-01.md", "memory/a/b/topic.md"])
def test_the_nearest_folder_with_memory_is_found(world, name):
    for folder in (world, world / "project"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")

    assert resolve(world).path == str(world / "project")


def test_a_memory_folder_without_markdown_is_something_else(world):
    (world / "project" / "memory" / ".hidden").mkdir(parents=True)
    (world / "project" / "memory" / "pool.c").write_text("int x;")
    (world / "project" / "memory" / ".hidden" / "x.md").write_text("x")
    (world / "project" / "memory" / "folder.md").mkdir()

    assert resolve(world).origin.kind == "default"


def test_a_huge_memory_folder_is_not_searched_to_its_end(world):
    folder = world / "project" / "memory"
    folder.mkdir()
    for number in range(2_100):
        (folder / f"{number}.c").touch()

    assert resolve(world).origin.kind == "default"


def test_links_do_not_make_a_workspace(world):
    (world / "real.md").write_text("x")
    (world / "project" / "MEMORY.md").symlink_to(world / "real.md")
    (world / "notes").mkdir()
    (world / "notes" / "a.md").write_text("x")
    (world / "project" / "memory").symlink_to(world / "notes")

    assert resolve(world).origin.kind == "default"


def test_the_walk_ends_at_the_users_home(world):
    (world.parent / "MEMORY.md").write_text("x")

    assert resolve(world).origin.kind == "default"

    (world / "MEMORY.md").write_text("x")
    assert resolve(world).path == str(world)


def test_outside_the_users_home_the_walk_goes_to_the_root(world, tmp_path):
    (tmp_path / "srv" / "notes").mkdir(parents=True)
    (tmp_path / "srv" / "MEMORY.md").write_text("x")

    assert resolve(world, cwd=tmp_path / "srv" / "notes").path == str(tmp_path / "srv")
    assert resolve(world, cwd=tmp_path / "gone").origin.kind == "default"


def test_a_folder_where_anybody_may_write_is_nobodys_workspace(world):
    (world / "project" / "MEMORY.md").write_text("x")
    (world / "project").chmod(0o1777)

    assert resolve(world).origin.kind == "default"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_memory_folder_that_cannot_be_read_is_not_chosen(world):
    (world / "project" / "memory").mkdir(mode=0)

    assert resolve(world).origin.kind == "default"


def test_the_index_of_each_agent_has_its_own_folder():
    def folder(template):
        return index_folder(template, home="/h", agent_id="ann", environ={"HOME": "/home/u"})

    assert folder("{home}/index/{agentId}") == "/h/index/ann"
    assert folder("~/i") == "/home/u/i"
    assert folder("i/{agentId}") == "/h/i/ann"
