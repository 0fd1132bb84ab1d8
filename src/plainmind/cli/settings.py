"""`config`: show settings with their origins, and change one."""

from __future__ import annotations

import argparse
import os

from plainmind.cli.console import Console
from plainmind.cli.options import commands_below, describe
from plainmind.files.safe_open import expand_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.config.edit import Change, Write
    from plainmind.config.load import Loaded, ResolvedWorkspace


def add_config(parser: argparse.ArgumentParser) -> None:
    """Say what `config` takes."""
    describe(
        parser,
        """\
Show every setting with its origin, or change one. Flags win over the environment, over the workspace's
.plainmind.json5, over your own plainmind.json5, over the defaults.

Changes go to plainmind.json5 in ~/.plainmind; comments in it stay.""",
        examples=(
            "plainmind config list",
            "plainmind config set query.maxResults 10",
            "plainmind config get query",
        ),
        run=run_list_settings,
    )
    parser.set_defaults(only_set=False)
    add = commands_below(parser)

    listing = add(
        "list", "show settings with their origins", "plainmind config list --set", run_list_settings
    )
    listing.add_argument(
        "--set", dest="only_set", action="store_true", help="only those that are not the default"
    )
    getting = add(
        "get",
        "show one setting, or all of a section",
        "plainmind config get query.maxResults",
        run_get_setting,
    )
    getting.add_argument("key", metavar="KEY", help="its name, such as query.maxResults")
    setting = add(
        "set", "set a value in your own file", "plainmind config set query.maxResults 10", run_set_setting
    )
    setting.add_argument("key", metavar="KEY", help="its name, such as query.maxResults")
    setting.add_argument("value", metavar="VALUE", help="a number, text, true or false, or a,b for a list")
    unsetting = add(
        "unset",
        "take a value out of your own file",
        "plainmind config unset query.maxResults",
        run_unset_setting,
    )
    unsetting.add_argument("key", metavar="KEY", help="its name, such as query.maxResults")
    add("path", "show which files settings are read from", "plainmind config path", run_path)
    importing = add(
        "import-openclaw",
        "take over the settings of an openclaw.json, which stays where it is and is read each time",
        "plainmind config import-openclaw ~/.openclaw/openclaw.json",
        run_import_openclaw,
    )
    importing.add_argument("path", metavar="PATH", help="the openclaw.json")


def run_list_settings(arguments: argparse.Namespace, console: Console) -> int:
    """Print every setting."""
    from plainmind.config.edit import rows

    loaded, _ = _load(arguments)
    shown = [row for row in rows(loaded) if row.origin.kind != "default" or not arguments.only_set]
    if console.json:
        console.result(
            {
                "settings": [
                    {"key": row.key, "value": row.value, "origin": _origin(row.origin), "doc": row.doc}
                    for row in shown
                ],
                "notes": list(loaded.notes),
            }
        )
        return 0
    width = max((len(row.key) for row in shown), default=0)
    for row in shown:
        origin = "" if row.origin.kind == "default" else console.style(f"  from {row.origin}", "dim")
        console.answer(f"{row.key:{width}}  {_as_text(row.value)}{origin}")
    for note in loaded.notes:
        console.note(note)
    if not shown:
        console.note("everything is at its default")
    return 0


def run_get_setting(arguments: argparse.Namespace, console: Console) -> int:
    """Print one value, or a section."""
    from plainmind.config.edit import get_value
    from plainmind.config.keys import canonical, known_key

    loaded, _ = _load(arguments)
    value = get_value(loaded, arguments.key)
    key = known_key(canonical(arguments.key))
    origin = None if key is None else loaded.origins[key.name]
    if console.json:
        console.result({"key": arguments.key, "value": value, "origin": _origin(origin) if origin else None})
    elif origin is None:
        for name, inner in value.items():
            console.answer(f"{name} = {_as_text(inner)}")
    else:
        console.answer(value if isinstance(value, str) else _as_text(value))
    return 0


def run_set_setting(arguments: argparse.Namespace, console: Console) -> int:
    """Write one value to the user's file."""
    change = set_value(arguments, arguments.key, arguments.value)
    if console.json:
        console.result({"path": change.path, "key": change.key, "value": change.value})
    else:
        console.say(f"{change.key} = {_as_text(change.value)} in {change.path}")
    if isinstance(change.value, int | float) and _is_another_number(arguments.value, change.value):
        console.note(f"{arguments.value} is out of range; {change.value:,} is the nearest that is allowed")
    return 0


def run_unset_setting(arguments: argparse.Namespace, console: Console) -> int:
    """Take one value out of the user's file, and say what counts now."""
    from plainmind.config.edit import get_value, unset_user_value
    from plainmind.config.load import home_folder

    home = home_folder(_environ(arguments))
    change = unset_user_value(home, arguments.key, write=_writer(home, "config unset"))
    loaded, _ = _load(arguments)
    value = get_value(loaded, arguments.key)
    if console.json:
        console.result({"key": arguments.key, "removed": change is not None, "value": value})
        return 0
    if change is None:
        console.note(f"{arguments.key} is not set in your own file")
    console.say(f"{arguments.key} = {_as_text(value)}, {_where(loaded, arguments.key)}")
    return 0


def _where(loaded: Loaded, key: str) -> str:
    from plainmind.config.keys import canonical

    origin = loaded.origins.get(canonical(key))
    return "the default" if origin is None or origin.kind == "default" else f"from {origin}"


def _is_another_number(given: str, taken: float) -> bool:
    try:
        return float(given) != taken
    except ValueError:
        return False  # `true`, or a number in another spelling


def run_path(arguments: argparse.Namespace, console: Console) -> int:
    """Print which files count."""
    from plainmind.config.load import home_folder, user_file

    loaded, workspace = _load(arguments)
    user = user_file(home_folder(_environ(arguments)))
    project = next((origin.where for origin in loaded.origins.values() if origin.kind == "project"), None)
    if console.json:
        console.result(
            {
                "user": user,
                "userExists": os.path.exists(user),
                "project": project,
                "openclaw": loaded.settings.openclaw_config,
                "workspaceDir": workspace.path,
                "workspaceOrigin": _origin(workspace.origin),
            }
        )
        return 0
    console.answer(user)
    if project:
        console.answer(project)
    if not os.path.exists(user):
        console.note("it does not exist yet; `plainmind config set` creates it")
    return 0


def run_import_openclaw(arguments: argparse.Namespace, console: Console) -> int:
    """Let settings of OpenClaw count, just above the defaults."""
    from plainmind.config.openclaw import read_openclaw

    path = os.path.abspath(expand_user(arguments.path))
    loaded, _ = _load(arguments)
    found = read_openclaw(path, agent_id=loaded.settings.agent_id)
    change = set_value(arguments, "openclawConfig", path)
    loaded, _ = _load(arguments)
    from plainmind.config.edit import get_value

    taken = {key: get_value(loaded, key) for key in sorted(found.values)}
    if console.json:
        console.result(
            {"path": change.path, "openclawConfig": path, "values": taken, "notes": list(found.notes)}
        )
        return 0
    console.say(f"settings are now taken over from {path}, each time it is read (set in {change.path})")
    for key, value in taken.items():
        console.answer(f"{key} = {_as_text(value)}")
    for note in found.notes:
        console.note(note)
    return 0


def _environ(arguments: argparse.Namespace) -> dict[str, str]:
    home = {} if arguments.home is None else {"PLAINMIND_HOME": os.path.abspath(expand_user(arguments.home))}
    return {**os.environ, **home}


def _load(arguments: argparse.Namespace) -> tuple[Loaded, ResolvedWorkspace]:
    from plainmind.config.load import load_here

    return load_here(
        workspace_flag=arguments.workspace,
        cwd=os.getcwd(),
        flags=arguments.settings,
        environ=_environ(arguments),
    )


def set_value(arguments: argparse.Namespace, key: str, value: str) -> Change:
    """Write one value to the user's file."""
    from plainmind.config.edit import set_user_value
    from plainmind.config.load import home_folder

    home = home_folder(_environ(arguments))
    return set_user_value(home, key, value, write=_writer(home, "config set"))


def _writer(home: str, reason: str) -> Write:
    """What writes the settings file, and keeps what it was."""

    def write(path: str, data: bytes, base_hash: str | None) -> None:
        from plainmind.files.history import History
        from plainmind.files.replace import replace

        state = os.path.join(home, "state", "settings")
        replace(
            # A settings file may be a link into a folder of dotfiles: what is behind it is changed.
            os.path.realpath(path),
            data,
            base_hash=base_hash,
            state_dir=state,
            history=History(os.path.join(state, "history")),
            reason=reason,
            allow_shrink=True,
        )

    return write


def _origin(origin: Any) -> dict[str, str]:
    return {"kind": origin.kind, "where": origin.where}


def _as_text(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
