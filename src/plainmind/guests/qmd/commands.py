"""`qmd`: the command line of QMD, answered from our own index.

What programs read of it is as in QMD 2.8.3: verbs, flags, JSON, exit codes. A question in words is answered too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.files.safe_open import expand_user, user_home_or_root
from plainmind.guests.qmd.catalogue import EVERY_NOTE, Catalogue, Shelf, Whereabouts
from plainmind.guests.qmd.desk import (
    CERTAIN,
    DOCID,
    Desk,
    Line,
    Refusal,
    find_document,
    measure,
    questions_in,
    read_line,
    search,
    similar_paths,
    tell,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from plainmind.cli.console import Console
    from plainmind.guests.qmd.documents import Listed

SPEAKS = "2.8.3"  # the version of QMD whose command line this is
_MOST_BYTES = 65_536
_ALL = 100_000


def add_qmd(parser: argparse.ArgumentParser) -> None:
    """Say what `qmd` takes."""
    from plainmind.cli.options import describe

    describe(
        parser,
        """\
Be QMD for programs that were written for it: its commands, flags, JSON and exit codes, answered from an index of ours.
Collections stand in QMD's own file, ~/.config/qmd/index.yml. All words behind `qmd` are read as QMD reads them:
`plainmind qmd --help` lists them. A link called `qmd` to this program is the same. Goes to ~/.cache/qmd.""",
        examples=(
            "plainmind qmd collection add ~/notes --name notes",
            "plainmind qmd search 'where does the gateway run' --json -n 4 -c notes",
            "plainmind qmd get notes/network.md:3 -l 2",
            "ln -s $(which plainmind) ~/.local/bin/qmd",
        ),
        run=_run_parsed,
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="a command of QMD, and its options")


def _run_parsed(arguments: argparse.Namespace, console: Console) -> int:
    del console  # what is printed is QMD's
    return run(arguments.words)


def run(words: Sequence[str]) -> int:
    """Do what QMD would do with these words; the exit status."""
    try:
        return _run(read_line(words))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
    except PlainmindError as error:
        print(error if not error.hint else f"{error} ({error.hint})", file=sys.stderr)
    return 1


def _run(line: Line) -> int:
    desk = Desk(line)
    if line.has("version"):
        print(f"qmd {SPEAKS} (plainmind {_own_version()})")
        return 0
    command = line.words[0] if line.words else ""
    if not command or line.has("help"):
        from plainmind.guests.qmd.formats import HELP

        print(HELP.format(version=SPEAKS, own=_own_version(), ledger=desk.where.ledger))
        return 0 if line.has("help") else 1
    _ = line.format  # a wrong one is refused, whatever the command
    verb = _VERBS.get(command)
    if verb is None:
        raise Refusal(
            f"Unknown command: {command}\nRun 'qmd --help' for usage.\n"
            "If qmd still behaves unexpectedly, run 'qmd doctor' for diagnostics."
        )
    return verb(desk, line.words[1:]) or 0


def _own_version() -> str:
    from plainmind import __version__

    return __version__


# --- search ---


def _search(desk: Desk, words: Sequence[str]) -> int:
    return _answer(desk, "search", " ".join(words))


def _vsearch(desk: Desk, words: Sequence[str]) -> int:
    return _answer(desk, "vsearch", " ".join(words))


def _query(desk: Desk, words: Sequence[str]) -> int:
    return _answer(desk, "query", " ".join(words))


def _answer(desk: Desk, verb: str, query: str) -> int:
    if not query:
        raise Refusal(f"Usage: qmd {verb} [options] <query>")
    from plainmind.guests.qmd.formats import Wishes, print_nothing, print_results

    line, catalogue = desk.line, desk.catalogue
    names = [desk.shelf(name).name for name in line.collections]
    if not names:
        names = [shelf.name for shelf in catalogue.readable.values() if shelf.is_default]
    questions = questions_in(query) if verb == "query" else [query]
    usual = 20 if line.format in {"json", "files"} else 5
    limit = _ALL if line.has("all") else line.number("n", usual) or usual
    found = search(desk, verb, questions, names, limit)
    least = _score(line.options.get("min-score", "")) or (CERTAIN if verb == "vsearch" else 0.0)
    results = [result for result in found if result.score >= least][:limit]
    if not results:
        _print(print_nothing(line.format, is_below=bool(found)))
        return 0
    wishes = Wishes(
        line.format, questions[0], desk.where.index, full=line.has("full"), numbered=line.has("line-numbers")
    )
    _print(print_results(results, wishes))
    return 0


def _score(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _print(text: str) -> None:
    if text:
        print(text)


# --- documents ---

_RANGE = pattern(r"(.+?):(\d+)(?::(\d+))?")


def _get(desk: Desk, words: Sequence[str]) -> int:
    if not words:
        raise Refusal(
            "Usage: qmd get <filepath>[:from[:count]] [--from <line>] [-l <lines>] [--no-line-numbers] [--full-path]"
        )
    from plainmind.guests.qmd.formats import number_lines

    asked, line = words[0], desk.line
    path, first, count = asked, line.number("from"), line.number("l")
    ranged = _RANGE.fullmatch(asked)
    if ranged is not None:
        path = ranged[1]
        first = first if first is not None else int(ranged[2])
        count = count if count is not None or ranged[3] is None else int(ranged[3])
    document = find_document(desk, path)
    if document is None:
        similar = [] if DOCID.fullmatch(path) else similar_paths(path, desk.documents)
        lines = [f"Document not found: {asked}", *(["Similar files:"] if similar else [])]
        raise Refusal("\n".join([*lines, *(f"  {name}" for name in similar)]))
    text = desk.body(document)
    begin = max(first or 1, 1)
    if first is not None or count is not None:
        lines = text.split("\n")[begin - 1 :]
        text = "\n".join(lines if count is None else lines[:count])
    if not line.has("no-line-numbers"):
        text = number_lines(text, begin)
    shown = desk.path_shown(document)
    print(shown or f"qmd://{document.cited}  #{document.docid}")
    context = desk.catalogue.context_of(document.collection, document.path)
    if context:
        print(f"Folder Context: {context}")
    print(f"---\n\n{text}")
    return 0


def _multi_get(desk: Desk, words: Sequence[str]) -> int:
    if not words:
        raise Refusal(
            "Usage: qmd multi-get <pattern> [-l <lines>] [--max-bytes <bytes>] [--no-line-numbers] [--full-path]"
            " [--format json|csv|md|xml|files]\n  pattern: glob (e.g., 'journals/2025-05*.md') or comma-separated list"
        )
    from plainmind.guests.qmd.formats import Shown, number_lines, print_documents

    line, asked = desk.line, words[0]
    is_list = "," in asked and not any(sign in asked for sign in "*?{")
    if is_list or DOCID.fullmatch(asked):
        found = _listed_by_name(desk, asked.split(",") if is_list else [asked])
        if not is_list and not found:
            return 1
    else:
        from plainmind.guests.qmd.documents import masks_of

        tests = masks_of(asked)
        found = [
            (each.path, each)
            for each in desk.documents
            if any(test(name) for test in tests for name in (each.path, each.cited, f"qmd://{each.cited}"))
        ]
        if not found:
            raise Refusal(f"No files matched pattern: {asked}")
    most_lines, most_bytes = line.number("l"), line.number("max-bytes", _MOST_BYTES) or _MOST_BYTES
    shown: list[Shown] = []
    for name, document in found:
        body = desk.body(document)
        path = desk.path_shown(document)
        docid = "" if path else f"#{document.docid}"
        context = desk.catalogue.context_of(document.collection, document.path)
        if len(body) > most_bytes:
            sizes = f"{round(len(body) / 1024)}KB > {round(most_bytes / 1024)}KB"
            refusal = f"File too large ({sizes}). Use 'qmd get {name}' to retrieve."
            shown.append(Shown(path or name, docid, os.path.basename(name), context, "", refusal))
            continue
        lines = body.split("\n")
        if most_lines is not None and len(lines) > most_lines:
            body = "\n".join(lines[:most_lines]) + f"\n\n[... truncated {len(lines) - most_lines} more lines]"
        if not line.has("no-line-numbers"):
            body = number_lines(body)
        shown.append(Shown(path or name, docid, document.title, context, body))
    _print(print_documents(shown, line.format))
    return 0


def _listed_by_name(desk: Desk, names: Iterable[str]) -> list[tuple[str, Listed]]:
    found: list[tuple[str, Listed]] = []
    for name in filter(None, (each.strip() for each in names)):
        document = find_document(desk, name)
        if document is None:
            near = similar_paths(name, desk.documents)
            tell(f"File not found: {name}" + (f" (did you mean: {', '.join(near)}?)" if near else ""))
        else:
            found.append((f"qmd://{document.cited}", document))
    return found


def _ls(desk: Desk, words: Sequence[str]) -> int:
    shelves = desk.catalogue.shelves
    if not words:
        if not shelves:
            print("No collections found. Run 'qmd collection add .' to index files.")
            return 0
        print("Collections:\n")
        for name in shelves:
            print(f"  qmd://{name}/  ({_count(desk, name)} files)")
        return 0
    asked = (
        words[0].removeprefix("qmd://").strip("/") if words[0].startswith("qmd://") else words[0].rstrip("/")
    )
    name, _, prefix = asked.partition("/")
    if name not in shelves:
        raise Refusal(f"Collection not found: {name}\nRun 'qmd ls' to see available collections.")
    found = [each for each in desk.documents if each.collection == name and each.path.startswith(prefix)]
    if not found:
        print(
            f"No files found under qmd://{name}/{prefix}"
            if prefix
            else f"No files found in collection: {name}"
        )
        return 0
    from plainmind.guests.qmd.formats import size_in_words

    sizes = [size_in_words(each.size) for each in found]
    width = max(map(len, sizes))
    for each, size in zip(found, sizes, strict=True):
        print(f"{size:>{width}}  {_day(each.mtime_ns / 1e9)}  qmd://{each.cited}")
    return 0


_HALF_A_YEAR_S = 180 * 86_400
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _day(moment: float) -> str:
    """A time as `ls -l` shows it."""
    from datetime import datetime

    at = datetime.fromtimestamp(moment).astimezone()
    day = f"{_MONTHS[at.month - 1]} {at.day:2d}"
    return f"{day}  {at.year}" if time.time() - moment > _HALF_A_YEAR_S else f"{day} {at:%H:%M}"


def _count(desk: Desk, name: str) -> int:
    return sum(document.collection == name for document in desk.documents)


# --- collections and contexts ---


def _collection(desk: Desk, words: Sequence[str]) -> int:
    below = words[0] if words else "help"
    if below == "help":
        from plainmind.guests.qmd.formats import COLLECTION_HELP

        print(COLLECTION_HELP)
        return 0
    verb = _COLLECTION_VERBS.get(below)
    if verb is None:
        raise Refusal(
            f"Unknown subcommand: {below}\nRun 'qmd collection help' for usage\n"
            "If qmd still behaves unexpectedly, run 'qmd doctor' for diagnostics."
        )
    return verb(desk, words[1:]) or 0


def _collection_list(desk: Desk, words: Sequence[str]) -> None:
    del words
    from plainmind.guests.qmd.formats import age_in_words

    shelves = desk.catalogue.shelves
    if not shelves:
        print("No collections found. Run 'qmd collection add .' to create one.")
        return
    print(f"Collections ({len(shelves)}):\n")
    for name, shelf in shelves.items():
        latest = _latest(desk, name)
        print(f"{name} (qmd://{name}/){'' if shelf.is_default else ' [excluded]'}")
        print(f"  Pattern:  {shelf.pattern}")
        if shelf.ignore:
            print(f"  Ignore:   {', '.join(shelf.ignore)}")
        print(f"  Files:    {_count(desk, name)}")
        print(f"  Updated:  {age_in_words(time.time() - latest if latest else 0)}\n")


def _latest(desk: Desk, name: str | None = None) -> float:
    times = [each.mtime_ns / 1e9 for each in desk.documents if name in {None, each.collection}]
    return max(times, default=0.0)


def _collection_add(desk: Desk, words: Sequence[str]) -> None:
    if not words:
        raise Refusal(
            "Usage: qmd collection add <path> [--name NAME] [--mask GLOB]\n"
            "  Pass '.' to index the current directory.\n"
            "  --mask / --glob: glob (default **/*.md), brace group, or comma-separated list"
        )
    path = os.path.realpath(expand_user(words[0]))
    received = f"  Received: {words[0]}\n  Resolved: {path}\n"
    if not os.path.exists(path):
        raise Refusal(
            f"Collection path does not exist.\n{received}"
            "Provide an existing directory and run 'qmd collection add <path>' again."
        )
    if not os.path.isdir(path):
        raise Refusal(
            f"Collection path is not a directory.\n{received}"
            "Choose a directory and run 'qmd collection add <path>' again."
        )
    options, shelves = desk.line.options, desk.catalogue.shelves
    mask = options.get("mask") or options.get("glob") or EVERY_NOTE
    name = options.get("name") or os.path.basename(path) or "root"
    if name in shelves:
        raise Refusal(f"Collection '{name}' already exists.\nUse a different name with --name <name>")
    same = next((each for each in shelves.values() if (each.path, each.pattern) == (path, mask)), None)
    if same is not None:
        raise Refusal(
            f"A collection already exists for this path and pattern:\n  Name: {same.name} (qmd://{same.name}/)\n"
            f"  Pattern: {mask}\n\nUse 'qmd update' to re-index it, or remove it first with"
            f" 'qmd collection remove {same.name}'"
        )
    desk.catalogue.add(name, path, mask)
    print(f"Creating collection '{name}'...")
    _report(desk, desk.catalogue.shelves[name])
    with desk.memory() as memory:
        memory.sync()
    print(f"✓ Collection '{name}' created successfully")


def _report(desk: Desk, shelf: Shelf) -> None:
    changes = desk.look[1][shelf.name]
    print(f"Collection: {shelf.path} ({shelf.pattern})")
    if not (changes.new or changes.updated or changes.unchanged):
        print("No files found matching pattern.")
    print(
        f"\nIndexed: {changes.new} new, {changes.updated} updated, {changes.unchanged} unchanged,"
        f" {changes.removed} removed"
    )


def _collection_remove(desk: Desk, words: Sequence[str]) -> None:
    if not words:
        raise Refusal(
            "Usage: qmd collection remove <name>\n  Use 'qmd collection list' to see available collections"
        )
    _known(desk, words[0])
    desk.catalogue.remove(words[0])
    gone, texts = desk.ledger.remove(words[0])
    print(f"✓ Removed collection '{words[0]}'\n  Deleted {gone} documents")
    if texts:
        print(f"  Cleaned up {texts} orphaned content hashes")
    with desk.memory() as memory:  # without the collection: its files leave the index
        memory.sync()


def _collection_rename(desk: Desk, words: Sequence[str]) -> None:
    if len(words) < 2:
        raise Refusal(
            "Usage: qmd collection rename <old-name> <new-name>\n"
            "  Use 'qmd collection list' to see available collections"
        )
    old, new = words[:2]
    _known(desk, old)
    if new in desk.catalogue.shelves:
        raise Refusal(
            f"Collection name already exists: {new}\n"
            "Choose a different name or remove the existing collection first."
        )
    desk.catalogue.rename(old, new)
    desk.ledger.rename(old, new)
    print(f"✓ Renamed collection '{old}' to '{new}'\n  Virtual paths updated: qmd://{old}/ → qmd://{new}/")


def _known(desk: Desk, name: str) -> None:
    if name not in desk.catalogue.shelves:
        raise Refusal(
            f"Collection not found: {name}\nRun 'qmd collection list' to see available collections."
        )


def _collection_show(desk: Desk, words: Sequence[str]) -> None:
    if not words:
        raise Refusal("Usage: qmd collection show <name>")
    shelf = desk.shelf(words[0])
    print(f"Collection: {shelf.name}\n  Path:     {shelf.path}\n  Pattern:  {shelf.pattern}")
    print(f"  Include:  {'yes (default)' if shelf.is_default else 'no'}")
    if shelf.update:
        print(f"  Update:   {shelf.update}")
    if shelf.contexts:
        print(f"  Contexts: {len(shelf.contexts)}")


def _collection_include(desk: Desk, words: Sequence[str]) -> None:
    _set_default(desk, words, "include")


def _collection_exclude(desk: Desk, words: Sequence[str]) -> None:
    _set_default(desk, words, "exclude")


def _set_default(desk: Desk, words: Sequence[str], verb: str) -> None:
    if not words:
        raise Refusal(f"Usage: qmd collection {verb} <name>\n  {verb.title()} collection in default queries")
    name = desk.shelf(words[0]).name
    desk.catalogue.change(name, includeByDefault=None if verb == "include" else False)
    print(f"✓ Collection '{name}' {'included in' if verb == 'include' else 'excluded from'} default queries")


def _collection_update_command(desk: Desk, words: Sequence[str]) -> None:
    if not words:
        raise Refusal(
            "Usage: qmd collection update-cmd <name> [command]\n"
            "  Set the command to run before indexing (e.g., 'git pull')\n  Omit command to clear it"
        )
    name, command = desk.shelf(words[0]).name, " ".join(words[1:])
    desk.catalogue.change(name, update=command or None)
    print(
        f"✓ Set update command for '{name}': {command}"
        if command
        else f"✓ Cleared update command for '{name}'"
    )


def _context(desk: Desk, words: Sequence[str]) -> int:
    verb = words[0] if words else ""
    if verb == "list":
        _context_list(desk)
    elif verb == "add" and len(words) > 1:
        # A single argument is what there is to say, about this folder.
        place, text = (words[1], " ".join(words[2:])) if len(words) > 2 else (".", words[1])
        _context_add(desk, place, text)
    elif verb in {"rm", "remove"} and len(words) > 1:
        _context_remove(desk, words[1])
    elif verb and verb not in {"add", "rm", "remove"}:
        raise Refusal(f"Unknown subcommand: {verb}\nAvailable: add, list, rm")
    else:
        raise Refusal(
            "Usage: qmd context <add|list|rm>\n\nCommands:\n"
            '  qmd context add [path] "text"  - Add context (defaults to current dir)\n'
            '  qmd context add / "text"       - Add global context to all collections\n'
            "  qmd context list                - List all contexts\n"
            "  qmd context rm <path>           - Remove context"
        )
    return 0


def _context_list(desk: Desk) -> None:
    rows = [("*", "/", desk.catalogue.global_context)] if desk.catalogue.global_context else []
    rows += [
        (name, prefix, text)
        for name, shelf in desk.catalogue.shelves.items()
        for prefix, text in shelf.contexts.items()
    ]
    if not rows:
        print("No contexts configured. Use 'qmd context add' to add one.")
        return
    print("\nConfigured Contexts\n")
    last = None
    for name, prefix, text in rows:
        if name != last:
            print(name)
        last = name
        print(f"  {prefix or '/ (root)'}\n    {text}")


def _context_add(desk: Desk, place: str, text: str) -> None:
    if place == "/":
        desk.catalogue.set_context(None, "", text)
        print(f"✓ Set global context\nContext: {text}")
        return
    try:
        name, prefix = _place_of(desk, place)
    except Refusal as refusal:
        hint = "" if place.startswith("qmd:") else "\nRun 'qmd status' to see indexed collections"
        raise Refusal(f"{refusal}{hint}") from refusal
    desk.catalogue.set_context(name, prefix, text)
    root = " (collection root)" if place.startswith("qmd:") and not prefix else ""
    print(f"✓ Added context for: qmd://{name}/{prefix}{root}\nContext: {text}")


def _context_remove(desk: Desk, place: str) -> None:
    if place == "/":
        desk.catalogue.set_context(None, "", None)
        print("✓ Removed global context")
        return
    name, prefix = _place_of(desk, place)
    shown = place if place.startswith("qmd:") else f"qmd://{name}/{prefix}"
    if prefix not in desk.catalogue.shelves[name].contexts:
        raise Refusal(f"No context found for: {shown}")
    desk.catalogue.set_context(name, prefix, None)
    print(f"✓ Removed context for: {shown}")


def _place_of(desk: Desk, place: str) -> tuple[str, str]:
    """The collection, and the path in it, that a place names."""
    if place.startswith("qmd:"):
        name, _, prefix = place.removeprefix("qmd:").lstrip("/").partition("/")
        return desk.shelf(name).name, prefix
    path = os.path.realpath(expand_user(place))
    above = [
        each
        for each in desk.catalogue.shelves.values()
        if f"{path}/".startswith(f"{os.path.realpath(each.path)}/")
    ]
    if not above:
        raise Refusal(f"Path is not in any indexed collection: {path}")
    shelf = max(above, key=lambda each: len(each.path))
    return shelf.name, path[len(os.path.realpath(shelf.path)) + 1 :]


# --- keeping it ---


def _update(desk: Desk, words: Sequence[str]) -> int:
    del words
    shelves = desk.catalogue.readable
    if not shelves:
        print("No collections found. Run 'qmd collection add .' to index markdown files.")
        return 0
    print(f"Updating {len(shelves)} collection(s)...\n")
    # All of them before any file is looked at; those of a project's own index were written by anybody.
    wanted = [shelf for shelf in shelves.values() if shelf.update and desk.where.project is None]
    prepared = {shelf.name: _prepare(shelf) for shelf in wanted}
    for number, shelf in enumerate(shelves.values(), 1):
        print(f"[{number}/{len(shelves)}] {shelf.name} ({shelf.pattern})")
        status, said = prepared.get(shelf.name, (0, ""))
        _print(said)
        if status:
            return status
        _report(desk, shelf)
        print()
    with desk.memory() as memory:
        memory.sync()
    print("✓ All collections updated.")
    return 0


def _prepare(shelf: Shelf) -> tuple[int, str]:
    """Run the command that the owner of a collection wants to be run before it is read, such as `git pull`."""
    import subprocess

    done = subprocess.run(  # noqa: S603 (what stands in the user's own settings)
        ["bash", "-c", shelf.update or ""],  # noqa: S607
        cwd=shelf.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [f"    Running update command: {shelf.update}"]
    for said in (done.stdout.strip(), done.stderr.strip()):
        lines += [f"    {line}" for line in said.split("\n")] if said else []
    if done.returncode:
        lines.append(f"✗ Update command failed with exit code {done.returncode}")
    return done.returncode, "\n".join(lines)


def _status(desk: Desk, words: Sequence[str]) -> int:
    del words
    from plainmind.guests.qmd.formats import age_in_words, size_in_words

    documents = desk.documents
    with desk.memory() as memory:
        memory.sync()
        facts = memory.status()
        vectors = facts["chunks"] - facts["withoutVectors"]
        model = f"{facts['provider']}, {facts['model']}"
    store = facts["store"]["bytes"]
    print(
        f"QMD Status\n\nIndex: {desk.ledger.path}\nSize:  {size_in_words(os.path.getsize(desk.ledger.path) + store)}\n"
    )
    print(f"Documents\n  Total:    {len(documents)} files indexed\n  Vectors:  {vectors} embedded")
    if documents:
        print(f"  Updated:  {age_in_words(time.time() - _latest(desk))}")
    shelves = desk.catalogue.shelves
    if not shelves:
        print("\nNo collections. Run 'qmd collection add .' to index markdown files.")
    else:
        print("\nCollections")
    for name, shelf in shelves.items():
        updated = age_in_words(time.time() - (_latest(desk, name) or time.time()))
        print(f"  {name} (qmd://{name}/)\n    Pattern:  {shelf.pattern}")
        print(f"    Files:    {_count(desk, name)} (updated {updated})")
        if shelf.contexts:
            print(f"    Contexts: {len(shelf.contexts)}")
            for prefix, text in shelf.contexts.items():
                print(f"      /{prefix.lstrip('/')}: {text}")
    if shelves:
        name = next(iter(shelves))
        print(f"\nExamples\n  # List files in a collection\n  qmd ls {name}")
        print(f"  # Get a document\n  qmd get qmd://{name}/path/to/file.md")
        print(f'  # Search within a collection\n  qmd search "query" -c {name}')
    print(f"\nModels\n  Embedding:   {model}")
    return 0


def _embed(desk: Desk, words: Sequence[str]) -> int:
    del words
    for name in desk.line.collections:
        desk.shelf(name)
    with desk.memory() as memory:
        memory.sync(force=desk.line.has("force"))
    print("✓ All content hashes already have embeddings.")
    return 0


def _pull(desk: Desk, words: Sequence[str]) -> int:
    del desk, words
    print("Nothing to fetch: the model is a part of Plainmind.")
    return 0


def _cleanup(desk: Desk, words: Sequence[str]) -> int:
    del words
    _ = desk.look
    if desk.line.has("dry-run"):
        print("Dry run — no changes made.\n")
    print("No orphaned embeddings to remove")
    return 0


def _doctor(desk: Desk, words: Sequence[str]) -> int:
    del words
    missing = [shelf for shelf in desk.catalogue.shelves.values() if not os.path.isdir(shelf.path)]
    print(f"QMD {SPEAKS}, answered by Plainmind {_own_version()}\n")
    print(f"Config: {desk.where.config}\nIndex:  {desk.ledger.path}\n")
    for shelf in missing:
        print(f"✗ collection '{shelf.name}': there is no folder {shelf.path}")
    print(
        f"{'✗' if missing else '✓'} {len(desk.documents)} documents in {len(desk.catalogue.shelves)} collections"
    )
    with desk.memory() as memory:
        checks = [check for check in memory.doctor() if check.verdict == "problem"]
    for check in checks:
        print(f"✗ {check.name}: {check.detail}")
    return 1 if missing or checks else 0


def _init(desk: Desk, words: Sequence[str]) -> int:
    del desk, words
    here = os.getcwd()
    if os.path.realpath(here) == os.path.realpath(user_home_or_root()):
        raise Refusal(
            "Refusing to initialize a local index in $HOME. The global index is automatically created; run"
            " `qmd collection add <path>` for the global index, or run `qmd init` inside a project folder."
        )
    folder = os.path.join(here, ".qmd")
    Catalogue(Whereabouts(os.path.join(folder, "index.yml"), folder, project=here)).create()
    print("ready to go with new local index")
    return 0


def _mcp(desk: Desk, words: Sequence[str]) -> int:
    if words[:1] == ["stop"] or desk.line.has("http"):
        from plainmind.guests.qmd.http_server import serve_http, start_daemon, stop_daemon

        if words[:1] != ["stop"] and not desk.line.has("daemon"):
            return serve_http(desk)
        print(stop_daemon(desk) if words[:1] == ["stop"] else start_daemon(desk))
        return 0
    from plainmind.guests.qmd.server import serve

    serve(desk.line.options.get("index") or None, sys.stdin.buffer, sys.stdout.buffer)
    return 0


def _skill(desk: Desk, words: Sequence[str]) -> None:
    from plainmind.guests.qmd.server import skill

    print(skill(desk.line, words))


def _skills(desk: Desk, words: Sequence[str]) -> None:
    from plainmind.guests.qmd.server import skills

    print(skills(desk.line, words))


def _bench(desk: Desk, words: Sequence[str]) -> None:
    if not words:
        raise Refusal("Usage: qmd bench <fixture.json> [--json] [-c collection]")
    from plainmind.guests.qmd.formats import print_measured

    is_json = desk.line.has("json")
    found = measure(desk.line, words[0], (lambda _: None) if is_json else tell)
    print(print_measured(found, is_json=is_json))


def _trust(desk: Desk, words: Sequence[str]) -> int:
    del desk, words
    raise Refusal(
        "`qmd trust` has nothing to trust: an index in a .qmd folder reads nothing outside of its project, and runs no"
        " commands"
    )


_VERBS: Mapping[str, Callable[[Desk, Sequence[str]], int | None]] = {
    "search": _search,
    "vsearch": _vsearch,
    "vector-search": _vsearch,
    "query": _query,
    "deep-search": _query,
    "get": _get,
    "multi-get": _multi_get,
    "ls": _ls,
    "collection": _collection,
    "context": _context,
    "status": _status,
    "update": _update,
    "embed": _embed,
    "pull": _pull,
    "cleanup": _cleanup,
    "doctor": _doctor,
    "init": _init,
    "mcp": _mcp,
    "skill": _skill,
    "skills": _skills,
    "bench": _bench,
    "trust": _trust,
}
_COLLECTION_VERBS: Mapping[str, Callable[[Desk, Sequence[str]], int | None]] = {
    "list": _collection_list,
    "add": _collection_add,
    "remove": _collection_remove,
    "rm": _collection_remove,
    "rename": _collection_rename,
    "mv": _collection_rename,
    "show": _collection_show,
    "info": _collection_show,
    "include": _collection_include,
    "exclude": _collection_exclude,
    "update-cmd": _collection_update_command,
    "set-update": _collection_update_command,
}
