"""`init`: make a workspace, and tell a coding agent about it."""

from __future__ import annotations

import argparse

from plainmind.base.errors import shell_word
from plainmind.cli.console import Console
from plainmind.cli.opening import opened
from plainmind.cli.options import describe


def add_init(parser: argparse.ArgumentParser) -> None:
    """Say what `init` takes."""
    describe(
        parser,
        """\
Make a workspace: MEMORY.md for what stays true, memory/ for daily notes. What is there already is left alone.

Goes to DIR, or to the workspace that is used anyway (`plainmind status` names it), at first
~/.plainmind/workspace.""",
        examples=("plainmind init", "plainmind init ~/notes", "plainmind init . --write-agents-md"),
        run=run_init,
    )
    parser.add_argument("folder", metavar="DIR", nargs="?", help="the folder to make a workspace of")
    parser.add_argument(
        "--agents", action="store_true", help="print a few lines that tell a coding agent to use the memory"
    )
    parser.add_argument(
        "--write-agents-md",
        "--write",
        dest="write",
        action="store_true",
        help="put these lines into AGENTS.md (or CLAUDE.md, when only that is there) of the workspace",
    )


def run_init(arguments: argparse.Namespace, console: Console) -> int:
    """Create what is missing and say what to do next."""
    from plainmind.memory.creating import RECALL_INSTRUCTION, create_workspace, tell_agents

    if arguments.folder is not None:
        arguments.workspace = arguments.folder
    with opened(arguments) as memory:
        created = create_workspace(memory.parts)
        told = tell_agents(memory.parts) if arguments.write else None
        origin = memory.parts.places.workspace.origin
    if console.json:
        fields = {"workspaceDir": memory.workspace, "created": list(created)}
        agents = None if told is None else {"path": told.path, "changed": told.changed}
        console.result({**fields, "agentsFile": agents, "instruction": RECALL_INSTRUCTION})
        return 0
    if created:
        console.say(f"made {' and '.join(created)} in {memory.workspace}")
    else:
        console.say(f"{memory.workspace} is a workspace already; nothing was changed")
    if told is not None:
        console.say(
            f"{'wrote the instruction into' if told.changed else 'the instruction is already in'} {told.path}"
        )
    if arguments.agents:
        console.answer(RECALL_INSTRUCTION)
    else:
        _next_steps(console, memory.workspace, must_be_named=origin.kind == "flag")
    return 0


def _next_steps(console: Console, workspace: str, *, must_be_named: bool) -> None:
    console.say("\nNext:")
    if must_be_named:
        console.say(
            f"  plainmind config set workspace {shell_word(workspace)}    use it from anywhere (or cd there)"
        )
    console.say('  plainmind remember "The printer is on VLAN 40."')
    console.say('  plainmind search "which VLAN is the printer on?"')
