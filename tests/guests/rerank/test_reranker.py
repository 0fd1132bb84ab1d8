"""The reranker reads a question together with passages: as its makers' tokenizer would, in time, in what it knows."""

from __future__ import annotations

from pathlib import Path

import plainmind_reranker
import pytest

from plainmind.guests.rerank import reranker
from plainmind.guests.rerank.word_pieces import WordPieces, split_words

WEIGHTS = Path(plainmind_reranker.__file__).parent
PIECES = (WEIGHTS / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
QUESTION = "Which medicine must Ingrid avoid?"
ANSWER = "Ingrid: the doctor said I am allergic to penicillin, so never give it to me."
OTHERS = (
    "Ingrid: the new bicycle has a flat tyre again, I will walk to the office.",
    "We moved the build server to another rack and changed its address.",
    "Tomatoes need water every evening while the wind is warm.",
)


@pytest.fixture(scope="module")
def second() -> reranker.OnnxReranker:
    return reranker.OnnxReranker(str(WEIGHTS))


@pytest.mark.parametrize(
    "text",
    [
        "The gateway moved to Hetzner on 2026-11-02, see https://example.org/a_b?c=1#d",
        "naïve café €5 → x_y İstanbul ﬁne ½ \u200bzero\ufeff tab\there 東京タワー 한국어 👍🏽 Ⅷ",
        "don't  stop\u00a0me\u3000now\x00\x07 ~/.config [unk] ##ing " + "x" * 120,
        "",
    ],
)
def test_words_are_cut_as_the_encoder_was_trained_with(text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    oracle = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: at for at, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    oracle.normalizer = tokenizers.normalizers.BertNormalizer()
    oracle.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()

    assert WordPieces(PIECES).encode(text) == oracle.encode(text, add_special_tokens=False).ids


def test_words_that_are_remembered_are_bounded_and_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plainmind.guests.rerank.word_pieces._MOST_REMEMBERED", 3)
    pieces = WordPieces(PIECES)

    first = pieces.encode("one two three four five six")

    assert pieces.encode("one two three four five six") == first
    assert split_words("Größe, ok") == ["große", ",", "ok"]


def test_the_passage_that_answers_without_a_shared_word_comes_first(second: reranker.OnnxReranker) -> None:
    said = second.log_odds(QUESTION, [*OTHERS, ANSWER], seconds=60)

    assert all(one is not None for one in said)
    assert max(range(4), key=lambda at: said[at] or -99) == 3


def test_what_stands_beside_a_passage_does_not_change_what_is_said_of_it(
    second: reranker.OnnxReranker,
) -> None:
    (alone,) = second.log_odds(QUESTION, [ANSWER], seconds=60)
    together = second.log_odds(QUESTION, [OTHERS[0] * 3, ANSWER, ANSWER[:30]], seconds=60)

    assert together[1] == pytest.approx(alone, abs=1e-4)


def test_a_pair_that_is_longer_than_it_reads_is_cut(second: reranker.OnnxReranker) -> None:
    said = second.log_odds(QUESTION * 40, [ANSWER * 40], seconds=60)

    assert said[0] is not None


@pytest.mark.parametrize(
    "question", ["Welche Medikamente verträgt Ingrid nicht?", "イングリッドが避けるべき薬は？", "?"]
)
def test_a_question_in_a_language_that_it_does_not_know_is_left_alone(
    second: reranker.OnnxReranker, question: str
) -> None:
    assert second.log_odds(question, [ANSWER, OTHERS[0]], seconds=60) == [None, None]


def test_a_passage_in_a_language_that_it_does_not_know_is_left_alone(second: reranker.OnnxReranker) -> None:
    said = second.log_odds(
        QUESTION, ["Ingrid verträgt laut Hausarzt keinerlei Penicilline.", ANSWER], seconds=60
    )

    assert said[0] is None
    assert said[1] is not None


def test_when_the_time_is_up_the_first_passages_have_been_read_and_the_others_are_left_out(
    second: reranker.OnnxReranker,
) -> None:
    said = second.log_odds(QUESTION, [ANSWER, *OTHERS, *OTHERS], seconds=0)

    assert len(said) == 2
    assert None not in said


def test_time_and_language_are_told_apart(second: reranker.OnnxReranker) -> None:
    foreign = "Ingrid verträgt laut Hausarzt keinerlei Penicilline."

    assert second.log_odds(QUESTION, [foreign, foreign, ANSWER], seconds=0) == [None, None]
    assert len(second.log_odds(QUESTION, [foreign, foreign, ANSWER], seconds=60)) == 3


def test_where_the_weights_are_not_installed_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranker, "PACKAGE", "plainmind_no_such_weights")

    assert reranker.installed_reranker() is None
