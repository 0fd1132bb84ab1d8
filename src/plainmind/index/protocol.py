"""What a place to keep the index must promise; `drivers/memory.py` keeps these promises with dicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from plainmind.base.model import (
    Candidate,
    Chunk,
    EmbeddedChunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    TermStatistics,
    Vector,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from plainmind.index.reader import IndexCounts
else:
    Protocol = object


class IndexReader(Protocol):
    """One consistent view of the index: nothing that another process writes meanwhile is half visible."""

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made; None when it was never built, or was damaged and awaits a rebuild."""

    def revision(self) -> tuple[int, int]:
        """Which state of the index this is: a number for each rebuild, and one that every change adds one to.

        Taking in, touching or dropping a file is one change, whichever process does it.
        """

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path); not to be changed, and shared by all who ask."""

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        """In how many chunks each term stands; terms that stand nowhere are 0.

        For who may see every scope, chunks of all sources are counted; for all others only the chunks with words that
        `where` admits. Keyword scores are weighed by the same numbers: a score that moved with what others have
        written would tell whether a word stands there.
        """

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the chunks with any of `terms`, by BM25, best first; a repeated term counts once.

        Only chunks of files that `where` admits are found, and they are found as if there were no others: `limit`
        counts admitted ones, none of them is left out that has a better score than one that is given, and scores are
        weighed as `term_statistics` counts.
        """

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Hear what `by_vector` will be asked for: a store that computes elsewhere can begin with it."""

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the chunks nearest to `vector`, best first.

        Only chunks of files that `where` admits are found, as if there were no others. A store may miss some of the
        nearest: it finds on average at least 98 of 100, for limits up to 48, and all where up to 1,024 chunks are
        admitted.

        Raises BadVector when `vector` is not of this index: other dimensions, not of unit length.
        """

    def passing(self, where: SearchFilter) -> list[int] | None:
        """The ids of the chunks that pass what `where` restricts a search to; None: all but those it leaves out.

        `by_words` and `by_vector` find among these as if there were no others, too.
        """

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of ids that this view has proposed."""

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> Sequence[bytes]:
        """For each id a byte a term: how often it stands in the chunk, 255 for as often or more."""

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int], *, where: SearchFilter) -> list[float]:
        """The keyword score of chunks that the same filter has proposed, 0.0 for those without any term.

        It is BM25 over the most that any chunk could have for these terms, so it is 0..1, comparable between queries,
        and small when the rare terms of the query stand nowhere.
        """

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of proposed chunks, exact, negatives counted as 0; 0.0 for those without a vector."""

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order.

        The caller has made sure that the file may be seen: this does not ask again.
        """

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        """The vectors of the chunks of one file, in their order, as the index keeps them; None where there is none.

        To bring an index to another store, so that nothing is embedded again.
        """


def keyword_candidates(
    reader: IndexReader, terms: Sequence[str], *, where: SearchFilter, limit: int
) -> list[Candidate]:
    """What `by_words` proposes, with chunks and scores."""
    ids = reader.by_words(terms, where=where, limit=limit)
    return _candidates(reader, ids, reader.keyword_scores(terms, ids, where=where))


def vector_candidates(
    reader: IndexReader, vector: Vector, *, where: SearchFilter, limit: int
) -> list[Candidate]:
    """What `by_vector` proposes, with chunks and scores."""
    ids = reader.by_vector(vector, where=where, limit=limit)
    return _candidates(reader, ids, reader.similarities(vector, ids))


def _candidates(reader: IndexReader, ids: Sequence[int], scores: Sequence[float]) -> list[Candidate]:
    return [Candidate(*each) for each in zip(ids, reader.chunks(ids), scores, strict=True)]


class Neighbours(Protocol):
    """The other indexes of an installation that one server keeps, for many agents and workspaces."""

    def all_indexes(self) -> list[tuple[str, str]]:
        """The agent and the workspace of every index, for an operator. Raises IndexUnavailable for all others."""

    def of_other_agents(self) -> Sequence[IndexStore]:
        """What other agents have indexed of a workspace of the same name, on whichever host."""

    def of_other_workspaces(self) -> Sequence[IndexStore]:
        """What the same agent has indexed of other workspaces, on whichever host."""

    def index_of(self, agent: str, workspace: str) -> IndexStore:
        """Another index of the installation."""


class IndexStore(Protocol):
    """Keeps chunks and finds them again. Stores are safe to share between threads, not across a fork."""

    @property
    def neighbours(self) -> Neighbours | None:
        """The other indexes of the same installation; None for a store whose indexes are folders of their own."""

    def reading(self) -> AbstractContextManager[IndexReader]:
        """Open one consistent view, of the newest published index.

        Raises IndexCorrupt when the index turns out to be damaged; it is set aside, and the next view is of
        an empty index without a fingerprint.
        """

    def replace_file(
        self,
        file: FileState,
        chunks: Sequence[EmbeddedChunk],
        *,
        expecting: IndexFingerprint | None = None,
        replacing: str | None = ...,
        keeping: int = 0,
    ) -> bool:
        """Swap in the chunks of `file`, all or nothing. Their ordinals count from 0, in the order of their lines.

        `replacing` is the hash that the index held for the file when it was read, None when it held none; what it holds
        does not matter if nothing is given. If it
        holds another one by now, another process has indexed a newer text: nothing changes and the answer is False.

        The first `keeping` chunks stay as they are, and `chunks` take the place of all that come after them, their
        ordinals counting from `keeping`. It costs as much as there are chunks that come and go, however many stay.
        If the index holds fewer chunks of the file, nothing changes and the answer is False. Say by `replacing` of
        which text they are.

        A file may come with another scope than before: from then on only who may see that one finds it. Then no
        chunk can be kept.

        Raises ValueError when chunks are to be kept under another scope, or `chunks` do not follow on them.
        Raises IndexUnavailable when the index was never built, BadVector for a vector that does not belong,
        and ConflictError when the index is not made as `expecting` says: someone has published a rebuild
        since the chunks were embedded, and vectors of two models must never meet.
        """

    def touch_file(self, file: FileState) -> None:
        """Record a new size, mtime or inode of a file whose text and scope did not change; others are left alone."""

    def remove_file(self, source: Source, path: str) -> None:
        """Drop a file and all its chunks; dropping what is not there is fine."""

    def joined(self) -> AbstractContextManager[None]:
        """Let the changes of a block be made together at its end, where that is cheaper and they are not read before.

        Then they are made all or none, and nothing is to be read in the block.
        """

    def rebuild(
        self,
        fingerprint: IndexFingerprint,
        *,
        reason: str,
        catch_up: Callable[[IndexStore], None] = ...,
    ) -> AbstractContextManager[IndexStore]:
        """Build a new index beside this one: fill the store this yields; leaving the block publishes it.

        Until then every reader, of every process, sees the old index. An exception in the block discards
        the new one. `catch_up` is called with the new index when nothing can write to the old one any more: what
        others have written there meanwhile must be brought over now, or it is lost with the old index.
        """

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files so that their text is in no byte of the store's files when this returns.

        It may take a pass over the whole index: better once for many files than once for each.
        """

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status` that are cheaply known: `driver`, `path`, versions. Never note text."""

    def sizes(self) -> Mapping[str, int]:
        """Facts for a closer look, which may take a pass over the whole index: bytes by what they are used for."""

    def digest(self) -> str:
        """SHA-256 over everything that a rebuild would write again; equal digests mean equal indexes.

        Raises IndexCorrupt when the parts of the index contradict each other.
        """

    def close(self) -> None:
        """Let go of files and locks. Closing twice is fine."""
