"""Rules of this repository that no other tool knows: short modules, no registry hosts, a lock that fits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 800
MEASURED = ("src", "scripts", "benchmarks")  # a test file is a list, and may be a long one
GENERATED_OR_FOREIGN = {
    ".git", ".venv", "__pycache__", "node_modules", "dist", "build", "model",
    ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache",
}  # fmt: skip

# Written in parts, so that this file keeps the rule that it checks.
REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("yarnpkg", "com"),
            ("crates", "io"),
            ("rubygems", "org"),
        )
    )
)
HOST = re.compile(r"https?://([^/\"\s]+)")


def files(root: Path = ROOT) -> Iterator[Path]:
    """Yield every file that we wrote."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in GENERATED_OR_FOREIGN]
        yield from (Path(folder) / name for name in names if not name.startswith(".coverage"))


def long_modules(root: Path = ROOT) -> Iterator[str]:
    """Name each Python module that is longer than anyone wants to read."""
    for file in files(root):
        if file.suffix == ".py" and file.relative_to(root).parts[0] in MEASURED:
            lines = file.read_text(encoding="utf-8").count("\n")
            if lines > MAX_LINES:
                yield f"{file.relative_to(root)}: {lines} lines, the limit is {MAX_LINES}: make it two"


def registry_hosts(root: Path = ROOT) -> Iterator[str]:
    """Name each line that says where packages come from: that is the machine's business, not ours."""
    for file in files(root):
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if found := REGISTRIES.search(line):
                yield f"{file.relative_to(root)}:{number}: names the package registry {found[0]}"


def lock_faults(root: Path = ROOT) -> Iterator[str]:
    """Say where uv.lock names a host, or no longer fits pyproject.toml."""
    text = (root / "uv.lock").read_text(encoding="utf-8")
    for host in sorted({host for host in HOST.findall(text) if not host.endswith(".invalid")}):
        yield f"uv.lock: names the host {host}: run `make lock`, which removes it"
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    locked = next(p for p in tomllib.loads(text)["package"] if p["name"] == project["project"]["name"])
    metadata = locked["metadata"]
    extras = project["project"].get("optional-dependencies", {})
    run_time = [*project["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]
    pairs = [("dependencies", run_time, metadata["requires-dist"])]
    pairs += [
        (group, wanted, metadata["requires-dev"].get(group, ()))
        for group, wanted in project["dependency-groups"].items()
    ]
    for group, wanted, have in pairs:
        if {comparable(one) for one in wanted} != {comparable_locked(one) for one in have}:
            yield f"uv.lock: its {group} are not those of pyproject.toml: run `make lock`"


def comparable(requirement: str) -> tuple[str, str]:
    """Return the name and the version range of "name[extra]>=1"."""
    found = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)", requirement)
    assert found, f"not a requirement: {requirement}"
    return re.sub(r"[-_.]+", "-", found[1]).lower(), found[2].replace(" ", "")


def comparable_locked(entry: dict[str, str]) -> tuple[str, str]:
    """Return the same pair of an entry in the lock's metadata."""
    return entry["name"], entry.get("specifier", "").replace(" ", "")


def pyproject_faults(root: Path = ROOT) -> Iterator[str]:
    """Let validate-pyproject read the file, without the network."""
    command = [sys.executable, "-m", "validate_pyproject", str(root / "pyproject.toml")]
    environment = dict(os.environ, VALIDATE_PYPROJECT_NO_NETWORK="1", NO_NETWORK="1")
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if run.returncode:
        yield f"pyproject.toml: {(run.stdout + run.stderr).strip()}"


def main() -> int:
    """Print every fault; 1 when there is one."""
    faults = [*long_modules(), *registry_hosts(), *lock_faults(), *pyproject_faults()]
    for fault in faults:
        print(fault)
    print("house rules: " + (f"{len(faults)} broken" if faults else "kept"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
