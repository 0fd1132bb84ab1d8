"""What a server keeps between requests: who may ask, what was shown before it is forgotten, what has happened."""

from __future__ import annotations

from plainmind.agent.scope import SearchContext
from plainmind.guests.page.notes import Previews
from plainmind.guests.page.tokens import Callers


class Keeper:
    """One for a server, shared by all requests."""

    def __init__(self, callers: Callers, *, read_only: bool) -> None:
        self.callers = callers
        self.is_read_only = read_only
        self.previews = Previews()
        self.nobody = SearchContext("", "", "")  # who has shown no token yet

    def tell_forgotten(self, path: str) -> None:
        """Let those who listen know that lines of a file are gone for good."""
