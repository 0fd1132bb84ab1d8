"""What was said is found as soon as it was said; what nobody waits for is indexed when there is enough of it."""

from __future__ import annotations

import threading

import pytest

from plainmind import Memory
from plainmind.sessions.store import SessionStore

SEARCHED = {"sources": ["memory", "sessions"], "provider": "builtin"}


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace", tmp_path / "home"


def said(memory, *texts, key="chat"):
    session = memory.sessions.open_or_create(key)
    for text in texts:
        session.append({"role": "user", "content": text})


def found(memory, question):
    return [hit.snippet for hit in memory.search(question, sources=["sessions"]).hits]


def test_a_search_finds_the_newest_message_however_little_it_is(folders):
    with Memory(*folders, config=SEARCHED) as memory:
        said(memory, "the gateway runs on a Mac Studio")
        assert "Mac Studio" in found(memory, "gateway")[0]
        said(memory, "the espresso machine wants descaling")
        assert "descaling" in found(memory, "espresso descaling")[0]


def test_a_watcher_leaves_a_little_more_of_a_conversation_until_there_is_enough(folders):
    patient = SEARCHED | {"sync": {"sessions": {"deltaBytes": 1_000_000, "deltaMessages": 3}}}
    with Memory(*folders, config=patient) as memory:
        said(memory, "the first thing")
        memory.sync()
        said(memory, "the second thing")
        index = memory.index
        assert index.sync_in_background().indexed == ()
        said(memory, "the third thing", "the fourth thing")
        assert len(index.sync_in_background().indexed) == 1
        assert index.sync_in_background().indexed == ()


def test_whoever_asks_for_a_sync_waits_for_nothing(folders):
    with Memory(*folders, config=SEARCHED) as memory:
        said(memory, "the first thing")
        memory.sync()
        said(memory, "the second thing")
        assert len(memory.sync().indexed) == 1


@pytest.mark.timeout(60)
def test_a_watcher_notices_what_is_said(folders):
    eager = SEARCHED | {"sync": {"sessions": {"deltaBytes": 1, "deltaMessages": 1}}}
    stop = threading.Event()
    with Memory(*folders, config=eager) as memory:
        said(memory, "the first thing")
        reports = memory.watch(stop)
        next(reports)
        said(memory, "the gateway moved to Hetzner")
        for report in reports:
            if report.indexed:
                stop.set()
                break
        with memory.index.store.reading() as reader:
            assert reader.counts().chunks["sessions"] == 2


def test_conversations_kept_as_documents_are_searched_too(folders):
    with Memory(*folders, config=SEARCHED) as memory:
        session = SessionStore(memory.sessions.folder, format="json5").create("chat")
        session.append({"role": "user", "content": "the gateway runs on a Mac Studio"})
        (hit,) = memory.search("gateway", sources=["sessions"]).hits
        assert "Mac Studio" in hit.snippet
        assert "Mac Studio" in memory.get(hit.citation or hit.path).text
