"""What the batch endpoints of every provider can do, in words that all of them share.

A job is an uploaded file with one request a line, each named by the SHA-256 of its text, and a file of answers
in any order. Job and file carry our own `tag`, so that a job whose id we never got can be found again.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from plainmind.base.errors import ConfigError
from plainmind.base.value import value
from plainmind.guests.net.failures import AnswerUnreadable, ModelUnknown, NetFailure, RequestRefused, json_of
from plainmind.guests.net.transport import Transport, as_json

if TYPE_CHECKING:
    from plainmind.guests.remote.config import RemoteSettings
    from plainmind.guests.remote.wire import Wire

TAG_PREFIX = "plainmind-"
_NOT_THERE = {404, 405, 410, 501}
_MOST_PAGES = 50


@value
class JobView:
    """A job as its provider shows it. A word that we do not know counts as still at work."""

    job_id: str
    ended: bool
    said: str  # the provider's own word for the state
    complete: bool = False  # it ended as it should; single requests may have failed all the same
    outputs: tuple[str, ...] = ()  # files with answers; a job that ended early may have some too
    files: tuple[str, ...] = ()  # every file that belongs to the job, to be deleted at its end
    errors: str | None = None  # the file that says why single requests failed
    trouble: str | None = None  # why the job as a whole failed


@value
class AnswerLine:
    """One answer of an output file: whose it is, and the vector as it came, not yet checked."""

    hash: str
    values: Sequence[float]
    tokens: int = 0


class BatchEndpoint(Protocol):
    """One provider's way to run many requests as one job. Every call raises NetFailure."""

    max_items: int  # of one job
    max_bytes: int  # of its input file
    price_factor: float  # what a token costs here, against a single request

    def line(self, hash: str, text: str) -> bytes:  # noqa: A002
        """One request, as a line of the input file with its line end."""

    def upload(self, tag: str, lines: Sequence[bytes], *, deadline: float) -> str:
        """Upload the input file under a name made of `tag`; returns its id."""

    def create(self, tag: str, file_id: str, *, deadline: float) -> JobView:
        """Start the job. It must not be tried again before `find` has looked: it may have been started."""

    def look(self, job_id: str, *, deadline: float) -> JobView:
        """See how far the job is."""

    def find(self, tag: str, file_id: str, *, deadline: float) -> JobView | None:
        """Look through all jobs for the one of this tag or file. Raises Unlisted where jobs cannot be listed."""

    def files_of(self, tag: str, *, deadline: float) -> list[str]:
        """Look through all files for those uploaded under this tag. Raises Unlisted."""

    def cancel(self, job_id: str, *, deadline: float) -> None:
        """Ask for the end of the job; it ends some time later, with what was done by then."""

    def delete(self, file_id: str, *, deadline: float) -> None:
        """Delete a file; one that is gone already is as good."""

    def content_path(self, file_id: str) -> str:
        """Where `Transport.download` gets the file."""

    def read(self, line: Any) -> AnswerLine:
        """Read one line of an output file. Raises AnswerUnreadable, also for a request that failed."""


class Unlisted(NetFailure):
    """This provider does not let us list what we have there."""


class BatchesUnavailable(NetFailure):
    """There are no batch jobs at this address, or not for this model or account."""

    terminal = True


def endpoint_for(wire: Wire, transport: Transport, settings: RemoteSettings) -> BatchEndpoint:
    """The batch endpoints of a provider. Raises ConfigError when it has none."""
    if wire.name == "openai":
        from plainmind.guests.remote.openai import OpenAIBatches

        return OpenAIBatches(wire, transport, settings)
    if wire.name == "voyage":
        from plainmind.guests.remote.voyage import VoyageBatches

        return VoyageBatches(wire, transport, settings)
    if wire.name == "gemini":
        from plainmind.guests.remote.gemini import GeminiBatches

        return GeminiBatches(wire, transport, settings)
    raise ConfigError(
        f"the provider `{wire.name}` has no batch jobs",
        key="remote.batch.enabled",
        hint="set `remote.batch.enabled` to false",
    )


def jsonl(payload: object) -> bytes:
    """One line of strict JSON, with its line end."""
    return as_json(payload) + b"\n"


def upload_multipart(
    transport: Transport,
    path: str,
    *,
    subtype: str,
    parts: Sequence[tuple[Sequence[str], Sequence[bytes]]],
    deadline: float,
) -> Any:
    """Send parts (header lines, pieces of content) without joining them; returns the JSON of the answer."""
    boundary = secrets.token_hex(16)
    body: list[bytes] = []
    for headers, content in parts:
        body.append("\r\n".join([f"--{boundary}", *headers, "", ""]).encode())
        body.extend(content)
        body.append(b"\r\n")
    body.append(f"--{boundary}--\r\n".encode())
    answer = transport.send(
        "POST",
        path,
        body=body,
        length=sum(map(len, body)),
        content_type=f"multipart/{subtype}; boundary={boundary}",
        deadline=deadline,
    )
    if not answer.is_success:
        raise as_unavailable(transport.failure(answer))
    return json_of(answer, transport.host)


def as_unavailable(failure: NetFailure) -> NetFailure:
    """Take "not found" and "refused" at an upload or a creation as: there are no batch jobs here."""
    if isinstance(failure, ModelUnknown | RequestRefused):
        return BatchesUnavailable(
            f"no batch jobs here: {failure}",
            hint="set `remote.batch.enabled` to false; texts are embedded by single requests",
            status=failure.status,
        )
    return failure


def listing_page(transport: Transport, path: str, kind: str, *, deadline: float) -> Any:
    """One page of a listing. Raises Unlisted where the provider does not list such things."""
    try:
        return transport.json("GET", path, deadline=deadline)
    except NetFailure as error:
        if error.status in _NOT_THERE:
            raise Unlisted(f"{transport.host} does not list {kind}", status=error.status) from error
        raise


def delete(transport: Transport, path: str, *, deadline: float) -> None:
    """Delete what is at `path`, unless it is gone already."""
    answer = transport.send("DELETE", path, deadline=deadline)
    if not answer.is_success and answer.status not in _NOT_THERE:
        raise transport.failure(answer)


def text_at(payload: Any, *keys: str) -> str | None:
    """The text under nested keys, None when there is none."""
    for key in keys:
        payload = payload.get(key) if isinstance(payload, dict) else None
    return payload if isinstance(payload, str) and payload else None


def id_at(payload: Any, *keys: str, what: str) -> str:
    """The text under nested keys, which must be there."""
    found = text_at(payload, *keys)
    if found is None:
        raise AnswerUnreadable(f"the provider answered without the id of the {what}")
    return found


def pages() -> range:
    """How often a listing is turned at most: what we look for is young, and the newest come first."""
    return range(_MOST_PAGES)
