"""One request whose answer is heard while it is given: to one origin, never redirected, never silent for too long."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator

from plainmind.guests.net.connection import Connection, Patience
from plainmind.guests.net.failures import Answer, AnswerTooLarge, RedirectRefused, TimedOut
from plainmind.guests.net.transport import Transport, pieces_of

LARGEST_STREAM = 64 * 1024 * 1024
_LARGEST_ERROR = 1024 * 1024
_LONGEST_FAREWELL_S = 1.0
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream, application/json",
    "Accept-Encoding": "identity",  # compressed, an answer would come in lumps
}


class StreamPatience(Patience):
    """Runs out after a silence, or at the deadline for the whole answer."""

    def __init__(self, host: str, *, silence_s: float, deadline: float, stopped: Callable[[], bool]) -> None:
        super().__init__(host, deadline, stopped)
        self._last = deadline
        self._silence_s = silence_s
        self.renew()

    def renew(self, silence_s: float | None = None) -> None:
        """Something was heard: wait as long again for more."""
        longest = self._silence_s if silence_s is None else silence_s
        self._deadline = min(self._last, time.monotonic() + longest)


class StreamingTransport(Transport):
    """A transport that hands on an answer as it comes in."""

    def stream(
        self,
        path: str,
        body: bytes,
        *,
        silence_s: float,
        deadline: float,
        stopped: Callable[[], bool],
        take: Callable[[bytes], bool],
    ) -> Answer:
        """Post `body`; `take` gets the pieces of a success, and says whether it needs more of them.

        Of a success the status and the headers are returned; any other answer whole. Raises ProviderFailure.
        """
        patience = StreamPatience(
            self.host, silence_s=silence_s, deadline=deadline, stopped=lambda: self._closed or stopped()
        )

        def exchange(connection: Connection) -> Answer:
            connection.request("POST", self._target(path), body=body, headers={**self._headers, **_HEADERS})
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            if 300 <= response.status < 400:
                raise RedirectRefused(
                    f"{self.host} answered with a redirect ({response.status}), which is never followed:"
                    " the key is for this host alone",
                    status=response.status,
                )
            if not 200 <= response.status < 300:
                told = b"".join(pieces_of(response, _LARGEST_ERROR, self.host))
                return Answer(response.status, fields, told)
            if not all(take(piece) for piece in _pieces(response, patience, self.host)):
                _take_leave(connection, response, patience)
            return Answer(response.status, fields, b"")

        # An idle connection that was closed meanwhile is noticed before it is used; should that fail, the caller
        # asks again by itself, as after every lost connection.
        return self._connected(exchange, self._reused(patience) or self._opened(patience))


def _pieces(response: http.client.HTTPResponse, patience: StreamPatience, host: str) -> Iterator[bytes]:
    """Give the bytes as they arrive."""
    if response.length is not None:  # not a stream, after all
        yield from pieces_of(response, LARGEST_STREAM, host)
        return
    size = 0
    while piece := response.read1(65_536):
        patience.renew()
        size += len(piece)
        if size > LARGEST_STREAM:
            raise AnswerTooLarge(f"{host} answered with more than {LARGEST_STREAM // 1024:,} KB")
        yield piece


def _take_leave(connection: Connection, response: http.client.HTTPResponse, patience: StreamPatience) -> None:
    """The answer is complete: read the end of the stream, so that the connection can be used again."""
    patience.renew(_LONGEST_FAREWELL_S)
    try:
        while response.read1(65_536):
            pass
    except (TimedOut, http.client.HTTPException, OSError):
        connection.hang_up()
