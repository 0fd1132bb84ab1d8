"""Bring the .venv that runs this script to exactly what uv.lock says, and put the project itself in it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = ROOT / ".venv" / ".installed"
INPUTS = ("uv.lock", "pyproject.toml", "scripts/install.py")


def fingerprint() -> str:
    """Return a hash that changes whenever another installation is due."""
    digest = hashlib.sha256(sys.version.encode())
    for name in INPUTS:
        file = ROOT / name
        digest.update(name.encode() + b"\0" + (file.read_bytes() if file.exists() else b"") + b"\0")
    return digest.hexdigest()


def is_current() -> bool:
    """Whether nothing is left to do: the same inputs as last time."""
    return STAMP.exists() and STAMP.read_text() == fingerprint()


def locked_uv() -> str:
    """Return the requirement, with hashes, of the uv that uv.lock names: the installer is checked too."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    uv = next(package for package in lock["package"] if package["name"] == "uv")
    files = [*uv["wheels"], *([uv["sdist"]] if "sdist" in uv else [])]
    return f"uv=={uv['version']} " + " ".join(f"--hash={file['hash']}" for file in files) + "\n"


def pip(*arguments: str) -> list[str]:
    """Return the command line of this environment's pip."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def pip_index() -> str:
    """Return the package index that pip is set up with, or an empty string."""
    if "PIP_INDEX_URL" in os.environ:
        return os.environ["PIP_INDEX_URL"]
    configured = subprocess.run(
        pip("config", "get", "global.index-url"), capture_output=True, text=True, check=False
    )
    return configured.stdout.strip()


def uv_environment() -> dict[str, str]:
    """Let uv use the index of this machine's pip: by itself it reads neither pip.conf nor PIP_INDEX_URL."""
    environment = dict(os.environ, VIRTUAL_ENV=str(ROOT / ".venv"))
    if not {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & environment.keys() and (index := pip_index()):
        environment["UV_DEFAULT_INDEX"] = index
    return environment


def install() -> None:
    """Install uv by pip, what is locked by uv, then the project."""
    STAMP.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "uv.txt"
        wanted.write_text(locked_uv())
        subprocess.run(pip("install", "--quiet", "--require-hashes", "-r", str(wanted)), check=True)

        uv = str(ROOT / ".venv" / "bin" / "uv")
        locked = Path(folder) / "locked.txt"
        environment = uv_environment()
        export = [
            uv,
            "export",
            "--quiet",
            "--frozen",
            "--no-emit-project",
            "--no-header",
            "--output-file",
            str(locked),
        ]
        subprocess.run(export, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        into = ["--quiet", "--python", sys.executable]
        subprocess.run(
            [uv, "pip", "sync", *into, "--require-hashes", str(locked)], check=True, env=environment
        )
        project = [uv, "pip", "install", *into, "--no-deps", "--reinstall"]
        for each in (ROOT, ROOT / "packages" / "plainmind-reranker"):
            project += ["--editable", str(each)]
        subprocess.run(project, check=True, cwd=ROOT, env=environment)
    STAMP.write_text(fingerprint())


def main() -> int:
    """Install when something changed; with --is-current only answer whether anything did."""
    if "--is-current" in sys.argv[1:]:
        return 0 if is_current() else 1
    if is_current():
        return 0
    print("installing into .venv (a minute the first time) …", file=sys.stderr)
    try:
        install()
    except subprocess.CalledProcessError as error:
        print(f"error: this step failed: {' '.join(error.cmd[:4])} …", file=sys.stderr)
        print(
            "hint: the first installation needs a package index; see the lines above for the cause",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
