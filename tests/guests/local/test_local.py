"""The provider `local` with the real llama.cpp and a real model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contracts.test_embedder import (  # noqa: F401  the promises of every embedder, run on this one
    test_a_blank_question_is_an_error_and_not_a_vector_of_zeros,
    test_a_blank_text_has_no_vector_and_spoils_no_other,
    test_a_question_is_nearest_to_the_text_that_answers_it,
    test_a_text_has_the_same_vector_alone_and_in_company,
    test_closing_twice_does_no_harm,
    test_each_vector_stands_where_its_text_stands,
    test_hostile_text_is_embedded_like_any_other,
    test_it_can_be_shared_between_threads,
    test_it_says_who_it_is_and_where_text_goes,
    test_no_texts_give_no_vectors,
    test_vectors_are_unit_length_float32_of_the_promised_size,
)
from tests.support.model_files import encoder_facts, need_llama, real_gguf, write_gguf

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.model import Vector
from plainmind.embed.protocol import EmbeddingSettings
from plainmind.guests.local.gguf import read_header
from plainmind.guests.local.llama import LlamaModel, LocalEmbedder, LocalSettings, create

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]


@pytest.fixture(scope="module")
def loaded() -> Iterator[LocalEmbedder]:
    need_llama()
    made = LocalEmbedder(LocalSettings(model_path=str(real_gguf()), threads=1))
    yield made
    made.close()


@pytest.fixture
def embedder(loaded: LocalEmbedder) -> LocalEmbedder:
    return loaded


def cosine(one: Vector | None, other: Vector | None) -> float:
    assert one is not None
    assert other is not None
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_texts_that_mean_the_same_are_nearer_than_texts_that_do_not(embedder: LocalEmbedder) -> None:
    pairs = [
        ("The server is down.", "Our machine does not respond."),
        ("She feeds the cat.", "The kitten gets its food from her."),
        ("We moved to Berlin.", "Our new home is in the German capital."),
    ]
    vectors = [embedder.embed_documents(pair) for pair in pairs]

    for mine, (one, same) in enumerate(vectors):
        for theirs, (other, _) in enumerate(vectors):
            if mine != theirs:
                assert cosine(one, same) > cosine(one, other) + 0.1


def test_a_text_of_any_length_is_embedded_by_what_fits_into_the_window(embedder: LocalEmbedder) -> None:
    lengths = [*range(505, 516), 900, 5_000]

    vectors = embedder.embed_documents([("cat " * count).strip() for count in lengths])

    assert all(vector is not None for vector in vectors)
    assert cosine(vectors[0], vectors[-1]) > 0.99
    assert embedder.describe()["shortenedTexts"] > 0  # type: ignore[operator]


def test_words_before_a_question_depend_on_the_family_of_the_model(
    embedder: LocalEmbedder, tmp_path: Path
) -> None:
    named = tmp_path / "nomic-embed-text-v1.5.gguf"
    shutil.copy(real_gguf(), named)
    other = LocalEmbedder(LocalSettings(model_path=str(named), threads=1))

    assert other.embed_query("a cat") == embedder.embed_query("search_query: a cat")
    assert other.embed_documents(["a cat"]) == embedder.embed_documents(["search_document: a cat"])
    other.close()


def test_it_can_be_used_again_after_closing(embedder: LocalEmbedder) -> None:
    before = embedder.embed_query("a cat")
    embedder.close()

    assert embedder.embed_query("a cat") == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_closing_ends_its_threads() -> None:
    need_llama()
    model = LocalEmbedder(LocalSettings(model_path=str(real_gguf()), threads=1))
    model.embed_query("a cat")
    during = len(os.listdir("/proc/self/task"))
    model.close()

    assert len(os.listdir("/proc/self/task")) < during


def test_closing_gives_up_the_texts_that_still_wait() -> None:
    need_llama()
    model = LlamaModel(read_header(str(real_gguf())), threads=1)
    complaints: list[str] = []
    begun = threading.Event()

    def texts() -> Iterator[str]:
        for number in range(10_000):
            begun.set()
            yield f"cat {number}"

    def embed() -> None:
        try:
            model.embed(texts())  # type: ignore[arg-type]
        except EmbeddingError as error:
            complaints.append(str(error))

    running = threading.Thread(target=embed)
    running.start()
    assert begun.wait(60)
    model.close()
    running.join(60)

    assert complaints == ["the embedding model was closed while it was asked"]


def test_a_question_does_not_wait_for_all_the_texts_before_it(embedder: LocalEmbedder) -> None:
    done: list[str] = []
    embedder.embed_query("loaded")

    def index() -> None:
        embedder.embed_documents([f"cat number {number} " * 20 for number in range(60)])
        done.append("texts")

    indexing = threading.Thread(target=index)
    indexing.start()
    embedder.embed_query("a cat")
    done.append("question")
    indexing.join()

    assert done == ["question", "texts"]


QUIET = """
import os, sys
from plainmind.guests.local.gguf import read_header
from plainmind.guests.local.llama import LlamaModel
from plainmind.guests.local.llama import LocalEmbedder, LocalSettings
embedder = LocalEmbedder(LocalSettings(model_path=sys.argv[1], threads=1))
embedder.embed_query("a cat")
listening = {line.split()[9] for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]}
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
mine = {os.readlink(link) for link in links if os.path.lexists(link)}
assert not {f"socket:[{inode}]" for inode in listening} & mine, "a port is open"
if sys.argv[2] == "close":
    embedder.close()
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="sockets are listed in /proc")
@pytest.mark.parametrize("ending", ["close", "leave"])
def test_it_prints_nothing_opens_no_port_leaves_no_file_and_ends_with_the_program(
    tmp_path: Path, ending: str
) -> None:
    need_llama()
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-c", QUIET, str(real_gguf()), ending],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_llama_cannot_load_is_an_error_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    need_llama()
    path = write_gguf(tmp_path / "hollow.gguf", encoder_facts())

    with pytest.raises(EmbeddingError, match=r"llama\.cpp could not load") as caught:
        LocalEmbedder(LocalSettings(model_path=str(path))).embed_query("a cat")

    assert "damaged" in str(caught.value.hint)
    assert capfd.readouterr() == ("", "")


def test_without_llama_the_error_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    path = write_gguf(tmp_path / "tiny.gguf", encoder_facts())

    with pytest.raises(EmbeddingError, match=r"needs llama\.cpp, which is not installed") as caught:
        LocalEmbedder(LocalSettings(model_path=str(path))).embed_query("a cat")

    assert "[local]'" in str(caught.value.hint)


def test_who_it_is_can_be_told_without_llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    path = write_gguf(tmp_path / "tiny.gguf", encoder_facts())

    identity = create(EmbeddingSettings(provider="local", model=str(path))).identity

    assert (identity.provider, identity.model, identity.dims) == ("local", "tiny.gguf", 8)


def test_status_neither_loads_nor_downloads(tmp_path: Path) -> None:
    embedder = LocalEmbedder(LocalSettings(model_cache_dir=str(tmp_path)))

    assert json.loads(json.dumps(embedder.describe())) == {
        "model": "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf",
        "file": f"{tmp_path}/ggml-org/embeddinggemma-300M-GGUF/main/embeddinggemma-300M-Q8_0.gguf",
        "ready": False,
    }


def test_a_hub_uri_without_a_file_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="names no GGUF file"):
        LocalEmbedder(LocalSettings(model_path="hf:org/repo/README.md"))
