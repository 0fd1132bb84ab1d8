"""An encoder that knows English learns the words of other languages from where their meaning is."""

from __future__ import annotations

from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jax", reason="the group `dev` has it")
onnx = pytest.importorskip("onnx", reason="the group `dev` has it")
pytest.importorskip("tokenizers", reason="the group `dev` has it")

from plainmind.guests.rerank.word_pieces import WordPieces, split_words  # noqa: E402
from training import (  # noqa: E402
    make_reranker,
    onnx_weights,
    prepare,
    reranker,
    reranker_pieces,
    transformer,
)

OWN = ["[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{one}" for one in "abcdefghijklmnopqrstuvwxyz"),
       "dog", "cat", "house", "##ing"]  # fmt: skip


def test_what_a_language_often_uses_becomes_pieces() -> None:
    texts = {
        "de": [("der hund schläft im haus, sagt der mann", 40), ("dog", 90)],
        "zh": [("我在图书馆看书。图书馆很安静。", 30)],
        "ja": [("わたしはがっこうへいきます", 30)],
        "ko": [("학교에 갑니다", 30)],
    }
    chosen = reranker_pieces.choose(texts, OWN)

    assert {"hund", "der", "schlaft", "haus"} <= set(chosen)
    assert {"图书馆", "图", "看"} <= set(chosen)
    assert not set(chosen) & set(OWN)
    assert len(chosen) == len(set(chosen))
    cutter = WordPieces([*OWN, *chosen])
    names = [*OWN, *chosen]
    assert names[cutter.encode("图书馆的 Hund")[0]] == "图书馆"
    for text in ("わたしはがっこうへいきます", "학교에 갑니다"):
        assert cutter.number("[UNK]") not in cutter.encode(text)
    assert split_words("がっこう") != split_words("かっこう")


def test_a_new_piece_begins_between_words_that_mean_the_same() -> None:
    counts = dict.fromkeys(("dog", "cat", "house", "an", "it"), 9)
    axes = np.eye(4, dtype=np.float32)
    vectors = {"dog": axes[0], "cat": axes[1], "house": axes[2], "hund": axes[0], "ung": axes[3]}
    own = [*OWN, "an", "it"]
    vectors |= {"an": axes[3], "it": axes[3]}

    numbers, shares = reranker_pieces.begin(["hund", "##ung"], own, vectors, counts)

    assert own[numbers[0][shares[0].argmax()]] == "dog"
    assert [own[at] for at, share in zip(numbers[1], shares[1], strict=True) if share] == [
        "##u",
        "##n",
        "##g",
    ]
    assert np.allclose(shares.sum(1), 1, atol=1e-5)

    words = np.random.default_rng(1).standard_normal((len(own), 8)).astype(np.float32)
    new = reranker.grow(words, numbers, shares)
    assert new.shape == (2, 8)
    assert np.argmax(words @ (new[0] / np.linalg.norm(new[0])) / np.linalg.norm(words, axis=1)) == own.index(
        "dog"
    )


def test_words_without_their_accents_mean_what_they_mean_with_them() -> None:
    meanings = reranker_pieces.Meanings({"de": [("Die Tür ist zu, für immer", 1)]})

    assert np.array_equal(meanings["fur"], meanings["für"])
    assert meanings["tur"].shape == (reranker_pieces.DIMS,)


def test_an_encoder_in_whole_numbers_is_read_from_a_package(tmp_path: Path) -> None:
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    chance = np.random.default_rng(2)

    def whole(name: str, *shape: int) -> list[object]:
        arrays = (chance.integers(-90, 90, shape).astype(np.int8), np.float32(0.02), np.int8(3))
        ends = ("quantized", "scale", "zero_point")
        return [
            numpy_helper.from_array(np.asarray(one), f"{name}_{end}")
            for one, end in zip(arrays, ends, strict=True)
        ]

    weights = [
        *whole("bert.embeddings.word_embeddings.weight", 9, 4),
        *whole("onnx::MatMul_7", 4, 4),
        *whole("bert.pooler.dense.weight", 4, 4),
        *whole("classifier.weight", 4, 1),
        *(
            numpy_helper.from_array(chance.standard_normal(size).astype(np.float32), name)
            for name, size in (
                ("bert.encoder.layer.0.attention.self.query.bias", 4), ("bert.pooler.dense.bias", 4),
                ("classifier.bias", 1),
            )
        ),
    ]  # fmt: skip
    node = helper.make_node(
        "MatMulInteger", ["x", "onnx::MatMul_7_quantized", "z", "onnx::MatMul_7_zero_point"], ["y"],
        name="/bert/encoder/layer.0/attention/self/query/MatMul_quant",
    )  # fmt: skip
    graph = helper.make_graph([node], "small", [], [], weights)
    (tmp_path / "model.onnx").write_bytes(helper.make_model(graph).SerializeToString())

    read = onnx_weights.read(tmp_path / "model.onnx")
    arrays = {one.name: numpy_helper.to_array(one) for one in weights}

    plain = (arrays["onnx::MatMul_7_quantized"].astype(np.float32) - 3) * np.float32(0.02)
    assert np.allclose(read["0.q.weight"], plain.T)
    assert read["word_embeddings.weight"].shape == (9, 4)
    assert read["0.q.bias"].shape == (4,)
    assert read["head.weight"].shape == (1, 4)
    assert set(transformer.unpack(transformer.pack(read))) == set(read)


def test_a_student_goes_on_from_the_shipped_one_with_the_words_that_it_did_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "dog", "cat"]
    chance = np.random.default_rng(5)
    words = chance.standard_normal((6, 8)).astype(np.float32)
    known = {"word_embeddings.weight": np.concatenate([words, np.zeros((2, 8), np.float32)])}
    known["word_embeddings.weight"][7] = 3.0  # an earlier one has learned it
    monkeypatch.setattr(make_reranker.reranker_files, "read", lambda *_: dict(known))
    numbers, shares = np.array([[4, 5], [4, 5]]), np.array([[1, 0], [1, 0]], np.float16)

    student = make_reranker._student(tmp_path, "shipped", [*own, "hund", "katze"], numbers, shares)

    rows = np.asarray(student["word_embeddings.weight"])
    assert np.array_equal(rows[:6], words)
    assert np.allclose(rows[6] / np.linalg.norm(rows[6]), words[4] / np.linalg.norm(words[4]), atol=1e-5)
    assert (rows[7] == 3.0).all()


def test_students_are_not_made_in_a_folder_that_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    monkeypatch.setattr("sys.argv", ["make_reranker", str(tmp_path), str(tmp_path / "out" / "made")])

    with pytest.raises(SystemExit):
        make_reranker.main()

    assert "choose another folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_sentences_are_asked_for_by_their_translations_and_in_other_words(tmp_path: Path) -> None:
    lines = [
        "The old ferry sleeps until the fog has gone.\tDie alte Fähre schläft, bis der Nebel fort ist.",
        "An ancient boat rests till mist lifts away.\tDie alte Fähre schläft, bis der Nebel fort ist.",
        "Yes.\tJa.",
    ]
    (tmp_path / "de.txt").write_text("\n".join(lines), "utf-8")

    pairs = list(prepare.everyday_pairs(tmp_path, 1))

    assert {(pair.source, pair.language) for pair in pairs} == {
        ("everyday", "de"),
        ("everyday_reworded", "en"),
    }
    assert not any(pair.passage == "Yes." for pair in pairs)
    assert sum(pair.source == "everyday" for pair in pairs) == 2
