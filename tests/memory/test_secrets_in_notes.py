"""Secrets that stand in notes: agents see marks, people see their files, and `doctor` names the places."""

from __future__ import annotations

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.agent.tools import ToolBox
from plainmind.memory.doctor import examine
from plainmind.memory.secrets import part_without_secrets
from plainmind.redaction.engine import Redactor

PASSWORD = "kX9!mQ2#vT"
NOTE = f"# Router\n\nThe router stands in the hall.\nIts admin password is {PASSWORD}, changed in May.\n\nThe end.\n"


@pytest.fixture
def noted(workspace):
    (workspace / "memory" / "router.md").write_text(NOTE)
    return workspace


def opened(workspace, home, **config):
    return Memory(workspace, home=home, config=config)


def test_whatever_an_agent_is_shown_of_a_note_has_a_mark_in_place_of_the_secret(noted, home):
    with opened(noted, home) as memory:
        memory.sync()
        mine = memory.within(THE_OWNER)
        found = mine.search("admin password of the router").hits
        read = mine.get("memory/router.md", first_line=4, line_count=1)

        assert all(PASSWORD not in hit.snippet for hit in found)
        assert any("[redacted:password#" in hit.snippet for hit in found)
        assert read.text.startswith("Its admin password is [redacted:password#")
        assert read.first_line == 4
        assert PASSWORD not in mine.start_context().text
        assert (noted / "memory" / "router.md").read_text() == NOTE


def test_the_first_log_of_a_session_has_marks_too(workspace, home):
    (workspace / "MEMORY.md").write_text(NOTE)
    with opened(workspace, home) as memory:
        begun = memory.within(THE_OWNER).start_context().text

    assert "[redacted:password#" in begun
    assert PASSWORD not in begun


def test_what_would_be_forgotten_is_shown_without_secrets_and_goes_all_the_same(noted, home):
    with opened(noted, home) as memory:
        memory.sync()
        tools = ToolBox(memory.within(THE_OWNER))
        shown = tools.call("memory_forget", {"what": "memory/router.md:4"})
        code = shown.content["confirm"]
        assert PASSWORD not in shown.text + str(shown.content)

        gone = tools.call("memory_forget", {"what": "memory/router.md:4", "confirm": code})
        tools.close()

    assert gone.content["status"] == "forgotten"
    assert PASSWORD not in (noted / "memory" / "router.md").read_text()


def test_people_see_their_notes_as_they_are(noted, home):
    with opened(noted, home) as memory:
        memory.sync()

        assert PASSWORD in memory.get("memory/router.md").text
        assert any(PASSWORD in hit.snippet for hit in memory.search("admin password of the router").hits)


def test_agents_see_notes_as_they_are_where_the_settings_say_so(noted, home):
    with opened(noted, home, redaction={"notes": False}) as memory:
        assert PASSWORD in memory.within(THE_OWNER).get("memory/router.md").text


def test_doctor_names_the_place_and_the_kind_and_never_the_secret(noted, home):
    with opened(noted, home) as memory:
        checks = [check for check in examine(memory, verify=False) if check.name == "secrets"]

    assert checks[0].detail == "memory/router.md:4: password"
    assert checks[-1].detail.startswith("1 secret in notes")
    assert PASSWORD not in str(checks)


def test_doctor_is_silent_where_no_note_holds_a_secret(workspace, home):
    with opened(workspace, home) as memory:
        assert [check for check in examine(memory, verify=False) if check.name == "secrets"] == []


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("kX9!mQ2#vTpLw8, changed in May", "MARK, changed in May"),
        ("…mQ2#vTpLw8, changed", "…MARK, changed"),
        ("it is kX9!mQ2#vT…", "it is MARK…"),
        ("nothing here", "nothing here"),
        ("", ""),
    ],
)
def test_a_part_that_has_lost_the_name_of_a_secret_is_told_by_the_whole(part, shown):
    redactor = Redactor(key=b"k")
    whole = "The password is kX9!mQ2#vTpLw8, changed in May."
    mark = redactor.redact(whole).found[0].mark

    assert part_without_secrets(part, whole, redactor) == shown.replace("MARK", mark)


def test_every_line_of_a_key_is_hidden_in_a_part_of_it():
    body = "\n".join(f"MIIEpAIBAAKCAQEA{number}xYzAbCdEfGhIjKlMnOpQrStUvWxYz" for number in range(4))
    whole = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    part = body.split("\n")[2]

    assert "xYzAbCd" not in part_without_secrets(part, whole, Redactor(key=b"k"))


def test_claudes_memory_tool_shows_marks_and_writes_the_secrets_back(noted, home):
    with opened(noted, home) as memory:
        tool = memory.within(THE_OWNER).memory_tool()
        viewed = tool.call({"command": "view", "path": "/memories/router.md"}).text
        line = next(line for line in viewed.splitlines() if "admin password" in line).split("\t")[-1]
        assert PASSWORD not in viewed
        assert "[redacted:password#" in line

        edited = {"command": "str_replace", "path": "/memories/router.md", "old_str": line}
        answer = tool.call({**edited, "new_str": line.replace("in May", "in June")})
        tool.call(
            {
                "command": "insert",
                "path": "/memories/router.md",
                "insert_line": 0,
                "insert_text": f"Copied: {line}",
            }
        )
        tool.call({"command": "create", "path": "/memories/copy.md", "file_text": f"{line}\n"})

    assert not answer.is_error
    assert PASSWORD not in answer.text
    written = (noted / "memory" / "router.md").read_text()
    assert f"Its admin password is {PASSWORD}, changed in June." in written
    assert written.count(PASSWORD) == 2
    assert "[redacted:" not in written
    assert PASSWORD in (noted / "memory" / "copy.md").read_text()


def test_claudes_memory_tool_shows_everything_where_the_settings_say_so(noted, home):
    with opened(noted, home, redaction={"notes": False}) as memory:
        tool = memory.within(THE_OWNER).memory_tool()

        assert PASSWORD in tool.call({"command": "view", "path": "/memories/router.md"}).text


def test_a_key_of_many_lines_is_put_back_line_by_line(noted, home):
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(["MIIEabcdefghijklmnopqrstuvwxyz0123456789ABCDEF"] * 4)
    key += "\n-----END PRIVATE KEY-----"
    (noted / "memory" / "key.md").write_text(f"# Key\n\n{key}\n\nKeep it.\n")
    with opened(noted, home) as memory:
        tool = memory.within(THE_OWNER).memory_tool()
        viewed = tool.call({"command": "view", "path": "/memories/key.md"}).text
        tool.call(
            {"command": "str_replace", "path": "/memories/key.md", "old_str": "Keep it.", "new_str": "Kept."}
        )

    assert "MIIEabc" not in viewed
    assert (noted / "memory" / "key.md").read_text() == f"# Key\n\n{key}\n\nKept.\n"


CROWD = "".join(f"| box {at} | kX9mQ{at:05}vT |\n" for at in range(4_000))
FULL_NOTE = f"# Boxes\n\n| box | password |\n|---|---|\n{CROWD}\nThe boxes stand in the cellar.\n"


@pytest.mark.parametrize(
    "part",
    [
        "| box 3000 | kX9mQ03000vT |\n",
        "kX9mQ03000vT |\n| box 3001 | kX9mQ",
        "…X9mQ03000…",
        "…box 5 | kX9mQ00005vT",
    ],
)
def test_a_part_of_a_crowd_of_secrets_shows_none_of_them(part):
    shown = part_without_secrets(part, FULL_NOTE, Redactor(key=b"k"))

    assert "mQ0" not in shown
    assert "[redacted:" in shown
    assert shown.count("\n") == part.count("\n")


def test_a_part_beside_a_crowd_of_secrets_is_shown_as_it_is():
    part = "The boxes stand in the cellar."

    assert part_without_secrets(part, FULL_NOTE, Redactor(key=b"k")) == part


def test_a_crowd_of_secrets_is_put_back_as_it_was(noted, home):
    (noted / "memory" / "boxes.md").write_text(FULL_NOTE)
    home.mkdir()
    (home / "redaction.key").write_bytes(b"k" * 32)  # with another key two of the marks may be the same
    with opened(noted, home) as memory:
        tool = memory.within(THE_OWNER).memory_tool()
        viewed = tool.call({"command": "view", "path": "/memories/boxes.md", "view_range": [1, 6]}).text
        edit = {
            "command": "str_replace",
            "path": "/memories/boxes.md",
            "old_str": "cellar",
            "new_str": "attic",
        }
        answer = tool.call(edit)

    assert "kX9mQ" not in viewed
    assert not answer.is_error
    assert (noted / "memory" / "boxes.md").read_text() == FULL_NOTE.replace("cellar", "attic")
