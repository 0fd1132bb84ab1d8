"""The files of the builtin model, mapped into memory rather than read: a query touches only its own rows.

What they hold is described in `hatch_build.py`, which makes them.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping

from plainmind.base.errors import EmbeddingError
from plainmind.base.value import value
from plainmind.embed.tokens import Tokenizer
from plainmind.embed.vocabulary import Vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
    """Map the model. Raises EmbeddingError when a file is missing or has the wrong size."""
    card = read_card(folder)
    try:
        with open(os.path.join(folder, "vocab"), "rb") as file:
            vocabulary = Vocabulary(file.read())
        vectors = _mapped(os.path.join(folder, "vectors.i8"), card.rows * card.dims)
        rows = _mapped(os.path.join(folder, "rows.f32"), card.rows * 8)
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"the builtin embedding model cannot be opened: {error}", hint=_REINSTALL
        ) from error
    if vocabulary.size != card.rows:
        raise EmbeddingError("the vocabulary of the builtin embedding model is damaged", hint=_REINSTALL)
    return StaticModel(card, Tokenizer(vocabulary), vectors.cast("b"), rows.cast("f"))


def _mapped(path: str, size: int) -> memoryview:
    with open(path, "rb") as file:
        found = os.fstat(file.fileno()).st_size
        if found != size:
            raise ValueError(f"{path} has {found} bytes instead of {size}")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
