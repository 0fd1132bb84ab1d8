"""The address that the HTTP server takes, and the names under which it may be reached there."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

from plainmind.base.errors import PlainmindError
from plainmind.mcp.guard import PATH, Door

_WAITING = 100


def listen(host: str, port: int, *, exposed: bool) -> socket.socket:
    """Take an address: one that only this machine can reach, unless it was meant to be `exposed`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if not exposed and not is_loopback(str(address[0])):
            raise PlainmindError(
                f"other machines can reach {host}, and whoever is on the way can read the token and the notes",
                hint="stay on 127.0.0.1 behind a proxy with TLS (--allow-host names it), or add --expose",
            )
        taken = socket.socket(family, kind, protocol)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)
            taken.listen(_WAITING)
        except BaseException:
            taken.close()
            raise
    except OSError as error:
        raise PlainmindError(
            f"cannot serve on {host} port {port}: {error.strerror or error}",
            hint="choose another with --port or --host",
        ) from error
    return taken


def door_of(bound: socket.socket, token: str, more_hosts: Iterable[str] = ()) -> Door:
    """Let in whoever names this machine as it is bound, or one of the names that were given."""
    host, port = bound.getsockname()[:2]
    spelled = {f"[{host}]" if ":" in host else host}
    if is_loopback(host):
        spelled |= {"localhost", "127.0.0.1", "[::1]"}
    hosts = {f"{name}:{port}" for name in spelled} | (spelled if port == 80 else set())
    more = {name.lower() for name in more_hosts}
    origins = {f"http://{name}" for name in hosts | more} | {f"https://{name}" for name in more}
    return Door(frozenset(hosts | more), frozenset(origins), token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return ip_address(host.partition("%")[0]).is_loopback  # without the zone that IPv6 may name


def url_of(bound: socket.socket) -> str:
    """Where clients find the server."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
