"""A memory that holds a text of every kind, and conversations of every kind that may see some of them.

Each text has two words: one to ask for it by, and one that must not come out where it is denied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from plainmind import OWNER, Memory, SearchContext
from plainmind.base.value import value
from plainmind.guests.postgres.config import PostgresConfig
from plainmind.index.store import open_store
from plainmind.sessions.store import SessionStore

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
TODAY = date.today()  # noqa: DTZ011 (the memory's own day is that of this machine)
YESTERDAY = TODAY - timedelta(days=1)


@value
class Text:
    """Something that the memory holds, and who else than the owner may see it."""

    name: str
    path: str  # as cited
    scope: str

    @property
    def ask(self) -> str:
        """The word that finds it."""
        return f"zq{self.name.replace('-', '')}ask"

    @property
    def tell(self) -> str:
        """The word that gives it away."""
        return f"xv{self.name.replace('-', '')}tell"

    @property
    def line(self) -> str:
        """What it says."""
        return f"the code for {self.ask} is {self.tell}"


NOTES = [
    Text("curated", "MEMORY.md", "private"),
    Text("today", f"memory/{TODAY}.md", "private"),
    Text("yesterday", f"memory/{YESTERDAY}.md", "private"),
    Text("topic", "memory/people.md", "private"),
    Text("loose", "memory/shared-with/loose.md", "private"),
    Text("misnamed", "memory/shared-with/team-A/note.md", "private"),
    Text("everyone", "memory/shared-with/everyone/wifi.md", "shared"),
    Text("group-a-log", f"memory/shared-with/telegram/group-A/{TODAY}.md", "telegram/group:A"),
    Text("group-a-elsewhere", f"memory/shared-with/slack/group-A/{TODAY}.md", "slack/group:A"),
    Text("group-a-anywhere", "memory/shared-with/group-A/rules.md", "group:A"),
    Text("group-b-log", f"memory/shared-with/telegram/group-B/{TODAY}.md", "telegram/group:B"),
    Text("channel-c-log", f"memory/shared-with/slack/group-C/{YESTERDAY}.md", "slack/group:C"),
    Text("anna-log", f"memory/shared-with/telegram/person-anna/{TODAY}.md", "telegram/person:anna"),
    Text("anna-anywhere", "memory/shared-with/person-anna/likes.md", "person:anna"),
    Text("bob-log", f"memory/shared-with/person-bob/{TODAY}.md", "person:bob"),
    Text("loose-in-channel", "memory/shared-with/telegram/loose.md", "private"),
]
EXTRA = [Text("diary", "diary/may.md", "private"), Text("handbook", "handbook/rules.md", "shared")]
SESSIONS = {
    "agent:main:main": Text("own-session", "sessions/own-session.jsonl", "private"),
    "cron:daily": Text("job-session", "sessions/job-session.jsonl", "private"),
    "agent:main:subagent:1": Text("sub-session", "sessions/sub-session.jsonl", "private"),
    "agent:main:telegram:group:A": Text(
        "group-a-session", "sessions/group-a-session.jsonl", "telegram/group:A"
    ),
    "agent:main:slack:group:A": Text("slack-session", "sessions/slack-session.jsonl", "slack/group:A"),
    "agent:main:telegram:group:B": Text(
        "group-b-session", "sessions/group-b-session.jsonl", "telegram/group:B"
    ),
    "agent:main:slack:channel:C": Text("channel-session", "sessions/channel-session.jsonl", "slack/group:C"),
    "agent:main:telegram:dm:anna": Text(
        "anna-session", "sessions/anna-session.jsonl", "telegram/person:anna"
    ),
    "agent:main:slack:dm:anna": Text(
        "namesake-session", "sessions/namesake-session.jsonl", "slack/person:anna"
    ),
    "agent:main:telegram:dm:bob": Text("bob-session", "sessions/bob-session.jsonl", "telegram/person:bob"),
}
ARCHIVED = Text(
    "archived", "sessions/archived.jsonl", "private"
)  # a group had it once; nobody knows any more
OTHER_AGENT = Text("other-agent", "sessions/other-agent.jsonl", "nobody")
PAST = Text("past", "MEMORY.md", "past")  # in no file any more, only in the history
TEXTS = [*NOTES, *EXTRA, *SESSIONS.values(), ARCHIVED, OTHER_AGENT, PAST]

EVERYTHING = {"private", "shared", "past", *(text.scope for text in TEXTS)} - {"nobody"}
CONTEXTS = {
    "owner": (SearchContext(OWNER, "direct", "agent:main:main"), EVERYTHING),
    "other": (
        SearchContext("anna", "direct", "agent:main:telegram:dm:anna"),
        {"shared", "telegram/person:anna", "person:anna"},
    ),
    "stranger": (SearchContext("", "direct", "agent:main:telegram:dm:who"), None),
    "group": (
        SearchContext(OWNER, "group", "agent:main:telegram:group:A", "telegram", "A"),
        {"shared", "telegram/group:A", "group:A"},
    ),
    "group of that id elsewhere": (
        SearchContext("anna", "group", "", "slack", "A"),
        {"shared", "slack/group:A", "group:A"},
    ),
    "channel": (
        SearchContext("anna", "channel", "agent:main:slack:channel:C", "slack", "C"),
        {"shared", "slack/group:C", "group:C"},
    ),
    "nameless group": (SearchContext(OWNER, "group", "agent:main:x"), None),
    "hidden group": (
        SearchContext(OWNER, "", "cron:telegram:group:A"),
        {"shared", "telegram/group:A", "group:A"},
    ),
    "owner's job": (SearchContext(OWNER, "", "cron:daily"), EVERYTHING),
    "job of another": (SearchContext("anna", "", "cron:daily"), {"shared"}),
    "subagent": (SearchContext(OWNER, "", "agent:main:subagent:1"), None),
    "unknown": (SearchContext("", "", ""), None),
    "unknown kind": (SearchContext(OWNER, "supergroup", "agent:main:x"), None),
}
RULES = {
    "rules": [
        {"action": "allow", "match": {"keyPrefix": "cron:"}},
        {"action": "deny", "match": {"channel": "irc"}},
    ],
    "default": "allow",
}
BY_DEFAULT = {"owner", "other"}  # where `scope` is not set at all

MORE_QUERIES = [
    "what is the code?", "code", "the code for", "password", "MEMORY.md", "memory", "shared-with", "group A", "anna",
    "yesterday", "today", "sessions", "*", '"the code"', "xv zq", "tell me everything", "a", "diary", "who is bob?",
]  # fmt: skip
PHRASES = ["{}"]
if FULL:
    PHRASES += ["what is the code for {}?", '"{}"', "{} is", "tell me about {} and everything else", "{}*"]
QUERIES = [*(phrase.format(text.ask) for text in TEXTS for phrase in PHRASES), *MORE_QUERIES]
SPELLINGS: list[Callable[[str], str]] = [
    lambda path: path,
    lambda path: f"./{path}",
    lambda path: f"{path}#L1-L9",
    lambda path: f"{path}:1",
    lambda path: f"memory/../{path}",
    lambda path: f"memory/shared-with/everyone/../../../{path}",
    lambda path: f"memory/shared-with/telegram/group-A/../../../../{path}",
    lambda path: path.swapcase(),
    lambda path: f"workspace/{path}",
    lambda path: path.replace("/", "//"),
    lambda path: f"../../other/{path}",
    lambda path: f"other/workspace:{path}",  # as a search of several agents cites it
]


def fill(place: Path) -> None:
    """Make a workspace and a home that hold every text."""
    for text in NOTES:
        write(place / "workspace" / text.path, text)
    for text in EXTRA:
        write(place / text.path, text)
    sessions = place / "home" / "agents" / "main" / "sessions"
    store = SessionStore(str(sessions))
    for key, text in SESSIONS.items():
        talk(store, key, text)
    talk(store, "agent:main:telegram:group:A:topic:9", ARCHIVED)
    store.archive("agent:main:telegram:group:A:topic:9")
    talk(SessionStore(str(place / "home" / "agents" / "other" / "sessions")), "agent:other:main", OTHER_AGENT)
    with opened(place) as memory:
        curated = place / "workspace" / "MEMORY.md"
        curated.write_text(curated.read_text() + PAST.line + "\n")
        memory.edit("MEMORY.md", PAST.line, "nothing", allow_shrink=True)
        memory.sync()


def write(path: Path, text: Text) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text.line}\n")


def talk(store: SessionStore, key: str, text: Text) -> None:
    name = text.path.removeprefix("sessions/").removesuffix(".jsonl")
    store.create(key, id=name).append({"role": "user", "content": text.line})


def opened(place: Path, scope: dict[str, Any] | None = RULES, **more: Any) -> Memory:
    """The memory of it; `scope` None leaves the rules as they are by default."""
    config = configured(place) | ({} if scope is None else {"scope": scope}) | more
    return Memory(place / "workspace", home=place / "home", config=config)


def opened_on(driver: str, place: Path) -> Memory:
    """The memory of it with its index in a store of this kind, not built yet."""
    if driver == "memory":  # which no setting leads to
        memory = opened(place)
        vars(memory.index)["store"] = open_store("memory", folder=memory.places.index)
        return memory
    store = {"driver": driver, "path": f"{{home}}/{driver}/{{agentId}}"}
    if driver == "postgres":
        from tests.support.postgres_server import SCHEMA, running_server

        store |= {"dsn": running_server().app_dsn, "schema": SCHEMA, "workspace": str(place)[-40:]}
    # Beside it, in the same store, is what another agent of the same workspace has indexed.
    with opened(place, store=store, agentId="other") as memory:
        memory.sync()
        assert OTHER_AGENT.tell in repr(memory.search(OTHER_AGENT.ask))
    return opened(place, store=store)


def configured(place: Path) -> dict[str, Any]:
    """The settings, without rules."""
    return {
        "sources": ["memory", "sessions"],
        "extraPaths": [str(place / "diary"), {"path": str(place / "handbook"), "scope": "shared"}],
        "citations": "on",
        "limits": {"maxResults": 50, "maxInjectedChars": 100_000, "timeoutMs": 60_000},
    }


def as_flags(place: Path, memory: Memory) -> list[str]:
    """The settings with rules, for a program of its own that has its index where the memory has it."""
    flags = []
    kept, server = memory.settings.store, memory.settings.section(PostgresConfig)
    store = {"driver": kept.driver, "path": kept.path, "schema": server.schema}
    if kept.driver == "postgres":
        store |= {"dsn": server.dsn, "workspace": kept.workspace_name}
    for name, given in (configured(place) | {"scope": RULES, "store": store}).items():
        for key, part in given.items() if isinstance(given, dict) else [("", given)]:
            text = part if isinstance(part, str) else json.dumps(part)
            flags += ["--config", f"{name}.{key}={text}".replace(".=", "=", 1)]
    return flags
