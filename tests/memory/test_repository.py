"""A repository is known by where it comes from, wherever it lies and however its address is written."""

import subprocess

import pytest

from plainmind.base.errors import PlainmindError
from plainmind.memory.workspace_setup import project_workspace, repository_of


def git(*words, cwd):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=cwd, check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path):
    def make(name, origin=None):
        folder = tmp_path / name
        folder.mkdir()
        git("init", "-q", cwd=folder)
        if origin:
            git("remote", "add", "origin", origin, cwd=folder)
        return folder

    return make


@pytest.mark.parametrize(
    "origin",
    [
        "https://github.com/acme/rockets.git",
        "https://anna:token@GitHub.com/acme/rockets",
        "git@github.com:acme/rockets.git",
        "ssh://git@github.com:22/acme/rockets.git/",
        "git://github.com/acme/rockets",
    ],
)
def test_every_spelling_of_an_address_is_one_project(repository, tmp_path, origin):
    folder = repository("clone", origin)
    (folder / "deep" / "down").mkdir(parents=True)
    found = repository_of(str(folder / "deep" / "down"))

    assert found.identity == "github.com/acme/rockets"
    assert "token" not in found.name
    assert project_workspace(str(folder), "/home").startswith("/home/projects/rockets-")


def test_other_repositories_are_other_projects_though_they_have_the_same_name(repository):
    one, other = (
        repository("a", "git@github.com:acme/rockets"),
        repository("b", "git@github.com:evil/rockets"),
    )

    assert repository_of(str(one)).name != repository_of(str(other)).name


def test_one_without_an_origin_is_known_by_its_place_and_shares_it_with_its_worktrees(repository, tmp_path):
    folder = repository("plain")
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=folder)
    git("worktree", "add", "-q", str(tmp_path / "beside"), cwd=folder)

    assert repository_of(str(folder)).identity == str(folder)
    assert repository_of(str(tmp_path / "beside")).identity == str(folder)


def test_outside_of_a_repository_there_is_no_project(tmp_path):
    assert repository_of(str(tmp_path)) is None
    with pytest.raises(PlainmindError, match="in no git repository"):
        project_workspace(str(tmp_path), "/home")
