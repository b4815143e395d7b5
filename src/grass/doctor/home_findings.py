"""The state directory: whose it is, its disk, and the settings."""

import os
from collections.abc import Iterator

from grass.client.autostart import check_owner
from grass.config import Home, config_file
from grass.doctor.finding import Finding, note, ok, wrong
from grass.errors import GrassError
from grass.keeper.mounts import network_mount, read_mountinfo
from grass.model.amounts import GIB
from grass.setting_values import SQLITE
from grass.settings import settings_of

LEAST_BYTES, FEW_BYTES = 64 * 2**20, 1 * GIB
"""With less the database cannot grow; with less than the second it is worth a note."""
_ELSEWHERE = "set GRASS_HOME to a folder of your own on a local disk"


def home_findings(home: Home, store: str | None) -> Iterator[Finding]:
    """Look at the state directory, which need not exist yet.

    `store` is the database that its daemon was given by an option, if it was.
    """
    yield _folder(home)
    yield _disk(_existing(home.folder))
    yield _settings(home)
    yield from _database(home, store)


def _folder(home: Home) -> Finding:
    folder = _existing(home.folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        return wrong("home", f"{folder} may not be written", _ELSEWHERE)
    if folder != home.folder:
        return ok("home", f"{home.folder} will be made")
    try:
        check_owner(home)
    except GrassError as error:
        return wrong("home", error.message, error.hint)
    return ok("home", home.folder)


def _disk(folder: str) -> Finding:
    """Check the disk's kind before its room: a network disk may hang."""
    mount = network_mount(folder, read_mountinfo())
    if mount is not None:
        text = f"{mount} is a network file system, where SQLite is not safe"
        return wrong("disk", text, "set GRASS_HOME to a folder on a local disk")
    state = os.statvfs(folder)
    free = state.f_bavail * state.f_frsize
    text = f"{free / GIB:.1f}G are free"
    fix = "free some space, for example with `grass prune`"
    if free < LEAST_BYTES:
        return wrong("disk", text, fix)
    return note("disk", text, fix) if free < FEW_BYTES else ok("disk", text)


def _settings(home: Home) -> Finding:
    try:
        settings_of(home)
    except GrassError as error:
        return wrong(
            "settings", error.message, error.hint or "`grass config` shows all"
        )
    path = config_file(home)
    return ok("settings", path if os.path.exists(path) else "the usual ones")


def _database(home: Home, store: str | None) -> Iterator[Finding]:
    """Report what a daemon would refuse to start on."""
    from grass.daemon.database.store_care import check_files

    try:
        url = store or settings_of(home).store
        if url == SQLITE and os.path.isdir(home.folder):
            check_files(home)
    except GrassError as error:
        yield wrong("queue", error.message, error.hint)


def _existing(folder: str) -> str:
    """Return the folder, or the first one above it that exists."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
