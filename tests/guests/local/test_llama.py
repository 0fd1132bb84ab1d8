"""The provider `local` with the real llama.cpp and a real model, and what the header of a GGUF file says."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
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
from tests.support.examples import examples
from tests.support.model_files import encoder_facts, need_llama, real_gguf, write_gguf

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.model import Vector
from plainmind.embed.protocol import EmbeddingSettings
from plainmind.guests.local.llama import (
    GgufHeader,
    LlamaModel,
    LocalEmbedder,
    LocalSettings,
    create,
    read_header,
)
from plainmind.guests.local.model_files import NO_PROMPTS, prompts_for

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
from plainmind.guests.local.llama import read_header
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


def complaint(path: Path) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        _ = LocalEmbedder(LocalSettings(model_path=str(path))).identity
    assert caught.value.hint
    return caught.value


def header(tmp_path: Path, **changes: object) -> GgufHeader:
    return read_header(str(write_gguf(tmp_path / "model.gguf", encoder_facts(**changes))))


def test_a_header_says_how_large_the_vectors_and_the_window_are(tmp_path: Path) -> None:
    read = header(tmp_path)

    assert (read.architecture, read.dims, read.window_tokens, read.pooling) == ("bert", 8, 512, 1)
    assert read.names == ("tiny", "model.gguf")
    assert read.makes_embeddings


def test_the_real_model_is_understood() -> None:
    read = read_header(str(real_gguf()))

    assert (read.architecture, read.dims, read.window_tokens, read.pooling) == ("bert", 384, 512, 1)
    assert prompts_for(read.names) == NO_PROMPTS


def test_a_model_with_another_size_of_output_has_vectors_of_that_size(tmp_path: Path) -> None:
    assert header(tmp_path, bert__embedding_length_out=4).dims == 4


def test_an_encoder_without_a_word_about_pooling_gets_the_mean_and_a_decoder_its_last_token(
    tmp_path: Path,
) -> None:
    assert header(tmp_path).pooling_to_ask_for is None
    assert header(tmp_path, bert__pooling_type=0).pooling_to_ask_for == 1
    assert header(tmp_path, bert__pooling_type=None).pooling_to_ask_for == 1
    decoder = {
        "general.architecture": "qwen3",
        "general.name": "Qwen3 Embedding 0.6B",
        "qwen3.embedding_length": 1024,
    }
    read = read_header(str(write_gguf(tmp_path / "q.gguf", decoder)))
    assert read.pooling_to_ask_for == 3
    assert read.makes_embeddings
    assert read.window_tokens == 512


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    assert "does not exist" in str(complaint(tmp_path / "nowhere.gguf"))


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    assert "cannot be read" in str(complaint(tmp_path))


def test_a_file_of_another_kind_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<html>Sign in to download</html>")

    assert "is not a GGUF model" in str(complaint(tmp_path / "page.gguf"))


def test_an_empty_file_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()

    assert "it is empty" in str(complaint(tmp_path / "empty.gguf"))


def test_a_file_from_the_future_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "next.gguf").write_bytes(b"GGUF\x09\x00\x00\x00" + bytes(64))

    assert "version 9" in str(complaint(tmp_path / "next.gguf"))


def test_a_download_that_broke_off_anywhere_is_noticed_before_loading(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", encoder_facts()).read_bytes()
    broken = tmp_path / "broken.gguf"

    for length in range(9, len(whole) - 1, 97):
        broken.write_bytes(whole[:length])
        assert "damaged" in str(complaint(broken))


def test_half_of_the_real_model_is_noticed_before_loading(tmp_path: Path) -> None:
    whole = real_gguf().read_bytes()
    (tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])

    assert "shorter than its header says" in str(complaint(tmp_path / "half.gguf"))


@pytest.mark.parametrize(
    "facts",
    [
        {"general.architecture": "llama", "general.name": "Tiny Chat", "llama.embedding_length": 64},
        encoder_facts(bert__pooling_type=4),
    ],
    ids=["chat", "ranking"],
)
def test_a_model_for_something_else_is_refused(tmp_path: Path, facts: dict[str, object]) -> None:
    assert "is no embedding model" in str(complaint(write_gguf(tmp_path / "m.gguf", facts)))


def test_a_model_that_does_not_say_what_it_is_is_refused(tmp_path: Path) -> None:
    assert "does not say which model" in str(
        complaint(write_gguf(tmp_path / "m.gguf", {"general.name": "x"}))
    )


@given(tail=st.binary(max_size=200))
@settings(max_examples=examples(300))
def test_any_bytes_behind_the_magic_are_an_error_and_never_a_crash(
    tail: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + tail)

    with pytest.raises(EmbeddingError):
        read_header(str(path))


def test_a_model_is_the_same_wherever_it_lies_and_another_when_a_byte_differs(tmp_path: Path) -> None:
    first = write_gguf(tmp_path / "m.gguf", encoder_facts())
    copy = tmp_path / "elsewhere" / "m.gguf"
    copy.parent.mkdir()
    shutil.copy(first, copy)
    other = tmp_path / "other" / "m.gguf"
    other.parent.mkdir()
    other.write_bytes(first.read_bytes()[:-1] + b"\x01")

    identities = [
        LocalEmbedder(LocalSettings(model_path=str(path))).identity for path in (first, copy, other)
    ]

    assert identities[0] == identities[1]
    assert identities[0].endpoint != identities[2].endpoint


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        ("embeddinggemma-300M-Q8_0.gguf", "task: search result | query: ", "title: none | text: "),
        ("Embedding Gemma 300m", "task: search result | query: ", "title: none | text: "),
        ("nomic-embed-text-v1.5.Q8_0.gguf", "search_query: ", "search_document: "),
        ("Qwen3-Embedding-0.6B-f16.gguf", "Instruct: Given a web search query", ""),
        ("multilingual-e5-small", "query: ", "passage: "),
        ("multilingual-e5-large-instruct", "Instruct: Given a web search query", ""),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", ""),
        ("bge-large-zh-v1.5", "为这个句子", ""),
        ("snowflake-arctic-embed-m", "Represent this sentence", ""),
        ("snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("bge-m3-Q8_0.gguf", "", ""),
        ("all-MiniLM-L6-v2.Q8_0.gguf", "", ""),
        ("my-own-model.gguf", "", ""),
    ],
)
def test_a_family_of_models_gets_the_words_it_was_trained_with(name: str, query: str, document: str) -> None:
    prompts = prompts_for(["unknown", name])

    assert prompts.query.startswith(query)
    assert bool(prompts.query) == bool(query)
    assert prompts.document == document
