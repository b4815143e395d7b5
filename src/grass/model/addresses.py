"""Addresses of brokers, and the invitation with which a machine joins one.

An address is `HOST:PORT`; an IPv6 host with a port is in brackets, and the port may be
left out. An invitation is `HOST:PORT/PIN/CODE`: the pin identifies the broker by its
key, the code is exchanged for a token before it expires.
"""

import re
from typing import NamedTuple

from grass.errors import UsageError

DEFAULT_PORT = 7500
HIGHEST_PORT = 65535
PIN_LENGTH = 43
"""SHA-256 in base64url without padding."""

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?", re.ASCII)
_IPV6 = re.compile(r"[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?", re.ASCII)
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}", re.ASCII)
_SECRET = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_HINT = "write HOST:PORT, such as my.server.com:7500 or [2001:db8::1]:7500"
_LINE_HINT = (
    "paste the whole line that the broker prints: grass join HOST:PORT/PIN/CODE"
)


class Address(NamedTuple):
    """A host, by name or number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return what `read_address` reads."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Invitation(NamedTuple):
    """What a machine needs to join a broker."""

    address: Address
    pin: str
    code: str

    def __str__(self) -> str:
        """Return what `read_invitation` reads."""
        return f"{self.address}/{self.pin}/{self.code}"


def is_loopback(host: str) -> bool:
    """Return whether a host means the local machine."""
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


def read_address(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Read `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare IPv6 number."""
    text = text.strip()
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or not _IPV6.fullmatch(host) or rest[:1] not in ("", ":"):
            raise UsageError(f"{text!r} is not an address", _HINT)
        return Address(host, _port(text, rest[1:]) if rest else default_port)
    if text.count(":") > 1:
        if not _IPV6.fullmatch(text):
            raise UsageError(f"{text!r} is not an address", _HINT)
        return Address(text, default_port)
    host, colon, port = text.partition(":")
    # A lone number is probably meant as a port.
    if not _NAME.fullmatch(host) or host.isdigit():
        raise UsageError(f"{text!r} is not an address", _HINT)
    return Address(host, _port(text, port) if colon else default_port)


def _port(text: str, port: str) -> int:
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise UsageError(f"{text!r} has no port that is a number", _HINT)
    if int(port) > HIGHEST_PORT:
        raise UsageError(f"{text!r}: ports go up to {HIGHEST_PORT}", _HINT)
    return int(port)


def read_invitation(line: str) -> Invitation:
    """Read `HOST:PORT/PIN/CODE`, alone or as the line `grass join …` it came in."""
    words = line.split()
    if words[:2] == ["grass", "join"]:
        del words[:2]
    parts = words[0].split("/") if len(words) == 1 else []
    if len(parts) != 3:
        # The line holds a secret: it is not repeated.
        raise UsageError("this is not a line to join with", _LINE_HINT)
    address, pin, code = parts
    if len(pin) != PIN_LENGTH or not _SECRET.fullmatch(pin):
        raise UsageError("the second part of this line is not a pin", _LINE_HINT)
    if not _SECRET.fullmatch(code):
        raise UsageError("the third part of this line is not a code", _LINE_HINT)
    return Invitation(read_address(address), pin, code)
