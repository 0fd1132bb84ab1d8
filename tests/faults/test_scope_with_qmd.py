"""Every kind of conversation with QMD as the engine, and with the index in its place: nothing denied comes out."""

from __future__ import annotations

import os

import pytest
from tests.support.qmd_program import QmdProgram
from tests.support.scope_surfaces import shown
from tests.support.scope_world import CONTEXTS, QUERIES, TEXTS, fill, opened

FULL = os.environ.get("COMMONPLACE_FAULTS") == "full"
# One question for several texts at once would find none: every word of it must be in one file.
ASKED = (
    QUERIES if FULL else [*[text.ask for text in TEXTS if text.scope != "private"][:7], "code", "MEMORY.md"]
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 if FULL else 60)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("matrix")
    fill(place)
    return place


@pytest.mark.parametrize("who", CONTEXTS)
@pytest.mark.parametrize("works", [True, False], ids=["qmd", "fallback"])
def test_what_is_not_for_a_conversation_never_comes_out_of_the_engine_either(place, who, works):
    program = QmdProgram(place / "program")
    command = str(program.path) if works else "no-such-program"
    qmd = {"command": command, "sessions": {"enabled": True}, "update": {"debounceMs": 0}}
    context, visible = CONTEXTS[who]
    allowed = {text.name for text in TEXTS if text.scope in (visible or ())}
    with opened(place, backend="qmd", qmd=qmd) as memory:
        memory.sync()
        scoped = memory.within(context)
        by_engine = False
        for query in ASKED:
            answer = shown(lambda query=query: scoped.search(query, max_results=50, min_score=0.0))

            told = {text.name for text in TEXTS if text.tell in answer}
            assert told <= allowed
            assert {text.name for text in TEXTS if text.ask == query and text.scope in (visible or ())} <= (
                told | {"past", "archived"}
            )
            by_engine = by_engine or "provider='qmd'" in answer
        assert memory.parts.checkpoint.withheld == 0
        assert by_engine == (works and visible is not None)
