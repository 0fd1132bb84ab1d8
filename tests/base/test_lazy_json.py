"""JSON of our own is read without loading `json`, and as `json` reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base import lazy
from plainmind.base.lazy import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1]))
def test_what_json_has_written_is_read_as_json_reads_it(value: object, indent: int | None) -> None:
    text = f" {json.dumps(value, indent=indent)}\n"

    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "  ", "nothing", "{", '{"a" 1}', "[1,]", "1 2", '"a', "{}x"])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (which one is not for us to say)
        parse_json(text)


def test_json_is_not_loaded_for_it() -> None:
    program = (
        "import sys; from plainmind.base.lazy import parse_json; parse_json('{\"a\": [1, 2.5]}');"
        " print('json' in sys.modules)"
    )

    untraced = {name: said for name, said in os.environ.items() if not name.startswith("COVERAGE")}
    said = subprocess.check_output([sys.executable, "-c", program], text=True, env=untraced)

    assert said == "False\n"


def test_another_python_reads_it_with_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "_scan", None)

    assert parse_json('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
