"""An index that is brought to another store is the same index, and nothing was embedded for it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.support.index_contents import embedded, file_state, fingerprint
from tests.support.stores import DRIVERS, open_for_test

from plainmind.base.errors import IndexUnavailable
from plainmind.index.chunks import terms_of
from plainmind.index.drivers.memory import MemoryStore
from plainmind.memory.indexes import copy_index


def put(store, path, *texts, source="memory", scope="private"):
    """Index a file as the indexer does: the terms of a chunk follow from its text."""
    chunks = embedded(path, *texts, source=source)
    chunks = [replace(each, terms=terms_of(each.chunk)) for each in chunks]
    store.replace_file(file_state(path, "\n".join(texts), source, scope=scope), chunks)


def filled(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "The gateway runs on a Mac Studio", "Größe und 日本語 und \x00 dazu")
        put(fresh, "b.md", "Shared notes", scope="shared")
        put(fresh, "c.jsonl", "said in a group", source="sessions", scope="group:7")
        put(fresh, "empty.md")
        put(fresh, "words only.md", "no vector here")
        (chunk,) = embedded("words only.md", "no vector here", without_vector=True)
        fresh.replace_file(file_state("words only.md"), [replace(chunk, terms=terms_of(chunk.chunk))])
    return store


@pytest.mark.parametrize(("start", "end"), list(itertools.permutations(DRIVERS, 2)))
def test_an_index_comes_over_whole_and_unchanged(tmp_path, start, end):
    source = filled(open_for_test(start, tmp_path / "from"))
    target = open_for_test(end, tmp_path / "to")
    seen = []
    copied = copy_index(source, target, progress=seen.append)

    assert (copied.files, copied.chunks) == (5, 5)
    assert source.digest() == target.digest() == copied.digest
    assert len(seen) == 5
    with source.reading() as before, target.reading() as after:
        assert dict(after.files()) == dict(before.files())
        assert after.fingerprint() == before.fingerprint()
    source.close()
    target.close()


def test_an_index_that_was_never_built_cannot_be_brought_over(tmp_path):
    with pytest.raises(IndexUnavailable, match="no index"):
        copy_index(MemoryStore(), MemoryStore())


class Busy(MemoryStore):
    """A store that somebody writes to after each file that is read."""

    def __init__(self):
        super().__init__()
        self.writes = iter(())

    def reading(self):
        for write in itertools.islice(self.writes, 1):
            write(self)
        return super().reading()


def test_what_is_written_meanwhile_comes_over_too():
    source, target = filled(Busy()), MemoryStore()
    source.writes = iter(
        (
            lambda store: put(store, "late.md", "written while the index was copied"),
            lambda store: put(store, "a.md", "changed while the index was copied"),
            lambda store: store.remove_file("memory", "b.md"),
        )
    )
    copied = copy_index(source, target)

    with target.reading() as reader:
        assert {path for _, path in reader.files()} == {
            "a.md", "c.jsonl", "empty.md", "late.md", "words only.md",
        }  # fmt: skip
    assert target.digest() == source.digest() == copied.digest


def test_a_copy_that_is_not_equal_is_not_acknowledged():
    source, target = filled(MemoryStore()), MemoryStore()
    (chunk,) = embedded("odd.md", "terms that do not follow from the text")
    source.replace_file(file_state("odd.md"), [replace(chunk, terms=("others",))])

    with pytest.raises(IndexUnavailable, match="does not equal"):
        copy_index(source, target)
