"""What the memory is told when a provider fails."""

from __future__ import annotations

import pytest

from plainmind.base.errors import EmbeddingError, TransientEmbeddingError
from plainmind.guests.net import failures as of_net
from plainmind.guests.net.failures import Abandoned, NetFailure
from plainmind.guests.remote import failures
from plainmind.guests.remote.failures import BudgetSpent, ProviderPaused, embedding_error

# These are our own decisions; whoever takes one says what to do about it.
OURS = (Abandoned, BudgetSpent, ProviderPaused)


def every_kind() -> list[type[NetFailure]]:
    found = {**vars(of_net), **vars(failures)}.values()
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, NetFailure)]


@pytest.mark.parametrize("kind", every_kind())
def test_every_failure_is_told_as_an_embedding_error_that_may_pass_or_not(kind: type[NetFailure]) -> None:
    told = embedding_error(kind("it failed"))

    assert str(told) == "it failed"
    assert isinstance(told, EmbeddingError)
    assert isinstance(told, TransientEmbeddingError) == kind.retryable
    assert told.hint or kind is NetFailure or kind in OURS


def test_a_hint_of_its_own_counts_more() -> None:
    assert embedding_error(of_net.KeyRefused("no key", hint="set one")).hint == "set one"
