"""Install the engines that are measured beside ours, as uv.lock names them; without a network go on without."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import install

ENGINES = ("faiss", "tantivy", "usearch")


def main() -> int:
    """Install what is missing; that they are not there is said by the figures themselves."""
    if all(find_spec(name) for name in ENGINES):
        return 0
    uv = str(install.ROOT / ".venv" / "bin" / "uv")
    environment = install.uv_environment()
    with tempfile.TemporaryDirectory() as folder:
        wanted = str(Path(folder) / "engines.txt")
        export = [uv, "export", "--quiet", "--frozen", "--only-group", "bench", "--no-header", "-o", wanted]
        add = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--require-hashes", "-r", wanted]
        for step in (export, add):
            if subprocess.run(
                step, cwd=install.ROOT, env=environment, stdout=subprocess.DEVNULL, check=False
            ).returncode:
                print("note: the engines to compare with could not be installed", file=sys.stderr)
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
