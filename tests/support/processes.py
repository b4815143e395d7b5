"""Looking at processes, and ending them by descriptor so that a pid is never reused."""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.patience import PATIENCE_S, until


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal that ends a process, and return when it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, number)
        assert select.select([descriptor], [], [], PATIENCE_S)[0], f"{pid} lives on"
    finally:
        os.close(descriptor)


def await_end(pid: int) -> None:
    """Return when a process is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], PATIENCE_S)[0], f"{pid} lives on"
    finally:
        os.close(descriptor)


def alive(pid: int) -> bool:
    """Tell whether a process exists and is no zombie."""
    try:
        return process_state(pid) not in ("Z", "X")
    except OSError:
        return False


def process_state(pid: int) -> str:
    """Return the letter of what a process does: R runs, S waits, T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def ticks(pid: int) -> int:
    """Return the processor time that a process has used, in clock ticks."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def without_core_s(pid: int) -> float:
    """Return how long the main thread of a process could run and had no core."""
    _ran, waited_ns, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(waited_ns) / 1e9


def processes_with(*marks: bytes) -> Iterator[int]:
    """Find processes that have a mark in their environment or among their words."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            said = _read(f"/proc/{entry}/environ") + _read(f"/proc/{entry}/cmdline")
            if any(mark in said for mark in marks) and alive(int(entry)):
                yield int(entry)


def _read(path: str) -> bytes:
    """Read a file of `/proc`; nothing, if it is gone or of somebody else."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def await_socket(pid: int) -> None:
    """Return when a process holds a socket: its request is on the way."""
    until(lambda: _holds_socket(pid), f"{pid} asks nothing")


def _holds_socket(pid: int) -> bool:
    with contextlib.suppress(OSError):
        links = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
        if any(link.startswith("socket:") for link in links):
            return True
    assert alive(pid)
    return False


def is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped where it was, by SIGSTOP."""
    return process_state(pid) == "T"


def await_stopped(*pids: int) -> None:
    """Return when all of these processes are stopped; nothing tells of that."""
    until(lambda: all(map(is_stopped, pids)), f"{pids} are not stopped")


def until_ready(daemon: subprocess.Popen[str]) -> str:
    """Return what a daemon in the foreground says until it is ready.

    It may say more before, such as that another user runs a daemon on this machine.
    """
    assert daemon.stderr is not None
    said = ""
    for line in daemon.stderr:
        said += line
        if " daemon.ready " in line:
            return said
    raise AssertionError(f"the daemon did not come up: {said}")
