from commonplace.model import Chunk
from commonplace.search.close_reading import ReadChunk
from commonplace.search.known_files import KnownFile
from commonplace.search.page import Page
from commonplace.search.ranking import RankedChunk


def chunk(ordinal, start, *lines):
    return Chunk("memory/a.md", "memory", ordinal, start, start + len(lines) - 1, "\n".join(lines))


def read(of, *scores):
    return ReadChunk(RankedChunk(of, 0.0, 0.0, 0.0), Page(of), None, list(scores))


def nothing_around(_chunk):
    return []


def test_chunks_are_put_together_in_reading_order():
    later, earlier = read(chunk(1, 4, "four", "five"), 0.4, 0.5), read(chunk(0, 1, "one", "two"), 0.1, 0.2)
    file = KnownFile(nothing_around)
    file.add(later, with_margin=False)
    file.add(earlier, with_margin=False)
    lines = file.lines()

    assert file.best == 0.5
    assert list(lines.numbers) == [1, 2, 4, 5]
    assert list(lines.texts) == ["one", "two", "four", "five"]
    assert list(lines.scores) == [0.1, 0.2, 0.4, 0.5]
    assert list(lines.seeds) == [3, 2, 1, 0]
    assert file.origin(3) == (later, 1)


def test_a_blank_line_starts_no_snippet():
    file = KnownFile(nothing_around)
    file.add(read(chunk(0, 1, "one", " ", "three"), 0.3, 0.3, 0.2), with_margin=False)

    assert file.lines().seeds == [0, 2]
    assert file.lines().scores == [0.3, 0.0, 0.2]


def test_the_lines_around_fill_up_and_never_replace_what_was_read():
    best, other = chunk(1, 3, "three", "four"), chunk(2, 5, "five", "six")
    around = [chunk(0, 1, "one", "two"), best, other, chunk(3, 7, "seven", "eight")]
    file = KnownFile(lambda _: around)
    file.add(read(best, 0.5, 0.4), with_margin=True)
    file.add(read(other, 0.2, 0.1), with_margin=True)
    lines = file.lines()

    assert list(lines.numbers) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert list(lines.scores) == [0.0, 0.0, 0.5, 0.4, 0.2, 0.1, 0.0, 0.0]
    assert lines.seeds == [2, 3, 4, 5]


def test_a_chunk_without_any_line_adds_nothing():
    file = KnownFile(nothing_around)
    file.add(read(Chunk("memory/a.md", "memory", 0, 1, 2, "")), with_margin=False)

    assert file.best == 0.0
    assert list(file.lines().texts) == []
