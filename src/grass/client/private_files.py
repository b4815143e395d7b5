"""Small files of the state directory: written whole, readable only by their owner.

Daemons and commands write them, several at a time and under any umask. A file gets its
name once it is on the disk, so that a power cut or a full disk leaves the old one or
the new one. A file that cannot be read is an error that names it, and the next step.
"""

from __future__ import annotations

import os

from grass.errors import GrassError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

_OWNER = 0o600


def read_file(
    path: str,
    parse: Callable[[bytes], T],
    remedy: str,
    check: Callable[[str, os.stat_result], None] | None = None,
) -> T | None:
    """Return the parsed content of a file; None: there is none.

    `parse` raises `ValueError`, `KeyError`, `TypeError` or `UsageError` for damaged
    content. `check` looks at the file's owner and mode.
    """
    try:
        with open(path, "rb") as file:
            if check is not None:
                check(path, os.fstat(file.fileno()))
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GrassError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return parse(data)
    except (ValueError, KeyError, TypeError, UsageError):
        raise GrassError(f"{path} is damaged", remedy) from None


def replace_private(path: str, text: str) -> None:
    """Write a file, replacing the one of that name if there is one."""
    os.rename(_draft(path, text), path)


def create_private(path: str, text: str) -> None:
    """Write a file unless there is one; an empty one counts as none."""
    draft = _draft(path, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        if os.path.getsize(path) == 0:
            os.rename(draft, path)
    finally:
        _remove(draft)


def _draft(path: str, text: str) -> str:
    """Write a file beside the final one, with this process's id in its name."""
    draft = f"{path}.{os.getpid()}"
    try:
        _write(draft, text.encode())
    except OSError as error:
        _remove(draft)
        raise GrassError(f"{path} cannot be written: {error.strerror}") from error
    return draft


def _write(draft: str, data: bytes) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER)
    with open(descriptor, "wb") as file:
        # A draft that a crash left behind keeps the mode it had.
        os.fchmod(descriptor, _OWNER)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _remove(draft: str) -> None:
    try:  # noqa: SIM105 -- importing contextlib would cost every command
        os.unlink(draft)
    except OSError:
        pass
