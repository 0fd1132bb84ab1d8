from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.waiting import until

from plainmind.base.model import EmbedderIdentity, sha256_text
from plainmind.embed.cache import SqliteEmbeddingCache

IDENTITY = EmbedderIdentity("hashing", "sha256-words", dims=64)

WORKER = """
import sys
sys.path.insert(0, {root!r})
from plainmind.embed.cache import SqliteEmbeddingCache
from plainmind.embed.cache import CachedEmbedder
from tests.support.hashing_embedder import HashingEmbedder

path, worker, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cache = SqliteEmbeddingCache(path)
embedder = CachedEmbedder(HashingEmbedder(), cache)
for round_number in range(rounds):
    texts = [f"worker {{worker}} round {{round_number}} text {{i}}" for i in range(5)]
    texts += [f"shared {{round_number}} text {{i}}" for i in range(5)]
    assert embedder.embed_documents(texts) == HashingEmbedder().embed_documents(texts)
    assert embedder.trouble is None, embedder.trouble
print("done", flush=True)
"""


def start(path: str, worker: int, rounds: int) -> subprocess.Popen[str]:
    script = WORKER.format(root=str(Path(__file__).parents[2]))
    return subprocess.Popen(
        [sys.executable, "-c", script, path, str(worker), str(rounds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(60)
def test_eight_processes_open_and_fill_one_cache_without_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    workers = [start(path, worker, 12) for worker in range(8)]

    outputs = [worker.communicate(timeout=60) for worker in workers]

    assert outputs == [("done\n", "")] * 8
    cache = SqliteEmbeddingCache(path)
    assert cache.describe()["entries"] == 8 * 12 * 5 + 12 * 5
    cache.close()


@pytest.mark.timeout(60)
def test_a_killed_process_leaves_a_cache_that_others_go_on_using(tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    for worker in range(5):
        victim = start(path, worker, 100_000)
        until(Path(path).exists)
        time.sleep(0.15)
        victim.kill()
        victim.communicate(timeout=60)

    survivor = start(path, 99, 3)

    assert survivor.communicate(timeout=60) == ("done\n", "")
    cache = SqliteEmbeddingCache(path)
    assert cache.describe()["setAside"] == 0
    assert cache.lookup(IDENTITY, [sha256_text("worker 99 round 2 text 4")])
    cache.close()
