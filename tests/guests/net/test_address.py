"""Where we send text and keys, and where we do not."""

from __future__ import annotations

import time
from ipaddress import ip_address

import pytest

from plainmind.base.errors import ConfigError
from plainmind.guests.net.address import Origin, allowed_addresses, split_base_url, why_refused
from plainmind.guests.net.failures import AddressRefused, Unreachable


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://api.example.com/v1", "https://api.example.com", "/v1/"),
        ("https://api.example.com/v1/", "https://api.example.com", "/v1/"),
        ("https://api.example.com", "https://api.example.com", "/"),
        ("https://API.example.com:443/v1", "https://api.example.com", "/v1/"),
        ("http://localhost:11434/v1", "http://localhost:11434", "/v1/"),
        ("http://[::1]:8080/v1", "http://[::1]:8080", "/v1/"),
        ("https://bücher.example/v1", "https://xn--bcher-kva.example", "/v1/"),
    ],
)
def test_a_base_url_is_an_origin_and_a_path(url: str, origin: str, path: str) -> None:
    found, rest = split_base_url(url, settings="remote")

    assert (str(found), rest) == (origin, path)


@pytest.mark.parametrize(
    "url",
    [
        "api.example.com/v1",
        "ftp://example.com",
        "https://",
        "https://user:sk-secret@example.com",
        "https://example.com/v1?key=sk-secret",
        "https://example.com/#sk-secret",
        "https://example.com:99999",
        "https://[::1",
    ],
)
def test_a_base_url_that_cannot_be_used_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        split_base_url(url, settings="remote")

    assert caught.value.key == "remote.baseUrl"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "scheme", "allow_private", "allowed"),
    [
        ("93.184.215.14", "https", False, True),
        ("93.184.215.14", "http", True, False),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", "https", False, True),
        ("127.0.0.1", "http", True, True),
        ("127.0.0.1", "http", False, False),
        ("::1", "http", True, True),
        ("10.0.0.7", "https", False, False),
        ("10.0.0.7", "http", True, True),
        ("192.168.1.5", "http", True, True),
        ("100.64.1.1", "http", True, True),
        ("fd12::1", "http", True, True),
        ("169.254.169.254", "http", True, False),
        ("::ffff:169.254.169.254", "http", True, False),
        ("64:ff9b::169.254.169.254", "https", True, False),
        ("64:ff9b::93.184.215.14", "https", False, True),
        ("fe80::1", "http", True, False),
        ("fe80::1%eth0", "http", True, False),
        ("fd00:ec2::254", "http", True, False),
        ("100.100.100.200", "http", True, False),
        ("0.0.0.0", "http", True, False),
        ("::", "http", True, False),
        ("224.0.0.1", "https", True, False),
        ("ff02::1", "https", True, False),
        ("::ffff:127.0.0.1", "http", False, False),
    ],
)
def test_which_addresses_are_allowed(address: str, scheme: str, allow_private: bool, allowed: bool) -> None:
    reason = why_refused(ip_address(address), scheme, allow_private=allow_private)

    assert (reason is None) == allowed


def test_a_name_is_looked_up_and_judged() -> None:
    origin = Origin("http", "localhost", 80)

    found = allowed_addresses(origin, allow_private=True, deadline=time.monotonic() + 60)
    assert {"127.0.0.1", "::1"} & set(found)
    with pytest.raises(AddressRefused, match="private network"):
        allowed_addresses(origin, allow_private=False, deadline=time.monotonic() + 60)


def test_a_name_that_does_not_exist_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="cannot be found"):
        allowed_addresses(
            Origin("https", "no-such-host.invalid", 443), allow_private=False, deadline=time.monotonic() + 60
        )
