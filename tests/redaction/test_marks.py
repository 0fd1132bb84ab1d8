from __future__ import annotations

import hashlib
import importlib.util
import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from plainmind.redaction import findings
from plainmind.redaction.findings import Marks, marks_in


def test_a_mark_names_the_kind_and_four_digits():
    assert re.fullmatch(r"\[redacted:github#[0-9a-f]{4}\]", Marks(b"k").mark("github", "secret"))


def test_the_digits_are_a_keyed_hash():
    key = hashlib.blake2b(b"k").digest()
    digits = hashlib.blake2b(b"secret", key=key, digest_size=2).hexdigest()

    assert Marks(b"k").mark("x", "secret") == f"[redacted:x#{digits}]"


def test_half_a_character_in_a_secret_is_no_obstacle():
    assert Marks(b"k").mark("x", "\ud800") != Marks(b"k").mark("x", "\ud801")


@given(st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True), st.text())
def test_every_mark_is_recognised(kind, secret):
    mark = Marks(b"k").mark(kind, secret)

    assert marks_in(f"a {mark}{mark}") == [(2, 2 + len(mark)), (2 + len(mark), 2 + 2 * len(mark))]


def test_what_only_resembles_a_mark_is_none():
    assert marks_in("[redacted:x#12] [redacted:] [redacted:X#1234] [redacted:x#12345]") == []
    assert marks_in("nothing") == []


def test_marks_are_the_same_where_python_has_no_blake2_of_its_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "_blake2", None)
    spec = importlib.util.spec_from_file_location("marks_anew", findings.__file__)
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)

    assert anew.Marks(b"k").mark("x", "secret") == Marks(b"k").mark("x", "secret")
