"""A memory at work for half a minute: nothing grows. And a curve that grows is found."""

from __future__ import annotations

import os
import random
import xml.etree.ElementTree as ET

import pytest
from tests.soak.run import soak, write_report
from tests.soak.samples import Curve, picture


def curve(*figures: float, kind: str = "memory") -> Curve:
    return Curve("page", kind, tuple((float(at), figure) for at, figure in enumerate(figures)))


def test_what_is_flat_behind_its_warm_up_is_no_fault():
    chance = random.Random(7)
    warm_up = [20.0 + at for at in range(40)]

    assert curve(*warm_up, *(60 + chance.uniform(-3, 3) for _ in range(60))).fault is None


def test_one_sample_that_is_far_off_turns_no_line():
    assert curve(*[60.0] * 95, 900.0, *[60.0] * 4).fault is None


@pytest.mark.parametrize(
    ("kind", "each"), [("memory", 0.5), ("files", 0.1), ("threads", 0.05), ("index", 0.05)]
)
def test_what_grows_a_little_with_each_sample_is_found(kind, each):
    chance = random.Random(7)

    found = curve(*(20 + each * at + chance.uniform(0, each) for at in range(200)), kind=kind)

    assert found.fault is not None
    assert "rises from" in found.fault


def test_each_curve_is_a_picture_in_the_report(tmp_path):
    page = write_report(tmp_path, 1, [curve(*range(10)), curve(3, 3, 3, kind="files")], {"talk": 3})

    assert "**rises**" in page.read_text()
    for name in ("page-memory.svg", "page-files.svg"):
        assert f"({name})" in page.read_text()
        assert ET.parse(tmp_path / name).getroot().tag.endswith("svg")
    assert picture(curve(0, 0)).startswith("<svg")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    "CI" not in os.environ, reason="takes half a minute and more; `make soak` takes eight hours"
)
def test_half_a_minute_of_work_leaves_nothing_behind(tmp_path):
    curves, counts = soak(tmp_path, 0.5, rest_s=0.3, notes=20)

    # So short a time says nothing about memory: what counts are files and threads that nobody closes.
    assert [one.fault for one in curves if one.kind in {"files", "threads"} and one.fault] == []
    assert sum(counts.values()) > 10
