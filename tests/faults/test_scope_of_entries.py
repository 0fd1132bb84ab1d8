"""Every kind of conversation, asked for every kind of entry, by every tool: what is not for it never comes out."""

from __future__ import annotations

import json
import re

import pytest
from tests.support.scope_world import CONTEXTS, EVERYTHING, MORE_QUERIES, RULES, TEXTS, fill, opened

from plainmind.agent.scope import Limits, Rule, access_of
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.guests.chat.conversation import Listener
from plainmind.guests.entries.access import entry_memory_of, tools_within
from plainmind.guests.entries.memory import open_entries
from plainmind.guests.entries.toolbox import EntryToolBox

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SCOPED_RULES = tuple(
    Rule(rule["action"], channel=rule["match"].get("channel"), key_prefix=rule["match"].get("keyPrefix"))
    for rule in RULES["rules"]
)
# One of each scope; the entries of another agent are in another folder, and entries have no past.
KEPT = list({text.scope: text for text in TEXTS if text.scope not in {"nobody", "past"}}.values())
LIMITS = Limits(max_results=50, max_injected_chars=100_000, timeout_ms=60_000)


def access(who):
    return access_of(CONTEXTS[who][0], SCOPED_RULES, RULES["default"])


def filled(folder, driver, scopes):
    entries = open_entries(str(folder), BuiltinEmbedder(), driver=driver, twins_from=0.999)
    for text in KEPT:
        if text.scope in scopes:
            assert entries.store(text.line, scope=text.scope, category="fact").entry is not None
            (waiting,) = entries.capture([f"remember that {text.ask} waits: {text.tell}"], scope=text.scope)
            assert waiting.is_waiting
    return entries


@pytest.fixture(scope="module", params=["memory", "sqlite", "lancedb"])
def entries(tmp_path_factory, request):
    entries = filled(tmp_path_factory.mktemp("entries"), request.param, EVERYTHING)
    yield entries
    entries.close()


@pytest.mark.parametrize("who", CONTEXTS)
def test_an_entry_that_is_not_for_a_conversation_never_comes_out(entries, who):
    box, visible = EntryToolBox(entries, access(who), LIMITS), CONTEXTS[who][1]
    ids = [entry.id for entry in entries.list(scopes=frozenset({"*"}))]
    calls = [("memory_recall", {"query": query}) for query in (*(text.ask for text in KEPT), *MORE_QUERIES)]
    calls += [("memory_forget", {"what": what}) for what in (*(text.ask for text in KEPT), "code", *ids)]
    answers = [box.call(name, arguments) for name, arguments in calls]
    recalled = [box.recalled_for(f"what is the code for {text.ask}?") for text in KEPT]
    box.close()

    output = " ".join((*(f"{answer.text} {json.dumps(answer.content)}" for answer in answers), *recalled))
    told = {text.name for text in KEPT if text.tell in output}
    assert told == {text.name for text in KEPT if text.scope in (visible or ())}
    if visible is None:
        assert all(answer.content.get("denied") for answer in answers)
        assert not any(recalled)


@pytest.mark.parametrize("who", [who for who, (_, visible) in CONTEXTS.items() if visible != EVERYTHING])
def test_nothing_tells_whether_others_have_such_an_entry(tmp_path, who):
    """Nor how rare a word is among theirs: the answers are those of a memory that never had them."""
    seen = CONTEXTS[who][1] or set()
    told = []
    for scopes in (seen, EVERYTHING):
        entries = filled(tmp_path / str(len(scopes)), "memory", scopes)
        box = EntryToolBox(entries, access(who), LIMITS)
        theirs = next(text for text in KEPT if text.scope not in seen)
        calls = [("memory_recall", {"query": query}) for query in ("what is the code for it?", theirs.ask)]
        calls += [("memory_forget", {"what": theirs.ask}), ("memory_store", {"text": theirs.line})]
        calls.append(("memory_store", {"text": "a tern is a bird", "replaces": _id_of(entries, theirs)}))
        own = {entry.id: entry.text for entry in entries.list(scopes=frozenset(seen))}
        answers = [repr(box.call(name, arguments).content) for name, arguments in calls]
        told.append([_without_ids(answer, own) for answer in answers])
        box.close()
        entries.close()

    assert told[0] == told[1]


def _id_of(entries, text):
    found = [entry for entry in entries.list(scopes=frozenset({"*"})) if entry.text == text.line]
    return found[0].id if found else "no-such-entry"


def _without_ids(answer, own):
    for id_, text in own.items():
        answer = answer.replace(id_, f"the id of {text}")
    return re.sub(r"'createdAt': \d+|'id': '[0-9A-Z]+'|`[^`]+`", "", answer)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Notes and entries that say the same, in one memory."""
    place = tmp_path_factory.mktemp("matrix")
    fill(place)
    with opened(place, entries={"enabled": True, "driver": "sqlite", "autoRecall": True}) as memory:
        entries = entry_memory_of(memory)
        for text in KEPT:
            entries.store(text.line, scope=text.scope)
        yield memory
        entries.close()


@pytest.mark.parametrize("who", CONTEXTS)
def test_notes_and_entries_in_one_box_keep_to_their_scopes(memory, who):
    context, visible = CONTEXTS[who]
    tools, hooks = tools_within(memory, context)
    assert hooks is not None
    calls = [(name, {"query": text.ask}) for text in KEPT for name in ("memory_recall", "memory_search")]
    calls += [("memory_forget", {"what": what}) for text in KEPT for what in (text.ask, f"{text.path}#L1")]
    answers = [tools.call(name, arguments) for name, arguments in calls]
    asked = [{"role": "user", "content": f"what is the code for {text.ask}?"} for text in KEPT]
    reminders = [hooks.before([message], Listener()) for message in asked]
    tools.close()

    output = " ".join((*(f"{answer.text} {json.dumps(answer.content)}" for answer in answers), *reminders))
    told = {text.name for text in TEXTS if text.tell in output}
    allowed = {text.name for text in TEXTS if text.scope in (visible or ())}
    assert told <= allowed
    assert {text.name for text in KEPT if text.scope in (visible or ())} <= told
