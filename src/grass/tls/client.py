"""The side that dials: TLS 1.3, and a check of the key instead of one of a name.

No authority is asked: the key itself is known, by its pin, and what proves it is the
broker, under whatever name or address. So the caller checks the certificate right after
the handshake, before it sends anything.
"""

import ssl
import time

from grass.errors import Untrusted
from grass.model.addresses import Address
from grass.tls.pins import expiry_of, pin_of


def client_context() -> ssl.SSLContext:
    """Make what a dialling side needs; `check_certificate` must follow."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def check_certificate(der: bytes, now_s: float) -> str:
    """Return the pin that a certificate proves, unless it has expired."""
    end = expiry_of(der)
    if end <= now_s:
        day = time.strftime("%Y-%m-%d", time.gmtime(end))
        raise Untrusted(
            f"the broker's certificate expired on {day}",
            "give the broker a new one with --cert, or set this machine's clock",
        )
    return pin_of(der)


def check_pin(address: Address, proved: str, pin: str) -> None:
    """Refuse whoever answers at an address and is not the broker that is meant."""
    if proved != pin:
        raise Untrusted(
            f"what answers at {address} proves the key {proved}, not the broker's"
            f" {pin}",
            "if the broker has a new key, paste its new line: grass join"
            " HOST:PORT/PIN/CODE",
        )
