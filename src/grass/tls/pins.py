"""Reads of a certificate the two things that count: its key's pin and its end.

A pin is the SHA-256 of the public key (DER, SubjectPublicKeyInfo) in base64url without
padding. Certificates are walked by hand, because every command that speaks to a broker
elsewhere does so, and a library for it would cost more than the rest of the command.
"""

import base64
import calendar
import hashlib
from typing import NamedTuple

from grass.errors import Untrusted

_INTEGER = 0x02
_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_GENERALIZED_TIME = 0x18


class _Element(NamedTuple):
    """One piece of DER."""

    tag: int
    whole: bytes
    content: bytes


def pin_of(certificate_der: bytes) -> str:
    """Return the pin of a certificate's key."""
    return pin_of_key(_fields(certificate_der)[5].whole)


def pin_of_key(key_der: bytes) -> str:
    """Return the pin of a public key."""
    digest = hashlib.sha256(key_der).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def expiry_of(certificate_der: bytes) -> int:
    """Return when a certificate ends, in seconds since 1970."""
    _, end = _elements(_fields(certificate_der)[3].content, 2)
    return _time(end)


def _fields(certificate_der: bytes) -> list[_Element]:
    """Give serial number, algorithm, issuer, validity, subject and key."""
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
    """Give pieces of a sequence, which must have that many."""
    found: list[_Element] = []
    for _ in range(count):
        found.append(_element(data, offset))
        offset += len(found[-1].whole)
    return found


def _element(data: bytes, offset: int) -> _Element:
    """Give the piece that begins at an offset."""
    head = data[offset : offset + 2]
    if len(head) < 2:
        raise _unreadable()
    tag, length = head
    begin = offset + 2
    if length & 0x80:
        octets = length & 0x7F
        if not octets:
            # A length that is left open is not DER: where the piece ends would be a
            # matter of opinion.
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
