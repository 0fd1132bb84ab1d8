"""What a model gets wrong about a tool's arguments is said so that its next call is right."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.agent.tool_calls import Misuse, read_arguments
from plainmind.agent.tools import APPEND, FORGET, GET, SEARCH, STATUS, TOOLS

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["query", "maxResults", "minScore", "path", "from", "lines", "text", "what", "confirm"]
)


@pytest.mark.parametrize(
    ("tool", "given_", "taken"),
    [
        (SEARCH, '{"query": "tea"}', {"query": "tea"}),
        (SEARCH, {"query": "tea", "maxResults": None, "minScore": 0}, {"query": "tea", "minScore": 0}),
        (SEARCH, {"query": "tea", "maxResults": 3.0}, {"query": "tea", "maxResults": 3}),
        (GET, {"path": "MEMORY.md", "from": 7, "lines": 2}, {"path": "MEMORY.md", "from": 7, "lines": 2}),
        (STATUS, "", {}),
        (STATUS, "  ", {}),
        (STATUS, "{}", {}),
        (STATUS, {}, {}),
    ],
)
def test_arguments_are_taken_as_object_or_as_json(tool, given_, taken):
    assert read_arguments(tool, given_) == taken


@pytest.mark.parametrize(
    ("tool", "given_", "message", "action"),
    [
        (SEARCH, "{'query': 'tea'}", "are not valid JSON", 'call memory_search with {"query": text'),
        (SEARCH, '{"query": "tea"', "are not valid JSON", "call memory_search"),
        (SEARCH, "[" * 100_000, "are not valid JSON", "call memory_search"),
        (SEARCH, '{"query": "tea", "minScore": NaN}', "NaN is not a number", "call memory_search"),
        (SEARCH, '["tea"]', "are a list, not an object", "call memory_search"),
        (SEARCH, '"{}"', 'are the text "{}", not an object', "call memory_search"),
        (SEARCH, "null", "are null, not an object", "call memory_search"),
        (SEARCH, {}, "needs the argument `query`", "call memory_search"),
        (SEARCH, {"query": None}, "needs the argument `query`", "call memory_search"),
        (SEARCH, {"query": "  "}, "`query` is empty", "say something in `query`"),
        (SEARCH, {"query": 7}, "`query` must be text, not 7", "as one text in quotation marks"),
        (SEARCH, {"query": ["tea"]}, "`query` must be text, not a list", "as one text"),
        (SEARCH, {"query": "x" * 5000}, "has 5,000 characters; the limit is 4,000", "give less"),
        (SEARCH, {"query": "tea", "limit": 3}, "has no argument `limit`", '"maxResults": a whole number (optional)'),
        (SEARCH, {"query": "tea", "maxResults": "3"}, 'not the text "3"', 'write {"maxResults": 3}, without'),
        (SEARCH, {"query": "tea", "maxResults": "three"}, "not the text", "as a number, or leave it out"),
        (SEARCH, {"query": "tea", "maxResults": 2.5}, "a whole number, not 2.5", "or leave it out"),
        (SEARCH, {"query": "tea", "maxResults": True}, "a whole number, not true", "or leave it out"),
        (SEARCH, {"query": "tea", "maxResults": 0}, "`maxResults` is 0", "give 1 or more"),
        (SEARCH, {"query": "tea", "minScore": float("inf")}, "must be a number", "or leave it out"),
        (GET, {"path": "MEMORY.md", "from": 0}, "`from` is 0", "give 1 or more"),
        (GET, {"file": "MEMORY.md"}, "has no argument `file`", "call memory_get"),
        (APPEND, {"text": {"note": "x"}}, "`text` must be text, not an object", "as one text"),
        (FORGET, {"what": "tea", "confirm": True}, "`confirm` must be text, not true", "as one text"),
        (STATUS, {"deep": True}, "has no argument `deep`", "call memory_status with {}"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(tool, given_, message, action):
    with pytest.raises(Misuse) as caught:
        read_arguments(tool, given_)

    assert message in str(caught.value)
    assert action in caught.value.action


@given(st.sampled_from(TOOLS), anything | st.dictionaries(names, anything, max_size=3))
def test_whatever_is_given_is_taken_or_named_as_a_mistake(tool, given_):
    for form in (given_, json.dumps(given_, default=str)):
        try:
            taken = read_arguments(tool, form)
        except Misuse as misuse:
            message = f"{misuse} {misuse.action}"
        else:
            message = "taken"
            assert set(taken) <= set(tool.input_schema["properties"])
        assert 0 < len(message) < 1000
