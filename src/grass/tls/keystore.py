"""Reads a key with its certificate from a PKCS#12 file."""

import os
from collections.abc import Callable
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import Certificate

from grass.errors import GrassError
from grass.logs import EventLog

log = EventLog(__name__)

MOST_BYTES = 1024 * 1024
_MAKE_ONE = "openssl pkcs12 -export -out keyStore.p12 -inkey KEY -in CERT makes one"


class KeyPair(NamedTuple):
    """A private key and the certificate of its public half."""

    key: PrivateKeyTypes
    certificate: Certificate
    chain: tuple[Certificate, ...] = ()


def read(path: str, passphrase: Callable[[], bytes | None]) -> KeyPair:
    """Read a file; asks for the pass phrase only if it needs one."""
    data = _bytes_of(path)
    found = _opened(path, data, None)
    if found is not None:
        _warn_if_open(path)
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


def _warn_if_open(path: str) -> None:
    """Say that a key without a pass phrase is for whoever may read its file."""
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
    """Open a key store; None if the pass phrase is not its own."""
    try:
        return pkcs12.load_key_and_certificates(data, passphrase)
    except ValueError as error:
        if "password" in str(error).lower():
            return None
        raise GrassError(f"{path} is not a PKCS#12 file", _MAKE_ONE) from None
    except UnsupportedAlgorithm as error:
        raise GrassError(f"{path} cannot be read: {error}", _MAKE_ONE) from None
