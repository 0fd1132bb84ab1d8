"""The settings of an index in LanceDB, beside those of every store: `store.uri`."""

from __future__ import annotations

from plainmind.base.value import value
from plainmind.config.kinds import SENDS, Text, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from plainmind.config.settings import Settings


@value
class LanceConfig:
    """Where the tables are kept, if not in the folder of the index."""

    section = "store"
    uri: str | None = setting(
        None,
        Text("an address", optional=True),
        SENDS,
        "Where LanceDB keeps it instead, `s3://bucket/folder`.",
    )


def store_options(settings: Settings, _environ: Mapping[str, str], **_: str | None) -> dict[str, str | None]:
    """Where the tables are, and the name of this workspace among them."""
    return {"uri": settings.section(LanceConfig).uri, "workspace": settings.store.workspace_name}


def destination(options: Mapping[str, str]) -> str | None:
    """The bucket that holds the text of the notes, unless it is a folder of this machine."""
    uri = options.get("uri", "")
    return uri if "://" in uri else None
