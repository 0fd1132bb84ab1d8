"""What a process keeps between searches, within one budget of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RecentlyUsed:
    """Values within a budget of bytes: what was not asked for longest goes first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        # By last use. A plain dictionary, too, has an order, but finding its first key again and again is slow.
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, default: Any = None) -> Any:
        """What is kept under a key."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return default
            self._entries.move_to_end(key)
        return entry[0]

    def get_all(self, keys: Iterable[Hashable]) -> tuple[dict[Any, Any], list[Any]]:
        """What is kept under many keys, and the keys under which there is nothing."""
        found, missing = {}, []
        get, move_to_end = self._entries.get, self._entries.move_to_end
        with self._lock:
            for key in keys:
                entry = get(key)
                if entry is None:
                    missing.append(key)
                else:
                    move_to_end(key)
                    found[key] = entry[0]
        return found, missing

    def put(self, key: Hashable, found: Any, size: int) -> None:
        """Keep something of about this many bytes."""
        self.put_all({key: (found, size)})

    def put_all(self, entries: Mapping[Any, tuple[Any, int]]) -> None:
        """Keep many things, each with about how many bytes it has."""
        with self._lock:
            for key, entry in entries.items():
                replaced = self._entries.pop(key, None)
                self._entries[key] = entry
                self._size += entry[1] - (replaced[1] if replaced else 0)
            while self._size > self.most_bytes:
                _, (_, size) = self._entries.popitem(last=False)
                self._size -= size
