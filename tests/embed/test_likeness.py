"""Words are compared one by one, in every language of the built-in model, and the same way every time."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.embed import builtin as module
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.embed.protocol import NoEmbedder


@pytest.fixture(scope="module")
def embedder():
    made = BuiltinEmbedder()
    yield made
    made.close()


def test_a_text_with_the_words_themselves_is_as_like_as_can_be(embedder):
    (found,) = embedder.likeness_to("printer paper")(["the paper of a printer"])

    assert found == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("any pets?", "Two dogs and a rabbit", "The tax office closes at noon"),
        ("Wo ist die Katze?", "The cat sleeps in the shed", "The invoice was paid in March"),
        ("医生怎么说", "The doctor said to rest", "The printer is out of ink"),
        ("¿qué coche tenemos?", "A grey car, bought in May", "Soup with barley and leek"),
    ],
)
def test_words_of_like_meaning_are_near_in_any_language(embedder, question, near, far):
    like, unlike = embedder.likeness_to(question)([near, far])

    assert like > unlike + 0.1


def test_one_word_that_is_meant_counts_however_much_else_a_text_says(embedder):
    likeness = embedder.likeness_to("allergy")
    alone, among = likeness(["allergic", "allergic " + "and some other words about the weather " * 20])

    assert among == pytest.approx(alone)


def test_a_text_without_words_and_a_question_without_words_are_like_nothing(embedder):
    assert embedder.likeness_to("pets")(["", "cat"])[0] == 0.0
    assert embedder.likeness_to("?!")(["cat"]) == [0.0]
    assert embedder.likeness_to("pets")([]) == []


def test_what_is_forgotten_because_it_is_too_much_is_worked_out_again_the_same(embedder, monkeypatch):
    monkeypatch.delitem(sys.modules, "numpy")
    texts = ["the harbour in winter", "three keys for the shed"]
    before = embedder.likeness_to("where are the keys")(texts)
    monkeypatch.setattr(module, "_MOST_KNOWN", 3)
    embedder.close()

    assert embedder.likeness_to("where are the keys")(texts) == before


WORDS = ("pets", "cat", "dog", "Hafen", "医生", "keys", "harbour", "zyx0017wvu", "?!", "GitHub", "printers")
SAID = st.lists(st.sampled_from(WORDS))


@given(SAID, st.lists(SAID))
def test_words_are_as_like_with_numpy_and_simsimd_as_without(embedder, question, texts):
    likeness = embedder.likeness_to(" ".join(question))
    texts = [" ".join(text) for text in texts]

    with pytest.MonkeyPatch.context() as hidden:
        hidden.setitem(sys.modules, "numpy", np)
        together = likeness(texts)
        hidden.setitem(sys.modules, "simsimd", None)
        by_numpy_alone = likeness(texts)
        hidden.delitem(sys.modules, "numpy")
        one_by_one = likeness(texts)

    assert together == by_numpy_alone == one_by_one


def test_with_numpy_no_number_is_made_of_a_row(embedder):
    embedder.close()
    embedder.likeness_to("where are the keys")(["the harbour in winter", "three keys for the shed"])

    assert not embedder._codes


def test_an_embedder_that_knows_only_whole_texts_compares_no_words():
    assert NoEmbedder().likeness_to("pets") is None
