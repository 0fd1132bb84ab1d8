"""Connects a host and disconnects it: only entries of ours change, and what was there before comes back byte for byte.

What was done stands in `hosts/connections.json` beneath our home, and every file that was changed lies beside it as it
was. A file that nobody else has changed since is put back from there; in any other, our entries alone are taken out.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.model import sha256_bytes
from plainmind.base.value import replace, value
from plainmind.files.atomic import put_in_place, remove_abandoned, write_atomically, write_temporary
from plainmind.files.system import SYSTEM, explain_errors, hold_lock, lock_path_for, make_folders, read_file
from plainmind.guests.hosts.catalogue import Host, Placed, Server, Site, tree_files
from plainmind.guests.hosts.edits import (
    Edit,
    missing_keys,
    read_json,
    says_nothing,
    with_edit,
    without_edit,
    without_empty,
    without_empty_section,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 1
_HOST_S = 300.0  # to install a plugin: some hosts look for updates first
_MOST_BYTES = 64_000_000  # of a host's settings: Claude Code keeps more than settings in its file


@value
class ChangedFile:
    """One file of a host as we left it."""

    path: str
    before: str | None  # the copy of what it was; None: there was no file
    after_hash: str
    edits: tuple[Edit, ...]
    made: tuple[tuple[str, ...], ...] = ()  # objects and lists that we had to make, the innermost first


@value
class Connection:
    """What was done to one host."""

    host: str
    project: str | None
    workspace: str
    server: tuple[str, ...]
    files: tuple[ChangedFile, ...]
    folders: tuple[str, ...] = ()  # that we had to make, the innermost first
    remove: tuple[tuple[str, ...], ...] = ()  # what undoes what the host did itself
    at: int = 0

    @property
    def key(self) -> tuple[str, str | None]:
        """What tells it from others."""
        return self.host, self.project

    @property
    def is_plugin(self) -> bool:
        """Whether the host has a plugin of ours, and no entries."""
        return not any(file.edits for file in self.files)


@value
class Change:
    """What is to be done to one file."""

    path: str  # as the host names it
    real: str  # what a link leads to
    current: bytes | None
    base: bytes | None  # what it is without us
    new: bytes | None
    edits: tuple[Edit, ...] = ()
    made: tuple[tuple[str, ...], ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.current != self.new


# --- what is known of earlier connections ---


class Register:
    """The connections of one home."""

    def __init__(self, home: str) -> None:
        self.folder = os.path.join(home, "hosts")
        self.path = os.path.join(self.folder, "connections.json")

    def read(self) -> list[Connection]:
        """All connections. Raises ConfigError when they cannot be read."""
        try:
            found = json.loads(read_file(self.path, most=_MOST_BYTES))
            return [_connection(row) for row in found["connections"]]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise ConfigError(
                f"{self.path} cannot be read ({error})", hint="move it away, then connect again"
            ) from error

    def find(self, host: str, project: str | None) -> Connection | None:
        """The connection of a host, in a project or without one."""
        return next((one for one in self.read() if one.key == (host, project)), None)

    def put(self, connection: Connection) -> None:
        """Note what was done."""
        self._write([one for one in self.read() if one.key != connection.key] + [connection])

    def drop(self, connection: Connection) -> None:
        """Forget a connection."""
        self._write([one for one in self.read() if one.key != connection.key])

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from connecting during a block."""
        with hold_lock(lock_path_for(self.folder, self.path), operation="connect", timeout_s=10.0):
            yield

    def keep(self, host: str, path: str, data: bytes) -> str:
        """Keep what a file was; the name of the copy."""
        stamp = time.strftime("%Y%m%dT%H%M%S")
        copy = os.path.join(
            self.folder, "backups", f"{host}-{stamp}-{sha256_bytes(data)[:8]}-{os.path.basename(path)}"
        )
        write_atomically(copy, data)
        return copy

    def _write(self, connections: Sequence[Connection]) -> None:
        rows = [_row(one) for one in connections]
        data = json.dumps({"version": _VERSION, "connections": rows}, ensure_ascii=False, indent=1)
        write_atomically(self.path, data.encode() + b"\n")


def _row(connection: Connection) -> dict[str, Any]:
    return {
        "host": connection.host,
        "project": connection.project,
        "workspace": connection.workspace,
        "server": connection.server,
        "at": connection.at,
        "folders": connection.folders,
        "remove": connection.remove,
        "files": [
            {
                "path": file.path,
                "before": file.before,
                "after": file.after_hash,
                "made": file.made,
                "edits": [
                    {"kind": edit.kind, "keys": edit.keys, "content": edit.content} for edit in file.edits
                ],
            }
            for file in connection.files
        ],
    }


def _connection(row: Mapping[str, Any]) -> Connection:
    files = tuple(
        ChangedFile(
            file["path"],
            file["before"],
            file["after"],
            tuple(Edit(edit["kind"], tuple(edit["keys"]), edit["content"]) for edit in file["edits"]),
            tuple(tuple(keys) for keys in file["made"]),
        )
        for file in row["files"]
    )
    return Connection(
        row["host"],
        row["project"],
        row["workspace"],
        tuple(row["server"]),
        files,
        tuple(row["folders"]),
        tuple(tuple(words) for words in row["remove"]),
        row["at"],
    )


# --- what would be done ---


def plan(
    host: Host,
    site: Site,
    server: Server,
    known: Connection | None,
    *,
    with_hooks: bool,
    more: Sequence[Placed] = (),
) -> list[Change]:
    """The changes that connect a host; what an earlier connection put there, and this one would not, goes."""
    placed: list[Placed] = [*host.server(site, server), *more]
    hooks = list(host.hooks(site, server))
    placed += hooks if with_hooks else []
    before = {file.path: file for file in known.files} if known else {}
    changes: list[Change] = []
    for path in dict.fromkeys([*(path for path, _ in [*placed, *hooks]), *before]):
        edits = tuple(edit for at, edit in placed if at == path)
        stale = tuple(edit for at, edit in hooks if at == path)
        with _named(path):
            changes.append(_change(path, edits, stale, before.get(path)))
    return [change for change in changes if change.current is not None or change.new is not None]


def plan_removal(connection: Connection) -> list[Change]:
    """The changes that disconnect a host."""
    changes: list[Change] = []
    for file in connection.files:
        with _named(file.path):
            real, current = _current(file.path)
            base = _without(file, current)
            if connection.remove and (current is None or sha256_bytes(current) != file.after_hash):
                continue  # the host's, with what somebody has changed in it: the host takes its part out itself
            changes.append(Change(file.path, real, current, base, base))
    return changes


def _change(path: str, edits: Sequence[Edit], stale: Sequence[Edit], before: ChangedFile | None) -> Change:
    real, current = _current(path)
    base = current if before is None else _without(before, current)
    if before is None and base is not None and any(edit.kind != "file" for edit in (*edits, *stale)):
        base = _strip(base, [*edits, *stale])
    text = "" if base is None else _decode(base)
    made: list[tuple[str, ...]] = []
    for edit in edits:
        missing = missing_keys(text, edit) if edit.kind != "block" else _missing_section(text, edit)
        made += [keys for keys in missing if keys not in made]
        text = with_edit(text, edit)
    made.sort(key=len, reverse=True)
    new = text.encode() if edits else base
    return Change(path, real, current, base, new, tuple(edits), tuple(made))


def _strip(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Take out what somebody put in by hand, or what a lost register knew of; what another has under our name stays."""
    text = _decode(data)
    for edit in edits:
        if edit.kind == "item":
            text = without_edit(text, edit)
    return text.encode()


def _without(file: ChangedFile, current: bytes | None) -> bytes | None:
    """What a file is without us."""
    if current is None:
        return None
    before = None if file.before is None else _backup(file.before)
    if sha256_bytes(current) == file.after_hash and (before is not None or file.before is None):
        return before
    if any(edit.kind == "file" for edit in file.edits):
        return before
    text = _decode(current)
    for edit in reversed(file.edits):
        text = without_edit(text, edit)
    for keys in file.made:
        is_section = any(edit.kind == "block" for edit in file.edits)
        text = without_empty_section(text, keys[0]) if is_section else without_empty(text, keys)
    return None if file.before is None and _is_empty(text, file) else text.encode()


def _is_empty(text: str, file: ChangedFile) -> bool:
    if says_nothing(text):
        return True
    ours = {
        edit.keys[0]: edit.content for edit in file.edits if edit.kind == "member" and len(edit.keys) == 1
    }
    return bool(ours) and read_json(text) == ours


def _missing_section(text: str, edit: Edit) -> list[tuple[str, ...]]:
    section = edit.keys[0]
    return [] if any(line.startswith(f"{section}:") for line in text.splitlines()) else [(section,)]


def _backup(path: str) -> bytes | None:
    try:
        return read_file(path, most=_MOST_BYTES)
    except OSError:
        return None


def _current(path: str) -> tuple[str, bytes | None]:
    """What a file is now, and where it is when a link leads there. Raises ConfigError for what we must not touch."""
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except FileNotFoundError:
        if os.path.islink(path):
            raise ConfigError("it is a link to nothing", hint="make the link lead to a file") from None
        return real, None
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}", hint="check its permissions") from error
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError("it is not a file", hint="move it away; nothing was changed")
    if not status.st_mode & stat.S_IWUSR or not os.access(real, os.R_OK | os.W_OK):
        raise ConfigError(
            f"it is read-only{'' if real == path else f' ({real}, where the link leads)'}",
            hint="make it writable, then connect again; nothing was changed",
        )
    if status.st_size > _MOST_BYTES:
        raise ConfigError("it is too large for settings", hint="look at what it is")
    return real, read_file(real, most=_MOST_BYTES)


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"it is not valid UTF-8 (byte {error.start + 1:,})", hint="correct it first; nothing was changed"
        ) from None


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say of which file an error speaks."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", hint=error.hint) from error


# --- doing it ---


def connect(
    register: Register, host: Host, site: Site, changes: Sequence[Change], *, server: Server, workspace: str
) -> Connection:
    """Write the changes, the copies of what was there first."""
    known = register.find(host.name, site.project)
    kept_before = {file.path: file.before for file in known.files} if known else {}
    folders = [*(known.folders if known else ())]
    files: list[ChangedFile] = []
    for change in changes:
        if not change.edits:
            continue
        before = None if change.base is None else _kept(register, host, change, kept_before.get(change.path))
        files.append(
            ChangedFile(change.path, before, sha256_bytes(change.new or b""), change.edits, change.made)
        )
        folders += [folder for folder in _missing_folders(change.real) if folder not in folders]
    connection = Connection(
        host.name,
        site.project,
        workspace,
        (server.command, *server.arguments),
        tuple(files),
        tuple(sorted(folders, key=len, reverse=True)),
        known.remove if known else (),
        int(time.time()),
    )
    # Noted before it is done: what is cut off in the middle can still be undone.
    register.put(connection)
    for change in changes:
        write(change)
    return connection


def install_plugin(
    register: Register,
    host: Host,
    site: Site,
    *,
    server: Server,
    workspace: str,
    more: Callable[[], Sequence[Placed]] = tuple,
) -> Connection:
    """Unpack a plugin of ours where it stays, and let the host install it; what its settings were is kept first.

    `more` says what belongs into them besides, once it is installed.
    """
    plugin = host.plugin
    if plugin is None:
        raise PlainmindError(f"there is no plugin for {host.title}", hint="connect it without --plugin")
    tree = os.path.join(register.folder, "plugins", host.name)
    files = tree_files(plugin.tree, server)
    for name, text in files.items():
        write_atomically(os.path.join(tree, name), text.encode(), mode=0o644)
    if plugin.bundle:
        write_atomically(os.path.join(tree, plugin.bundle), _packed(files), mode=0o644)
    known = register.find(host.name, site.project)
    kept = {file.path: file.before for file in known.files} if known else {}
    before: dict[str, str | None] = {}
    for path in plugin.touches(site):
        with _named(path):
            _, data = _current(path)
        before[path] = (
            kept[path] if path in kept else None if data is None else register.keep(host.name, path, data)
        )
    connection = Connection(
        host.name,
        site.project,
        workspace,
        (server.command, *server.arguments),
        tuple(ChangedFile(path, copy, "", ()) for path, copy in before.items()),
        remove=plugin.remove,
        at=int(time.time()),
    )
    register.put(connection)
    try:
        for words in plugin.install:
            run_host([word.replace("{tree}", tree) for word in words], site, plugin.answer)
        for path, edit in more():
            with _named(path):
                write(_change(path, (edit,), (), None))
    except PlainmindError:
        if known is None:
            _undo_install(register, connection, site)
        raise
    connection = replace(
        connection, files=tuple(replace(file, after_hash=_hash_of(file.path)) for file in connection.files)
    )
    register.put(connection)
    return connection


def _undo_install(register: Register, connection: Connection, site: Site) -> None:
    """Leave nothing of a plugin that a host has refused, or has installed in part."""
    with suppress(PlainmindError):
        changes: list[Change] = []
        for file in connection.files:
            real, current = _current(file.path)
            before = None if file.before is None else _backup(file.before)
            changes.append(Change(file.path, real, current, before, before))
        is_changed = any(change.is_needed for change in changes)
        disconnect(register, connection if is_changed else replace(connection, remove=()), changes, site)


def _packed(files: Mapping[str, str]) -> bytes:
    """A plugin as one file; what is a program in it can be started."""
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    data = BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as bundle:
        for name, text in files.items():
            about = ZipInfo(name)
            about.external_attr = (0o755 if text.startswith("#!") else 0o644) << 16
            bundle.writestr(about, text)
    return data.getvalue()


def run_host(words: Sequence[str], site: Site, answer: str = "") -> str:
    """Let a host do something; what it printed. Raises PlainmindError, with what it said, when it does not."""
    import subprocess
    from shutil import which

    program = which(words[0], path=site.environ.get("PATH"))
    if program is None:
        raise PlainmindError(
            f"`{words[0]}` is not on your PATH, and only it can do this",
            hint=f"install it, then run: {' '.join(words)}",
        )
    try:
        done = subprocess.run(  # noqa: S603 (a program of the user's, by our words)
            [program, *words[1:]],
            env=dict(site.environ),
            cwd=site.home,
            input=answer.encode(),
            capture_output=True,
            timeout=_HOST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlainmindError(f"`{' '.join(words)}` does not end: {error}") from error
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise PlainmindError(
            f"`{' '.join(words)}` failed: {said[-500:]}", hint="see to what it says, then do this again"
        )
    return done.stdout.decode(errors="replace").strip()


def _hash_of(path: str) -> str:
    _, data = _current(path)
    return "" if data is None else sha256_bytes(data)


def disconnect(
    register: Register, connection: Connection, changes: Sequence[Change], site: Site
) -> list[str]:
    """Put back what was there, and remove folders of ours that are empty; what could not be done, in words."""
    problems: list[str] = []
    for words in connection.remove:
        try:
            run_host(words, site)
        except PlainmindError as error:
            problems.append(str(error))
    if connection.remove:
        # The host has changed its settings meanwhile, to what it thinks that they were.
        changes = [replace(change, current=_current(change.path)[1]) for change in changes]
    tree = os.path.join(register.folder, "plugins", connection.host)
    if os.path.isdir(tree):
        SYSTEM.remove_tree(tree)
    for change in changes:
        write(change)
    for folder in connection.folders:
        with suppress(OSError):  # somebody else has put something there
            SYSTEM.rmdir(folder)
    register.drop(connection)
    return problems


def write(change: Change) -> None:
    """Make a file what it has to be, unless somebody has changed it since it was looked at."""
    if not change.is_needed:
        return
    with explain_errors("write", change.path):
        make_folders(SYSTEM, os.path.dirname(change.real), 0o755)
        remove_abandoned(change.real, SYSTEM)
        if change.new is None:
            _require_unchanged(change)
            SYSTEM.unlink(change.real)
        else:
            like = None if change.current is None else os.stat(change.real)
            temporary = write_temporary(change.real, change.new, 0o600, like, SYSTEM)
            try:
                _require_unchanged(change)
            except PlainmindError:
                SYSTEM.unlink(temporary)
                raise
            put_in_place(temporary, change.real, SYSTEM)
        SYSTEM.fsync_folder(os.path.dirname(change.real))


def _require_unchanged(change: Change) -> None:
    try:
        now = read_file(change.real, most=_MOST_BYTES)
    except FileNotFoundError:
        now = None
    if now != change.current:
        raise ConfigError(
            f"{change.path} was changed meanwhile, perhaps by the host itself",
            hint="do it again; nothing was overwritten",
        )


def _kept(register: Register, host: Host, change: Change, earlier: str | None) -> str:
    """Where what a file is without us is kept: where it was, if it is still that."""
    assert change.base is not None
    if earlier is not None and _backup(earlier) == change.base:
        return earlier
    return register.keep(host.name, change.path, change.base)


def _missing_folders(path: str) -> list[str]:
    missing: list[str] = []
    folder = os.path.dirname(path)
    while folder and not os.path.exists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def entries_left(connection: Connection) -> list[str]:
    """What of a connection is not there any more, in words; for `doctor`."""
    missing: list[str] = []
    for file in (file for file in connection.files if file.edits):
        with suppress(ConfigError):
            _, current = _current(file.path)
            if current is None or not all(_stands(current, edit) for edit in file.edits):
                missing.append(file.path)
    return missing


def _stands(data: bytes, edit: Edit) -> bool:
    if edit.kind == "file":
        return data == str(edit.content).encode()
    try:
        text = _decode(data)
        if edit.kind in {"table", "block"}:
            return without_edit(text, edit) != text
        return with_edit(text, edit) == text
    except ConfigError:
        return False
