"""Hostile paths, and a racer that swaps folders for links, get no byte from outside the memory."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plainmind.base.errors import PlainmindError
from plainmind.files.safe_open import Root, open_by_components, open_by_openat2
from plainmind.notes.discovery import ExtraPath
from plainmind.notes.excerpt import read_excerpt
from plainmind.notes.workspace import Workspace

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
CANARY = "canary-7f3a91"
SECRET = f"{CANARY} what lies outside\n"
LIMIT = 1_000_000

UP = [
    "..",
    "../..",
    "../../..",
    "./..",
    "memory/..",
    "memory/../..",
    "memory/sub/../../..",
    "memory//..",
    "memory/./..",
    "..//",
    "/..",
    "//",
    "/",
    "~",
    "~root",
    "$HOME",
    "${PWD}",
    "file://",
    "file:///..",
    "%2e%2e",
    "..%2f",
    "%2e%2e%2f",
    "..%252f",
    "..%c0%af",
    "..%5c",
    "..\\",
    "..\\..\\",
    "\\\\host\\share\\",
    "C:",
    "C:\\",
    "C:/..",
    "..;",
    ".. ",
    " ..",
    "...",
    "．．",
    "‥",
    "․․",
    "..\u2215",
    "..\u2044",
    "..\uff0f",
    "..\0",
    "..\n",
    "..\t",
    "..\x1b",
    "..\u202e",
    "..\u200b",
    "\ufeff..",
    "..\udcc0\udcaf",
    "memory/../../outside/../outside",
    "../ws/../outside",
    "../ws-evil",
    "-rf ..",
    "--",
]

ENDINGS = ["/outside/secret.md", "/secret.md", "/outside/secret.md#L1-L2"]


def laid_traps(top: Path) -> list[str]:
    """Put links, pipes and twins into the workspace, and name the ways to the secret that they offer."""
    memory = top / "ws" / "memory"
    outside = top / "outside"
    secret = outside / "secret.md"
    (memory / "file.md").symlink_to(secret)
    (memory / "relative.md").symlink_to("../../outside/secret.md")
    (memory / "chain.md").symlink_to("file.md")
    (memory / "folder").symlink_to(outside)
    (memory / "up").symlink_to("../..")
    (memory / "slash").symlink_to("/")
    (memory / "loop").symlink_to("loop")
    (memory / "cwd").symlink_to("/proc/self/cwd")
    (memory / "proc").symlink_to("/proc/self/root")
    (memory / "sub" / "folder").symlink_to("../../../outside")
    (memory / "dangling.md").symlink_to("nowhere.md")
    os.link(secret, memory / "hard.md")
    os.mkfifo(memory / "pipe.md")
    (top / "ws" / "MEMORY.md").symlink_to(secret)
    (top / "ws" / "notes").symlink_to(outside)
    (memory / ".hidden").mkdir()
    for place in (
        memory / ".hidden" / "a.md",
        memory / ".a.md",
        top / "ws" / "private.md",
        top / "ws" / ".env.md",
    ):
        place.write_text(SECRET)
    (memory / "x.sync-conflict-20260101-000000-AAAAAAA.md").write_text(SECRET)
    (memory / "not_markdown.txt").write_text(SECRET)
    absolute = str(secret)
    return [
        "memory/file.md",
        "memory/relative.md",
        "memory/chain.md",
        "memory/folder/secret.md",
        "memory/folder/../folder/secret.md",
        "memory/up/outside/secret.md",
        f"memory/slash{absolute}",
        f"memory/proc{absolute}",
        "memory/cwd/outside/secret.md",
        "memory/loop",
        "memory/loop/secret.md",
        "memory/sub/folder/secret.md",
        "memory/dangling.md",
        "memory/hard.md",
        "memory/pipe.md",
        "MEMORY.md",
        "memory.md",
        "notes/secret.md",
        "extra/../../outside/secret.md",
        "extra/link.md",
        "extra/folder/secret.md",
        "memory/.hidden/a.md",
        "memory/.a.md",
        "private.md",
        ".env.md",
        "memory/x.sync-conflict-20260101-000000-AAAAAAA.md",
        "memory/not_markdown.txt",
        "memory/not_markdown.txt#L1",
        "memory/inside.md/../../../outside/secret.md",
        "memory/inside.md/secret.md",
        absolute,
        "/" + absolute,
        absolute + "#L1-L9",
        absolute + ":1-9",
        f"memory/{absolute}",
        f"file://{absolute}",
        "/proc/self/cwd/outside/secret.md",
        "/dev/stdin",
        "/etc/passwd",
        "memory",
        "memory/",
        "memory/sub",
        "",
        ".",
        "./",
        "..",
        "\0",
        "memory/inside.md\0.md",
        "memory/hard.md\0",
        "memory/file.md/",
        "memory/file.md/.",
        "memory/FILE.md",
        "MEMORY.MD",
        "memory/" + "a" * 256 + ".md",
        "memory/" + "a/" * 3000 + "x.md",
        "a" * 100_000,
        "memory/inside.md::$DATA",
        "memory/inside.md:1-2:3-4",
    ]


@pytest.fixture
def top(tmp_path):
    (tmp_path / "ws" / "memory" / "sub").mkdir(parents=True)
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "extra").mkdir()
    (tmp_path / "ws" / "memory" / "inside.md").write_text("inside\n")
    (tmp_path / "extra" / "a.md").write_text("extra\n")
    for place in ("outside", "ws-evil", "."):
        (tmp_path / place / "secret.md").write_text(SECRET)
    (tmp_path / "extra" / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (tmp_path / "extra" / "folder").symlink_to(tmp_path / "outside")
    return tmp_path


def corpus(top: Path) -> list[str]:
    return laid_traps(top) + [start + ending for start in UP for ending in ENDINGS]


def everything_read(workspace: Workspace, path: str) -> str:
    """All text that a path yields by any way to read it, error messages included."""
    seen = []
    for read in (lambda: workspace.read(path)[0].text, lambda: read_excerpt(workspace, path).text):
        try:
            seen.append(read())
        except PlainmindError as error:
            seen.append(f"{error} {error.hint}")
    return "\n".join(seen)


def test_no_hostile_path_yields_a_byte_from_outside(top):
    paths = corpus(top)
    workspace = Workspace(str(top / "ws"), extra_paths=[ExtraPath(str(top / "extra")), ExtraPath("notes")])
    assert len(set(paths)) >= 150

    leaked = [path for path in paths if CANARY in everything_read(workspace, path)]

    assert leaked == []
    assert everything_read(workspace, "memory/inside.md") == "inside\n\ninside"
    assert everything_read(workspace, "extra/a.md") == "extra\n\nextra"


def test_discovery_lists_only_what_is_inside(top):
    corpus(top)
    workspace = Workspace(str(top / "ws"), extra_paths=[ExtraPath(str(top / "extra")), ExtraPath("notes")])

    assert [found.path for found in workspace.discover().files] == ["memory/inside.md", "extra/a.md"]


@pytest.mark.parametrize("opener", [open_by_openat2, open_by_components])
def test_the_root_alone_holds_against_the_same_paths(top, opener):
    """Without the allow-list, which keeps hidden and other files out: the root only holds links and paths."""
    paths = corpus(top)
    root = Root(str(top / "ws"), opener=opener)
    within = {
        "private.md",
        ".env.md",
        "memory/.hidden/a.md",
        "memory/.a.md",
        "memory/x.sync-conflict-20260101-000000-AAAAAAA.md",
        "memory/not_markdown.txt",
    }
    seen = set()
    for path in paths:
        with contextlib.suppress(PlainmindError):
            data, _ = root.read(path, max_bytes=LIMIT)
            seen |= {path} if CANARY.encode() in data else set()
    assert seen == within


RACER = """
import os, sys, time
folder, outside, until = sys.argv[1], sys.argv[2], time.monotonic() + float(sys.argv[3])
aside, link, count = folder + "-aside", folder + "-link", 0
print("racing", flush=True)
while time.monotonic() < until and not os.path.exists(sys.argv[4]):
    os.symlink(outside, link)
    os.rename(folder, aside)
    os.rename(link, folder)
    os.unlink(folder)
    os.rename(aside, folder)
    count += 1
    if count % 50 == 0:
        time.sleep(0.002)  # or a slow reader never meets the folder as it was
print(count, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(400 if FULL else 40)
@pytest.mark.parametrize("opener", [open_by_openat2, open_by_components])
def test_a_folder_swapped_for_a_link_while_we_read_shows_nothing_behind_it(top, opener):
    swapped = top / "ws" / "memory" / "swapped"
    (swapped / "sub").mkdir(parents=True)
    (top / "outside" / "sub").mkdir()
    for relative in ("secret.md", "sub/secret.md"):
        (swapped / relative).write_text("inside\n")
        (top / "outside" / relative).write_text(SECRET)
    (top / "outside" / "only-outside.md").write_text(SECRET)
    wanted_reads = 100_000 if FULL else 4_000
    workspace = Workspace(str(top / "ws"))
    root = Root(str(top / "ws"), opener=opener)
    finish = top / "finish"
    racer = subprocess.Popen(
        [sys.executable, "-c", RACER, str(swapped), str(top / "outside"), "300", str(finish)],
        stdout=subprocess.PIPE,
        text=True,
    )
    answers = {"inside": 0, "refused": 0}
    leaks = []
    try:
        assert racer.stdout.readline() == "racing\n"
        until = time.monotonic() + (300 if FULL else 15)
        for number in range(wanted_reads):
            for path in ("memory/swapped/secret.md", "memory/swapped/sub/secret.md"):
                try:
                    data, _ = root.read(path, max_bytes=LIMIT)
                except PlainmindError:
                    answers["refused"] += 1
                else:
                    answers["inside"] += 1
                    leaks += [path] if CANARY.encode() in data else []
            if number % 10 == 0:
                leaks += [f.path for f in workspace.discover().files if "only-outside" in f.path]
                leaks += [CANARY] if CANARY in everything_read(workspace, "memory/swapped/secret.md") else []
            if time.monotonic() > until:
                break
    finally:
        finish.touch()
        swaps = int(racer.communicate(timeout=60)[0])

    assert leaks == []
    # Both answers came: the race was real.
    assert answers["inside"] > 0
    assert answers["refused"] > 0
    assert swaps > 100
    if FULL:
        assert sum(answers.values()) >= 100_000
