"""What a provider says is repeated without keys and without what we sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.net import failures
from plainmind.guests.net.failures import NetFailure, mask


def every_kind() -> list[type[NetFailure]]:
    return [
        kind
        for kind in vars(failures).values()
        if isinstance(kind, type) and issubclass(kind, NetFailure) and kind is not NetFailure
    ]


@pytest.mark.parametrize("kind", every_kind())
def test_every_failure_is_retryable_or_terminal_but_not_both(kind: type[NetFailure]) -> None:
    assert not (kind.retryable and kind.terminal)
    assert f"{kind.__name__} " in str(failures.__doc__)


@pytest.mark.parametrize(
    "message",
    [
        "Incorrect API key provided: sk-proj-********************abcd.",
        "bad header Authorization: Bearer abc.def.ghi",
        "API key AIzaSyA1234567890abcdefgh not valid",
        "token pa-abcdefghijkl is unknown",
        "hash " + "A1b2" * 12,
    ],
)
def test_what_looks_like_a_key_is_masked(message: str) -> None:
    shown = mask(message)

    assert "…" in shown
    for part in ("sk-proj", "abc.def", "AIzaSyA", "pa-abcdef", "A1b2A1b2"):
        assert part not in shown


def test_useful_words_stay() -> None:
    message = "The model `text-embedding-3-smal` does not exist or you do not have access to it."

    assert mask(message, secrets=["sk-1234567890"], private=["a note about bread"]) == message


@given(
    st.text("XYZ0123+/=. ", min_size=8, max_size=60).filter(lambda text: not text.isspace()),
    st.text("abc \n'\"", max_size=300),
    st.text("abc \n'\"", max_size=300),
)
def test_a_configured_secret_never_shows(secret: str, before: str, after: str) -> None:
    shown = mask(before + secret + after, secrets=["", secret])

    assert secret.strip() not in shown
    assert len(shown) <= 200


@given(st.text("abcdefgh ", min_size=12, max_size=200), st.integers(0, 180), st.integers(12, 60))
def test_no_long_run_of_a_note_shows(note: str, start: int, length: int) -> None:
    quoted = note[start : start + length]
    shown = mask(f'INVALID VALUE: "{quoted}" IN ROW 3', private=[note])

    assert not any(note[at : at + 12] in shown for at in range(len(note) - 11))
    assert shown.startswith("INVALID VALUE")


def test_a_short_note_is_masked_whole() -> None:
    assert "pin 4711" not in mask("cannot embed `pin 4711`", private=["pin 4711"])


def test_control_characters_and_escapes_do_not_reach_a_terminal() -> None:
    assert mask("a\x1b[31mred\x00\nline") == "a [31mred line"
