"""Which file systems can hold a write-ahead log, whose shared memory only works on one machine."""

from __future__ import annotations

import os

MOUNTS = "/proc/self/mountinfo"

_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "glusterfs", "lustre"}
)


def file_system_of(folder: str, *, mounts: str = MOUNTS) -> str:
    """The type of the file system that holds a folder, "ext4"; "" where the system does not tell."""
    place = os.path.realpath(folder)
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    longest, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if not right or len(fields) < 5:
            continue
        point = _unescaped(fields[4])
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # of two mounts on one point the later one is on top
            longest, kind = len(point), right.split(" ")[0]
    return kind


def allows_write_ahead(kind: str) -> bool:
    """Whether a write-ahead log is safe there: not where another machine may have the file open too."""
    return kind not in _SHARED and not kind.startswith("fuse")


def _unescaped(point: str) -> str:
    # The kernel writes the four characters that would break the format as octal escapes.
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
