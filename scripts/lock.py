"""Write uv.lock anew, with every host in it replaced by one that does not exist.

Which index a package comes from is the business of the machine that installs it; what must be the same
everywhere is the version and the hash. See docs/decisions/0002-a-lock-file-without-hosts.md.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from install import ROOT, uv_environment

LOCK = ROOT / "uv.lock"
UV = ROOT / ".venv" / "bin" / "uv"
NEUTRAL_INDEX = "https://index.invalid/simple"
NEUTRAL_FILES = "https://index.invalid/files"

REGISTRY = re.compile(r'(registry = )"([^"]*)"')
DYNAMIC_VERSION = re.compile(r'^dynamic = \["version"\].*$', re.MULTILINE)
OWN_VERSION = re.compile(r'(name = "plainmind"\n)version = "0"\n')
FILE_URL = re.compile(r'(url = )"[^"]*/([^/"]+)"')


def without_hosts(lock: str) -> str:
    """Name the same packages, files and hashes, and no place to get them from."""
    lock = REGISTRY.sub(rf'\1"{NEUTRAL_INDEX}"', lock)
    return FILE_URL.sub(rf'\1"{NEUTRAL_FILES}/\2"', lock)


def with_index(lock: str, index: str) -> str:
    """Put the index of this machine back, so that uv recognises its own lock and keeps the versions in it."""
    return lock.replace(f'"{NEUTRAL_INDEX}"', f'"{index}"')


def resolve(folder: Path, *options: str) -> str:
    """Run `uv lock` in `folder` and return what it wrote."""
    subprocess.run([str(UV), "lock", "--quiet", *options], check=True, cwd=folder, env=uv_environment())
    return (folder / "uv.lock").read_text()


def relock(old: str | None, *, upgrade: bool) -> str:
    """Resolve pyproject.toml in a folder apart; a failure leaves the lock in the repository as it was."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Our own version is read from the code, which is not there: any will do, and none is locked.
        project = (ROOT / "pyproject.toml").read_text()
        (folder / "pyproject.toml").write_text(DYNAMIC_VERSION.sub('version = "0"', project))
        fresh = resolve(folder)
        if old is not None and not upgrade:
            found = REGISTRY.search(fresh)
            assert found, "a lock of a project with dependencies names an index"
            (folder / "uv.lock").write_text(with_index(old, found[2]))
            fresh = resolve(folder)
    return OWN_VERSION.sub(r"\1", without_hosts(fresh))


def main() -> int:
    """Lock, keeping the versions already locked unless --upgrade asks for the newest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest version of everything")
    arguments = parser.parse_args()
    old = LOCK.read_text() if LOCK.exists() else None
    new = relock(old, upgrade=arguments.upgrade)
    LOCK.write_text(new)
    print("uv.lock: unchanged" if new == old else "uv.lock: rewritten", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
