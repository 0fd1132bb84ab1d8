"""Build the wheel, install it as a user would into an empty environment, and see that it answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from install import ROOT, uv_environment

UV = str(ROOT / ".venv" / "bin" / "uv")
WORKSPACE = ROOT / "examples" / "workspace"
BY_WORD = "ERR_LEDGER_SKEW"  # stands in exactly one file of the example workspace
BY_WORD_FILE = "memory/projects/lighthouse.md"


def uv(*arguments: str, cwd: Path = ROOT) -> None:
    """Run uv; where the registry cannot be reached, once more with what its cache holds."""
    for mode in ((), ("--offline",)):
        run = subprocess.run([UV, "--quiet", *mode, *arguments], check=False, cwd=cwd, env=uv_environment())
        if run.returncode == 0:
            return
    raise SystemExit(f"error: uv {' '.join(arguments[:2])} failed")


def build(folder: Path, kind: str = "wheel") -> Path:
    """Build a wheel or an sdist from the sources alone and return its path."""
    uv("build", f"--{kind}", "--out-dir", str(folder))
    (built,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def install(archive: Path, folder: Path) -> Path:
    """Install a wheel or an sdist and what it needs at run time, nothing else; return the command's path."""
    locked = folder / "runtime.txt"
    uv("export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--output-file", str(locked))
    environment = folder / "venv"
    uv("venv", "--python", sys.executable, str(environment))
    python = str(environment / "bin" / "python")
    uv("pip", "install", "--python", python, "--compile-bytecode", "--require-hashes", "-r", str(locked))
    uv("pip", "install", "--python", python, "--compile-bytecode", "--no-deps", str(archive))
    uv("pip", "check", "--python", python)
    return environment / "bin" / "plainmind"


def answer(command: Path, *arguments: str, folder: Path, **settings: str) -> str:
    """Run the installed command far from the sources and return what it printed."""
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("PLAINMIND_", "PYTHON"))
    }
    environment = {**plain, "PLAINMIND_HOME": str(folder / "home"), **settings}
    run = subprocess.run(
        [str(command), *arguments], cwd=folder, env=environment, text=True, capture_output=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"error: plainmind {' '.join(arguments)} failed\n{run.stdout}{run.stderr}")
    return run.stdout


def check_answers(command: Path, folder: Path) -> None:
    """Ask for help and search the example workspace, with the built-in model and without any."""
    workspace = folder / "workspace"
    shutil.copytree(WORKSPACE, workspace)
    if "search" not in answer(command, "--help", folder=folder):
        raise SystemExit("error: plainmind --help does not mention search")
    for provider in ("builtin", "none"):
        settings = {"PLAINMIND_PROVIDER": provider, "PLAINMIND_WORKSPACE": str(workspace)}
        found = json.loads(answer(command, "search", BY_WORD, "--json", folder=folder, **settings))
        paths = [hit["path"] for hit in found["results"]]
        if paths[:1] != [BY_WORD_FILE]:
            raise SystemExit(
                f"error: with the provider {provider}, a search for {BY_WORD} found {paths or 'nothing'}"
            )


def main() -> int:
    """Do all of it in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        command = install(wheel, folder)
        check_answers(command, folder)
        print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB, installs alone and answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
