"""What a peer is: how it is installed, told to index and to search, and what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from compare.judge import Shown
from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.guests.evaluation.dataset import Question

RESIDENTS = Path(__file__).resolve().parent / "residents"
RESULTS = 6
WORKSPACE, HOME, ADDRESS = "NOTES", "HOME", "URL"  # how places are called where commands are shown


@value
class Place:
    """Where a peer works: tools are installed once, the folder is its own and empty at first."""

    tools: Path
    folder: Path
    workspace: Path  # its own copy of the notes
    vectors: str  # the address of the server of vectors

    @property
    def home(self) -> Path:
        """What it takes for the home of its user."""
        return self.folder / "home"


class Peer:
    """One program that finds notes. Commands run in its folder; what is not overridden it cannot do."""

    name: str
    title: str
    registry: str  # where it is installed from, and by which name
    finds_by: str  # what a search of it compares, with whose vectors
    stays_open_as: str = "–"
    fairness: str = ""  # what is unfair to it or to others, a paragraph each

    def install(self, tools: Path) -> None:
        """Install it, where it is not there yet."""
        raise NotImplementedError

    def version(self, tools: Path) -> str:
        """What was installed."""
        raise NotImplementedError

    def environment(self, place: Place) -> dict[str, str]:
        """What its processes see: nothing of this user but the search path."""
        return {"PATH": os.environ["PATH"], "HOME": str(place.home), "LANG": "C.UTF-8", "NO_COLOR": "1"}

    def prepare(self, place: Place) -> None:
        """Write what it must be told once, before anything is timed."""

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:
        """The commands that bring its index up to date; none when it has no index."""
        raise NotImplementedError

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """The command that a person would type."""
        raise NotImplementedError

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:
        """What that command showed."""
        raise NotImplementedError

    def resident(self, place: Place) -> Sequence[str]:  # noqa: ARG002
        """The program that stays open; none when there is no such thing."""
        return ()

    def kept(self, place: Place) -> Sequence[Path]:
        """The files and folders of its index."""
        raise NotImplementedError


def paragraphs(text: str) -> list[str]:
    """Each on one line; an empty line is between them."""
    return [" ".join(one.split()) for one in text.split("\n\n") if one.strip()]


def relative(place: Place, path: str) -> str:
    """A path as it stands in the workspace."""
    return os.path.relpath(path, place.workspace) if os.path.isabs(path) else path


def install_from_pypi(tools: Path, package: str, *, python: str | None = None) -> None:
    """Install a package into an environment of its own, compiled."""
    place = tools / package
    uv = Path(sys.executable).with_name("uv")
    if not (place / "bin" / "python").exists():
        _must([uv, "venv", "--quiet", "--python", python or sys.executable, place], dict(os.environ))
    elif not os.environ.get("UPGRADE"):
        return
    install_more(tools, package, package)


def install_more(tools: Path, environment: str, package: str) -> None:
    """Install a package into an environment that is there, compiled."""
    uv, python = Path(sys.executable).with_name("uv"), tools / environment / "bin" / "python"
    options = ["--quiet", "--upgrade", "--compile-bytecode", "--python", str(python)]
    _must([uv, "pip", "install", *options, package], {**os.environ, "UV_CACHE_DIR": str(tools / "uv")})


def version_from_pypi(tools: Path, package: str) -> str:
    """Ask an environment which version it has."""
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    return _must([tools / package / "bin" / "python", "-c", ask], dict(os.environ)).strip()


def install_from_npm(tools: Path, folder: str, package: str) -> None:
    """Install a package with a Node that is new enough for it."""
    for name, what in (("node", "node@26"), (folder, package)):
        place = tools / name
        if (place / "node_modules").is_dir() and not (os.environ.get("UPGRADE") and what == package):
            continue
        place.mkdir(parents=True, exist_ok=True)
        # Node itself comes with a script that puts it in its place; the others need none of theirs.
        quiet = [
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            *(["--ignore-scripts"] if name != "node" else []),
        ]
        path = f"{node(tools).parent}{os.pathsep}{os.environ['PATH']}"
        _must(
            ["npm", "install", *quiet, "--prefix", place, what], {**os.environ, "PATH": path}, cwd=Path("/")
        )


def node(tools: Path) -> Path:
    """The Node that was installed for the peers."""
    return tools / "node" / "node_modules" / "node" / "bin" / "node"


def version_from_npm(tools: Path, folder: str, package: str) -> str:
    """Read which version was installed."""
    ask = f"require('{tools / folder / 'node_modules' / package / 'package.json'}').version"
    return _must([node(tools), "-p", ask], dict(os.environ)).strip()


def _must(command: Sequence[str | Path], environment: dict[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        line = " ".join(map(str, command))
        raise PlainmindError(f"`{line}` failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout
