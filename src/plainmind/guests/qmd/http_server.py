"""`qmd mcp --http`: the same tools over HTTP, beside QMD's own `/query` and `/health`, and in the background.

On this machine alone, unless `--host` says otherwise, and never for a page from elsewhere.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.files.system import SYSTEM, make_folders, read_file
from plainmind.guests.qmd.desk import Desk, Refusal, tell
from plainmind.guests.qmd.server import answer, results_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any, NoReturn

PORT = 8181
_MOST_BYTES = 4_000_000
_STILL_S = 30.0  # a client that says nothing for so long is let go
_START_S, _STOP_S, _BETWEEN_S = 10.0, 5.0, 0.05
_FORBIDDEN = -32003
_ON_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1", "0:0:0:0:0:0:0:1"})
_EVERYWHERE = frozenset({"0.0.0.0", "::", "*", ""})  # noqa: S104 (named in order to warn of it)


# --- who may ask ---


@value
class Guard:
    """Which hosts and pages a request may name: a page from elsewhere could otherwise read along in a browser."""

    hosts: frozenset[str]
    origins: frozenset[str]
    is_off: bool = False
    checks_hosts: bool = True

    def refusal(self, origin: str, host: str) -> str:
        """Why a request is not answered; "" when it is."""
        if self.is_off:
            return ""
        if origin and _host_of(origin) not in _ON_THIS_MACHINE and origin.lower() not in self.origins:
            return f"Origin not allowed: {origin}"
        name = _host_of(f"//{host}")
        if self.checks_hosts and host and name not in _ON_THIS_MACHINE | self.hosts:
            return f"Host not allowed: {host}"
        return ""


def guard_of(host: str, environ: Mapping[str, str]) -> Guard:
    """The guard of a server at this address, by QMD's own variables."""
    origins = _names(environ.get("QMD_ALLOWED_ORIGINS", ""))
    hosts = _names(environ.get("QMD_ALLOWED_HOSTS", ""))
    if "*" in origins:
        return Guard(frozenset(), frozenset(), is_off=True)
    is_open = host in _EVERYWHERE
    known = hosts if is_open else hosts | {host.lower()}
    return Guard(known, origins, checks_hosts=bool(known))


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in listed.split(",") if name.strip())


def _host_of(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


# --- answers ---


class Server(ThreadingHTTPServer):
    """An index over HTTP; each request sees the files as they are then."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, index: str | None, host: str, port: int, guard: Guard) -> None:
        import socket

        self.index, self.guard = index, guard
        self.began = time.monotonic()
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _STILL_S

    def do_GET(self) -> None:
        path = self._path()
        if path == "/health" and self._is_allowed():
            self._send(200, {"status": "ok", "uptime": int(time.monotonic() - self.server.began)})
        elif path == "/mcp" and self._is_allowed():
            self._refuse(405, "this server keeps no stream: send a request with POST")
        elif path not in {"/health", "/mcp"}:
            self._refuse(404, "Not Found")

    def do_POST(self) -> None:
        path = self._path()
        data = self._body()
        if data is None or not self._is_allowed():
            return
        if path == "/mcp":
            said = answer(self.server.index, data)
            self._send(202 if said is None else 200, said)
        elif path in {"/query", "/search"}:
            self._query(data)
        else:
            self._refuse(404, "Not Found")

    def do_DELETE(self) -> None:
        if self._is_allowed():
            self._refuse(405, "there is no session to end")

    def _query(self, data: bytes) -> None:
        try:
            asked = json.loads(data)
            if not isinstance(asked.get("searches"), list):
                self._send(400, {"error": "Missing required field: searches (array)"})
                return
            found = results_of(self.server.index, asked)
        except (Refusal, PlainmindError) as error:
            self._send(400, {"error": str(error)})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._send(400, {"error": f"this is no search: {error}"})
        else:
            self._send(200, {"results": found})

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _is_allowed(self) -> bool:
        why = self.server.guard.refusal(self.headers.get("Origin", ""), self.headers.get("Host", ""))
        if why:
            refused = {"code": _FORBIDDEN, "message": f"Forbidden: {why}"}
            self._send(403, {"jsonrpc": "2.0", "error": refused, "id": None})
        return not why

    def _body(self) -> bytes | None:
        """What was sent; None, and the client was told so, where it is too much or its length is not said."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._refuse(411, "say the length of the request")
        elif int(length) > _MOST_BYTES:
            self._refuse(413, f"a request has at most {_MOST_BYTES:,} bytes")
        else:
            return self.rfile.read(int(length))
        self.close_connection = True
        return None

    def _refuse(self, status: int, why: str) -> None:
        self._send(status, {"error": why})

    def _send(self, status: int, body: Mapping[str, Any] | None) -> None:
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode(errors="replace")
        self.send_response(status)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in Python's own class)
        tell(f"{time.strftime('%H:%M:%S')} {format % args}")


# --- in the foreground ---


def address_of(desk: Desk) -> tuple[str, int]:
    """Where a command line wants the server to be."""
    host = desk.line.options.get("host") or os.environ.get("QMD_HOST") or "localhost"
    return host, desk.line.number("port") or PORT


def serve_http(desk: Desk) -> int:
    """Serve until the process is told to end."""
    host, port = address_of(desk)
    guard = guard_of(host, os.environ)
    try:
        server = Server(desk.line.options.get("index") or None, host, port, guard)
    except OSError as error:
        raise Refusal(_why_not(error, host, port)) from error
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    tell(f"QMD MCP server listening on {_url(host, port)}")
    if guard.is_off:
        tell("Warning: QMD_ALLOWED_ORIGINS=* lets every page in a browser read this index.")
    elif not guard.checks_hosts:
        tell(f"Warning: bound to {host}: everybody who reaches this port can read the index.")
    with server:
        server.serve_forever()
    return 0


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _why_not(error: OSError, host: str, port: int) -> str:
    import errno

    if error.errno == errno.EADDRINUSE:
        return f"Port {port} already in use. Try a different port with --port."
    return f"Cannot listen on {host}:{port}: {error.strerror or error}"


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp"


# --- in the background ---


def start_daemon(desk: Desk) -> str:
    """Start the server as a process of its own, and say where it is when it answers.

    It holds a lock on the file with its number for as long as it lives: a number alone may be another process by now.
    """
    host, port = address_of(desk)
    number, log = _places(desk)
    make_folders(SYSTEM, desk.where.cache)
    held = SYSTEM.open(number, os.O_RDWR | os.O_CREAT)
    try:
        if not _takes(held):
            raise Refusal(f"Already running (PID {_pid_in(number)}). Run 'qmd mcp stop' first.")
        words = [
            sys.executable,
            "-P",
            "-m",
            "plainmind",
            "qmd",
            "mcp",
            "--http",
            "--port",
            str(port),
            "--host",
            host,
        ]
        if desk.line.options.get("index"):
            words += ["--index", desk.line.options["index"]]
        written = SYSTEM.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            child = subprocess.Popen(  # noqa: S603 (this program)
                words,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                start_new_session=True,
                pass_fds=(held,),
            )
        finally:
            os.close(written)
        os.ftruncate(held, 0)
        os.pwrite(held, str(child.pid).encode(), 0)
    finally:
        os.close(held)
    if not _answers(host, port, child):
        reason = read_file(log, most=_MOST_BYTES).decode(errors="replace").strip()
        raise Refusal(reason or f"The server did not start; see {log}")
    return f"Started on {_url(host, port)} (PID {child.pid})\nLogs: {log}"


def stop_daemon(desk: Desk) -> str:
    """End the server in the background, if there is one; what was done."""
    number, _ = _places(desk)
    try:
        held = SYSTEM.open(number, os.O_RDWR)
    except FileNotFoundError:
        return "Not running (no PID file)."
    try:
        was_running = not _takes(held)
        pid = _pid_in(number)
        if was_running:
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + _STOP_S
            while not _takes(held):
                if time.monotonic() > end:
                    raise Refusal(f"The server (PID {pid}) does not end.")
                time.sleep(_BETWEEN_S)
        SYSTEM.unlink(number)
    finally:
        os.close(held)
    if was_running:
        return f"Stopped QMD MCP server (PID {pid})."
    return "Cleaned up stale PID file (server was not running)."


def _places(desk: Desk) -> tuple[str, str]:
    """The file with the number of the process, and its log; an index with a name has its own."""
    from plainmind.guests.qmd.catalogue import DEFAULT_INDEX

    which = "" if desk.where.index == DEFAULT_INDEX else f"-{desk.where.index}"
    return tuple(os.path.join(desk.where.cache, f"mcp{which}.{kind}") for kind in ("pid", "log"))  # type: ignore[return-value]


def _takes(held: int) -> bool:
    try:
        SYSTEM.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_in(path: str) -> int:
    text = read_file(path, most=20).decode(errors="replace").strip()
    if not text.isdigit() or int(text) < 2:
        raise Refusal(f"{path} names no process; end the server yourself, then delete the file.")
    return int(text)


def _answers(host: str, port: int, child: subprocess.Popen[bytes]) -> bool:
    """Wait until the server answers, or has ended."""
    import http.client

    end = time.monotonic() + _START_S
    while child.poll() is None and time.monotonic() < end:
        connection = http.client.HTTPConnection("localhost" if host in _EVERYWHERE else host, port, timeout=1)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return True
        except OSError:
            time.sleep(_BETWEEN_S)
        finally:
            connection.close()
    return False
