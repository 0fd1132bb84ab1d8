"""The settings by the names people write, `query.maxResults`, and by other spellings that mean them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from plainmind.base.errors import ConfigError
from plainmind.base.value import MISSING, fields, value
from plainmind.config.kinds import Kind
from plainmind.config.settings import Settings
from plainmind.config.wording import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where OpenClaw keeps the same settings, so that a block of its configuration can be pasted over.
_OTHER_SPELLINGS = (
    ("memorySearch", ""),
    ("memory.search", ""),
    ("memory.backend", "backend"),
    ("memory.citations", "citations"),
    ("memory.qmd", "qmd"),
    ("qmd.limits", "limits"),
    ("qmd.scope", "scope"),
    ("compaction.memoryFlush", "memoryFlush"),
    ("compaction.reserveTokensFloor", "reserveTokensFloor"),
    ("query.hybrid.temporalDecay", "query.temporalDecay"),
    ("query.hybrid.mmr", "query.mmr"),
)
# What such a block may hold that has no meaning here: noted, and otherwise left alone.
_WITHOUT_EFFECT = frozenset(
    {
        "$schema",
        "documentInputType",
        "experimental",
        "inputType",
        "multimodal",
        "qmd.mcporter",
        "qmd.rerank",
        "qmd.update.startup",
        "qmd.update.waitForBootSync",
        "queryInputType",
        "rememberAcrossConversations",
        "store.fts",
        "store.vector.extensionPath",
    }
)


@value
class Key:
    """One setting under its name."""

    name: str
    attributes: tuple[str, ...]  # the way to it from a `Settings`
    kind: Kind
    default: Any
    doc: str
    project: str  # why a project file may not set it; empty when it may
    secret: bool

    @property
    def environment_name(self) -> str:
        """Name the variable that sets it: `PLAINMIND_QUERY_MAXRESULTS`."""
        return "PLAINMIND_" + self.name.replace(".", "_").upper()

    def of(self, settings: Settings) -> Any:
        """Look up its value in a tree of settings."""
        value: Any = settings
        for attribute in self.attributes:
            value = getattr(value, attribute)
        return value


@cache
def all_keys() -> Mapping[str, Key]:
    """Every setting by its name, in the order of the tree."""
    return {key.name: key for key in _walk(Settings, "", ())}


@cache
def section_names() -> frozenset[str]:
    """List the names that hold settings rather than being one; the empty name is the whole."""
    spelled = [name for name, _ in _OTHER_SPELLINGS if canonical(name) not in all_keys()]
    parents = {name[:at] for name in (*all_keys(), *spelled) for at, sign in enumerate(name) if sign == "."}
    return frozenset({"", *parents, *spelled})


def canonical(name: str) -> str:
    """Give the name of the setting that this spelling means; an unknown name stays as it is."""
    for other, ours in _OTHER_SPELLINGS:
        if name == other or name.startswith(other + "."):
            return canonical((ours + name[len(other) :]).lstrip("."))
    return name


def has_no_effect(name: str) -> bool:
    """Whether it is a setting of OpenClaw without a meaning here."""
    return any(name == known or name.startswith(known + ".") for known in _WITHOUT_EFFECT)


def find_key(name: str) -> Key:
    """Find the setting of that name. Raises ConfigError with the nearest valid one."""
    key = all_keys().get(canonical(name))
    if key is None:
        raise unknown_key(name)
    return key


def unknown_key(name: str, where: str = "") -> ConfigError:
    """Make the error for a name that is no setting."""
    close = nearest(canonical(name), all_keys())
    return ConfigError(
        f"unknown setting `{printable(name)}`{where}",
        key=name,
        hint=f"did you mean `{close}`?" if close else "`plainmind config list` shows every setting",
    )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word most like `word`, or None when none is."""
    from difflib import get_close_matches

    word = word[:200].lower()
    by_form: dict[str, str] = {}
    for name in known:
        by_form.setdefault(name.lower(), name)
    for name in tuple(by_form.values()):  # `apiKey` for `remote.apiKey`
        by_form.setdefault(name.rpartition(".")[2].lower(), name)
    close = get_close_matches(word, by_form, n=1, cutoff=0.7)
    return by_form[close[0]] if close else None


def build_settings(values: Mapping[str, Any]) -> Settings:
    """Make the tree from checked values by name, and defaults for the rest."""
    return _build(Settings, "", values) if values else Settings()


def _build(tree: type[Any], prefix: str, values: Mapping[str, Any]) -> Any:
    given: dict[str, Any] = {}
    for field in fields(tree):
        name = prefix + (field.metadata["name"] or _camel_case(field.name))
        if "group" in field.metadata:
            given[field.name] = _build(field.metadata["group"], name + ".", values)
        elif name in values:
            given[field.name] = values[name]
    return tree(**given)


def _walk(tree: type[Any], prefix: str, attributes: tuple[str, ...]) -> Iterator[Key]:
    for field in fields(tree):
        facts = field.metadata
        name = prefix + (facts["name"] or _camel_case(field.name))
        way = (*attributes, field.name)
        if "group" in facts:
            yield from _walk(facts["group"], name + ".", way)
            continue
        default = field.default if field.default is not MISSING else {}
        yield Key(name, way, facts["kind"], default, facts["doc"], facts["project"], facts["secret"])


def _camel_case(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)
