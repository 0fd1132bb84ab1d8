"""Pages made from the program are the same on every Python, and a stale one is noticed."""

from __future__ import annotations

import argparse

import describe_cli
import describe_tools
import generate_docs
import pytest
import record_demo

from plainmind.agent.tools import TOOLS

RECORDED = """\
```console
# By word
$ plainmind search ERR_LEDGER_SKEW -n 1
memory/projects/lighthouse.md:13-14  0.91
$ plainmind remember "a thing"
memory/2026-11-15.md:1
```"""


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser(prog="tool", description="Does things.")
    commands = parser.add_subparsers()
    search = commands.add_parser("search", description="Find lines.", aliases=["s"])
    search.add_argument("query", metavar="QUERY", help="what to look for")
    search.add_argument(
        "-n", "--max-results", metavar="N", type=int, default=6, help="at most N (default: %(default)s)"
    )
    search.add_argument("--source", choices=["memory", "sessions"], help="only this source")
    search.add_argument("--json", action="store_true", help="print JSON")
    search.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
    return parser


def test_a_command_is_described_with_synopsis_and_arguments(parser):
    page = describe_cli.page_of(parser)

    assert "```\ntool search QUERY [-n N] [--source memory|sessions] [--json]\n```" in page
    assert "| `-n N`, `--max-results N` | at most N (default: 6) |" in page
    assert r"| `--source memory\|sessions` | only this source |" in page


def test_an_alias_is_not_a_second_command_and_hidden_options_stay_hidden(parser):
    page = describe_cli.page_of(parser)

    assert page.count("## `tool search`") == 1
    assert "--debug" not in page


def test_a_part_is_replaced_between_its_markers_and_nowhere_else():
    page = (
        f"before\n{generate_docs.START.format(name='x')}\nold\n{generate_docs.END.format(name='x')}\nafter\n"
    )

    new = generate_docs.with_part(page, "x", "new")

    assert new == page.replace("\nold\n", "\nnew\n")


def test_a_page_without_markers_says_which_to_add():
    with pytest.raises(generate_docs.NotThereYet, match="no markers for `first run`"):
        generate_docs.with_part("# Title\n", "first run", "text")


def test_a_stale_page_fails_the_check_and_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("old")

    assert not generate_docs.refresh("page.md", lambda _old: "new", check=True)
    assert (tmp_path / "page.md").read_text() == "old"
    assert "out of date" in capsys.readouterr().out


def test_other_times_scores_and_days_tell_the_same_story():
    assert record_demo.same_story(
        RECORDED, RECORDED.replace("0.91", "0.88").replace("2026-11-15", "2027-01-02")
    )


def test_another_first_answer_is_another_story():
    assert not record_demo.same_story(RECORDED, RECORDED.replace("lighthouse", "pelican"))
    assert not record_demo.same_story(RECORDED, RECORDED.replace("-n 1", "-n 2"))


def test_every_tool_is_described_with_its_arguments_and_its_answer():
    page = describe_tools.tools_page()

    for tool in TOOLS:
        assert f"## `{tool.name}`" in page
        for name in tool.input_schema["properties"]:
            assert f"| `{name}` | " in page
        for name in tool.output_schema["properties"]:
            assert f'"{name}"' in page
