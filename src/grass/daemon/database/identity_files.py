"""The files that make a broker the same one elsewhere: in backups, and put back.

A worker is known by `worker-id` and a broker by `broker.key`, which other machines
trust. Two machines must never use one identity at a time: each would take the other's
running jobs for lost. So files of another identity are put back only for a person who
says that the first machine does not come back.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path

from grass.client.private_files import replace_private
from grass.config import KEY_FILE, Home
from grass.errors import Refused
from grass.store.sqlite.backups import name_to_keep

MACHINE = "machine"
"""The entry with the name of the machine, and the home, that was backed up."""


def identity_files(home: Home) -> dict[str, bytes]:
    """Return what of a home belongs into a backup beside the database."""
    found = {MACHINE: f"{socket.gethostname()}:{home.folder}".encode()}
    for path in _paths(home):
        with suppress(FileNotFoundError):
            found[os.path.basename(path)] = Path(path).read_bytes()
    return found


def replaced_machine(home: Home, files: dict[str, bytes]) -> str | None:
    """Return which machine this home would replace; None: it is that machine."""
    own = identity_files(home)
    worker = os.path.basename(home.worker_id)
    for name in (worker, KEY_FILE):
        is_other = name in files and files[name].strip() != own.get(name, b"").strip()
        # A key that is missing here was made later than the home, or was lost.
        if is_other and (name in own or name == worker):
            return files.get(MACHINE, b"another machine").decode(errors="replace")
    return None


def refuse_replacing(machine: str, source: str) -> Refused:
    """Return the error for a backup of another machine."""
    return Refused(
        f"{source} is of {machine}, whose identity this home would take over",
        "add --replace if the grass there will never run again; if it may, stop it"
        " first: two machines must not have one identity",
    )


def put_back(home: Home, files: dict[str, bytes]) -> None:
    """Write a backup's files, and keep those that they replace under another name.

    The options of a daemon are put back only where there are none: they concern the
    machine that it runs on.
    """
    for path in _paths(home):
        data = files.get(os.path.basename(path))
        if data is None or _is_same(path, data):
            continue
        if path == home.options and os.path.exists(path):
            continue
        # By a second name, so that a crash leaves the old file or the new one.
        with suppress(FileNotFoundError):
            os.link(path, name_to_keep(Path(path)))
        replace_private(path, data.decode())


def _paths(home: Home) -> list[str]:
    key = os.path.join(home.folder, KEY_FILE)
    return [home.worker_id, key, home.options]


def _is_same(path: str, data: bytes) -> bool:
    with suppress(FileNotFoundError):
        return Path(path).read_bytes() == data
    return False
