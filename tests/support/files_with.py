"""Print which files hold a word: python files_with.py WORD FOLDER… A process of its own, because of SQLite's locks.

A process that closes a file loses all its locks on it, also those of a database that it has open: another process then
takes itself for the first one, and cuts the shared memory that the first still uses.
"""

import sys
from contextlib import suppress
from pathlib import Path

word, *folders = sys.argv[1:]
for path in (path for folder in folders for path in Path(folder).rglob("*")):
    with suppress(FileNotFoundError):  # another process has just deleted it
        if path.is_file() and word.encode() in path.read_bytes():
            print(path)
