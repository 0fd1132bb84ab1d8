"""A call of an embedder that fails: what the memory is told, and the failure behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plainmind.base.errors import EmbeddingError
from plainmind.guests.net.failures import NetFailure


@contextmanager
def failing(
    kind: type[NetFailure], *, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[EmbeddingError]]:
    """The block raises an EmbeddingError because of a failure of this kind."""
    with pytest.raises(EmbeddingError, match=match) as caught:
        yield caught
    assert isinstance(caught.value.__cause__, kind), repr(caught.value.__cause__)
