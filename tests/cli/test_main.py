"""What the command line accepts, and what it says to what it does not."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from datetime import date

import pytest

import plainmind
from plainmind.cli.main import COMMANDS, build_parser, parse
from plainmind.cli.options import UsageError
from plainmind.cli.parser import read_line


def all_commands():
    """Every parser below the top one, by its name."""
    waiting = [build_parser()]
    found = {}
    while waiting:
        for action in waiting.pop()._actions:
            if isinstance(action, argparse._SubParsersAction):
                found |= {parser.prog: parser for parser in action.choices.values()}
                waiting += action.choices.values()
    return found


def test_every_command_that_was_promised_is_there():
    assert list(COMMANDS) == [
        "init", "remember", "search", "get", "list", "links", "edit", "forget", "history", "restore", "undo",
        "recalls", "tidy", "sync", "watch", "status", "doctor", "config", "migrate-store", "cache", "sessions",
        "entries", "chat", "flush", "page", "serve", "tokens", "mcp", "connect", "disconnect", "hook", "import",
        "qmd", "redact", "export", "bench", "completion",
    ]  # fmt: skip


@pytest.mark.parametrize("prog", sorted(all_commands()))
def test_the_help_of_a_command_shows_an_example_and_a_purpose(prog):
    text = all_commands()[prog].format_help()

    assert "Examples:\n\n    " in text
    assert prog in text.partition("Examples:")[2] or prog == "plainmind restore"
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_says_where_data_goes(name):
    text = " ".join(all_commands()[f"plainmind {name}"].description.split())

    assert any(
        words in text for words in ("Only reads", "Only prints", "workspace", "~/.plainmind", "Goes to")
    )


def test_options_work_before_and_after_the_command_and_the_later_one_wins():
    before = parse(["--workspace", "/a", "--json", "--agent", "x", "status"])
    after = parse(["status", "--workspace", "/a", "--json", "--agent", "x"])
    both = parse(["--workspace", "/a", "status", "--workspace=/b"])

    for arguments in (before, after):
        assert (arguments.workspace, arguments.json, arguments.settings) == ("/a", True, {"agentId": "x"})
    assert both.workspace == "/b"


def test_settings_are_collected_from_every_level():
    arguments = parse(
        ["--config", "a=1", "config", "--config", "b=2", "list", "--config", "c=3", "--config", "a=4"]
    )

    assert arguments.settings == {"a": "4", "b": "2", "c": "3"}


def test_what_was_not_given_has_a_value_all_the_same():
    arguments = parse(["status"])

    assert (arguments.workspace, arguments.home, arguments.json, arguments.quiet, arguments.settings) == (
        None,
        None,
        False,
        False,
        {},
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["red", "apples"], ["red", "apples"]),
        (["red apples"], ["red apples"]),
        (["red", "-n", "3", "apples", "--json", "pie"], ["red", "apples", "pie"]),
        (["-n", "3", "-"], ["-"]),
        (["-n", "3", "--", "-v", "--verbose"], ["-v", "--verbose"]),
        (["-5 degrees"], ["-5 degrees"]),
    ],
)
def test_the_words_of_a_question_need_no_quotes(argv, words):
    assert parse(["search", *argv]).words == words


def test_a_search_reads_all_its_options():
    arguments = parse(
        [
            "search",
            "q",
            "-n",
            "3",
            "--min-score",
            "0.2",
            "--source",
            "all",
            "--snippet-chars",
            "90",
            "--explain",
            "--today",
            "2026-02-11",
            "--strict",
        ]
    )

    assert (arguments.max_results, arguments.min_score, arguments.source, arguments.snippet_chars) == (
        3,
        0.2,
        "all",
        90,
    )
    assert (arguments.explain, arguments.today, arguments.strict) == (True, date(2026, 2, 11), True)


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["search"], "QUERY"),
        (["search", "q", "-n", "0"], "whole number from 1"),
        (["search", "q", "-n", "many"], "whole number from 1"),
        (["search", "q", "--min-score", "nan"], "from 0 to 1"),
        (["search", "q", "--min-score", "2"], "from 0 to 1"),
        (["search", "q", "--source", "web"], "web"),
        (["search", "q", "--today", "soon"], "must be a date"),
        (["search", "q", "--frob"], "unknown option: --frob"),
        (["search", "q", "--frob", "x"], "unknown option: --frob"),
        (["get", "MEMORY.md", "--from", "0"], "whole number from 1"),
        (["get", "MEMORY.md", "--lines", "-4"], "whole number from 1"),
        (["get", "a.md", "b.md"], "unknown argument: b.md"),
        (["status", "--config", "nonsense"], "KEY=VALUE"),
        (["completion", "tcsh"], "tcsh"),
        (["config", "shout"], "shout"),
        (["--workspace"], "--workspace"),
        (["export", "--format", "pdf"], "pdf"),
    ],
)
def test_wrong_usage_is_one_error_and_one_hint_with_status_2(cli, argv, complaint):
    answer = cli(*argv)

    assert answer.status == 2
    assert answer.out == ""
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["error", "hint"]
    assert complaint in answer.err


def test_a_misspelt_option_is_set_right(cli):
    assert "did you mean `--tag`?" in cli("search", "q", "--tags", "garden").err
    assert "did you mean `--workspace`?" in cli("sync", "--workspce=notes").err
    assert "did you mean `--json`?" in cli("sessions", "list", "--jsn").err
    assert "did you mean `-n`?" in cli("search", "q", "--limit", "3").err
    assert "did you mean `list`?" in cli("sessions", "lst").err
    assert "did you mean" not in cli("sync", "--limit", "3").err
    assert "did you mean" not in cli("search", "q", "--frob").err


def test_a_misspelt_command_is_answered_with_the_nearest(cli):
    answer = cli("serach", "q")

    assert answer.status == 2
    assert "there is no command `serach`" in answer.err
    assert "did you mean `plainmind search`?" in answer.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("find", "search"), ("ADD", "remember"), ("rm", "forget"), ("show", "get"), ("Serach", "search")],
)
def test_what_other_programs_call_it_leads_to_what_we_call_it(cli, typed, meant):
    assert f"did you mean `plainmind {meant}`?" in cli(typed, "x").err


def test_help_and_version_may_be_typed_as_commands(cli):
    assert cli("help").out == cli("--help").out
    assert cli("help", "search").out == cli("search", "--help").out
    assert cli("version").out == cli("--version").out
    assert cli("help", "serach").status == 2


def test_texts_without_their_options_are_told_how_to_be_given(cli):
    answer = cli("edit", "MEMORY.md", "VLAN 40", "VLAN 41")

    assert answer.status == 2
    assert "--old TEXT --new TEXT" in answer.err
    assert "--help" in cli("edit", "MEMORY.md", "--bogus").err


def test_a_file_is_not_made_a_workspace_by_a_hint(cli, tmp_path):
    (tmp_path / "letter.md").write_text("# Letter\n")

    answer = cli("search", "x", "--workspace", str(tmp_path / "letter.md"))

    assert answer.status == 1
    assert "is not a folder" in answer.err
    assert "init" not in answer.err


def test_wrong_usage_is_json_too_when_json_is_asked_for(cli):
    answer = cli("search", "--json")

    assert answer.status == 2
    assert answer.json["error"]["type"] == "UsageError"
    assert "QUERY" in answer.json["error"]["message"]


def test_without_a_command_the_help_is_shown(cli):
    answer = cli()

    assert answer.status == 0
    assert "find the lines that answer a question" in answer.out


@pytest.mark.parametrize("argv", [["--version"], ["search", "--version"]])
def test_the_version_is_told_anywhere(cli, argv):
    answer = cli(*argv)

    assert (answer.status, answer.out) == (0, f"plainmind {plainmind.__version__}\n")


def test_an_abbreviated_option_is_not_guessed(cli):
    assert cli("search", "q", "--expl").status == 2


def test_settings_given_for_one_run_count(cli, workspace):
    answer = cli("--config", "query.maxResults=2", "config", "get", "query.maxResults", "--json")

    assert (answer.json["value"], answer.json["origin"]["kind"]) == (2, "flag")


def test_help_texts_have_no_unfilled_place(cli):
    for name in COMMANDS:
        text = cli(name, "--help").out
        assert "%(" not in text
        assert json.dumps(text)


@pytest.mark.parametrize(
    ("columns", "widest"), [("60", 60), ("100", 100), ("", 80), ("0", 80), ("wide", 80), ("-3", 80)]
)
def test_help_fits_the_width_that_is_there(cli, monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(os, "get_terminal_size", refuse_to_measure)

    lines = [line for line in cli("search", "--help").out.splitlines() if not line.startswith("    ")]

    assert widest - 25 < max(map(len, lines)) <= widest - 2


def refuse_to_measure(*_):
    raise OSError("not a terminal")


_ODD_WORDS = (
    *("red", "", "-", "--", "-5", "-n", "3", "0.5", "--nothing", "-x", "a b", "-h", "--json=1", "all"),
    *("2026-02-10", "memory/a.md", "KEY=VALUE"),
)


def outcome(read, line):
    """What came of a line: its arguments, or why there are none."""
    try:
        found = dict(vars(read(line)))
    except (UsageError, SystemExit) as refusal:
        return type(refusal), str(refusal)
    found.pop("parser", None)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_means_the_same_whether_argparse_reads_it_or_not(name, capsys):
    chance = random.Random(name)
    options = [
        option for action in all_commands()[f"plainmind {name}"]._actions for option in action.option_strings
    ]
    for _ in range(60):
        line = [name, *chance.choices([*options, *_ODD_WORDS], k=chance.randint(0, 5))]

        assert outcome(parse, line) == outcome(lambda line: read_line(line, COMMANDS), line), line
    capsys.readouterr()


def test_a_plain_line_is_read_without_argparse():
    program = (
        "import sys; from plainmind.cli.main import parse;"
        "print(vars(parse(sys.argv[1:]))['words'], 'argparse' in sys.modules)"
    )
    line = ["search", "red", "-n", "3", "apples", "--min-score", "0.5", "--json", "--source", "all"]
    ended = subprocess.run([sys.executable, "-c", program, *line], capture_output=True, text=True, check=True)

    assert ended.stdout == "['red', 'apples'] False\n"


@pytest.mark.parametrize("line", [["search", "--json", "x"], ["get", "--json", "nothing.md"]])
def test_an_error_in_json_reaches_a_pipe_whose_writer_keeps_it_back(tmp_path, line):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-m", "plainmind", *line, "--workspace", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PLAINMIND_HOME": str(tmp_path / "home")},
    )

    assert ended.returncode == 1
    assert json.loads(ended.stdout)["error"]["type"] == "WorkspaceError"
