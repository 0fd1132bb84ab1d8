from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.growth import grows_evenly
from tokenizers import Tokenizer as OriginalTokenizer

from plainmind.embed import builtin as tokens
from plainmind.embed.builtin import BUNDLED, Tokenizer, Vocabulary

ROOT = Path(__file__).parents[2]
VOCABULARY = (Path(BUNDLED) / "vocab").read_bytes()
PIECES = VOCABULARY.decode().split("\n")

FRAGMENTS = [
    *(" ", "  ", "\n", "\t", "\r\n", "▁", "\u3000", "\x00", "\u200b", "\ufffd\ufffd"),
    *("a", "the", "ing", "er", "don't", "Straße", "e\u0301", "²", "².", "x²,", "__init__", "http://", "v1.2"),
    *("=", "==", "--", "...", "(", "()", '"', '",', "<", ">", "<0x0A>", "<s>", "</s>", "<unk>", "0", "2026"),
    *("日本", "語", "です", "한국", "中文。", "😀", "👩‍👧", "нет", "שלום", "हिन्दी"),
]


@pytest.fixture(scope="module")
def original() -> OriginalTokenizer:
    source = ROOT / "build" / "wordllama-tokenizer.json"
    if not source.exists():
        pytest.fail(f"{source} is missing: an editable install of this package makes it")
    return OriginalTokenizer.from_file(str(source))


@pytest.fixture(scope="module")
def ours() -> Tokenizer:
    return Tokenizer(Vocabulary(VOCABULARY))


def original_ids(original: OriginalTokenizer, text: str) -> list[int]:
    return list(original.encode(text, add_special_tokens=False).ids)


def test_spaces_become_part_of_the_word_that_follows(ours: Tokenizer) -> None:
    assert [PIECES[token] for token in ours.encode("a cat  sat")] == ["▁a", "▁cat", "▁", "▁sat"]


def test_characters_the_vocabulary_does_not_know_become_bytes(ours: Tokenizer) -> None:
    pieces = [PIECES[token] for token in ours.encode("\n🦖")]

    assert pieces == ["▁", "<0x0A>", "<0xF0>", "<0x9F>", "<0xA6>", "<0x96>"]


def test_the_empty_text_has_no_tokens(ours: Tokenizer) -> None:
    assert list(ours.encode("")) == []


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_every_line_of_this_repository_gets_the_ids_of_the_original(
    ours: Tokenizer, original: OriginalTokenizer
) -> None:
    files = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("tests/**/*.py"),
    ]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines(keepends=True)]
    assert len(lines) > 1000

    different = [line for line in lines if list(ours.encode(line)) != original_ids(original, line)]

    assert different == []


def test_five_thousand_mixtures_of_scripts_signs_and_spaces_get_the_ids_of_the_original(
    ours: Tokenizer, original: OriginalTokenizer
) -> None:
    chance = random.Random(20260210)
    texts = ["".join(chance.choices(FRAGMENTS, k=chance.randint(1, 14))) for _ in range(5000)]

    different = [text for text in texts if list(ours.encode(text)) != original_ids(original, text)]

    assert different == []


@pytest.mark.parametrize(
    "character", [" ", "▁", "=", "-", "a", "e", "0", "\n", "一", "é", "<", "²", "_", "😀"]
)
def test_runs_of_one_character_get_the_ids_of_the_original(
    ours: Tokenizer, original: OriginalTokenizer, character: str
) -> None:
    for length in range(1, 50):
        for text in (character * length, f"x{character * length}y", f"x {character * length} y"):
            assert list(ours.encode(text)) == original_ids(original, text)


def test_any_text_gets_the_ids_of_the_original(ours: Tokenizer, original: OriginalTokenizer) -> None:
    @settings(max_examples=1000, deadline=None)
    @given(st.text(max_size=60))
    def same(text: str) -> None:
        assert list(ours.encode(text)) == original_ids(original, text)

    same()


def test_no_piece_of_the_vocabulary_reaches_over_a_cut() -> None:
    crossing = [piece for piece in PIECES[259:] if tokens._UNITS.findall(piece) != [piece]]

    assert crossing == []


def test_every_piece_is_what_its_own_characters_join_to() -> None:
    units = tokens._Units(Vocabulary(VOCABULARY))

    assert [piece for piece in PIECES[259:] if units._join_neighbours(piece)[0] != piece] == []


def test_the_cuts_leave_no_character_out() -> None:
    @settings(max_examples=500, deadline=None)
    @given(st.text())
    def covered(text: str) -> None:
        assert "".join(tokens._UNITS.findall(text.replace(" ", "▁"))) == text.replace(" ", "▁")

    covered()


def test_remembered_units_stay_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_REMEMBERED_UNITS", 100)
    tokenizer = Tokenizer(Vocabulary(VOCABULARY))
    text = " ".join(f"word{chr(97 + a)}{chr(97 + b)}" for a in range(26) for b in range(26))

    assert tokenizer.encode(text) == Tokenizer(Vocabulary(VOCABULARY)).encode(text)
    assert len(tokenizer._units) <= 100


def test_a_word_of_two_hundred_thousand_characters_takes_no_quadratic_time(ours: Tokenizer) -> None:
    assert grows_evenly(lambda size: ours.encode("abcdefghij" * (size // 10)))


def test_no_piece_joins_a_character_of_east_asia_with_another() -> None:
    east_asian = re.compile("[⺀-鿿가-힣豈-﫿]")

    assert [piece for piece in PIECES if len(piece) > 1 and east_asian.search(piece)] == []


@given(st.lists(st.sampled_from(FRAGMENTS)).map("".join))
def test_looking_up_whole_words_gives_what_cutting_them_gives(ours: Tokenizer, text: str) -> None:
    text = text.replace("<", "")
    cut = ours._units.of("▁" + text.replace(" ", "▁")) if text else b""

    assert ours._encode(text) == cut
