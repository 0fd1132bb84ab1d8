"""A search sees every write that was finished before it, by whichever process, though it seldom looks at the files."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.index.drivers.memory import MemoryStore

ROUNDS = 500 if os.environ.get("PLAINMIND_FAULTS") == "full" else 60
CHANGER = Path(__file__).parents[1] / "support" / "file_changer.py"


class Changer:
    """Another process that changes files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CHANGER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, request: str, path: str, text: str = "") -> None:
        self.process.stdin.write(f"{request}\t{path}\t{text}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(60) == 0


class World:
    """What the files say, and what a search must therefore find."""

    def __init__(self, change: Changer) -> None:
        self.change = change
        self.files: dict[str, set[str]] = {}  # the words of each file
        self.gone: list[str] = []
        self.count = 0

    def word(self) -> str:
        self.count += 1
        return f"quagga{self.count}x"

    def latest(self) -> str:
        return f"quagga{self.count}x"

    def append(self, path: str) -> None:
        word = self.word()
        self.change("append", path, f"- seen a {word}")
        self.files[path].add(word)

    def replace(self, path: str) -> None:
        word = self.word()
        self.change("replace", path, f"- only a {word}")
        self.gone += self.files[path]
        self.files[path] = {word}

    def create(self, path: str) -> None:
        word = self.word()
        self.change("create", path, f"- a new {word}")
        self.files[path] = {word}

    def delete(self, path: str) -> None:
        self.change("delete", path)
        self.gone += self.files.pop(path)

    def rename_folder(self, old: str, new: str) -> None:
        self.change("rename", old, new.rpartition("/")[2])
        for path in [path for path in self.files if path.startswith(f"{old}/")]:
            self.files[path.replace(old, new, 1)] = self.files.pop(path)

    def step(self, dice: random.Random) -> None:
        path = dice.choice(sorted(self.files))
        match dice.choice(
            ["append"] * 4 + ["replace"] * 2 + ["create", "folder", "delete", "rename", "nothing"]
        ):
            case "append":
                self.append(path)
            case "replace":
                self.replace(path)
            case "create":
                self.create(f"{path.rpartition('/')[0]}/n{self.count}.md")
            case "folder":
                self.create(f"memory/f{self.count}/deep/n.md")
            case "delete" if len(self.files) > 30:
                self.delete(path)
            case "rename" if folders := [p.split("/")[1] for p in self.files if p.count("/") > 1]:
                self.rename_folder(f"memory/{dice.choice(sorted(folders))}", f"memory/r{self.count}")
                self.count += 1


@pytest.fixture
def world(tmp_path):
    changer = Changer(tmp_path / "workspace")
    world = World(changer)
    for number in range(40):
        world.create(f"memory/{number % 5}/{number}.md")
    yield world
    changer.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kept_in", ["memory", "sqlite"])
def test_the_very_next_search_finds_what_another_process_wrote(tmp_path, world, kept_in):
    dice = random.Random(5)
    with Memory(tmp_path / "workspace", home=tmp_path / "home", config={"provider": "none"}) as memory:
        if kept_in == "memory":
            vars(memory.index)["store"] = MemoryStore()
        looks = counted_looks(memory)
        for number in range(ROUNDS):
            world.step(dice)
            words = set().union(*world.files.values())
            for word in (world.latest(), dice.choice(sorted(words))):
                holders = {path for path, words in world.files.items() if word in words}
                found = {hit.path for hit in memory.search(word, min_score=0).hits if word in hit.snippet}
                assert found == holders, f"round {number}: {word}"
            if world.gone:
                old = dice.choice(world.gone[-5:])
                hits = memory.search(old, min_score=0).hits
                assert not any(old in hit.snippet for hit in hits), f"round {number}: {old} is still found"
    if sys.platform == "linux":
        assert len(looks) < ROUNDS, "it looked at all files before more than every third search"


def counted_looks(memory: Memory) -> list[None]:
    looks: list[None] = []
    discover = memory.notes.workspace.discover

    def counting():
        looks.append(None)
        return discover()

    memory.notes.workspace.discover = counting
    return looks
