"""A broker played by a test: the far end under real TLS, with a key of its own."""

import datetime
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from grass.client.credentials import Credentials, JoinedBroker
from grass.config import Home
from grass.model.addresses import Address
from grass.tls.pins import pin_of_key

from .fake_daemon import FakeDaemon

LOOPBACK = "127.0.0.1"
DAY = datetime.timedelta(days=1)


class FakeBroker(FakeDaemon):
    """A broker with one answer for each route, on a port of the loopback."""

    def __init__(
        self,
        folder: Path,
        *,
        lasts: datetime.timedelta = DAY,
        host: str = LOOPBACK,
        like: "FakeBroker | None" = None,
    ) -> None:
        """`like` is another broker of the same cluster, whose key it has."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.files: tuple[str, Path, Path]
        """The pin, the key and the certificate."""
        self.files = _identity(folder, lasts) if like is None else like.files
        self.pin, key, certificate = self.files
        self._context.load_cert_chain(certificate, key)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family)
        listener.bind((host, 0))
        self.address = Address(host, listener.getsockname()[1])
        self.connections = 0
        """How many were opened, whatever came of them."""
        self._begin(listener)

    def _accept(self) -> socket.socket:
        while True:
            channel = super()._accept()
            self.connections += 1
            try:
                channel.settimeout(20)
                secured = self._context.wrap_socket(channel, server_side=True)
            except OSError:
                channel.close()
                continue
            secured.settimeout(None)
            return secured

    def known(
        self, *, role: str = "machine", token: str = "laptop.secret"
    ) -> JoinedBroker:
        """Give what a machine knows that has joined it."""
        moment = "2026-01-02T03:04:05.000Z"
        return JoinedBroker(
            self.pin, token, role, "laptop", (self.address,), "c1", moment
        )

    def joined_by(self, home: Home, **how: str) -> JoinedBroker:
        """Have a machine join it."""
        Path(home.folder).mkdir(exist_ok=True)
        return Credentials.load(home).add(self.known(**how))


def _identity(folder: Path, lasts: datetime.timedelta) -> tuple[str, Path, Path]:
    """Make a key and its certificate; return the pin and the two files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "far end")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 9 * DAY)
        .not_valid_after(now + lasts)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    pem, der = serialization.Encoding.PEM, serialization.Encoding.DER
    key_file, certificate_file = folder / "key.pem", folder / "cert.pem"
    key_file.write_bytes(
        key.private_bytes(
            pem,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    certificate_file.write_bytes(certificate.public_bytes(pem))
    public = key.public_key().public_bytes(
        der, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pin_of_key(public), key_file, certificate_file
