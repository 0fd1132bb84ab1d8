"""The repository keeps its own rules, and the programs that check them can fail."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import check_house
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "plainmind"


@pytest.fixture
def project(tmp_path):
    """A copy of the two files that must agree, to spoil."""
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_lock_names_no_host_and_fits_the_project():
    assert list(check_house.lock_faults()) == []


def test_a_host_in_the_lock_is_found(project):
    lock = project / "uv.lock"
    lock.write_text(
        lock.read_text().replace("https://index.invalid/simple", "https://index.example/simple", 1)
    )

    assert list(check_house.lock_faults(project)) == [
        "uv.lock: names the host index.example: run `make lock`, which removes it"
    ]


@pytest.mark.parametrize(("old", "new"), [("apsw>=3.50", "apsw>=3.51"), ("json5>=0.10", "yaml>=6")])
def test_a_dependency_that_was_not_locked_is_found(project, old, new):
    pyproject = project / "pyproject.toml"
    assert old in pyproject.read_text()
    pyproject.write_text(pyproject.read_text().replace(old, new))

    assert list(check_house.lock_faults(project)) == [
        "uv.lock: its dependencies are not those of pyproject.toml: run `make lock`"
    ]


def test_no_file_names_a_package_registry():
    assert list(check_house.registry_hosts()) == []


def test_a_registry_host_is_found(tmp_path):
    host = check_house.REGISTRIES.pattern.split("|")[0].replace("\\", "")
    (tmp_path / "note.md").write_text(f"fine\nsee https://{host}/project\n")

    assert list(check_house.registry_hosts(tmp_path)) == [f"note.md:2: names the package registry {host}"]


def test_no_module_is_longer_than_anyone_wants_to_read():
    assert list(check_house.long_modules()) == []


def test_a_module_that_is_too_long_is_found(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "fits.py").write_text("\n" * 800)
    (tmp_path / "src" / "grown.py").write_text("\n" * 801)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "many_cases.py").write_text("\n" * 801)

    assert [fault.split(":")[0] for fault in check_house.long_modules(tmp_path)] == ["src/grown.py"]


def test_a_broken_pyproject_is_found(project):
    pyproject = project / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('keywords = ["memory"', 'keywords = [1, "memory"'))

    assert list(check_house.pyproject_faults()) == []
    (fault,) = check_house.pyproject_faults(project)
    assert "keywords" in fault


def test_every_package_below_the_surfaces_is_forbidden_asyncio():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    listed = contracts["importlinter:contract:sync-core"]["source_modules"].split()

    present = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__", "__main__", "cli", "mcp"}

    assert {f"plainmind.{name}" for name in present} == set(listed)


def test_make_help_lists_every_public_target():
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert re.findall(r"^make (\w+)", shown.stdout, re.M) == [
        "help", "install", "demo", "quick", "test", "check", "fix", "faults", "bench", "eval", "lock", "docs",
        "site", "dist", "release", "clean",
    ]  # fmt: skip


def test_without_a_recent_python_the_installation_says_so_in_one_sentence(tmp_path):
    for tool in ("sh", "dirname", "cat"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    checkout = tmp_path / "a checkout"
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "bootstrap.sh", checkout / "scripts")

    run = subprocess.run(
        ["sh", "scripts/bootstrap.sh"],
        cwd=checkout,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1
    assert [line.split(":")[0] for line in run.stderr.splitlines()] == ["error", "hint"]
    assert "no Python 3.11 or newer was found" in run.stderr


def test_the_page_for_coding_agents_stays_short():
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 80
