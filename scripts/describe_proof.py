"""The first part of docs/proof.md: what is promised, which tests show it, and what the last full runs have found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from install import ROOT

RESULTS = ROOT / "docs" / "proof.json"
# In plain words; the tests that show it; the run that shows it at length, if there is one.
PROMISES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        (
            "What was acknowledged is on the disk: no power cut takes, doubles or halves it, be it a note, a turn"
            " of a conversation, an entry, an old version, or a change of several files at once"
        ),
        ("tests/simulation/test_power_cuts.py", "tests/files/test_change_set.py"),
        "simulation",
    ),
    ("The same on real file systems", ("tests/simulation/test_power_cuts.py",), "power"),
    (
        "A process that is killed, or a disk that is full, loses nothing that was acknowledged",
        (
            "tests/faults/test_kill_writers.py",
            "tests/faults/test_session_kills.py",
            "tests/faults/test_chat_kills.py",
            "tests/faults/test_full_disk.py",
        ),
        "faults",
    ),
    (
        "What was forgotten is gone from files, history, index, cache and journals, and does not come back",
        ("tests/faults/test_deleted_text.py", "tests/faults/test_forgetting_together.py"),
        "simulation",
    ),
    (
        "What a person saves in an editor is never overwritten; what agents add meanwhile is not lost without a word",
        ("tests/faults/test_editors_while_appending.py", "tests/faults/test_concurrent_edits.py"),
        "faults",
    ),
    (
        (
            "Upkeep loses no line and doubles none, changes no line that says something else by now, and is taken back"
            " to the byte; nothing false comes of what a model says"
        ),
        ("tests/faults/test_upkeep_sequences.py", "tests/guests/upkeep/test_judge.py"),
        "faults",
    ),
    (
        "Nothing is written outside of the workspace and the home, whatever is swapped for a link meanwhile",
        ("tests/faults/test_writes_stay_inside.py", "tests/faults/test_paths_cannot_escape.py"),
        "faults",
    ),
    (
        "Nobody sees what is not meant for them, in any kind of chat and by any door",
        ("tests/faults/test_nobody_becomes_the_owner.py", "tests/faults/test_scope_matrix.py"),
        "faults",
    ),
    (
        "A damaged index answers as a whole one, or is made anew and says so; it is never wrong in silence",
        ("tests/faults/test_damaged_index.py", "tests/faults/test_rebuilds.py"),
        "faults",
    ),
    (
        (
            "Whatever comes in, the worst is a sentence that says what is wrong: transcripts, settings, questions,"
            " Markdown, MCP, `/v1`, and our own files with other bytes in them"
        ),
        ("tests/fuzz/test_fuzz.py", "tests/mcp/test_fuzz.py", "tests/faults/test_odd_files.py"),
        "fuzz",
    ),
    (
        "It can be left running: memory, open files, threads, index and journals do not grow with the hours",
        ("tests/soak/test_soak.py",),
        "soak",
    ),
    (
        "Nobody who is silent or slow keeps others waiting: clients of the page, and providers of embeddings",
        ("tests/faults/test_silent_connections.py", "tests/faults/test_hanging_provider.py"),
        "faults",
    ),
    (
        "Secrets that stand in notes and conversations are not shown to agents",
        ("tests/redaction/test_forms.py", "tests/memory/test_secrets_in_notes.py"),
        "test",
    ),
)
COMMANDS = {
    "simulation": "make sim",
    "power": "make power",
    "soak": "make soak",
    "fuzz": "make fuzz",
    "upkeep": "make faults",
}


def proof_part() -> str:
    """The table of promises, then what each long run found when it was run last."""
    results: Mapping[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = ["| What is promised | Shown by | At length |", "|---|---|---|"]
    for promise, tests, run in PROMISES:
        for test in tests:
            if not (ROOT / test).is_file():
                raise AttributeError(f"there is no {test}")
        shown = ", ".join(f"`{test}`" for test in tests)
        lines.append(f"| {promise} | {shown} | `{COMMANDS.get(run, f'make {run}')}` |")
    lines += ["", "What the last runs found, long or short (`RECORD=1` puts the figures of a run here):", ""]
    lines += ["| Run | When and where | What was tried | Found |", "|---|---|---|---|"]
    for name, command in COMMANDS.items():
        for part, last in _runs(results.get(name, {})):
            tried, found = _row(name, part, last["figures"])
            lines.append(f"| `{command}` | {last['day']}, {last['machine']} | {tried} | {found} |")
    return "\n".join(["", *lines, ""])


def _runs(result: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Each part of a run with its own day; a run without parts is one without a name."""
    return [("", result)] if "figures" in result else result.items()


def _row(name: str, part: str, figures: Mapping[str, Any]) -> tuple[str, str]:
    if name == "simulation":
        tried = f"{figures['lives']:,} lives, the power cut after each of {figures['effects']:,} effects"
        return f"{tried}; {figures['starts']:,} times started again", _faults(figures["faults"])
    if name == "power":
        return f"{part}: {figures['cuts']:,} cuts", _faults(figures["faults"])
    if name == "upkeep":
        tried = "propose, accept, reject, edit by hand, undo, kill -9, agents and rules in any order"
        tried = f"{figures['sequences']:,} sequences of {figures['steps']} steps: {tried}"
        return tried, _faults(figures["faults"])
    if name == "soak":
        tried = f"{figures['minutes']:g} minutes, {figures['operations']:,} operations"
        tried += f" with a rest of {figures.get('rest_s', 0.2):g} s behind each"
        tried += f" by {figures['processes']} processes, {figures['curves']} curves"
        rising = "".join(f"; {one}" for one in figures["rising"])
        return tried, f"{len(figures['rising'])} rise{rising}"
    tried = f"{part}: {figures['cases']:,} cases, {figures['lines']:,} lines reached"
    return tried, _faults(figures["faults"])


def _faults(count: int) -> str:
    return "no fault" if not count else f"{count} faults"
