"""`make failover KILLS=50`: leaders that are killed, hang and stop, with a ledger.

Three brokers share a PostgreSQL server that syncs. A client enqueues all the time, and
each job writes a line into the ledger when it starts. Again and again the leader is
killed, stopped (SIGSTOP) or told to stop. In the end every id that was given has one
line, and no id was given twice. The report tells how long it took from each fault to
the next start of a job.
"""

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, machines, new_line
from tests.support.patience import until
from tests.support.postgres import PostgresServer

SYNCING = "-c listen_addresses= -c max_connections=200 -c shared_buffers=32MB"
NAMES = ("one", "two", "three")
PAUSE_S = 0.3
HUNG_S = 9.0
SETTLED_S = 3.0
BAR_S = 10.0


class Failover(NamedTuple):
    """A fault, and how long no job started after it."""

    fault: str
    took_s: float


class Client:
    """Enqueues jobs, one after the other, until it is told to stop."""

    def __init__(self, home: GrassHome, ledger: Path) -> None:
        self._home = home
        self._line = f'echo "{{id}} {{attempt}} $(date +%s.%N)" >> {ledger}'
        self.ids: list[int] = []
        self.failures: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(PAUSE_S):
            ran = self._home.run("enqueue", "--retry-lost", "0", "--", self._line)
            if ran.returncode == 0:
                self.ids.append(int(ran.stdout))
            else:
                self.failures.append(ran.stderr.strip())

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def starts(ledger: Path) -> list[tuple[int, float]]:
    """Read which jobs have started, and when."""
    lines = [line.split() for line in ledger.read_text().splitlines()]
    return [(int(job), float(at)) for job, _attempt, at in lines]


def leader(homes: dict[str, GrassHome], asked: GrassHome) -> str:
    """Wait until somebody leads, and all stand by; tell who does."""

    def look() -> str:
        told = json.loads(asked.ok("brokers", "--json"))["brokers"]
        ready = sum(one["heard_s"] < 5 for one in told) == len(homes)
        return next((one["name"] for one in told if one["leads"] and ready), "")

    return until(look, "somebody leads, and the others stand by")


def strike(home: GrassHome, fault: str) -> None:
    """Do it to the leader; what hangs goes on later, what is gone is started again."""
    pid = home.daemon_pid()
    assert pid is not None
    if fault == "killed":
        home.kill_daemon()
    elif fault == "hung":
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(HUNG_S, os.kill, (pid, signal.SIGCONT)).start()
    else:
        home.ok("stop")


def play(homes: dict[str, GrassHome], client: GrassHome, ledger: Path) -> Failover:
    """Play one fault, and measure."""
    victim = homes[leader(homes, client)]
    fault = random.choice(("killed", "killed", "hung", "stopped"))
    struck = time.time()
    strike(victim, fault)
    began = until(
        lambda: next((at for _, at in starts(ledger) if at > struck + 0.5), 0.0),
        "no job starts any more",
    )
    if fault == "hung":
        time.sleep(max(0.0, struck + HUNG_S + 1 - time.time()))
    else:
        victim.ok("start")
    time.sleep(SETTLED_S)
    return Failover(fault, began - struck)


def check(client: Client, home: GrassHome, ledger: Path) -> list[str]:
    """Return what is wrong with the ledger when all jobs have ended."""
    for job in client.ids[-20:]:
        home.run("wait", str(job))
    until(
        lambda: set(client.ids) - {job for job, _ in starts(ledger)},
        "every job starts",
        lambda missing: not missing,
    )
    ran = [job for job, _ in starts(ledger)]
    problems = [f"job {job} ran twice" for job in set(ran) if ran.count(job) > 1]
    if len(set(client.ids)) != len(client.ids):
        problems.append("an id was given twice")
    return problems


def report(played: list[Failover], jobs: int, problems: list[str]) -> str:
    """Say what came of it."""
    lines = [f"faults {len(played)}, jobs {jobs}, problems {len(problems)}", *problems]
    for fault in sorted({one.fault for one in played}):
        took = sorted(one.took_s for one in played if one.fault == fault)
        middle = statistics.median(took)
        lines.append(
            f"failover {fault:<8} {len(took):>3} times: median {middle:.1f} s,"
            f" longest {took[-1]:.1f} s (bar {BAR_S:g} s)"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the campaign; the exit code is 0 if nothing was lost or run twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = PostgresServer(folder / "server", SYNCING)
        server.create()
        server.start()
        try:
            return _campaign(folder, server, asked.kills)
        finally:
            server.stop()


def _campaign(folder: Path, server: PostgresServer, kills: int) -> int:
    server.execute("CREATE DATABASE grass")
    ledger = folder / "ledger"
    ledger.touch()
    with machines(folder) as make:
        homes = {name: make(name) for name in NAMES}
        first = homes["one"]
        first.ok("start", *LOOPBACK, "--name", "one", "--store", server.url("grass"))
        for name in NAMES[1:]:
            line = new_line(first, "--role", "broker")
            homes[name].ok("join", "--standby", *LOOPBACK, "--name", name, line)
        laptop = make("laptop")
        laptop.ok("join", new_line(first, "--role", "operate"))
        leader(homes, laptop)
        client = Client(laptop, ledger)
        played = list[Failover]()
        for number in itertools.count(1):
            played.append(play(homes, laptop, ledger))
            sys.stdout.write(f"{number} {played[-1]}\n")
            sys.stdout.flush()
            if number >= kills:
                break
        client.stop()
        problems = check(client, laptop, ledger)
        sys.stdout.write(report(played, len(client.ids), problems) + "\n")
        for failure in sorted(set(client.failures)):
            sys.stdout.write(f"refused {client.failures.count(failure)}: {failure}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
