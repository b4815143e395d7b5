"""Keys with their certificates in files: the broker's own, or a PKCS#12 file.

The key that a broker makes for itself never changes. Its certificate is renewed with
the same key well before it expires, so no machine has to join again.
"""

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import Certificate

from grass import config
from grass.errors import GrassError
from grass.event_log import EventLog
from grass.tls.key_text import damaged, read_private

log = EventLog(__name__)

KEY_FILE = config.KEY_FILE
CERTIFICATE_FILE = "broker.pem"
LASTS = timedelta(days=3650)
RENEWED_BEFORE_S = 30 * 86400
SKEW = timedelta(days=1)
"""How much a machine's clock may be behind the broker's."""

MOST_BYTES = 1024 * 1024
_MAKE_ONE = "openssl pkcs12 -export -out keyStore.p12 -inkey KEY -in CERT makes one"

OwnKey = ec.EllipticCurvePrivateKey


class KeyPair(NamedTuple):
    """A private key and the certificate of its public half."""

    key: PrivateKeyTypes
    certificate: Certificate
    chain: tuple[Certificate, ...] = ()


def own_pair(folder: str, now_s: float) -> KeyPair:
    """Load the key in a folder, or make one; renew its certificate if it is due."""
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


def _key_in(path: str) -> OwnKey:
    try:
        data = read_private(path)
    except FileNotFoundError:
        key = ec.generate_private_key(ec.SECP256R1())
        encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write(path, encoded)
        return key
    try:
        found = load_pem_private_key(data, None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, OwnKey):
        raise damaged(path)
    return found


def _certificate_in(path: str, key: OwnKey, now_s: float) -> Certificate | None:
    """Load the certificate of a key, unless it is due or of another key."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        with open(path, "rb") as file:
            certificate = x509.load_pem_x509_certificate(file.read())
        end_s = certificate.not_valid_after_utc.timestamp()
        same = certificate.public_key() == key.public_key()
        if same and now_s < end_s - RENEWED_BEFORE_S:
            return certificate
    return None


def _certificate(key: OwnKey, now_s: float) -> Certificate:
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
    """Write a file atomically that only its owner can read."""
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


def read_pkcs12(path: str, passphrase: Callable[[], bytes | None]) -> KeyPair:
    """Read a PKCS#12 file; asks for the pass phrase only if it needs one."""
    data = _bytes_of(path)
    found = _opened(path, data, None)
    if found is not None:
        _warn_if_readable(path)
    else:
        given = passphrase()
        if given is None:
            raise GrassError(
                f"{path} needs its pass phrase",
                "give it with --cert-pass-file FILE or in GRASS_CERT_PASS",
            )
        found = _opened(path, data, given)
    if found is None:
        raise GrassError(f"the pass phrase does not open {path}")
    key, certificate, chain = found
    if key is None:
        raise GrassError(f"there is no private key in {path}", _MAKE_ONE)
    if certificate is None:
        raise GrassError(f"there is no certificate of its key in {path}", _MAKE_ONE)
    return KeyPair(key, certificate, tuple(chain))


def _warn_if_readable(path: str) -> None:
    """Warn if other users can read a key that has no pass phrase."""
    if os.stat(path).st_mode & 0o044:
        log.warning("key.readable", path=path, hint=f"chmod go-r {path}")


def _bytes_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise GrassError(f"{path} cannot be read: {error.strerror}") from None


def _opened(
    path: str, data: bytes, passphrase: bytes | None
) -> tuple[PrivateKeyTypes | None, Certificate | None, list[Certificate]] | None:
    """Open a PKCS#12 file; None if the pass phrase is wrong."""
    try:
        return pkcs12.load_key_and_certificates(data, passphrase)
    except ValueError as error:
        if "password" in str(error).lower():
            return None
        raise GrassError(f"{path} is not a PKCS#12 file", _MAKE_ONE) from None
    except UnsupportedAlgorithm as error:
        raise GrassError(f"{path} cannot be read: {error}", _MAKE_ONE) from None
