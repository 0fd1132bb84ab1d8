"""A memory to measure, untouched by the settings of whoever measures it. Imports no numpy, which would count."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from plainmind.memory.facade import Memory
from plainmind.memory.wiring import wire


def plain_environment() -> dict[str, str]:
    """The environment without our settings and without Python's, which would be measured along."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PLAINMIND_", "PYTHON"))
    }


@contextmanager
def opened(workspace: str, home: str, flags: Mapping[str, Any] | None = None) -> Iterator[Memory]:
    """A memory with the default settings, whatever this user's are."""
    os.makedirs(workspace, exist_ok=True)
    parts = wire(
        workspace=workspace,
        home=home,
        flags={"provider": "builtin", **(flags or {})},  # whatever keys there are in the environment
        environ=plain_environment(),
        cwd=workspace,
    )
    with Memory.of(parts) as memory:
        yield memory
