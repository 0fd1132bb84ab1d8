"""Which texts travel together: as many as fit into one request, in their order."""

from __future__ import annotations

from collections.abc import Sequence


def grouped(texts: Sequence[str], *, max_items: int, max_tokens: int) -> list[list[str]]:
    """Cut into requests; a token is counted for each character, and a text that is too long goes alone."""
    groups: list[list[str]] = []
    size = max_tokens  # nothing fits any more: the first text begins a group
    for text in texts:
        if not groups or size + len(text) > max_tokens or len(groups[-1]) >= max_items:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text)
    return groups
