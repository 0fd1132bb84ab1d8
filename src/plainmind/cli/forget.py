"""`forget`: remove lines for good, after showing them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from plainmind.base.errors import NotFound, PlainmindError, shell_word
from plainmind.base.model import PRIVATE
from plainmind.base.value import replace
from plainmind.cli.console import Console, is_terminal, plural
from plainmind.cli.options import describe, open_memory, text_of
from plainmind.text.note_format import without_note_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.forget import StillThere
    from plainmind.notes.notebook import Forgotten

_MOST_NAMES = 3


def add_forget(parser: argparse.ArgumentParser) -> None:
    """Say what `forget` takes."""
    describe(
        parser,
        """\
Remove lines and entries for good. Shows them and asks first.

They go from the files of the workspace, the entries, the index, the cache and the history: `restore` cannot bring them
back. So does a text that you deleted in an editor, and that only older versions or the index have. Conversations stay
as they are; those that have the text too are named.""",
        examples=(
            'plainmind forget "the code of the door is"',
            "plainmind forget memory/2026-02-10.md#L3-L5 --dry-run",
            "plainmind forget 01JM2V7Q9Z5W8K3B4N6P7R8S9T --yes",
        ),
        run=run_forget,
    )
    parser.add_argument(
        "words",
        metavar="WHAT",
        nargs="+",
        help="lines by citation (`MEMORY.md#L3-L5`), a note or an entry by its id, or every line with this text and"
        " every entry with its words; - reads stdin",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_forget(arguments: argparse.Namespace, console: Console) -> int:
    """Show what would go, ask, remove it."""
    what = text_of(arguments.words)
    with open_memory(arguments) as memory:
        try:
            chosen = memory.forget(what, dry_run=True)
        except NotFound:
            _name_what_stays(memory.still_there([what]), console)
            raise
        going = {entry.id for entry in chosen.entries}
        staying = memory.still_there(chosen)
        staying = replace(staying, entries=tuple(id_ for id_ in staying.entries if id_ not in going))
        if not console.json:
            _show(chosen, console)
            _name_what_stays(staying, console)
            _tell(chosen.remarks, console)
        if arguments.dry_run:
            if console.json:
                console.result(_as_json(chosen, staying))
            return 0
        if not arguments.yes and not _agree(chosen, console):
            console.say("nothing was removed")
            return 1
        # What was shown is what goes: a file that changed since is refused.
        forgotten = memory.forget(chosen)
    if console.json:
        console.result(_as_json(forgotten, staying))
    else:
        _tell([remark for remark in forgotten.remarks if remark not in chosen.remarks], console)
        console.say(f"removed {_what_went(forgotten)}")
    return 0


def _show(chosen: Forgotten, console: Console) -> None:
    if not chosen.lines and not chosen.entries:
        console.say("no file has this any more; it would go from older versions and from the index")
    for lines in chosen.lines:
        last = "" if lines.end_line == lines.start_line else f"-{lines.end_line}"
        console.answer(console.style(f"{console.printable(lines.path)}:{lines.start_line}{last}", "path"))
        for line in console.printable(without_note_ids(lines.text)).split("\n"):
            console.answer(f"  {line}".rstrip())
    for entry in chosen.entries:
        whose = "" if entry.scope == PRIVATE else f" for {entry.scope}"
        console.answer(console.style(console.printable(f"entry {entry.id}{whose}"), "path"))
        for line in console.printable(entry.text).split("\n"):
            console.answer(f"  {line}".rstrip())


def _what_went(forgotten: Forgotten) -> str:
    lines = sum(part.end_line - part.start_line + 1 for part in forgotten.lines)
    entries, past = len(forgotten.entries), forgotten.versions_cleaned
    if not lines and not entries:
        return f"it from {plural(past, 'older version')}" if past else "what was left of it in the index"
    went = [plural(lines, "line")] if lines else []
    went += [plural(entries, "entry", "entries")] if entries else []
    return " and ".join(went) + (f", also from {plural(past, 'older version')}" if past else "")


def _tell(remarks: Sequence[str], console: Console) -> None:
    for remark in remarks:
        console.note(remark)


def _name_what_stays(staying: StillThere, console: Console) -> None:
    """Say where else the text is: nobody should believe that it is gone from there too."""
    if staying.entries:
        found = plural(len(staying.entries), "entry", "entries")
        console.note(f"this text stays in {found}: {_some(staying.entries)}")
        console.hint(f"`plainmind entries forget {_name(staying.entries, 'ID')}` removes it")
    if staying.sessions:
        found = plural(len(staying.sessions), "conversation")
        console.note(f"this text stays in {found}: {_some(staying.sessions)}")
        name = _name(staying.sessions, "NAME")
        console.hint(f"`plainmind sessions delete {name}` removes all that was said there")
    if staying.typed:
        console.note(f"this text stays in what you typed in chats: {staying.typed}")
        console.hint("delete that file, or the line in it")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _name(names: Sequence[str], placeholder: str) -> str:
    return shell_word(names[0]) if len(names) == 1 else placeholder


def _agree(chosen: Forgotten, console: Console) -> bool:
    places = len(chosen.lines) + len(chosen.entries)
    if console.json or not is_terminal(sys.stdin):
        what = plural(places, "place") if places else "what is left of it"
        raise PlainmindError(
            f"nobody is there to ask whether {what} may go; nothing was removed",
            hint="--yes removes it without asking, --dry-run only shows it",
        )
    print(
        f"Remove {'these' if places > 1 else 'this'} for good? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _as_json(forgotten: Forgotten, staying: StillThere) -> dict[str, Any]:
    return {
        "applied": forgotten.applied,
        "lines": [
            {"path": lines.path, "startLine": lines.start_line, "endLine": lines.end_line, "text": lines.text}
            for lines in forgotten.lines
        ],
        "entries": [
            {"id": entry.id, "text": entry.text, "scope": entry.scope} for entry in forgotten.entries
        ],
        "versionsCleaned": forgotten.versions_cleaned,
        "remarks": list(forgotten.remarks),
        "stillIn": {
            "entries": list(staying.entries),
            "sessions": list(staying.sessions),
            "chatHistory": staying.typed,
        },
    }
