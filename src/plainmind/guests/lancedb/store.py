"""The index in LanceDB, opened by its folder or its address."""

from __future__ import annotations

import os
from collections.abc import Mapping

from plainmind.base.errors import ConfigError
from plainmind.guests.lancedb.driver import LanceDriver
from plainmind.index.store import Store


class LanceStore(Store):
    """An index in a local folder, made when it is missing, or in an object store: `s3://bucket/prefix`."""

    driver: LanceDriver

    def __init__(self, folder: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        super().__init__(LanceDriver(folder, storage_options))


def open_lance_store(
    folder: str,
    uri: str | None = None,
    workspace: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> LanceStore:
    """Open the index of an agent and a workspace: in its folder, or beneath `uri` in an object store.

    The last two names of `folder` are those of the agent and the workspace. Hosts that share a workspace may know it by
    different folders: `workspace` is then what all of them call it.
    """
    if uri is None:
        return LanceStore(folder)
    agent, name = os.path.split(os.path.abspath(folder))
    place = "/".join((_whole_address(uri).rstrip("/"), os.path.basename(agent), workspace or name))
    return LanceStore(place, storage_options=storage_options)


def _whole_address(uri: str) -> str:
    """An address, or a path that means the same wherever a program is started. Raises ConfigError."""
    if "://" in uri:
        return uri
    path = os.path.expanduser(uri)
    if not os.path.isabs(path):
        raise ConfigError(
            f"`store.uri` is neither an address nor a whole path: {uri}",
            key="store.uri",
            hint="write s3://bucket/folder, gs://… or az://…, or a path that begins with / or ~",
        )
    return path
