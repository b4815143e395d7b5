"""Finding the daemon, and starting one where there is none.

Of any number of callers at once exactly one starts a daemon: they queue on a lock, and
all but the first find it running. `grass stop` leaves a mark that keeps daemons from
being started by the way; `grass start` and `grass daemon` remove it.
"""

from __future__ import annotations

import fcntl
import os
import sys

from grass.client.connection import HttpConnection, open_connection, tell
from grass.client.json_codec import decoded
from grass.config import MARKER, SECRETS, autostart_allowed, without_job_variables
from grass.errors import Forbidden, GrassError, NoAnswer, NoDaemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grass.client.patience import Patience
    from grass.config import Home

HANDOVER_S = 30.0
"""How long a daemon that holds the lock may take to answer, or to be gone."""

LEAVING_S, TURN_S, START_S = 60.0, 90.0, 120.0
"""How long a daemon may take to be gone, another command, and a daemon to start."""

_LAST_SIGNAL = 31
_UNCATCHABLE = (9, 19)


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
    """Honour an earlier `grass stop`."""
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
    lock = _opened(home.start_lock, os.O_RDWR)
    try:
        _queue_on(lock)
        if asked_for:
            forget_stop(home)
        else:
            refuse_when_stopped(home)
        found = _when_settled(home)
        if found is not None:
            return found, False
        words = [*(remembered(home) if options is None else options)]
        words += () if starts_jobs else ("--no-starts",)
        return _started(home, words, asked_for=asked_for)
    finally:
        os.close(lock)


def _started(
    home: Home, options: Sequence[str], *, asked_for: bool
) -> tuple[HttpConnection, bool]:
    try:
        _launch(home, options, asked_for=asked_for)
    except GrassError:
        # Somebody may have run `grass daemon` in the same moment, and was first.
        found = _when_settled(home)
        if found is None:
            raise
        return found, False
    return connect_running(home), True


def remembered(home: Home) -> list[str]:
    """Return the options that the last daemon here was given."""
    try:
        with open(home.options, "rb") as file:
            return [str(word) for word in decoded(file.read())]
    except (OSError, ValueError, TypeError):
        return []


def forget_stop(home: Home) -> None:
    """Remove the mark of an earlier `grass stop`."""
    try:  # noqa: SIM105 -- importing contextlib would cost every command
        os.unlink(home.stopped)
    except FileNotFoundError:
        pass


def remember_stop(home: Home) -> None:
    """Leave the mark that keeps commands from starting a daemon."""
    make(home)
    os.close(_opened(home.stopped, os.O_WRONLY))


def wait_until_gone(home: Home) -> None:
    """Sleep until no process holds the daemon's lock."""
    if not _is_served(home):
        return
    who = _holder(home)
    patience = _patience(f"{who} is stopping", LEAVING_S)
    # Another one may have taken its place already.
    while _is_served(home) and _holder(home) == who:
        if not patience.pause():
            raise NoAnswer(f"{who} has not stopped", f"see {home.log}")


def _opened(path: str, flags: int) -> int:
    """Open a file of the home, making it; the caller's umask must not lock us out."""
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
    """Refuse a folder in which others could put a socket of their own."""
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


def _when_settled(home: Home) -> HttpConnection | None:
    """Wait out a daemon that is coming up or going down; None when there is none."""
    patience = None
    while True:
        found = open_connection(home.socket)
        if found is not None or not _is_served(home):
            return found
        if patience is None:
            who = _holder(home)
            patience = _patience(f"{who} is starting or stopping", HANDOVER_S)
        if not patience.pause():
            raise NoDaemon(f"the daemon does not answer, see {home.log}")


def _queue_on(lock: int) -> None:
    """Lock the file that callers who want to start a daemon queue on."""
    patience = None
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            patience = patience or _patience(
                "another command is starting the daemon", TURN_S
            )
            if not patience.pause():
                raise NoDaemon(
                    "another command has been starting the daemon for too long",
                    "end that command, then try again",
                ) from None
        else:
            return


def _patience(why: str, limit_s: float) -> Patience:
    from grass.client.patience import Patience

    return Patience(why, limit_s, tell)


def _holder(home: Home) -> str:
    """Name the daemon that has a home, as far as its lock tells."""
    try:
        with open(home.daemon_lock, "rb") as lock:
            pid = lock.read(32).decode("ascii", "replace").strip()
    except OSError:
        pid = ""
    return f"the daemon (pid {pid})" if pid else "the daemon"


def _is_served(home: Home) -> bool:
    """Tell whether a process has this home; an earlier version's locks only a file."""
    return _is_held(home.folder) or _is_held(home.daemon_lock)


def _is_held(path: str) -> bool:
    try:
        lock = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _launch(home: Home, options: Sequence[str], *, asked_for: bool) -> None:
    """Start a daemon and wait until it says that it is ready."""
    logged = _size(home.log)
    hears, tells = os.pipe()
    try:
        os.set_inheritable(tells, True)
        ready = f"--ready-fd={tells}"
        child = _spawn(home, ("--detached", ready, *options), asked_for=asked_for)
    finally:
        os.close(tells)
    try:  # noqa: SIM105
        os.waitpid(child, 0)
    except ChildProcessError:
        pass
    answer = _heard(hears, home)
    if answer == "ready":
        return
    if answer:
        raise GrassError(
            f"the daemon could not start: {answer.removeprefix('grass: ')}"
        )
    reason = why_it_ended(home.log, logged)
    # Killed on the way up: a call that is being repeated may try once more.
    raise NoDaemon(f"the daemon could not start: {reason}", f"see {home.log}")


def _heard(hears: int, home: Home) -> str:
    """Return what a daemon says when it has started, or could not."""
    import select

    ready = select.poll()
    ready.register(hears, select.POLLIN)
    patience, said = _patience("the daemon is starting", START_S), b""
    try:
        while True:
            if ready.poll(100):
                piece = os.read(hears, 4096)
                said += piece
                if not piece:
                    return said.decode(errors="replace").strip()
            if not patience.is_left():
                raise NoAnswer(
                    f"the daemon has not come up within {START_S:.0f} s",
                    f"see {home.log}",
                )
    finally:
        os.close(hears)


def _spawn(home: Home, options: Sequence[str], *, asked_for: bool) -> int:
    main = os.path.join(os.path.dirname(os.path.dirname(__file__)), "__main__.py")
    words = [sys.executable, "-I", main, "daemon", *options]
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        words,
        daemon_environment(os.environ, home.folder, asked_for=asked_for),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, home.log, append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        # A caller in the background of a script, or under nohup, ignores signals that
        # a daemon and its jobs must not.
        setsigdef=[
            number
            for number in range(1, _LAST_SIGNAL + 1)
            if number not in _UNCATCHABLE
        ],
    )


def daemon_environment(
    environment: Mapping[str, str], folder: str, *, asked_for: bool
) -> dict[str, str]:
    """Return what a daemon started here shall see.

    A daemon that was asked for keeps the caller's choice of GPUs; one that is started
    by the way, or from inside a job, does not.
    """
    kept = without_job_variables(environment)
    if not asked_for or MARKER in environment:
        kept.pop("CUDA_VISIBLE_DEVICES", None)
    kept |= {name: environment[name] for name in SECRETS if name in environment}
    kept["GRASS_HOME"] = folder
    return kept


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def why_it_ended(path: str, since: int) -> str:
    """Return what a log says of an end after its first `since` bytes.

    A daemon that could tells it itself. What is left is an error that Python printed.
    Lines of events, which begin with a time or a brace, tell of other things.
    """
    try:
        with open(path, "rb") as log:
            log.seek(since)
            lines = log.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    printed = [line for line in lines if line.strip("+- ") and not _is_event(line)]
    return printed[-1].strip() if printed else "it was killed, and left no word"


def _is_event(line: str) -> bool:
    return line[:4].isdigit() or line.startswith("{")
