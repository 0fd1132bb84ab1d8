"""All eight workspaces as one memory: what is asked in other words, or in another language, is not lost among them."""

from __future__ import annotations

import one_memory
import pytest

# Recall of six and how many are first, a question or two below what was measured.
FLOORS = {"across": (0.35, 0.05), "paraphrase": (0.28, 0.08), "others": (0.95, 0.79), "all": (0.675, 0.48)}


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    return one_memory.ask(tmp_path_factory.mktemp("one"), "alone", around=None).figures


@pytest.mark.parametrize("kind", FLOORS)
def test_answers_from_one_memory_of_many_are_as_good_as_they_were(figures, kind):
    recall, first = FLOORS[kind]

    assert figures[kind][0] >= recall
    assert figures[kind][1] >= first
