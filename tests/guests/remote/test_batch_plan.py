from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import sha256_text
from plainmind.guests.remote.job_steps import (
    RUNNING,
    UPLOADED,
    files_of,
    hashes_of,
    in_state,
    largest_output,
    pack_hashes,
    portions,
)
from plainmind.guests.remote.ledger import JobRecord
from plainmind.guests.remote.wire import ProviderKey

KEY = ProviderKey("openai", "m", "e")


def line(name: str, text: str) -> bytes:
    return f"{name[:4]} {text}\n".encode()


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), unique=True),
    st.integers(1, 9),
    st.integers(1, 120),
)
def test_portions_hold_each_text_once_and_in_order_within_the_limits(
    texts: list[str], max_items: int, max_bytes: int
) -> None:
    by_hash = {sha256_text(text): text for text in texts}

    cut = [*portions(by_hash, line, len, max_items=max_items, max_bytes=max_bytes, dims=8)]

    assert [name for portion in cut for name in portion.hashes] == [*by_hash]
    assert [row for portion in cut for row in portion.lines] == [line(*item) for item in by_hash.items()]
    for portion in cut:
        assert 1 <= len(portion.hashes) <= max_items
        assert len(portion.lines) == 1 or sum(map(len, portion.lines)) <= max_bytes
        assert portion.tokens == sum(len(by_hash[name]) for name in portion.hashes)


def test_a_job_is_no_larger_than_its_answers_may_be_on_our_disk() -> None:
    texts = {sha256_text(str(number)): "a" for number in range(20_000)}

    cut = [*portions(texts, line, len, max_items=50_000, max_bytes=10**9, dims=3072)]

    assert len(cut) > 1
    for portion in cut:
        assert largest_output(len(portion.hashes), 3072) <= 520 * 1024 * 1024


@given(st.lists(st.binary(min_size=32, max_size=32).map(bytes.hex)))
def test_hashes_come_back_from_their_packed_form(hashes: list[str]) -> None:
    job = JobRecord("tag", KEY, RUNNING, len(hashes), facts={"hashes": pack_hashes(hashes)})

    assert hashes_of(job) == hashes


def test_a_step_keeps_what_was_known_before() -> None:
    job = JobRecord("tag", KEY, UPLOADED, 1, facts={"file_id": "file-1", "dims": 3})

    running = in_state(job, RUNNING, remote_id="batch-1", files=["file-2", "file-1"])
    later = in_state(running, RUNNING)

    assert (later.state, later.remote_id, later.facts["dims"]) == (RUNNING, "batch-1", 3)
    assert files_of(later) == ["file-2", "file-1"]
