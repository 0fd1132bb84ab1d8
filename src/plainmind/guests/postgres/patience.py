"""A connection that does not wait for ever: a server that hangs, or is cut off, says nothing at all."""

from __future__ import annotations

import time
from collections.abc import Generator

import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    R = TypeVar("R")
    _Waiting = Generator[Any, Any, R]

# Longer than a statement may take by its own deadline, which the server keeps as long as it lives.
PATIENCE_S = 75.0


class PatientConnection(psycopg.Connection["Any"]):
    """Gives up on a server that has not answered for `patience_s`, and is closed then."""

    patience_s: float = PATIENCE_S

    def wait(self, gen: _Waiting[R], *others: Any, **named: Any) -> R:
        """Let the server answer."""
        return super().wait(self._ended(gen, time.monotonic() + self.patience_s), *others, **named)

    def _ended(self, gen: _Waiting[R], until: float) -> _Waiting[R]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > until:  # nothing has come, as happens ten times a second
                    self.close()
                    raise psycopg.OperationalError("it does not answer any more")
                wanted = gen.send(ready)
        except StopIteration as ended:
            answer: R = ended.value
            return answer
