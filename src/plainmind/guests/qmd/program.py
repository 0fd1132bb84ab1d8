"""The program itself: where it is, which version, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Sequence

from plainmind.base.pattern import pattern
from plainmind.guests.qmd.command import OWN_INDEX, Homes, environment, find_program, present_models
from plainmind.guests.qmd.keeper import NOT_STARTED
from plainmind.guests.qmd.options import QmdOptions
from plainmind.guests.qmd.process import Outcome, Sidecar
from plainmind.memory.backend import BackendFailed, Surroundings
from plainmind.memory.backend_record import Record

_VERSION = pattern(r"\d+\.\d+(?:\.\d+)?[\w.+-]{0,40}")
_MOST_SAID = 64_000


class Program:
    """Runs QMD in its own home, one process at a time."""

    def __init__(self, surroundings: Surroundings, options: QmdOptions, record: Record) -> None:
        self._environ = surroundings.environ
        self._options = options
        self._record = record
        # Not the workspace: programs take settings, and code, from the folder that they stand in.
        self._cwd = surroundings.folder
        self._homes = Homes.beneath(surroundings.folder)
        self._sidecar = Sidecar()
        self._path: str | None = None

    def path(self) -> str:
        """Its absolute path, looked for once. Raises BackendFailed."""
        if self._path is None:
            self._path = find_program(self._options.command, self._environ)
        return self._path

    def models(self) -> frozenset[str]:
        """Which of its models are on this machine."""
        return present_models(self._environ, self._homes)

    def run(self, arguments: Sequence[str], timeout_s: float, *, max_output: int | None = None) -> Outcome:
        """Run it to its end: a verb, and what goes with it. Raises BackendFailed."""
        path, (verb, *others) = self.path(), arguments
        outcome = self._sidecar.run(
            [path, verb, *OWN_INDEX, *others],
            environ=environment(self._environ, self._homes, path),
            cwd=self._cwd if os.path.isdir(self._cwd) else "/",
            timeout_s=timeout_s,
            max_output=max_output,
        )
        if outcome.status == NOT_STARTED:
            self._path = None  # it may have moved
        return outcome

    def version(self) -> str:
        """Ask for its version. Raises BackendFailed."""
        outcome = self.run(["--version"], self._options.command_timeout_s, max_output=_MOST_SAID)
        found = _VERSION.search(outcome.output.decode("utf-8", "replace"))
        if outcome.status or found is None:
            raise BackendFailed(f"`{self.path()} --version` tells no version")
        self._record.update(version=found[0])
        return found[0]

    def close(self) -> None:
        """End what runs."""
        self._sidecar.close()
