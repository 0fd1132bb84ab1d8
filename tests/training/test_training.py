"""Every step that makes the models runs in small, on made data, without a GPU."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax", reason="the group `dev` has it")
pytest.importorskip("onnx", reason="the group `dev` has it")
onnxruntime = pytest.importorskip("onnxruntime")

import jax.numpy as jnp  # noqa: E402

from plainmind.embed.builtin import SHARED_ROWS, BuiltinEmbedder, Tokenizer  # noqa: E402
from training import (  # noqa: E402
    candidates,
    continue_table,
    everyday,
    model_files,
    overlap,
    packed,
    prepare,
    prepare_everyday,
    reranker,
    reranker_files,
    table,
    transformer,
    vocabulary,
)

WORDS = ["cat", "dog", "printer", "server", "garden", "tomato", "train", "ticket", "doctor", "pill"]


@pytest.fixture(scope="module")
def pieces() -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return sorted({*WORDS, *letters, *(f"-{letter}" for letter in letters), "猫", "犬"}, key=str.encode)


def encoder(kind: str, vocabulary_size: int, width: int = 24, layers: int = 1) -> transformer.Parameters:
    chance = np.random.default_rng(3)

    def made(*shape: int) -> np.ndarray:
        return (0.05 * chance.standard_normal(shape)).astype(np.float32)

    arrays = {
        "embeddings.word_embeddings.weight": made(vocabulary_size, width),
        "embeddings.position_embeddings.weight": made(300, width),
        "embeddings.LayerNorm.weight": np.ones(width, np.float32),
        "embeddings.LayerNorm.bias": made(width),
        "pooler.dense.weight": made(width, width),
    }
    bert = kind == "bert"
    if bert:
        arrays["embeddings.token_type_embeddings.weight"] = made(2, width)
    else:
        arrays["encoder.relative_attention_bias.weight"] = made(32, 12)
    attention = (
        ("self.query", "self.key", "self.value", "output.dense")
        if bert
        else ("attn.q", "attn.k", "attn.v", "attn.o")
    )
    for layer in range(layers):
        start = f"encoder.layer.{layer}."
        for name in attention:
            arrays[f"{start}attention.{name}.weight"] = made(width, width)
            arrays[f"{start}attention.{name}.bias"] = made(width)
        for name in ("attention.output.LayerNorm" if bert else "attention.LayerNorm", "output.LayerNorm"):
            arrays[f"{start}{name}.weight"], arrays[f"{start}{name}.bias"] = (
                np.ones(width, np.float32),
                made(width),
            )
        for name, shape in (("intermediate", (4 * width, width)), ("output", (width, 4 * width))):
            arrays[f"{start}{name}.dense.weight"], arrays[f"{start}{name}.dense.bias"] = (
                made(*shape),
                made(shape[0]),
            )
    return transformer.canonical(arrays)


def test_what_an_evaluation_set_says_is_left_out() -> None:
    barred = overlap.collect(
        [
            "the quick brown fox jumps over the lazy dog today",
            "昨日の夜に駅前の新しい店で食べたラーメンがおいしかった",
        ]
    )

    assert overlap.shares(barred, "He said: the quick brown fox jumps over the lazy cat")
    assert overlap.shares(barred, "店の話。昨日の夜に駅前の新しい店で食べたラーメンがまずかった")
    assert not overlap.shares(barred, "the quick brown fox sleeps under the lazy dog today")


def test_a_vocabulary_has_whole_words_and_every_common_letter() -> None:
    chance = random.Random(1)
    texts = {"en": [" ".join(chance.choices(WORDS, k=30)) for _ in range(200)], "ja": ["猫と犬" * 50] * 30}
    counts = vocabulary.count_runs(texts, seed=1, characters=40_000)
    chosen = vocabulary.choose(counts, vocabulary.merge_pieces(counts, 200), {"kitten": 0.5}, 400, ["pill"])

    assert {*WORDS, "kitten", "c", "-c", "猫"} <= set(chosen)
    assert chosen == sorted(set(chosen), key=str.encode)


@pytest.mark.slow
def test_a_table_learns_what_its_teacher_says(pieces: list[str], tmp_path: Path) -> None:
    import jax.numpy as jnp

    chance = np.random.default_rng(5)
    tokenizer = Tokenizer(vocabulary.make_vocabulary(pieces))
    said = {word: table.unit(chance.standard_normal(256)) for word in WORDS}
    texts = [[str(one) for one in chance.choice(WORDS, 3)] for _ in range(400)]
    ids = [np.array(tokenizer.encode(" ".join(words)), np.int32) for words in texts]
    targets = np.stack([table.unit(sum(said[word] for word in words)) for words in texts]).astype(np.float32)
    drawn = table.Texts(
        jnp.asarray(table.pad(ids, 8)), jnp.asarray(targets), jnp.linspace(0, 1, len(texts) + 1)[1:]
    )
    pairs = table.Pairs(jnp.asarray(table.pad(ids, 8)), jnp.asarray(table.pad(ids, 8)))
    start = 0.1 * chance.standard_normal((len(pieces) + SHARED_ROWS, 256)).astype(np.float32)

    def nearness(rows: np.ndarray) -> float:
        vectors = table.unit(np.stack([rows[one].sum(0) for one in ids]))
        return float((vectors * targets).sum(1).mean())

    plan = table.Plan(steps=100, batch=32, rate=0.02)
    learned = table.train(start, drawn, drawn, pairs, pairs, plan, 1, lambda _: None)
    again = table.train(start, drawn, drawn, pairs, pairs, plan, 1, lambda _: None)
    model_files.write(tmp_path / "model", pieces, learned)
    embedder = BuiltinEmbedder(str(tmp_path / "model"))

    assert nearness(start) < 0.2
    assert nearness(learned) > 0.8
    assert np.array_equal(learned, again)
    ours = np.array(embedder.embed_query("cat garden train"))
    assert float(ours @ table.unit(sum(said[word] for word in ("cat", "garden", "train")))) > 0.8
    assert json.loads((tmp_path / "model" / "model.json").read_text())["rows"] == len(pieces) + SHARED_ROWS


def test_targets_of_two_teachers_put_a_translation_near_its_original() -> None:
    chance = np.random.default_rng(2)
    wide = table.unit(chance.standard_normal((300, 32)))
    english = table.unit(wide @ chance.standard_normal((32, 48)))
    ours, theirs, of_wide = table.make_targets(english, wide, wide[:50], 16, 0.6)

    assert float((ours[:50] * theirs).sum(1).min()) > 0.95
    assert np.allclose(of_wide(wide[:50]), theirs)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_weights_survive_being_packed_and_padding_changes_nothing(kind: str) -> None:
    shape = transformer.MINILM if kind == "bert" else transformer.MPNET
    parameters = encoder(kind, 600)
    packed = transformer.unpack(transformer.pack(parameters))
    tokens = np.full((2, 12), shape.padding)
    tokens[:, :7] = np.arange(110, 117)
    vectors = np.asarray(transformer.mean_vectors(parameters, shape, tokens[:, :7]))

    assert np.allclose(vectors, transformer.mean_vectors(parameters, shape, tokens), atol=1e-5)
    assert np.allclose(vectors, transformer.mean_vectors(packed, shape, tokens), atol=0.02)


def test_some_questions_are_asked_again_as_people_type_them() -> None:
    asked = ["When did the printer arrive at the office?"] * 200
    found = prepare.reword(asked, seed=1)

    assert 20 < len(found) < 60
    assert "printer arrive office" in found.values()
    assert any(one.startswith("When did the p") and one != asked[0] for one in found.values())
    assert prepare.reword(asked, seed=1) == found


@pytest.fixture(scope="module")
def tables() -> reranker.Tables:
    chance = np.random.default_rng(1)
    # Passages with an even number have the word 150, which makes them answers.
    passages = [np.array([*chance.integers(200, 400, 4), 151 if number % 2 else 150]) for number in range(24)]
    near = np.array([[(2 * number + 2 * step + 1) % 24 for step in range(8)] for number in range(12)])
    return reranker.make_tables(
        [np.array([110 + number]) for number in range(12)], passages, 2 * np.arange(12),
        [np.array([1, 3]) if number == 5 else np.array([], int) for number in range(12)],
        np.full(12, 1 / 12), near, {3: np.array([450])}, longest_question=4, longest_passage=6,
    )  # fmt: skip


def test_a_group_has_the_answer_first_and_then_what_is_hard_to_tell_from_it(tables: reranker.Tables) -> None:
    rows, group = reranker.draw(tables, jax.random.key(2), 40, 10, 1, 2)

    assert group.shape == (40, 10)
    assert np.array_equal(group[:, 0], 2 * rows)
    assert (np.asarray(group[:, 1:9]) % 2 == 1).all()
    assert {tuple(sorted(one[1:3])) for one in np.asarray(group)[np.asarray(rows) == 5].tolist()} == {(1, 3)}


@pytest.mark.parametrize("shape", [transformer.MINILM, transformer.MPNET])
def test_a_pair_is_joined_on_the_device_as_it_is_joined_alone(
    tables: reranker.Tables, shape: transformer.Shape
) -> None:
    rows, group = reranker.draw(tables, jax.random.key(2), 6, 8, 1, 0)
    start, length = reranker.cut(tables.passage_lengths[group], jax.random.key(3))
    batch = reranker.join(tables, shape, rows, group, start, length, 10)
    offset = 4 if shape.kind == "mpnet" else 0
    for row in range(6):
        for place in range(8):
            begin, end = int(start[row, place]), int(start[row, place] + length[row, place])
            words = np.asarray(tables.passages[group[row, place]])[begin:end].astype(int)
            tokens, kinds = transformer.join_pair(
                shape, np.array([110 + rows[row]]) + offset, words + offset, 10
            )
            assert np.array_equal(batch.tokens[row, place], tokens)
            assert np.array_equal(batch.kinds[row, place], kinds)

    again = reranker.join(
        tables, shape, np.array([3]), group[:1], start[:1], length[:1], 10, reworded=np.array([True])
    )
    assert int(again.tokens[0, 0, 1]) == 450 + offset


def test_neighbours_share_rare_words_and_are_not_the_answer_again() -> None:
    passages = [np.array([5, 6, 7, 20 + number, 30 + number]) for number in range(8)]
    passages.append(np.array([5, 6, 7, 20, 30]))  # the first one again
    passages.append(np.array([5, 20, 40, 41, 42]))  # shares a rare word with it
    words = np.random.default_rng(4).standard_normal((50, 64)).astype(np.float32)
    near = reranker.find_neighbours([np.array([20, 6])], passages, np.array([0]), words, 1, among=10, block=1)

    assert near.shape == (1, reranker.NEIGHBOURS)
    assert near[0, 0] == 9
    assert not {0, 8} & set(near[0].tolist())


def test_questions_are_carried_in_parts(tmp_path: Path) -> None:
    made = packed.Packed(
        [np.array([4, 5]), np.array([6])], [np.array([1, 2, 3]), np.array([9]), np.array([], int)], np.array([1, 0]),
        [np.array([2, 0]), np.array([], int)], np.array([1, 0]), ["a", "b"], {1: np.array([7, 8])},
    )  # fmt: skip
    files = packed.write(tmp_path, made, 200)
    found = packed.read(tmp_path)

    assert len(files) > 1
    for field in ("questions", "passages", "others"):
        for ours, theirs in zip(getattr(found, field), getattr(made, field), strict=True):
            assert np.array_equal(ours, theirs)
    assert found.answer.tolist() == [1, 0]
    assert found.names == ["a", "b"]
    assert found.reworded[1].tolist() == [7, 8]


@pytest.mark.slow
def test_a_teacher_learns_which_passage_answers_and_a_student_learns_beside_it(
    tables: reranker.Tables,
) -> None:
    short = 16
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reranker, "LENGTH", short)
        log: list[str] = []
        start = reranker.add_head(encoder("mpnet", 600), 1)
        first = reranker.add_head(encoder("bert", 600), 1)
        deep = reranker.add_head(encoder("bert", 600, layers=2), 1)
        copies = [jax.tree.map(jnp.copy, one) for one in (start, first, deep)]
        teacher, (student, deeper) = reranker.train_together(
            copies[0], transformer.MPNET, copies[1:], transformer.MINILM, tables, 8, 1, 0, (3e-3, 3e-3), log.append,
            steps=40,
        )  # fmt: skip
    questions = [np.array([110])]
    passages = [np.asarray(row)[:5].astype(int) for row in tables.passages]

    def apart(parameters: object, shape: transformer.Shape) -> float:
        """How much higher answers score than the rest."""
        offset = 4 if shape.kind == "mpnet" else 0
        rows = [transformer.join_pair(shape, questions[0] + offset, one + offset, short) for one in passages]
        tokens, kinds = (np.stack([row[part] for row in rows]) for part in (0, 1))
        scores = np.asarray(transformer.pair_scores(parameters, shape, tokens, kinds))
        return float(scores[::2].mean() - scores[1::2].mean())

    assert apart(teacher, transformer.MPNET) > apart(start, transformer.MPNET) + 1
    assert apart(student, transformer.MINILM) > apart(first, transformer.MINILM) + 1
    assert apart(deeper, transformer.MINILM) > apart(deep, transformer.MINILM) + 1
    assert log[-1].startswith("40 steps")


def test_the_files_of_a_reranker_say_what_the_trained_one_says(tmp_path: Path) -> None:
    shape = transformer.MINILM
    parameters = {
        name: np.asarray(one) for name, one in reranker.add_head(encoder("bert", 200, layers=2), 1).items()
    }
    parameters["head.weight"] = parameters["head.weight"] * 200
    names = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", *(f"word{at}" for at in range(195))]
    reranker_files.write(tmp_path, parameters, names, heads=shape.heads)
    kept = reranker_files.reachable(names)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    # Longer and shorter pairs together; rows of the trained one, places of the written one.
    rows = np.array([[3, *range(10, 22), 4], [3, *range(50, 58), 4, 0, 0, 0, 0]], np.int32)
    kinds = (np.arange(14)[None] > 5) * (rows > 0)

    theirs = np.asarray(transformer.pair_scores(parameters, shape, rows, kinds.astype(np.int32)))
    tokens = np.array([[kept.index(one) for one in row] for row in rows], np.int32)
    (ours,) = session.run(
        None, {"tokens": tokens, "kinds": kinds.astype(np.int32), "mask": (rows > 0).astype(np.int32)}
    )

    assert abs(theirs[0] - theirs[1]) > 0.1
    assert np.allclose(ours, theirs, atol=0.1)
    assert (tmp_path / "pieces.txt").read_text().split("\n")[:5] == [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "word0",
    ]
    assert json.loads((tmp_path / "model.json").read_text())["name"] == reranker_files.NAME

    again = reranker_files.read(tmp_path, {name: at for at, name in enumerate(names)})
    said = np.asarray(transformer.pair_scores(again, shape, rows, kinds.astype(np.int32)))
    assert set(again) == set(parameters)
    assert np.allclose(said, theirs, atol=0.1)

    # While it learns, the student is told what its whole numbers would say.
    far, near = [], []
    for row, kind, numbers in zip(rows, kinds.astype(np.int32), tokens, strict=True):
        one = slice(0, int((row > 0).sum()))
        feed = {
            "tokens": numbers[None, one],
            "kinds": kind[None, one],
            "mask": np.ones((1, one.stop), np.int32),
        }
        (alone,) = session.run(None, feed)
        whole = transformer.pair_scores(parameters, shape, row[None, one], kind[None, one], whole=True)
        plain = transformer.pair_scores(parameters, shape, row[None, one], kind[None, one])
        near.append(abs(float(whole[0]) - float(alone[0])))
        far.append(abs(float(plain[0]) - float(alone[0])))
    assert sum(near) < sum(far) / 2


def test_half_the_layers_are_every_second_one() -> None:
    whole = encoder("bert", 20, layers=4)
    half = transformer.every_second(whole)

    assert {name.split(".")[0] for name in half if name[0].isdigit()} == {"0", "1"}
    assert np.array_equal(half["1.q.weight"], whole["3.q.weight"])
    assert half["word_embeddings.weight"] is whole["word_embeddings.weight"]


def test_a_second_look_is_measured_by_the_evidence_it_puts_first() -> None:
    results = [{"worth": 0.4, "passage": "no", "holds": []}, {"worth": 0.3, "passage": "yes", "holds": [0]}]
    rows = [{"question": "?", "category": "", "pieces": 1, "results": results}]

    assert candidates.figures(rows, [[0.0, 1.0]], 0.03, 2) == (1.0, 0.0)
    assert candidates.figures(rows, [[0.0, 9.0]], 0.03, 2) == (1.0, 1.0)
    assert candidates.figures(rows, [[0.0, 9.0]], 0.03, 1) == (1.0, 0.0)
    assert candidates.figures(rows, [[None, 9.0]], 0.03, 2) == (1.0, 0.0)


def test_what_a_reranker_is_given_is_recorded_with_the_evidence_that_it_holds(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "car.md").write_text("# Car\n\nThe car was sold in May.\n", encoding="utf-8")
    asked = {
        "query": "When was the car sold?",
        "category": "x",
        "gold": [{"path": "memory/car.md", "line_start": 3, "line_end": 3}],
    }
    nothing = {"query": "Who is the mayor?", "category": "x", "gold": []}
    lines = (json.dumps({"id": str(number), **one}) for number, one in enumerate((asked, nothing)))
    (tmp_path / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")

    (row,) = candidates.record(tmp_path)

    assert row["pieces"] == 1
    assert row["results"][0]["holds"] == [0]
    assert "sold in May" in row["results"][0]["passage"]
    assert not row["results"][0]["rest"]


def test_two_translations_of_one_sentence_are_one_meaning_in_other_words(tmp_path: Path) -> None:
    (tmp_path / "de.txt").write_text(
        "See you soon!\tBis bald!\nSo long.\tBis bald!\nI see you.\tIch sehe dich.\n", "utf-8"
    )
    (tmp_path / "jpn-eng.test.tsv").write_text("jpn\teng\tまたね。\tSee you soon!\ntha\teng\tx\ty\n", "utf-8")

    found = list(everyday.read_sentences(tmp_path))
    chosen = everyday.choose_sentences(found, 1)
    reworded = everyday.reworded(found, 1)

    assert everyday.Sentence("en", "See you soon!", "ja", "またね。") in found
    assert len(found) == 4
    assert {one.second_language for one in chosen} == {"de", "ja"}
    assert chosen.count(found[-1]) == 4  # what is rare comes more often
    assert [{one.first, one.second} for one in reworded] == [{"See you soon!", "So long."}]


def test_words_of_one_meaning_are_paired_across_languages(tmp_path: Path) -> None:
    (tmp_path / "a.tab").write_text(
        "# a\n1-n\teng:lemma\tcat\n1-n\tjpn:lemma\t猫\n1-n\tkor:lemma\t고양이\n", "utf-8"
    )
    (tmp_path / "b.tab").write_text(
        "1-n\tita:lemma\tgatto\n1-n\teng:def\tan animal\n2-n\tfra:lemma\tchien\n", "utf-8"
    )
    with gzip.open(tmp_path / "cedict.gz", "wt", encoding="utf-8") as opened:
        opened.write("# a\n貓 猫 [mao1] /cat (an animal)/variant of x/\n同 同 [tong2] /see y/\n")

    pairs = everyday.word_pairs(everyday.read_meanings(tmp_path), 1)

    assert {frozenset(pair) for pair in pairs} == {
        frozenset(pair) for pair in (("cat", "猫"), ("cat", "고양이"), ("猫", "고양이"), ("cat", "gatto"))
    }
    assert list(everyday.read_chinese(tmp_path / "cedict.gz")) == [("猫", "cat"), ("貓", "cat")]


def test_a_table_goes_on_learning_pairs_and_english_stays_where_it_is(
    pieces: list[str], tmp_path: Path
) -> None:
    cutter = prepare_everyday.Cutter(pieces)
    pairs = [("cat", "猫"), ("dog", "犬")] * 8
    known = [cutter.cut(f"{left} {right}") for left in WORDS for right in WORDS]
    packed = prepare_everyday.pack_pairs("sentences", [*pairs, ("cat", "")], cutter)
    packed |= prepare_everyday.pack_pairs("words", pairs, cutter)
    packed |= prepare_everyday.pack_texts("short", known) | prepare_everyday.pack_texts("long", known)
    np.savez(tmp_path / "pairs.a.npz", **packed)
    first = np.random.default_rng(1).standard_normal((len(pieces) + SHARED_ROWS, 16)).astype(np.float32)
    model_files.write(tmp_path / "model", pieces, first)
    is_english = prepare_everyday.english_share(cutter, ["cat dog printer"], ["zz"], pieces)
    before = continue_table.read_model(tmp_path / "model")

    read, texts = continue_table.read_pairs(tmp_path)
    run = continue_table.trainer(before, read, texts, 16)
    plan = continue_table.Plan(steps=40, rate=0.05, english=0.0, pulled=0.5)
    after = continue_table.train(run, before, is_english, plan, many=20)

    cat, dog, neko, inu = (pieces.index(piece) for piece in ("cat", "dog", "猫", "犬"))
    assert len(read["sentences"].left) == len(pairs)
    assert is_english[cat] > 0.9
    assert is_english[neko] == 0
    assert np.allclose(after[cat], before[cat], atol=0.01)
    assert np.argmax(unit(after[[cat, dog]]) @ unit(after[neko])) == 0
    assert np.argmax(unit(after[[cat, dog]]) @ unit(after[inu])) == 1
    workspaces = [{"windows": [[cat], [dog]], "qs": [([neko], "", [[0]])]}]
    assert continue_table.measure(after, {"own_across": workspaces}) == {
        "own_across": 1.0,
        "own_across+": 1.0,
    }


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
