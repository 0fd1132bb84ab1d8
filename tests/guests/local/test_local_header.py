from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.model_files import encoder_facts, real_gguf, write_gguf

from plainmind.base.errors import EmbeddingError
from plainmind.guests.local.gguf import GgufHeader, read_header
from plainmind.guests.local.llama import LocalEmbedder, LocalSettings
from plainmind.guests.local.model_traits import NO_PROMPTS, prompts_for


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
