"""CrewAI: its own memory works over the storage, in this object and in the next, for each person apart."""

import asyncio
from datetime import datetime

from crewai import Memory
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

from plainmind import Memory as Notes
from plainmind import SearchContext
from plainmind.base.errors import PlainmindError
from plainmind.guests.integrations.crewai import PlainmindStorage

TEA = "Anna drinks tea and never coffee"


def remember(memory, text, scope, categories):
    return memory.remember(text, scope=scope, categories=categories, importance=0.6, metadata={"by": "me"})


def main():
    notes = Notes("~/notes", config={"entries": {"driver": "sqlite"}})
    storage = PlainmindStorage(notes)
    assert isinstance(storage, StorageBackend)
    memory = Memory(storage=storage, embedder=storage.embedder)

    tea = remember(memory, TEA, "/people/anna", ["drinks"])
    remember(memory, "The bicycle of Ben has a flat tyre", "/people/ben", ["things"])
    found = memory.recall("what does Anna drink?", depth="shallow", limit=2)
    assert found[0].record.content == TEA, found
    assert (
        memory.recall("what does Anna drink?", scope="/people/ben", depth="shallow")[0].record.content != TEA
    )

    # Another object, as in another process, has the same records, to the letter.
    again = PlainmindStorage(notes)
    assert again.get_record(tea.id).model_dump(exclude={"last_accessed", "embedding"}) == tea.model_dump(
        exclude={"last_accessed", "embedding"}
    )
    assert again.count() == 2
    assert again.count("/people/anna") == 1
    assert again.list_scopes("/") == ["/people"]
    assert again.list_scopes("/people") == ["/people/anna", "/people/ben"]
    assert again.list_categories() == {"drinks": 1, "things": 1}
    assert again.get_scope_info("/people").record_count == 2
    assert [one.content for one in again.list_records(limit=1, offset=1)] == [TEA]

    # By category and by what stands in the metadata; asynchronously too.
    (vector,) = storage.embedder(["tea or coffee?"])
    assert all("things" in one.categories for one, _ in storage.search(vector, categories=["things"]))
    assert [one.content for one, _ in storage.search(vector, metadata_filter={"by": "me"}, limit=1)] == [TEA]
    assert storage.search(vector, metadata_filter={"by": "you"}) == []
    assert asyncio.run(storage.asearch(vector, limit=1))[0][0].content == TEA

    # Changed, it keeps its id; saved twice, it is there once.
    storage.update(tea.model_copy(update={"content": "Anna drinks water now"}))
    assert storage.get_record(tea.id).content == "Anna drinks water now"
    (water,) = storage.embedder(["who drinks water?"])
    assert storage.search(water, limit=1)[0][0].id == tea.id
    storage.save([tea])
    assert storage.count() == 2

    # A vector that is not ours is refused with a sentence.
    try:
        storage.search([0.1] * 1536)
    except PlainmindError as error:
        assert "embedder=storage.embedder" in error.hint
    else:
        raise AssertionError("it was searched for")

    # Other people have other records; other entries are no records.
    theirs = PlainmindStorage(notes, context=SearchContext("anna", "direct", "", channel="app"))
    assert theirs.count() == 0
    theirs.save([MemoryRecord(content="a secret of Anna's")])
    assert storage.count() == 2
    storage.mine.entries.store("not of a crew", scope="private")
    assert storage.count() == 2
    assert asyncio.run(storage.adelete(record_ids=[tea.id])) == 1
    assert storage.delete(older_than=datetime(2020, 1, 1)) == 0  # noqa: DTZ001 (as CrewAI writes times)
    storage.reset()
    assert (storage.count(), theirs.count()) == (0, 1)
    assert len(storage.mine.entries.list(scopes=frozenset({"private"}))) == 1
    notes.close()
    print("all as promised")


main()
