"""Puts the settings together: flags over environment over project file over user file over defaults."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from plainmind.base.errors import ConfigError, WorkspaceError, check_kind
from plainmind.base.lazy import pattern
from plainmind.base.value import field, record, replace, value
from plainmind.config.kinds import SHOWS, ExtraPath, Text, Unfit
from plainmind.config.settings import GUEST_SECTIONS, ChunkingSettings, Settings, build
from plainmind.files.safe_open import expand_user, real_path, user_home_or_root
from plainmind.files.system import SYSTEM, explain_errors, make_folders
from plainmind.notes.discovery import holds_markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

PREFIX = "PLAINMIND_"
_HOME, _WORKSPACE = PREFIX + "HOME", PREFIX + "WORKSPACE"
_NAMES = ("plainmind.json5", "plainmind.json")
_PROJECT_NAMES = (".plainmind.json5", ".plainmind.json")

OriginKind: TypeAlias = (
    "Literal['default', 'program', 'openclaw', 'user', 'project', 'environment', 'flag', 'found', 'here']"
)


@value
class Origin:
    """The layer that a value comes from, and the file, variable or flag within it."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.where})" if self.where else self.kind


DEFAULT = Origin("default")


@value
class ResolvedWorkspace:
    """The workspace, and why it is this one. It need not exist."""

    path: str
    origin: Origin

    @property
    def reason(self) -> str:
        """Why it is this one, in words."""
        kind, where = self.origin.kind, self.origin.where
        if kind == "default":
            return "used wherever no other is named"
        if kind == "here":
            return "the folder you are in"
        if kind == "found":
            return f"found by its {os.path.relpath(where, self.path)}"
        return f"named by {where or kind}"


def home_folder(environ: Mapping[str, str]) -> str:
    """Where our state is kept: `PLAINMIND_HOME`, or `~/.plainmind`; links are resolved here, and nowhere later."""
    return real_path(os.path.abspath(absolute(environ.get("PLAINMIND_HOME") or "~/.plainmind", "", environ)))


def make_home(home: str) -> None:
    """Make the folder of our state if it is not there; where that is refused, say how to choose another one."""
    try:
        with explain_errors("create", home):
            make_folders(SYSTEM, home)
    except WorkspaceError as error:
        hint = f"{error.hint}; or set PLAINMIND_HOME to a folder that you may write"
        raise WorkspaceError(str(error), hint=hint) from error


def resolve_workspace(
    flag: str | None,
    environ: Mapping[str, str],
    configured: str | None,
    cwd: str,
    home: str,
    *,
    configured_by: Origin | None = None,
    looks_around: bool = True,
) -> ResolvedWorkspace:
    """Flag, then environment, then configuration, then the nearest one above `cwd`, then ours in `home`.

    Before there is something in the one in `home`, a `cwd` that holds Markdown is a folder of notes. Without
    `looks_around` nothing that lies in or above `cwd` counts.
    """
    if flag is not None:
        if not flag or "\0" in flag:
            raise ConfigError("`--workspace` must name a folder", key="workspace", hint="it is empty")
        return ResolvedWorkspace(absolute(flag, cwd, environ), Origin("flag", "--workspace"))
    if environ.get("PLAINMIND_WORKSPACE"):
        path = absolute(environ["PLAINMIND_WORKSPACE"], cwd, environ)
        return ResolvedWorkspace(path, Origin("environment", "PLAINMIND_WORKSPACE"))
    if configured:
        return ResolvedWorkspace(absolute(configured, home, environ), configured_by or Origin("user"))
    own = os.path.join(home, "workspace")
    found = _found_around(cwd, user_home_or_root(environ), has_own=_is_begun(own)) if looks_around else None
    return found or ResolvedWorkspace(own, Origin("default"))


def _found_around(cwd: str, last: str, *, has_own: bool) -> ResolvedWorkspace | None:
    for folder in _upwards(cwd, last):
        marker = _marker_in(folder)
        if marker is not None:
            return ResolvedWorkspace(folder, Origin("found", marker))
    if not has_own and is_folder_of_notes(cwd, last):
        return ResolvedWorkspace(
            os.path.normpath(cwd), Origin("here", "the folder you are in holds Markdown")
        )
    return None


def _is_begun(own: str) -> bool:
    """Whether a person has made the workspace, or something stands in it: programs make an empty one at their start."""
    memory = os.path.join(own, "memory")
    try:
        names = os.listdir(own)
        return bool(names) and (names != ["memory"] or bool(os.listdir(memory)))
    except OSError:
        return os.path.isdir(own)


def index_folder(template: str, *, home: str, agent_id: str, environ: Mapping[str, str]) -> str:
    """Fill in the folder that `store.path` means."""
    filled = absolute(template.replace("{home}", home).replace("{agentId}", agent_id), home, environ)
    return (
        filled if filled.startswith(home + "/") else real_path(filled)
    )  # beneath the home, no link is followed


def absolute(path: str, base: str, environ: Mapping[str, str]) -> str:
    """Make a path absolute: `~` is the user's home, relative ones start at `base`."""
    if path == "~" or path.startswith("~/"):
        path = expand_user(path, environ)
    return os.path.normpath(os.path.join(base, path))


def _upwards(folder: str, last: str) -> Iterator[str]:
    """Give the folder and those above it, up to the user's home: what is above that is not theirs."""
    folder = os.path.normpath(folder)
    ends = {last, os.path.realpath(last)}
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder in ends or above == folder:
            return
        folder = above


def _marker_in(folder: str) -> str | None:
    """Find what makes the folder a workspace."""
    try:
        shared = os.stat(folder).st_mode & (stat.S_ISVTX | stat.S_IWOTH)
    except OSError:
        return None
    # In a folder like /tmp every user may put a MEMORY.md above the work of others.
    if shared == stat.S_ISVTX | stat.S_IWOTH:
        return None
    for name in ("MEMORY.md", "memory.md", ".plainmindignore"):
        path = os.path.join(folder, name)
        if _is(path, stat.S_ISREG):
            return path
    path = os.path.join(folder, ".obsidian")
    if _is(path, stat.S_ISDIR):
        return path
    path = os.path.join(folder, "memory")
    return path if _is(path, stat.S_ISDIR) and holds_markdown(path) else None


def is_folder_of_notes(folder: str, user_home: str) -> bool:
    """Whether a folder without any sign of a workspace is searched all the same; a home is too wide for that."""
    homes = (user_home + "/", os.path.realpath(user_home) + "/")
    if any(home.startswith(os.path.normpath(folder).rstrip("/") + "/") for home in homes):
        return False
    try:
        is_shared = os.stat(folder).st_mode & stat.S_ISVTX
    except OSError:
        return False
    return not is_shared and holds_markdown(folder)


def _is(path: str, of_type: Callable[[int], bool]) -> bool:
    try:
        return of_type(os.lstat(path).st_mode)  # a link does not count: links are never followed
    except OSError:
        return False


# `${NAME}` is how OpenClaw writes the same.
_REFERENCE = pattern(r"env:([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def referenced_variable(value: str) -> str | None:
    """Name the environment variable that the value refers to; None when it is the secret itself."""
    match = _REFERENCE.fullmatch(value)
    return (match[1] or match[2]) if match else None


def resolve_secret(value: str | None, environ: Mapping[str, str]) -> str | None:
    """Look the secret up, which is done when it is needed and not before. Raises ConfigError."""
    if value is None:
        return None
    variable = referenced_variable(value)
    if variable is None:
        return value
    secret = environ.get(variable)
    if not secret:
        raise ConfigError(
            f"the configuration refers to the environment variable {variable}, which is not set",
            hint=f"set {variable}, or remove the reference `env:{variable}`",
        )
    return secret


class Origins(dict[str, Origin]):
    """Where each setting comes from, by its name; what no layer sets is the default."""

    def __missing__(self, _name: str) -> Origin:
        return DEFAULT


@record
class Layer:
    """The values of one layer, where each comes from, and remarks on what was changed or left out."""

    origin: Origin
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spelled: dict[str, str] = field(default_factory=dict)


@value
class Loaded:
    """The settings, where each value comes from, and remarks worth showing in `doctor`."""

    settings: Settings
    origins: Mapping[str, Origin]  # of every setting, by its name: `query.maxResults`
    notes: tuple[str, ...] = ()

    def secrets(self, environ: Mapping[str, str]) -> Iterator[str]:
        """The secrets that the settings hold or refer to."""
        if not self.settings.guests and not self.settings.provider_access:
            return
        from plainmind.config.keys import given_secrets

        for given in given_secrets(self.settings):
            variable = referenced_variable(given)
            secret = environ.get(variable) if variable else given
            if secret:
                yield secret


def load_here(
    *,
    workspace_flag: str | None,
    cwd: str,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    looks_around: bool = True,
    assumed: Mapping[str, Any] | None = None,
    broken: list[ConfigError] | None = None,
) -> tuple[Loaded, ResolvedWorkspace]:
    """Find the workspace and read every layer for it, each file once. Raises ConfigError.

    `flags` may be nested or dotted, and a flag that is None was not given. What is `assumed` holds where nobody has set
    it. With a list for what is `broken`, a file that cannot be understood is told there and left out, and so are
    variables.
    """
    check_kind(flags, "`config`", Mapping, "settings by their names (dict)")
    home = home_folder(environ)
    above, below = _layers_of_the_user(home, flags, environ, broken)
    configured, origin = _strongest([*below, *above], "workspace", None)
    if origin.kind in {"environment", "flag"} and configured is not None:
        configured = absolute(configured, cwd, environ)
    workspace = resolve_workspace(
        workspace_flag,
        environ,
        configured,
        cwd,
        home,
        configured_by=origin,
        looks_around=looks_around,
    )
    program = Origin("program")
    weakest = [Layer(program, dict(assumed), dict.fromkeys(assumed, program))] if assumed else []
    project = _understood(lambda: _project_layer(workspace.path), broken)
    return _combine([*weakest, *below, *project, *above]), workspace


def user_file(home: str) -> str:
    """Name the user's configuration file, whether it exists or not. Raises ConfigError when there are two."""
    return _only_one(home, _NAMES) or os.path.join(home, _NAMES[0])


def _layers_of_the_user(
    home: str, flags: Mapping[str, Any], environ: Mapping[str, str], broken: list[ConfigError] | None
) -> tuple[list[Layer], list[Layer]]:
    """Read the layers above and those below the project's, each from the weakest to the strongest."""
    below = _understood(lambda: _file_layer(user_file(home), "user"), broken)
    above = [*_understood(lambda: _environment_layer(environ), broken), *_flag_layer(flags)]
    path, _ = _strongest([*below, *above], "openclawConfig", None)
    if path is not None:
        place = absolute(path, home, environ)
        agent, _ = _strongest([*below, *above], "agentId", "main")
        return above, [*_understood(lambda: [_openclaw_layer(place, agent)], broken), *below]
    return above, below


def _understood(read: Callable[[], list[Layer]], broken: list[ConfigError] | None) -> list[Layer]:
    try:
        return read()
    except ConfigError as error:
        if broken is None:
            raise
        broken.append(error)
        return []


def _file_layer(path: str, kind: Any, *, follow_symlinks: bool = True) -> list[Layer]:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError):
        pass  # said below, with the reason
    from plainmind.config.keys import CheckedLayer, parse_document, read_bytes

    data = read_bytes(path, follow_symlinks=follow_symlinks)
    if data is None:
        return []
    layer = CheckedLayer(Origin(kind, path))
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
            from plainmind.config.keys import printable, printable_path

            raise ConfigError(
                f"a project file may not set `extraPaths` to `{printable(extra.path)}`, "
                f"which is outside the workspace (in {printable_path(file)})",
                key="extraPaths",
                hint="only your own configuration may name paths outside the workspace",
            )


def _refuse_sharing(paths: Iterable[ExtraPath], file: str) -> None:
    """Keep a file that came with a project from opening its folders to groups and other people."""
    if any(extra.scope is not None for extra in paths):
        from plainmind.config.keys import printable_path

        raise ConfigError(
            f"a project file may not set the `scope` of `extraPaths`: {SHOWS} (in {printable_path(file)})",
            key="extraPaths",
            hint="say it in your own configuration",
        )


def _openclaw_layer(path: str, agent_id: str) -> Layer:
    from plainmind.config.openclaw import read_openclaw

    found = read_openclaw(path, agent_id=agent_id)
    origin = Origin("openclaw", path)
    return Layer(origin, dict(found.values), dict.fromkeys(found.values, origin), list(found.notes))


def _environment_layer(environ: Mapping[str, str]) -> list[Layer]:
    names = sorted(name for name in environ if name.startswith(PREFIX) and environ[name])
    if not names or names == [_HOME]:
        return []
    if set(names) <= {_HOME, _WORKSPACE}:
        # What nearly everybody sets, and nothing else: no other setting need be known.
        try:
            path, origin = Text().from_text(environ[_WORKSPACE]), Origin("environment", _WORKSPACE)
            return [Layer(Origin("environment"), {"workspace": path}, {"workspace": origin})]
        except Unfit:
            pass  # said below, as of every other setting
    from plainmind.config.keys import environment_layer

    return [environment_layer(environ, names)]


def _flag_layer(flags: Mapping[str, Any]) -> list[Layer]:
    given = {name: value for name, value in flags.items() if value is not None}
    if not given:
        return []
    from plainmind.config.keys import CheckedLayer

    layer = CheckedLayer(Origin("flag"))
    layer.put_all(given)
    return [layer]


def _combine(layers: list[Layer]) -> Loaded:
    """Take the strongest value of each setting, brought into agreement with the others."""
    values: dict[str, Any] = {}
    origins = Origins()
    for layer in layers:  # from the weakest to the strongest
        values.update(layer.values)
        origins.update(layer.origins)
    notes = [note for layer in layers for note in layer.notes]
    _scale_weights(values, origins, notes)
    _bound_overlap(values, origins, notes)
    guests = {name: value for name, value in values.items() if name.partition(".")[0] in GUEST_SECTIONS}
    settings = build(Settings, "", values) if values else Settings()
    return Loaded(replace(settings, guests=guests) if guests else settings, origins, tuple(notes))


def _scale_weights(values: dict[str, Any], origins: dict[str, Origin], notes: list[str]) -> None:
    """Make two weights shares of a whole; one alone is a share, and the other has the rest."""
    names = ("query.hybrid.vectorWeight", "query.hybrid.textWeight")
    given = {name: values[name] for name in names if values.get(name) is not None}
    if not given:
        return
    if len(given) == 1:
        ((name, weight),) = given.items()
        other = names[1] if name == names[0] else names[0]
        values[name] = min(weight, 1.0)
        values[other] = 1.0 - values[name]
        origins[other] = origins[name]  # it is no longer the default that is in force
        return
    total = sum(given.values())
    for name in names:
        if total:
            values[name] /= total
        else:
            del values[name]
            origins[name] = DEFAULT
    if not total:
        notes.append("`query.hybrid`: both weights are 0, so the defaults are used")


def _bound_overlap(values: dict[str, Any], origins: dict[str, Origin], notes: list[str]) -> None:
    names = ("chunking.tokens", "chunking.overlap")
    if not any(name in values for name in names):
        return
    defaults = ChunkingSettings()
    tokens, overlap = values.get(names[0], defaults.tokens), values.get(names[1], defaults.overlap)
    if overlap >= tokens:
        values["chunking.overlap"] = tokens // 5  # the share that the defaults have
        origins["chunking.overlap"] = origins["chunking.tokens"]
        notes.append(f"`chunking.overlap` is {tokens // 5}: it must be less than the {tokens} of `tokens`")


def _strongest(layers: list[Layer], name: str, default: Any) -> tuple[Any, Origin]:
    """The value of one setting and where it comes from, before all layers are known."""
    for layer in reversed(layers):
        if name in layer.values:
            return layer.values[name], layer.origins[name]
    return default, DEFAULT


def _only_one(folder: str, names: tuple[str, ...]) -> str | None:
    found = [path for name in names if os.path.lexists(path := os.path.join(folder, name))]
    if len(found) > 1:
        from plainmind.config.keys import printable_path

        both = " and ".join(printable_path(path) for path in found)
        raise ConfigError(f"there are {both}", hint="move the settings into one of them")
    return found[0] if found else None
