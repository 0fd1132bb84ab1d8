"""The session of who asks, and how the memory is: status, checks, settings."""

from __future__ import annotations

from plainmind import __version__
from plainmind.guests.page import shapes
from plainmind.guests.page.call import Call, Reply
from plainmind.guests.page.parts import keeps_entries
from plainmind.guests.page.problems import Problem
from plainmind.guests.page.tokens import RIGHTS, Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


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
    until = None if caller.expires_at is None else _moment(caller.expires_at).isoformat(timespec="seconds")
    return shapes.Session(
        caller.name,
        tuple(right for right in RIGHTS if right in caller.rights),
        call.keeper.is_read_only,
        caller.is_owner,
        until,
        memory.workspace if caller.is_owner else "",
        memory.agent_id,
        __version__,
        memory.now().date().isoformat(),
        tuple(memory.sources),
        caller.is_owner and keeps_entries(memory),
        token,
    )


def _moment(seconds: float) -> datetime:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)


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
