"""Translates OpenClaw's `openclaw.json`, of the old and of the current layout, into our settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.value import field, record
from plainmind.config.keys import (
    canonical,
    find_key,
    is_section,
    known_key,
    parse_document,
    printable,
    printable_path,
    read_bytes,
)
from plainmind.config.kinds import Unfit
from plainmind.config.load import referenced_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 12
_OTHER_NAMES = {"provider": {"openai-compatible": "openai"}, "fallback": {"openai-compatible": "openai"}}
# The blocks that hold settings of the memory, and the name that their content has here; later ones win.
_BLOCKS = (
    ("agents.defaults.userTimezone", "userTimezone"),
    ("agents.defaults.workspace", "workspace"),
    ("agents.defaults.compaction.reserveTokensFloor", "reserveTokensFloor"),
    ("agents.defaults.compaction.memoryFlush", "memoryFlush"),
    ("agents.defaults.memorySearch", ""),
    ("memory", "memory"),
    ("plugins.entries.memory-lancedb.config", "entries"),
)
_BLOCKS_OF_AN_AGENT = (
    ("workspace", "workspace"),
    ("memorySearch", ""),
    ("memory.search", ""),
)


@record
class OpenClawSettings:
    """Checked values by the names of our settings, and what could not be taken over, without any value."""

    values: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_openclaw(path: str, *, agent_id: str = "main") -> OpenClawSettings:
    """Read the settings of one agent in an `openclaw.json`. Raises ConfigError when it cannot be read.

    What we do not know, or what does not fit, becomes a note: the file belongs to another program.
    """
    data = read_bytes(path)
    if data is None:
        raise ConfigError(f"there is no {printable_path(path)}", key="openclawConfig", hint="check the path")
    document = parse_document(data, path)
    found = OpenClawSettings()
    if "$include" in document:
        found.notes.append("`$include` is not followed: settings in included files are not taken over")
    for source, target in _BLOCKS:
        _take(found, _at(document, source), source, target)
    for above, agent in _agents(document, agent_id):
        for source, target in _BLOCKS_OF_AN_AGENT:
            _take(found, _at(agent, source), f"{above}.{source}", target)
    if _at(document, "plugins.slots.memory") == "memory-lancedb":
        _switch_on_entries(found)
    _take_providers(found, _at(document, "models.providers"))
    if not _indexes_sessions(document, agent_id):
        _leave_sessions_out(found)
    return found


def _switch_on_entries(found: OpenClawSettings) -> None:
    from importlib.util import find_spec

    found.values["entries.enabled"] = True
    if find_spec("lancedb") is None:
        # It tells what OpenClaw has, not what is installed here: nothing may stop working because of that.
        found.values["entries.driver"] = "sqlite"


def _take(found: OpenClawSettings, value: Any, source: str, target: str, depth: int = 0) -> None:
    """Take over one value, or everything in one object."""
    name = canonical(target)
    if value is None:
        return
    if known_key(name) is not None:
        _take_value(found, name, value, source)
    elif is_section(name) and isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for member, inner in value.items():
            below = f"{target}.{member}" if target else str(member)
            _take(found, inner, f"{source}.{member}", below, depth + 1)
    elif not source.endswith((".experimental", ".rememberAcrossConversations", ".dbPath")):
        found.notes.append(f"`{printable(source)}` is not known here")


def _take_value(found: OpenClawSettings, name: str, value: Any, source: str) -> None:
    key = find_key(name)
    if name == "store.path":
        found.notes.append(f"`{printable(source)}` names a database of OpenClaw: we keep an index of our own")
        return
    if name == "remote.apiKey":
        value = _as_reference(value)
    if isinstance(value, str):
        value = _OTHER_NAMES.get(name, {}).get(value, value)
    try:
        found.values[name] = key.kind.read(value)
    except Unfit as unfit:
        found.notes.append(f"`{printable(source)}` is left out: it must be {unfit}")


def _take_providers(found: OpenClawSettings, providers: Any) -> None:
    table: dict[str, dict[str, str]] = {}
    for name, provider in providers.items() if isinstance(providers, Mapping) else ():
        if not isinstance(provider, Mapping):
            continue
        access = {"apiKey": _as_reference(provider.get("apiKey")), "baseUrl": provider.get("baseUrl")}
        given = {field: text for field, text in access.items() if isinstance(text, str) and text}
        if "apiKey" in provider and "apiKey" not in given:
            found.notes.append(f"`models.providers.{printable(name)}.apiKey` is kept where we cannot read it")
        if given:
            table[name] = given
    if table:
        _take_value(found, "models.providers", table, "models.providers")


def _as_reference(value: Any) -> Any:
    """`env:NAME` for both ways in which OpenClaw refers to a variable; anything else as it is."""
    if isinstance(value, str):
        variable = referenced_variable(value)
        return value if variable is None else f"env:{variable}"
    if isinstance(value, Mapping) and value.get("source") == "env" and isinstance(value.get("id"), str):
        return f"env:{value['id']}"
    return value


def _indexes_sessions(document: Mapping[str, Any], agent_id: str) -> bool:
    """Whether transcripts are indexed there: naming the source is not enough, it must be switched on too."""
    blocks = [_at(document, "agents.defaults.memorySearch"), _at(document, "memory.search")]
    for _, agent in _agents(document, agent_id):
        blocks += [_at(agent, "memorySearch"), _at(agent, "memory.search")]
    switches = ("experimental.sessionMemory", "rememberAcrossConversations")
    said = [_at(block, switch) for block in blocks for switch in switches]
    return next((answer for answer in reversed(said) if isinstance(answer, bool)), False)


def _leave_sessions_out(found: OpenClawSettings) -> None:
    sources = found.values.get("sources", ())
    if "sessions" in sources:
        found.values["sources"] = tuple(name for name in sources if name != "sessions") or ("memory",)
        found.notes.append("transcripts are left out, as OpenClaw does without `experimental.sessionMemory`")


def _agents(document: Mapping[str, Any], agent_id: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the blocks of this one agent, in both layouts, with their places."""
    listed = _at(document, "agents.list")
    for position, agent in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(agent, Mapping) and agent.get("id") == agent_id:
            yield f"agents.list[{position}]", agent
    entries = _at(document, "agents.entries")
    agent = entries.get(agent_id) if isinstance(entries, Mapping) else None
    if isinstance(agent, Mapping):
        yield f"agents.entries.{agent_id}", agent


def _at(value: Any, way: str) -> Any:
    """Follow a dotted way; None when nothing is there."""
    for name in way.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
