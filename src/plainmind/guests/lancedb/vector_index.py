"""How a large table's vectors are indexed: in how many partitions, and how many of them a search looks into."""

from __future__ import annotations

# A table with fewer vectors is sooner compared as a whole than by an index, which also takes long to make.
INDEX_FROM = 100_000
# Of the partitions, one in so many is looked into: on clustered vectors .998 of the nearest 48 are found.
_ONE_IN = 4
_LEAST_PROBES = 24


def partitions_for(chunk_count: int) -> int:
    """Into how many partitions so many vectors are divided."""
    return max(2, int(chunk_count**0.5 / 2))


def probes_for(chunk_count: int) -> int:
    """Into how many of them a search looks."""
    return max(_LEAST_PROBES, partitions_for(chunk_count) // _ONE_IN)
