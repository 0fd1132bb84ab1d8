"""TLS in front of a PostgreSQL that was built without it, with certificates made for the occasion."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_WANTS_TLS, _WANTS_GSS = 80_877_103, 80_877_104


class TlsFront:
    """Speaks TLS as a server does, and passes what it hears to the socket of the real one."""

    def __init__(self, behind: Path, certificate: Path, key: Path) -> None:
        self._behind = str(behind / ".s.PGSQL.5432")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.in_plain: list[bytes] = []  # what came without TLS, but for the wish to have it
        threading.Thread(target=self._listen, name="tls front", daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listening.close()

    def _listen(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), name="tls", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            wish = _WANTS_GSS
            while wish == _WANTS_GSS:
                asked = client.recv(8)
                wish = struct.unpack(">II", asked)[1] if len(asked) == 8 else 0
                if wish == _WANTS_GSS:
                    client.sendall(b"N")
            if wish != _WANTS_TLS:
                self.in_plain.append(asked)
                return
            client.sendall(b"S")
            with (
                self._context.wrap_socket(client, server_side=True) as safe,
                socket.socket(socket.AF_UNIX) as server,
            ):
                server.connect(self._behind)
                back = threading.Thread(target=_pass_on, args=(server, safe), name="tls back", daemon=True)
                back.start()
                _pass_on(safe, server)
                back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def tls_front(behind: Path, folder: Path, *, name: str = "localhost") -> Iterator[tuple[TlsFront, Path]]:
    """A front whose certificate is for a host, and the authority that vouches for it."""
    authority, certificate, key = certificates(folder, name)
    front = TlsFront(behind, certificate, key)
    try:
        yield front, authority
    finally:
        front.close()


def certificates(folder: Path, name: str) -> tuple[Path, Path, Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder.mkdir(parents=True, exist_ok=True)
    now = dt.datetime.now(dt.UTC)
    root_key, own_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority of {folder.name}")])

    def signed(
        subject: x509.Name, key: ec.EllipticCurvePublicKey, *more: x509.ExtensionType
    ) -> x509.Certificate:
        made = x509.CertificateBuilder(
            root, subject, key, x509.random_serial_number(), now - dt.timedelta(days=1),
            now + dt.timedelta(days=1),
        )  # fmt: skip
        for extension in more:
            made = made.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return made.sign(root_key, hashes.SHA256())

    authority = signed(root, root_key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
    host = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    own = signed(host, own_key.public_key(), x509.SubjectAlternativeName([x509.DNSName(name)]))
    pem = serialization.Encoding.PEM
    files = folder / "authority.pem", folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(authority.public_bytes(pem))
    files[1].write_bytes(own.public_bytes(pem))
    files[2].write_bytes(
        own_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
