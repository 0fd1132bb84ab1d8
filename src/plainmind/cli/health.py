"""`status`, `doctor` and `redact`: what is known, what could be wrong, and what would be hidden."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from plainmind.base.errors import shell_word
from plainmind.base.lazy import find_by_name, pattern
from plainmind.cli.console import Console, plural, size_in_words, visible
from plainmind.cli.options import describe, open_memory, text_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.base.errors import ConfigError
    from plainmind.memory.doctor import Check
    from plainmind.redaction.findings import Redacted


_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}
_RERANKER = "plainmind.guests.rerank.reranker:in_words"
_MOST_SKIPPED = 10
_NOTHING_LEAVES = "nothing leaves this machine"
_PARTS = (
    "texts",
    "vectors",
    "signs",
    "postings",
    "free",
)  # of an index, in bytes; what else it tells are counts


def add_status(parser: argparse.ArgumentParser) -> None:
    """Say what `status` takes."""
    describe(
        parser,
        """\
Say which files are known, where everything is kept, what was left out and why, and what leaves this machine.

Only reads.""",
        examples=("plainmind status", "plainmind status --deep --json"),
        run=run_status,
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also measure sizes, ask the embedding provider for one vector, show remarks on settings",
    )


def run_status(arguments: argparse.Namespace, console: Console) -> int:
    """Print the facts."""
    with open_memory(arguments) as memory:
        facts = memory.status(deep=arguments.deep).as_dict()
        reason = memory.places.workspace.reason
    if console.json:
        console.result(facts)
        return 0
    for name, value in _lines(facts, reason):
        console.answer(f"{console.style(f'{name:10}', 'bold')} {visible(value)}".rstrip())
    if facts["files"] is None:
        console.note(f"the index cannot be asked: {facts['store']['problem']}")
        console.hint(facts["store"]["hint"] or "run `plainmind doctor`")
    elif facts["workspaceMissing"] and (facts["files"] or facts["skipped"]):
        known = f"; {plural(facts['files'], 'file')} answered from the index" if facts["files"] else ""
        console.note(f"the workspace {facts['workspaceDir']} cannot be read{known}")
        console.hint("mount its disk, check its permissions, or name another with --workspace")
    elif facts["workspaceMissing"]:
        console.note(f"there is no workspace at {facts['workspaceDir']} yet")
        console.hint(f"`plainmind init {shell_word(facts['workspaceDir'])}` makes one")
    elif not facts["files"] and not facts["pending"]["changed"]:
        console.note("there are no notes yet")
        console.hint('write the first one: plainmind remember "…"')
    elif facts["dirty"]:
        console.note(f"the index is behind: {_lag(facts['pending'])}; the next search or sync catches up")
    return 0


def _lines(facts: Mapping[str, Any], reason: str) -> Iterator[tuple[str, str]]:
    yield "workspace", f"{facts['workspaceDir']}, {reason}"
    yield "indexed", _index_counts(facts)
    for extra in facts["extraPaths"]:
        yield "also", str(extra)
    named = f" as {facts['store']['workspace']}" if facts["store"].get("workspace") else ""
    yield "index", f"{_place(facts)}{named} ({facts['store'].get('driver', '?')}, agent {facts['agentId']})"
    if (engine := facts["engine"])["name"] != "builtin":
        yield "engine", _engine(engine)
    if recovered := facts["store"].get("recovered"):
        yield "damaged", f"the index was made anew {recovered}"
    vector = facts["vector"]
    if vector["dims"]:  # also while the index cannot be asked, and nothing is searched at all
        dims = f"{vector['dims']} dimensions"
        yield "meaning", f"{facts['provider']} {facts['model']}, {dims}"
    else:
        yield "meaning", "not searched by meaning: words alone answer"
    yield from _embedding(facts)
    yield "reranker", find_by_name(_RERANKER)(facts["reranker"])
    yield from _entries(facts["entries"])
    if waiting := facts["tidy"]["waiting"]:
        are, them = ("proposal waits", "it") if waiting == 1 else ("proposals wait", "them")
        yield "tidy", f"{waiting:,} {are}: `plainmind tidy` shows {them}"
    if flush := facts["lastFlush"]:
        yield "flushed", _last_flush(flush)
    if "sizes" in facts:
        yield "sizes", ", ".join(_size(name, facts) for name in facts["sizes"])
        inside = facts["store"]["parts"]
        yield (
            "index of",
            ", ".join(f"{name} {size_in_words(inside[name])}" for name in _PARTS if name in inside),
        )
    for note in facts.get("notes", ()):
        yield "remark", note
    yield from _first_of("missing", [_missing_note(lost) for lost in facts["missingNotes"]])
    yield from _first_of("left out", [f"{left['path']}: {left['reason']}" for left in facts["skipped"]])


def _missing_note(lost: Mapping[str, str]) -> str:
    return f"a note is no longer in {lost['path']}, perhaps saved over: `plainmind restore {lost['id']}` puts it back"


def _first_of(name: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines[:_MOST_SKIPPED]:
        yield name, line
    if len(lines) > _MOST_SKIPPED:
        yield "", f"and {len(lines) - _MOST_SKIPPED} more; --json lists them all"


def _place(facts: Mapping[str, Any]) -> str:
    """Where the index is: a folder of ours, or where a server says."""
    driver, path = facts["store"].get("driver"), facts["store"].get("path")
    if driver == "lancedb" and facts["keepsTextAt"]:
        return str(path or facts["keepsTextAt"])
    if driver == "postgres":
        return str(path or f"{facts['keepsTextAt'] or 'a server on this machine'}, not reached")
    return str(facts["dbPath"])


def _index_counts(facts: Mapping[str, Any]) -> str:
    if facts["files"] is None:
        return "not known while the index cannot be asked"
    each = [f"{of['files']:,} of {of['source']}" for of in facts["sourceCounts"]]
    split = f" ({', '.join(each)})" if len(each) > 1 else ""
    return f"{plural(facts['files'], 'file')}{split}, {plural(facts['chunks'], 'chunk')}"


def _engine(engine: Mapping[str, Any]) -> str:
    named = " ".join(filter(None, (engine["name"], engine.get("version"))))
    if not engine["healthy"]:
        return f"{named} does not work: {engine['problem']}"
    behind = ", has not seen the latest changes" if engine.get("behind") else ""
    return f"{named}, {engine.get('mode', 'works')}{behind}"


def _embedding(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Who embeds and why, what does not work, what leaves the machine, and what it has cost."""
    embedding = facts["embedding"]
    yield "because", f"{embedding['chosen']} was chosen: {embedding['why']}"
    for over in embedding["passedOver"]:
        if over["configured"] or "sizes" in facts:  # those that nobody has set up are for a closer look
            yield "", f"not {over['provider']}: {over['reason']}"
    yield from _troubles(facts, embedding)
    yield from _privacy(facts)
    if usage := embedding.get("usage"):
        yield "spent", f"today {_usage(usage['today'])}; in total {_usage(usage['total'])}"
        if usage["maxTokensPerDay"]:
            yield "", f"at most {usage['maxTokensPerDay']:,} tokens a day"
    yield from _jobs(embedding.get("batch"))


def _entries(entries: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if entries is None:
        return
    kept = entries["entries"]
    told = "not known" if kept is None else plural(kept, "entry", "entries")
    review = f", {entries['waiting']} to review" if entries["waiting"] else ""
    off = "" if entries["enabled"] else ", not given to agents"
    yield "entries", f"{told}{review} in {entries['path']} ({entries['driver']}{off})"
    if entries["unreadable"]:
        yield "", f"{plural(entries['unreadable'], 'line')} of the file cannot be read as an entry"
    if entries["problem"]:
        yield "problem", entries["problem"]
    index = entries.get("index")
    if index and index["healthy"]:
        state = "up to date" if not index["behind"] else "behind: the next recall sees to it"
        yield "", f"their index is {state}"


def _troubles(facts: Mapping[str, Any], embedding: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if facts["fallback"]:
        yield "fallback", "{to} answers in place of {from}: {reason}".format(**facts["fallback"])
    if problem := embedding.get("problem"):
        yield "problem", problem
    if paused := embedding.get("paused"):
        yield "paused", f"not asked for {paused['seconds']} s: {paused['because']}"
    if probe := embedding.get("probe"):
        yield "asked", "it answers" if probe["ok"] else f"it does not work: {probe['error']}"
    if facts["withoutVectors"]:
        yield (
            "waiting",
            f"{plural(facts['withoutVectors'], 'file')} without vectors: words alone find them",
        )


def _privacy(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    chat = facts["chat"]
    to_model = chat and chat["to"] and f"`plainmind chat` sends what is said and recalled to {chat['to']}"
    if chat and not chat["to"]:
        yield "problem", chat["problem"]
    if kept_at := facts["keepsTextAt"]:
        yield "privacy", f"the index, with the text of your notes, is kept at {kept_at}"
    if not facts["leaves"]:
        nothing = "nothing else leaves this machine" if to_model or kept_at else _NOTHING_LEAVES
        yield "" if kept_at else "privacy", f"{to_model}; {nothing}" if to_model else nothing
        return
    sent = [left["source"] for left in facts["leaves"]]
    yield "privacy", f"text is sent to {facts['leaves'][0]['to']}: {', '.join(sent)}"
    kept = [name for name in facts["sources"] if name not in sent]
    if kept:
        yield "", f"not sent: {', '.join(kept)} (`remote.sendSessions`), words alone find them"
    if to_model:
        yield "", to_model


def _jobs(batch: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if batch is None:
        return
    if batch["off"]:
        yield "batches", f"off: {batch['lastError']}"
    for job in batch["jobs"]:
        minutes = round(job["age_s"] / 60)
        yield (
            "batch",
            f"{job['id']} {job['state']}, {plural(job['items'], 'text')}, since {plural(minutes, 'minute')}",
        )


def _usage(usage: Mapping[str, Any]) -> str:
    failed = f" ({usage['failures']:,} failed)" if usage["failures"] else ""
    return (
        f"{plural(usage['requests'], 'request')}{failed}, {plural(usage['tokens'], 'token')},"
        f" about ${usage['costUsd']:,.2f}"
    )


def _size(name: str, facts: Mapping[str, Any]) -> str:
    taken = size_in_words(facts["sizes"][name])
    bound = facts["bounds"].get(name)
    return f"{name.removesuffix('Bytes')} {taken}" + (f" of {size_in_words(bound)}" if bound else "")


def _last_flush(flush: Mapping[str, Any]) -> str:
    from datetime import datetime

    when = f"{datetime.fromtimestamp(flush['at'] / 1000).astimezone():%Y-%m-%d %H:%M} of {flush['session']}"
    if not flush["ok"]:
        return f"failed {when}: {flush['reason']}"
    return f"{when}: {flush['note'] or 'nothing was worth saving'}"


def _lag(pending: Mapping[str, Any]) -> str:
    parts = [pending["rebuild"]] if pending["rebuild"] else []
    parts += [f"{pending[name]} {name}" for name in ("changed", "missing", "hidden") if pending[name]]
    return ", ".join(parts)


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Say what `doctor` takes."""
    describe(
        parser,
        """\
Look at everything that could be wrong, one line each: ✓ fine, ! worth knowing, ✗ broken. Exit status 1 when something
is broken.

Only reads; with --verify it makes the index anew in ~/.plainmind and compares.""",
        examples=("plainmind doctor", "plainmind doctor --verify"),
        run=run_doctor,
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="also check that every note ever written is there, and that the index equals the files",
    )


def _broken_settings(error: ConfigError) -> Check:
    from plainmind.memory.doctor import Check

    return Check("settings", "problem", f"{error}; what follows is without these settings", error.hint)


def run_doctor(arguments: argparse.Namespace, console: Console) -> int:
    """Print what was looked at."""
    unread: list[ConfigError] = []
    with open_memory(arguments, broken=unread) as memory:
        checks = [*map(_broken_settings, unread), *memory.doctor(verify=arguments.verify)]
    broken = any(check.verdict == "problem" for check in checks)
    if console.json:
        rows = [
            {"name": check.name, "verdict": check.verdict, "detail": check.detail, "hint": check.hint}
            for check in checks
        ]
        console.result({"ok": not broken, "checks": rows})
        return int(broken)
    for check in checks:
        if check.verdict == "ok" and console.quiet:
            continue
        sign, style = _MARKS[check.verdict]
        console.answer(f"{console.style(sign, style)} {check.name}: {visible(check.detail)}")
        if check.hint:
            console.answer(f"    {visible(check.hint)}")
    return int(broken)


FOUND = 4
_LINE_BREAK = pattern(r"\r\n|\r|\n")
_AROUND = 60  # characters on each side of a mark


def add_redact(parser: argparse.ArgumentParser) -> None:
    """Say what `redact` takes."""
    describe(
        parser,
        """\
Show which secrets of a text would be hidden: tokens, passwords, private keys, card numbers, the keys of your settings.

Conversations are indexed and exported without them, and stay as they are themselves.

Only reads FILE, and prints no secret. The key that makes the marks is kept in ~/.plainmind.

Exit status: 0 when there is nothing to hide, 4 when there is something; with --text always 0.""",
        examples=(
            "plainmind redact notes.txt",
            "git diff | plainmind redact -",
            "plainmind redact server.log --text > shareable.log",
        ),
        run=run_redact,
    )
    parser.add_argument("path", metavar="FILE", help="a text file; - reads stdin")
    parser.add_argument("--text", action="store_true", help="print the whole text, without its secrets")


def run_redact(arguments: argparse.Namespace, console: Console) -> int:
    """Print the places of secrets, or the text without them."""
    text = text_of_file(arguments.path)
    with open_memory(arguments) as memory:
        redacted = memory.redactor().redact(text)
    if console.json:
        copy = {"text": redacted.text} if arguments.text else {}
        console.result({"path": arguments.path, "found": list(_places(text, redacted)), **copy})
    elif arguments.text:
        sys.stdout.flush()
        sys.stdout.buffer.write(redacted.text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    else:
        _show_places(arguments.path, text, redacted, console)
    return FOUND if redacted.found and not arguments.text else 0


def _show_places(path: str, text: str, redacted: Redacted, console: Console) -> None:
    shift = 0
    lines = set()
    for found, place in zip(redacted.found, _places(text, redacted), strict=True):
        cited = console.style(f"{console.printable(path)}:{place['line']}", "path")
        console.answer(f"{cited}  {_around(redacted.text, found.start + shift, len(found.mark))}")
        hidden = text[found.start : found.end]
        shift += len(found.mark) + hidden.count("\r") + hidden.count("\n") - len(hidden)
        lines.add(place["line"])
    if redacted.found:
        count = f"{plural(len(redacted.found), 'secret')} in {plural(len(lines), 'line')}"
        console.say(console.style(count, "dim"))
    else:
        console.say("nothing to hide")


def _around(copy: str, at: int, length: int) -> str:
    """The line of a mark, or what is near to it in a long one."""
    before = _LINE_BREAK.split(copy[max(0, at - _AROUND) : at])[-1]
    after = _LINE_BREAK.split(copy[at + length : at + length + _AROUND])[0]
    start = "…" if len(before) == _AROUND < at else ""
    end = "…" if len(after) == _AROUND and at + length + _AROUND < len(copy) else ""
    return visible(f"{start}{before}{copy[at : at + length]}{after}{end}")


def _places(text: str, redacted: Redacted) -> Iterator[dict[str, Any]]:
    line, seen, line_start = 1, 0, 0
    for found in redacted.found:
        for line_break in _LINE_BREAK.finditer(text, seen, found.start):
            line += 1
            line_start = line_break.end()
        seen = found.start
        last = line + len(_LINE_BREAK.findall(text, found.start, found.end))
        yield {
            "kind": found.kind,
            "line": line,
            "endLine": last,
            "column": found.start - line_start + 1,
            "mark": found.mark,
        }
