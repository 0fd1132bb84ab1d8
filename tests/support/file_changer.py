"""A process that changes files on request: python file_changer.py FOLDER, then one request a line on its input.

It answers each with `done` when the system call that made the change has returned.
"""

import mmap
import os
import shutil
import sys
from pathlib import Path


def append(path, text):
    with path.open("a") as file:
        file.write(text + "\n")


def create(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def replace(path, text):
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text + "\n")
    os.replace(beside, path)


def overwrite(path, text):
    """Other bytes of the same number, without truncating."""
    with path.open("r+") as file:
        file.write(text)


def map_and_close(path, text):
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[: len(text)] = text.encode()


def delete(path, _text):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def rename(path, text):
    path.rename(path.parent / text)


def touch(path, _text):
    path.touch()


def chmod(path, text):
    path.chmod(int(text, 8))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        request, path, text = line.rstrip("\n").split("\t")
        globals()[request](folder / path, text)
        print("done", flush=True)
