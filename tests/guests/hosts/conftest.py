"""A home and the command line."""

from tests.support.command_line import cli, home

__all__ = ["cli", "home"]
