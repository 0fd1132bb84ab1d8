"""Which notes a name on a server stands for: an index of other notes is neither read nor changed by accident.

A name that nobody has given is made of the place of the folder, which folders on other machines have too: the server
knows whose it is. A name that was given is meant for many machines, and for one folder of each.
"""

from __future__ import annotations

import hashlib
import json
import os

from plainmind.base.errors import IndexUnavailable
from plainmind.base.value import value
from plainmind.files.system import SYSTEM, explain_errors, make_folders, write_all

_KEEPER = "keeper"


@value
class Claim:
    """The name of a workspace on a server, and the folder on this machine that its index would have without one."""

    folder: str
    name: str
    is_given: bool  # by a person: then other machines may share it
    server: str  # tells servers and schemas apart

    def keeper(self) -> str | None:
        """Who alone may use the index: this machine; None when every machine may that has given it the name.

        Raises IndexUnavailable when another folder of this machine has the name already.
        """
        above, own = os.path.split(self.folder)
        if not self.is_given:
            return _settled(os.path.join(above, _KEEPER), os.urandom(16).hex())
        named = hashlib.sha256(json.dumps([self.server, self.name]).encode()).hexdigest()[:16]
        record = os.path.join(above, f"named-{named}")
        first = _settled(record, own)
        if first != own:
            raise IndexUnavailable(
                f"`{self.name}` on this server are the notes of another folder of yours, {first}",
                hint="`store.workspace` names one folder: give this one another name"
                f" (PLAINMIND_STORE_WORKSPACE), or a PLAINMIND_HOME of its own; if you have moved it, delete {record}",
            )
        return None


def refuse_others(name: str, kept_by: str | None, keeper: str | None) -> None:
    """Raise IndexUnavailable when an index is of another machine's notes."""
    if kept_by is not None and keeper is not None and kept_by != keeper:
        raise IndexUnavailable(
            f"the index `{name}` on this server is of another machine's notes, in a folder at the same place",
            hint="say what these notes are called there: `plainmind config set store.workspace NAME`, with a name of"
            f" their own; or, on every machine that has the same notes, the same name: {name}",
        )


def _settled(path: str, wanted: str) -> str:
    """What a small file says; what is wanted, if there was none: of several who make it at once, one does."""
    with explain_errors("remember whose an index is", path):
        try:
            return _read(path)
        except FileNotFoundError:
            pass
        make_folders(SYSTEM, os.path.dirname(path))
        new = f"{path}.{os.urandom(6).hex()}"
        fd = SYSTEM.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(SYSTEM, fd, wanted.encode("utf-8", "surrogateescape"))
            SYSTEM.fsync(fd)
        finally:
            SYSTEM.close(fd)
        try:
            SYSTEM.link(new, path)
        except FileExistsError:
            pass
        finally:
            SYSTEM.unlink(new)
        return _read(path)


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")
