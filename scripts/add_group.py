"""Install a dependency group that not everybody needs into .venv, with the versions and hashes of uv.lock."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import install

# By group what it brings: when all of it is there, nothing is asked of a package index.
MODULES = {"bench": ("faiss", "tantivy", "usearch"), "site": ("furo", "myst_parser", "sphinx")}


def add_group(name: str) -> bool:
    """Install what is missing; False when it could not be."""
    if all(find_spec(module) for module in MODULES[name]):
        return True
    uv = str(install.ROOT / ".venv" / "bin" / "uv")
    environment = install.uv_environment()
    with tempfile.TemporaryDirectory() as folder:
        wanted = str(Path(folder) / "group.txt")
        export = [uv, "export", "--quiet", "--frozen", "--only-group", name, "--no-header", "-o", wanted]
        add = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--require-hashes", "-r", wanted]
        for step in (export, add):
            run = subprocess.run(
                step, cwd=install.ROOT, env=environment, stdout=subprocess.DEVNULL, check=False
            )
            if run.returncode:
                return False
    return True


def main() -> int:
    """Install the group that is named; 1 when that failed."""
    (name,) = sys.argv[1:]
    if add_group(name):
        return 0
    print(f"note: the group `{name}` of pyproject.toml could not be installed", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
