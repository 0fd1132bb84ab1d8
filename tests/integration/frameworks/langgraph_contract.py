"""LangGraph's store: what its own one in memory does, ours does, over files that survive it."""

import asyncio
import threading
import time

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from plainmind import Memory, SearchContext
from plainmind.base.errors import PlainmindError, ScopeDenied
from plainmind.guests.integrations.langgraph import PlainmindStore, name_of

VALUE = {"text": "Anna takes her tea without milk", "n": 3, "deep": {"list": [1, None, "ä\n```\n---\nb"]}}


def seen(found):
    if isinstance(found, list):
        return [seen(one) for one in found]
    return (found.namespace, found.key, found.value) if hasattr(found, "key") else found


def exercise(store):
    """A list of what a store answers, without what no two stores share: times and scores."""
    told = []
    store.put(("people", "anna"), "tea", VALUE)
    store.put(("people", "anna"), "a/b:c.md", {"n": 5})
    store.put(("people", "ben"), "x" * 300, {"n": 7})
    store.put(("people",), "all", {"n": 9})
    told.append(seen(store.get(("people", "anna"), "tea")))
    told.append(seen(store.get(("people", "anna"), "a/b:c.md")))
    told.append(seen(store.get(("people", "ben"), "x" * 300)))
    told.append(store.get(("people", "anna"), "coffee"))
    told.append(sorted(seen(store.search(("people", "anna")))[:9], key=str))
    told.append(sorted(seen(store.search(("people",), filter={"n": {"$gte": 5}})), key=str))
    told.append(sorted(seen(store.search(("people",), filter={"n": 3})), key=str))
    told.append(len(store.search(("people",), limit=2)))
    told.append(len(store.search(("people",), limit=9, offset=3)))
    told.append(store.list_namespaces())
    told.append(store.list_namespaces(prefix=("people",), max_depth=1))
    told.append(store.list_namespaces(suffix=("anna",)))
    told.append(store.list_namespaces(prefix=("*", "anna")))
    told.append(store.list_namespaces(limit=1, offset=1))
    store.put(("people", "anna"), "tea", {"n": 4})
    told.append(seen(store.get(("people", "anna"), "tea")))
    store.delete(("people", "anna"), "tea")
    told.append(store.get(("people", "anna"), "tea"))
    store.delete(("people", "anna"), "tea")
    told.append(sorted(store.list_namespaces()))
    return told


def main():
    store = PlainmindStore("~/notes")
    expected, found = exercise(InMemoryStore()), exercise(store)
    for one, other in zip(expected, found, strict=True):
        assert one == other, (one, other)

    # Times: when it was first put, and when last.
    store.put(("t",), "k", {"a": 1})
    first = store.get(("t",), "k")
    time.sleep(0.01)
    store.put(("t",), "k", {"a": 2})
    second = store.get(("t",), "k")
    assert first.created_at == second.created_at < second.updated_at

    # By meaning, only below the prefix, best first with a score; what is not to be searched is not found.
    store.put(("who", "anna"), "1", {"text": "prefers tea over coffee in the morning"})
    store.put(("who", "anna"), "2", {"text": "the bicycle has a flat tyre"})
    store.put(("who", "ben"), "1", {"text": "prefers tea over coffee too"})
    store.put(("who", "anna"), "3", {"text": "prefers tea, secretly"}, index=False)
    hits = store.search(("who", "anna"), query="which drink: tea or coffee?")
    assert hits[0].key == "1" and 0 < hits[0].score <= 1
    assert {hit.namespace for hit in hits} == {("who", "anna")}
    assert "3" not in {hit.key for hit in hits}

    # In one batch, in its order.
    answers = store.batch(
        [
            PutOp(("b",), "k", {"v": 1}),
            GetOp(("b",), "k"),
            SearchOp(("b",)),
            ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("b",)),)),
        ]
    )
    assert (
        answers[0] is None
        and answers[1].value == {"v": 1}
        and len(answers[2]) == 1
        and answers[3] == [("b",)]
    )

    # What cannot be kept is refused, and leaves what was there.
    try:
        store.put(("b",), "k", {"v": object()})
    except PlainmindError as error:
        assert "cannot be kept" in str(error)
    else:
        raise AssertionError("it was kept")
    assert store.get(("b",), "k").value == {"v": 1}

    # The event loop is not blocked, and writers at once lose nothing.
    async def many():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(store.aput(("many",), str(n), {"n": n}) for n in range(20)))
        await asyncio.gather(*(store.aput(("one",), "k", {"n": n}) for n in range(4)))
        found = await store.asearch(("many",), limit=50)
        ticking.cancel()
        assert ticks > 20, ticks
        return found

    assert len(asyncio.run(many())) == 20
    assert threading.active_count() < 60

    # A person's store lies in that person's folder, and nobody else's is seen.
    with Memory("~/notes") as memory:
        anna = PlainmindStore(memory, context=SearchContext("anna", "direct", "", channel="app"))
        anna.put(("prefs",), "drink", {"text": "anna drinks oat milk"})
        ben = PlainmindStore(memory, context=SearchContext("ben", "direct", "", channel="app"))
        assert ben.get(("prefs",), "drink") is None
        assert ben.search(("prefs",), query="who drinks oat milk?") == []
        assert (
            anna.search(("prefs",), query="who drinks oat milk?")[0].value["text"] == "anna drinks oat milk"
        )
        try:
            PlainmindStore(memory, context=SearchContext("x", "group", "", group="g"))
        except ScopeDenied:
            pass
        else:
            raise AssertionError("a group that no rule lets in got a store")

    # Two names never share a file.
    assert (
        len({name_of(("a",), key) for key in ("x", "X", "x.", "x/", "x:", "%78", "x" * 150, "x" * 151)}) == 8
    )
    store.close()
    print("all as promised")


main()
