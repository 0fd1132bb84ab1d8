"""Entries as lines: whatever is said, a line is that, with its parent in its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plainmind.base.errors import PlainmindError
from plainmind.sessions.entries import halves, join_halves

TEXT = st.text(st.characters(), max_size=20)  # half characters, quotes and control characters too
SAID = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(TEXT, TEXT, SAID, st.none() | TEXT)
@example("message", 'a","id":"b', {}, "p")
@example("message", "\\", "\\", "\\")
@example("\ud800", "é", "\udfff", "é")
def test_a_line_is_the_entry_with_its_parent(kind: str, name: str, said: object, parent: str | None) -> None:
    line = join_halves(halves({"type": kind, "id": name, "message": said}), parent)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = json.loads(line)
    assert list(found) == ["type", "id", "parentId", "message"]
    assert found == {"type": kind, "id": name, "parentId": parent, "message": said}


def test_the_order_of_the_fields_is_always_the_same() -> None:
    line = join_halves(halves({"data": 1, "id": "b", "type": "custom"}), "a")

    assert line == b'{"type":"custom","id":"b","parentId":"a","data":1}\n'
    assert (
        join_halves(halves({"type": "leaf", "id": "b"}), None)
        == b'{"type":"leaf","id":"b","parentId":null}\n'
    )
    assert join_halves(halves({"data": 1, "parentId": "x", "id": "b", "type": "custom"}), "a") == (
        b'{"type":"custom","id":"b","parentId":"x","data":1}\n'
    )


def test_what_json_cannot_say_is_refused() -> None:
    circle: dict[str, object] = {}
    circle["again"] = circle
    for said in (float("nan"), {1, 2}, b"bytes", circle):
        with pytest.raises(PlainmindError, match="cannot be written as JSON"):
            halves({"type": "message", "id": "a", "message": said})
