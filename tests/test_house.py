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


@pytest.mark.parametrize(("old", "new"), [("apsw>=3.54", "apsw>=3.51"), ("json5>=0.10", "yaml>=6")])
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


@pytest.fixture
def package(tmp_path):
    """A package of one module, to write into."""
    folder = tmp_path / check_house.SOURCE / "index"
    folder.mkdir(parents=True)
    return folder / "engine.py"


@pytest.mark.parametrize(
    "line",
    [
        "pip install {}",
        "$ pip install '{}[mcp]'",
        'uv tool install "{}[local]"',
        "pipx install --force {}",
        "uvx --from '{}[mcp]' plainmind mcp",
    ],
)
def test_an_install_line_that_is_not_ours_is_found(tmp_path, line):
    (tmp_path / "guide.md").write_text(
        f"{line.format('plainmind')}\npip install PATH\npip install ./plainmind\n"
    )

    (fault,) = check_house.install_lines(tmp_path)
    assert fault.startswith("guide.md:1: installs `plainmind` from an index")


def test_no_page_or_hint_installs_another_package_under_our_name():
    assert list(check_house.install_lines()) == []


def test_nothing_outside_of_files_writes_by_a_path():
    assert list(check_house.path_writers()) == []


def test_what_writes_by_a_path_is_found_and_what_has_a_handle_is_not(package):
    package.write_text(
        "os.replace(a, b)\n"
        "os.open(a, os.O_RDWR | os.O_CREAT)\n"
        "open(a, 'wb')\n"
        "path.write_text(a)\n"
        "shutil.rmtree(a)\n"
        "os.replace(a, b, src_dir_fd=c, dst_dir_fd=c)\n"
        "os.open(a, os.O_RDONLY)\n"
        "open(a, 'rb')\n"
        "SYSTEM.replace(a, b)\n"
        "text.replace(a, b)\n"
    )
    root = package.parents[3]

    assert [int(fault.split(":")[1]) for fault in check_house.path_writers(root)] == [1, 2, 3, 4, 5]


def test_a_probe_for_a_capability_is_found(package, tmp_path):
    package.write_text(
        "import os\n\n"
        "def look(store, name):\n"
        "    full = getattr(store, 'digest', None)\n"
        "    if hasattr(store, 'near'):\n"
        "        return getattr(os, 'O_PATH', 0), getattr(store, name)\n"
        "    return full\n"
    )

    assert list(check_house.probes(tmp_path)) == [
        "src/plainmind/index/engine.py:4: tries what a type should say",
        "src/plainmind/index/engine.py:5: tries what a type should say",
    ]


def test_no_part_tries_what_another_one_can_do():
    assert list(check_house.probes()) == []


def test_who_reads_settings_is_found(package, tmp_path):
    package.write_text("from plainmind.config.settings import Settings\n")
    config = tmp_path / check_house.SOURCE / "guests" / "qmd" / "config.py"
    config.parent.mkdir(parents=True)
    config.write_text("from plainmind.config.settings import Settings\n")

    assert list(check_house.setting_readers(tmp_path)) == [
        "src/plainmind/index/engine.py:1: reads settings; it should be given what it needs"
    ]
    assert len(list(check_house.setting_readers())) <= check_house.MOST_SETTING_READERS
    assert check_house.beyond(1, ["one"]) == []
    assert check_house.beyond(1, ["one", "two"]) == ["one", "two"]


@pytest.mark.parametrize("line", ["import dataclasses", "from dataclasses import replace"])
def test_values_of_another_dialect_are_found(package, tmp_path, line):
    package.write_text(f"{line}\n")

    (fault,) = check_house.dataclass_imports(tmp_path)
    assert fault.startswith("src/plainmind/index/engine.py:1: imports dataclasses")
    assert list(check_house.dataclass_imports()) == []


def test_too_many_files_are_found(package, tmp_path):
    package.touch()

    assert list(check_house.number_of_files()) == []
    assert list(check_house.number_of_files(tmp_path, most={"kernel": 1, "guests": 0})) == []
    (fault,) = check_house.number_of_files(tmp_path, most={"kernel": 0, "guests": 0})
    assert fault.startswith("src/plainmind: kernel of 1 files, the limit is 0")


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
        "help", "install", "demo", "quick", "test", "check", "fix", "costs", "faults", "sim", "power", "soak",
        "fuzz", "hosts", "frameworks", "bench", "compare", "eval", "lock", "docs", "site", "dist", "release", "clean",
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


def packages(folder):
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def drawing(page, heading):
    """The first block of a page that is set as it stands, after a heading."""
    return (ROOT / page).read_text(encoding="utf-8").split(heading)[1].split("```")[1]


def rows(page, head):
    """The names in the first column of a table."""
    table = (ROOT / page).read_text(encoding="utf-8").split(f"\n| {head} |")[1].split("\n\n")[0]
    return {
        found: row for row in table.splitlines()[2:] for found in re.findall(r"`(\w+)`", row.split("|")[1])
    }


def test_the_drawing_of_the_architecture_is_the_order_that_is_checked():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    checked = contracts["importlinter:contract:layers"]["layers"].split("\n")

    drawn = [line.strip() for line in drawing("docs/architecture.md", "## The packages").strip().splitlines()]

    assert drawn == ["guests", *(line for line in checked if line and line != "__main__")]


def test_the_tables_of_the_architecture_name_every_package_and_guest():
    kernel, guests = rows("docs/architecture.md", "Package"), rows("docs/architecture.md", "Guest")

    assert set(kernel) == packages(PACKAGE) - {"guests"}
    assert set(guests) == packages(PACKAGE / "guests")
    for name, row in kernel.items():
        for module in re.findall(r"`(\w+\.py)`", row):
            assert (PACKAGE / name / module).exists(), f"{name}/{module} is named in docs/architecture.md"


def test_the_layout_for_coding_agents_is_that_of_the_tree():
    layout = drawing("AGENTS.md", "## Layout")
    before_tests, below = layout.split("\ntests/")
    named = set(re.findall(r"(?<![\w/.])(\w+)/(?!\w)", before_tests))
    guests = before_tests.split("importing only the kernel:")[1].split()

    assert named - {"src", "drivers"} == packages(PACKAGE)
    assert set(guests) == packages(PACKAGE / "guests")
    for folder in re.findall(r"^([a-z]+(?:/[a-z]+)?)/ ", below, re.M):
        assert (ROOT / folder).is_dir(), f"{folder}/ is named in AGENTS.md"
    for module in re.findall(r"(\w+\.py)", layout):
        assert list(PACKAGE.rglob(module)), f"{module} is named in AGENTS.md"


@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_every_file_that_a_paper_names_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    made = ("site/", "dist/")

    for path in re.findall(r"`((?:tests|docs|scripts|src|evals|examples)/[\w./-]+)`", text):
        assert path.startswith(made) or (ROOT / path).exists(), f"{path} is named in {page}"
    for target in re.findall(r"`make (\w+)", text):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), f"make {target} in {page}"


def test_every_module_that_a_module_names_is_beside_it():
    for module in PACKAGE.rglob("*.py"):
        for named in re.findall(r"`((?:\w+/)*\w+\.py)`", module.read_text(encoding="utf-8")):
            places = (module.parent, PACKAGE, ROOT)
            assert any((place / named).exists() for place in places), f"{named} is named in {module}"


def test_the_page_for_coding_agents_stays_short():
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 80
