"""LanceDB takes seconds to import on a busy machine: done here, before the clock of the first test starts."""

import pytest
from tests.support.index_contents import fingerprint

from plainmind.guests.lancedb.library import load
from plainmind.guests.lancedb.store import LanceStore

load()


@pytest.fixture
def store(tmp_path):
    """An index in the folder of a test, built and empty."""
    store = LanceStore(str(tmp_path))
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    yield store
    store.close()
