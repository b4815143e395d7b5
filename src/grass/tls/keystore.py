"""Reads a key with its certificate from a PKCS#12 file."""

from collections.abc import Callable
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import Certificate

from grass.errors import GrassError

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
    if found is None:
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
