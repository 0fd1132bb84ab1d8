"""A dataset of one small workspace, with notes, a transcript and questions."""

from __future__ import annotations

import json

import pytest

QUESTIONS = [
    {
        "id": "gateway",
        "query": "where does the gateway run?",
        "category": "fact",
        "gold": [{"path": "memory/network.md", "line_start": 3, "line_end": 3}],
    },
    {
        "id": "cellar",
        "query": "what did the assistant say about the cellar?",
        "category": "talk",
        "now": "2026-03-01T10:00",
        "gold": [{"path": "sessions/a.jsonl", "line_start": 2, "line_end": 2}],
    },
    {"id": "nowhere", "query": "zebrafish spectrometer", "category": "absent", "gold": []},
]


def write_lines(file, rows):
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def dataset(tmp_path):
    workspace = tmp_path / "set" / "house"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "sessions").mkdir()
    (workspace / "memory" / "network.md").write_text(
        "# Network\n\nThe gateway runs on a Mac Studio.\nThe printer is on VLAN 40.\n"
    )
    (workspace / "memory" / "2026-02-10.md").write_text(
        "# 2026-02-10\n\n- Ana painted the boat.\n- The garden gate is green now.\n"
    )
    write_lines(
        workspace / "sessions" / "a.jsonl",
        [
            {"type": "message", "message": {"role": "user", "content": "is it damp?"}},
            {"type": "message", "message": {"role": "assistant", "content": "The cellar is dry since May."}},
        ],
    )
    (workspace / "meta.json").write_text('{"now": "2026-02-12"}')
    write_lines(workspace / "queries.jsonl", QUESTIONS)
    return tmp_path / "set"
