"""What hides secrets in the copies that we make of texts: those of the settings, since when, and a key for marks."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from functools import lru_cache

from plainmind.base.model import SearchResult
from plainmind.base.value import replace
from plainmind.files.atomic import write_atomically, write_first
from plainmind.files.system import explain_errors, read_file
from plainmind.redaction.engine import RULES_VERSION, Redactor
from plainmind.redaction.findings import CROWD

_KEY_BYTES = 32


def redactor_of(home: str, configured: Iterable[str]) -> Redactor:
    """Make the redactor of a memory; the same secret gets the same mark in all its copies."""
    return Redactor(configured, key=redaction_key(home))


def reading_by(redactor: Redactor, home: str) -> tuple[int, int]:
    """How texts are read by now: the version of the rules, and when the newest of the secrets became known.

    A copy that was made earlier, by older rules or before a secret was known, may show it and is to be made anew. A
    moment tells that, and says nothing of the secrets. Were it the secrets themselves, processes that know different
    ones, because a variable is set for one of them alone, would make the same copies anew for ever, each in turn.
    """
    return RULES_VERSION, known_since(home, redactor.digests(), at_ms=time.time_ns() // 1_000_000)


def known_since(home: str, digests: Iterable[str], *, at_ms: int) -> int:
    """Note which secrets are known, by digests made with the key, and return when the newest became so; 0 for none."""
    path = os.path.join(home, "redaction-secrets.json")
    with explain_errors("read", path):
        known = _read_moments(path)
        if not known.keys() >= set(digests):
            from plainmind.files.system import hold_lock, lock_path_for

            with hold_lock(lock_path_for(home, path), operation="note which secrets are known"):
                known = _read_moments(path)
                # Later than all others, whatever the clock says: it must not be taken for one of them.
                moment = max(at_ms, max(known.values(), default=0) + 1)
                known |= {digest: moment for digest in digests if digest not in known}
                write_atomically(path, json.dumps(known, indent=1).encode() + b"\n")
    return max(known.values(), default=0)


def _read_moments(path: str) -> dict[str, int]:
    try:
        noted = json.loads(read_file(path))
    except (FileNotFoundError, ValueError):
        return {}  # then all are new, and copies are made once more
    noted = noted if isinstance(noted, dict) else {}
    return {digest: moment for digest, moment in noted.items() if isinstance(moment, int)}


def without_known_secrets(result: SearchResult, redactor: Redactor) -> SearchResult:
    """Hide secrets that became known after a conversation was indexed, until the index has been made anew."""
    hits = tuple(
        replace(hit, snippet=redactor.without_configured(hit.snippet)) if hit.source == "sessions" else hit
        for hit in result.hits
    )
    return replace(result, hits=hits)


# A piece of a secret that the edge of an excerpt has cut off; shorter ones tell nobody anything.
_LEAST_PIECE = 6
_AROUND_PIECE = "… \t\r\n"
_STANDS_ALONE_BELOW = 8
_NOTES_KEPT = 64


def part_without_secrets(part: str, whole: str | None, redactor: Redactor) -> str:
    """Hide the secrets in a part of a note; what the whole note tells to be one is hidden too, also cut off."""
    secrets, crowds = _secrets_of(redactor, whole) if whole else ((), ())
    for start, end, mark in crowds:
        part = _without_crowd(part, whole or "", start, end, mark)
    for secret, mark in secrets:
        if len(secret) < _STANDS_ALONE_BELOW:
            part = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _, mark=mark: mark, part)  # type: ignore[misc]
        else:
            part = _without_pieces(part.replace(secret, mark), secret, mark)
    return redactor.without_secrets(part)


def _without_pieces(part: str, secret: str, mark: str) -> str:
    """Hide the end of a secret with which a part begins, and the beginning of one with which it ends."""
    first = len(part) - len(part.lstrip(_AROUND_PIECE))
    at = secret.rfind(part[first : first + _LEAST_PIECE])
    if at > 0 and len(part) - first >= _LEAST_PIECE and part.startswith(secret[at:], first):
        part = part[:first] + mark + part[first + len(secret) - at :]
    last = len(part.rstrip(_AROUND_PIECE))
    end = secret.find(part[max(0, last - _LEAST_PIECE) : last]) + _LEAST_PIECE
    if _LEAST_PIECE <= end < len(secret) and part.endswith(secret[:end], 0, last):
        part = part[: last - end] + mark + part[last:]
    return part


def _without_crowd(part: str, whole: str, start: int, end: int, mark: str) -> str:
    """Hide each line of a part, also one that is cut off, that the note has among nothing but secrets."""

    def cleaned(line: str) -> str:
        own = line.strip(_AROUND_PIECE)
        is_hidden = own and whole.find(own, max(0, start - len(own) + 1), end + len(own) - 1) >= 0
        return line.replace(own, mark) if is_hidden else line

    return "".join(map(cleaned, part.splitlines(keepends=True)))


@lru_cache(_NOTES_KEPT)
def _secrets_of(
    redactor: Redactor, whole: str
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[int, int, str], ...]]:
    """The secrets of a note and their marks, the longest first, one of several lines as several; and its crowds."""
    found = redactor.redact(whole).found
    secrets = {
        line: one.mark
        for one in found
        if one.kind != CROWD
        for line in whole[one.start : one.end].splitlines()
        if line.strip()
    }
    crowds = tuple((one.start, one.end, one.mark) for one in found if one.kind == CROWD)
    return tuple(sorted(secrets.items(), key=lambda item: -len(item[0]))), crowds


def redaction_key(home: str) -> bytes:
    """The key of the marks, made at its first use; with it, one can tell whether a mark stands for a secret."""
    path = os.path.join(home, "redaction.key")
    with explain_errors("read", path):
        key = _read(path)
        if key is None:
            _make(path)
            key = _read(path)
    assert key is not None  # made by us or by another process
    return key


def _read(path: str) -> bytes | None:
    try:
        key = read_file(path, most=_KEY_BYTES)
    except FileNotFoundError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _make(path: str) -> None:
    """Write a new key, unless another process was first."""
    write_first(path, os.urandom(_KEY_BYTES))
    if _read(path) is None:  # a torn one
        write_atomically(path, os.urandom(_KEY_BYTES))
