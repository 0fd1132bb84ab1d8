"""`entries`: single things to remember, stored, recalled and forgotten one by one; and what waits to be accepted."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.cli.console import Console, plural, size_in_words
from plainmind.cli.options import commands_below, describe, open_memory, share, text_of, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.entries.memory import EntryMemory
    from plainmind.guests.entries.model import Entry, Stored

_CATEGORIES = ("preference", "fact", "decision", "entity", "other")
_DUPLICATE = 1
_LEAST_OF_ID = 6  # less of an id is a slip of the finger, and would still find the only entry there is


def add_entries(parser: argparse.ArgumentParser) -> None:
    """Say what `entries` takes."""
    parser.set_defaults(limit=None, category=None)  # of the list, which is printed when nothing else is said
    describe(
        parser,
        """\
Keep single things worth remembering: a sentence with a category and an importance, found again by meaning and by word.
They are one JSON object a line in ~/.plainmind/entries, for you to read and edit; the index beside them is in LanceDB,
which is installed with the extra `lancedb`.

What says the same as an entry that is there is refused. Agents get tools for entries when `entries.enabled` is true;
what was captured by itself, with `entries.autoCapture`, waits until you accept it.""",
        examples=(
            "plainmind entries store 'Anna prefers tea' --category preference",
            "plainmind entries recall 'what does Anna drink?'",
            "plainmind entries review --accept 01J9ZK3V",
        ),
        run=run_list,
    )
    add = commands_below(parser)

    storing = add(
        "store", "keep an entry", "plainmind entries store 'The gateway runs on port 8080'", run_store
    )
    storing.add_argument("text", metavar="TEXT", nargs="+", help="what to remember; `-` reads it from stdin")
    storing.add_argument("--category", choices=_CATEGORIES, default="other", help="what it is (other)")
    storing.add_argument(
        "--importance", metavar="I", type=share, default=0.7, help="how much it matters, from 0 to 1 (0.7)"
    )
    storing.add_argument("--replacing", metavar="ID", help="the entry that this one takes the place of")
    storing.add_argument(
        "--anyway", action="store_true", help="keep it beside an entry that says the same already"
    )

    recalling = add(
        "recall",
        "find the entries that answer a question",
        "plainmind entries recall 'which port?'",
        run_recall,
    )
    recalling.add_argument("query", metavar="QUERY", nargs="+", help="a question, or a few words")
    recalling.add_argument(
        "-n", dest="limit", metavar="N", type=whole_number(1, 1_000), default=5, help="at most N entries (5)"
    )
    recalling.add_argument(
        "--min-score", metavar="S", type=share, default=0.25, help="leave out what scores less (0.25)"
    )

    listing = add("list", "list the entries, the newest first", "plainmind entries list -n 20", run_list)
    _add_choice(listing)

    forgetting = add(
        "forget",
        "remove entries for good, from everywhere",
        "plainmind entries forget 01J9ZK3V",
        run_forget,
    )
    forgetting.add_argument("ids", metavar="ID", nargs="+", help="its id, or the beginning of it")
    forgetting.add_argument("-y", "--yes", action="store_true", help="do not ask")

    add("stats", "count the entries, and say where they are", "plainmind entries stats", run_stats)

    reviewing = add(
        "review",
        "show what was captured and waits, and accept or reject it",
        "plainmind entries review --accept 01J9ZK3V --reject 01J9ZK4A",
        run_review,
    )
    reviewing.add_argument("--accept", metavar="ID", nargs="+", default=[], help="keep these from now on")
    reviewing.add_argument("--reject", metavar="ID", nargs="+", default=[], help="drop these for good")
    all_of_them = reviewing.add_mutually_exclusive_group()
    all_of_them.add_argument("--accept-all", action="store_true", help="keep all that wait")
    all_of_them.add_argument("--reject-all", action="store_true", help="drop all that wait")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", dest="limit", metavar="N", type=whole_number(1), help="at most N entries")
    parser.add_argument("--category", choices=_CATEGORIES, help="only these")


def run_store(arguments: argparse.Namespace, console: Console) -> int:
    """Keep an entry, or say which one says the same."""
    text = text_of(arguments.text)
    with _entries(arguments) as entries:
        replacing = _full_id(entries, arguments.replacing) if arguments.replacing else None
        stored = entries.store(
            text,
            scope=PRIVATE,
            category=arguments.category,
            importance=arguments.importance,
            replacing=replacing,
            anyway=arguments.anyway,
        )
    for reason in stored.degraded:
        console.note(reason)
    if console.json:
        console.result(_as_json(stored))
    elif stored.entry is not None:
        console.say(f"stored as {stored.entry.id}")
    elif stored.twin is not None:
        console.answer(f"not stored: this says the same ({stored.similarity:.2f})")
        _print_entry(console, stored.twin)
        console.hint(f"`--replacing {stored.twin.id}` puts the new one in its place, `--anyway` keeps both")
    return 0 if stored.entry is not None else _DUPLICATE


def run_recall(arguments: argparse.Namespace, console: Console) -> int:
    """Print what answers the question."""
    with _entries(arguments) as entries:
        recall = entries.recall(
            text_of(arguments.query), scopes=EVERY_SCOPE, limit=arguments.limit, min_score=arguments.min_score
        )
    for reason in recall.degraded:
        console.note(reason)
    if console.json:
        found = [
            {
                **each.entry.as_json(),
                "score": round(each.score, 4),
                "similarity": round(each.similarity, 4),
                "wordScore": round(each.word_score, 4),
            }
            for each in recall.found
        ]
        console.result({"entries": found, "degraded": list(recall.degraded)})
        return 0
    for each in recall.found:
        _print_entry(console, each.entry, f"score {each.score:.2f}")
    if not recall.found:
        console.say("no entry matches this")
    return 0


def run_list(arguments: argparse.Namespace, console: Console) -> int:
    """Print the entries that are kept."""
    with _entries(arguments) as entries:
        found = entries.list(scopes=EVERY_SCOPE, category=arguments.category, limit=arguments.limit)
        waiting = len(entries.list(scopes=EVERY_SCOPE, waiting=True))
    if console.json:
        console.result({"entries": [entry.as_json() for entry in found], "waiting": waiting})
        return 0
    for entry in found:
        _print_entry(console, entry)
    if not found:
        console.say("there are no entries yet")
    if waiting:
        console.hint(
            f"{plural(waiting, 'captured entry', 'captured entries')} to review: `plainmind entries review`"
        )
    return 0


def run_forget(arguments: argparse.Namespace, console: Console) -> int:
    """Remove entries for good."""
    with _entries(arguments) as entries:
        ids = [_full_id(entries, given) for given in arguments.ids]
        chosen = [entry for entry in _everything(entries) if entry.id in ids]
        # An id that nothing has is refused below, and all others with it.
        if not arguments.yes and len(chosen) == len(set(ids)):
            if not console.json:
                for entry in chosen:
                    _print_entry(console, entry)
            if not console.may_remove(
                plural(len(chosen), "entry", "entries"), "these" if len(chosen) > 1 else "this"
            ):
                console.say("nothing was removed")
                return 1
        gone = entries.forget(ids, scopes=EVERY_SCOPE)
    if console.json:
        console.result({"forgotten": [entry.id for entry in gone]})
    else:
        console.say(f"forgot {plural(len(gone), 'entry', 'entries')} for good")
    return 0


def run_stats(arguments: argparse.Namespace, console: Console) -> int:
    """Print how many there are, and where."""
    with _entries(arguments) as entries:
        facts = entries.stats(scopes=EVERY_SCOPE)
    if console.json:
        console.result(facts)
        return 0
    console.answer(str(facts["path"]))
    console.answer(
        f"{plural(facts['entries'], 'entry', 'entries')}, {size_in_words(facts['bytes'])};"
        f" {facts['waiting']} to review"
    )
    if facts["unreadable"]:
        console.note(f"{plural(facts['unreadable'], 'line', 'lines')} of the file cannot be read as an entry")
    for category, count in sorted(facts["categories"].items()):
        console.answer(f"  {category}: {count}")
    index = facts["index"]
    console.answer(f"index: {index['driver']}, {size_in_words(index.get('bytes', 0))}, {index['path']}")
    return 0


def run_review(arguments: argparse.Namespace, console: Console) -> int:
    """Show what waits, or decide about it."""
    with _entries(arguments) as entries:
        waiting = [entry.id for entry in entries.list(scopes=EVERY_SCOPE, waiting=True)]
        accepted = [_waiting_id(waiting, given) for given in arguments.accept]
        rejected = [_waiting_id(waiting, given) for given in arguments.reject]
        if both := {*accepted} & {*rejected}:
            raise PlainmindError(f"`{min(both)}` cannot be accepted and rejected", hint="name it once")
        accepted += [id_ for id_ in waiting if arguments.accept_all and id_ not in {*accepted, *rejected}]
        rejected += [id_ for id_ in waiting if arguments.reject_all and id_ not in {*accepted, *rejected}]
        kept = entries.accept(accepted, scopes=EVERY_SCOPE) if accepted else ()
        gone = entries.reject(rejected, scopes=EVERY_SCOPE) if rejected else ()
        left = entries.list(scopes=EVERY_SCOPE, waiting=True)
    if console.json:
        console.result(
            {
                "accepted": [_as_json(stored) for stored in kept],
                "rejected": [entry.id for entry in gone],
                "waiting": [entry.as_json() for entry in left],
            }
        )
        return 0
    for stored in kept:
        if stored.entry is not None:
            console.say(f"kept {stored.entry.id}")
        elif stored.twin is not None:
            console.say(f"dropped one that says the same as {stored.twin.id}")
    if gone:
        console.say(f"dropped {plural(len(gone), 'entry', 'entries')}")
    for entry in left:
        _print_entry(console, entry)
    if left:
        console.hint("`--accept ID` keeps one, `--reject ID` drops it for good")
    else:
        console.say("nothing waits to be reviewed")
    return 0


@contextmanager
def _entries(arguments: argparse.Namespace) -> Iterator[EntryMemory]:
    """Open the entries of the agent that the options name."""
    from plainmind.guests.entries.access import entry_memory_of

    with open_memory(arguments) as memory:
        entries = entry_memory_of(memory)
        try:
            yield entries
        finally:
            entries.close()


def _full_id(entries: EntryMemory, given: str) -> str:
    """The id that begins as given; what no id begins with is left for the memory to refuse."""
    return _begun([entry.id for entry in _everything(entries)], given) or given


def _everything(entries: EntryMemory) -> tuple[Entry, ...]:
    return (*entries.list(scopes=EVERY_SCOPE), *entries.list(scopes=EVERY_SCOPE, waiting=True))


def _waiting_id(waiting: Sequence[str], given: str) -> str:
    """The id of a captured entry: one that was kept long ago is not rejected by a slip."""
    found = _begun(waiting, given)
    if found is None:
        raise NotFound(
            f"no entry that waits has the id `{given[:60]}`",
            hint="`plainmind entries review` shows those; `plainmind entries forget` removes one that is kept",
        )
    return found


def _begun(ids: Sequence[str], given: str) -> str | None:
    """The only id that begins as given; None when there is none."""
    if given in ids:
        return given
    found = [id_ for id_ in ids if id_.upper().startswith(given.upper())]
    if not found:
        return None
    if len(given) < _LEAST_OF_ID:
        raise PlainmindError(
            f"`{given}` is too little of an id", hint=f"give {_LEAST_OF_ID} characters of it"
        )
    if len(found) > 1:
        raise PlainmindError(
            f"{len(found)} entries have ids that begin with `{given}`", hint="give more of it"
        )
    return found[0]


def _print_entry(console: Console, entry: Entry, more: str = "") -> None:
    whose = "" if entry.scope == PRIVATE else f"for {entry.scope}"
    facts = filter(None, (entry.category, f"importance {entry.importance:g}", entry.day, whose, more))
    console.answer(
        f"{console.style(entry.id, 'path')}  {console.style(console.printable(' · '.join(facts)), 'dim')}"
    )
    console.answer(f"  {console.printable(entry.text)}")


def _as_json(stored: Stored) -> dict[str, object]:
    return {
        "stored": stored.entry.as_json() if stored.entry else None,
        "twin": stored.twin.as_json() if stored.twin else None,
        "similarity": round(stored.similarity, 4),
        "degraded": list(stored.degraded),
    }
