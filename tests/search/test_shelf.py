import threading

from plainmind.base.model import Chunk
from plainmind.search.pages import Shelf, page_bytes, word_index


def chunk(text):
    return Chunk("memory/a.md", "memory", 0, 1, 2, text)


def test_a_page_that_is_read_again_is_kept_with_an_index():
    shelf = Shelf(worth_an_index=3)
    first, second, third, fourth = (shelf.page(chunk("the gateway\nruns here")) for _ in range(4))

    assert first.index is second.index is None
    assert third.index == {"gateway": ((0, 1),), "run": ((1, 1),)}
    assert fourth is third
    assert shelf.size_bytes == page_bytes(third)


def test_the_pages_of_the_last_questions_are_kept_without_an_index():
    shelf = Shelf(worth_an_index=9, recent_pages=2)
    first, second = shelf.page(chunk("one")), shelf.page(chunk("two"))

    assert shelf.page(chunk("one")) is first
    for number in range(3):
        shelf.page(chunk(f"note {number}"))
    assert shelf.page(chunk("two")) is not second


def test_a_text_that_stands_in_two_places_is_one_page_and_knows_both():
    shelf = Shelf()
    here = Chunk("memory/a.md", "memory", 0, 1, 2, "one\ntwo")
    there = Chunk("memory/b.md", "memory", 3, 7, 8, "one\ntwo")
    page = shelf.page(here)

    assert shelf.page(there) is page
    assert page.places_in(here) == [(1, 0), (2, 0)]
    assert page.places_in(there) == [(7, 0), (8, 0)]
    assert page.places_in(here) == [(1, 0), (2, 0)]


def test_an_index_counts_by_unit():
    assert word_index(["run, ran and running", "", "run"]) == {"run": ((0, 2), (2, 1)), "ran": ((0, 1),)}


def test_the_same_text_on_one_line_is_another_page():
    shelf = Shelf(worth_an_index=3)
    for _ in range(3):
        shelf.page(chunk("one\ntwo"))

    assert shelf.page(Chunk("memory/a.md", "memory", 0, 1, 1, "one\ntwo")).units == ["one\ntwo"]


def test_a_full_shelf_takes_nothing_more():
    shelf = Shelf(worth_an_index=3, most_bytes=1)
    texts = [f"note {number}" for number in range(5)]
    for text in texts * 4:
        shelf.page(chunk(text))

    assert [shelf.page(chunk(text)).index is not None for text in texts] == [True, False, False, False, False]


def test_after_many_other_pages_the_shelf_is_cleared():
    shelf = Shelf(worth_an_index=3, most_misses=10)
    for _ in range(4):
        kept = shelf.page(chunk("the gateway"))
    assert kept.index is not None
    for number in range(10):
        shelf.page(chunk(f"note {number}"))

    assert shelf.size_bytes == 0
    assert shelf.page(chunk("the gateway")).index is None


def test_threads_share_a_shelf():
    shelf = Shelf(worth_an_index=3)
    texts = [f"note {number} of many" for number in range(200)]
    threads = [
        threading.Thread(target=lambda: [shelf.page(chunk(text)) for _ in range(4) for text in texts])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert shelf.size_bytes == sum(page_bytes(shelf.page(chunk(text))) for text in texts)


def test_a_page_that_two_threads_made_at_once_is_counted_once():
    shelf = Shelf(worth_an_index=3)
    page = shelf.page(chunk("the gateway"))
    for _ in range(2):
        shelf._keep(("the gateway", False), page)

    assert shelf.size_bytes == page_bytes(page)
