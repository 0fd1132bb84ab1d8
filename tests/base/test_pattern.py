"""A pattern is a regular expression that nobody has compiled yet."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import plainmind
from plainmind.base import lazy
from plainmind.base.lazy import Expressions, pattern

SOURCE = r"(?P<day>\d{1,2})\.\s*([㐀-䶿一-鿿]+)"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where compiled expressions are kept, by a Python that may keep them."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "kept.expressions"


@pytest.fixture
def kept(path):
    """One expression, compiled and kept."""
    expressions = Expressions(str(path))
    expressions.compiled(SOURCE, lazy.IGNORECASE)
    expressions.keep()
    return path


def kept_in(path):
    """The expressions that a process would find."""
    return {lazy._opened(entry)[:2] for entry in Expressions(str(path))._read().values()}


def run_python(program, *arguments):
    plain = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE")}
    plain.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, env=plain
    )


def test_a_pattern_does_what_a_compiled_expression_does():
    uncompiled, compiled = (
        pattern(r"(?P<day>\d+)\s*d", re.IGNORECASE),
        re.compile(r"(?P<day>\d+)\s*d", re.IGNORECASE),
    )

    for text in ("12 D, 3d", "none", ""):
        for method in ("search", "match", "fullmatch", "findall", "split"):
            assert str(getattr(uncompiled, method)(text)) == str(getattr(compiled, method)(text))
        assert uncompiled.sub("x", text) == compiled.sub("x", text)
    assert uncompiled.groupindex == compiled.groupindex
    assert (uncompiled.pattern, uncompiled.flags) == (compiled.pattern, compiled.flags)


def test_a_pattern_is_compiled_by_its_first_use_and_not_before(monkeypatch):
    compiled = []
    compile_now = lazy.Expressions.compiled
    monkeypatch.setattr(
        lazy.Expressions, "compiled", lambda *given: compiled.append(given[1:]) or compile_now(*given)
    )

    uncompiled = pattern("a+")
    assert compiled == []
    assert [bool(uncompiled.fullmatch(text)) for text in ("aa", "b", "a")] == [True, False, True]
    assert compiled == [("a+", 0)]


def test_a_mistake_in_a_pattern_is_still_reported():
    with pytest.raises(re.error):
        pattern("(").search("a")


def test_a_pattern_shows_what_it_looks_for():
    assert repr(pattern(r"\d")) == r"pattern('\\d')"


def test_flags_are_those_of_re():
    assert (lazy.IGNORECASE, lazy.MULTILINE, lazy.DOTALL) == (re.IGNORECASE, re.MULTILINE, re.DOTALL)


def test_every_expression_of_the_program_is_kept_as_re_compiles_it(path):
    for module in pkgutil.walk_packages(plainmind.__path__, "plainmind."):
        if not module.name.startswith(("plainmind.guests", "plainmind.__main__")):
            importlib.import_module(module.name)
    ours = [
        (found._source, found._flags)
        for name, module in list(sys.modules.items())
        if name.startswith("plainmind.")
        for found in vars(module).values()
        if isinstance(found, lazy._Uncompiled)
    ]
    first = Expressions(str(path))
    for source, flags in ours:
        assert first.compiled(source, flags) == re.compile(source, flags)
    first.keep()

    second = Expressions(str(path))
    assert len(ours) > 100
    for source, flags in ours:
        assert second.compiled(source, flags) == re.compile(source, flags)


def test_what_was_compiled_once_needs_no_re_any_more(kept):
    found = run_python(
        "import sys; from plainmind.base.lazy import Expressions, IGNORECASE;"
        f"print(Expressions(sys.argv[1]).compiled({SOURCE!r}, IGNORECASE).search('am 12. 一月')['day']);"
        "print('re' in sys.modules, 'enum' in sys.modules)",
        str(kept),
    )

    assert found.stdout.split() == ["12", "False", "False"], found.stderr


def test_what_two_processes_have_compiled_is_kept_of_both(kept):
    other = Expressions(str(kept))
    other.compiled("b+", 0)
    other.keep()

    assert kept_in(kept) == {(SOURCE, lazy.IGNORECASE), ("b+", 0)}
    assert os.listdir(kept.parent) == [kept.name]


@pytest.mark.parametrize("at", [0, 3, 4, 12, 40, 150, 200, -1])
def test_what_has_changed_on_the_disk_is_compiled_anew(kept, at, monkeypatch):
    content = bytearray(kept.read_bytes())
    content[at] ^= 1
    kept.write_bytes(content)
    compiled = []
    compile_now = lazy._compile
    monkeypatch.setattr(lazy, "_compile", lambda *given: compiled.append(given) or compile_now(*given))

    assert Expressions(str(kept)).compiled(SOURCE, lazy.IGNORECASE) == re.compile(SOURCE, re.IGNORECASE)
    assert compiled == [(SOURCE, lazy.IGNORECASE)]


@pytest.mark.parametrize("size", [0, 3, 4, 11, 12, 100, 200])
def test_what_was_cut_off_is_compiled_anew(kept, size):
    kept.write_bytes(kept.read_bytes()[:size])

    assert Expressions(str(kept)).compiled(SOURCE, lazy.IGNORECASE) == re.compile(SOURCE, re.IGNORECASE)


def test_what_another_python_has_compiled_is_not_used(kept, monkeypatch):
    monkeypatch.setattr(lazy, "_this_python", lambda: ("another", 1))

    assert Expressions(str(kept))._read() == {}


def test_nothing_is_kept_where_python_keeps_no_modules(path, monkeypatch):
    expressions = Expressions(str(path))
    expressions.compiled("a", 0)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    expressions.keep()

    assert not path.exists()


def test_nobody_else_may_write_what_is_kept(path):
    before = os.umask(0)
    try:
        expressions = Expressions(str(path))
        expressions.compiled("a", 0)
        expressions.keep()
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o644


def test_where_nothing_can_be_written_all_goes_on_without(path):
    expressions = Expressions(str(path / "no folder"))
    expressions.compiled("a", 0)

    expressions.keep()
    assert expressions.compiled("a", 0).search("a")


def test_a_full_disk_leaves_no_part_of_what_was_to_be_kept(kept):
    before = kept.read_bytes()

    found = run_python(
        "import resource, sys; from plainmind.base.lazy import Expressions;"
        "expressions = Expressions(sys.argv[1]); expressions.compiled('c+', 0);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        "expressions.keep(); print(bool(expressions.compiled('c+', 0).search('c')))",
        str(kept),
    )

    assert found.stdout.split() == ["True"], found.stderr
    assert os.listdir(kept.parent) == [kept.name]
    assert kept.read_bytes() == before


def test_a_python_that_is_made_otherwise_compiles_as_ever(path, monkeypatch):
    def missing(_source, _flags):
        raise ImportError

    monkeypatch.setattr(lazy, "_compile", missing)
    expressions = Expressions(str(path))
    assert expressions.compiled("a", 0) == re.compile("a")
    expressions.keep()

    assert not path.exists()


def test_the_command_keeps_what_it_has_compiled(path):
    found = run_python(
        "import sys; from plainmind.base import lazy; lazy._EXPRESSIONS._path = sys.argv.pop();"
        "lazy.pattern('a+').search('a'); sys.argv = ['plainmind', '--version'];"
        "from plainmind.cli import run; run()",
        str(path),
    )

    assert found.returncode == 0, found.stderr
    assert ("a+", 0) in kept_in(path)
