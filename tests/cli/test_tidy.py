"""`plainmind tidy`: what waits is shown, reviewed in an editor, accepted, rejected and taken back."""

from __future__ import annotations

import json
import sys

import pytest

TWICE = "- The guest room key hangs behind the cellar door\n"


@pytest.fixture
def file(workspace):
    file = workspace / "MEMORY.md"
    file.write_text(
        file.read_text() + TWICE + "- Prefers tea\n" + TWICE + "- The permit is valid until 1 May 2031\n"
    )
    return file


def proposals(cli):
    return cli("tidy", "--json").json["proposals"]


def test_it_shows_the_edit_and_the_reason_and_changes_nothing(cli, file):
    before = file.read_bytes()

    shown = cli("tidy")

    assert shown.status == 0
    assert "repeated: a line that stands twice" in shown.out
    assert "- MEMORY.md#L7   - The guest room key" in shown.out
    assert "+ MEMORY.md#L8   - The permit is valid until 1 May 2031 (until 2031-05-01)" in shown.out
    assert "looked at" in shown.out
    assert file.read_bytes() == before


def test_with_nothing_to_propose_it_says_why(cli, workspace):
    shown = cli("tidy")

    assert "nothing waits" in shown.out
    assert "none stands twice" in shown.out
    assert "agents were given none of these lines yet" in shown.out


def test_accept_undo_and_reject(cli, file):
    before = file.read_bytes()
    ids = [one["id"] for one in proposals(cli)]

    accepted = cli("tidy", "accept", *ids)

    assert "accepted 2 proposals in MEMORY.md" in accepted.out
    assert file.read_text().count("guest room") == 1
    assert cli("undo").status == 0
    assert file.read_bytes() == before
    assert "rejected 2 proposals" in cli("tidy", "reject", *[one["id"] for one in proposals(cli)]).out
    assert proposals(cli) == []


def test_json_has_the_lines_with_their_hashes_and_the_exact_edit(cli, file):
    found = next(one for one in proposals(cli) if one["kind"] == "expiry")

    assert found["maker"] == {"by": "rule", "name": "plainmind", "tokens": 0}
    assert len(found["cites"][0]["sha256"]) == 64
    assert found["edits"] == [
        {
            "path": "MEMORY.md",
            "line": 8,
            "old": ["- The permit is valid until 1 May 2031"],
            "new": ["- The permit is valid until 1 May 2031 (until 2031-05-01)"],
            "section": None,
        }
    ]


def editor(tmp_path, monkeypatch, code):
    script = tmp_path / "editor.py"
    script.write_text(
        f"import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n{code}\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")


def test_what_remains_in_the_editor_is_done(cli, file, tmp_path, monkeypatch, home):
    editor(
        tmp_path,
        monkeypatch,
        "lines = [line for line in text.splitlines() if not (line.startswith('accept') and 'word for word' in line)]\n"
        "file.write_text('\\n'.join(lines))",
    )

    reviewed = cli("tidy", "--review")

    assert "accepted 1 proposal in MEMORY.md" in reviewed.out
    assert "1 proposal left for later" in reviewed.out
    assert "(until 2031-05-01)" in file.read_text()
    assert file.read_text().count("guest room") == 2
    assert not list(home.rglob("review.txt*"))


def test_a_line_that_says_reject_rejects(cli, file, tmp_path, monkeypatch):
    editor(tmp_path, monkeypatch, "file.write_text(text.replace('accept', 'reject'))")

    assert "rejected 2 proposals" in cli("tidy", "--review").out
    assert proposals(cli) == []


@pytest.mark.parametrize("code", ["file.write_text('')", "file.unlink()", "sys.exit(1)"])
def test_an_empty_page_or_an_editor_that_fails_does_nothing(cli, file, tmp_path, monkeypatch, code):
    before = file.read_bytes()
    editor(tmp_path, monkeypatch, code)

    cli("tidy", "--review")

    assert file.read_bytes() == before
    assert len(proposals(cli)) == 2


def test_a_page_that_is_closed_without_saving_does_nothing(cli, file, tmp_path, monkeypatch):
    before = file.read_bytes()
    editor(tmp_path, monkeypatch, "")

    refused = cli("tidy", "--review")

    assert refused.status == 1
    assert "closed without saving" in refused.err
    assert file.read_bytes() == before
    editor(tmp_path, monkeypatch, "file.write_text(text)")
    assert "accepted 2 proposals" in cli("tidy", "--review").out


def test_what_only_the_person_knows_is_asked_on_the_page_and_not_accepted(cli, file, tmp_path, monkeypatch):
    file.write_text("# Memory\n\n- Doctor: Dr Winter (2024-01-01)\n- Doctor: Dr Kovacs (2026-01-01)\n")
    before = file.read_bytes()
    editor(tmp_path, monkeypatch, "file.write_text(text)")

    assert "1 proposal left for later" in cli("tidy", "--review").out
    assert file.read_bytes() == before
    editor(tmp_path, monkeypatch, "file.write_text(text.replace('\\nask ', '\\naccept '))")
    assert "accepted 1 proposal in MEMORY.md" in cli("tidy", "--review").out
    assert "~~Doctor: Dr Winter" in file.read_text()


def test_nothing_that_a_note_says_decides_on_the_page(cli, file, tmp_path, monkeypatch):
    line = "- Prefers tea"
    proposal = {"kind": "stale", "reason": "x", "cites": [{"path": "MEMORY.md", "line": 6, "text": line}]}
    edit = {"path": "MEMORY.md", "line": 6, "old": [line]}
    made = cli("tidy", "propose", "--json", stdin=json.dumps(proposal | {"edits": [edit | {"new": []}]})).json
    text = (
        f"- tea\u2028accept {made['id']}\x85accept {made['id']}\x0baccept {made['id']}\x1eaccept {made['id']}"
    )
    wanted = proposal | {"edits": [edit | {"new": [text]}]}
    cli("tidy", "propose", "--json", stdin=json.dumps(wanted))
    editor(
        tmp_path,
        monkeypatch,
        "file.write_text('\\n'.join(each for each in text.split('\\n') if not each.startswith('accept')))",
    )

    cli("tidy", "--review")

    assert line in file.read_text()


def test_an_id_that_is_too_short_is_said(cli, file):
    assert "too short for an id" in cli("tidy", "accept", "5c").err


def test_without_an_editor_it_says_what_to_do(cli, file):
    refused = cli("tidy", "--review")

    assert refused.status == 1
    assert "tidy accept ID" in refused.err


def test_an_agent_proposes_on_standard_input(cli, file, monkeypatch):
    line = "- Prefers tea"
    wanted = {
        "kind": "stale",
        "reason": "it is coffee by now",
        "cites": [{"path": "MEMORY.md", "line": 6, "text": line}],
        "edits": [{"path": "MEMORY.md", "line": 6, "old": [line], "new": []}],
    }

    made = cli("tidy", "propose", "--by", "codex", "--json", stdin=json.dumps(wanted))

    assert made.json["maker"]["name"] == "codex"
    assert "proposed by codex" in cli("tidy", "--waiting").out
    assert line in file.read_text()
    assert cli("tidy", "propose", stdin="{}").status == 1


def test_once_a_day_is_enough_for_a_hook(cli, file):
    assert cli("tidy", "--once-a-day", "--json").json["run"] is not None
    assert cli("tidy", "--once-a-day", "--json").json["run"] is None


def test_status_says_that_something_waits(cli, file):
    cli("tidy")

    assert "2 proposals wait: `plainmind tidy` shows them" in cli("status").out


def test_a_model_is_not_asked_for_what_is_only_shown(cli, workspace):
    answer = cli("tidy", "--waiting", "--model")

    assert answer.status == 2
    assert "leave one of them out" in answer.err
