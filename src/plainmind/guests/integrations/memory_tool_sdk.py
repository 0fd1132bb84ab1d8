"""Claude's memory tool as a class of the `anthropic` package, for its tool runner. Needs the extra `anthropic`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plainmind.guests.integrations.framework import FrameworkMissing

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand as Create,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818DeleteCommand as Delete,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818InsertCommand as Insert,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818RenameCommand as Rename,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818StrReplaceCommand as StrReplace,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818ViewCommand as View,
    )
except ImportError as error:
    raise FrameworkMissing("The package `anthropic`", "anthropic", error) from error

if TYPE_CHECKING:
    from plainmind.guests.integrations.memory_tool import MemoryTool


class PlainmindMemoryTool(BetaAbstractMemoryTool):
    """The notes of a workspace for `client.beta.messages.tool_runner(tools=[…])`.

    The tool that it wraps says what may be seen; `clear_all_memory` stays undone: nothing here is removed wholesale.
    """

    def __init__(self, tool: MemoryTool, **options: Any) -> None:
        super().__init__(**options)
        self._tool = tool

    def view(self, command: View) -> str:
        """View a folder or a file."""
        return self._call(command)

    def create(self, command: Create) -> str:
        """Create a file."""
        return self._call(command)

    def str_replace(self, command: StrReplace) -> str:
        """Replace a text that stands in a file once."""
        return self._call(command)

    def insert(self, command: Insert) -> str:
        """Insert a text after a line."""
        return self._call(command)

    def delete(self, command: Delete) -> str:
        """Delete a file or a folder."""
        return self._call(command)

    def rename(self, command: Rename) -> str:
        """Rename a file or a folder."""
        return self._call(command)

    def _call(self, command: View | Create | StrReplace | Insert | Delete | Rename) -> str:
        answer = self._tool.call(command.to_dict())
        if answer.is_error:
            raise ToolError(answer.text)
        return answer.text
