"""A command that is shown can be typed as it stands."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import shell_word


@pytest.mark.parametrize("text", ["/home/ana/notes", "agent:main:main", "Jürgens-笔记", "a@b+c=d,e%f"])
def test_what_is_one_word_stays_as_it_is(text):
    assert shell_word(text) == text


@pytest.mark.parametrize("text", ["my notes", "", "it's", "$HOME", "a;b", "~/x", "*", "line\nbreak"])
def test_what_a_shell_would_take_apart_is_quoted(text):
    assert shell_word(text).startswith("'")
    assert shlex.split(shell_word(text)) == [text]


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_shell_reads_the_text_back(text):
    assert shlex.split(shell_word(text)) == [text]
