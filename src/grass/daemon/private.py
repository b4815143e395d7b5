"""Small files of the state directory: written whole, for their owner alone.

Commands write some of them too, several at a time and under whatever umask their caller
has.
"""

import contextlib
import os

_OWNER = 0o600


def replace_private(path: str, text: str) -> None:
    """Put a file in place of the one that there is, if any."""
    os.rename(_draft(path, text), path)


def create_private(path: str, text: str) -> None:
    """Make a file unless there is one; one that is empty counts as none."""
    draft = _draft(path, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        if os.path.getsize(path) == 0:
            os.rename(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)


def _draft(path: str, text: str) -> str:
    """Write a file beside the one that is meant, under this process's own name."""
    draft = f"{path}.{os.getpid()}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER)
    try:
        # A draft that was left behind keeps the mode it had.
        os.fchmod(file, _OWNER)
        os.write(file, text.encode())
    finally:
        os.close(file)
    return draft
