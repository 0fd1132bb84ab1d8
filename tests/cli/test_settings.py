"""`config` shows settings with their origins and changes the user's file."""

from __future__ import annotations

import json

import pytest


def test_every_setting_is_listed_with_its_origin(cli, workspace, home, monkeypatch):
    home.mkdir()
    (home / "plainmind.json5").write_text("{ query: { maxResults: 9 } } // mine\n")
    monkeypatch.setenv("PLAINMIND_CITATIONS", "off")

    rows = {row["key"]: row for row in cli("config", "list", "--json").json["settings"]}
    text = cli("config").out

    assert rows["query.maxResults"]["value"] == 9
    assert rows["query.maxResults"]["origin"] == {"kind": "user", "where": str(home / "plainmind.json5")}
    assert rows["citations"]["origin"] == {"kind": "environment", "where": "PLAINMIND_CITATIONS"}
    assert rows["sync.watch"]["origin"]["kind"] == "default"
    assert f"9  from user ({home / 'plainmind.json5'})" in text


def test_only_what_was_set_can_be_listed(cli):
    assert "everything is at its default" in cli("config", "list", "--set").err
    cli("config", "set", "query.maxResults", "7")
    assert cli("config", "list", "--set").out.startswith("query.maxResults  7  from user")


def test_a_value_and_a_section_can_be_read(cli, workspace):
    assert cli("config", "get", "query.maxResults").out == "6\n"
    assert cli("config", "get", "citations").out == "auto\n"
    assert "maxResults = 6" in cli("config", "get", "query").out


def test_set_changes_the_file_and_keeps_its_comments(cli, workspace, home):
    home.mkdir()
    (home / "plainmind.json5").write_text("{\n  // how many\n  query: { maxResults: 9 },\n}\n")

    change = cli("config", "set", "query.maxResults", "7", "--json").json

    assert change == {
        "schema_version": 1, "path": str(home / "plainmind.json5"), "key": "query.maxResults", "value": 7,
    }  # fmt: skip
    assert "// how many" in (home / "plainmind.json5").read_text()
    assert cli("config", "get", "query.maxResults").out == "7\n"


def test_set_creates_the_file(cli, home):
    assert cli("config", "set", "citations", "off").status == 0
    assert "citations" in (home / "plainmind.json5").read_text()


def test_set_writes_through_a_link_into_a_folder_of_dotfiles(cli, home, tmp_path):
    home.mkdir()
    (tmp_path / "dotfiles.json5").write_text("{}\n")
    (home / "plainmind.json5").symlink_to(tmp_path / "dotfiles.json5")

    assert cli("config", "set", "citations", "off").status == 0
    assert "citations" in (tmp_path / "dotfiles.json5").read_text()
    assert (home / "plainmind.json5").is_symlink()


def test_an_unknown_setting_is_answered_with_the_nearest(cli):
    answer = cli("config", "set", "query.maxResult", "3")

    assert answer.status == 1
    assert "unknown setting `query.maxResult`" in answer.err
    assert "did you mean `query.maxResults`?" in answer.err


def test_a_broken_file_names_the_key_and_the_file(cli, workspace, home):
    home.mkdir()
    (home / "plainmind.json5").write_text('{ query: { maxResults: "many" } }')

    answer = cli("search", "gateway")

    assert answer.status == 1
    assert "`query.maxResults` must be" in answer.err
    assert str(home / "plainmind.json5") in answer.err


def test_path_names_the_files_that_count(cli, workspace, home):
    (workspace / ".plainmind.json5").write_text("{ citations: 'off' }")

    paths = cli("config", "path", "--json").json
    text = cli("config", "path")

    assert (paths["user"], paths["userExists"]) == (str(home / "plainmind.json5"), False)
    assert paths["project"] == str(workspace / ".plainmind.json5")
    assert text.out.splitlines() == [paths["user"], paths["project"]]
    assert "does not exist yet" in text.err


def test_settings_of_openclaw_are_taken_over_and_read_each_time(cli, workspace, tmp_path):
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(
        json.dumps({"agents": {"defaults": {"memorySearch": {"query": {"maxResults": 11}, "odd": 1}}}})
    )

    taken = cli("config", "import-openclaw", "openclaw.json", "--json").json
    origin = cli("config", "get", "query.maxResults", "--json").json["origin"]

    assert taken["values"] == {"query.maxResults": 11}
    assert (taken["openclawConfig"], len(taken["notes"])) == (str(theirs), 1)
    assert origin == {"kind": "openclaw", "where": str(theirs)}


def test_an_openclaw_file_that_is_not_there_changes_nothing(cli, home):
    answer = cli("config", "import-openclaw", "nowhere.json")

    assert answer.status == 1
    assert not (home / "plainmind.json5").exists()


def test_home_can_be_named_by_an_option(cli, tmp_path):
    cli("--home", "other", "config", "set", "citations", "off")

    assert (tmp_path / "other" / "plainmind.json5").exists()


def test_a_number_out_of_range_is_not_replaced_silently(cli):
    low = cli("config", "set", "query.maxResults", "-5")
    fine = cli("config", "set", "query.maxResults", "5")

    assert low.out.startswith("query.maxResults = 1 ")
    assert low.err == "note: -5 is out of range; 1 is the nearest that is allowed\n"
    assert fine.err == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{ query: { maxResults: 3 } }", "{ query: {  } }"),
        ("{ query: { maxResults: 3, minScore: 0.2 } }", "{ query: { minScore: 0.2 } }"),
        ("{ query: { minScore: 0.2, maxResults: 3 } }", "{ query: { minScore: 0.2 } }"),
        ('{ "query.maxResults": 3 }', "{  }"),
        (
            "{\n  // mine\n  query: {\n    maxResults: 3, // few\n    minScore: 0.2, // low\n  },\n}\n",
            "{\n  // mine\n  query: {\n    minScore: 0.2, // low\n  },\n}\n",
        ),
        (
            "{\n  query: {\n    minScore: 0.2,\n    maxResults: 3\n  }\n}\n",
            "{\n  query: {\n    minScore: 0.2\n  }\n}\n",
        ),
    ],
)  # fmt: skip
def test_unset_takes_a_value_out_and_leaves_the_rest_as_it_was(cli, home, before, after):
    home.mkdir(exist_ok=True)
    (home / "plainmind.json5").write_text(before)
    answer = cli("config", "unset", "query.maxResults")

    assert answer.out == "query.maxResults = 6, the default\n"
    assert (home / "plainmind.json5").read_text() == after


def test_unset_of_what_is_not_set_says_what_counts(cli):
    answer = cli("config", "unset", "query.maxResults")

    assert answer.out == "query.maxResults = 6, the default\n"
    assert "not set in your own file" in answer.err


@pytest.mark.parametrize(
    ("key", "typed", "said"),
    [
        ("sources", '["memory", "nope"]', 'not the list ["memory", "nope"]'),
        ("query.maxResults", "[1,2]", "not the list [1,2]"),
        ("provider", '{"a": 1}', 'not the object {"a": 1}'),
        ("query.maxResults", "some", "not the text 'some'"),
        ("remote.headers", '["Bearer hidden"]', "not a list"),
    ],
)
def test_what_was_typed_is_called_what_it_is(cli, key, typed, said):
    refused = cli("config", "set", key, typed)

    assert refused.status == 1
    assert said in refused.err
    assert "hidden" not in refused.err


def test_a_setting_that_is_like_no_other_is_not_guessed(cli):
    assert "did you mean" not in cli("config", "set", "ignore", "drafts").err
    assert "did you mean `query.maxResults`?" in cli("config", "set", "maxResult", "3").err
