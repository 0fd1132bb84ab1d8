"""LanceDB takes seconds to import on a busy machine: done here, before the clock of the first test starts."""

from commonplace.store.lancedb.library import load

load()
