"""PgBouncer in front of a PostgreSQL, giving every transaction another connection to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.support.postgres_server import APP_ROLE, as_nobody, short_folder

_PORT = 6432
_SETTINGS = """
[databases]
* = host={server}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 3
server_round_robin = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""


def pooler_program() -> str | None:
    """Where PgBouncer is installed; None where it is not."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def pooled(server: Path, *roles: str) -> Iterator[str]:
    """Start it before a server; the DSN of whoever goes through it."""
    program = pooler_program()
    assert program is not None
    with short_folder() as folder:
        (folder / "users").write_text("".join(f'"{role}" ""\n' for role in (APP_ROLE, "postgres", *roles)))
        (folder / "settings").write_text(_SETTINGS.format(server=server, folder=folder, port=_PORT))
        folder.chmod(0o777)  # it does not run as root either
        process = subprocess.Popen(
            [program, str(folder / "settings")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **as_nobody(),
        )
        dsn = f"host={folder} port={_PORT} user={APP_ROLE} dbname=postgres"
        try:
            _wait_for(dsn, folder / "log")
            yield dsn
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(dsn: str, log: Path) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            assert time.monotonic() < until, log.read_text() if log.exists() else "it did not start"
            time.sleep(0.05)
        else:
            return
