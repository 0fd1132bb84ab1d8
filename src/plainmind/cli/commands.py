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
    module: str  # below plainmind; has `add_<name>(parser)`
    summary: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Tell the parser what the command takes, and what it runs."""
        from importlib import import_module

        module = import_module(f"plainmind.{self.module}")
        add: Callable[[ArgumentParser], None] = getattr(module, f"add_{self.name.replace('-', '_')}")
        add(parser)


_IN_ORDER = (
    Command("init", "cli.starting", "make a workspace to keep notes in"),
    Command("remember", "cli.writing", "write a note down"),
    Command("search", "cli.searching", "find the lines that answer a question"),
    Command("get", "cli.reading", "read lines of a file"),
    Command("list", "cli.reading", "list the files of the memory"),
    Command("edit", "cli.writing", "replace a text in a file, or open it in your editor"),
    Command("forget", "cli.forgetting", "remove lines for good, from everywhere"),
    Command("history", "cli.past", "show what was changed, and what files were before"),
    Command("restore", "cli.past", "bring back what a file was"),
    Command("sync", "cli.indexing", "bring the index up to date now"),
    Command("watch", "cli.indexing", "keep the index up to date until you stop it"),
    Command("status", "cli.health", "say what is known, where it is kept and what leaves this machine"),
    Command("doctor", "cli.health", "look for everything that could be wrong"),
    Command("config", "cli.configuring", "show and change settings"),
    Command("migrate-store", "cli.migrating", "move the index to another store, without embedding again"),
    Command("cache", "cli.caching", "look at the cache of embeddings, and make it smaller"),
    Command("sessions", "cli.sessions", "look at conversations, search and change them"),
    Command(
        "entries", "guests.entries.commands", "keep single things to remember, with category and importance"
    ),
    Command("chat", "guests.chat.commands", "talk with a model that has this memory"),
    Command("flush", "guests.chat.flush_command", "save what lasts of a conversation before it is compacted"),
    Command("mcp", "cli.serving_mcp", "serve the memory to any program that speaks MCP"),
    Command(
        "import", "guests.importers.commands", "copy the conversations of other programs, to search them"
    ),
    Command("redact", "cli.redacting", "show which secrets of a text would be hidden"),
    Command("export", "cli.exporting", "write the whole memory into one file"),
    Command("bench", "guests.evaluation.commands", "measure how good the answers are"),
    Command("completion", "cli.completing", "print a completion script for your shell"),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _IN_ORDER}
