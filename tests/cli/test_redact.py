"""`redact`: what would be hidden, without showing it."""

from __future__ import annotations

import pytest

TOKEN = "ghp_" + "a1B2" * 9
TEXT = f"first\r\ndeploy with {TOKEN} today\nDB_PASSWORD=swordfish\n\nthe end\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(TEXT.encode())
    return path


def test_every_secret_is_listed_with_its_line_and_none_is_printed(cli, file):
    answer = cli("redact", str(file))
    first, second, count = answer.out.splitlines()

    assert answer.status == 4
    assert first.startswith(f"{file}:2  deploy with [redacted:github#")
    assert first.endswith("] today")
    assert second.startswith(f"{file}:3  DB_PASSWORD=[redacted:password#")
    assert count == "2 secrets in 2 lines"
    assert TOKEN not in answer.out
    assert "swordfish" not in answer.out


def test_as_json_each_has_kind_place_and_mark(cli, file):
    answer = cli("redact", str(file), "--json")
    found = answer.json["found"]

    assert answer.status == 4
    assert [(one["kind"], one["line"], one["endLine"], one["column"]) for one in found] == [
        ("github", 2, 2, 13),
        ("password", 3, 3, 13),
    ]
    assert found[0]["mark"].startswith("[redacted:github#")
    assert "text" not in answer.json


def test_the_text_itself_comes_without_secrets_and_with_its_line_ends(process, file):
    answer = process("redact", str(file), "--text")

    assert answer.status == 0
    assert answer.out.startswith("first\r\ndeploy with [redacted:github#")
    assert answer.out.endswith("\n\nthe end\n")
    assert answer.out.count("\n") == TEXT.count("\n")
    assert file.read_bytes() == TEXT.encode()


def test_the_text_can_be_had_as_json_too(cli, file):
    answer = cli("redact", str(file), "--text", "--json")

    assert answer.status == 0
    assert answer.json["text"].startswith("first\r\n")


def test_the_same_secret_has_the_same_mark_the_next_time(cli, file):
    assert cli("redact", str(file)).out == cli("redact", str(file)).out


def test_nothing_to_hide_is_said_and_is_no_failure(cli):
    answer = cli("redact", "-", stdin="The printer is on VLAN 40.\n")

    assert (answer.status, answer.out) == (0, "nothing to hide\n")
    assert cli("redact", "-", "--quiet", stdin="nothing").out == ""


def test_a_secret_of_the_settings_is_hidden_too(cli, file, monkeypatch):
    monkeypatch.setenv("PLAINMIND_REMOTE_APIKEY", "correct horse battery")
    answer = cli("redact", "-", "--json", stdin="it was correct horse battery, I think")

    assert [one["kind"] for one in answer.json["found"]] == ["configured"]


def test_of_a_long_line_only_the_part_around_the_secret_is_shown(cli):
    words = "word " * 100
    answer = cli("redact", "-", stdin=f"{words}password: hunter22 {words}\n")
    line = answer.out.splitlines()[0]

    assert len(line) < 180
    assert line.startswith("-:1  …")
    assert line.endswith("…")


def test_a_key_of_several_lines_moves_no_line_number(cli):
    body = "\r\n".join(["MIIE" + "Ab1+" * 15] * 3)
    key = f"-----BEGIN PRIVATE KEY-----\r\n{body}\r\n-----END PRIVATE KEY-----"
    answer = cli("redact", "-", stdin=f"a\n{key}\nx password: hunter22 y\n")

    assert [line.partition("  ")[0] for line in answer.out.splitlines()[:2]] == ["-:2", "-:7"]
    assert answer.out.splitlines()[1].startswith("-:7  x password: [redacted:password#")


def test_a_file_that_is_not_there_is_an_error_in_one_line(cli):
    answer = cli("redact", "nowhere.txt")

    assert answer.status == 1
    assert "nowhere.txt: No such file or directory" in answer.err
