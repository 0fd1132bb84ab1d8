"""Build the wheel and the sdist, try both in empty environments, tag the version. Publishing stays a person's act."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import check_wheel
from install import ROOT

DIST = ROOT / "dist"


def version(root: Path = ROOT) -> str:
    """The version that the code states."""
    text = (root / "src" / "plainmind" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found, "src/plainmind/__init__.py states a version"
    return found[1]


def faults(stated: str, changelog: str, tags: str, status: str) -> Iterator[str]:
    """Say what stands in the way of a release."""
    if f"## [{stated}] - " not in changelog:
        yield f"CHANGELOG.md has no section `## [{stated}] - DATE`"
    if f"v{stated}" in tags.split():
        yield f"the tag v{stated} is there already: raise the version in src/plainmind/__init__.py"
    if status.strip():
        yield "there are changes that are not committed"


def git(*arguments: str) -> str:
    """Run git and return what it printed."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def build() -> list[Path]:
    """Put both archives into dist/."""
    return [check_wheel.build(DIST, kind) for kind in ("wheel", "sdist")]


def try_out(archive: Path, stated: str) -> None:
    """Install an archive into an empty environment; it must say its version and answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = check_wheel.install(archive, folder)
        said = check_wheel.answer(command, "--version", folder=folder).strip()
        if said != f"plainmind {stated}":
            raise SystemExit(f"error: {archive.name} says that it is `{said}`, not {stated}")
        check_wheel.check_answers(command, folder)
    print(f"{archive.relative_to(ROOT)}: installs alone and answers")


def main() -> int:
    """Check, build, try and tag; --build-only stops after the building."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-only", action="store_true", help="only put the archives into dist/")
    arguments = parser.parse_args()
    if arguments.build_only:
        for archive in build():
            print(archive.relative_to(ROOT))
        return 0
    stated = version()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = list(faults(stated, changelog, git("tag", "--list"), git("status", "--porcelain")))
    for fault in found:
        print(f"error: {fault}", file=sys.stderr)
    if found:
        return 1
    for archive in build():
        try_out(archive, stated)
    git("tag", "--annotate", f"v{stated}", "--message", f"Plainmind {stated}")
    print(f"tagged v{stated}. To publish, push the tag and upload what is in dist/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
