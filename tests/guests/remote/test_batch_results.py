from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Vector, sha256_text
from plainmind.guests.net.failures import AnswerUnreadable
from plainmind.guests.remote.job_steps import Tally, first_code, largest_output, vectors_in
from plainmind.guests.remote.vendors import AnswerLine

WANTED = [sha256_text(str(number)) for number in range(5)]


def read(line: Any) -> AnswerLine:
    if not isinstance(line, dict) or "id" not in line:
        raise AnswerUnreadable("no id")
    return AnswerLine(line["id"], line.get("vector"), tokens=1)  # type: ignore[arg-type]


def taken(lines: list[Any]) -> tuple[dict[str, Vector], Tally]:
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    tally = Tally()
    file = io.BytesIO("\n".join(rows).encode("utf-8", "replace"))
    found: dict[str, Vector] = {}
    for portion in vectors_in(file, read, wanted=set(WANTED), dims=2, tally=tally):
        found.update(portion)
    return found, tally


def test_vectors_are_brought_to_unit_length() -> None:
    found, tally = taken([{"id": WANTED[0], "vector": [3, 4]}, "", {"id": WANTED[1], "vector": [0, 2]}])

    assert found[WANTED[0]] == pytest.approx([0.6, 0.8])
    assert found[WANTED[1]] == pytest.approx([0, 1])
    assert (tally.good, tally.bad, tally.tokens) == (2, 0, 2)


@pytest.mark.parametrize(
    "vector", [[0, 0], [1], [1, 2, 3], [], None, "no", [None, 1], ["a", 1], [1.7e308, 1.7e308], [True, "x"]]
)
def test_a_bad_vector_costs_only_itself(vector: Any) -> None:
    found, tally = taken([{"id": WANTED[0], "vector": vector}, {"id": WANTED[1], "vector": [1, 0]}])

    assert found.keys() == {WANTED[1]}
    assert (tally.good, tally.bad) == (1, 1)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    found, tally = taken([f'{{"id": "{WANTED[0]}", "vector": [{number}, 1]}}'])

    assert found == {}
    assert tally.bad == 1


def test_an_answer_to_what_was_not_asked_is_left_out() -> None:
    found, tally = taken([{"id": sha256_text("foreign"), "vector": [1, 0]}])

    assert found == {}
    assert (tally.good, tally.bad) == (0, 0)


def test_equal_answers_to_one_text_are_one_answer_and_different_ones_are_disputed() -> None:
    same = {"id": WANTED[0], "vector": [1, 0]}
    _, agreed = taken([same, same])
    _, disputed = taken([same, {"id": WANTED[0], "vector": [0, 1]}, same])

    assert (agreed.good, agreed.disputed) == (1, set())
    assert (disputed.good, disputed.disputed) == (0, {WANTED[0]})


def test_a_file_cut_off_in_the_middle_of_a_line_gives_the_lines_before() -> None:
    whole = json.dumps({"id": WANTED[0], "vector": [1, 0]})
    found, tally = taken([whole, whole.replace(WANTED[0], WANTED[1])[:-7]])

    assert found.keys() == {WANTED[0]}
    assert tally.bad == 1


@given(
    st.lists(st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists), st.none()))
)
def test_no_garbage_stops_the_lines_around_it(garbage: list[Any]) -> None:
    good = {"id": WANTED[0], "vector": [1, 0]}
    clean = [line.replace("\n", " ") if isinstance(line, str) else line for line in garbage]

    found, _ = taken([*clean, "", good])

    assert found.keys() == {WANTED[0]}


def test_nesting_deeper_than_the_reader_goes_is_a_bad_line() -> None:
    found, tally = taken(["[" * 100_000, {"id": WANTED[0], "vector": [1, 0]}])

    assert found.keys() == {WANTED[0]}
    assert tally.bad == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"response": null, "error": {"code": "batch_expired", "message": "a secret"}}', "batch_expired"),
        ('{"response": {"status_code": 500, "message": "a secret"}, "error": null}', "500"),
        ("no json", ""),
        ("[]", ""),
        ("", ""),
    ],
)
def test_of_an_error_file_only_the_code_is_told(line: str, code: str) -> None:
    assert first_code(io.BytesIO(line.encode())) == code


def test_a_long_file_comes_in_portions() -> None:
    names = [sha256_text(f"text {number}") for number in range(1000)]
    rows = "\n".join(json.dumps({"id": name, "vector": [1, 2]}) for name in names).encode()
    tally = Tally()

    got = [*vectors_in(io.BytesIO(rows), read, wanted=set(names), dims=2, tally=tally)]

    assert [len(portion) for portion in got] == [400, 400, 200]
    assert [name for portion in got for name in portion] == names
    assert tally.good == 1000


def test_an_honest_output_is_never_too_large() -> None:
    vector = [-1.2345678901234567e-10] * 3072
    line = {"id": "batch_req_" + "a" * 40, "custom_id": "f" * 64, "vector": vector}

    assert len(json.dumps(line)) < largest_output(1, 3072)
