"""Text travels through TLS, to the server that a certificate names, or not at all."""

from __future__ import annotations

import socket
import threading

import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import APP_ROLE, SCHEMA, running_server
from tests.support.tls_front import tls_front

from plainmind.base.errors import IndexUnavailable
from plainmind.guests.postgres.store import PostgresStore

pytest.importorskip("cryptography")


@pytest.fixture
def folder_of_server():
    if not (running_server().folder / "data").exists():
        pytest.skip("the socket of this server is not known")
    return running_server().folder


def store_through(front, sslmode, authority, tmp_path, host="localhost"):
    dsn = (
        f"host={host} hostaddr=127.0.0.1 port={front.port} user={APP_ROLE} dbname=postgres"
        f" sslmode={sslmode} sslrootcert={authority}"
    )
    return PostgresStore(dsn, agent=f"tls of {tmp_path}", workspace="notes", schema=SCHEMA)


def test_an_index_is_built_and_searched_through_tls_with_a_verified_server(tmp_path, folder_of_server):
    with tls_front(folder_of_server, tmp_path) as (front, authority):
        store = store_through(front, "verify-full", authority, tmp_path)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        assert found_texts(store, "gateway") == ["the gateway"]
        assert store.describe()["tls"] is True
        store.close()
        assert front.in_plain == []


def test_a_certificate_for_another_host_is_refused(tmp_path, folder_of_server):
    with tls_front(folder_of_server, tmp_path, name="db.example.org") as (front, authority):
        store = store_through(front, "verify-full", authority, tmp_path)
        with pytest.raises(IndexUnavailable, match="does not match host name") as raised:
            store.digest()
        assert "store.dsn" in raised.value.hint
        there = store_through(front, "verify-full", authority, tmp_path, host="db.example.org")
        there.digest()
        there.close()


def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path, folder_of_server):
    with (
        tls_front(folder_of_server, tmp_path / "one") as (front, _),
        tls_front(folder_of_server, tmp_path / "other") as (_, stranger),
    ):
        store = store_through(front, "verify-full", stranger, tmp_path)
        with pytest.raises(IndexUnavailable, match="certificate verify failed"):
            store.digest()


def test_a_server_without_tls_gets_nothing_when_the_dsn_wants_it():
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse():
            client, _ = listening.accept()
            with client:
                heard.append(client.recv(8))
                client.sendall(b"N")
                heard.append(client.recv(1_000))

        thread = threading.Thread(target=refuse, name="no tls")
        thread.start()
        dsn = (
            f"host=127.0.0.1 port={listening.getsockname()[1]} user=me password=hunter2 dbname=postgres"
            " sslmode=require gssencmode=disable"
        )
        store = PostgresStore(dsn, agent="a", workspace="w", schema=SCHEMA)
        with pytest.raises(IndexUnavailable, match="SSL"):
            store.digest()
        thread.join(30)
    assert heard[1] == b""
