"""Transcripts larger than memory: opened, added to, read and counted in little of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plainmind.sessions.entries import line_of
from plainmind.sessions.store import SessionStore

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
BYTES = 5_000_000_000 if FULL else 60_000_000

USES = """
import json, sys
from plainmind.sessions.store import SessionStore
store = SessionStore(sys.argv[1])
session = store.open("big")
session.append({"role": "user", "content": "the newest"})
seen = {"tail": [entry["message"]["content"][:20] for entry in session.tail(2)]}
seen["retry"] = session.append({"role": "user", "content": "again"}, id="first")
if sys.argv[2] == "all":
    session.compact("everything so far", keep=2)
    context = session.context()
    seen["context"] = [context.summary, len(context.entries)]
    seen["tokens"] = session.entry()["inputTokens"]
    seen["entries"] = session.check().entries
    seen["fork"] = session.fork("fork").check().entries
sys.path.insert(0, sys.argv[3])
from tests.support.peak_memory import peak_memory
seen["peak"] = peak_memory()
print(json.dumps(seen))
"""


def used(folder: Path, how: str) -> dict[str, object]:
    run = subprocess.run([sys.executable, "-c", USES, folder, how, ROOT], capture_output=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.slow
@pytest.mark.timeout(1800 if FULL else 60)
def test_a_long_transcript_takes_little_memory(tmp_path: Path) -> None:
    session = SessionStore(tmp_path).create("big")
    session.append({"role": "user", "content": "the first"}, id="first")
    line = line_of(
        {
            "type": "message",
            "id": "00000000",
            "parentId": "first",
            "message": {"role": "assistant", "content": "word " * 1_500, "usage": {"input": 1, "output": 1}},
        }
    )
    count = BYTES // len(line)
    with open(session.path, "ab") as file:
        parent = b"first".ljust(8)
        for number in range(count):
            name = b"%08d" % number
            file.write(line.replace(b"00000000", name).replace(b'"first"', b'"%s"' % parent.strip()))
            parent = name

    seen = used(tmp_path, "all")
    assert seen["tail"] == ["word word word word ", "the newest"]
    assert seen["retry"] == "first"
    assert seen["context"] == ["everything so far", 2]
    assert seen["tokens"] == count
    assert seen["entries"] == count + 3
    assert seen["fork"] == count + 3
    print(f"{count} messages of {len(line)} bytes, {int(str(seen['peak'])) >> 20} MB of memory")
    assert int(str(seen["peak"])) < (300 if FULL else 64) << 20


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_five_gigabytes_without_a_newline_are_survived(tmp_path: Path) -> None:
    session = SessionStore(tmp_path).create("big")
    session.append({"role": "user", "content": "the first"}, id="first")
    with open(session.path, "r+b") as file:
        file.seek(5_000_000_000)  # a hole: NULs that take no room on the disk
        file.write(
            b"\n" + line_of({"type": "message", "id": "b", "message": {"role": "user", "content": "behind"}})
        )

    seen = used(tmp_path, "a little")
    assert seen["tail"] == ["behind", "the newest"]
    assert seen["retry"] == "first"
    assert int(str(seen["peak"])) < 100 << 20
