"""The provider `onnx` with the real onnxruntime and a small model that is written here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
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
from tests.support.model_files import DIMS, WORDS, need_onnxruntime, table, write_onnx_folder

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.embed.protocol import EmbeddingSettings
from plainmind.guests.local.onnx import OnnxEmbedder, OnnxSettings, create, read_folder

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def embedder(tmp_path: Path) -> Iterator[OnnxEmbedder]:
    need_onnxruntime()
    made = opened(write_onnx_folder(tmp_path / "tiny"))
    yield made
    made.close()


def opened(folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(OnnxSettings(model=str(folder), threads=1))


def unit(values: list[float]) -> list[float]:
    return [value / math.hypot(*values) for value in values]


def rows(*words: str) -> list[list[float]]:
    return [table()[WORDS.index(word)] for word in words]


def mean(vectors: list[list[float]]) -> list[float]:
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean_tokens", mean(rows("[CLS]", "sourdough", "bread", "[SEP]"))),
        ("cls_token", rows("[CLS]")[0]),
        ("lasttoken", rows("[SEP]")[0]),
        (None, mean(rows("[CLS]", "sourdough", "bread", "[SEP]"))),
    ],
)
def test_tokens_become_one_vector_as_the_model_was_trained(
    tmp_path: Path, pooling: str | None, expected: list[float]
) -> None:
    need_onnxruntime()
    embedder = opened(write_onnx_folder(tmp_path / "tiny", pooling=pooling))

    (vector,) = embedder.embed_documents(["Sourdough bread"])

    assert list(vector or ()) == pytest.approx(unit(expected), abs=1e-6)


def test_a_text_longer_than_the_window_is_cut(tmp_path: Path) -> None:
    need_onnxruntime()
    embedder = opened(write_onnx_folder(tmp_path / "tiny", positions=8))

    (vector,) = embedder.embed_documents(["cat " * 6 + "bread " * 100])

    assert list(vector or ()) == pytest.approx(unit(mean(rows("[CLS]", *["cat"] * 6, "[SEP]"))), abs=1e-6)


def test_a_model_gets_only_the_inputs_that_it_has(tmp_path: Path) -> None:
    need_onnxruntime()
    embedder = opened(write_onnx_folder(tmp_path / "tiny", inputs=("input_ids",)))

    assert embedder.embed_query("bread")


def test_prompts_come_from_the_folder_or_from_the_name(tmp_path: Path) -> None:
    plain = write_onnx_folder(tmp_path / "tiny")
    family = write_onnx_folder(tmp_path / "multilingual-e5-small")
    told = write_onnx_folder(tmp_path / "told")
    (told / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "where "}}))

    assert read_folder(str(plain)).prompts.query == ""
    assert read_folder(str(family)).prompts.document == "passage: "
    assert (read_folder(str(told)).prompts.query, read_folder(str(told)).prompts.document) == ("where ", "")


def test_words_before_a_question_reach_the_model(tmp_path: Path) -> None:
    need_onnxruntime()
    embedder = opened(write_onnx_folder(tmp_path / "e5-small"))

    assert list(embedder.embed_query("cat")) == pytest.approx(
        unit(mean(rows("[CLS]", "query", "[UNK]", "cat", "[SEP]"))), abs=1e-6
    )


def test_the_window_is_the_smallest_that_any_file_names(tmp_path: Path) -> None:
    folder = write_onnx_folder(tmp_path / "tiny", positions=514)
    assert read_folder(str(folder)).window_tokens == 514

    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128}))
    assert read_folder(str(folder)).window_tokens == 128

    (folder / "sentence_bert_config.json").unlink()
    (folder / "config.json").write_text(
        json.dumps({"max_position_embeddings": 514, "model_type": "xlm-roberta"})
    )
    assert read_folder(str(folder)).window_tokens == 512


def test_a_folder_that_does_not_say_its_dimensions_is_asked(tmp_path: Path) -> None:
    need_onnxruntime()
    folder = write_onnx_folder(tmp_path / "tiny", dims=12)
    (folder / "config.json").unlink()

    assert opened(folder).identity.dims == 12


def test_other_weights_another_pooling_or_other_prompts_are_another_model(tmp_path: Path) -> None:
    folders = [
        write_onnx_folder(tmp_path / "a" / "tiny"),
        write_onnx_folder(tmp_path / "b" / "tiny"),
        write_onnx_folder(tmp_path / "c" / "tiny", inputs=("input_ids",)),
        write_onnx_folder(tmp_path / "d" / "tiny", pooling="cls_token"),
        write_onnx_folder(tmp_path / "e" / "tiny"),
    ]
    (folders[4] / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "q: "}}))

    endpoints = [opened(folder).identity.endpoint for folder in folders]

    assert endpoints[0] == endpoints[1]
    assert len(set(endpoints)) == 4


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_an_incomplete_folder_is_named(tmp_path: Path, missing: str) -> None:
    folder = write_onnx_folder(tmp_path / "tiny")
    (folder / missing).unlink()

    with pytest.raises(EmbeddingError, match=f"there is no {missing}"):
        _ = opened(folder).identity


def test_a_model_whose_last_layer_is_missing_is_refused(tmp_path: Path) -> None:
    folder = write_onnx_folder(tmp_path / "tiny")
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))

    with pytest.raises(EmbeddingError, match="dense layer"):
        _ = opened(folder).identity


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_damaged_file_is_an_error_and_prints_nothing(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    need_onnxruntime()
    folder = write_onnx_folder(tmp_path / "tiny")
    (folder / name).write_bytes(b"{ this is neither")

    with pytest.raises(EmbeddingError) as caught:
        opened(folder).embed_query("a cat")

    assert caught.value.hint
    assert name in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_model_for_something_else_is_refused(tmp_path: Path) -> None:
    need_onnxruntime()
    folder = write_onnx_folder(tmp_path / "tiny", inputs=("input_ids", "pixel_values"))

    with pytest.raises(EmbeddingError, match="it wants pixel_values"):
        opened(folder).embed_query("a cat")


def test_without_onnxruntime_the_error_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    embedder = create(EmbeddingSettings(provider="onnx", model=str(write_onnx_folder(tmp_path / "tiny"))))

    assert embedder.identity.dims == DIMS
    with pytest.raises(EmbeddingError, match="needs the package onnxruntime") as caught:
        embedder.embed_query("a cat")
    assert "[onnx]'" in str(caught.value.hint)


def test_a_name_that_is_neither_folder_nor_model_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a folder nor the name of a model") as caught:
        OnnxEmbedder(OnnxSettings(model=str(tmp_path / "nowhere" / "at" / "all")))

    assert caught.value.key == "model"


QUIET = """
import sys
from plainmind.guests.local.onnx import OnnxEmbedder, OnnxSettings
OnnxEmbedder(OnnxSettings(model=sys.argv[1])).embed_query("a cat")
"""


def test_it_prints_nothing(tmp_path: Path) -> None:
    need_onnxruntime()
    folder = write_onnx_folder(tmp_path / "tiny")
    run = subprocess.run(
        [sys.executable, "-c", QUIET, str(folder)], capture_output=True, text=True, check=False, timeout=50
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
