"""The keeper's process, and its setup before the loop runs.

It has its own session, is a subreaper, ignores the signals of a logout, has the limits
of a login, and holds one lock until it exits. Everything is imported before the lock is
taken, as an upgrade may replace the files at any time later.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import signal
import sys
from contextlib import suppress

from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.keeper_events import Restored, Terminated
from grass.keeper.mounts import Mounts, read_mountinfo
from grass.keeper.process_table import start_ticks
from grass.keeper.protocol import VERSION, KeeperEntry
from grass.keeper.system import log
from grass.keeper.system.cgroups import Cgroups
from grass.keeper.system.connections import listen
from grass.keeper.system.loop import Loop
from grass.keeper.system.own_folder import OwnFolder
from grass.keeper.system.processes import JobProcesses
from grass.keeper.system.records import Records
from grass.keeper.system.rlimits import OpenFiles, set_login_limits
from grass.keeper.system.runner_lines import most_idle

LOCKED = 75
_DETACH, _JSON, _LENT = "--detach", "--log-format=json", "--lent"
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run a keeper on the directory until it is not needed any more."""
    directories = [one for one in arguments if not one.startswith("--")]
    options = {one for one in arguments if one.startswith("--")}
    log.open_log("json" if _JSON in options else "text")
    if len(directories) != 1 or options - {_DETACH, _JSON, _LENT}:
        sys.stderr.write(f"usage: keeper DIRECTORY [{_DETACH}] [{_JSON}] [{_LENT}]\n")
        return 2
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if _DETACH in options and os.fork():
        return 0
    directory = os.path.abspath(directories[0])
    lock = _take_lock(directory)
    if lock is None:
        _tell_starter(b"locked\n")
        return LOCKED
    _detach()
    folder = OwnFolder(_followed(directory), lock)
    loop = _make_loop(folder, is_lent=_LENT in options)
    gc.freeze()
    gc.enable()
    _tell_starter(b"ready\n")
    loop.run()
    loop.leave()
    return 0


def _take_lock(directory: str) -> int | None:
    """Take the lock, which is held until the process ends; None: another one has it."""
    path = os.path.join(directory, "lock")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode() or "unknown"
        log.write("info", "keeper.locked", path=path, pid=holder)
        return None
    # The pid is only for people. It is written over the old one before that is
    # truncated, as a full disk has no space for more.
    with suppress(OSError):
        os.ftruncate(lock, os.pwrite(lock, b"%d" % os.getpid(), 0))
    return lock


def _followed(directory: str) -> str:
    """Return a path that leads to the directory also once its home was moved.

    The old path may lead to that of another keeper by then.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    home, name = os.path.split(directory)
    return f"/proc/self/fd/{os.open(home, flags)}/{name}"


def _detach() -> None:
    os.chdir("/")
    os.umask(0o077)
    if os.getsid(0) != os.getpid():
        # A shell's foreground job leads a process group and cannot leave it.
        with suppress(PermissionError):
            os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    # SIGTERM too, until `_wake_on_signals`.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    set_login_limits()


def _make_loop(folder: OwnFolder, *, is_lent: bool) -> Loop:
    pid, boot = os.getpid(), _boot_id()
    core = KeeperCore(pid, boot)
    core.is_lent = is_lent
    header = KeeperEntry(VERSION, pid, start_ticks(pid), boot)
    records = Records(folder.path, header)
    files = OpenFiles()
    files.raise_own()
    own_cgroups = Cgroups(read_mountinfo(), pid)
    core.controllers = own_cgroups.controllers()
    core.runners.most_idle = most_idle()
    jobs = JobProcesses(Mounts(), own_cgroups, files)
    loop = Loop(core, records, jobs, listen(folder.path), folder)
    _wake_on_signals(loop)
    loop.feed(Restored(*records.load()))
    loop.finish_turn()
    return loop


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _wake_on_signals(loop: Loop) -> None:
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def woken() -> None:
        received = os.read(reader, 4096)
        loop.children_ended()
        if signal.SIGTERM in received:
            loop.feed(Terminated())

    loop.poller.watch(reader, woken)


def _tell_starter(word: bytes) -> None:
    """Answer the starter, which reads standard output, and close that."""
    with suppress(OSError):
        os.write(1, word)
    os.dup2(0, 1)
