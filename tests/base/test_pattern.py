"""A pattern is a regular expression that nobody has compiled yet."""

from __future__ import annotations

import re

import pytest

from plainmind.base.lazy import pattern


def test_a_pattern_does_what_a_compiled_expression_does():
    lazy, compiled = (
        pattern(r"(?P<day>\d+)\s*d", re.IGNORECASE),
        re.compile(r"(?P<day>\d+)\s*d", re.IGNORECASE),
    )

    for text in ("12 D, 3d", "none", ""):
        for method in ("search", "match", "fullmatch", "findall", "split"):
            assert str(getattr(lazy, method)(text)) == str(getattr(compiled, method)(text))
        assert lazy.sub("x", text) == compiled.sub("x", text)
    assert lazy.groupindex == compiled.groupindex
    assert (lazy.pattern, lazy.flags) == (compiled.pattern, compiled.flags)


def test_a_pattern_is_compiled_by_its_first_use_and_not_before(monkeypatch):
    compiled = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or compile_now(*given))

    lazy = pattern("a+")
    assert compiled == []
    assert [bool(lazy.fullmatch(text)) for text in ("aa", "b", "a")] == [True, False, True]
    assert compiled == [("a+", 0)]


def test_a_mistake_in_a_pattern_is_still_reported():
    with pytest.raises(re.error):
        pattern("(").search("a")


def test_a_pattern_shows_what_it_looks_for():
    assert repr(pattern(r"\d")) == r"pattern('\\d')"
