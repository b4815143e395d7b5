"""A daemon of its own for one measurement, in a home that nobody used before.

The daemon is started the way the command line starts it. At the end it is told to stop,
and both it and its keeper are gone before the folder is removed: what still runs would
take time from the next contender.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.scratch import scratch_folder
from grass.client import autostart
from grass.client.client import Client
from grass.config import LOCAL, Home

QUEUE = "bench"
ONE_SLOT = {"queue": QUEUE, "require": "{slot:1}"}
"""The settings of a job that takes one slot of the benchmark's queue."""
_LEAVING_S = 30.0


@dataclass(frozen=True, slots=True)
class FreshHome:
    """A running daemon, a connected client and a queue with slots."""

    folder: Path
    client: Client

    def processes(self) -> list[psutil.Process]:
        """Find the daemon and its keeper."""
        daemon = psutil.Process(self.client.overview()["daemon"]["pid"])
        return [daemon, *keepers(self.client.home)]

    def daemon_s(self) -> float:
        """Tell for how long the daemon has used a processor so far."""
        spent = self.processes()[0].cpu_times()
        return float(spent.user + spent.system)

    def restart(self) -> float:
        """Stop the daemon and start it again; gives the seconds until it serves."""
        daemon = self.processes()[0]
        self.client.stop()
        see_off([daemon])
        started = time.perf_counter()
        autostart.start(self.client.home, asked_for=True)[0].close()
        return time.perf_counter() - started

    def run(self, jobs: int, command: list[str], **settings: object) -> None:
        """Enqueue jobs in one call and return when the last one has ended."""
        ids = self.client.enqueue_many([command] * jobs, **ONE_SLOT, **settings)
        self.wait(ids)

    def wait(self, ids: dict[str, int]) -> None:
        """Return when the jobs have ended, all of them well."""
        ended = self.client.wait([f"{ids['first']}-{ids['last']}"])
        states = {job["state"] for job in ended}
        if states != {"succeeded"}:
            raise RuntimeError(f"jobs of a benchmark ended as {sorted(states)}")


@contextmanager
def fresh_home(slots: int) -> Iterator[FreshHome]:
    """Start a daemon with so many slots; end it and its keeper afterwards."""
    with scratch_folder() as folder:
        home = Home(str(folder))
        autostart.start(home, asked_for=True)[0].close()
        with Client(home, may_start=False, broker=LOCAL) as client:
            fresh = FreshHome(folder, client)
            try:
                client.create_queue(QUEUE, {"capacity": f"{{slot:{slots}}}"})
                yield fresh
            finally:
                _stop(client, fresh.processes())


def keepers(home: Home) -> list[psutil.Process]:
    """Find the keepers of a home."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if home.keeper in (process.info["cmdline"] or ())
    ]


def _stop(client: Client, processes: list[psutil.Process]) -> None:
    try:
        client.pause()
        client.stop(jobs=True)
    finally:
        see_off(processes)


def see_off(processes: list[psutil.Process]) -> None:
    """Wait until processes are gone; complain if they stay."""
    _gone, staying = psutil.wait_procs(processes, timeout=_LEAVING_S)
    for process in staying:
        process.kill()
    if staying:
        pids = ", ".join(str(process.pid) for process in staying)
        raise RuntimeError(f"still there {_LEAVING_S:.0f} s after the stop: {pids}")


def environment_of(fresh: FreshHome) -> dict[str, str]:
    """Return the environment of a command that shall speak to this daemon."""
    return {**os.environ, "GRASS_HOME": str(fresh.folder), "GRASS_AUTOSTART": "0"}
