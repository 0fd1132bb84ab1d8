"""Times, growth and targets are computed as they are named."""

from __future__ import annotations

import time
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed.figures import TARGETS, as_json, exponent, in_words
from speed.report import growth_rows, once_rows, picture, size_rows, target_rows
from speed.timing import Residency, Stopwatch, measure, percentile
from tests.support.speed_figures import figures, size


def reached(of, name):
    (target,) = [target for target in TARGETS if name in target.name]
    return target.measured(of), target.verdict(of)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_lies_among_the_values(values, share):
    assert min(values) <= percentile(values, share) <= max(values)


def test_percentiles_of_a_few_known_values():
    assert [percentile([4, 1, 3, 2, 5], share) for share in (0, 0.5, 0.95, 1)] == [
        1,
        3,
        pytest.approx(4.8),
        5,
    ]


def test_work_is_repeated_for_each_value_until_the_budget_is_spent():
    assert measure(lambda _: None, range(50), budget_s=60).runs == 50
    assert measure(lambda _: time.sleep(0.002), range(50), budget_s=0, least=4).runs == 4


def test_a_stopwatch_adds_up_what_is_inside_its_blocks():
    watch = Stopwatch()
    began = time.perf_counter()
    for _ in range(2):
        with watch:
            time.sleep(0.01)
    time.sleep(0.05)

    assert 0.02 <= watch.seconds <= time.perf_counter() - began - 0.05
    assert watch.cpu_seconds < watch.seconds


@given(st.floats(0, 2), st.floats(0.01, 100))
def test_the_exponent_of_a_power_is_that_power(power, factor):
    points = [(n, factor * n**power) for n in (1_000, 10_000, 1_000_000)]

    assert exponent(points) == pytest.approx(power, abs=1e-6)


def test_growth_looks_at_large_sizes_only_when_there_are_two():
    small = size(1_000, 5.0)

    assert figures(small, size(10_000, 2.0), size(1_000_000, 20.0)).growth()["hybrid"] == pytest.approx(0.5)
    assert figures(small, size(10_000, 50.0)).growth()["hybrid"] == pytest.approx(1.0)
    assert figures(small).growth() == {}


def test_a_recipe_that_was_measured_at_fewer_chunks_does_not_count_as_growth():
    both = figures(size(100_000, 5.0, 900.0), size(1_000_000, 20.0, 900.0, seed_chunks=100_000))

    assert "seed: hybrid, all words" not in both.growth()
    assert dict(row[:2] for row in size_rows(both))["times faster than the seed's SQL"] == "180 ×"
    assert next(row for row in size_rows(both) if row[0].startswith("times faster"))[2] == "over 45 ×"


def test_a_target_is_reached_missed_or_not_measured():
    measured = figures(size(10_000, 1.5), size(100_000, 14.9, 700.0, recall=0.985))

    assert reached(measured, "hybrid search p50, 10,000") == (1.5, "goal")
    assert reached(measured, "hybrid search p50, 100,000") == (14.9, "must")
    assert reached(measured, "recipe's SQL")[1] == "missed"
    assert reached(measured, "hybrid search p50, 1,000,000") == (None, "not measured")
    assert reached(measured, "recall@24") == (0.985, "must")
    assert reached(measured, "cold") == (9.0, "must")
    assert reached(measured, "resident") == (200.0, "must")
    assert reached(measured, "index over text") == (1.5, "must")
    assert reached(measured, "first sync") == (2_000.0, "must")
    assert reached(measured, "edited file") == (20, "must")
    assert reached(measured, "growth") == (None, "not measured")
    assert reached(figures(size(10_000, 1.0), size(1_000_000, 12.0)), "growth")[1] == "goal"


def test_a_sync_of_fewer_files_is_not_the_one_that_is_aimed_at():
    assert reached(figures(files=1_000), "nothing to do") == (19.0, "goal")
    assert reached(figures(files=20), "nothing to do") == (None, "not measured")


def test_the_size_of_a_tiny_index_says_nothing():
    assert reached(figures(size(1_000, 1.0)), "index over text") == (None, "not measured")
    assert reached(figures(size(1_000, 1.0), size(10_000, 1.0)), "index over text") == (1.5, "must")


def test_targets_that_were_not_measured_are_shown_only_when_asked_for():
    measured = figures(size(10_000, 1.5))

    assert len(list(target_rows(measured, with_unmeasured=True))) == 1 + len(TARGETS)
    assert all(row[-1] != "not measured" for row in target_rows(measured))


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(1234.5, "ms", "1,234 ms"), (0.9912, "", "0.991"), (7.0, "×", "7 ×"), (99.96, "MB", "100 MB")],
)
def test_figures_are_told_to_three_digits(value, unit, words):
    assert in_words(value, unit) == words


def test_every_row_has_a_cell_for_each_size():
    measured = figures(size(1_000, 1.0, 5.0), size(10_000, 2.0))

    assert {len(row) for row in size_rows(measured)} == {3}
    assert ("the seed's SQL: hybrid, all words", "5 / 10 (2.5)", "–") in list(size_rows(measured))
    assert [row[0] for row in growth_rows(measured)][:2] == ["search", "hybrid search"]


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"files": 1, "chunks": 1200, "left_out": []}, "300 MB (1,200 chunks)"),
        (
            {"files": 0, "chunks": 0, "left_out": ["1.0 GB, over the limit"]},
            "300 MB (left out: 1.0 GB, over the limit)",
        ),
    ],
)
def test_what_became_of_a_large_file_is_told(facts, told):
    rows = list(once_rows(figures(large_file=Residency(300_000_000, None, None, facts))))

    assert rows[-1] == ("memory while indexing one large file", told)


def test_json_has_names_in_camel_case_and_keeps_those_that_are_data():
    answer = as_json(figures(size(1_000, 1.23456789, 5.0)))

    assert answer["sizes"][0]["searches"]["keywordLookup"]["p50Ms"] == 1.23457
    assert answer["sizes"][0]["others"][0]["does"] == "hybrid, all words"
    assert answer["bytesPerSecond"] == 10e9
    assert answer["largeFile"] is None


@pytest.mark.parametrize("sizes", [[1_000], [1_000, 10_000], [1_000, 100_000, 1_000_000]])
def test_the_picture_has_a_line_for_every_search_and_stays_inside(sizes):
    measured = figures(*(size(chunks, chunks / 5_000, chunks / 100) for chunks in sizes))
    root = ET.fromstring(picture(measured))

    drawn = [element for element in root.iter() if element.tag.endswith("polyline")]
    names = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert len(drawn) == 6
    assert {"hybrid search", "the seed's SQL", "floor: 1 bit a number", "floor: 32 bits a number"} <= set(
        names
    )
    for line in drawn:
        places = [tuple(map(float, place.split(","))) for place in line.get("points").split()]
        assert len(places) == len(sizes)
        assert all(64 <= x <= 550 and 44 <= y <= 412 for x, y in places)


def test_the_floor_is_what_reading_every_number_once_takes():
    measured = figures(size(1_000, 1.0), size(1_000_000, 1.0))
    root = ET.fromstring(picture(measured))

    # A million vectors of 256 numbers are 1.024 GB: 102.4 ms at 10 GB/s, and a thirty-second of it for their signs.
    floor = [element for element in root.iter() if element.get("stroke-dasharray") == "1 3"]
    ends = [float(line.get("points").split()[-1].split(",")[1]) for line in floor]
    assert ends[1] - ends[0] == pytest.approx((412 - 44) / 6 * 1.505, abs=0.2)
