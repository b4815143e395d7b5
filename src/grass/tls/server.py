"""The broker's side of TLS: its key and certificate, and the TLS context.

The key is the broker's own, made at its first start, or comes from a PKCS#12 file.
Other machines identify the broker by it, so it is never replaced automatically. A
decrypted key stays in memory: OpenSSL reads it from a memory file (memfd).
"""

import hashlib
import os
import ssl
import time
from collections.abc import Callable
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from grass.errors import GrassError
from grass.event_log import EventLog
from grass.tls.key_files import RENEWED_BEFORE_S, KeyPair, own_pair, read_pkcs12
from grass.tls.pins import expiry_of, pin_of

log = EventLog(__name__)


class ServerIdentity(NamedTuple):
    """The TLS context of a broker, and the pin that identifies it."""

    context: ssl.SSLContext
    pin: str
    expires_at: int
    """When its certificate expires, in seconds since 1970."""
    fingerprint: str
    """SHA-256 of the certificate, as browsers show it."""
    names: tuple[str, ...]
    """The host names that the certificate is for; the broker's own has none."""


def identity(
    home_folder: str, cert: str | None, passphrase: Callable[[], bytes | None]
) -> ServerIdentity:
    """Load the key of a PKCS#12 file, or the broker's own.

    `passphrase` is called only for a file that needs one.
    """
    if cert is None:
        where = home_folder
        pair = own_pair(home_folder, time.time())
    else:
        where = cert
        pair = read_pkcs12(cert, passphrase)
    der = pair.certificate.public_bytes(Encoding.DER)
    end = expiry_of(der)
    _check_end(where, end)
    fingerprint = hashlib.sha256(der).digest().hex(":").upper()
    return ServerIdentity(
        _context(where, pair), pin_of(der), end, fingerprint, _names(pair.certificate)
    )


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return tuple(found.value.get_values_for_type(x509.DNSName))


def _check_end(where: str, end: int) -> None:
    left_s = end - time.time()
    day = time.strftime("%Y-%m-%d", time.gmtime(end))
    if left_s <= 0:
        raise GrassError(
            f"the certificate in {where} expired on {day}",
            "make a new one with the same key, and no machine has to join again",
        )
    if left_s < RENEWED_BEFORE_S:
        log.warning("certificate.expires", path=where, day=day)


def _context(where: str, pair: KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Clients do not resume sessions, so tickets would be of no use.
    context.num_tickets = 0
    descriptor = os.memfd_create("grass-key", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(_pem(pair))
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise GrassError(f"the key in {where} cannot be used: {reason}") from None
    finally:
        os.close(descriptor)
    return context


def _pem(pair: KeyPair) -> bytes:
    key = pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [pair.certificate, *pair.chain]
    return b"".join([key, *(one.public_bytes(Encoding.PEM) for one in chain)])
