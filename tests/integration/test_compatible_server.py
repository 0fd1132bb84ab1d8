"""A real OpenAI-compatible server, llama.cpp's own, as a client would use it: indexed and searched end to end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.model_files import need_llama, real_gguf

from plainmind import Memory
from plainmind.base.errors import EmbeddingError
from plainmind.guests.local.llama import LocalEmbedder, LocalSettings
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.embedder import RemoteEmbedder, create_remote
from plainmind.guests.remote.ledger import Ledger

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

KEY = "sk-for-this-test-only"
SERVE = """
import sys, xllamacpp
wanted = xllamacpp.CommonParams()
wanted.model.path, wanted.api_keys, wanted.hostnames = sys.argv[1], [sys.argv[2]], ["127.0.0.1"]
wanted.embedding, wanted.verbosity, wanted.warmup = True, -1, False
wanted.n_parallel, wanted.n_ctx, wanted.n_batch, wanted.n_ubatch = 4, 2048, 512, 512
wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(wanted)
print(server.listening_address, flush=True)
sys.stdin.read()
del server
"""


@dataclass
class Server:
    address: str
    process: subprocess.Popen[str]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.communicate("", timeout=60)


@pytest.fixture
def server() -> Iterator[Server]:
    need_llama()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(real_gguf()), KEY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    made = Server(process.stdout.readline().strip(), process)
    assert made.address.startswith("http://127.0.0.1:"), "the server did not start"
    yield made
    made.stop()


def remote(server: Server, tmp_path: Path, key: str = KEY) -> RemoteEmbedder:
    settings = RemoteSettings(
        base_url=f"{server.address}/v1", api_key=key, model="minilm", allow_private=True
    )
    return create_remote("openai", settings, Ledger(str(tmp_path / f"ledger-{key}.sqlite")))


def test_the_server_gives_the_same_vectors_as_the_model_in_this_process(
    server: Server, tmp_path: Path
) -> None:
    texts = [f"Note {number}: the cat sleeps on the radiator." for number in range(40)]
    there, here = (
        remote(server, tmp_path),
        LocalEmbedder(LocalSettings(model_path=str(real_gguf()), threads=1)),
    )

    for far, near in zip(there.embed_documents(texts), here.embed_documents(texts), strict=True):
        assert far is not None
        assert near is not None
        assert sum(a * b for a, b in zip(far, near, strict=True)) > 0.999
    assert there.identity.dims == here.identity.dims == 384
    there.close()
    here.close()


def test_a_text_longer_than_the_servers_window_is_cut_and_the_others_are_whole(
    server: Server, tmp_path: Path
) -> None:
    embedder = remote(server, tmp_path)

    vectors = embedder.embed_documents(["a short note", "cat " * 900, "another note"])

    assert all(vector is not None for vector in vectors)
    embedder.close()


def test_a_wrong_key_is_an_error_that_does_not_show_it(server: Server, tmp_path: Path) -> None:
    embedder = remote(server, tmp_path, key="sk-wrong-and-secret")

    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query("a cat")

    assert "sk-wrong" not in f"{caught.value} {caught.value.hint} {embedder!r}"
    embedder.close()


def test_notes_are_indexed_and_found_by_meaning_and_by_words_alone_when_the_server_stops(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    remote = {"baseUrl": f"{server.address}/v1", "apiKey": "env:TEST_KEY", "queryTimeoutMs": 60_000}
    config = {"provider": "openai", "model": "minilm", "remote": remote}
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    (notes / "pets.md").write_text("# Pets\n\n- Anna gives the kitten its food at seven.\n")
    (notes / "servers.md").write_text("# Servers\n\n- The gateway was moved to a machine in Falkenstein.\n")
    (notes / "bread.md").write_text("# Bread\n\n- The sourdough rests for twelve hours.\n")

    with Memory(tmp_path / "notes", home=tmp_path / "home", config=config) as memory:
        found = memory.search("who feeds the cat?", min_score=0)
        assert found.hits[0].path == "memory/pets.md"
        assert found.degraded == ()
        assert memory.status()["provider"] == "openai"

        server.stop()
        found = memory.search("sourdough", min_score=0)
        assert found.hits[0].path == "memory/bread.md"
        assert found.degraded, "what was not consulted is said"
        assert KEY not in str(found)
