"""Who hears what happens in a conversation."""

from __future__ import annotations

from plainmind.guests.chat.models.protocol import ToolCall


class Listener:
    """Hears what happens in a conversation; by itself it listens to nothing and never stops anything."""

    def text(self, piece: str) -> None:
        """A piece of the answer."""

    def tool(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        """A tool was used."""

    def busy(self, text: str) -> None:
        """Something begins that takes a while."""

    def notice(self, text: str) -> None:
        """Something that the user should know, beside the answer."""

    def stopped(self) -> bool:
        """Whether the user has heard enough of this answer."""
        return False
