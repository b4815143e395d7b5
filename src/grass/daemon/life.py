"""A daemon's life: until when it runs, and who is told that it does."""

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
from grass.logs import EventLog

log = EventLog("grass.daemon")


class Life:
    """From the first sign of life to the order to stop."""

    def __init__(self, ready: int | None, foreground: bool) -> None:
        """`ready` is a descriptor on which somebody waits for news."""
        self._ready = ready
        self.foreground = foreground
        self.was_ready = False
        self._over = asyncio.Event()
        self.started_at = time.time_ns() // 1000
        # A long queue is read back now: nothing of it is garbage.
        gc.disable()

    def begin(self) -> None:
        """Stop when a signal says so."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def stop(self) -> None:
        """Order the daemon to stop."""
        self._over.set()

    async def over(self) -> None:
        """Return when the daemon is to stop."""
        await self._over.wait()

    def is_up(self, home: Home) -> None:
        """Tell whoever started this daemon that it serves."""
        # What start-up made lives as long as the daemon: spare the collector the look.
        gc.freeze()
        gc.enable()
        self.was_ready = True
        self.tell("ready\n")
        log.info("daemon.ready", pid=os.getpid(), home=home.folder)

    def tell(self, text: str) -> None:
        """Tell whoever started us how it went; nobody has to listen."""
        if self._ready is None:
            return
        ready, self._ready = self._ready, None
        with contextlib.suppress(OSError):
            os.write(ready, text.encode())
        with contextlib.suppress(OSError):
            os.close(ready)

    @property
    def has_reader(self) -> bool:
        """Tell whether what is printed is read now, and not kept in a log.

        A service manager tells so by the journal that it connects its services to.
        """
        is_service = "JOURNAL_STREAM" in os.environ
        return self.foreground and not is_service and _goes_to_somebody(sys.stdout)

    def invite(self, line: str) -> None:
        """Print the line that others join with, to whoever runs this daemon."""
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _goes_to_somebody(stream: TextIO | None) -> bool:
    """Tell a terminal or a pipe from a file, which keeps what is written to it."""
    if stream is None:
        return False
    return stream.isatty() or stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
