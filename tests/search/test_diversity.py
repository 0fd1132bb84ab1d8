from commonplace.search.diversity import Diversity, jaccard


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
