"""The provider `builtin`: a static model in our own wheel, so vectors work offline from the first second.

A text's vector is the weighted mean of its tokens' vectors, brought to unit length. Every token counts as an
integer multiple of its int8 row, so sums are exact in float64 and the same whatever the order or the batch:
indexing a text twice gives the same bytes.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import accumulate

from plainmind.base.errors import ConfigError, EmbeddingError
from plainmind.base.lazy import Lock, pattern
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.base.value import value
from plainmind.embed.protocol import EmbeddingSettings, FullEmbedder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_FIRST_PIECE = 259  # before it stand the special pieces and those of single bytes, which nothing is joined to
_LONGEST_RUN = 16  # of spaces in one piece
# A search takes some 50 µs, the dictionary of all pieces 4 ms.
_FEW = 48
_BLOCK = 8_192  # bytes, whose lines are counted once


class Vocabulary:
    """Knows every piece of a file that has one a line, in the order of their ids. Safe to share between threads."""

    def __init__(self, data: bytes) -> None:
        self._lines = b"\n%b\n" % data
        self._few_left = _FEW
        self._few: dict[str, int | None] = {}  # that were searched for
        self._ranks: dict[str, int] = {}
        starts = range(0, len(self._lines), _BLOCK)
        counts = [self._lines.count(b"\n", start, start + _BLOCK) for start in starts]
        self._lines_before = list(accumulate(counts, initial=0))  # by block
        self.size = self._lines_before[-1] - 1
        self.rank_of: Callable[[str], int | None] = self._search_few

    def _search_few(self, piece: str) -> int | None:
        few = self._few
        if piece not in few:
            if not self._few_left:
                return self._look_up(piece)
            self._few_left -= 1
            few[piece] = self._search(piece)
        return few[piece]

    def _search(self, piece: str) -> int | None:
        if "\n" in piece:
            return None
        at = self._lines.find(b"\n%b\n" % piece.encode("utf-8", "surrogatepass"))
        if at < 0:
            return None
        id_ = self._id_at(at)
        return self._rank(piece, id_) if id_ >= _FIRST_PIECE else None

    def _id_at(self, line_end: int) -> int:
        block = line_end // _BLOCK
        return self._lines_before[block] + self._lines.count(b"\n", block * _BLOCK, line_end)

    def _look_up(self, piece: str) -> int | None:
        if not self._ranks:
            pieces = self._lines.decode().split("\n")[1 + _FIRST_PIECE : -1]
            self._ranks = {known: self._rank(known, id_) for id_, known in enumerate(pieces, _FIRST_PIECE)}
            self.rank_of = self._ranks.get
        return self._ranks.get(piece)

    def _rank(self, piece: str, id_: int) -> int:
        """A piece's rank is its id, but runs of spaces are joined after everything else."""
        return id_ + self.size if piece in _RUNS else id_


_RUNS = frozenset("▁" * length for length in range(2, _LONGEST_RUN + 1))


_SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2}
_FIRST_BYTE = 3  # ids 3 to 258 stand for the bytes 0 to 255

_SPECIALS = pattern("(<unk>|<s>|</s>)")
# Cuts that no piece of the vocabulary reaches over, so nothing is ever joined across them: before a `▁`,
# between letters and signs, around digits, line ends and tabs.
# (`²` counts as a sign: it has pieces such as `²,`.)
_UNITS = pattern(r"▁*[^\W\d_²]+|▁*(?:[^\w▁\n\t]|[_²])+|▁+|[\d\n\t]")

# No piece joins one of these with anything: characters of Chinese, Japanese and Korean stand for themselves.
_ALL_SINGLE = pattern("▁?[⺀-鿿가-힣豈-﫿]+")
_FIRST_SINGLE = "⺀"

_REMEMBERED_UNITS = 65_536
_REMEMBERED_LENGTH = 32  # longer ones (links, hashes, unspaced scripts) seldom come again


class Tokenizer:
    """Llama's byte-pair tokenizer, for the vocabulary of this model. Safe to share between threads.

    A space is written `▁` and one stands before the text: `"a cat"` → `▁a` `▁cat`. Neighbours are joined as long
    as the vocabulary knows the result, the piece with the lowest id first; unknown characters become bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._units = _Units(vocabulary)
        self._words = _Words(self._units, "▁")
        self._first_words = _Words(self._units, "")

    def encode(self, text: str) -> array[int]:
        """Ids of `text` as unsigned 16-bit numbers; the empty text has none."""
        ids = array("H")
        if "<" not in text:
            ids.frombytes(self._encode(text))
            return ids
        for part in _SPECIALS.split(text):
            if part in _SPECIAL:
                ids.append(_SPECIAL[part])
            else:
                ids.frombytes(self._encode(part))
        return ids

    def _encode(self, text: str) -> bytes:
        if not text:
            return b""
        if "▁" in text:  # it may stand beside a space, and then belongs to the same run
            return self._units.of("▁" + text.replace(" ", "▁"))
        return self._units["\n"].join(map(self._encode_line, f" {text}".split("\n")))

    def _encode_line(self, line: str) -> bytes:
        """Look up whole words: to cut each one anew takes four times as long."""
        if "  " in line:
            return self._units.of(line.replace(" ", "▁"))
        first, *others = line.split(" ")
        return self._first_words[first] + b"".join(map(self._words.__getitem__, others))


class _Words(dict[str, bytes]):
    """Remembers the ids of what stands between two spaces or ends of lines; `before` is what it begins with."""

    def __init__(self, units: _Units, before: str) -> None:
        super().__init__()
        self._units = units
        self._before = before

    def __missing__(self, word: str) -> bytes:
        ids = self._units.of(self._before + word)
        if len(word) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_UNITS:
                self.clear()  # words in use come back at once; cheaper than keeping an order
            self[word] = ids
        return ids


class _Units(dict[str, bytes]):
    """Remembers the ids of each run of characters between two cuts, as the bytes of an `array("H")`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def of(self, text: str) -> bytes:
        """Cut a text, in which spaces are written `▁`, and give the ids of all that comes of it."""
        return b"".join(map(self.__getitem__, _UNITS.findall(text)))

    def __missing__(self, unit: str) -> bytes:
        rank = self._vocabulary.rank_of(unit)
        if rank is not None:
            # Every piece of this vocabulary is what its own characters join to.
            ids = array("H", [rank % self._vocabulary.size]).tobytes()
        elif len(unit) == 1:
            ids = array("H", [_FIRST_BYTE + byte for byte in unit.encode("utf-8", "surrogatepass")]).tobytes()
        else:
            # Only a unit that ends with such a character is worth the pattern, which takes 2 ms to compile.
            is_all_single = unit[-1] >= _FIRST_SINGLE and _ALL_SINGLE.fullmatch(unit)
            pieces = unit if is_all_single else filter(None, self._join_neighbours(unit))
            ids = b"".join(map(self.__getitem__, pieces))
        if len(unit) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_UNITS:
                self.clear()
            self[unit] = ids
        return ids

    def _join_neighbours(self, unit: str) -> list[str]:
        """Join neighbours by rank, then from left to right; what its left neighbour takes in becomes ''."""
        pieces = list(unit)
        count = len(pieces)
        rank_of = self._vocabulary.rank_of
        pairs = [
            (rank, at, joined)
            for at in range(count - 1)
            if (rank := rank_of(joined := unit[at : at + 2])) is not None
        ]
        heapify(pairs)
        before, after = list(range(-1, count - 1)), list(range(1, count + 1))
        while pairs:
            _, at, joined = heappop(pairs)
            taken = after[at]
            if taken == count or not pieces[at] or pieces[at] + pieces[taken] != joined:
                continue  # one of the two was joined with its other neighbour meanwhile
            pieces[at], pieces[taken] = joined, ""
            after[at] = following = after[taken]
            if following < count:
                before[following] = at
                wider = joined + pieces[following]
                if (rank := rank_of(wider)) is not None:
                    heappush(pairs, (rank, at, wider))
            if (preceding := before[at]) >= 0:
                wider = pieces[preceding] + joined
                if (rank := rank_of(wider)) is not None:
                    heappush(pairs, (rank, preceding, wider))
        return pieces


BUNDLED = os.path.join(os.path.dirname(__file__), "model")
_FORMAT = 1
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
    """One vector a token. The value of row i, column j is `vectors[i * dims + j] * rows[2 * i]`."""

    card: ModelCard
    tokenizer: Tokenizer
    vectors: memoryview[int]  # int8
    rows: memoryview[float]  # float32: scale and pooling weight of each row in turn


def read_card(folder: str) -> ModelCard:
    """Read which model this is without opening it. Raises EmbeddingError when there is none."""
    try:
        with open(os.path.join(folder, "model.json"), "rb") as file:
            fields: Mapping[str, Any] = json.load(file)
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

    What its files hold is described in `hatch_build.py`. Raises EmbeddingError when one is missing or wrong.
    """
    card = read_card(folder)
    try:
        with open(os.path.join(folder, "vocab"), "rb") as file:
            vocabulary = Vocabulary(file.read())
        vectors = _map_file(os.path.join(folder, "vectors.i8"), card.rows * card.dims)
        rows = _map_file(os.path.join(folder, "rows.f32"), card.rows * 8)
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"the builtin embedding model cannot be opened: {error}", hint=_REINSTALL
        ) from error
    if vocabulary.size != card.rows:
        raise EmbeddingError("the vocabulary of the builtin embedding model is damaged", hint=_REINSTALL)
    return StaticModel(card, Tokenizer(vocabulary), vectors.cast("b"), rows.cast("f"))


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
        vector = _pool(self._open(), text)
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

    def close(self) -> None:
        """Let go of the model; its memory goes back when the last call that uses it has returned."""
        with self._opening:
            self._model = self._pooling = None

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
    dims, vectors, rows = model.card.dims, model.vectors, model.rows
    sums = [0.0] * dims
    for token, count in Counter(model.tokenizer.encode(text)).items():
        factor = count * float(round(rows[2 * token] * rows[2 * token + 1] * _FIXED_POINT))
        row = vectors[token * dims : (token + 1) * dims]
        sums = [total + factor * one for total, one in zip(sums, row, strict=True)]
    norm = math.hypot(*sums)
    if norm <= _SMALLEST_NORM * _FIXED_POINT:
        return None
    return array("f", [total / norm for total in sums])


class _Pooling:
    """The same vectors with numpy, many times as fast."""

    def __init__(self, model: StaticModel) -> None:
        import numpy as np

        self._np = np
        self._encode = model.tokenizer.encode
        self._vectors = np.asarray(model.vectors).reshape(-1, model.card.dims)
        rows = np.asarray(model.rows, dtype=np.float64).reshape(-1, 2)
        self._factors = np.rint(rows[:, 0] * rows[:, 1] * _FIXED_POINT)

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
