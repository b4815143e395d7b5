"""Certificates as a client checks them: TLS 1.3 and the pin of the key.

No certificate authority is asked and no host name is compared: the client knows the
broker's key by its pin, and checks the certificate right after the handshake, before it
sends anything. A pin is the SHA-256 of the public key (DER, SubjectPublicKeyInfo) in
base64url without padding. Certificates are parsed here, because every command that
speaks to a broker over TCP does so, and a library would cost more than the rest of it.
"""

import base64
import calendar
import hashlib
import ssl
import time
from typing import NamedTuple

from grass.errors import Untrusted
from grass.model.addresses import Address

_INTEGER = 0x02
_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_GENERALIZED_TIME = 0x18


class _Element(NamedTuple):
    """One element of DER."""

    tag: int
    whole: bytes
    content: bytes


def client_context() -> ssl.SSLContext:
    """Make a context for a client, which must call `check_certificate` itself."""
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
    """Refuse a server whose key is not the broker's."""
    if proved != pin:
        raise Untrusted(
            f"what answers at {address} proves the key {proved}, not the broker's"
            f" {pin}",
            "if the broker has a new key, paste its new line: grass join"
            " HOST:PORT/PIN/CODE",
        )


def pin_of(certificate_der: bytes) -> str:
    """Return the pin of a certificate's key."""
    return pin_of_key(_fields(certificate_der)[5].whole)


def pin_of_key(key_der: bytes) -> str:
    """Return the pin of a public key."""
    digest = hashlib.sha256(key_der).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def expiry_of(certificate_der: bytes) -> int:
    """Return when a certificate expires, in seconds since 1970."""
    _, end = _elements(_fields(certificate_der)[3].content, 2)
    return _time(end)


def _fields(certificate_der: bytes) -> list[_Element]:
    """Return serial number, algorithm, issuer, validity, subject and key."""
    certificate = _element(certificate_der, 0)
    body = _element(certificate.content, 0)
    if certificate.tag != _SEQUENCE or body.tag != _SEQUENCE:
        raise _unreadable()
    first = _element(body.content, 0)
    begin = len(first.whole) if first.tag == _VERSION else 0
    fields = _elements(body.content, 6, begin)
    tags = fields[0].tag, fields[3].tag, fields[5].tag
    if tags != (_INTEGER, _SEQUENCE, _SEQUENCE):
        raise _unreadable()
    return fields


def _elements(data: bytes, count: int, offset: int = 0) -> list[_Element]:
    """Return elements of a sequence, which must have that many."""
    found: list[_Element] = []
    for _ in range(count):
        found.append(_element(data, offset))
        offset += len(found[-1].whole)
    return found


def _element(data: bytes, offset: int) -> _Element:
    """Return the element that begins at an offset."""
    head = data[offset : offset + 2]
    if len(head) < 2:
        raise _unreadable()
    tag, length = head
    begin = offset + 2
    if length & 0x80:
        octets = length & 0x7F
        if not octets:
            # DER has no indefinite lengths.
            raise _unreadable()
        length = int.from_bytes(data[begin : begin + octets], "big")
        begin += octets
    end = begin + length
    if end > len(data):
        raise _unreadable()
    return _Element(tag, data[offset:end], data[begin:end])


def _time(element: _Element) -> int:
    """Read `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`."""
    text = element.content.decode("ascii", "replace")
    if element.tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    elif element.tag != _GENERALIZED_TIME:
        raise _unreadable()
    if len(text) != 15 or not text[:14].isdigit() or text[14] != "Z":
        raise _unreadable()
    pairs = [int(text[at : at + 2]) for at in range(4, 14, 2)]
    try:
        return calendar.timegm((int(text[:4]), *pairs))
    except ValueError:
        raise _unreadable() from None


def _unreadable() -> Untrusted:
    return Untrusted("the certificate that was shown cannot be read")
