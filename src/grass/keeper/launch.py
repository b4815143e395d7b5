"""Starting a keeper from a daemon, and connecting to one.

The keeper must outlive the process that starts it: it is forked twice, inherits neither
environment nor descriptors and, where systemd runs, gets a scope of its own, so that
neither a logout nor a restart of the daemon's service ends it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import sys
import time

from grass.keeper.codec import BadMessage, BrokenLine, decode_entry, encode
from grass.keeper.crash_points import passed_on
from grass.keeper.protocol import HelloEntry, HelloVerb
from grass.log_lines import logged_error

LENT = "GRASS_ENDS_AT"
"""Set where an engine ends this daemon at a time."""
_START_S = 20.0
_ANSWER_S = 3.0
_BUS_VARIABLES = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_EMPTY = "its log is empty"
_MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")


def reach_keeper(directory: str, log_format: str = "text") -> socket.socket:
    """Connect to the keeper of the directory, starting one where none runs.

    A keeper that exits removes its socket first and releases its lock last. One that
    is started in between finds the lock held, and must be started again.
    """
    deadline = time.monotonic() + _START_S
    while True:
        try:
            return connect(directory)
        except OSError:
            if time.monotonic() > deadline:
                raise
        start_keeper(directory, log_format)


def start_keeper(directory: str, log_format: str = "text") -> None:
    """Start a keeper on the directory and return once it accepts connections.

    Does nothing where one has the lock already. Blocks for some 50 ms. Raises
    TimeoutError when it is not ready in time, OSError with the last error of its log
    when it gave up.
    """
    command = [sys.executable, "-I", "-S", _MAIN, directory, "--detach"]
    command += [] if log_format == "text" else [f"--log-format={log_format}"]
    command += ["--lent"] if LENT in os.environ else []
    deadline = time.monotonic() + _START_S
    scope = _scope_prefix()
    answer = _run([*scope, *command], directory, deadline) if scope else b""
    if not answer:
        answer = _run(command, directory, deadline)
    if answer not in (b"ready\n", b"locked\n"):
        raise OSError(f"the keeper did not start: {_last_line(directory)}")


def connect(directory: str) -> socket.socket:
    """Connect to the keeper of the directory, however long its path is."""
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        channel.connect(f"/proc/self/fd/{folder}/keeper.sock")
    except BaseException:
        channel.close()
        raise
    finally:
        os.close(folder)
    return channel


def state_of(directory: str) -> HelloEntry | None:
    """Return all that the keeper of a directory knows; None: none answers.

    Without a keeper nothing runs, unless it was killed.
    """
    try:
        with connect(directory) as channel:
            channel.settimeout(_ANSWER_S)
            channel.sendall(encode(HelloVerb()))
            with channel.makefile("rb") as lines:
                hello = decode_entry(lines.readline())
    except (OSError, BrokenLine, BadMessage):
        return None
    return hello if isinstance(hello, HelloEntry) else None


def _scope_prefix() -> list[str]:
    if LENT in os.environ:
        # What an engine has lent must stay where the engine counts and ends it.
        return []
    program = shutil.which("systemd-run")
    if program is None or not os.path.isdir("/run/systemd/system"):
        return []
    manager = [] if os.geteuid() == 0 else ["--user"]
    options = ["--scope", "--quiet", "--collect", "--property=Delegate=yes"]
    return [program, *manager, *options, "--"]


def _run(command: list[str], directory: str, deadline: float) -> bytes:
    """Run the command and return what it writes to standard output."""
    reader, writer = os.pipe()
    try:
        pid = _spawn(command, directory, writer)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    try:
        return _await_line(reader, deadline)
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reader)
        os.waitpid(pid, 0)


def _spawn(command: list[str], directory: str, writer: int) -> int:
    kept = {name: os.environ[name] for name in _BUS_VARIABLES if name in os.environ}
    log = os.path.join(directory, "log")
    appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        command[0],
        command,
        {"PATH": os.defpath, "LANG": "C.UTF-8", **kept, **passed_on()},
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_OPEN, 2, log, appending, 0o600),
        ),
        setsid=True,
        setsigmask=(),
    )


def _await_line(reader: int, deadline: float) -> bytes:
    waiting = select.poll()
    waiting.register(reader, select.POLLIN)
    left_ms = (deadline - time.monotonic()) * 1000
    if not waiting.poll(max(0.0, left_ms)):
        raise TimeoutError(f"the keeper was not ready within {_START_S:.0f} s")
    return os.read(reader, 64)


def _last_line(directory: str) -> str:
    try:
        with open(os.path.join(directory, "log"), "rb") as file:
            lines = file.read()[-4096:].splitlines()
    except OSError as error:
        return str(error)
    return logged_error(lines[-1].decode(errors="replace")) if lines else _EMPTY
