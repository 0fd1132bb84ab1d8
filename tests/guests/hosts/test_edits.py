"""An entry of ours goes into what a person wrote, and out of it again, and nothing else changes."""

from __future__ import annotations

import json

import pytest

from plainmind.base.errors import ConfigError
from plainmind.guests.hosts.edits import Edit, read_json, with_edit, without_edit, without_empty

SERVER = Edit("member", ("mcpServers", "plainmind"), {"command": "/bin/plainmind", "args": ["mcp"]})
HOOK = Edit(
    "item",
    ("hooks", "Stop"),
    {"hooks": [{"type": "command", "command": "/bin/plainmind hook", "timeout": 5}]},
)
TABLE = Edit(
    "table",
    ("mcp_servers", "plainmind"),
    '[mcp_servers.plainmind]\ncommand = "/bin/plainmind"\nargs = ["mcp"]\n',
)
BLOCK = Edit("block", ("extensions", "plainmind"), 'plainmind:\n  cmd: "/bin/plainmind"\n  enabled: true\n')

JSON_FILES = {
    "plain": '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  },\n  "hooks": {\n    "Stop": [\n'
    '      {"a": 1}\n    ]\n  }\n}\n',
    "tabs": '{\n\t"mcpServers": {\n\t\t"other": {}\n\t},\n\t"hooks": {"Stop": [{"a": 1}]}\n}',
    "in one line": '{"mcpServers": {"other": {}}, "hooks": {"Stop": [{"a": 1}], "Start": []}}',
    "comments": '{\n  // servers of mine\n  "mcpServers": {\n    "other": {} // the last one\n  },\n'
    '  /* and */ "hooks": {\n    "Stop": [\n      {"a": 1}, // mine\n    ],\n  },\n}\n',
    "windows": '{\r\n  "mcpServers": {\r\n    "other": {}\r\n  },\r\n  "hooks": {\r\n    "Stop": [\r\n'
    '      {"a": 1}\r\n    ]\r\n  }\r\n}\r\n',
    "not only ASCII": '{\n  "mcpServers": {"über": {"command": "日本"}},\n  "hooks": {"Stop": ["\\u00e9"]}\n}\n',
}


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize("edit", [SERVER, HOOK], ids=["server", "hook"])
def test_json_is_byte_for_byte_what_it_was(name, edit):
    text = JSON_FILES[name]

    put_in = with_edit(text, edit)

    assert "/bin/plainmind" in put_in
    assert read_json(put_in)["mcpServers"].items() >= read_json(text)["mcpServers"].items()
    assert with_edit(put_in, edit) == put_in
    assert without_edit(put_in, edit) == text


def test_comments_and_what_a_person_has_are_where_they_were():
    text = JSON_FILES["comments"]

    lines = with_edit(with_edit(text, SERVER), HOOK).splitlines()

    assert '    "other": {}, // the last one' in lines
    assert '      {"a": 1}, // mine' in lines
    assert "  // servers of mine" in lines


def test_what_was_not_there_is_made_and_goes_again():
    text = '{\n    "theme": "dark"\n}\n'

    put_in = with_edit(text, HOOK)

    assert '\n    "hooks": {\n        "Stop": [\n            {' in put_in  # as wide as the file's own
    emptied = without_empty(without_empty(without_edit(put_in, HOOK), ("hooks", "Stop")), ("hooks",))
    assert emptied == text


def test_a_list_of_somebody_else_that_is_empty_stays():
    text = '{"hooks": {"Stop": [{"a": 1}]}}'

    assert without_empty(text, ("hooks", "Stop")) == text


def test_an_empty_file_becomes_json():
    assert json.loads(with_edit("", SERVER)) == {"mcpServers": {"plainmind": SERVER.content}}
    assert json.loads(with_edit("{}", SERVER)) == {"mcpServers": {"plainmind": SERVER.content}}


def test_an_entry_of_ours_by_hand_is_replaced():
    text = '{"mcpServers": {"plainmind": {"command": "plainmind", "args": ["mcp"]}, "z": {}}}'

    assert read_json(with_edit(text, SERVER)) == {"mcpServers": {"plainmind": SERVER.content, "z": {}}}


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ('{"mcpServers": {"plainmind": {"command": "node", "args": ["other.js"]}}}', SERVER),
        ('[mcp_servers.plainmind]\ncommand = "node"\n', TABLE),
        ("extensions:\n  plainmind:\n    cmd: node\n", BLOCK),
    ],
    ids=["json", "toml", "yaml"],
)
def test_another_server_of_our_name_is_left_alone(text, edit):
    with pytest.raises(ConfigError, match=r"another \w+ has the name `plainmind`"):
        with_edit(text, edit)


@pytest.mark.parametrize(
    ("text", "edit", "reason"),
    [
        ('{"mcpServers": {', SERVER, "not valid JSON"),
        ("[1, 2]", SERVER, "not an object"),
        ('{"mcpServers": "none"}', SERVER, "`mcpServers` is not an object"),
        ('{"hooks": {"Stop": {}}}', HOOK, "`Stop` is not a list"),
        ("[mcp_servers\n", TABLE, "not valid TOML"),
        ("mcp_servers = { other = {} }\n", TABLE, "cannot change safely"),
        ("extensions: {a: {}}\n", BLOCK, "cannot change safely"),
        ("extensions:\n\ta: 1\n", BLOCK, "not valid YAML"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_a_sentence(text, edit, reason):
    with pytest.raises(ConfigError, match=reason) as refused:
        with_edit(text, edit)
    assert refused.value.hint


TOML_FILES = {
    "plain": 'model = "gpt-5"  # mine\n\n[mcp_servers.other]\ncommand = "x"\n',
    "no last newline": 'model = "gpt-5"',
    "blank lines at the end": 'model = "gpt-5"\n\n\n',
    "empty": "",
    "windows": 'model = "gpt-5"\r\n\r\n[a]\r\nb = 1\r\n',
}


@pytest.mark.parametrize("name", TOML_FILES)
def test_toml_is_what_it_was_but_for_a_newline_at_its_end(name):
    text = TOML_FILES[name]

    put_in = with_edit(text, TABLE)

    assert put_in.startswith(text)
    assert without_edit(put_in, TABLE).rstrip("\r\n") == text.rstrip("\r\n")
    if name == "plain":
        assert without_edit(put_in, TABLE) == text


def test_a_table_goes_whole_when_its_host_has_written_more_into_it():
    text = (
        '[mcp_servers.plainmind]\ncommand = "/bin/plainmind"\nargs = ["mcp"]\nenabled = false\n\n'
        '[mcp_servers.plainmind.tools.memory_search]\napproval_mode = "approve"\n\n'
        '[projects."/a"]\ntrust_level = "trusted"\n'
    )

    assert without_edit(text, TABLE) == '[projects."/a"]\ntrust_level = "trusted"\n'


def test_the_tables_behind_ours_stay():
    text = with_edit("a = 1\n", TABLE) + '\n[projects."/a"]\ntrust_level = "trusted"\n'

    assert without_edit(text, TABLE) == 'a = 1\n\n[projects."/a"]\ntrust_level = "trusted"\n'


YAML_FILES = {
    "plain": "# mine\nGOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n  # next\n"
    "  memory:\n    enabled: false\nlast: 1\n",
    "wide": "extensions:\n    developer:\n        enabled: true\n",
    "a list inside": "extensions:\n  developer:\n    args:\n    - a\n    - b\n\nlast: 1\n",
}


@pytest.mark.parametrize("name", YAML_FILES)
def test_yaml_is_byte_for_byte_what_it_was(name):
    text = YAML_FILES[name]

    put_in = with_edit(text, BLOCK)

    assert "plainmind:\n" in put_in
    assert with_edit(put_in, BLOCK) == put_in
    assert without_edit(put_in, BLOCK) == text


def test_a_block_goes_whole_when_somebody_has_changed_it():
    text = with_edit(YAML_FILES["plain"], BLOCK).replace(
        "    enabled: true\n", "    enabled: false\n    x: 1\n", 1
    )

    assert without_edit(text, BLOCK) == YAML_FILES["plain"]


def test_an_extensions_key_is_made_where_there_is_none():
    assert (
        with_edit("a: 1", BLOCK)
        == 'a: 1\nextensions:\n  plainmind:\n    cmd: "/bin/plainmind"\n    enabled: true\n'
    )
