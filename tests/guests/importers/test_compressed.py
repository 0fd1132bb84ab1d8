"""Conversations that are packed with Zstandard."""

from __future__ import annotations

import json

import pytest
import zstandard
from tests.guests.importers.test_cli_agents import FILE, SESSION, TODAY, line, message

from plainmind.guests.importers import originals
from plainmind.guests.importers.originals import CannotUnpack, unpack

SPOKEN = ["User: What wood for the hull?", "Assistant: Larch, on oak frames.", "User: And the keel?"]


def packed(lines):
    plain = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    return zstandard.ZstdCompressor().compress(plain)


def test_a_packed_rollout_is_read_like_any_other(here, write, tmp_path):
    write(f"{FILE}.zst", packed(TODAY))

    first = here.take("codex", tmp_path / "dot-codex")
    second = here.take("codex", tmp_path / "dot-codex")

    assert here.spoken(SESSION) == SPOKEN
    assert (len(first.imported), len(second.imported)) == (1, 0)


def test_what_was_added_as_another_frame_is_read_too(here, write):
    path = write(f"{FILE}.zst", packed(TODAY[:5]) + packed(TODAY[5:]))
    here.take("codex", path)
    assert here.spoken(SESSION) == SPOKEN

    path.write_bytes(packed(TODAY) + packed([line("response_item", message("assistant", "Oak."))]))
    here.take("codex", path)
    assert here.spoken(SESSION) == [*SPOKEN, "Assistant: Oak."]


def test_a_rollout_that_was_packed_since_adds_nothing(here, write, tmp_path):
    plain = write(FILE, TODAY)
    here.take("codex", tmp_path / "dot-codex")
    plain.unlink()
    write(f"{FILE}.zst", packed(TODAY))

    here.take("codex", tmp_path / "dot-codex")

    assert here.spoken(SESSION) == SPOKEN


def test_a_damaged_one_is_named_and_the_others_are_read(here, write, tmp_path):
    path = write(f"{FILE.replace(SESSION, SESSION[::-1])}.zst", b"\x28\xb5\x2f\xfdwhatever")
    write(FILE, TODAY)

    report = here.take("codex", tmp_path / "dot-codex")

    assert here.spoken(SESSION) == SPOKEN
    assert [failure.path for failure in report.failed] == [str(path)]
    assert "cannot be unpacked" in report.failed[0].reason


def test_without_a_library_it_is_said_which_one_is_missing(here, write, monkeypatch):
    path = write(f"{FILE}.zst", packed(TODAY))
    monkeypatch.setattr(originals, "_LIBRARIES", ("no_such_library",))

    report = here.take("codex", path)

    assert "no library for that is installed (install one and import again" in report.failed[0].reason


def test_what_unpacks_to_too_much_is_refused():
    bomb = zstandard.ZstdCompressor().compress(bytes(3_000_000))

    assert unpack(bomb) == bytes(3_000_000)
    with pytest.raises(CannotUnpack, match="more than 2,000,000 bytes"):
        unpack(bomb, most=2_000_000)
