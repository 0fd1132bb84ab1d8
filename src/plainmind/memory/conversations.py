"""The conversations of a memory: their store, imports into it, and deleting one from everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from plainmind.base.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:  # a search needs none of these
    from plainmind.base.model import ProgressCallback
    from plainmind.guests.importers.importer import Importer
    from plainmind.guests.importers.report import ImportReport
    from plainmind.memory.wiring import Parts
    from plainmind.redaction.engine import Redactor
    from plainmind.sessions.store import SessionStore

_AGENT = pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Conversations:
    """What a memory can do with conversations."""

    parts: Parts

    @cached_property
    def sessions(self) -> SessionStore:
        """The conversations of this agent. They are searched if `sources` has `sessions`."""
        from plainmind.sessions.store import SessionStore

        return SessionStore(self.parts.places.sessions)

    def delete_session(self, name: str) -> tuple[str, ...]:
        """Remove a session or an archive for good, also from every index of this agent; what is no longer cited."""
        from plainmind.memory.removing_sessions import delete_everywhere

        return delete_everywhere(self.parts, self.sessions, name)

    def import_sessions(
        self,
        program: str,
        path: str | os.PathLike[str],
        *,
        into_one_agent: bool = False,
        again: bool = False,
        is_rehearsal: bool = False,
        progress: ProgressCallback | None = None,
    ) -> ImportReport:
        """Copy the conversations of another program; doing so twice adds nothing, and the originals stay as they are.

        `program` is `openclaw`, `claude-code`, `codex` or `messages`. Those of OpenClaw's agents go to the agents here
        that have the same names, unless `into_one_agent`. What was archived or deleted here stays away unless `again`.
        """
        importer = self._importer(program, into_one_agent=into_one_agent, again=again)
        return importer.run(os.path.expanduser(path), is_rehearsal=is_rehearsal, progress=progress)

    def follow_sessions(
        self,
        program: str,
        path: str | os.PathLike[str],
        *,
        wait: Callable[[float], bool],
        into_one_agent: bool = False,
    ) -> Iterator[ImportReport]:
        """Import whatever is added, as `import_sessions`, until `wait`, called with seconds, returns true."""
        from plainmind.guests.importers.importer import imports

        importer = self._importer(program, into_one_agent=into_one_agent, again=False)
        return imports(importer, os.path.expanduser(path), wait=wait)

    def redactor(self) -> Redactor:
        """What hides secrets in copies: those of the settings, and what looks like one."""
        return self.parts.redactor

    def sessions_folder(self, agent: str | None = None) -> str:
        """Where the conversations of an agent are; of this one, if that name could be none of ours."""
        if agent is None or not _AGENT.fullmatch(agent):
            return self.parts.places.sessions
        from plainmind.config.load import index_folder

        return index_folder(
            self.parts.loaded.settings.sessions.path,
            home=self.parts.places.home,
            agent_id=agent,
            environ=self.parts.environ,
        )

    def _importer(self, program: str, *, into_one_agent: bool, again: bool) -> Importer:
        from plainmind.guests.importers.importer import Importer

        def folder_of(agent: str | None) -> str:
            return self.sessions_folder(None if into_one_agent else agent)

        return Importer(program, folder_of, again=again)


def not_indexed(source: str, sources: Sequence[str]) -> str:
    """Say that nothing of a source is there to be found, and what to do if nobody wanted it so far."""
    if source in sources:
        return f"nothing from `{source}` is indexed"
    return f"nothing from `{source}` is indexed: `plainmind config set sources memory,{source}` changes that"
