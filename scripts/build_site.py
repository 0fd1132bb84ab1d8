"""Make web pages of docs/ in site/: every link must lead somewhere, and nothing is loaded from another host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from install import ROOT

SITE = ROOT / "site"
# Pages that stand elsewhere in the repository, by where they stand on the site.
ALSO = {
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "evals/README.md": "evals.md",
}
PARTS = ("guides", "concepts", "reference", "decisions")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*(?:\n[^\]\n]*)?)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc="(https?:)?//|<link[^>]*\shref="(https?:)?//|@import\s"""
)
SETTINGS = """\
project = "Plainmind"
copyright = "the authors of Plainmind"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Plainmind VERSION"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 4
highlight_options = {"stripnl": False}
"""


def pages(root: Path = ROOT) -> dict[str, str]:
    """Every page of the site, and where it stands in the repository."""
    docs = root / "docs"
    paths = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    return {path: f"docs/{path}" for path in paths} | {place: path for path, place in ALSO.items()}


def on_the_site(text: str, path: str, places: dict[str, str]) -> str:
    """Let the links of one page lead to where the others stand on the site.

    `path` is its own in the repository, and `places` has the place of each page by that. What is in the repository and
    not on the site is named without a link; a link that leads nowhere is left for Sphinx to find.
    """
    own = PurePosixPath(places[path]).parent

    def rewrite(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        if re.match(r"\w+:", target):
            return found[0]
        inside = os.path.normpath(PurePosixPath(path).parent / target)
        place = places.get(inside) or places.get(f"{inside}/index.md")
        if place is None:
            return found["text"] if (ROOT / inside).exists() else found[0]
        return f"[{found['text']}]({os.path.relpath(place, own)}{anchor})"

    return LINK.sub(rewrite, text)


def contents(root: Path = ROOT) -> str:
    """The table of contents at the end of the first page: Sphinx shows it beside every page."""
    parts = []
    for part in PARTS:
        folder = root / "docs" / part
        names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))
        if part == "decisions":
            names.insert(0, "index")
        parts.append((part.capitalize(), [f"{part}/{name}" for name in names]))
    parts.append(
        (
            "More",
            [
                "architecture",
                "performance",
                "quality",
                "upkeep",
                "proof",
                "compare",
                "evals",
                "CONTRIBUTING",
                "SECURITY",
                "CHANGELOG",
            ],
        )
    )
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
        for caption, names in parts
    )


def decisions(root: Path = ROOT) -> str:
    """A page that lists the decisions, which a folder of files does by itself."""
    rows = []
    for path in sorted((root / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
        rows.append(f"- [{title}]({path.name})")
    return (
        "# Decisions\n\nWhy it is so, what it costs, and what would change our mind.\n\n"
        + "\n".join(rows)
        + "\n"
    )


def write_sources(folder: Path) -> None:
    """Put every page and picture into a folder, as Sphinx is to read them."""
    shutil.copytree(ROOT / "docs", folder)
    places = {path: place for place, path in pages().items()} | {
        "docs/decisions/index.md": "decisions/index.md"
    }
    for path, place in places.items():
        if path != "docs/decisions/index.md":
            text = (
                (ROOT / path).read_text(encoding="utf-8").replace("```jsonl\n", "```json\n")
            )  # known to Sphinx
            (folder / place).write_text(on_the_site(text, path, places), encoding="utf-8")
    (folder / "decisions" / "index.md").write_text(decisions(), encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as first:
        first.write(contents())
    version = re.findall(r'__version__ = "(.*)"', (ROOT / "src" / "plainmind" / "__init__.py").read_text())[0]
    (folder / "conf.py").write_text(SETTINGS.replace("VERSION", version), encoding="utf-8")


def loaded_from_elsewhere(site: Path) -> Iterator[str]:
    """Name each page or style that would ask another host for something."""
    for path in sorted(site.rglob("*")):
        if path.suffix in {".html", ".css"} and LOADED.search(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads something from another host"


def main() -> int:
    """Build anew; 1 when there was anything to warn of."""
    shutil.rmtree(SITE, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "docs"
        write_sources(folder)
        build = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            str(folder),
            str(SITE),
        ]
        status = subprocess.run(build, check=False).returncode
    shutil.rmtree(SITE / ".doctrees", ignore_errors=True)
    faults = list(loaded_from_elsewhere(SITE))
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if status or faults:
        return 1
    print(f"site: {sum(1 for _ in SITE.rglob('*.html'))} pages, begin at site/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
