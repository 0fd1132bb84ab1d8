"""Texts are cut into the pieces that the builtin model knows."""

from __future__ import annotations

import json
import random
import unicodedata
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.growth import grows_evenly

from plainmind.embed import builtin
from plainmind.embed.builtin import BUNDLED, SHARED_ROWS, Tokenizer, Vocabulary

TEXT = (Path(BUNDLED) / "pieces").read_bytes()
ENDS = array("I", (Path(BUNDLED) / "ends.u32").read_bytes())
PIECES = TEXT.decode().split("\n")[:-1]

FRAGMENTS = [
    *(" ", "  ", "\n", "\t", "\r\n", "\u3000", "\x00", "\u200b", "\ufffd\ufffd", "-", "--", "_"),
    *(
        "a",
        "the",
        "ing",
        "er",
        "don't",
        "Straße",
        "e\u0301",
        "²",
        "x²,",
        "__init__",
        "http://",
        "v1.2",
        "fooBar",
    ),
    *("=", "...", "(", '"', "<", "0", "2026", "ＡＢＣ", "ｶﾞ", "ﬁ", "GitHub", "HTTPServer"),
    *("日本", "語", "です", "한국", "中文。", "😀", "👩‍👧", "нет", "שלום", "हिन्दी", "\ud800"),
]


@pytest.fixture(scope="module")
def ours() -> Tokenizer:
    return Tokenizer(Vocabulary(TEXT, ENDS))


def test_words_are_cut_alike_before_and_after_it_is_known_how_long_pieces_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builtin, "_FEW", 0)
    chance = random.Random(3)
    words = ["".join(chance.choices([*"aeinrstlo日本", "ing", "Foo", "ſ"], k=8)) for _ in range(400)]
    before = [Tokenizer(Vocabulary(TEXT, ENDS)).encode(" ".join(words))]
    monkeypatch.setattr(builtin, "_MANY", 10)
    known = Vocabulary(TEXT, ENDS)
    after = [Tokenizer(known).encode(" ".join(words))]
    assert known.lengths is not None
    assert before == after


@pytest.fixture
def always_searching(monkeypatch: pytest.MonkeyPatch) -> Vocabulary:
    monkeypatch.setattr(builtin, "_FEW", 10**9)
    return Vocabulary(TEXT, ENDS)


@pytest.fixture
def always_looking_up(monkeypatch: pytest.MonkeyPatch) -> Vocabulary:
    monkeypatch.setattr(builtin, "_FEW", 0)
    return Vocabulary(TEXT, ENDS)


def pieces(ours: Tokenizer, text: str) -> list[str]:
    return [PIECES[token] if token < len(PIECES) else "?" for token in ours.encode(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The printer", ["the", "printer"]),
        ("printers", ["printer", "-s"]),
        ("PRINTER, printer! (Printer)", ["printer"] * 3),
        ("getUserName", ["get", "user", "name"]),
        ("GitHub", ["github"]),
        ("snake_case", ["snake", "case"]),
        ("비밀번호는", ["비밀번호", "-는"]),
        ("密码", ["密码"]),
        ("ｐａｓｓｗｏｒｄ", ["password"]),
        ("", []),
        ("... -- !?", []),
    ],
)
def test_a_text_is_cut_into_the_longest_pieces_that_are_known(
    ours: Tokenizer, text: str, expected: list[str]
) -> None:
    assert pieces(ours, text) == expected


def test_unknown_characters_and_pictures_share_rows_by_their_number(ours: Tokenizer) -> None:
    for character in ("שּ"[:1], "ह", "😀", "\ud800"):
        (token,) = ours.encode(character)
        assert len(PIECES) <= token < len(PIECES) + SHARED_ROWS

    assert ours.encode("😀") == ours.encode("😀😀")[:1]
    assert ours.encode("😀") != ours.encode("😁")


def test_the_pieces_stand_in_the_order_of_their_bytes_each_once() -> None:
    assert [piece.encode() for piece in PIECES] == sorted({piece.encode() for piece in PIECES})
    assert json.loads((Path(BUNDLED) / "model.json").read_text())["rows"] == len(PIECES) + SHARED_ROWS


def test_every_piece_without_a_mark_is_cut_into_itself(ours: Tokenizer) -> None:
    whole = [piece for piece in PIECES if not piece.startswith("-")]
    differing = [
        piece for piece in whole if builtin.runs(piece) == [piece] and pieces(ours, piece) != [piece]
    ]

    assert len(whole) > 30_000
    assert differing == []


def test_no_piece_reaches_over_a_cut() -> None:
    assert [
        piece for piece in PIECES if builtin.runs(piece.removeprefix("-")) != [piece.removeprefix("-")]
    ] == []


def test_searching_and_looking_up_find_the_same(
    always_searching: Vocabulary, always_looking_up: Vocabulary
) -> None:
    @settings(max_examples=examples(200), deadline=None)
    @given(st.text(max_size=6) | st.sampled_from(PIECES))
    def same(piece: str) -> None:
        assert always_searching.find(piece) == always_looking_up.find(piece)

    same()
    some = random.Random(7).sample(range(len(PIECES)), 300)
    assert [always_searching.find(PIECES[at]) for at in (0, *some, len(PIECES) - 1)] == [
        0,
        *some,
        len(PIECES) - 1,
    ]


def test_after_some_searches_pieces_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "_FEW", 5)
    words = Vocabulary(TEXT, ENDS)

    for piece in PIECES[1000:1010]:
        assert words.find(piece) == PIECES.index(piece)

    assert words.find == words._known.get


def test_a_text_has_the_pieces_of_its_words_whatever_was_cut_before(ours: Tokenizer) -> None:
    @settings(max_examples=examples(300), deadline=None)
    @given(st.lists(st.sampled_from(FRAGMENTS)).map("".join))
    def same(text: str) -> None:
        fresh = Tokenizer(Vocabulary(TEXT, ENDS))
        assert ours.encode(text) == fresh.encode(text)
        assert ours.encode(text) == array(
            "H", [token for word in text.split() for token in fresh.encode(word)]
        )

    same()


def test_remembered_words_stay_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "_REMEMBERED_WORDS", 100)
    tokenizer = Tokenizer(Vocabulary(TEXT, ENDS))
    text = " ".join(f"word{chr(97 + a)}{chr(97 + b)}" for a in range(26) for b in range(26))

    assert tokenizer.encode(text) == Tokenizer(Vocabulary(TEXT, ENDS)).encode(text)
    assert len(tokenizer._words) <= 100


@pytest.mark.parametrize("unit", ["abcdefghij", "漢字かな", "한국어", "aB", "é", "1", "."])
def test_a_word_of_two_hundred_thousand_characters_takes_no_quadratic_time(
    ours: Tokenizer, unit: str
) -> None:
    assert grows_evenly(lambda size: ours.encode(unit * (size // len(unit))))


@given(st.lists(st.sampled_from(FRAGMENTS) | st.characters(), max_size=6).map("".join))
def test_a_word_is_cut_alike_by_the_quick_rules_and_by_the_whole_one(word: str) -> None:
    form = unicodedata.normalize("NFKC", word).lower()
    assert builtin.runs(word) == builtin._RUNS.findall(form)
