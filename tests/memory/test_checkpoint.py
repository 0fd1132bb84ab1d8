"""The last look at what leaves the memory."""

import logging

import pytest

from plainmind.agent.scope import Access
from plainmind.base.errors import ScopeDenied
from plainmind.base.model import EVERY_SCOPE, PRIVATE, SHARED
from plainmind.memory.scoped import Checkpoint, file_of
from plainmind.notes.notebook import ForgottenLines

OWNERS = Access(is_allowed=True, scopes=EVERY_SCOPE, writes=PRIVATE)
GROUP = Access(is_allowed=True, scopes=frozenset({SHARED, "group:7"}), writes="group:7")
DENIED = Access(is_allowed=False, reason="it is not known who asks")


@pytest.fixture
def checkpoint():
    files = {"ours.md": "group:7", "theirs.md": "group:8", "all.md": SHARED}
    return Checkpoint(
        lambda path: files.get(path, PRIVATE),
        lambda path: "group:7" if path == "sessions/ours.jsonl" else PRIVATE,
    )


def lines(*paths):
    return [ForgottenLines(path, 1, 1, "secret", "") for path in paths]


@pytest.mark.parametrize("path", ["ours.md", "all.md", "sessions/ours.jsonl"])
def test_what_is_for_a_conversation_passes(checkpoint, path):
    assert [passed.path for passed in checkpoint.passed(GROUP, lines(path), "a test")] == [path]
    checkpoint.require(GROUP, path)
    assert checkpoint.withheld == 0


@pytest.mark.parametrize(
    "path",
    ["theirs.md", "MEMORY.md", "sessions/x.jsonl", "ours.md/../MEMORY.md", "./ours.md", "", "/ours.md"],
)
def test_what_is_not_is_withheld_counted_and_logged_without_a_word_of_it(checkpoint, path, caplog):
    with caplog.at_level(logging.ERROR):
        assert checkpoint.passed(GROUP, lines(path, "ours.md", path), "a test")[0].path == "ours.md"

    assert checkpoint.withheld == 2
    assert "2 of what a test gave was not for this conversation" in caplog.text
    assert "secret" not in caplog.text
    with pytest.raises(ScopeDenied, match="not for this conversation"):
        checkpoint.require(GROUP, path)


def test_the_owner_may_see_everything_and_whoever_is_denied_nothing(checkpoint):
    checkpoint.require(OWNERS, "MEMORY.md")
    assert len(checkpoint.passed(OWNERS, lines("MEMORY.md", "theirs.md"), "a test")) == 2
    assert checkpoint.passed(DENIED, lines("all.md"), "a test") == ()
    with pytest.raises(ScopeDenied, match="it is not known who asks"):
        checkpoint.require(DENIED, "all.md")


@pytest.mark.parametrize(
    ("citation", "path"),
    [
        ("MEMORY.md", "MEMORY.md"),
        ("./MEMORY.md#L3-L7", "MEMORY.md"),
        ("memory/a.md:3", "memory/a.md"),
        ("memory/a.md:3-7", "memory/a.md"),
        ("sessions/x.jsonl#L7", "sessions/x.jsonl"),
        ("memory/a:3/b.md", "memory/a:3/b.md"),
    ],
)
def test_a_citation_leads_to_its_file(citation, path):
    assert file_of(citation) == path
