from __future__ import annotations

import math
import os
import stat
import threading
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from plainmind.base.errors import StorageFailure
from plainmind.base.model import EmbedderIdentity, Vector, sha256_text
from plainmind.embed.cache import SqliteEmbeddingCache, set_aside

OPENAI = EmbedderIdentity("openai", "text-embedding-3-small", endpoint="e1", dims=8)


def unit_vector(seed: int, dims: int = 8) -> Vector:
    values = [math.sin(seed * 31 + position * 7 + 1) for position in range(dims)]
    norm = math.hypot(*values)
    return array("f", [value / norm for value in values])


def some_vectors(count: int, dims: int = 8) -> dict[str, Vector]:
    return {sha256_text(f"text {number}"): unit_vector(number, dims) for number in range(count)}


class Clock:
    """Every look at it is one nanosecond later."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "index" / "cache.sqlite")


@pytest.fixture
def cache(path: str) -> Iterator[SqliteEmbeddingCache]:
    cache = SqliteEmbeddingCache(path, now_ns=Clock())
    yield cache
    cache.close()


def damaged_copies(path: str) -> list[str]:
    return [name for name in os.listdir(os.path.dirname(path)) if ".bad-" in name]


def all_bytes(path: str) -> bytes:
    folder = Path(path).parent
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def test_what_goes_in_comes_out(cache: SqliteEmbeddingCache) -> None:
    vectors = some_vectors(1000)  # more than one query's worth of hashes
    cache.insert(OPENAI, vectors)

    assert cache.lookup(OPENAI, [*vectors, sha256_text("unknown")]) == vectors
    assert cache.describe()["entries"] == 1000
    assert cache.describe()["bytes"] == 1000 * 8 * 4


def test_nothing_asked_nothing_answered(cache: SqliteEmbeddingCache) -> None:
    cache.insert(OPENAI, {})
    cache.forget([])

    assert cache.lookup(OPENAI, []) == {}


@pytest.mark.parametrize(
    "other",
    [
        replace(OPENAI, provider="voyage"),
        replace(OPENAI, model="text-embedding-3-large"),
        replace(OPENAI, endpoint="e2"),
        replace(OPENAI, dims=16),
    ],
)
def test_vectors_of_one_embedder_are_never_given_to_another(
    cache: SqliteEmbeddingCache, other: EmbedderIdentity
) -> None:
    vectors = some_vectors(3)
    cache.insert(OPENAI, vectors)

    assert cache.lookup(other, list(vectors)) == {}


def test_the_least_recently_used_go_first_beyond_the_number_of_entries(path: str) -> None:
    cache = SqliteEmbeddingCache(path, max_entries=3, now_ns=Clock())
    first, second, third, fourth = some_vectors(4).items()
    cache.insert(OPENAI, dict([first, second, third]))
    cache.lookup(OPENAI, [first[0]])

    cache.insert(OPENAI, dict([fourth]))

    assert cache.lookup(OPENAI, [first[0], second[0], third[0], fourth[0]]) == dict([first, third, fourth])
    cache.close()


def test_the_least_recently_used_go_first_beyond_the_number_of_bytes(path: str) -> None:
    cache = SqliteEmbeddingCache(path, max_bytes=3 * 8 * 4, now_ns=Clock())
    vectors = some_vectors(5)
    cache.insert(OPENAI, vectors)

    assert list(cache.lookup(OPENAI, list(vectors))) != []
    assert set(cache.lookup(OPENAI, list(vectors))) == set(list(vectors)[2:])
    assert cache.describe()["bytes"] == 3 * 8 * 4
    cache.close()


def test_a_forgotten_text_is_not_kept_when_its_vector_arrives_late(path: str) -> None:
    forgotten = sha256_text("text 1")
    cache = SqliteEmbeddingCache(path, buried={forgotten}.__contains__)
    vectors = some_vectors(3)
    cache.insert(OPENAI, vectors)

    assert set(cache.lookup(OPENAI, list(vectors))) == set(vectors) - {forgotten}
    cache.close()


@pytest.mark.parametrize("dims", [8, 256, 1536])
def test_forgetting_leaves_no_byte_of_the_vector_in_any_file(path: str, dims: int) -> None:
    identity = replace(OPENAI, dims=dims)
    cache = SqliteEmbeddingCache(path)
    other_process = SqliteEmbeddingCache(path)  # keeps the log from vanishing on close
    vectors = some_vectors(300, dims)
    cache.insert(identity, vectors)
    other_process.lookup(identity, list(vectors))
    gone = list(vectors)[::7]
    before = all_bytes(path)
    assert all(vectors[name].tobytes()[:32] in before for name in gone)

    cache.forget(gone)

    remains = all_bytes(path)
    for name in gone:
        assert vectors[name].tobytes()[:32] not in remains
        assert name.encode() not in remains
    assert set(cache.lookup(identity, list(vectors))) == set(vectors) - set(gone)
    cache.close()
    other_process.close()


def test_forgetting_is_not_acknowledged_while_a_reader_keeps_the_old_pages(
    cache: SqliteEmbeddingCache, path: str
) -> None:
    vectors = some_vectors(2)
    cache.insert(OPENAI, vectors)
    assert cache._file is not None
    cache._file.connection.set_busy_timeout(10)
    reader = apsw.Connection(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM embedding_cache").fetchall()

    with pytest.raises(StorageFailure, match="its log still holds them"):
        cache.forget(list(vectors))

    reader.execute("ROLLBACK")
    cache.forget(list(vectors))
    assert not any(vector.tobytes() in all_bytes(path) for vector in vectors.values())
    reader.close()


def test_forgetting_reaches_vectors_of_every_embedder(cache: SqliteEmbeddingCache) -> None:
    vectors = some_vectors(2)
    others = replace(OPENAI, provider="voyage")
    cache.insert(OPENAI, vectors)
    cache.insert(others, vectors)
    name = next(iter(vectors))

    cache.forget([name])

    assert name not in cache.lookup(OPENAI, [name])
    assert name not in cache.lookup(others, [name])


def test_nobody_else_may_read_the_files(cache: SqliteEmbeddingCache, path: str) -> None:
    cache.insert(OPENAI, some_vectors(3))

    files = sorted(os.listdir(os.path.dirname(path)))
    assert files == ["cache.sqlite", "cache.sqlite-shm", "cache.sqlite-wal", "cache.sqlite.lock"]
    for name in files:
        mode = os.stat(os.path.join(os.path.dirname(path), name)).st_mode
        assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_set_aside(
    cache: SqliteEmbeddingCache, path: str, content: bytes
) -> None:
    os.mkdir(os.path.dirname(path))
    Path(path).write_bytes(content)

    cache.insert(OPENAI, some_vectors(3))

    assert cache.describe()["entries"] == 3
    assert cache.describe()["setAside"] == 1
    (kept,) = damaged_copies(path)
    assert (Path(path).parent / kept).read_bytes() == content


@pytest.mark.parametrize("page", range(2, 12))
def test_a_damaged_page_never_costs_more_than_the_cache(path: str, page: int) -> None:
    vectors = some_vectors(200, 256)
    identity = replace(OPENAI, dims=256)
    writer = SqliteEmbeddingCache(path)
    writer.insert(identity, vectors)
    writer.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))

    cache = SqliteEmbeddingCache(path)
    found = cache.lookup(identity, list(vectors))
    cache.insert(identity, vectors)

    assert all(found[name] == vectors[name] for name in found)
    assert cache.lookup(identity, list(vectors)) == vectors
    cache.close()


def test_a_damaged_file_stays_where_it_is_while_another_process_has_it_open(path: str) -> None:
    holder, finder = SqliteEmbeddingCache(path), SqliteEmbeddingCache(path)
    holder.insert(OPENAI, some_vectors(3))
    holder_connection = holder._file
    assert holder_connection is not None
    holder_connection.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with open(path, "r+b") as file:
        file.write(b"\xff" * 4096)

    with pytest.raises(StorageFailure, match="another process has it open"):
        finder.insert(OPENAI, some_vectors(3))
    assert damaged_copies(path) == []

    holder.close()
    finder.insert(OPENAI, some_vectors(3))
    assert finder.lookup(OPENAI, list(some_vectors(3))) == some_vectors(3)
    assert len(damaged_copies(path)) == 1
    finder.close()


def test_only_the_newest_damaged_file_is_kept_and_forgetting_drops_it_too(path: str) -> None:
    for round_number in range(3):
        cache = SqliteEmbeddingCache(path)
        cache.insert(OPENAI, some_vectors(1))
        cache.close()
        Path(path).write_bytes(b"damage %d" % round_number * 1000)
        cache.insert(OPENAI, some_vectors(1))
        assert len(damaged_copies(path)) == 1

        cache.close()
    cache.forget([sha256_text("text 0")])

    assert damaged_copies(path) == []
    cache.close()


@pytest.mark.parametrize("left", [32, 5, 0])
def test_a_vector_whose_bytes_rotted_counts_as_unknown(
    cache: SqliteEmbeddingCache, path: str, left: int
) -> None:
    vectors = some_vectors(2)
    rotten, sound = vectors
    cache.insert(OPENAI, vectors)
    with apsw.Connection(path) as other:
        other.execute("UPDATE embedding_cache SET embedding = zeroblob(?) WHERE hash = ?", (left, rotten))
    other.close()

    assert cache.lookup(OPENAI, [rotten, sound]) == {sound: vectors[sound]}

    cache.insert(OPENAI, {rotten: vectors[rotten]})
    assert cache.lookup(OPENAI, [rotten]) == {rotten: vectors[rotten]}


def test_a_file_that_another_process_has_replaced_meanwhile_is_not_set_aside(
    cache: SqliteEmbeddingCache, path: str
) -> None:
    cache.insert(OPENAI, some_vectors(2))
    cache.close()

    assert set_aside(path, os.stat(path).st_ino + 1) is None
    assert damaged_copies(path) == []
    assert cache.describe()["entries"] == 2


def test_opening_waits_for_another_process_that_is_just_creating_the_file(
    cache: SqliteEmbeddingCache, path: str
) -> None:
    os.mkdir(os.path.dirname(path))
    creator = apsw.Connection(path)
    creator.execute("CREATE TABLE other (x)")
    creator.execute("BEGIN EXCLUSIVE")
    creator.execute("INSERT INTO other VALUES (1)")
    later = threading.Timer(0.3, creator.execute, ["COMMIT"])
    later.start()

    cache.insert(OPENAI, some_vectors(2))

    later.join()
    assert cache.describe()["entries"] == 2
    creator.close()


def test_a_cache_of_another_schema_starts_anew(path: str) -> None:
    os.mkdir(os.path.dirname(path))
    other = apsw.Connection(path)
    other.execute("CREATE TABLE embedding_cache (something TEXT)")
    other.pragma("user_version", 99)
    other.close()

    cache = SqliteEmbeddingCache(path)
    cache.insert(OPENAI, some_vectors(2))

    assert cache.describe()["entries"] == 2
    assert cache.describe()["setAside"] == 0
    cache.close()


def test_a_busy_writer_hides_nothing_from_readers(cache: SqliteEmbeddingCache, path: str) -> None:
    vectors = some_vectors(2)
    cache.insert(OPENAI, vectors)
    assert cache._file is not None
    cache._file.connection.set_busy_timeout(10)
    writer = apsw.Connection(path)
    writer.execute("BEGIN IMMEDIATE")

    assert cache.lookup(OPENAI, list(vectors)) == vectors
    with pytest.raises(StorageFailure, match=r"cannot be used: .*locked"):
        cache.insert(OPENAI, some_vectors(3))

    writer.execute("ROLLBACK")
    writer.close()


def test_a_link_in_its_place_is_not_followed(cache: SqliteEmbeddingCache, path: str, tmp_path: Path) -> None:
    os.mkdir(os.path.dirname(path))
    (tmp_path / "elsewhere").write_bytes(b"")
    os.symlink(tmp_path / "elsewhere", path)

    with pytest.raises(StorageFailure, match="cannot be used"):
        cache.insert(OPENAI, some_vectors(1))

    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_failing_burial_check_keeps_nothing(path: str) -> None:
    def unsure(_: str) -> bool:
        raise StorageFailure("the tombstones cannot be read")

    cache = SqliteEmbeddingCache(path, buried=unsure)

    with pytest.raises(StorageFailure, match="tombstones"):
        cache.insert(OPENAI, some_vectors(1))

    assert cache.describe()["entries"] == 0
    cache.close()


VOYAGE = replace(OPENAI, provider="voyage", model="voyage-4")


def filled(cache: SqliteEmbeddingCache) -> tuple[dict[str, Vector], dict[str, Vector]]:
    """Ten vectors of one provider at the times 1 to 10, then ten of another at the times 11 to 20."""
    vectors = some_vectors(20)
    old, new = dict([*vectors.items()][:10]), dict([*vectors.items()][10:])
    cache.insert(OPENAI, old)
    cache.insert(VOYAGE, new)
    return old, new


def test_it_tells_what_it_holds_by_who_made_it(cache: SqliteEmbeddingCache) -> None:
    filled(cache)
    cache.insert(VOYAGE, {sha256_text("one more"): unit_vector(99)})

    voyage, openai = cache.contents()
    assert (voyage.provider, voyage.model, voyage.endpoint, voyage.entries) == (
        "voyage",
        "voyage-4",
        "e1",
        11,
    )
    assert (voyage.bytes, voyage.used_first_ns, voyage.used_last_ns) == (11 * 8 * 4, 11, 21)
    assert (openai.provider, openai.entries) == ("openai", 10)
    assert (cache.count(VOYAGE), cache.count(OPENAI), cache.count(replace(OPENAI, model="x"))) == (11, 10, 0)


@pytest.mark.parametrize(
    ("wanted", "left_of_openai", "left_of_voyage"),
    [
        ({}, 10, 10),
        ({"provider": "openai"}, 0, 10),
        ({"unused_since_ns": 6}, 5, 10),
        ({"unused_since_ns": 16}, 0, 5),
        ({"unused_since_ns": 16, "provider": "voyage"}, 10, 5),
        ({"max_entries": 4}, 0, 4),
        ({"max_bytes": 12 * 8 * 4}, 2, 10),
        ({"provider": "voyage", "max_entries": 3}, 3, 0),
        ({"max_entries": 0}, 0, 0),
    ],
)
def test_pruning_drops_by_provider_by_age_and_beyond_bounds(
    cache: SqliteEmbeddingCache, wanted: dict[str, int | str], left_of_openai: int, left_of_voyage: int
) -> None:
    filled(cache)
    pruned = cache.prune(**wanted)  # type: ignore[arg-type]

    assert (cache.count(OPENAI), cache.count(VOYAGE)) == (left_of_openai, left_of_voyage)
    assert pruned.entries == 20 - left_of_openai - left_of_voyage
    assert pruned.bytes == pruned.entries * 8 * 4


def test_pruning_makes_the_file_smaller(cache: SqliteEmbeddingCache, path: str) -> None:
    wide = replace(OPENAI, dims=1024)
    cache.insert(wide, {sha256_text(f"wide {number}"): unit_vector(number, 1024) for number in range(300)})
    before = len(all_bytes(path))
    cache.prune(max_entries=1)

    assert len(all_bytes(path)) < before / 4
    assert cache.count(wide) == 1
