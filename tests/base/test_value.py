"""A value does what a frozen dataclass with slots does, whoever looks at it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from plainmind.base.value import MISSING, _Shape, asdict, field, fields, record, replace, value

MANY = 100  # more than a class needs to get a constructor of its own


@value
class Place:
    """Where something stands."""

    path: str
    line: int = 1
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", repr=False, compare=False, metadata={"doc": "a remark"})

    LARGEST: ClassVar[int] = 9

    @property
    def cited(self) -> str:
        return f"{self.path}#L{self.line}"


@value
class Span(Place):
    """Lines from one to another."""

    last: int = 0
    line: int = 7


@value
class Pair:
    first: int
    place: Place


@value
class Nothing:
    """A value without fields."""


@record
class Tally:
    count: int = 0
    seen: list[str] = field(default_factory=list)


names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)
contents = st.integers(-3, 3) | st.text(max_size=2) | st.none() | st.just(float("nan"))


@st.composite
def declarations(draw):
    """Fields in order: (name, kind of default, default, repr, compare)."""
    chosen = draw(names)
    without = draw(st.integers(0, len(chosen)))
    return [
        (
            name,
            "none" if at < without else draw(st.sampled_from(("plain", "field", "factory"))),
            draw(contents),
            draw(st.booleans()),
            draw(st.booleans()),
        )
        for at, name in enumerate(chosen)
    ]


def declared(rows, make_field):
    namespace = {"__annotations__": {name: "object" for name, *_ in rows}, "__module__": __name__}
    for name, default_kind, default, in_repr, compared in rows:
        if default_kind == "plain":
            namespace[name] = default
        elif default_kind == "field":
            namespace[name] = make_field(default=default, repr=in_repr, compare=compared)
        elif default_kind == "factory":
            namespace[name] = make_field(default_factory=list, repr=in_repr, compare=compared)
    return type("Sample", (), namespace)


def outcome(act):
    try:
        return act()
    except TypeError as error:
        return f"TypeError: {error}"


@settings(max_examples=examples(300), deadline=None)
@given(
    declarations(),
    st.lists(contents, max_size=7),
    st.dictionaries(st.sampled_from("abcdefghxy"), contents, max_size=4),
    st.integers(0, 40),
)
def test_any_declaration_behaves_as_a_frozen_dataclass(rows, given_values, named, made_before):
    ours = value(declared(rows, field))
    theirs = dataclasses.dataclass(frozen=True, slots=True)(declared(rows, dataclasses.field))
    filling = dict.fromkeys((name for name, *_ in rows), 0)
    for _ in range(made_before):
        ours(**filling)

    mine, other = (outcome(lambda kind=kind: kind(*given_values, **named)) for kind in (ours, theirs))

    if isinstance(other, str):
        assert mine == other
        return
    assert repr(mine) == repr(other)
    assert outcome(lambda: hash(mine)) == outcome(lambda: hash(other))
    assert asdict(mine) == dataclasses.asdict(other)
    assert (mine == replace(mine)) is (other == dataclasses.replace(other))
    assert (mine == ours(**filling)) is (other == theirs(**filling))
    assert mine != other
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert not hasattr(mine, "__dict__")


def test_a_class_that_is_made_often_gets_a_constructor_of_its_own():
    @value
    class Point:
        x: int
        y: int = 2

    shared = Point.__init__
    made = [Point(number) for number in range(MANY)]

    assert Point.__init__ is not shared
    assert [(point.x, point.y) for point in made] == [(number, 2) for number in range(MANY)]
    assert Pair.__init__ is shared


def test_nothing_is_compiled_when_a_class_is_defined_or_made_a_few_times(monkeypatch):
    monkeypatch.setattr(_Shape, "constructor", lambda _: pytest.fail("compiled a constructor"))

    @value
    class Point:
        x: int
        y: int = 2

    assert Point(1) == Point(x=1, y=2)


@pytest.mark.parametrize("calls", [1, MANY])
def test_every_value_gets_a_fresh_default_from_its_factory(calls):
    made = [Place("a") for _ in range(calls)]
    made[0].tags.append("x")

    assert Place("a").tags == []


def test_a_value_cannot_be_changed():
    place = Place("a.md")

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'line'"):
        place.line = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'line'"):
        del place.line
    with pytest.raises(AttributeError):
        place.other = 3
    assert place == Place("a.md")


def test_a_record_can_be_changed_and_has_no_hash():
    tally = Tally()
    tally.count += 2
    tally.seen.append("a")

    assert tally == Tally(2, ["a"])
    assert repr(tally) == "Tally(count=2, seen=['a'])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(tally)
    with pytest.raises(AttributeError):
        tally.other = 1
    assert pickle.loads(pickle.dumps(tally)) == copy.deepcopy(tally) == tally


def test_methods_properties_and_constants_of_a_class_stay():
    assert Place("a.md", 3).cited == "a.md#L3"
    assert Place.LARGEST == 9
    assert Place.__doc__ == "Where something stands."
    assert Place.__qualname__ == "Place"
    assert Place.__module__ == __name__


def test_what_is_written_by_hand_is_left_alone():
    @value
    class Loud:
        name: str

        def __repr__(self) -> str:
            return "LOUD"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loud)

        def __hash__(self) -> int:
            return 7

    assert repr(Loud("a")) == "LOUD"
    assert {Loud("a")} == {Loud("b")}


def test_a_value_inherits_fields_and_may_change_their_defaults():
    span = Span("a.md")

    assert [each.name for each in fields(Span)] == ["path", "line", "tags", "note", "last"]
    assert (span.line, span.last, span.cited) == (7, 0, "a.md#L7")
    assert [each.default for each in fields(Place)][:2] == [MISSING, 1]
    assert Place("a.md", 7) != span
    for _ in range(MANY):
        Place("a.md")
    assert Span("a.md") == span
    assert not hasattr(span, "__dict__")


def test_a_plain_subclass_keeps_what_it_inherits():
    class Marked(Place):
        __slots__ = ()

        def __init__(self, path: str) -> None:
            super().__init__(path, 3)

    made = [Marked("a.md") for _ in range(MANY)]

    assert made[0] == made[-1]
    assert made[-1].line == 3
    assert Place("a.md").line == 1


def test_values_match_patterns_by_position():
    match Place("a.md", 4):
        case Place(path, line):
            assert (path, line) == ("a.md", 4)
        case _:
            pytest.fail("did not match")


def test_values_can_be_copied_and_pickled():
    pair = Pair(1, Place("a.md", tags=["x"], note="n"))

    for again in (copy.copy(pair), copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert again == pair
        assert again.place.note == "n"
    assert copy.deepcopy(pair).place.tags is not pair.place.tags


def test_replacing_and_listing_fields():
    place = Place("a.md", 2, ["x"])

    assert replace(place, line=3) == Place("a.md", 3, ["x"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'lines'"):
        replace(place, lines=3)
    assert asdict(Pair(1, place)) == {
        "first": 1,
        "place": {"path": "a.md", "line": 2, "tags": ["x"], "note": ""},
    }
    assert asdict(Tally(1, [Pair(1, place)]))["seen"][0]["place"]["line"] == 2
    assert asdict(Tally(1, {"at": place}))["seen"]["at"]["line"] == 2
    assert fields(place)[3].metadata == {"doc": "a remark"}
    assert repr(fields(place)[0].default) == "MISSING"
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


def test_dataclasses_takes_a_value_for_a_dataclass():
    pair = Pair(1, Place("a.md"))

    assert dataclasses.is_dataclass(Pair)
    assert dataclasses.is_dataclass(pair)
    assert dataclasses.asdict(pair) == asdict(pair)
    assert dataclasses.astuple(pair) == (1, ("a.md", 1, [], ""))
    assert dataclasses.replace(pair, first=2) == replace(pair, first=2)
    found = {each.name: each for each in dataclasses.fields(Place)}
    assert list(found) == ["path", "line", "tags", "note"]
    assert found["line"].default == 1
    assert found["line"].type == "int"
    assert found["tags"].default_factory is list
    assert found["path"].default is dataclasses.MISSING
    assert found["note"].metadata["doc"] == "a remark"
    assert not found["note"].repr


def test_a_dataclass_may_inherit_from_a_value():
    @dataclasses.dataclass(frozen=True)
    class Named(Pair):
        name: str = "n"

    assert Named(1, Place("a.md")).name == "n"
    assert [each.name for each in dataclasses.fields(Named)] == ["first", "place", "name"]


def test_the_signature_tells_what_a_value_takes():
    assert list(inspect.signature(Place).parameters) == ["path", "line", "tags", "note"]
    assert inspect.signature(Place).parameters["line"].default == 1


def test_defining_and_using_values_imports_next_to_nothing():
    program = """
import sys
before = set(sys.modules)
from plainmind.base.value import asdict, field, replace, value
@value
class Place:
    path: str
    tags: list = field(default_factory=list)
for _ in range(100):
    assert {Place("a", ()), replace(Place("b", ()), path="a")} == {Place("a", ())}
assert repr(Place("a")) == "Place(path='a', tags=[])"
assert asdict(Place("a")) == {"path": "a", "tags": []}
print(*sorted(set(sys.modules) - before))
"""
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program],  # without whatever `site` brings along
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.stderr == ""
    imported = {"__future__", "_operator", "operator", "plainmind", "plainmind.base", "plainmind.base.value"}
    assert set(ended.stdout.split()) <= imported


def test_a_class_that_inherits_from_a_value_made_in_numbers_stays_what_it_is() -> None:
    @value
    class Place:
        path: str
        line: int = 1

    class Named(Place):
        @property
        def name(self) -> str:
            return self.path.upper()

    for number in range(100):
        assert Place("a", number).line == number
        named = Named("a", number)
        assert (type(named), named.name, named.line) == (Named, "A", number)
