"""Starting a daemon where there is none, and the marks that daemons leave.

Of any number of callers at once exactly one starts a daemon: they wait for a lock, and
all but the first find it running. `grass stop` leaves a mark that keeps commands from
starting a daemon; `grass start` and `grass daemon` remove it. Imported only where no
daemon answers.
"""

from __future__ import annotations

import errno
import fcntl
import os

from grass.client.connection import HttpConnection, open_connection, tell
from grass.client.daemon_launch import launch
from grass.client.json_codec import decoded
from grass.client.patience import Patience
from grass.client.private_files import read_file
from grass.config import autostart_allowed
from grass.errors import Forbidden, GrassError, NoAnswer, NoDaemon, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.config import Home

HANDOVER_S = 30.0
"""How long a daemon that holds the lock may take to answer, or to be gone."""

LEAVING_S, TURN_S = 60.0, 90.0
"""How long a daemon may take to be gone, and another command to start one."""


def connect(home: Home) -> HttpConnection:
    """Return a connection, starting a daemon if that is allowed."""
    found = open_connection(home.socket)
    if found is not None:
        return found
    refuse_when_stopped(home)
    if not autostart_allowed():
        raise NoDaemon("no daemon is running", "start it with `grass start`")
    return start(home, asked_for=False)[0]


def connect_running(home: Home) -> HttpConnection:
    """Return a connection to a daemon that runs already."""
    found = open_connection(home.socket)
    if found is None:
        refuse_when_stopped(home)
        raise NoDaemon("no daemon is running", "start it with `grass start`")
    return found


def refuse_when_stopped(home: Home) -> None:
    """Raise if `grass stop` has left its mark."""
    if os.path.exists(home.stopped):
        raise NoDaemon("grass was stopped", "start it with `grass start`")


def start(
    home: Home,
    *,
    asked_for: bool,
    starts_jobs: bool = True,
    options: Sequence[str] | None = None,
) -> tuple[HttpConnection, bool]:
    """Return a connection, and whether a daemon had to be started for it.

    Without `options` it gets those that the last daemon here had.
    """
    make(home)
    try:
        lock = _opened(home.start_lock, os.O_RDWR)
    except OSError as error:
        found = open_connection(home.socket)
        if found is None:
            raise _cannot_start(home, error) from error
        return found, False
    try:
        _lock_start(lock)
        if asked_for:
            forget_stop(home)
        else:
            refuse_when_stopped(home)
        found = _wait_for_change(home)
        if found is not None:
            return found, False
        words = [*(remembered(home) if options is None else options)]
        words += () if starts_jobs else ("--no-starts",)
        return _started(home, words)
    finally:
        os.close(lock)


def _cannot_start(home: Home, error: OSError) -> NoDaemon:
    return NoDaemon(
        f"no daemon is running, and none can be started in {home.folder}:"
        f" {error.strerror}",
        "make that folder writable, or set GRASS_HOME to another one",
    )


def _started(home: Home, options: Sequence[str]) -> tuple[HttpConnection, bool]:
    try:
        launch(home, options)
    except GrassError:
        # A `grass daemon` of the same moment may have been first.
        found = _wait_for_change(home)
        if found is None:
            raise
        return found, False
    return connect_running(home), True


def remembered(home: Home) -> list[str]:
    """Return the options that the last daemon here was given."""
    remedy = "remove it: the daemon then starts without the options that it had"
    return read_file(home.options, _words, remedy) or []


def _words(data: bytes) -> list[str]:
    words = decoded(data)
    if not isinstance(words, list) or not all(isinstance(one, str) for one in words):
        raise ValueError("these are no options")
    return words


def forget_stop(home: Home) -> None:
    """Remove the mark of an earlier `grass stop`."""
    try:
        os.unlink(home.stopped)
    except OSError:
        # On a read-only file system also where there is none.
        if os.path.exists(home.stopped):
            raise


def remember_stop(home: Home) -> None:
    """Leave the mark that keeps commands from starting a daemon."""
    make(home)
    try:
        os.close(_opened(home.stopped, os.O_WRONLY))
    except OSError as error:
        # Nor can a command start a daemon there.
        if error.errno != errno.EROFS:
            raise


def wait_until_gone(home: Home) -> None:
    """Sleep until no process holds the daemon's lock."""
    who = _holder(home)
    patience = Patience(f"{who} is stopping", LEAVING_S, tell)
    # Another daemon may have taken its place already.
    while _is_served(home) and _holder(home) == who:
        if not patience.pause():
            raise NoAnswer(f"{who} has not stopped", f"see {home.log}")


def _opened(path: str, flags: int) -> int:
    """Open a file of the home, made if need be; whatever umask the caller has."""
    before = os.umask(0o077)
    try:
        return os.open(path, flags | os.O_CREAT, 0o600)
    finally:
        os.umask(before)


def make(home: Home) -> None:
    """Make the state directory, for its owner alone."""
    before = os.umask(0o077)
    try:
        home.make()
        check_owner(home)
    except OSError as error:
        raise GrassError(
            f"{home.folder} cannot be made: {error.strerror}",
            "set GRASS_HOME to a folder you may write to",
        ) from error
    finally:
        os.umask(before)


def check_owner(home: Home) -> None:
    """Refuse a folder in which other users could put a socket of their own."""
    state = os.stat(home.folder)
    if state.st_uid != os.geteuid():
        raise Forbidden(
            f"{home.folder} belongs to another user (uid {state.st_uid})",
            "set GRASS_HOME to a folder of your own",
        )
    if state.st_mode & 0o022:
        raise Forbidden(
            f"others may write to {home.folder}", f"`chmod go-w {home.folder}` first"
        )


def _wait_for_change(home: Home) -> HttpConnection | None:
    """Wait until a daemon that starts or stops has done so; None if there is none."""
    patience = Patience(f"{_holder(home)} is starting or stopping", HANDOVER_S, tell)
    while True:
        found = open_connection(home.socket)
        if found is not None or not _is_served(home):
            return found
        if not patience.pause():
            raise NoDaemon(f"the daemon does not answer, see {home.log}")


def _lock_start(lock: int) -> None:
    """Wait for the lock that a caller holds while it starts a daemon."""
    patience = Patience("another command is starting the daemon", TURN_S, tell)
    while _is_locked(lock, fcntl.LOCK_EX):
        if not patience.pause():
            raise NoDaemon(
                "another command has been starting the daemon for too long",
                "end that command, then try again",
            )


def lock_holder(home: Home) -> tuple[int, str] | None:
    """Return the pid in the lock of a home, and the command; a daemon has no command.

    It is that of the last process that had the lock, which may be over.
    """
    try:
        with open(home.daemon_lock, encoding="ascii") as lock:
            pid, _, command = lock.read(64).strip().partition(" ")
            return int(pid), command
    except (OSError, ValueError):
        return None


def at_work(pid: int | None, command: str) -> Refused:
    """Return the error for a command that has the lock of the daemon."""
    return Refused(f"`{command}` (pid {pid}) is at work", "try again when it has ended")


def _holder(home: Home) -> str:
    """Name the process that has locked a home, with its pid where the lock has it."""
    pid, command = lock_holder(home) or (None, "")
    who = f"`{command}`" if command else "the daemon"
    return who if pid is None else f"{who} (pid {pid})"


def _is_served(home: Home) -> bool:
    """Tell whether a daemon has locked this home; early versions lock only a file."""
    return _is_held(home.folder) or _is_held(home.daemon_lock)


def _is_held(path: str) -> bool:
    try:
        lock = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return _is_locked(lock, fcntl.LOCK_SH)
    finally:
        os.close(lock)


def _is_locked(lock: int, kind: int) -> bool:
    """Lock a file; tell whether another process has it locked instead."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
