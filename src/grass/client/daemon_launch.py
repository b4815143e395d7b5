"""Starting a daemon as a process of its own, and waiting until it is ready.

It keeps nothing of its caller: descriptors, directory, signals, variables of a job.
"""

from __future__ import annotations

import os
import select
import sys

from grass.client.connection import tell
from grass.client.patience import Patience
from grass.config import SECRETS, without_job_variables
from grass.errors import GrassError, NoAnswer, NoDaemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grass.config import Home

START_S = 120.0
"""How long a daemon may take to start."""
_LAST_SIGNAL = 31
_UNCATCHABLE = (9, 19)


def launch(home: Home, options: Sequence[str]) -> None:
    """Start a daemon and wait until it reports that it is ready."""
    logged = _size(home.log)
    reader, writer = os.pipe()
    try:
        os.set_inheritable(writer, True)
        ready = f"--ready-fd={writer}"
        child = _spawn(home, ("--detached", ready, *options))
    finally:
        os.close(writer)
    try:  # noqa: SIM105
        os.waitpid(child, 0)
    except ChildProcessError:
        pass
    answer = _report(reader, home)
    if answer == "ready":
        return
    if answer:
        raise _failure(answer)
    reason = why_it_ended(home.log, logged)
    # Killed on the way up: a call that is being repeated may try once more.
    raise NoDaemon(f"the daemon could not start: {reason}", f"see {home.log}")


def _failure(answer: str) -> GrassError:
    """Return the error of a daemon, which reports its exit code and a message."""
    code, _, message = answer.partition("grass: ")
    error = GrassError(f"the daemon could not start: {message}")
    if code.strip().isdecimal():
        error.exit_code = int(code)
    return error


def _report(reader: int, home: Home) -> str:
    """Return what a daemon writes when it has started, or could not."""
    ready = select.poll()
    ready.register(reader, select.POLLIN)
    patience, said = Patience("the daemon is starting", START_S, tell), b""
    try:
        while True:
            if ready.poll(100):
                piece = os.read(reader, 4096)
                said += piece
                if not piece:
                    return said.decode(errors="replace").strip()
            if not patience.is_left():
                raise NoAnswer(
                    f"the daemon has not come up within {START_S:.0f} s",
                    f"see {home.log}",
                )
    finally:
        os.close(reader)


def _spawn(home: Home, options: Sequence[str]) -> int:
    main = os.path.join(os.path.dirname(os.path.dirname(__file__)), "__main__.py")
    words = [sys.executable, "-I", main, "daemon", *options]
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        words,
        daemon_environment(os.environ, home.folder),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, home.log, append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        # A caller in the background of a script, or under nohup, ignores signals that
        # a daemon and its jobs must not ignore.
        setsigdef=[
            number
            for number in range(1, _LAST_SIGNAL + 1)
            if number not in _UNCATCHABLE
        ],
    )


def daemon_environment(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the environment of a daemon that is started here.

    The choice of GPUs that a caller of `grass start` has made is an option by now.
    """
    kept = without_job_variables(environment)
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
    return printed[-1].strip() if printed else "it was killed, and left no message"


def _is_event(line: str) -> bool:
    return line[:4].isdigit() or line.startswith("{")
