"""What QMD indexes, by name: folders, who may see what is in them, and how their files are cited."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from plainmind.base.lazy import pattern
from plainmind.base.model import EVERY_SCOPE, PRIVATE, SHARED_FOLDER, Source, sha256_text
from plainmind.base.value import value
from plainmind.files.safe_open import Root
from plainmind.memory.backend import Place
from plainmind.notes.scopes import scope_of_path

EVERY_NOTE = "**/*.md"
_CURATED = "{MEMORY,memory,USER,TOOLS,IDENTITY,SOUL}.md"
_UNSAFE = pattern(r"[^A-Za-z0-9_]+")
_GLOB = pattern(r"([\\*?\[\]{}()!+@|])")
_NEVER_ENTERED = frozenset({"build", "dist", "node_modules", "vendor"})  # nor hidden ones, as we do not


@value
class Collection:
    """Files of one folder. `memory/` before a path relative to it gives how it is cited."""

    name: str
    folder: str
    pattern: str
    cited: str  # what stands before the relative path: "", or with a final slash
    scope: str = PRIVATE  # who may see it, beside the owner
    source: Source = "memory"
    is_part: bool = False  # its files are in another collection too, that only the owner may ask


def collections_of(
    root: Root,
    places: Sequence[Place],
    *,
    agent_id: str,
    include_default: bool,
    is_folder_of_notes: bool = False,
    others: Sequence[Collection] = (),
) -> tuple[Collection, ...]:
    """The collections of the memory files, and `others`; those of a group or a person are folders of their own."""
    own = _default(root, agent_id, is_folder_of_notes=is_folder_of_notes) if include_default else ()
    found = [*own, *others]
    taken = {collection.name for collection in found}
    found.extend(_of_place(place, taken) for place in places)
    return tuple(found)


def left_out(paths: Iterable[str], collections: Sequence[Collection]) -> list[str]:
    """Which cited paths it leaves out of every collection, without a word, because of what a folder is called."""
    doubtful = (path for path in paths if not _NEVER_ENTERED.isdisjoint(path.split("/")[:-1]))
    return [path for path in doubtful if not any(_enters(each, path) for each in collections)]


def _enters(collection: Collection, path: str) -> bool:
    below = path.removeprefix(collection.cited).split("/")[:-1]
    return path.startswith(collection.cited) and _NEVER_ENTERED.isdisjoint(below)


def _default(root: Root, agent_id: str, *, is_folder_of_notes: bool) -> Iterator[Collection]:
    if is_folder_of_notes:
        yield Collection(f"memory-root-{agent_id}", root.real, EVERY_NOTE, "")
    else:
        yield Collection(f"memory-root-{agent_id}", root.real, _CURATED, "")
        yield Collection(f"memory-dir-{agent_id}", os.path.join(root.real, "memory"), EVERY_NOTE, "memory/")
    for cited, scope in _shared(root, SHARED_FOLDER):
        folder = os.path.join(root.real, cited)
        name = f"{key_of_scope(scope)}-{agent_id}"
        yield Collection(name, folder, EVERY_NOTE, f"{cited}/", scope, is_part=True)


def _shared(root: Root, cited: str) -> Iterator[tuple[str, str]]:
    """The folders of groups, people and everyone, as cited, with who may see them; some lie in one of a channel."""
    try:
        names = sorted(os.listdir(os.path.join(root.real, cited)))
    except OSError:
        return
    for name in names:
        below = f"{cited}/{name}"
        folder = os.path.join(root.real, below)
        if os.path.islink(folder) or not os.path.isdir(folder):
            continue
        scope = scope_of_path(f"{below}/x.md")
        if scope != PRIVATE:
            yield below, scope
        elif cited == SHARED_FOLDER:
            yield from _shared(root, below)


def _of_place(place: Place, taken: set[str]) -> Collection:
    mount = place.mount
    folder, cited, mask = mount.real, mount.cited, place.pattern
    if folder.lower().endswith(".md") and not os.path.isdir(folder):
        folder, mask = os.path.dirname(folder), _GLOB.sub(r"\\\1", os.path.basename(folder))
        cited = os.path.dirname(cited)
    name = _UNSAFE.sub("-", cited.removeprefix("qmd/")).strip("-_")[:60] or "workspace"
    numbered = (f"{name}-{number}" if number > 1 else name for number in range(1, 10_000))
    name = next(each for each in numbered if each not in taken)
    taken.add(name)
    return Collection(name, folder, mask, f"{cited}/" if cited else "", mount.scope)


def key_of_scope(scope: str) -> str:
    """A name for a scope that names nobody."""
    return "private" if scope == PRIVATE else f"scope-{sha256_text(scope)[:16]}"


def askable(
    collections: Iterable[Collection], scopes: frozenset[str], sources: Sequence[Source]
) -> tuple[Collection, ...]:
    """The collections that a question may be put to: others are not even named."""
    everything = scopes == EVERY_SCOPE
    return tuple(
        collection
        for collection in collections
        if collection.source in sources
        and (not collection.is_part if everything else collection.scope in scopes)
    )


def config_text(collections: Iterable[Collection], models: Mapping[str, str]) -> str:
    """What stands in its configuration, as JSON, which YAML has as a part of it.

    Written by us each time it should be another one, with the models in it: it keeps the first ones it was told of.
    """
    wanted = {
        collection.name: {"path": collection.folder, "pattern": collection.pattern}
        for collection in collections
    }
    config: dict[str, object] = {"collections": wanted}
    if models:
        config["models"] = dict(models)
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def folded(path: str) -> str:
    """A path as older versions of it write them: small letters, and a dash for everything unusual."""
    stem = re.sub(r"\.md$", "", path.casefold())
    return "/".join(re.sub(r"[^\w]+|_", "-", part).strip("-") for part in stem.split("/"))
