"""How the memory is, and what its other parts keep: sessions, status, settings; recalls, entries, proposals."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from plainmind import __version__
from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.guests.page import requests, shapes
from plainmind.guests.page.call import Call, Reply, page_of
from plainmind.guests.page.gate import RIGHTS, Caller
from plainmind.guests.page.wire import Problem, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.recalls import Recall, RecalledLines
    from plainmind.memory.memory import Memory

_log = logging.getLogger(__name__)

_ENTRIES = "plainmind.guests.entries.access:entry_memory_of"
_ENTRIES_ON = "plainmind.guests.entries.access:are_entries_on"
_HAS_ENTRIES = "plainmind.guests.entries.access:has_entries"
_UPKEEP = "plainmind.guests.upkeep.desk:Desk"


# --- the session of who asks ---


def begin_session(call: Call) -> Reply:
    """Open a session of the page; its code works once."""
    if call.header("sec-fetch-site") != "same-origin":
        raise Problem("origin", "only the page itself can begin a session", "open it with `plainmind page`")
    begun = call.keeper.callers.sessions.begin(call.body.code)
    if begun is None:
        raise Problem(
            "unauthorized",
            "this code was used already, is older than a minute, or was never given",
            "run `plainmind page` again",
            more={"type": "urn:plainmind:code"},
        )
    token, caller = begun
    return Reply(_session(call, caller, token), 201)


def read_session(call: Call) -> Reply:
    """Say who is asking."""
    return Reply(_session(call, call.caller, None))


def end_session(call: Call) -> Reply:
    """Sign out of the page; a named token goes on."""
    call.keeper.callers.sessions.end(call.token)
    return Reply(None, 204)


def make_code(call: Call) -> Reply:
    """Make a code that opens the page once."""
    code, seconds = call.keeper.callers.sessions.make_code()
    return Reply(shapes.CodeMade(code, seconds), 201)


def _session(call: Call, caller: Caller, token: str | None) -> shapes.Session:
    memory = call.memory
    end = None if caller.expires_at is None else datetime.fromtimestamp(caller.expires_at, UTC)
    return shapes.Session(
        caller.name,
        tuple(right for right in RIGHTS if right in caller.rights),
        call.keeper.is_read_only,
        caller.is_owner,
        None if end is None else end.isoformat(timespec="seconds"),
        memory.workspace if caller.is_owner else "",
        memory.agent_id,
        __version__,
        memory.now().date().isoformat(),
        tuple(memory.sources),
        caller.is_owner and keeps_entries(memory),
        token,
    )


# --- how the memory is ---


def read_status(call: Call) -> Reply:
    """What is known, where it is kept and what leaves this machine."""
    if call.caller.is_owner:
        return Reply(dict(call.memory.status().facts))
    return Reply(dict(call.scoped.status()))


def read_doctor(call: Call) -> Reply:
    """Look for everything that could be wrong."""
    call.require_owner("checks are for the owner")
    checks = call.memory.doctor()
    rows = tuple(shapes.Check(one.name, one.verdict, one.detail, one.hint) for one in checks)
    return Reply(shapes.Checks(all(one.verdict != "problem" for one in rows), rows))


def list_settings(call: Call) -> Reply:
    """Every setting with its origin; of a secret only whether it is set."""
    call.require_owner("settings are for the owner")
    rows = call.memory.list_settings()
    shown = tuple(shapes.Setting(row.key, row.value, str(row.origin), row.doc) for row in rows)
    return Reply(shapes.SettingList(shown, call.memory.remarks))


# --- recalls ---


def list_recalls(call: Call) -> Reply:
    """What agents asked and were given, the latest first."""
    asked: requests.RecallsQuery = call.query
    log = call.scoped.recalls
    page = log.page(asked.limit, cursor=asked.cursor or None, day=asked.day)
    return Reply(shapes.Recalls(tuple(map(recall_row, page.recalls)), page.cursor, log.is_on))


def read_recall(call: Call) -> Reply:
    """One recall."""
    return Reply(recall_row(call.scoped.recalls.get(call.parameters["id"])))


def judge_recall(call: Call) -> Reply:
    """Say what a line that was given was worth; later searches heed it."""
    asked: requests.Verdict = call.body
    judged = call.scoped.recalls.judge(call.parameters["id"], asked.verdict, line=asked.line)
    return Reply(recall_row(judged))


def recall_row(recall: Recall) -> shapes.RecallRow:
    """A recall as lists show it."""
    lines = [(number, one) for number, one in enumerate(recall.lines, 1)]
    return shapes.RecallRow(
        recall.id,
        recall.at,
        recall.kind,
        recall.question,
        recall.host or recall.surface,
        recall.surface,
        recall.host,
        recall.session,
        recall.agent,
        recall.scope,
        recall.tokens,
        recall.milliseconds,
        tuple(_recalled(number, one) for number, one in lines if one.is_given),
        tuple(_recalled(number, one) for number, one in lines if not one.is_given),
    )


def _recalled(number: int, one: RecalledLines) -> shapes.RecalledLine:
    return shapes.RecalledLine(
        number, one.path, one.start_line, one.end_line, one.best_line, one.score, one.reason, one.verdict
    )


# --- entries ---


@contextmanager
def _entries(call: Call) -> Iterator[Any]:
    call.require_owner("entries are listed and changed here by their owner")
    entries = find_by_name(_ENTRIES)(call.memory)
    try:
        yield entries
    finally:
        entries.close()


def keeps_entries(memory: Memory) -> bool:
    """Whether there is anything to show of entries, or may be."""
    return bool(find_by_name(_ENTRIES_ON)(memory) or find_by_name(_HAS_ENTRIES)(memory))


def warm_entries(memory: Memory, *, read_only: bool) -> None:
    """Load what keeps the entries before anybody asks for them: that takes seconds, the first time."""
    if not find_by_name(_ENTRIES_ON)(memory) or (read_only and not find_by_name(_HAS_ENTRIES)(memory)):
        return
    try:
        with closing(find_by_name(_ENTRIES)(memory)) as entries:
            entries.get_ready()
    except PlainmindError as error:
        _log.warning("the entries cannot be opened: %s", error)


def list_entries(call: Call) -> Reply:
    """List single things to remember, the latest first."""
    asked: requests.EntriesQuery = call.query
    is_on = bool(find_by_name(_ENTRIES_ON)(call.memory))
    call.require_owner("entries are listed here for their owner")
    if not find_by_name(_HAS_ENTRIES)(call.memory):
        return Reply(shapes.Entries((), 0, None, is_on))
    with _entries(call) as entries:
        found = entries.list(scopes=EVERY_SCOPE, category=asked.category, waiting=asked.waiting)
    shown, following = page_of(found, asked.limit, asked.cursor, lambda one: one.id)
    return Reply(shapes.Entries(tuple(map(_entry, shown)), len(found), following, is_on))


def _entry(entry: Any) -> shapes.Entry:
    at = datetime.fromtimestamp(entry.created_at / 1000, UTC).isoformat(timespec="seconds")
    return shapes.Entry(
        entry.id,
        entry.text,
        entry.category,
        entry.importance,
        at,
        entry.scope,
        entry.origin,
        entry.is_waiting,
    )


def add_entry(call: Call) -> Reply:
    """Keep a single thing; one that says the same as another is refused, and the other shown."""
    asked: requests.NewEntry = call.body
    with _entries(call) as entries:
        stored = entries.store(
            asked.text, scope=PRIVATE, category=asked.category, importance=asked.importance
        )
    if stored.entry is None:
        raise Problem(
            "conflict",
            "an entry says the same already",
            "forget that one first, or leave it",
            more={"twin": stored.twin.as_json()},
        )
    return Reply(_entry(stored.entry), 201)


def accept_entry(call: Call) -> Reply:
    """Keep an entry that waited."""
    with _entries(call) as entries:
        entries.accept([call.parameters["id"]], scopes=EVERY_SCOPE)
    return Reply(None, 204)


# --- proposals ---


def _desk(call: Call) -> Any:
    call.require_owner("proposals are for the owner")
    try:
        make = find_by_name(_UPKEEP)
    except ImportError as error:
        raise Problem("absent", "what makes proposals is not installed here") from error
    return make(call.memory)


def list_proposals(call: Call) -> Reply:
    """What waits for a person to agree."""
    asked: requests.ProposalsQuery = call.query
    facts = _desk(call).list().as_dict()
    waiting = facts["proposals"]
    chosen = [one for one in waiting if asked.kind is None or one["kind"] == asked.kind]
    proposals = tuple(read(shapes.Proposal, one, what="a proposal") for one in chosen)
    return Reply(shapes.Proposals(proposals, len(waiting), facts["lastRun"]))


def accept_proposal(call: Call) -> Reply:
    """Do what a proposal says; one undo takes it back."""
    if "write" not in call.caller.rights:
        raise Problem("forbidden", "to accept is to write, which this token may not", more={"right": "write"})
    return _outcome(_desk(call).accept([call.parameters["id"]]).as_dict())


def reject_proposal(call: Call) -> Reply:
    """Drop a proposal for good."""
    return _outcome(_desk(call).reject([call.parameters["id"]]).as_dict())


def _outcome(facts: Any) -> Reply:
    return Reply(read(shapes.Outcome, facts, what="the outcome"))


def read_upkeep(call: Call) -> Reply:
    """How many proposals wait, and what the last look said."""
    facts = _desk(call).list().as_dict()
    return Reply(shapes.Upkeep(len(facts["proposals"]), facts["lastRun"]))


def run_upkeep(call: Call) -> Reply:
    """Look for proposals now; nothing is changed."""
    desk = _desk(call)
    run = desk.run().as_dict()
    return Reply(shapes.Upkeep(len(desk.list().as_dict()["proposals"]), run))
