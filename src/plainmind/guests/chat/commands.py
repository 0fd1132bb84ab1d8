"""`chat` and `flush`: talk with a model that has this memory, and save what lasts of a conversation."""

from __future__ import annotations

import argparse
import sys

from plainmind.base.errors import PlainmindError
from plainmind.cli.console import Console, is_terminal
from plainmind.cli.options import describe, open_memory, some_text, text_of_argument


def add_chat(parser: argparse.ArgumentParser) -> None:
    """Say what `chat` takes."""
    describe(
        parser,
        """\
Talk with a model that has this memory: it searches it, reads in it, and saves to it. Every turn is on disk before the
model is asked. When the context becomes full, what lasts is saved to today's log, and the rest becomes a summary.

Needs an endpoint, OpenAI-compatible or Anthropic's: `chat.provider`, `chat.baseUrl`, `chat.model` and a key. What you
say, and what is recalled, is sent there. The conversation is kept in ~/.plainmind/agents/main/sessions, notes go to
the workspace. At a terminal, /help lists what you can do; without one, each line of stdin is a turn.""",
        examples=(
            "plainmind chat --model gpt-5-mini",
            'plainmind chat --once "What did we decide about the gateway?"',
            "plainmind chat --config chat.baseUrl=http://127.0.0.1:11434/v1 --model qwen3",
        ),
        run=run_chat,
    )
    parser.add_argument(
        "--session", metavar="KEY", type=some_text, help="the conversation to continue (agent:main:main)"
    )
    parser.add_argument(
        "--new", action="store_true", help="begin a new one; the one before goes to the archive"
    )
    parser.add_argument("--model", metavar="NAME", help="the model, instead of `chat.model`")
    parser.add_argument("--once", metavar="TEXT", type=some_text, help="say this, print the answer, and end")
    parser.add_argument(
        "--resume", action="store_true", help="answer a turn first that got no answer; a terminal always does"
    )


def run_chat(arguments: argparse.Namespace, console: Console) -> int:
    """Lead a conversation."""
    from plainmind.guests.chat.access import open_conversation
    from plainmind.guests.chat.terminal import Chat, lines_of_stdin

    with open_memory(arguments) as memory:
        conversation = open_conversation(
            memory, arguments.session, model=arguments.model, is_new=arguments.new
        )
        if not conversation.access.is_allowed:
            console.note(f"without the memory: {conversation.access.reason}")
        chat = Chat(memory, conversation, console)
        try:
            if arguments.once is not None:
                return chat.take_lines(iter([text_of_argument(arguments.once)]), resume=arguments.resume)
            with memory.kept_fresh(_heard_with_the_next_search):
                if is_terminal(sys.stdin) and not console.json:
                    return chat.at_a_terminal()
                return chat.take_lines(lines_of_stdin(), resume=arguments.resume)
        finally:
            chat.conversation.close()


def _heard_with_the_next_search(_problem: str) -> None:
    """Say nothing now: the answer of a search says it, and does not come between the lines of another."""


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
    from plainmind.guests.chat.access import converse, usual_key
    from plainmind.guests.chat.conversation import Listener
    from plainmind.guests.chat.flush import FAILED
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
