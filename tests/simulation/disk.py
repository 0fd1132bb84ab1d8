"""A disk that remembers what was synced: from one run of the real program, everything that a power cut could have left.

The calls of `files/` go to a real folder, and are written down as effects: bytes of a file, or names in a folder. A
sync makes the effects of its file or folder durable. At a cut the others are lost, kept, torn at a sector, or kept in
another order, as chance wills; the result is put where the folder was, and the program is started on it again.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from plainmind.files.system import System

SECTOR = 512


class Effect:
    """A change that one call made: to the bytes of a node, or to names in folders."""

    __slots__ = ("data", "folders", "kind", "names", "node", "offset")

    def __init__(
        self,
        kind: str,
        node: int = -1,
        *,
        offset: int = 0,
        data: bytes = b"",
        folders: tuple[int, ...] = (),
        names: tuple[tuple[int, str, int | None], ...] = (),
    ) -> None:
        self.kind = kind  # write, cut, names, sync, sync_folder, or a mark of the caller
        self.node = node
        self.offset = offset
        self.data = data
        self.folders = folders
        self.names = names  # (folder, name, the node that it has from now on, or None)


class Tree:
    """What stands on a disk: folders of names, and the bytes of files."""

    def __init__(self) -> None:
        self.folders: dict[int, dict[str, int]] = {}
        self.files: dict[int, bytearray] = {}

    def copy(self) -> Tree:
        """An independent copy."""
        other = Tree()
        other.folders = {node: dict(names) for node, names in self.folders.items()}
        other.files = {node: bytearray(data) for node, data in self.files.items()}
        return other

    def apply(self, effect: Effect) -> None:
        """Let an effect happen as a whole."""
        if effect.kind == "write":
            self.write(effect.node, effect.offset, effect.data)
        elif effect.kind == "cut":
            data = self.files.setdefault(effect.node, bytearray())
            del data[effect.offset :]
            data.extend(bytes(effect.offset - len(data)))
        elif effect.kind == "names":
            for folder, name, node in effect.names:
                names = self.folders.setdefault(folder, {})
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node

    def write(self, node: int, offset: int, data: bytes) -> None:
        """Put bytes at a place; what lies between the end and the place is zeros."""
        held = self.files.setdefault(node, bytearray())
        if len(held) < offset:
            held.extend(bytes(offset - len(held)))
        held[offset : offset + len(data)] = data


class Disk:
    """Watches one folder. `marks` of the caller stand between the effects, so that a cut knows what was promised."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.log: list[Effect] = []
        self.begin = Tree()
        self.is_folder: set[int] = {0}
        self._nodes: dict[tuple[int, int], int] = {}
        self._next = 1
        self._take_in(self.root, 0)

    def mark(self, name: str, *words: str) -> int:
        """Put a mark into the log; its place."""
        self.log.append(Effect(name))
        return len(self.log)

    # --- what is there at the beginning is durable ---

    def _take_in(self, path: str, node: int) -> None:
        self._know(os.stat(path), node)
        names = self.begin.folders.setdefault(node, {})
        for entry in os.scandir(path):
            if entry.is_symlink() or is_database(entry.name):
                continue
            names[entry.name] = child = self._new()
            if entry.is_dir():
                self.is_folder.add(child)
                self._take_in(entry.path, child)
            else:
                self._know(entry.stat(), child)
                with open(entry.path, "rb") as file:
                    self.begin.files[child] = bytearray(file.read())

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _know(self, status: os.stat_result, node: int) -> None:
        self._nodes[status.st_dev, status.st_ino] = node

    def _node_at(self, path: str) -> int | None:
        status = os.stat(path, follow_symlinks=False)
        return self._nodes.get((status.st_dev, status.st_ino))

    def _node_of(self, fd: int) -> int | None:
        status = os.fstat(fd)
        return self._nodes.get((status.st_dev, status.st_ino))

    def _is_ours(self, path: str) -> bool:
        return path.startswith(self.root) and not is_database(os.path.basename(path))

    # --- the calls ---

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Write down what every `System` does during a block."""
        names = "open write pwrite ftruncate replace unlink mkdir rmdir remove_tree link fsync fdatasync fsync_folder"
        before = {name: getattr(System, name) for name in names.split()}
        for name, call in before.items():
            setattr(System, name, self._watched(name, call))
        try:
            yield
        finally:
            for name, call in before.items():
                setattr(System, name, call)

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        note = getattr(self, f"_{name}")

        def watched(system: System, *arguments: Any, **named: Any) -> Any:
            return note(lambda: call(system, *arguments, **named), *arguments, **named)

        return watched

    def _open(self, call: Callable[[], int], path: str, flags: int, mode: int = 0o600) -> int:
        was_there = os.path.lexists(path)
        fd = call()
        if self._is_ours(path):
            if not was_there:
                node = self._new()
                self._know(os.fstat(fd), node)
                self._names((path, node))
            if flags & os.O_TRUNC and (node_of := self._node_of(fd)) is not None:
                self.log.append(Effect("cut", node_of))
        return fd

    def _write(self, call: Callable[[], int], fd: int, data: bytes | memoryview) -> int:
        written = call()
        if (node := self._node_of(fd)) is not None:
            end = os.lseek(fd, 0, os.SEEK_CUR)
            self.log.append(Effect("write", node, offset=end - written, data=bytes(data[:written])))
        return written

    def _pwrite(self, call: Callable[[], int], fd: int, data: bytes, offset: int) -> int:
        written = call()
        if (node := self._node_of(fd)) is not None:
            self.log.append(Effect("write", node, offset=offset, data=bytes(data[:written])))
        return written

    def _ftruncate(self, call: Callable[[], None], fd: int, length: int) -> None:
        call()
        if (node := self._node_of(fd)) is not None:
            self.log.append(Effect("cut", node, offset=length))

    def _replace(self, call: Callable[[], None], source: str, target: str) -> None:
        node = self._node_at(source)
        call()
        if node is not None:
            self._names((source, None), (target, node))

    def _link(self, call: Callable[[], None], source: str, target: str) -> None:
        node = self._node_at(source)
        call()
        if node is not None:
            self._names((target, node))

    def _unlink(self, call: Callable[[], None], path: str) -> None:
        call()
        if self._is_ours(path):
            self._names((path, None))

    def _rmdir(self, call: Callable[[], None], path: str) -> None:
        self._unlink(call, path)

    def _remove_tree(self, call: Callable[[], None], path: str) -> None:
        self._unlink(call, path)

    def _mkdir(self, call: Callable[[], None], path: str, mode: int = 0o700) -> None:
        call()
        if self._is_ours(path):
            node = self._new()
            self.is_folder.add(node)
            self._know(os.stat(path), node)
            self._names((path, node))

    def _fsync(self, call: Callable[[], None], fd: int) -> None:
        if (node := self._node_of(fd)) is not None:
            self.log.append(Effect("sync", node))

    _fdatasync = _fsync

    def _fsync_folder(self, call: Callable[[], None], path: str) -> None:
        if (node := self._node_at(path)) is not None:
            self.log.append(Effect("sync_folder", node))

    def _names(self, *changes: tuple[str, int | None]) -> None:
        names = []
        for path, node in changes:
            folder = self._node_at(os.path.dirname(path))
            if folder is not None:
                names.append((folder, os.path.basename(path), node))
        folders = tuple(dict.fromkeys(folder for folder, _, _ in names))
        self.log.append(Effect("names", folders=folders, names=tuple(names)))

    # --- the cut ---

    def states(self, *, until: int | None = None) -> Iterator[tuple[int, Tree, list[Effect]]]:
        """After each effect: what is surely on the disk, and what may be there besides, oldest first."""
        tree: Tree = self.begin.copy()
        pending: list[Effect] = []
        yield 0, tree, pending
        for at, effect in enumerate(self.log[:until], start=1):
            if effect.kind in {"write", "cut", "names"}:
                pending.append(effect)
            elif effect.kind in {"sync", "sync_folder"}:
                kept = []
                for earlier in pending:
                    if earlier.node == effect.node or effect.node in earlier.folders:
                        tree.apply(earlier)
                    else:
                        kept.append(earlier)
                pending = kept
            yield at, tree, pending

    def cut(self, length: int, chance: random.Random) -> Tree:
        """One of the states that a power cut after so many effects may leave."""
        *_, (_, tree, pending) = self.states(until=length)
        return self.survivor(tree, pending, chance)

    def survivor(self, durable: Tree, pending: list[Effect], chance: random.Random) -> Tree:
        """What is durable, with some of what is not."""
        tree = durable.copy()
        likely = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        in_order = chance.random() < 0.5  # a journal keeps names in their order; without one any may survive
        names_end = False
        for effect in pending:
            survives = chance.random() < likely
            if effect.kind == "names":
                names_end = names_end or not survives
                if survives and not (in_order and names_end):
                    tree.apply(effect)
            elif survives:
                tree.apply(effect)
            elif effect.kind == "write" and chance.random() < likely:
                self._tear(tree, effect, chance)
        return tree

    def _tear(self, tree: Tree, effect: Effect, chance: random.Random) -> None:
        """Let some sectors of a write survive: the first ones, or any."""
        ends = list(range(SECTOR - effect.offset % SECTOR, len(effect.data), SECTOR))
        begins = [0, *ends]
        is_prefix = chance.random() < 0.5
        for begin, end in zip(begins, [*ends, len(effect.data)], strict=True):
            if chance.random() < 0.5:
                if is_prefix:
                    return
                continue
            tree.write(effect.node, effect.offset + begin, effect.data[begin:end])

    def put(self, tree: Tree, chance: random.Random) -> None:
        """Make the folder what the tree says. Of a database all is left, or nothing, or a part that is torn."""
        kept = dict(self._databases())
        for entry in os.scandir(self.root):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
        self._put_folder(tree, 0, self.root)
        fate = chance.choice(("whole", "whole", "gone", "torn"))
        for path, data in kept.items():
            if fate == "gone" or not os.path.isdir(os.path.dirname(path)):
                continue
            with open(path, "wb") as file:
                file.write(data if fate == "whole" else _torn(data, chance))

    def _databases(self) -> Iterator[tuple[str, bytes]]:
        for folder, _, files in os.walk(self.root):
            for name in files:
                if is_database(name) and not name.endswith("-shm"):
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        yield path, file.read()

    def _put_folder(self, tree: Tree, node: int, path: str) -> None:
        for name, child in tree.folders.get(node, {}).items():
            target = os.path.join(path, name)
            if child in self.is_folder:
                os.mkdir(target, 0o700)
                self._put_folder(tree, child, target)
            else:
                with open(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                    file.write(tree.files.get(child, b""))


def _torn(data: bytes, chance: random.Random) -> bytes:
    """A file of which one sector was not written, or the end."""
    at = chance.randrange(0, len(data) + 1, SECTOR)
    return (
        data[:at]
        if chance.random() < 0.5
        else data[:at] + bytes(len(data[at : at + SECTOR])) + data[at + SECTOR :]
    )


def is_database(name: str) -> bool:
    """Whether SQLite writes it: its own calls are not seen, and its damage is another test's subject."""
    return ".sqlite" in name


def texts(tree: Tree, folder: int = 0, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file of a tree with its path."""
    for name, child in sorted(tree.folders.get(folder, {}).items()):
        here = f"{path}{name}"
        if child in tree.folders:
            yield from texts(tree, child, here + "/")
        elif child in tree.files:
            yield here, bytes(tree.files[child])
