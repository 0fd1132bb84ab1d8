"""One origin, one deadline, bounded answers: what the transport promises, on real sockets."""

from __future__ import annotations

import gzip
import io
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.providers.server import KEY, Provider, serving
from tests.support.waiting import until

from plainmind.base.errors import ConfigError, StorageFailure
from plainmind.guests.net.failures import (
    Abandoned,
    AddressRefused,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    ModelUnknown,
    RedirectRefused,
    TimedOut,
    Unreachable,
    Untrusted,
)
from plainmind.guests.net.transport import PatientSocket, Transport

Conversation = Callable[[socket.socket], None]


@contextmanager
def talking(conversation: Conversation | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads a request and then says whatever `conversation` says; yields its URL and the requests.

    Without a conversation it says nothing, and keeps the connection.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []
    is_over = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data and not data.startswith(b"\x16"):  # how TLS begins
                    piece = connection.recv(65_536)
                    if not piece:
                        break
                    data += piece
                length = int((re.findall(rb"Content-Length: (\d+)", data) or [b"0"])[0])
                while length < 1_000_000 and len(data) < data.find(b"\r\n\r\n") + 4 + length:
                    data += connection.recv(65_536)
                heard.append(data)
                if conversation is None:
                    is_over.wait()
                    return
                try:
                    conversation(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", heard
    finally:
        is_over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(60)


@contextmanager
def transport_to(url: str, **options: object) -> Iterator[Transport]:
    made = Transport(url, settings="remote", allow_private=True, **options)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.close()


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def saying(*pieces: bytes) -> Conversation:
    def conversation(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return conversation


def reply(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def test_paths_continue_the_base_url_or_begin_at_the_origin() -> None:
    with talking(saying(reply(b"{}"), b"")) as (url, heard), transport_to(url) as transport:
        origin = url.removesuffix("/v1")
        for path in ("embeddings", "/upload/files?x=1", f"{origin}/other?y=2", origin):
            transport.send("GET", path, deadline=soon())

    assert [line.split()[1] for line in heard] == [
        b"/v1/embeddings",
        b"/upload/files?x=1",
        b"/other?y=2",
        b"/",
    ]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "https://127.0.0.1/x", "http://example.com/x"])
def test_no_other_origin_is_asked_whoever_names_it(url: str) -> None:
    with talking(saying(reply(b"{}"))) as (own, heard), transport_to(own) as transport:
        with pytest.raises(AddressRefused):
            transport.send("GET", url, deadline=soon())
        assert heard == []


def test_a_connection_is_used_again_and_a_closed_one_is_not() -> None:
    with (
        serving(Provider("openai")) as provider,
        transport_to(provider.base_url, headers={"Authorization": f"Bearer {KEY}"}) as transport,
    ):
        for _ in range(3):
            transport.json("POST", "embeddings", {"model": "m", "input": ["a"]}, deadline=soon())
        assert provider.connections == 1

    with talking(saying(reply(b"{}"))) as (url, heard), transport_to(url) as transport:
        for _ in range(3):  # it promises to keep the connection and closes it
            transport.send("POST", "x", body=b"{}", deadline=soon())
            until(lambda: not transport._idle[-1].wire.is_quiet())
        assert len(heard) == 3


def test_a_connection_that_was_closed_while_idle_is_replaced_only_where_that_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_quiet = PatientSocket.is_quiet
    # The end of a connection may be under way while we look whether it is there.
    monkeypatch.setattr(PatientSocket, "is_quiet", lambda _: True)
    with talking(saying(reply(b"{}"))) as (url, heard), transport_to(url) as transport:
        for _ in range(2):
            transport.send("POST", "x", body=b"{}", repeatable=True, deadline=soon())
            until(lambda: not is_quiet(transport._idle[-1].wire))
        with pytest.raises(ConnectionLost):
            transport.send("POST", "x", body=b"{}", deadline=soon())
        assert len(heard) == 2


def test_an_answer_without_length_ends_with_its_connection() -> None:
    answer = saying(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"a"', b": 1}")
    with talking(answer) as (url, _), transport_to(url) as transport:
        assert transport.json("GET", "x", deadline=soon()) == {"a": 1}


def test_gzip_is_undone_and_counted_as_what_it_becomes() -> None:
    body = gzip.compress(b'{"zeros": "' + b"0" * 100_000 + b'"}', mtime=0)
    with talking(saying(reply(body, "Content-Encoding: gzip"))) as (url, _), transport_to(url) as transport:
        assert len(transport.json("GET", "x", deadline=soon())["zeros"]) == 100_000
        with pytest.raises(AnswerTooLarge):
            transport.json("GET", "x", deadline=soon(), cap=50_000)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (reply(gzip.compress(b"{}" * 100, mtime=0)[:-9], "Content-Encoding: gzip"), ConnectionLost),
        (reply(b"no gzip at all", "Content-Encoding: gzip"), AnswerUnreadable),
        (reply(b"{}", "Content-Encoding: br"), AnswerUnreadable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", ConnectionLost),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ConnectionLost),
        (b"", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", ConnectionLost),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", ConnectionLost),
        (reply(b"", "Location: https://elsewhere.example/", status="302 Found"), RedirectRefused),
        (reply(b"", status="304 Not Modified"), RedirectRefused),
        (reply(b"x" * 2_000), AnswerTooLarge),
    ],
)
def test_an_answer_that_is_none_is_named_for_what_it_is(answer: bytes, failure: type[Exception]) -> None:
    with talking(saying(answer)) as (url, heard), transport_to(url) as transport:
        with pytest.raises(failure) as caught:
            transport.send("GET", "x", deadline=soon(), cap=1_000)
        assert len(heard) == 1
        assert "elsewhere" not in str(caught.value)


def test_an_endless_answer_is_not_read_to_the_end() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

    with talking(endless) as (url, _), transport_to(url) as transport, pytest.raises(AnswerTooLarge):
        transport.send("GET", "x", deadline=soon(), cap=1_000_000)


def test_the_deadline_ends_a_send_that_nobody_reads() -> None:
    with talking(None) as (url, _), transport_to(url) as transport:
        started = time.monotonic()
        with pytest.raises(TimedOut):
            transport.send("POST", "x", body=b"x" * 100_000_000, deadline=soon(1.0))
        assert time.monotonic() - started > 0.9


def test_a_deadline_that_has_passed_sends_nothing() -> None:
    with talking(saying(reply(b"{}"))) as (url, heard), transport_to(url) as transport:
        with pytest.raises(TimedOut):
            transport.send("GET", "x", deadline=time.monotonic() - 1)
        assert heard == []


def test_a_stop_is_noticed_while_waiting() -> None:
    with talking(None) as (url, heard), transport_to(url) as transport:
        with pytest.raises(Abandoned):
            transport.send("GET", "x", deadline=soon(), stopped=lambda: bool(heard))
        assert len(heard) == 1


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with transport_to(f"http://127.0.0.1:{port}") as transport, pytest.raises(Unreachable):
        transport.send("GET", "x", deadline=soon())


def test_a_private_address_needs_the_operators_word() -> None:
    with talking(saying(reply(b"{}"))) as (url, heard):
        transport = Transport(url, settings="remote")
        with pytest.raises(AddressRefused):
            transport.send("GET", "x", deadline=soon())
        transport.close()
        assert heard == []


def test_a_download_goes_to_a_file_and_an_error_does_not() -> None:
    body = b'{"line": 1}\n' * 10_000
    with talking(saying(reply(body))) as (url, _), transport_to(url) as transport:
        kept = io.BytesIO()
        assert transport.download("files/1", kept, deadline=soon(), cap=1_000_000) == len(body)
        assert kept.getvalue() == body
        with pytest.raises(AnswerTooLarge):
            transport.download("files/1", io.BytesIO(), deadline=soon(), cap=1_000)

    gone = saying(reply(b'{"error": "gone"}', status="404 Not Found"))
    with talking(gone) as (url, _), transport_to(url) as transport:
        kept = io.BytesIO()
        with pytest.raises(ModelUnknown, match="gone"):
            transport.download("files/1", kept, deadline=soon(), cap=1_000)
        assert kept.getvalue() == b""


def test_a_disk_that_refuses_a_download_is_not_a_broken_connection() -> None:
    class Full:
        def write(self, piece: bytes, /) -> None:
            raise OSError(28, "No space left on device")

    with (
        talking(saying(reply(b"{}"))) as (url, _),
        transport_to(url) as transport,
        pytest.raises(StorageFailure, match="No space"),
    ):
        transport.download("files/1", Full(), deadline=soon(), cap=1_000)


def test_a_body_in_pieces_is_sent_with_its_length() -> None:
    with talking(saying(reply(b"{}"))) as (url, heard), transport_to(url) as transport:
        transport.send(
            "POST", "files", body=iter([b"ab", b"cd"]), length=4, content_type="x/y", deadline=soon()
        )

    assert b"Content-Length: 4" in heard[0]
    assert b"Content-Type: x/y" in heard[0]


@pytest.mark.parametrize("value", ["sk-secret\r\nX-Evil: 1", "sk-secret\u2019", "sk-secret\x00"])
def test_a_header_that_http_does_not_allow_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Transport("https://api.example.com", settings="remote", headers={"Authorization": value})

    assert "secret" not in repr(caught.value)


def test_a_proxy_is_told_the_whole_address_and_the_password() -> None:
    with talking(saying(reply(b'{"a": 1}'))) as (proxy, heard):
        via = proxy.removesuffix("/v1").replace("http://", "http://me:pw@")
        with transport_to("http://10.1.2.3/v1", proxy=via) as transport:
            assert transport.json("GET", "x", deadline=soon()) == {"a": 1}

    assert heard[0].startswith(b"GET http://10.1.2.3/v1/x HTTP/1.1")
    assert b"Proxy-Authorization: Basic bWU6cHc=" in heard[0]


def test_a_proxy_that_opens_no_tunnel_is_unreachable() -> None:
    with (
        talking(saying(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")) as (proxy, heard),
        transport_to("https://api.example.com/v1", proxy=proxy.removesuffix("/v1")) as transport,
        pytest.raises(Unreachable, match="407"),
    ):
        transport.send("GET", "x", deadline=soon())

    assert heard[0].startswith(b"CONNECT api.example.com:443 HTTP/1.1")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "127.0.0.1:3128"])
def test_a_proxy_of_another_kind_is_a_configuration_error(proxy: str) -> None:
    with pytest.raises(ConfigError, match=r"remote\.proxy"):
        Transport("https://api.example.com", settings="remote", proxy=proxy)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs the program openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"),
         "-out", str(folder / "cert.pem")],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return folder


@contextmanager
def talking_tls(certificate: Path) -> Iterator[tuple[int, list[bytes]]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    listening = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as connection:
                    while data := connection.recv(65_536):
                        heard.append(data)
                        connection.sendall(reply(b'{"a": 1}'))
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], heard
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(60)


def test_a_host_that_cannot_prove_its_name_is_sent_nothing(certificate: Path) -> None:
    with talking_tls(certificate) as (port, heard), transport_to(f"https://localhost:{port}") as transport:
        with pytest.raises(Untrusted, match="certificate"):
            transport.send("GET", "x", deadline=soon())
        assert heard == []


def test_a_host_with_a_trusted_certificate_is_asked_by_name(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    with talking_tls(certificate) as (port, heard):
        with transport_to(f"https://localhost:{port}/v1") as transport:
            for _ in range(2):
                assert transport.json("POST", "x", {"b": 2}, deadline=soon()) == {"a": 1}
        assert f"Host: localhost:{port}".encode() in heard[0]
        with transport_to(f"https://127.0.0.1:{port}/v1") as transport, pytest.raises(Untrusted):
            transport.send("GET", "x", deadline=soon())  # it is good for the name alone


def test_a_port_that_speaks_no_tls_is_unreachable() -> None:
    with (
        talking(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as (url, _),
        transport_to(url.replace("http:", "https:")) as transport,
        pytest.raises(Unreachable, match="https"),
    ):
        transport.send("GET", "x", deadline=soon(2))
