"""How every command prints: what was asked for on stdout, warnings on stderr."""

from __future__ import annotations

import sys

from grass.cli.printing.escaping import safe
from grass.client.json_codec import encoded


def print_document(document: object) -> None:
    """Print one JSON document on a line of its own."""
    sys.stdout.write(encoded(document).decode("ascii") + "\n")


def say(text: str) -> None:
    """Print what a command did."""
    sys.stdout.write(printable(safe(text)) + "\n")


def warn(text: str) -> None:
    """Tell a person something that is not a result."""
    from grass.cli.printing.durations import lasting

    sys.stderr.write(f"grass: {safe(lasting(text))}\n")


def printable(text: str) -> str:
    """Replace what stdout's encoding cannot express."""
    encoding = sys.stdout.encoding
    return text.encode(encoding, "backslashreplace").decode(encoding)


def counted(number: int, thing: str) -> str:
    """Write `1 job` or `3 jobs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
