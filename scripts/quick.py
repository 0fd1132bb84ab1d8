"""Check in less than a minute what a change touches: lint, house rules, and the tests nearest to the changed files.

Changed is what differs from the branch `main`, committed or not. The packages with most changed lines come first; what
does not fit into the time is left to `make test`, and the last line says how much that is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
# No test is begun after so long. With lint, house rules and looking for tests that is a minute on two free cores.
SECONDS = 30
ALWAYS = ("tests/test_startup.py",)
# Where nothing was changed: what tells most in the shortest time.
OTHERWISE = ("tests/text", "tests/search", "tests/files", "tests/index")
SOURCE = "src/plainmind/"
BY_FOLDER = {"scripts": "tests/scripts", "benchmarks": "tests/benchmarks", "docs": "tests/test_house.py"}


def changed_files(base: str = "main") -> Counter[str]:
    """Changed lines by file, since this branch left `base`; a new file counts as one line."""
    found: Counter[str] = Counter()
    start = _git("merge-base", base, "HEAD").strip() or "HEAD"
    for line in _git("diff", "--numstat", "--no-renames", start).splitlines():
        added, removed, path = line.split("\t")
        found[path] += sum(int(number) for number in (added, removed) if number != "-") or 1
    for path in _git("ls-files", "--others", "--exclude-standard").splitlines():
        found[path] += 1
    return found


def nearest_tests(changed: Counter[str], *, root: Path = ROOT) -> list[str]:
    """The test files and folders nearest to what was changed, the most changed first; changed tests before all."""
    wanted: Counter[str] = Counter()
    for path, lines in changed.items():
        for test in _nearest(path):
            if (root / test).exists():
                wanted[test] += lines
    direct = [test for test, _ in wanted.most_common() if test.endswith(".py")]
    folders = [test for test, _ in wanted.most_common() if not test.endswith(".py")]
    return [*direct, *folders]


def _nearest(path: str) -> Iterable[str]:
    parts = PurePosixPath(path).parts
    if path.startswith("tests/") and path.endswith(".py"):
        is_test = parts[-1].startswith("test_")
        return (path,) if is_test else (str(PurePosixPath(path).parent),)
    if path.startswith(SOURCE) and path.endswith(".py"):
        inner = parts[2:-1]
        depth = 2 if inner[:1] == ("guests",) else 1
        folder = "/".join(("tests", *inner[:depth]))
        return (f"{folder}/test_{parts[-1]}", folder)
    if parts[0] in BY_FOLDER:
        return (BY_FOLDER[parts[0]],)
    return ("tests/test_house.py",) if len(parts) == 1 else ()


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout


def checks() -> list[list[str]]:
    """What takes seconds whatever has changed."""
    return [
        [str(BIN / "ruff"), "format", "--check", "--quiet", "."],
        [str(BIN / "ruff"), "check", "--quiet", "."],
        [sys.executable, "scripts/check_house.py"],
    ]


def pytest_command(tests: Sequence[str], workers: int) -> list[str]:
    """Run tests until the time is up; the plug-in leaves out the rest."""
    options = ["-q", "-n", str(workers), "--dist", "worksteal", "-m", "not slow", "--maxfail", "10", "-rfE"]
    plugin = ["-p", "time_budget", f"--budget={SECONDS}"]
    return [sys.executable, "-m", "pytest", *options, *plugin, *tests]


def main() -> int:
    """Run the checks, then the tests; 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="main", help="the branch that changes are counted from (main)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only name the tests that would run")
    arguments = parser.parse_args()
    tests = [*ALWAYS, *(nearest_tests(changed_files(arguments.base)) or OTHERWISE)]
    if arguments.list:
        print("\n".join(tests))
        return 0
    for command in checks():
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return 1
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"))
    status = subprocess.run(
        pytest_command(tests, arguments.workers), cwd=ROOT, env=environment, check=False
    ).returncode
    return 0 if status in {0, 5} else 1  # 5: all of them are slow ones


if __name__ == "__main__":
    sys.exit(main())
