"""`flush`: save what lasts of a conversation now, without waiting for its context to be full."""

from __future__ import annotations

import argparse

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console
from plainmind.cli.options import describe, open_memory


def add_flush(parser: argparse.ArgumentParser) -> None:
    """Say what `flush` takes."""
    describe(
        parser,
        """\
Let the chat model save what lasts of a conversation, as far as it was said since the last time. The model can only
add a note: to today's log in the workspace, or to that of the group whose conversation it is. `plainmind chat` does
the same by itself before a context is compacted.

What was said is sent to the chat model (`chat.baseUrl`).""",
        examples=("plainmind flush", "plainmind flush --session claude-code:5f0c --model gpt-5-mini"),
        run=run_flush,
    )
    parser.add_argument(
        "--session", metavar="NAME", help="its key, its id, or the beginning of one (agent:main:main)"
    )
    parser.add_argument("--model", metavar="NAME", help="the model, instead of `chat.model`")


def run_flush(arguments: argparse.Namespace, console: Console) -> int:
    """Ask the model, and say what was saved."""
    from plainmind.guests.chat.chatting import converse, usual_key
    from plainmind.guests.chat.flush import FAILED
    from plainmind.guests.chat.listener import Listener
    from plainmind.memory.session_pages import find_session

    with open_memory(arguments) as memory:
        name = arguments.session or usual_key(memory.settings)
        conversation = converse(memory, find_session(memory.sessions, name), model=arguments.model)
        try:
            flushed = conversation.flush(Listener(), by_hand=True)
        finally:
            conversation.close()
    if flushed.outcome == FAILED:
        raise PlainmindError(
            f"nothing was saved: {flushed.reason}",
            hint="it is written down, and tried again before a compaction",
        )
    note = flushed.note
    if console.json:
        place = note and {
            "path": note.path,
            "startLine": note.start_line,
            "endLine": note.end_line,
            "id": note.id,
        }
        console.result({"session": name, "outcome": flushed.outcome, "note": place, "text": flushed.text})
        return 0
    if note is None:
        console.say("nothing new was worth saving")
        return 0
    last = "" if note.end_line == note.start_line else f"-{note.end_line}"
    console.say(f"saved to {console.style(f'{note.path}:{note.start_line}{last}', 'path')}")
    console.say(console.printable(flushed.text))
    return 0
