"""Text that was deleted in an editor: no byte of the home has a word of it once it was synced, wiped or forgotten."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.every_byte import places_with

from plainmind import Memory
from plainmind.base.errors import NotFound
from plainmind.cli.main import main

pytestmark = [pytest.mark.timeout(600)]  # every byte of LanceDB's many files is inflated, in full

IS_FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
FILES = 300 if IS_FULL else 6
SECRETS = ("kumquatzephyr", "xylobrontosaur", "Wolkenkratzerschlüssel")
OTHERS = ("apple", "boat", "cedar", "door", "ember", "fjord", "grape", "house", "inlet", "jolly")


def prose(number):
    words = " ".join(OTHERS[(number * 7 + step * step) % 10] + str(number % 13) for step in range(40))
    return f"# Topic {number}\n\n{words}\n\n- {words[::-1]}\n"


class MemoryWithClock(Memory):
    at = datetime(2026, 2, 10, 9, 0, tzinfo=UTC)

    def now(self):
        return self.at


@pytest.fixture(params=["sqlite", "lancedb"])
def memory(request, tmp_path):
    if request.param == "lancedb":
        pytest.importorskip("lancedb")
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    for number in range(FILES):
        (notes / f"{number}.md").write_text(prose(number))
    lines = "".join(
        f"- the {secret} stands behind the {other}\n" for secret, other in zip(SECRETS, OTHERS, strict=False)
    )
    (notes / "secret.md").write_text(f"# Secrets\n\n{lines}\n{prose(7)}")
    (notes / "whole.md").write_text(f"# {SECRETS[0]}\n\nonly {SECRETS[1]} and {SECRETS[2]}\n")
    settings = {"provider": "none", "store": {"driver": request.param}}
    with MemoryWithClock(tmp_path / "notes", home=tmp_path / "home", config=settings) as memory:
        memory.sync()
        assert memory.search(SECRETS[0]).hits
        yield memory


def delete_the_secrets(memory):
    """As an editor does it: in the file, and without a word to us."""
    place = os.path.join(memory.workspace, "memory", "secret.md")
    with open(place, "w", encoding="utf-8") as file:
        file.write(f"# Secrets\n\nnone\n\n{prose(7)}")
    os.unlink(os.path.join(memory.workspace, "memory", "whole.md"))


def left(memory, *, inflated=IS_FULL):
    return places_with(Path(memory.home), SECRETS, inflated=inflated)


def test_a_sync_leaves_no_word_of_deleted_text(memory):
    delete_the_secrets(memory)

    memory.sync()

    assert left(memory, inflated=True) == []
    assert memory.search(OTHERS[0]).hits


def test_searches_alone_leave_none_after_an_hour(memory):
    delete_the_secrets(memory)
    memory.search("boat")
    memory.at += timedelta(minutes=61)

    memory.search("boat")
    memory.close()

    assert left(memory) == []


def test_what_was_deleted_can_be_forgotten_before_any_sync(memory):
    delete_the_secrets(memory)

    shown = memory.forget(SECRETS[0], dry_run=True)
    gone = memory.forget(shown)

    assert gone.applied
    assert [place for place in left(memory) if SECRETS[0] in place] == []


def test_what_was_deleted_can_be_forgotten_after_a_search(memory):
    delete_the_secrets(memory)
    memory.search("boat")

    assert memory.forget(SECRETS[0]).applied

    assert left(memory) == []


def test_what_never_was_there_is_not_found(memory):
    with pytest.raises(NotFound):
        memory.forget("quagmirewort", dry_run=True)
    delete_the_secrets(memory)
    memory.sync()
    with pytest.raises(NotFound):
        memory.forget("quagmirewort", dry_run=True)


def test_the_command_leaves_no_word_however_often_it_is_called(tmp_path, monkeypatch):
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "home"))
    for number in range(5):
        secret = f"{SECRETS[0]}{'abcde'[number]}"
        (notes / "one.md").write_text(f"# One\n\nthe {secret} is here\n")
        assert main(["--workspace", str(tmp_path / "notes"), "sync"]) == 0
        (notes / "one.md").write_text("# One\n\nnothing is here\n")
        assert main(["--workspace", str(tmp_path / "notes"), "sync"]) == 0
        assert places_with(tmp_path / "home", [secret], inflated=IS_FULL) == []
