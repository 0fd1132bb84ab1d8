"""The provider `builtin`: a static model in our own wheel, so vectors work offline from the first second.

A text's vector is the sum of its pieces' vectors, brought to unit length. Every piece counts as an integer multiple
of its int8 row, so sums are exact in float64 and the same whatever the order or the batch: indexing a text twice
gives the same bytes.

A text is brought to one form (NFKC, small letters) and cut into runs of letters, digits and single signs; each run
is taken apart from left to right, always the longest piece that is known. A piece inside a word begins with `-`:
"printers" → `printer` `-s`. Chinese characters and kana have no words to be inside of, so their pieces have no mark.
A character that no piece knows gets one of a few shared rows, chosen by its number: scripts that the model was not
trained on still find themselves again.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from operator import itemgetter

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.lazy import Lock, parse_json, pattern
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.base.value import value
from plainmind.embed.protocol import EmbeddingSettings, FullEmbedder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.embed.protocol import Likeness


SHARED_ROWS = 512
INSIDE = "-"  # no letter, so no piece of a word can begin with it by chance
LONGEST_PIECE = 20
_LONGEST_UNSPACED = 8

# Written without spaces between words: Han characters, hiragana, katakana and what stands among them.
_UNSPACED = "⺀-⿟々-〇〡-〩ぁ-ゖゝ-ゟァ-ヿㇰ-ㇿ㐀-䶿一-鿿豈-﫿"
_RUNS = pattern(rf"[{_UNSPACED}]+|[^\W\d_{_UNSPACED}]+|\d+|[^\w\s]")  # takes 4 ms to compile
_SPACED_RUNS = pattern(r"[^\W\d_]+|\d+|[^\w\s]")
_HUMPS = pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FIRST_UNSPACED = "⺀"
_FIRST_HANGUL, _LAST_HANGUL = "가", "힣"
_FIRST_PICTURE = "⌀"  # signs from here on, emoji among them, mean something; commas and quotes do not

_REMEMBERED_WORDS = 65_536
_REMEMBERED_LENGTH = 32  # longer ones (links, hashes, unspaced scripts) seldom come again
# A search takes some 5 µs, the dictionary of all pieces 10 ms.
_FEW = 400
# For so many words it takes as long not to know how long pieces are as to find out, by so much of their beginning.
_MANY = 4_000
_BEGINNING = 4
_SHORT = (3, 2, 1)  # characters, too few for a beginning


class Vocabulary:
    """Knows every piece: `text` has them a line each, in the order of their bytes; `ends` says where each line ends."""

    def __init__(self, text: bytes | memoryview, ends: memoryview | array[int]) -> None:
        self._text = text
        self._ends = ends
        self.size = len(ends)
        self._few_left = _FEW
        self._known: dict[str, int] = {}
        self.find: Callable[[str], int | None] = self._search
        # By the beginning of a piece: how long those are that begin so, longest first. Known once many were looked up.
        self.lengths: Callable[[str, tuple[int, ...]], tuple[int, ...]] | None = None
        self._many_left = _MANY

    def _search(self, piece: str) -> int | None:
        if self._few_left <= 0:
            return self._look_up(piece)
        self._few_left -= 1
        wanted = piece.encode("utf-8", "surrogatepass")
        text, ends = self._text, self._ends
        low, high = 0, self.size
        while low < high:  # `bisect` would call something for each of the sixteen steps
            middle = (low + high) // 2
            found = bytes(text[ends[middle - 1] if middle else 0 : ends[middle] - 1])
            if found == wanted:
                return middle
            if found < wanted:
                low = middle + 1
            else:
                high = middle
        return None

    def _look_up(self, piece: str) -> int | None:
        if not self._known:
            pieces = bytes(self._text).decode().split("\n")[:-1]
            self._known = dict(zip(pieces, range(self.size), strict=True))
            self.find = self._known.get
        return self._known.get(piece)

    def expect_words(self, count: int) -> None:
        """Be told that so many words were taken apart; after many, it is worth knowing how long pieces are."""
        self._many_left -= count
        if self._many_left < 0 and self.lengths is None and self._known:
            by_beginning: dict[str, int] = {}  # a bit for each length
            for piece in self._known:
                if len(piece) >= _BEGINNING:
                    beginning = piece[:_BEGINNING]
                    by_beginning[beginning] = by_beginning.get(beginning, 0) | 1 << len(piece)
            # Few of all that could be: those of each are made once.
            lengths = {
                bits: (*[at for at in range(bits.bit_length(), 0, -1) if bits >> at & 1], *_SHORT)
                for bits in set(by_beginning.values())
            }
            self.lengths = {beginning: lengths[bits] for beginning, bits in by_beginning.items()}.get


class Tokenizer:
    """Cuts texts into the ids of pieces. Safe to share between threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = _Words(vocabulary)

    def encode(self, text: str) -> array[int]:
        """Ids of `text` as unsigned 16-bit numbers; signs that mean nothing have none."""
        return self._ids(text.split())

    def vocabulary_of(self, text: str) -> array[int]:
        """Ids of all that `text` has, hardly any of them twice, in any order: in less than half of the time."""
        return self._ids(set(text.split()))

    def _ids(self, words: Iterable[str]) -> array[int]:
        ids = array("H")
        ids.frombytes(b"".join(map(self._words.__getitem__, words)))
        return ids


class _Words(dict[str, bytes]):
    """Remembers the ids of what stands between two spaces."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> bytes:
        is_plain = word.islower() and word.isascii() and word.isalpha()  # then it is one run, as it is
        parts = (word,) if is_plain else self._runs(word)
        result = array("H", [id_ for run in parts for id_ in cut(run, self._vocabulary)]).tobytes()
        if len(word) <= _REMEMBERED_LENGTH:
            self._vocabulary.expect_words(1)
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()  # words in use come back at once; cheaper than keeping an order
            self[word] = result
        return result

    def _runs(self, word: str) -> list[str]:
        """Cut at capitals inside a word (`fooBar`), unless it is known as a whole (`GitHub`)."""
        parts = runs(word)
        if word[1:] == word[1:].lower() or word.isupper():
            return parts
        if all(self._vocabulary.find(part) is not None for part in parts if part[0].isalpha()):
            return parts
        return [part for hump in _HUMPS.sub(" ", word).split() for part in runs(hump)]


def runs(word: str) -> list[str]:
    """What a piece never reaches over: runs of letters of one kind, of digits, single signs."""
    if word.isascii():
        word = word.lower()
        return [word] if word.isalpha() else _SPACED_RUNS.findall(word)
    import unicodedata

    word = unicodedata.normalize("NFKC", word).lower()
    return (_SPACED_RUNS if max(word, default="") < _FIRST_UNSPACED else _RUNS).findall(word)


def is_unspaced(run: str) -> bool:
    """Whether a run is of Chinese characters or kana, whose pieces have no mark."""
    first = run[0]
    return first >= _FIRST_UNSPACED and not _FIRST_HANGUL <= first <= _LAST_HANGUL and first.isalnum()


def cut(run: str, vocabulary: Vocabulary) -> list[int]:
    """Ids of one run: the longest piece that is known, again and again."""
    find = vocabulary.find
    whole = find(run) if len(run) <= LONGEST_PIECE else None
    if whole is not None:
        return [whole]
    if not run[0].isalnum():
        return [_shared_row(run, vocabulary)] if run >= _FIRST_PICTURE else []
    ids: list[int] = []
    mark, longest = ("", _LONGEST_UNSPACED) if is_unspaced(run) else (INSIDE, LONGEST_PIECE)
    before, start, length = "", 0, len(run)
    lengths = vocabulary.lengths
    while start < length:
        rest = before + run[start : start + longest]
        begun, size = len(before), len(rest)
        for end in lengths(rest[:_BEGINNING], _SHORT) if lengths else range(size, begun, -1):
            if begun < end <= size:
                found = find(rest[:end])
                if found is not None:
                    ids.append(found)
                    start += end - begun
                    break
        else:
            ids.append(_shared_row(run[start], vocabulary))
            start += 1
        before = mark
    return ids


def _shared_row(character: str, vocabulary: Vocabulary) -> int:
    return vocabulary.size + ord(character[0]) % SHARED_ROWS


BUNDLED = os.path.join(os.path.dirname(__file__), "model")
_FORMAT = 2
_REINSTALL = "reinstall the plainmind package; in a source tree run `make install`"


@value
class ModelCard:
    """What `model.json` says; `digest` changes with every byte of the model."""

    name: str
    dims: int
    rows: int
    digest: str


@value
class StaticModel:
    """One vector a piece. The value of row i, column j is `vectors[i * dims + j] * scales[i]`."""

    card: ModelCard
    tokenizer: Tokenizer
    vectors: memoryview[int]  # int8
    scales: memoryview[float]  # float32


def read_card(folder: str) -> ModelCard:
    """Read which model this is without opening it. Raises EmbeddingError when there is none."""
    try:
        with open(os.path.join(folder, "model.json"), encoding="utf-8") as file:
            fields: Mapping[str, Any] = parse_json(file.read())
        if fields["format"] != _FORMAT:
            raise EmbeddingError(
                f"the builtin embedding model has format {fields['format']}, this version reads {_FORMAT}",
                hint=_REINSTALL,
            )
        return ModelCard(fields["name"], int(fields["dims"]), int(fields["rows"]), fields["digest"])
    except FileNotFoundError as error:
        raise EmbeddingError(
            f"the builtin embedding model is not installed: no {error.filename}", hint=_REINSTALL
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbeddingError(
            f"the builtin embedding model cannot be read: {error!r} in {folder}", hint=_REINSTALL
        ) from error


def open_model(folder: str) -> StaticModel:
    """Map the model into memory rather than read it: a query touches only its own rows.

    What its files hold is described in `training/model_files.py`. Raises EmbeddingError when one is missing or wrong.
    """
    card = read_card(folder)
    try:
        ends = _map_file(os.path.join(folder, "ends.u32"), (card.rows - SHARED_ROWS) * 4).cast("I")
        pieces = _map_file(os.path.join(folder, "pieces"), ends[-1])
        vectors = _map_file(os.path.join(folder, "vectors.i8"), card.rows * card.dims)
        scales = _map_file(os.path.join(folder, "scales.f32"), card.rows * 4)
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"the builtin embedding model cannot be opened: {error}", hint=_REINSTALL
        ) from error
    return StaticModel(card, Tokenizer(Vocabulary(pieces, ends)), vectors.cast("b"), scales.cast("f"))


def _map_file(path: str, size: int) -> memoryview:
    with open(path, "rb") as file:
        found = os.fstat(file.fileno()).st_size
        if found != size:
            raise ValueError(f"{path} has {found} bytes instead of {size}")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


_FIXED_POINT = 2.0**24  # a row's factor becomes a whole number of at most some 20 bits
_SMALLEST_NORM = 1e-6
# So much text takes about as long in plain Python as importing numpy does.
_FEW_CHARACTERS = 20_000


class BuiltinEmbedder(FullEmbedder):
    """Embeds in this process without any network; opens the model on first use."""

    def __init__(self, model_dir: str | None = None) -> None:
        self._folder = model_dir or BUNDLED
        self._opening = Lock()
        self._model: StaticModel | None = None
        self._pooling: _Pooling | None = None
        self._codes: Codes | None = None
        self._few_left = _FEW_CHARACTERS

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The model's digest stands as endpoint: other weights make other vectors under the same name."""
        card = read_card(self._folder)
        return EmbedderIdentity("builtin", card.name, endpoint=card.digest, dims=card.dims)

    @property
    def sends_text_to(self) -> None:
        """None: the text stays on this machine."""
        return

    def embed_query(self, text: str) -> Vector:
        """Embed a question."""
        model, pooling = self._open(), self._pooling
        if pooling is None and "numpy" in sys.modules:
            pooling = self._pooling = _Pooling(model)
        vector = _pool(model, text) if pooling is None else pooling.pool(text)
        if vector is None:
            raise EmbeddingError("nothing to embed: the query has no words")
        return vector

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed texts some thousands a second; a blank one has no vector."""
        if not texts:
            return []
        model = self._open()
        pooling = self._pooling
        if pooling is None:
            self._few_left -= sum(map(len, texts))
            if self._few_left >= 0 and "numpy" not in sys.modules:
                return [_pool(model, text) for text in texts]
            pooling = self._pooling = _Pooling(model)
        return [pooling.pool(text) for text in texts]

    def likeness_to(self, question: str) -> Likeness:
        """Compare texts with a question word by word."""
        model, codes = self._open(), self._codes
        if codes is None or codes.model is not model:
            codes = self._codes = Codes(model)
        return likeness_to(question, codes)

    def close(self) -> None:
        """Let go of the model; its memory goes back when the last call that uses it has returned."""
        with self._opening:
            self._model = self._pooling = self._codes = None

    def _open(self) -> StaticModel:
        model = self._model
        if model is None:
            with self._opening:
                model = self._model = self._model or open_model(self._folder)
        return model


def _pool(model: StaticModel, text: str) -> Vector | None:
    """Make one vector in plain Python, so that a question or an edit does not wait for numpy."""
    if _blank(text):
        return None
    dims, vectors, scales = model.card.dims, model.vectors, model.scales
    lanes = weight = 0
    for token, count in Counter(model.tokenizer.encode(text)).items():
        factor = count * round(scales[token] * _FIXED_POINT)
        lanes += factor * _row_lanes(vectors, token, dims)
        weight += factor
    # Each lane has a number 128 too large, as often as rows were added.
    sums = array("q", lanes.to_bytes(_LANE * dims, sys.byteorder))
    if sys.byteorder == "big":
        sums.reverse()  # the first lane is the lowest
    surplus = 128 * weight
    numbers = [float(total - surplus) for total in sums]
    norm = math.hypot(*numbers)
    if norm <= _SMALLEST_NORM * _FIXED_POINT:
        return None
    return array("f", [total / norm for total in numbers])


_LANE = 8  # bytes
_RAISED = bytes([(byte + 128) % 256 for byte in range(256)])  # an int8 as a byte that is 128 larger


def _row_lanes(vectors: memoryview[int], token: int, dims: int) -> int:
    """A row as one large integer, a lane for each number: such integers are added and multiplied all lanes at once."""
    lanes = bytearray(_LANE * dims)
    lanes[::_LANE] = bytes(vectors[token * dims : (token + 1) * dims]).translate(_RAISED)
    return int.from_bytes(lanes, "little")


class _Pooling:
    """The same vectors with numpy, many times as fast."""

    def __init__(self, model: StaticModel) -> None:
        import numpy as np

        self._np = np
        self._encode = model.tokenizer.encode
        self._vectors = np.asarray(model.vectors).reshape(-1, model.card.dims)
        self._factors = np.rint(np.asarray(model.scales, dtype=np.float64) * _FIXED_POINT)

    def pool(self, text: str) -> Vector | None:
        """Make one unit vector, or None for a text without words."""
        if _blank(text):
            return None
        np = self._np
        tokens, counts = np.unique(np.frombuffer(self._encode(text), dtype=np.uint16), return_counts=True)
        # Not a matrix product: BLAS would start threads, which costs more than these few rows.
        sums = np.einsum("i,ij->j", self._factors[tokens] * counts, self._vectors[tokens])
        norm = math.hypot(*sums.tolist())  # rounded as in plain Python, so that the bytes are the same
        if norm <= _SMALLEST_NORM * _FIXED_POINT:
            return None
        return array("f", (sums / norm).astype(np.float32).tobytes())


def _blank(text: str) -> bool:
    return not text or text.isspace()


# --- words compared one by one, which a sum of vectors cannot do ---
#
# Pieces are compared by the signs of their vectors: of two numbers with a bit for each dimension, the bits that differ
# are counted. That is the angle between them, nearly, and exact arithmetic that plain Python does fast.

# What says little is left out: pieces of less than this share of what the question's pieces weigh together.
_LEAST_SHARE = 0.08
_MOST_KNOWN = 1 << 15  # codes are kept, some 90 bytes each
_MOST_TEXTS = 1 << 12  # some 500 bytes each; good ones are compared again and again
_SIGNS = bytes([ord("1") if 0 < number < 128 else ord("0") for number in range(256)])


class Codes(dict[int, int]):
    """The signs of a model's rows as numbers, made when they are first asked for. Safe to share between threads."""

    def __init__(self, model: StaticModel) -> None:
        super().__init__()
        self.model = model
        dims = model.card.dims
        self.cosines = [math.cos(math.pi * different / dims) for different in range(dims + 1)]
        self._rows_of: dict[tuple[int, int], array[int]] = {}

    def __missing__(self, row: int) -> int:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        code = self[row] = int(bytes(self.vector(row)).translate(_SIGNS), 2)
        return code

    def rows_of(self, text: str) -> array[int]:
        """The rows of a text's pieces, in any order. The text itself is not kept: it may be forgotten meanwhile."""
        key = hash(text), len(text)
        rows = self._rows_of.get(key)
        if rows is None:
            if len(self._rows_of) >= _MOST_TEXTS:
                self._rows_of.clear()
            rows = self._rows_of[key] = self.model.tokenizer.vocabulary_of(text)
        return rows

    def vector(self, row: int) -> memoryview[int]:
        """The numbers of a row."""
        dims = self.model.card.dims
        return self.model.vectors[row * dims : (row + 1) * dims]

    def weight(self, row: int) -> float:
        """The square of a row's length: rare words are long, and words that say little are short."""
        return float(self.model.scales[row] ** 2 * sum([number * number for number in self.vector(row)]))


def likeness_to(question: str, codes: Codes) -> Callable[[Sequence[str]], list[float]]:
    """What tells of texts, from -1 to 1, how near their words are to those of a question."""
    weights = {row: codes.weight(row) for row in sorted(set(codes.rows_of(question)))}
    least = _LEAST_SHARE * sum(weights.values())
    asked = {row: weight for row, weight in weights.items() if weight >= least}
    total = sum(asked.values())

    def likenesses(texts: Sequence[str]) -> list[float]:
        rows_of = [codes.rows_of(text) for text in texts]
        filled = [at for at, rows in enumerate(rows_of) if rows]
        differing = differing_by_numpy if "numpy" in sys.modules else differing_bits
        found = [0.0] * len(texts)
        nearest = differing(list(asked), [rows_of[at] for at in filled], codes)
        for weight, of_texts in zip(asked.values(), nearest, strict=True):
            for at, different in zip(filled, of_texts, strict=True):
                found[at] += weight * codes.cosines[different]
        return [each / total for each in found] if total else found

    return likenesses


def differing_bits(asked: Sequence[int], texts: Sequence[array[int]], codes: Codes) -> Iterator[list[int]]:
    """For each row that is asked for: in how many bits the nearest row of each text differs from it."""
    rows = list(set().union(*texts))
    positions = dict(zip(rows, range(len(rows)), strict=True))
    # What takes a text's numbers out of a list; twice the last of them, for of one alone it would make no tuple.
    picked = [itemgetter(*map(positions.__getitem__, (*these, these[-1]))) for these in texts]
    known = [codes[row] for row in rows]
    for wanted in map(codes.__getitem__, asked):
        different = [(wanted ^ code).bit_count() for code in known]
        yield [min(pick(different)) for pick in picked]


def differing_by_numpy(
    asked: Sequence[int], texts: Sequence[array[int]], codes: Codes
) -> Sequence[Sequence[int]]:
    """The same with numpy, in a quarter of the time."""
    if not asked or not texts:
        return [()] * len(asked)
    import numpy as np

    vectors = np.asarray(codes.model.vectors).reshape(-1, codes.model.card.dims)
    rows = np.frombuffer(b"".join(texts), dtype=np.uint16)
    wanted, known = (np.packbits(vectors.take(these, axis=0) > 0, axis=1) for these in (asked, rows))
    starts = [0, *accumulate(map(len, texts))][:-1]
    found: list[list[int]] = np.minimum.reduceat(_distances(wanted, known), starts, axis=1).tolist()
    return found


def _distances(wanted: Any, known: Any) -> Any:
    """In how many bits each row of some bytes differs from each of others."""
    try:
        import simsimd
    except ImportError:
        import numpy as np

        return np.bitwise_count(wanted[:, None] ^ known).sum(axis=2, dtype=np.uint16)
    compare: Any = simsimd.cdist  # its stub does not know of whole numbers as a result
    return memoryview(compare(wanted, known, "hamming", dtype="bin8", out_dtype="uint16"))


def create(settings: EmbeddingSettings) -> BuiltinEmbedder:
    """Make the provider from its settings."""
    embedder = BuiltinEmbedder()
    if settings.model not in (None, "", embedder.identity.model):
        raise ConfigError(
            f"the provider `builtin` has no model `{settings.model}`",
            key="model",
            hint=f"leave `model` out, or set it to `{embedder.identity.model}`",
        )
    return embedder
