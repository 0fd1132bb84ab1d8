"""An index brought from one store to another: texts and vectors are copied, nothing is embedded again."""

from __future__ import annotations

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import EmbeddedChunk, FileState, Progress, ProgressCallback
from plainmind.base.value import value
from plainmind.index.chunks import terms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.protocol import IndexReader, IndexStore

_LAST_LINE = 2**31 - 1


@value
class Copied:
    """What was brought over, and the digest that both indexes have now."""

    files: int
    chunks: int
    digest: str


def copy_index(source: IndexStore, target: IndexStore, *, progress: ProgressCallback | None = None) -> Copied:
    """Make the index of one store anew in another. Raises IndexUnavailable unless both are equal afterwards."""
    with source.reading() as reader:
        made = reader.fingerprint()
        files = list(reader.files().values())
    if made is None:
        raise IndexUnavailable("there is no index to bring over", hint="run `plainmind sync` first")

    def catch_up(building: IndexStore) -> None:
        _bring_what_changed(source, building)

    with target.rebuild(made, reason="brought from another store", catch_up=catch_up) as building:
        for number, file in enumerate(files):
            if progress is not None:
                progress(Progress(number, len(files), file.path))
            with source.reading() as reader:
                _bring(reader, building, file)
    return _compare(source, target)


def _bring(reader: IndexReader, target: IndexStore, file: FileState) -> None:
    chunks = reader.chunks_between(file.source, file.path, 0, _LAST_LINE)
    vectors = reader.vectors_of(file.source, file.path)
    if file != reader.files().get((file.source, file.path)) or len(vectors) != len(chunks):
        return  # changed since: `catch_up` brings it
    # The terms of a chunk follow from its text: the fingerprint says by which rules.
    target.replace_file(
        file,
        [
            EmbeddedChunk(chunk, vector, terms_of(chunk))
            for chunk, vector in zip(chunks, vectors, strict=True)
        ],
    )


def _bring_what_changed(source: IndexStore, target: IndexStore) -> None:
    with target.reading() as reader:
        there = dict(reader.files())
    with source.reading() as reader:
        here = reader.files()
        for key in there.keys() - here.keys():
            target.remove_file(*key)
        for key, file in here.items():
            if there.get(key) != file:
                _bring(reader, target, file)


def _compare(source: IndexStore, target: IndexStore) -> Copied:
    for _ in range(3):
        digest = source.digest()
        if target.digest() == digest:
            with target.reading() as reader:
                counts = reader.counts()
            return Copied(sum(counts.files.values()), sum(counts.chunks.values()), digest)
        _bring_what_changed(source, target)  # the old one has been written to meanwhile
    raise IndexUnavailable(
        "the copy of the index does not equal the index, so nothing was switched over",
        hint="stop what writes to this memory, or run `plainmind sync --force`, and try again",
    )
