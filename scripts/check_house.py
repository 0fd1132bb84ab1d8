"""Rules of this repository that no other tool knows: short modules, whole types, true install lines, a fitting lock."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
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
# Not ours on any index: an install line names a checkout or a wheel.
_INSTALLERS = r"(?:pip3?|pipx|uv tool|uv pip) install|uv add|uvx|--from"
INDEX_NAME = re.compile(rf"(?:{_INSTALLERS})(?:\s+-\S+)*\s+[\"'`]?" + "plainmind" + r"(?:\[|[\"'`\s]|$)")
SOURCE = Path("src", "plainmind")
MOST_FILES = {"kernel": 152, "guests": 144}  # a search never opens a guest; decision 0032
MAY_PROBE = frozenset(
    {
        "base/value.py",  # fields by their names, and whether something is a value
        "guests/integrations/agents_sdk.py",  # settings of a package that is not imported
    }
)
# Settings become small values here; every other part is given what it needs.
MAY_READ_SETTINGS = frozenset({"memory/backend.py", "memory/memory.py", "memory/translation.py"})
MOST_SETTING_READERS = 3  # to be lowered to none, never raised
# What lies in the workspace or in the home is written through `files/`, in the handle of its folder.
MAY_WRITE_BY_PATH = frozenset(
    {
        "base/lazy.py",  # beside our compiled modules, as Python writes those
        "cli/main.py",  # to /dev/null, in the place of a closed stream
        "cli/notes.py",  # into a file that the user names
        "guests/evaluation/scoring.py",  # into a file that the user names
        "guests/importers/originals.py",  # into a folder of its own that nobody else can name
        "guests/local/model_files.py",  # models, in a cache that other programs share
        "guests/net/files.py",  # the same
        "guests/qmd/keeper.py",  # to /dev/null
        "mcp/stdio.py",  # to /dev/null
    }
)
_CHANGES_A_NAME = re.compile(
    "chmod|link|makedirs|mkdir|remove|renames?|replace|rmdir|symlink|truncate|unlink|utime"
)
_WRITES = re.compile("O_(?:APPEND|CREAT|RDWR|TRUNC|WRONLY)")
MAY_IMPORT_DATACLASSES = frozenset({"base/value.py"})  # what it makes must be one to `dataclasses`
Judged = ast.Call | ast.Import | ast.ImportFrom
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
    for place, found in lines_with(REGISTRIES, root):
        yield f"{place}: names the package registry {found}"


def install_lines(root: Path = ROOT) -> Iterator[str]:
    """Name each line that would install a stranger's package, or none, under our name."""
    for place, _ in lines_with(INDEX_NAME, root):
        yield f"{place}: installs `plainmind` from an index, where it is not ours"


def lines_with(wanted: re.Pattern[str], root: Path) -> Iterator[tuple[str, str]]:
    """Yield where something is found, in one line, and what."""
    for file in files(root):
        text = text_of(file, file.stat().st_mtime_ns)
        if wanted.search(text) is None:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if found := wanted.search(line):
                yield f"{file.relative_to(root)}:{number}", found[0]


@cache
def text_of(file: Path, _changed_ns: int) -> str:
    """Read a file once, for all rules; one that is no text says nothing."""
    content = file.read_bytes()
    return "" if b"\0" in content[:4096] else content.decode(errors="replace")


def sources(root: Path = ROOT) -> Iterator[tuple[str, Sequence[Judged]]]:
    """Yield what is judged of every module of the package, by its path in it."""
    for file in sorted((root / SOURCE).rglob("*.py")):
        yield file.relative_to(root / SOURCE).as_posix(), judged(text_of(file, file.stat().st_mtime_ns))


@cache
def judged(text: str) -> Sequence[Judged]:
    """The calls and imports of a module, taken from its tree once, for all rules."""
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, Judged))


def probes(root: Path = ROOT) -> Iterator[str]:
    """Name each place that tries what a part can do, where its type should say it.

    `hasattr`, and `getattr` of a name that is written there, ask an object for something that it may not have. Asking a
    module of Python itself is fine, since systems differ; so is a computed name, which looks something up.
    """
    for path, nodes in sources(root):
        if path in MAY_PROBE:
            continue
        modules = {
            alias.asname or alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name.partition(".")[0] in sys.stdlib_module_names
        }
        for node in nodes:
            if isinstance(node, ast.Call) and _is_probe(node, modules):
                yield f"{SOURCE / path}:{node.lineno}: tries what a type should say"


def _is_probe(call: ast.Call, modules: set[str]) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in {"getattr", "hasattr"} or len(call.args) < 2:
        return False
    asked = call.args[0]
    while isinstance(asked, ast.Attribute):
        asked = asked.value
    of_a_module = isinstance(asked, ast.Name) and asked.id in modules
    return not of_a_module and (name == "hasattr" or isinstance(call.args[1], ast.Constant))


def dataclass_imports(root: Path = ROOT) -> Iterator[str]:
    """Name each module that makes values in another way than `@value`."""
    for path, nodes in sources(root):
        if path in MAY_IMPORT_DATACLASSES:
            continue
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom) and "dataclasses" in _imported(node):
                yield f"{SOURCE / path}:{node.lineno}: imports dataclasses; values are made by `@value`"


def _imported(node: ast.Import | ast.ImportFrom) -> list[str | None]:
    return [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


def setting_readers(root: Path = ROOT) -> Iterator[str]:
    """Name each module that reads settings where they should have been translated; a guest does it in its config.py."""
    for path, nodes in sources(root):
        translates = path.startswith("config/") or (
            path.startswith("guests/") and path.endswith("/config.py")
        )
        if translates or path in MAY_READ_SETTINGS:
            continue
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module == "plainmind.config.settings":
                yield f"{SOURCE / path}:{node.lineno}: reads settings; it should be given what it needs"


def path_writers(root: Path = ROOT) -> Iterator[str]:
    """Name each place outside of `files/` that writes, renames or removes by a path, which may lead through a link."""
    for path, nodes in sources(root):
        if path.startswith("files/") or path in MAY_WRITE_BY_PATH:
            continue
        for node in nodes:
            if isinstance(node, ast.Call) and _writes_by_path(node):
                yield f"{SOURCE / path}:{node.lineno}: writes by a path; `files/` does it in the folder's handle"


def _writes_by_path(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
        return call.func.id == "open" and any(
            isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes
        )
    if not isinstance(call.func, ast.Attribute):
        return False
    name, owner = call.func.attr, call.func.value
    of = owner.id if isinstance(owner, ast.Name) else ""
    if any(word.arg and word.arg.endswith("dir_fd") for word in call.keywords):
        return False
    if of == "os":
        first = call.args[0] if call.args else None
        by_descriptor = isinstance(first, ast.Name) and first.id == "fd"
        opens = name == "open" and _WRITES.search(ast.unparse(call)) is not None
        return opens or (_CHANGES_A_NAME.fullmatch(name) is not None and not by_descriptor)
    return (of == "shutil" and name != "disk_usage") or name in {"write_bytes", "write_text"}


def beyond(most: int, found: list[str]) -> list[str]:
    """Nothing while there are no more than so many; else all of them, since nobody knows which one is new."""
    return found if len(found) > most else []


def number_of_files(root: Path = ROOT, most: Mapping[str, int] = MOST_FILES) -> Iterator[str]:
    """Say when the kernel or its guests have more files than agreed."""
    counts = dict.fromkeys(most, 0)
    for path in (root / SOURCE).rglob("*.py"):
        counts["guests" if "guests" in path.relative_to(root / SOURCE).parts else "kernel"] += 1
    for part, count in counts.items():
        if count > most[part]:
            yield f"{SOURCE}: {part} of {count} files, the limit is {most[part]}: put together what belongs together"


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
    faults = [
        *long_modules(),
        *registry_hosts(),
        *install_lines(),
        *probes(),
        *beyond(MOST_SETTING_READERS, list(setting_readers())),
        *dataclass_imports(),
        *path_writers(),
        *number_of_files(),
        *lock_faults(),
        *pyproject_faults(),
    ]
    for fault in faults:
        print(fault)
    print("house rules: " + (f"{len(faults)} broken" if faults else "kept"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
