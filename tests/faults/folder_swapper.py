"""Exchanges files and folders for what lies beside them, and back, as fast as the system can, until its input ends.

Usage: folder_swapper.py SEED PAUSE_US PLACE TRAP [PLACE TRAP …]. Every place is itself again when it ends, and its last
line is the number of exchanges.
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import sys
import time

_EXCHANGE = 2
_HERE = -100  # AT_FDCWD


def exchange(first: bytes, second: bytes) -> bool:
    """Give each of two names what the other stands for, in one step."""
    return not _libc.renameat2(_HERE, first, _HERE, second, _EXCHANGE)


def main() -> None:
    chance = random.Random(int(sys.argv[1]))
    pause_us = int(sys.argv[2])
    names = [os.fsencode(name) for name in sys.argv[3:]]
    pairs = list(zip(names[::2], names[1::2], strict=True))
    count = 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(50):
            place, trap = chance.choice(pairs)
            if not exchange(place, trap):
                continue
            # Some of them last as long as a call, most are over before one could look twice.
            if chance.random() < 0.2:
                time.sleep(chance.random() * pause_us / 1e6)
            while not exchange(place, trap):
                pass
            count += 2
    print(count, flush=True)


_libc = ctypes.CDLL(None, use_errno=True)

if __name__ == "__main__":
    main()
