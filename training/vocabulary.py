"""The vocabulary of the embedder: the pieces that texts of ten languages are best cut into.

Candidates are the pieces that byte-pair merging finds in our texts, and the pieces that the multilingual teacher knows
from far more text than we have. Each is weighed by how often it comes in both; the best stay.
"""

from __future__ import annotations

import math
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plainmind.embed.builtin import INSIDE, LONGEST_PIECE, Vocabulary, cut, is_unspaced, runs

# How much each language counts for, by characters of text.
SHARES = {
    "en": 0.40,
    "zh": 0.11,
    "ja": 0.10,
    "ko": 0.09,
    "de": 0.08,
    "es": 0.06,
    "fr": 0.06,
    "pt": 0.03,
    "ru": 0.04,
    "it": 0.03,
}
# How many pieces each script may have, at the beginning of a word and inside; letters alone come on top.
ROOM = {
    "latin": 28_000,
    "-latin": 5_500,
    "han": 6_600,
    "kana": 2_300,
    "hangul": 3_000,
    "-hangul": 900,
    "cyrillic": 1_800,
    "-cyrillic": 500,
    "digit": 400,
    "-digit": 200,
}
_CHARACTERS = 60_000_000
_LONGEST_UNSPACED = 4  # longer ones are phrases rather than words, unless they are all katakana


def count_runs(texts: Mapping[str, Sequence[str]], seed: int, characters: int = _CHARACTERS) -> Counter[str]:
    """How often each run of letters or digits comes, every language brought to its share."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for language, share in SHARES.items():
        mine = list(texts.get(language, ()))
        chance.shuffle(mine)
        here: Counter[str] = Counter()
        taken, wanted = 0, int(characters * share)
        for text in mine:
            if taken >= wanted:
                break
            taken += len(text)
            for word in text.split():
                here.update(run for run in runs(word) if run[0].isalnum())
        factor = wanted / max(taken, 1)
        for run, count in here.items():
            counts[run] += max(1, round(count * min(factor, 20)))
    return counts


def merge_pieces(counts: Mapping[str, int], size: int) -> list[str]:
    """Pieces by byte-pair merging of the runs."""
    from tokenizers import Tokenizer as Trained
    from tokenizers import models, pre_tokenizers, trainers

    trained = Trained(models.BPE(continuing_subword_prefix=INSIDE))
    trained.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=3, limit_alphabet=12_000, continuing_subword_prefix=INSIDE,
        max_token_length=LONGEST_PIECE, show_progress=False,
    )  # fmt: skip

    def repeated() -> Iterable[str]:
        for run, count in counts.items():
            if len(run) > 40:
                continue
            times = max(1, count // 4)
            while times:
                now = min(times, 200)
                yield " ".join([run] * now)
                times -= now

    trained.train_from_iterator(repeated(), trainer)
    return [_unmarked(piece) for piece in trained.get_vocab()]


def _unmarked(piece: str) -> str:
    bare = piece.removeprefix(INSIDE)
    return bare if bare and is_unspaced(bare) else piece


def teacher_pieces(tokenizer: Any) -> dict[str, float]:
    """The pieces of the teacher's vocabulary in our form, by how likely each is there."""
    weights: dict[str, float] = {}
    for at in range(tokenizer.get_piece_size()):
        piece = tokenizer.id_to_piece(at)
        found = runs(piece.replace("▁", " ").strip() or " ")
        if len(found) != 1 or not found[0][0].isalnum() or len(found[0]) > LONGEST_PIECE:
            continue
        run = found[0]
        if not _is_ours(run):
            continue
        inside = not piece.startswith("▁") and not is_unspaced(run)
        known = INSIDE + run if inside else run
        weights[known] = weights.get(known, 0.0) + math.exp(tokenizer.get_score(at))
    return weights


def _is_ours(run: str) -> bool:
    """Whether the script is one of those that we promise: Latin, Cyrillic, Greek, Han, kana, Hangul."""
    return all(
        one < "Ԁ" or "Ḁ" <= one <= "ỿ" or one.isdigit() or is_unspaced(one) or "가" <= one <= "힣"
        for one in run
    )


def choose(
    counts: Mapping[str, int],
    merged: Iterable[str],
    teachers: Mapping[str, float],
    size: int,
    everyday: Iterable[str] = (),
) -> list[str]:
    """The `size` best pieces in the order of their bytes; every common letter alone is among them, at both places.

    `everyday` words are taken if the texts or the teacher know them at all: our texts speak too much of computers.
    """
    whole = {
        run for run, count in counts.items() if count >= 24 and len(run) <= LONGEST_PIECE and _is_ours(run)
    }
    candidates = sorted(piece for piece in {*merged, *teachers, *whole} if not _is_phrase(piece))
    used = _use(counts, candidates)
    total_used, total_teacher = sum(used.values()) or 1, sum(teachers.values()) or 1
    weight = {
        piece: 0.5 * used[piece] / total_used + 0.5 * teachers.get(piece, 0.0) / total_teacher
        for piece in candidates
    }
    letters: Counter[str] = Counter()
    for run, count in counts.items():
        for letter in run:
            letters[letter] += count
    chosen = {
        form
        for letter, count in letters.items()
        if count >= (150 if is_unspaced(letter) else 40) and _is_ours(letter)
        for form in ((letter,) if is_unspaced(letter) else (letter, INSIDE + letter))
    }
    chosen |= {run for word in everyday for run in runs(word) if _is_known(run, counts, teachers)}
    left = dict(ROOM)
    for piece in sorted(weight, key=lambda piece: (-weight[piece], piece)):
        if len(chosen) >= size:
            break
        kind = _script(piece)
        if piece not in chosen and left.get(kind, 0) > 0:
            left[kind] -= 1
            chosen.add(piece)
    return sorted(chosen, key=lambda piece: piece.encode())


def _is_known(run: str, counts: Mapping[str, int], teachers: Mapping[str, float]) -> bool:
    fits = len(run) <= LONGEST_PIECE and _is_ours(run) and not _is_phrase(run) and run[0].isalpha()
    is_short = len(run) <= 3 and (is_unspaced(run) or "가" <= run[0] <= "힣")  # seldom a run of its own
    return fits and (is_short or counts.get(run, 0) >= 3 or run in teachers)


def _script(piece: str) -> str:
    mark = INSIDE if piece.startswith(INSIDE) else ""
    first = piece.removeprefix(INSIDE)[0]
    if first.isdigit():
        return f"{mark}digit"
    if is_unspaced(first):
        return "kana" if "ぁ" <= first <= "ヿ" else "han"
    if "가" <= first <= "힣":
        return f"{mark}hangul"
    return f"{mark}cyrillic" if "Ѐ" <= first <= "ӿ" else f"{mark}latin"


def _is_phrase(piece: str) -> bool:
    katakana = all("ァ" <= one <= "ヿ" for one in piece)
    return len(piece) > _LONGEST_UNSPACED and is_unspaced(piece) and not katakana


def _use(counts: Mapping[str, int], pieces: Sequence[str]) -> Counter[str]:
    """How often each piece is taken when the runs are cut with all of them."""
    ordered = sorted(pieces, key=lambda piece: piece.encode())
    known = make_vocabulary(ordered)
    used: Counter[str] = Counter()
    for run, count in counts.items():
        for token in cut(run, known):
            if token < len(ordered):
                used[ordered[token]] += count
    return used


def make_vocabulary(pieces: Sequence[str]) -> Vocabulary:
    """The vocabulary as the runtime knows it."""
    encoded = [piece.encode() + b"\n" for piece in pieces]
    ends = array("I")
    at = 0
    for piece in encoded:
        at += len(piece)
        ends.append(at)
    return Vocabulary(b"".join(encoded), ends)
