"""The name of a home's instance: a home may be copied, with its worker's id.

The name is random and stored in the keeper's folder, together with the inode of its
file, so that a copy is recognized and gets another name. A copy of the whole disk is
not recognized: there the file has the same inode.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

from grass.errors import GrassError

FILE = "instance"


def instance_of(folder: str) -> str:
    """Return the name of a keeper's folder, created by the first call."""
    path = Path(folder) / FILE
    # A daemon and a command may call this at the same time.
    with _locked(folder) as descriptor:
        known = _known(path)
        if known is None:
            known = _made(path)
            os.fsync(descriptor)
        return known


def has_own_name(folder: str) -> bool:
    """Return whether a keeper's folder has a name that was made in it, as no copy has.

    A copy gets its own by `instance_of`.
    """
    return _known(Path(folder) / FILE) is not None


def _known(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="ascii")
        known, number = text.split() if text else ("", "0")
        return known if int(number) == path.stat().st_ino else None
    except FileNotFoundError:
        return None
    except ValueError:
        raise GrassError(
            f"{path} is damaged",
            "remove it; where a broker then refuses this machine as a second one,"
            " `grass workers forget NAME` there",
        ) from None


def _made(path: Path) -> str:
    made = token_hex(8)
    draft = path.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, f"{made} {os.fstat(file).st_ino}\n".encode())
        # A power cut leaves the complete file or none: an empty one would be new.
        os.fsync(file)
    finally:
        os.close(file)
    draft.rename(path)
    return made


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
