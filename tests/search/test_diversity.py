from hypothesis import given
from hypothesis import strategies as st

from plainmind.search.engine import Diversity
from plainmind.search.selection import jaccard


def scored(*texts):
    return [(text, 1.0 - number / 10, frozenset(text.split())) for number, text in enumerate(texts)]


def test_switched_off_it_leaves_the_order_alone():
    assert Diversity().reorder(scored("a b", "a b", "c")) == ["a b", "a b", "c"]


def test_a_near_copy_steps_back_behind_something_new():
    assert Diversity(enabled=True, trade_off=0.5).reorder(scored("a b c", "a b c", "x y z")) == [
        "a b c",
        "x y z",
        "a b c",
    ]


def test_relevance_alone_is_the_order_of_scores():
    items = scored("a", "a", "b")

    assert Diversity(enabled=True, trade_off=1.0).reorder(items) == ["a", "a", "b"]


def test_two_empty_texts_have_nothing_in_common():
    assert jaccard(frozenset(), frozenset()) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 1), st.frozensets(st.sampled_from("abcde"), max_size=4)), max_size=12),
    st.floats(0, 1),
)
def test_each_item_adds_the_most_to_those_before_it(items, trade_off):
    scored = [(number, score, words) for number, (score, words) in enumerate(items)]
    order = Diversity(enabled=True, trade_off=trade_off).reorder(scored)

    assert sorted(order) == list(range(len(items)))
    for at in range(len(order)):
        worths = {
            number: trade_off * scored[number][1]
            - (1.0 - trade_off)
            * max([jaccard(scored[number][2], scored[other][2]) for other in order[:at]], default=0.0)
            for number in order[at:]
        }
        assert worths[order[at]] == max(worths.values())
