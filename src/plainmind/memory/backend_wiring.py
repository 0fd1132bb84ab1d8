"""An engine of its own for a memory: made from the settings, with the built-in index to answer in its place."""

from __future__ import annotations

import os

from plainmind.base.model import known_sources
from plainmind.config.load import absolute
from plainmind.guests.qmd.config import QmdConfig
from plainmind.memory.backend import FallbackBackend, Pause, Place, Record, Surroundings, open_backend
from plainmind.memory.translation import memory_paths
from plainmind.notes.discovery import mounts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.qmd.options import QmdOptions
    from plainmind.memory.wiring import Parts


def make_backend(parts: Parts) -> FallbackBackend:
    """Make what `backend` names. Starts nothing. Raises ConfigError."""
    settings = parts.loaded.settings
    paths = memory_paths(settings)
    root = parts.workspace.root
    folder = engine_folder(parts, settings.backend)
    surroundings = Surroundings(
        agent_id=settings.agent_id,
        folder=folder,
        workspace=parts.workspace,
        places=tuple(
            Place(mount, path.pattern) for mount, path in zip(mounts_of(root, paths), paths, strict=True)
        ),
        transcripts=parts.transcripts if _wants_sessions(parts) else None,
        sources=known_sources(settings.sources),
        erasures=parts.erasures,
        environ=parts.environ,
        options=_qmd_options(parts) if settings.backend == "qmd" else None,
    )
    engine = open_backend(settings.backend, surroundings)
    program = settings.section(QmdConfig).command if settings.backend == "qmd" else ""
    return FallbackBackend(engine, Pause(Record(os.path.join(folder, "pause.json")), program=program))


def engine_folder(parts: Parts, backend: str) -> str:
    """Where an engine keeps its own: by agent and by workspace, as the index is."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in backend)
    return os.path.join(
        parts.places.home,
        "agents",
        parts.loaded.settings.agent_id,
        name,
        os.path.basename(parts.places.index),
    )


def _wants_sessions(parts: Parts) -> bool:
    settings = parts.loaded.settings
    return (
        settings.section(QmdConfig).sessions_enabled
        if settings.backend == "qmd"
        else "sessions" in settings.sources
    )


def _qmd_options(parts: Parts) -> QmdOptions:
    from plainmind.guests.qmd.options import QmdOptions

    qmd, places = parts.loaded.settings.section(QmdConfig), parts.places
    export = None
    if qmd.export_dir is not None:
        export = os.path.join(
            absolute(qmd.export_dir, places.home, parts.environ),
            parts.loaded.settings.agent_id,
            os.path.basename(places.index),
        )
    return QmdOptions(
        command=qmd.command,
        search_mode=qmd.search_mode,  # type: ignore[arg-type]
        include_default_memory=qmd.include_default_memory,
        export_folder=export,
        retention_days=qmd.retention_days,
        update_interval_s=qmd.update_interval_s,
        embed_interval_s=qmd.embed_interval_s,
        debounce_s=qmd.debounce_ms / 1000,
        update_on_boot=qmd.on_boot,
        update_on_search=parts.loaded.settings.sync.on_search,
        command_timeout_s=qmd.command_timeout_ms / 1000,
        update_timeout_s=qmd.update_timeout_ms / 1000,
        embed_timeout_s=qmd.embed_timeout_ms / 1000,
    )
