"""The text of a broker's key, read without a library for cryptography."""

import base64
import binascii
import os

from grass import config
from grass.errors import GrassError


def key_text(folder: str) -> str:
    """Return the key in a folder as text, for another broker of the cluster."""
    return read_private(os.path.join(folder, config.KEY_FILE)).decode("ascii")


def key_bytes(folder: str) -> bytes:
    """Return what the text of the key in a folder encodes."""
    path = os.path.join(folder, config.KEY_FILE)
    lines = read_private(path).splitlines()
    try:
        found = base64.b64decode(b"".join(lines[1:-1]), validate=True)
    except binascii.Error:
        found = b""
    if not found:
        raise damaged(path)
    return found


def read_private(path: str) -> bytes:
    """Read a key, which nobody else may be able to."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise GrassError(
                f"the broker's key in {path} can be read by others",
                f"`chmod 600 {path}`, or remove it and let every machine join again",
            )
        return file.read()


def damaged(path: str) -> GrassError:
    """Return the error for a file that is no key."""
    return GrassError(
        f"the broker's key in {path} is damaged",
        "put it back from a copy; without it, remove it and let every machine join"
        " again",
    )
