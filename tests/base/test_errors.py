"""Errors say what happened and what to do, also to those who only see a traceback."""

from __future__ import annotations

import pickle
import traceback

import pytest

from plainmind import Memory
from plainmind.base.errors import NotFound, WorkspaceError


def test_a_traceback_shows_what_to_do(tmp_path):
    with (
        Memory(tmp_path / "nowhere", home=tmp_path / "home") as memory,
        pytest.raises(WorkspaceError) as caught,
    ):
        memory.remember("The printer is on VLAN 40.")

    printed = "".join(traceback.format_exception(caught.value))
    assert f"hint: {caught.value.hint}" in printed
    assert "plainmind init" in printed


def test_an_error_without_a_hint_has_no_note():
    assert not hasattr(NotFound("there is no line 7"), "__notes__")


def test_a_hint_survives_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(NotFound("there is no line 7", hint="read from line 1")))

    assert (str(error), error.hint, error.__notes__) == (
        "there is no line 7", "read from line 1", ["hint: read from line 1"],
    )  # fmt: skip
