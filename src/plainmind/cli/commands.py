"""Every command by name: a line about it, and the module that is imported when somebody uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser


@value
class Command:
    """A command that need not be imported to be listed."""

    name: str
    module: str  # in this package; has `add_<name>(parser)`
    summary: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Tell the parser what the command takes, and what it runs."""
        from importlib import import_module

        module = import_module(f"plainmind.cli.{self.module}")
        add: Callable[[ArgumentParser], None] = getattr(module, f"add_{self.name.replace('-', '_')}")
        add(parser)


_IN_ORDER = (
    Command("init", "starting", "make a workspace to keep notes in"),
    Command("remember", "writing", "write a note down"),
    Command("search", "searching", "find the lines that answer a question"),
    Command("get", "reading", "read lines of a file"),
    Command("list", "reading", "list the files of the memory"),
    Command("edit", "writing", "replace a text in a file, or open it in your editor"),
    Command("forget", "forgetting", "remove lines for good, from everywhere"),
    Command("history", "past", "show what was changed, and what files were before"),
    Command("restore", "past", "bring back what a file was"),
    Command("sync", "indexing", "bring the index up to date now"),
    Command("watch", "indexing", "keep the index up to date until you stop it"),
    Command("status", "health", "say what is known, where it is kept and what leaves this machine"),
    Command("doctor", "health", "look for everything that could be wrong"),
    Command("config", "configuring", "show and change settings"),
    Command("migrate-store", "migrating", "move the index to another store, without embedding again"),
    Command("cache", "caching", "look at the cache of embeddings, and make it smaller"),
    Command("sessions", "sessions", "look at conversations, search and change them"),
    Command("entries", "entries", "keep single things to remember, with category and importance"),
    Command("chat", "chatting", "talk with a model that has this memory"),
    Command("flush", "flushing", "save what lasts of a conversation before it is compacted"),
    Command("mcp", "serving_mcp", "serve the memory to any program that speaks MCP"),
    Command("import", "importing", "copy the conversations of other programs, to search them"),
    Command("redact", "redacting", "show which secrets of a text would be hidden"),
    Command("export", "exporting", "write the whole memory into one file"),
    Command("bench", "bench", "measure how good the answers are"),
    Command("completion", "completing", "print a completion script for your shell"),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _IN_ORDER}
