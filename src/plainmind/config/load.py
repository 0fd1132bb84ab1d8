"""Puts the settings together: flags over environment over project file over user file over defaults."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.value import value
from plainmind.config.document import parse_document, read_bytes
from plainmind.config.groups import SHOWS
from plainmind.config.keys import all_keys, build_settings, unknown_key
from plainmind.config.locations import ResolvedWorkspace, absolute, home_folder, resolve_workspace
from plainmind.config.origin import DEFAULT, Origin
from plainmind.config.settings import Settings
from plainmind.config.structured import ExtraPath
from plainmind.config.wording import printable, printable_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.config.layers import Layer

__all__ = ["Loaded", "Origin", "load_here", "load_settings", "user_file"]

PREFIX = "PLAINMIND_"
_NAMES = ("plainmind.json5", "plainmind.json")
_PROJECT_NAMES = (".plainmind.json5", ".plainmind.json")


@value
class Loaded:
    """The settings, where each value comes from, and remarks worth showing in `doctor`."""

    settings: Settings
    origins: Mapping[str, Origin]  # of every setting, by its name: `query.maxResults`
    notes: tuple[str, ...] = ()


def load_settings(
    *, home: str, workspace: str | None, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> Loaded:
    """Read every layer for a known workspace; None reads no project file. Raises ConfigError.

    `flags` may be nested or dotted, and a flag that is None was not given.
    """
    above, below = _layers_of_the_user(home, flags, environ)
    return _combine([*below, *_project_layer(workspace), *above])


def load_here(
    *, workspace_flag: str | None, cwd: str, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[Loaded, ResolvedWorkspace]:
    """Find the workspace and read every layer for it, each file once. Raises ConfigError."""
    home = home_folder(environ)
    above, below = _layers_of_the_user(home, flags, environ)
    known = _combine([*below, *above])
    configured = known.settings.workspace
    origin = known.origins["workspace"]
    if origin.kind in {"environment", "flag"} and configured is not None:
        configured = absolute(configured, cwd, environ)
    workspace = resolve_workspace(workspace_flag, environ, configured, cwd, home, configured_by=origin)
    project = _project_layer(workspace.path)
    return (_combine([*below, *project, *above]) if project else known), workspace


def user_file(home: str) -> str:
    """Name the user's configuration file, whether it exists or not. Raises ConfigError when there are two."""
    return _only_one(home, _NAMES) or os.path.join(home, _NAMES[0])


def _layers_of_the_user(
    home: str, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[list[Layer], list[Layer]]:
    """Read the layers above and those below the project's, each from the weakest to the strongest."""
    below = _file_layer(user_file(home), "user")
    above = [*_environment_layer(environ), *_flag_layer(flags)]
    for layer in (*reversed(above), *below):
        path = layer.values.get("openclawConfig")
        if path is not None:
            agent = _strongest([*below, *above], "agentId", "main")
            return above, [_openclaw_layer(absolute(path, home, environ), agent), *below]
    return above, below


def _file_layer(path: str, kind: Any, *, follow_symlinks: bool = True) -> list[Layer]:
    data = read_bytes(path, follow_symlinks=follow_symlinks)
    if data is None:
        return []
    layer = _layer(Origin(kind, path))
    layer.put_all(parse_document(data, path))
    return [layer]


def _project_layer(workspace: str | None) -> list[Layer]:
    path = _only_one(workspace, _PROJECT_NAMES) if workspace is not None else None
    if workspace is None or path is None:
        return []
    layers = _file_layer(path, "project", follow_symlinks=False)
    for layer in layers:
        paths = layer.values.get("extraPaths", ())
        _refuse_paths_outside(workspace, paths, path)
        _refuse_sharing(paths, path)
    return layers


def _refuse_paths_outside(workspace: str, paths: Iterable[ExtraPath], file: str) -> None:
    root = os.path.realpath(workspace)
    for extra in paths:
        real = os.path.realpath(os.path.join(root, extra.path))
        leaves = os.path.commonpath([root, real]) != root or extra.path.startswith("~")
        if leaves or (extra.pattern is not None and {"", ".."} & set(extra.pattern.split("/"))):
            raise ConfigError(
                f"a project file may not set `extraPaths` to `{printable(extra.path)}`, "
                f"which is outside the workspace (in {printable_path(file)})",
                key="extraPaths",
                hint="only your own configuration may name paths outside the workspace",
            )


def _refuse_sharing(paths: Iterable[ExtraPath], file: str) -> None:
    """Keep a file that came with a project from opening its folders to groups and other people."""
    if any(extra.scope is not None for extra in paths):
        raise ConfigError(
            f"a project file may not set the `scope` of `extraPaths`: {SHOWS} (in {printable_path(file)})",
            key="extraPaths",
            hint="say it in your own configuration",
        )


def _openclaw_layer(path: str, agent_id: str) -> Layer:
    from plainmind.config.openclaw import read_openclaw

    found = read_openclaw(path, agent_id=agent_id)
    origin = Origin("openclaw", path)
    return _layer(origin, dict(found.values), dict.fromkeys(found.values, origin), list(found.notes))


def _environment_layer(environ: Mapping[str, str]) -> list[Layer]:
    names = sorted(name for name in environ if name.startswith(PREFIX) and environ[name])
    if not names:
        return []
    known = {_bare(key.environment_name): key for key in all_keys().values()}
    sections = tuple({f"{PREFIX}{name.partition('.')[0].upper()}_" for name in all_keys() if "." in name})
    layer = _layer(Origin("environment"))
    for name in names:
        key = known.get(_bare(name))
        if key is not None:
            layer.put(key, key.name, environ[name], Origin("environment", name))
        elif name.startswith(sections):
            raise unknown_key(name[len(PREFIX) :].lower().replace("_", "."), f" (in {printable(name)})")
        elif name != PREFIX + "HOME":
            layer.notes.append(f"the environment variable {printable(name)} sets nothing")
    return [layer]


def _flag_layer(flags: Mapping[str, Any]) -> list[Layer]:
    given = {name: value for name, value in flags.items() if value is not None}
    if not given:
        return []
    layer = _layer(Origin("flag"))
    layer.put_all(given)
    return [layer]


def _layer(*facts: Any) -> Layer:
    """Make a layer; where nothing is set, nothing that checks values is imported."""
    from plainmind.config.layers import Layer

    return Layer(*facts)


def _combine(layers: list[Layer]) -> Loaded:
    """Take the strongest value of each setting, brought into agreement with the others."""
    values: dict[str, Any] = {}
    origins = dict.fromkeys(all_keys(), DEFAULT)
    for layer in layers:  # from the weakest to the strongest
        values.update(layer.values)
        origins.update(layer.origins)
    notes = [note for layer in layers for note in layer.notes]
    _scale_weights(values, origins, notes)
    _bound_overlap(values, origins, notes)
    return Loaded(build_settings(values), origins, tuple(notes))


def _scale_weights(values: dict[str, Any], origins: dict[str, Origin], notes: list[str]) -> None:
    names = ("query.hybrid.vectorWeight", "query.hybrid.textWeight")
    vector, text = (values.get(name, all_keys()[name].default) for name in names)
    total = vector + text
    if total == 0:
        notes.append("`query.hybrid`: both weights are 0, so the defaults are used")
        for name in names:
            del values[name]
            origins[name] = DEFAULT
    elif total != 1:
        # Setting one moves the other: it is no longer the default that is in force.
        given = next(origins[name] for name in names if name in values)
        for name, weight in zip(names, (vector, text), strict=True):
            values[name] = weight / total
            origins[name] = given if origins[name] == DEFAULT else origins[name]


def _bound_overlap(values: dict[str, Any], origins: dict[str, Origin], notes: list[str]) -> None:
    names = ("chunking.tokens", "chunking.overlap")
    tokens, overlap = (values.get(name, all_keys()[name].default) for name in names)
    if overlap >= tokens:
        values["chunking.overlap"] = tokens // 5  # the share that the defaults have
        origins["chunking.overlap"] = origins["chunking.tokens"]
        notes.append(f"`chunking.overlap` is {tokens // 5}: it must be less than the {tokens} of `tokens`")


def _strongest(layers: list[Layer], name: str, default: str) -> str:
    return next((str(layer.values[name]) for layer in reversed(layers) if name in layer.values), default)


def _only_one(folder: str, names: tuple[str, ...]) -> str | None:
    found = [path for name in names if os.path.lexists(path := os.path.join(folder, name))]
    if len(found) > 1:
        both = " and ".join(printable_path(path) for path in found)
        raise ConfigError(f"there are {both}", hint="move the settings into one of them")
    return found[0] if found else None


def _bare(name: str) -> str:
    """Leave out prefix and underscores, so that `QUERY_MAX_RESULTS` and `QUERY_MAXRESULTS` are the same."""
    return name[len(PREFIX) :].replace("_", "").upper()
