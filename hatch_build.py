"""Puts the packed page into the wheel; what runs from the sources has the page as it is written."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackedPage(BuildHookInterface):
    """Asked by hatchling before it builds a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the packed files in place of those in the sources."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "scripts"))
        import pack_page

        folder = Path(tempfile.mkdtemp(prefix="plainmind-page-"))
        pack_page.write(folder)
        build_data["force_include"][str(folder)] = "plainmind/guests/page/static"
