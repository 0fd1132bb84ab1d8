"""The entry memory as mem0's platform: memories of users, added, found and deleted.

A user of mem0 is a person here, and whoever is not named is the owner. What is added is kept in its own words: no model
makes facts of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.agent.recall import as_data
from plainmind.agent.recalls import ENTRIES, Asker, RecalledLines, mark_of
from plainmind.base.errors import PlainmindError, ScopeDenied
from plainmind.base.lazy import find_by_name
from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.guests.page.call import Call, Reply
from plainmind.guests.page.stores import whole
from plainmind.guests.page.wire import Problem
from plainmind.notes.scopes import person_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The entry memory is a guest of its own: it is found by name.
_ARE_ENTRIES_ON = "plainmind.guests.entries.access:are_entries_on"
_ENTRY_MEMORY = "plainmind.guests.entries.access:entry_memory_of"
_MOST, _USUAL = 100, 10
_MOST_MESSAGES = 100
_PERSON = "person:"
_KEPT_BY = frozenset({"user_id"})
_NOT_KEPT_BY = frozenset({"agent_id", "app_id", "run_id"})


def ping(call: Call) -> Reply:
    """Say that the token is good."""
    names = {"org_id": "plainmind", "project_id": call.memory.agent_id}
    return Reply({"status": "ok", "user_email": call.caller.name, **names})


def add(call: Call) -> Reply:
    """Keep what a user said, one entry a message; what is there already is not kept twice."""
    body = call.body or {}
    messages = body.get("messages")
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list) or not 1 <= len(messages) <= _MOST_MESSAGES:
        raise PlainmindError(f"`messages` must be a list of 1 to {_MOST_MESSAGES} messages")
    texts = [str(one["content"]) for one in messages if _is_said_by_user(one)]
    scope = _scope_to_write(call, body.get("user_id"))
    results = []
    with _entries(call) as entries:
        for text in texts:
            stored = entries.store(text, scope=scope)
            kept = stored.entry or stored.twin
            results.append({**_memory(call, kept), "event": "ADD" if stored.entry is not None else "NONE"})
    return Reply({"results": results})


def _is_said_by_user(message: object) -> bool:
    return (
        isinstance(message, dict)
        and message.get("role", "user") == "user"
        and isinstance(message.get("content"), str)
        and bool(message["content"].strip())
    )


def list_all(call: Call) -> Reply:
    """List memories, the newest first, in pages."""
    body = call.body or {}
    page = _number(call.query.get("page") or body.get("page"), 1)
    size = min(_number(call.query.get("page_size") or body.get("page_size"), _MOST), _MOST)
    with _entries(call) as entries:
        found = entries.list(scopes=_scopes(call, body.get("filters")))
    shown = found[(page - 1) * size : page * size]
    following = f"?page={page + 1}&page_size={size}" if page * size < len(found) else None
    previous = f"?page={page - 1}&page_size={size}" if page > 1 else None
    rows = [_memory(call, entry) for entry in shown]
    return Reply({"count": len(found), "next": following, "previous": previous, "results": rows})


def search(call: Call) -> Reply:
    """The memories that answer a question; they go into the recall log as what an agent was given."""
    body = call.body or {}
    question = body.get("query")
    if not isinstance(question, str) or not question.strip():
        raise PlainmindError("`query` must be a text that is not empty")
    least = body.get("threshold")
    scopes = _scopes(call, body.get("filters"))
    scoped = call.memory.within(call.caller.context, asker=Asker("mem0", call.caller.name))
    recall = scoped.begin_recall("search", question)
    with _entries(call) as entries:
        more = {"min_score": float(least)} if isinstance(least, int | float) else {}
        found = entries.recall(
            question, scopes=scopes, limit=whole(body, "top_k", _USUAL, most=_MOST), **more
        ).found
    rows = [{**_memory(call, each.entry), "score": round(each.score, 4)} for each in found]
    lines = [
        RecalledLines(f"{ENTRIES}/{each.entry.id}", score=round(each.score, 3), mark=mark_of(each.entry.text))
        for each in found
    ]
    recall.end(lines, "\n".join(row["memory"] for row in rows))
    return Reply({"results": rows})


def read(call: Call) -> Reply:
    """One memory."""
    with _entries(call) as entries:
        return Reply(_memory(call, entries.get(_id(call), scopes=_scopes(call, None))))


def update(call: Call) -> Reply:
    """Say it in other words. It is a new memory then, with a new id, and the old one is gone for good."""
    text = (call.body or {}).get("text")
    if not isinstance(text, str):
        raise PlainmindError(
            "`text` must be there, and a text", hint="nothing else of a memory can be changed"
        )
    with _entries(call) as entries:
        old = entries.get(_id(call), scopes=_scopes(call, None))
        stored = entries.store(
            text, scope=old.scope, category=old.category, importance=old.importance, replacing=old.id
        )
        return Reply(_memory(call, stored.entry or stored.twin))


def delete(call: Call) -> Reply:
    """Forget one memory for good."""
    with _entries(call) as entries:
        entries.forget([_id(call)], scopes=_scopes(call, None))
    return Reply({"message": "Memory deleted successfully!"})


def delete_all(call: Call) -> Reply:
    """Forget all memories of a user for good."""
    user = call.query.get("user_id")
    if not user:
        raise PlainmindError("say whose memories are meant", hint="give `user_id`")
    _forget_user(call, user)
    return Reply({"message": "Memories deleted successfully!"})


def delete_user(call: Call) -> Reply:
    """Forget a user: all memories of theirs."""
    _forget_user(call, call.parameters["user"])
    return Reply({"message": "Entity deleted successfully!"})


def history(call: Call) -> Reply:
    """What became of a memory: it was added. What it was before is kept nowhere."""
    with _entries(call) as entries:
        entry = entries.get(_id(call), scopes=_scopes(call, None))
    memory = _memory(call, entry)
    told = {
        "id": memory["id"],
        "memory_id": memory["id"],
        "old_memory": None,
        "new_memory": memory["memory"],
        "event": "ADD",
        "created_at": memory["created_at"],
        "updated_at": memory["updated_at"],
        "user_id": memory["user_id"],
    }
    return Reply([told])


def list_users(call: Call) -> Reply:
    """Everybody who has memories."""
    with _entries(call) as entries:
        found = entries.list(scopes=_scopes(call, None))
    counts: dict[str, int] = {}
    for entry in found:
        if entry.scope.startswith(_PERSON):
            name = entry.scope.removeprefix(_PERSON)
            counts[name] = counts.get(name, 0) + 1
    rows = [
        {"id": name, "type": "user", "name": name, "total_memories": counts[name]} for name in sorted(counts)
    ]
    return Reply({"count": len(rows), "next": None, "previous": None, "results": rows})


# --- who is meant ---


def _scope_of(user: object) -> str:
    if not isinstance(user, str) or not user.strip() or len(user) > 200:
        raise PlainmindError("`user_id` must be a short text")
    return person_scope(user)


def _scope_to_write(call: Call, user: object) -> str:
    """Whose memory it becomes: the named user's for the owner, else only the token's own."""
    access = call.scoped.access
    if access.sees_everything:
        return PRIVATE if user is None else _scope_of(user)
    if user is not None and _scope_of(user) not in access.scopes:
        raise ScopeDenied("this token has no memories of that user", hint="use a token of theirs")
    if not access.writes:
        raise ScopeDenied("nothing can be kept with this token", hint="use a token of the owner")
    return access.writes


def _scopes(call: Call, filters: object) -> frozenset[str]:
    """What may be seen of what is asked for. Raises PlainmindError for a filter by what is not kept."""
    access = call.scoped.access
    if not access.is_allowed:
        raise ScopeDenied(access.reason or "nothing may be read with this token")
    users = set(_users_in(filters)) if filters else set()
    if not users or "*" in users:
        return access.scopes
    wanted = frozenset(_scope_of(user) for user in users)
    return wanted if access.scopes == EVERY_SCOPE else wanted & access.scopes


def _users_in(filters: object, depth: int = 0) -> Iterator[str]:
    if not isinstance(filters, dict) or depth > _USUAL:
        raise PlainmindError('`filters` must be an object such as {"user_id": "anna"}')
    for name, wanted in filters.items():
        if name in {"AND", "OR"} and isinstance(wanted, list):
            for each in wanted:
                yield from _users_in(each, depth + 1)
        elif name in _KEPT_BY:
            found = wanted.get("in") if isinstance(wanted, dict) else [wanted]
            yield from (str(user) for user in found or ())
        elif name in _NOT_KEPT_BY and wanted == "*":
            continue
        else:
            raise PlainmindError(
                f"memories cannot be filtered by `{str(name)[:60]}`", hint="entries are kept by user alone"
            )


def _forget_user(call: Call, user: str) -> None:
    scopes = _scopes(call, {"user_id": user})
    with _entries(call) as entries:
        found = [*entries.list(scopes=scopes), *entries.list(scopes=scopes, waiting=True)]
        if found:
            entries.forget([entry.id for entry in found], scopes=scopes)


# --- entries ---


@contextmanager
def _entries(call: Call) -> Iterator[Any]:
    if not find_by_name(_ARE_ENTRIES_ON)(call.memory):
        raise Problem(
            "absent",
            "the entry memory is switched off",
            "`plainmind config set entries.enabled true` switches it on",
        )
    entries = find_by_name(_ENTRY_MEMORY)(call.memory)
    try:
        yield entries
    finally:
        entries.close()


def _id(call: Call) -> str:
    return call.parameters["memory"]


def _memory(call: Call, entry: Any) -> dict[str, Any]:
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(entry.created_at / 1000, UTC).isoformat()
    is_person = entry.scope.startswith(_PERSON)
    return {
        "id": entry.id,
        "memory": as_data(call.scoped.hide_secrets(entry.text)),
        "user_id": entry.scope.removeprefix(_PERSON) if is_person else None,
        "metadata": {"importance": entry.importance, "scope": entry.scope},
        "categories": [entry.category],
        "created_at": at,
        "updated_at": at,
    }


def _number(found: object, usual: int) -> int:
    text = str(found or usual)
    if not text.isdecimal() or len(text) > 6 or not int(text):
        raise PlainmindError("`page` and `page_size` must be whole numbers above 0")
    return int(text)
