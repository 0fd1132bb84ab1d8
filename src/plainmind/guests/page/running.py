"""Which server serves a memory now: where it says so, and how another process finds it and asks for a code."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import explain_errors, read_file, try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.memory import Memory

_STARTING_SECONDS = 5.0
_ANSWER_SECONDS = 10.0
_MOST_BYTES = 100_000


@value
class Running:
    """A server that is up, and the secret that whoever can read its file shares with it."""

    url: str  # `http://127.0.0.1:8738`
    secret: str
    pid: int
    certificate: str | None = None  # of its TLS, to know it by


def _place(memory: Memory) -> str:
    """The file of the server of one memory: of its workspace and its agent."""
    name = sha256_text(f"{memory.agent_id}\n{memory.workspace}")[:16]
    return os.path.join(memory.home, "page", f"server-{name}.json")


@contextmanager
def hold_place(memory: Memory) -> Iterator[str]:
    """Be the only server of a memory for a while; the place to tell of it. Raises PlainmindError when there is one."""
    place = _place(memory)
    held = try_lock(place + ".lock", operation="serve the page")
    if held is None:
        found = find_running(memory)
        where = f" at {found.url}" if found else ""
        raise PlainmindError(
            f"a server of this memory is already running{where}",
            hint="`plainmind page` opens it; end it with Ctrl-C where it was started",
        )
    try:
        yield place
    finally:
        write_atomically(place, b"{}\n", mode=0o600)  # its secret is good for nothing any more
        held.release()


def tell_running(place: str, running: Running) -> None:
    """Say where a server is, to those who may read the home."""
    facts = {
        "url": running.url,
        "secret": running.secret,
        "pid": running.pid,
        "certificate": running.certificate,
    }
    write_atomically(place, json.dumps(facts).encode() + b"\n", mode=0o600)


def find_running(memory: Memory) -> Running | None:
    """The server of a memory; None when there is none.

    Only the lock tells that it is up: after a crash, somebody else may be listening at the same address.
    """
    place = _place(memory)
    deadline = time.monotonic() + _STARTING_SECONDS
    while True:
        free = try_lock(place + ".lock", operation="look for the page's server")
        if free is not None:
            free.release()
            return None
        found = _read(place)
        if found is not None or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def _read(place: str) -> Running | None:
    data = b"{}"
    with explain_errors("read", place), suppress(FileNotFoundError):
        data = read_file(place, most=_MOST_BYTES)
    facts = json.loads(data)
    if "url" not in facts:
        return None  # it is about to start, or has just ended
    return Running(facts["url"], facts["secret"], facts["pid"], facts["certificate"])


def ask_for_code(running: Running) -> str:
    """A code that opens the page of a running server once. Raises PlainmindError."""
    scheme, _, address = running.url.partition("://")
    line: http.client.HTTPConnection
    if scheme == "https":
        import ssl

        known = ssl.create_default_context(cafile=running.certificate)
        # It is known by its own certificate, whoever has signed that and whatever this machine is called.
        known.check_hostname = False
        known.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        known.verify_flags &= ~ssl.VERIFY_X509_STRICT
        line = http.client.HTTPSConnection(address, timeout=_ANSWER_SECONDS, context=known)
    else:
        line = http.client.HTTPConnection(address, timeout=_ANSWER_SECONDS)
    try:
        line.request(
            "POST",
            "/v1/codes",
            body=b"{}",
            headers={"Authorization": f"Bearer {running.secret}", "Content-Type": "application/json"},
        )
        answer = line.getresponse()
        facts = json.loads(answer.read(_MOST_BYTES))
        if answer.status != 201:
            raise PlainmindError(str(facts.get("detail")), hint=str(facts.get("hint") or "start it again"))
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise PlainmindError(
            f"the server at {running.url} does not answer: {error}", hint="end it, and run this again"
        ) from error
    finally:
        line.close()
    return str(facts["code"])
