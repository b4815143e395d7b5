"""The key that a broker makes for itself, and the certificate around it.

The key stays the same for good. The certificate only carries it and is made anew, with
the same key, well before it ends, so nobody has to join again.
"""

import contextlib
import os
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from grass.errors import GrassError
from grass.tls.keystore import KeyPair

KEY_FILE = "broker.key"
CERTIFICATE_FILE = "broker.pem"
LASTS = timedelta(days=3650)
RENEWED_BEFORE_S = 30 * 86400
SKEW = timedelta(days=1)
"""How much a machine's clock may be behind the broker's."""

Key = ec.EllipticCurvePrivateKey


def pair_in(folder: str, now_s: float) -> KeyPair:
    """Load the key in a folder, or make one; renew its certificate in time."""
    key_path = os.path.join(folder, KEY_FILE)
    path = os.path.join(folder, CERTIFICATE_FILE)
    try:
        key = _key_in(key_path)
        certificate = _certificate_in(path, key, now_s)
        if certificate is None:
            certificate = _certificate(key, now_s)
            _write(path, certificate.public_bytes(Encoding.PEM))
    except OSError as error:
        raise GrassError(f"{error.filename}: {error.strerror}") from None
    return KeyPair(key, certificate)


def _key_in(path: str) -> Key:
    try:
        data = _read_private(path)
    except FileNotFoundError:
        key = ec.generate_private_key(ec.SECP256R1())
        encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write(path, encoded)
        return key
    try:
        found = load_pem_private_key(data, None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, Key):
        raise GrassError(
            f"the broker's key in {path} is damaged",
            "put it back from a copy; without it, remove it and let every machine join"
            " again",
        )
    return found


def _read_private(path: str) -> bytes:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise GrassError(
                f"the broker's key in {path} can be read by others",
                f"`chmod 600 {path}`, or remove it and let every machine join again",
            )
        return file.read()


def _certificate_in(path: str, key: Key, now_s: float) -> x509.Certificate | None:
    """Load the certificate of a key, unless it is about to end or of another key."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        with open(path, "rb") as file:
            certificate = x509.load_pem_x509_certificate(file.read())
        end_s = certificate.not_valid_after_utc.timestamp()
        same = certificate.public_key() == key.public_key()
        if same and now_s < end_s - RENEWED_BEFORE_S:
            return certificate
    return None


def _certificate(key: Key, now_s: float) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "grass broker")])
    now = datetime.fromtimestamp(now_s, UTC)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - SKEW,
        not_valid_after=now + LASTS,
    )
    plain = x509.BasicConstraints(ca=False, path_length=None)
    builder = builder.add_extension(plain, critical=True)
    return builder.sign(key, hashes.SHA256())


def _write(path: str, data: bytes) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    draft = path + ".new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, path)
    _sync_folder(os.path.dirname(path))


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
