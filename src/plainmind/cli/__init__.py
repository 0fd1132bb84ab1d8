"""The command line: each command parses, calls the memory and prints."""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> NoReturn:
    """Be the program."""
    # Looking for garbage cycles costs a search 5 ms on its way and 6 ms at the end, and finds next to nothing; one of
    # them while the modules of the command line are loaded.
    gc.set_threshold(50_000, 20, 100)
    from plainmind.cli import main

    main.run()
