"""Where a server lives, and whether we may send a key there: looked up, judged and dialled as one address."""

from __future__ import annotations

import socket
import threading
import time
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

from plainmind.base.errors import ConfigError
from plainmind.base.value import value
from plainmind.guests.net.failures import AddressRefused, TimedOut, Unreachable

IPAddress: TypeAlias = IPv4Address | IPv6Address

_PORTS = {"http": 80, "https": 443}
_NAT64 = ip_network("64:ff9b::/96")
# Where clouds answer questions about a machine's own credentials, beside the link-local 169.254.169.254.
_METADATA = frozenset({ip_address("100.100.100.200"), ip_address("fd00:ec2::254")})


@value
class Origin:
    """Scheme, host and port: what a key is bound to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


def split_base_url(url: str, *, settings: str) -> tuple[Origin, str]:
    """Split into the origin and the path, which ends in `/`.

    `settings` names the group that `baseUrl` stands in. Raises ConfigError without repeating the URL.
    """
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").encode("idna").decode("ascii") if parts.hostname else ""
        port = parts.port
    except ValueError as error:
        raise _not_a_base_url(settings, "it is not a URL") from error
    if parts.scheme not in _PORTS or not host:
        raise _not_a_base_url(settings, "it must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise _not_a_base_url(
            settings, f"it must not hold a user name or password; a key belongs in `{settings}.apiKey`"
        )
    if parts.query or parts.fragment:
        raise _not_a_base_url(
            settings, f"it must end before `?` and `#`; what stands there belongs in `{settings}.headers`"
        )
    path = parts.path.rstrip("/") + "/"
    return Origin(parts.scheme, host, port or _PORTS[parts.scheme]), path


def is_same_place(url: str | None, other: str | None, default: str, *, settings: str) -> bool:
    """Whether two addresses have the same scheme, host and port; None is the provider's own, `default`."""
    one, _ = split_base_url(url or default, settings=settings)
    return one == split_base_url(other or default, settings=settings)[0]


def _not_a_base_url(settings: str, reason: str) -> ConfigError:
    key = f"{settings}.baseUrl"
    return ConfigError(
        f"`{key}` cannot be used: {reason}",
        key=key,
        hint="write it like https://api.example.com/v1",
    )


def why_refused(address: IPAddress, scheme: str, *, allow_private: bool) -> str | None:
    """Say why nothing may be sent to this address, None when it may."""
    address = _embedded_ipv4(address)
    if address in _METADATA or address.is_link_local:
        return "it is a link-local address, where clouds keep the credentials of machines"
    if address.is_loopback or not (address.is_global or address.is_multicast):
        if address.is_unspecified:
            return "it is not the address of any machine"
        return None if allow_private else "it is on this machine or its private network"
    if address.is_multicast or address.is_reserved:
        return "it is not the address of one machine"
    return "text and key would cross the internet unencrypted" if scheme == "http" else None


def _embedded_ipv4(address: IPAddress) -> IPAddress:
    """Unwrap the IPv4 address that some IPv6 addresses stand for."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def allowed_addresses(origin: Origin, *, allow_private: bool, deadline: float) -> list[str]:
    """Look the host up and return its addresses, all of them allowed. Raises NetFailure.

    A name with one forbidden address among its addresses is refused whole: that is how names are misused.
    """
    found = _addresses(origin, deadline)
    for address in found:
        reason = why_refused(ip_address(address), origin.scheme, allow_private=allow_private)
        if reason is not None:
            raise AddressRefused(f"nothing is sent to {origin} ({address}): {reason}")
    return found


def _addresses(origin: Origin, deadline: float) -> list[str]:
    try:
        return [str(ip_address(origin.host))]
    except ValueError:
        pass  # a name
    outcome: list[list[str] | OSError | UnicodeError] = []

    def look_up() -> None:
        try:
            rows = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
            outcome.append(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except (OSError, UnicodeError) as error:
            outcome.append(error)

    # The resolver knows no deadline of its own; a thread that hangs in it ends with the resolver's time-out.
    thread = threading.Thread(target=look_up, name=f"plainmind-resolve-{origin.host}", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if not outcome:
        raise TimedOut(f"the address of {origin.host} could not be found in time")
    answer = outcome[0]
    if isinstance(answer, list):
        return answer
    raise Unreachable(f"the address of {origin.host} cannot be found") from answer
