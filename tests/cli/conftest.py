"""A home, a workspace and the command line, for every test of a command."""

from tests.support.command_line import as_plain_user, cli, home, process, workspace

__all__ = ["as_plain_user", "cli", "home", "process", "workspace"]
