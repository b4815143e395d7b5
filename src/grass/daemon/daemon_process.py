"""The daemon as a process: signals, readiness, and the order to stop."""

import asyncio
import contextlib
import gc
import os
import signal
import stat
import sys
import time
from typing import TextIO

from grass.config import Home
from grass.daemon.home_lock import warn_of_other_daemons
from grass.event_log import EventLog

log = EventLog("grass.daemon")


class DaemonProcess:
    """The state of this process, from its start to the order to stop."""

    def __init__(self, ready: int | None, foreground: bool) -> None:
        """`ready` is a descriptor on which the starting command waits for a result."""
        self._ready = ready
        self.foreground = foreground
        self.was_ready = False
        self._stopping = asyncio.Event()
        self._stops = False
        self.started_at = time.time_ns() // 1000

    def handle_signals(self) -> None:
        """Stop on SIGTERM and SIGINT, ignore SIGHUP."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def stop(self) -> None:
        """Order the daemon to stop."""
        self._stops = True
        self._stopping.set()

    @property
    def stops(self) -> bool:
        """Whether the daemon is to stop, and not only what it hosts now."""
        return self._stops

    def end_role(self) -> None:
        """Order what is hosted now to end: a broker begins or ceases to lead."""
        self._stopping.set()

    def begin_role(self) -> None:
        """Host something until `end_role` or `stop`."""
        if not self._stops:
            self._stopping.clear()

    async def stopping(self) -> None:
        """Return when the daemon, or what it hosts now, is to stop."""
        await self._stopping.wait()

    def report_ready(self, home: Home) -> None:
        """Tell the starting command, and the log, that the daemon answers."""
        if self.was_ready:
            return
        # Objects of the start live as long as the daemon: exclude them from collection,
        # which the command that runs the daemon has disabled.
        gc.freeze()
        gc.enable()
        self.was_ready = True
        warn_of_other_daemons()
        self.report("ready\n")
        log.info("daemon.ready", pid=os.getpid(), home=home.folder)

    def report(self, text: str) -> None:
        """Send the result of the start to the starting command, if there is one."""
        if self._ready is None:
            return
        ready, self._ready = self._ready, None
        with contextlib.suppress(OSError):
            os.write(ready, text.encode())
        with contextlib.suppress(OSError):
            os.close(ready)

    @property
    def has_reader(self) -> bool:
        """Return whether a person reads standard output, and it is not stored in a log.

        A service manager sets JOURNAL_STREAM.
        """
        is_service = "JOURNAL_STREAM" in os.environ
        return self.foreground and not is_service and _is_interactive(sys.stdout)

    def print_join_line(self, line: str) -> None:
        """Print the line that other machines join with."""
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _is_interactive(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal or a pipe, and not a file."""
    if stream is None:
        return False
    return stream.isatty() or stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
