"""`plainmind chat`, with a process that is killed at its n-th step on the disk; 0 is never, and counts them."""

from __future__ import annotations

import os
import signal
import sys

STEPS = ("write", "fsync", "fdatasync", "fsync_folder", "replace", "unlink", "mkdir")


def dying(step, count, fatal):
    def call(self, *arguments):
        count[0] += 1
        if count[0] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *arguments)

    return call


def main(fatal: int, tally: str, argv: list[str]) -> int:
    from plainmind.cli.main import main as plainmind
    from plainmind.files.system import System

    count = [0]
    for name in STEPS:
        setattr(System, name, dying(getattr(System, name), count, fatal))
    status = plainmind(argv)
    with open(tally, "w") as file:
        file.write(str(count[0]))
    return status


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.exit(main(int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
