"""Whatever a model calls with whatever arguments, it gets an answer, and nothing that it did not ask for happens."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.support.examples import examples

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.agent.tools import TOOLS, ToolBox

SHAPES = {tool.name: Draft202012Validator(tool.output_schema) for tool in TOOLS}
TEXT = "# Memory\n\nThe gateway runs in the cellar.\n"

paths = st.sampled_from(
    ["MEMORY.md", "memory/../MEMORY.md", "MEMORY.md#L0", "MEMORY.md#L9-L1", "m/\x00.md", "/etc/passwd", "\ud800.md"]
)  # fmt: skip
words = st.text(max_size=30) | st.sampled_from(
    ["gateway", "The", "MEMORY.md#L1", "*" * 500, "\ud800", "\x00"]
)
numbers = st.integers() | st.floats() | st.sampled_from(["3", "1e999", True, 10**400])
anything = st.recursive(
    st.none() | st.booleans() | numbers | words | paths,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
likely = st.fixed_dictionaries(
    {},
    optional={
        "query": words,
        "path": paths | words,
        "what": words | paths,
        "confirm": words,
        "from": numbers,
        "lines": numbers,
        "maxResults": numbers,
        "minScore": numbers,
    },
)
# Saving is left out: it does what it is asked to do.
tools = st.sampled_from(["memory_search", "memory_get", "memory_forget", "memory_status"]) | words


def _as_json(arguments: object) -> str:
    return json.dumps(arguments, default=str)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "notes").mkdir()
    (folder / "notes" / "MEMORY.md").write_text(TEXT)
    with Memory(folder / "notes", home=folder / "home") as memory:
        box = ToolBox(memory.within(THE_OWNER))
        yield folder / "notes", box, memory.within(THE_OWNER).memory_tool()
        box.close()


@pytest.mark.timeout(60)
@given(tools, likely | anything | likely.map(_as_json) | anything.map(_as_json) | words)
@settings(
    max_examples=examples(400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_call_of_a_tool_gets_an_answer(place, name, arguments):
    folder, box, _ = place

    answer = box.call(name, arguments)

    json.dumps(answer.content).encode()
    answer.text.encode()
    if name in SHAPES:
        SHAPES[name].validate(answer.content)
    assert answer.text
    assert (folder / "MEMORY.md").read_text() == TEXT


commands = st.fixed_dictionaries(
    {"command": st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename"]) | anything},
    optional={
        "path": st.sampled_from(["/memories/../x.md", "/memories/a\x00.md", "/memories/\ud800.md"]) | anything,
        "old_path": anything,
        "new_path": anything,
        "file_text": anything,
        "old_str": anything,
        "new_str": anything,
        "insert_line": anything,
        "insert_text": anything,
        "view_range": anything,
    },
)  # fmt: skip


NUMBERS = {
    "googol to the fourth": 10**400,
    "its negative": -(10**400),
    "too long to be written out": 10**5000,
    "its negative too": -(10**5000),
    "largest float": 1e308,
    "smallest float": 1e-320,
    "more lines than there are": 10**18,
    "one too many bits": 2**63,
    "negative": -1,
}


@pytest.mark.parametrize("size", NUMBERS)
def test_a_number_of_any_size_gets_an_answer(place, size):
    number = NUMBERS[size]
    _, box, tool = place

    for name, arguments in (
        ("memory_search", {"query": "gateway", "minScore": number}),
        ("memory_search", {"query": "gateway", "maxResults": number}),
        ("memory_get", {"path": "MEMORY.md", "from": number}),
        ("memory_get", {"path": "MEMORY.md", "lines": number}),
    ):
        SHAPES[name].validate(box.call(name, arguments).content)
    assert tool.call({"command": "view", "path": "/memories/MEMORY.md", "view_range": [number, number]}).text
    insert = {"command": "insert", "path": "/memories/MEMORY.md", "insert_line": number, "insert_text": "x"}
    assert tool.call(insert).is_error


@pytest.mark.timeout(60)
@given(commands | anything | commands.map(_as_json))
@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_command_of_the_memory_tool_gets_an_answer(place, command):
    folder, _, tool = place

    answer = tool.call(command)

    answer.text.encode()
    assert answer.text
    assert [path.name for path in folder.iterdir()] == ["MEMORY.md"]
    assert (folder / "MEMORY.md").read_text() == TEXT
