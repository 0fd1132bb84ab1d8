"""Every kind of conversation, asked for every kind of text, on every surface: what is not for it never comes out.

On every store, too. PLAINMIND_FAULTS=full asks on all surfaces there, else only on those that an index answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.scope_surfaces import BY_INDEX, SHOWN, SURFACES, searching
from tests.support.scope_world import BY_DEFAULT, CONTEXTS, EVERYTHING, FULL, TEXTS, fill, opened, opened_on
from tests.support.stores import DRIVERS

from plainmind import Memory, ScopeDenied

ASKED = [
    pytest.param(driver, surface, id=f"{driver}-{surface}")
    for driver in DRIVERS
    for surface in SURFACES
    # No program of its own has the dictionaries of another one.
    if driver == "sqlite" or surface in BY_INDEX or (FULL and (driver, surface) != ("memory", "mcp"))
]
NAMELESS = {
    "search",
    "list",
    "status",
    "start context",
}  # no path is asked for: a denied one must not come out


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("matrix")
    fill(place)
    return place


@pytest.fixture(scope="module")
def driver() -> str:
    return "sqlite"


@pytest.fixture(scope="module")
def memory(filled, driver) -> Iterator[Memory]:
    with opened_on(driver, filled) as memory:
        memory.sync()
        yield memory


def check(output: str, visible: set[str] | None, surface: str) -> set[str]:
    """See that nothing denied is in what came out; which texts were."""
    told = {text.name for text in TEXTS if text.tell in output}
    allowed = {text.name for text in TEXTS if text.scope in (visible or ())}
    assert told <= allowed, f"{surface} gave away {sorted(told - allowed)}"
    if surface in NAMELESS:
        named = {text.name for text in TEXTS if text.path in output and text.path != "MEMORY.md"}
        assert named <= allowed, f"{surface} named {sorted(named - allowed)}"
    return told


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("driver", "surface"), ASKED, scope="module")
@pytest.mark.parametrize("who", CONTEXTS)
def test_what_is_not_for_a_conversation_never_comes_out(memory, driver, who, surface):
    context, visible = CONTEXTS[who]
    outputs = list(SURFACES[surface](memory, context))

    told = set[str]().union(*(check(output, visible, surface) for output in outputs))

    must = SHOWN.get(surface, lambda _: False)
    assert {text.name for text in TEXTS if text.scope in (visible or ()) and must(text)} <= told
    if visible != EVERYTHING:
        everything = " ".join(outputs)
        assert str(Path(memory.workspace).parent) not in everything  # where the owner keeps it is theirs too
    # It was filtered before: the last look found nothing to stop.
    assert memory.policy.checkpoint.withheld == 0
    if visible is None:
        # Said aloud, with the reason: never the same as "nothing was found".
        reason = memory.within(context).access.reason.casefold()  # which begins a sentence, or does not
        assert [output for output in outputs if reason not in output.casefold()] == []


BACKENDS = {
    "words": {"store": {"path": "{home}/words", "vector": {"enabled": False}}},
    "vectors": {"query": {"hybrid": {"enabled": False}}},
    "many results": {"query": {"mmr": {"enabled": True}, "hybrid": {"candidateMultiplier": 20}}},
    "days": {"query": {"temporalDecay": {"enabled": True, "halfLifeDays": 1}}},
}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_way_to_search_keeps_to_the_scopes(filled, backend):
    with opened(filled, **BACKENDS[backend]) as memory:
        for context, visible in CONTEXTS.values():
            told = set[str]().union(
                *(check(output, visible, "search") for output in searching(memory, context))
            )
            if backend != "vectors":  # made-up words mean nothing, and are found by chance
                assert {
                    text.name for text in TEXTS if text.scope in (visible or ()) and SHOWN["search"](text)
                } <= told
        assert memory.policy.checkpoint.withheld == 0


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", CONTEXTS)
def test_without_rules_only_direct_chats_are_let_in(filled, who):
    context, visible = CONTEXTS[who]
    with opened(filled, scope=None) as memory:
        scoped = memory.within(context)

        assert scoped.access.is_allowed == (who in BY_DEFAULT)
        outputs = list(searching(memory, context))
        for output in outputs:
            check(output, visible if who in BY_DEFAULT else None, "search")


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", CONTEXTS)
def test_notes_of_a_conversation_are_seen_where_they_were_written_and_by_the_owner(memory, who):
    context, visible = CONTEXTS[who]
    scoped = memory.within(context)
    word = f"wk{''.join(letter for letter in who if letter.isalpha())}note"
    if visible is None or not scoped.access.writes:
        with pytest.raises(ScopeDenied):
            scoped.append(f"remember {word}")
        return
    place = scoped.append(f"remember {word}")
    try:
        for other, (elsewhere, seen) in CONTEXTS.items():
            with suppress(ScopeDenied):
                found = memory.within(elsewhere).search(word, min_score=0.0, max_results=50)
                may = seen is not None and scoped.access.writes in seen
                assert (word in repr(found.hits)) == may, f"a note of {who} was seen by {other}"
    finally:
        memory.forget(place.id)


def test_there_is_a_context_of_every_kind_and_a_text_of_every_scope():
    kinds = {context.chat_type for context, _ in CONTEXTS.values()}
    assert kinds == {"direct", "group", "channel", "", "supergroup"}
    assert {
        text.scope.partition(":")[0].partition("/")[2] or text.scope.partition(":")[0] for text in TEXTS
    } == {
        "private",
        "shared",
        "group",
        "person",
        "nobody",
        "past",
    }
    assert len({text.name for text in TEXTS}) == len(TEXTS)
