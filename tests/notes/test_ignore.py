"""Ignore files are read exactly as git reads them: git itself is asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plainmind.notes.ignore import Ignore, IgnoreFile

ODD = re.compile(r"[^/!]\*\*|\*\*[^/*]")
PATHS = (
    "a.md",
    "b c.md",
    "#x.md",
    "!y.md",
    "build/a.md",
    "src/build/a.md",
    "src/a.md",
    "src/deep/a.md",
    "a/b/c.md",
)


def ignored_by_git(folder, paths):
    asked = subprocess.run(
        ["git", "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(paths).encode(),
        cwd=folder,
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return set(asked.stdout.decode().split("\0")) - {""}


def ignored_by_us(paths, files):
    """What a walk would leave out: a folder that is left out is not entered."""
    rules = [IgnoreFile(text, folder=folder, name=folder) for folder, text in files]

    def is_out(path, *, is_folder):
        name = path.rpartition("/")[2]
        for folder, one in reversed(list(zip([f for f, _ in files], rules, strict=True))):
            if path.startswith(folder):
                verdict = one.verdict(path, name, is_folder=is_folder)
                if verdict is not None:
                    return verdict
        return False

    found = set()
    for path in paths:
        parts = path.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        if any(is_out(folder, is_folder=True) for folder in above) or is_out(path, is_folder=False):
            found.add(path)
    return found


def rules(pieces):
    """Two stars behind a letter mean one thing in git's manual and another in git."""
    rule = (
        st.lists(st.sampled_from(pieces), max_size=5).map("".join).filter(lambda made: not ODD.search(made))
    )
    return st.lists(rule, max_size=4).map("\n".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for path in PATHS:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    return folder


@pytest.mark.parametrize(
    "rules",
    [
        "build/",
        "/build/",
        "build",
        "/a.md",
        "a.md",
        "*.md\n!a.md",
        "*.md\n!/a.md",
        "src/*\n!src/deep/",
        "src/\n!src/a.md",
        "src/**",
        "**/build",
        "**/deep/a.md",
        "a/**/c.md",
        "src/**/a.md",
        "*",
        "*\n!*/\n!a.md",
        "?.md",
        "[ab].md",
        "[!a].md",
        "[^a].md",
        "[a-c]*",
        "[[:alpha:]].md",
        "\\#x.md",
        "#x.md",
        "\\!y.md",
        "!y.md",
        "b c.md   ",
        "b c.md\\ ",
        "b\\ c.md",
        "a.md\\",
        "[a",
        "**",
        "/**",
        "**/",
        "a**",
        "src/b*d/",
        "/*\n!/src\n/src/*\n!/src/deep",
        "\r\na.md\r\n",
        "deep/\n*.md\n!deep/a.md",
        "*\\/*",
        "src\\/a.md",
        "src\\/",
        "\\/a.md",
        "**\\/a.md",
        "src\\/**\\/a.md",
    ],
)
def test_each_kind_of_rule_means_what_it_means_to_git(repository, rules):
    (repository / ".gitignore").write_bytes(rules.encode())

    assert ignored_by_us(PATHS, [("", rules)]) == ignored_by_git(repository, PATHS)


@settings(
    max_examples=int(os.environ.get("PLAINMIND_IGNORE_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rules(["*", "**", "/", "a", "b", "src", ".md", "!", "?", "[ab]", "[!b]", "\\", " ", "deep"]),
    rules(["*", "/", "a", ".md", "!", "deep"]),
)
def test_whatever_stands_in_the_files_git_agrees(repository, top, inner):
    (repository / ".gitignore").write_text(top)
    (repository / "src" / ".gitignore").write_text(inner)

    ours = ignored_by_us(PATHS, [("", top), ("src/", inner)])

    assert ours == ignored_by_git(repository, PATHS)


def test_our_own_file_is_stronger_than_that_of_git_and_both_than_our_list():
    git, own = (
        IgnoreFile("drafts/\n!templates/\n"),
        IgnoreFile("!drafts/\nlogs/\n", name="`.plainmindignore`"),
    )
    rules = Ignore((own,), (git,))

    assert rules.reason("drafts", is_folder=True) is None
    assert rules.reason("logs", is_folder=True) == "ignored by `.plainmindignore`"
    assert rules.reason("Templates", is_folder=True) == "ignored by the list of what is never a note"
    assert rules.reason("templates", is_folder=True) is None
    assert rules.reason("a/node_modules", is_folder=True) is not None
    assert rules.reason("templates.md", is_folder=False) is None
