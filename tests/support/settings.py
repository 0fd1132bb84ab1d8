"""The settings of a home and a workspace, loaded as the program loads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from plainmind.config.load import Loaded, load_here


def load_settings(
    *, home: str, workspace: str | None, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> Loaded:
    """Read every layer; without a workspace there is no file of a project."""
    loaded, _ = load_here(
        workspace_flag=workspace or os.path.join(home, "no-workspace"),
        cwd=home,
        flags=flags,
        environ={"PLAINMIND_HOME": home, **environ},
    )
    return loaded
