"""`make failover KILLS=50`: leaders that die, hang and are cut off, with a ledger.

Three brokers, each on a host of its own, share a PostgreSQL server that syncs. A client
on a fifth host enqueues all the time, and one on each broker's host now and then, so
also where the leader is struck and on standbys. Each job writes a line into the ledger
when it starts. Meanwhile one job of the whole campaign is waited for, its output and
all events are followed, and jobs are enqueued once more with the key of before. Again
and again something is done to the leader, or to the database. In the end every id that
was given has one line, no id was given twice, and followers have missed nothing. The
report tells how long it took from each fault to the next start of a job.
"""

import argparse
import itertools
import json
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.fault.broker_hosts import LASTS_S, BrokerHosts
from tests.support.lan import Host
from tests.support.patience import until

PAUSE_S, SELDOM_S = 0.3, 2.0
BAR_S = 10.0
EXIT_CODE = 7
NOT_ASKED = ("no daemon is running", "grass was stopped")
"""What a command says where nothing can have come of it."""
_AGAIN = """
import json, sys
from grass.client.client import Client
body, key = {"jobs": [{"command": sys.argv[2]}], "defaults": {}}, sys.argv[1]
with Client() as client:
    print(client.idempotent("POST", "/jobs", {**body, "key": key})["first"])
"""

Fault = Callable[[Host, threading.Event], None]


class Failover(NamedTuple):
    """A fault, and how long no job started after it."""

    fault: str
    took_s: float


class Ledger:
    """What jobs have written when they started."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()
        # By the true clock, not by that of the host.
        date = "env -u LD_PRELOAD date +%s.%N"
        self.line = f'echo "{{id}} $({date})" >> {path}'
        """What a job runs."""
        self.brokers_line = f'echo "{{id}} $({date}) broker" >> {path}'
        """The same of a job that was enqueued on a broker's host."""

    def starts(self) -> list[int]:
        """Read which jobs have started."""
        return [int(job) for job, *_ in self._lines()]

    def next_start(self, after: float) -> float:
        """Return when the first job started after a time; 0: none has yet.

        Those of a broker's host do not count: there one that is cut off still leads.
        """
        times = (float(at) for _, at, *broker in self._lines() if not broker)
        return min((at for at in times if at > after), default=0.0)

    def _lines(self) -> list[list[str]]:
        return [line.split() for line in self._path.read_text().splitlines()]


class Client:
    """Enqueues jobs, one after the other, until it is told to stop."""

    def __init__(self, home: Host, line: str, pause_s: float = PAUSE_S) -> None:
        self._home, self._line, self._pause_s = home, line, pause_s
        self.ids: list[int] = []
        self.failures: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        words = ("enqueue", "--retry-lost", "0", "--", self._line)
        while not self._over.wait(self._pause_s):
            try:
                # The campaign starts daemons that it has killed.
                ran = self._home.run(*words, env={"GRASS_AUTOSTART": "0"})
            except subprocess.TimeoutExpired:
                self.failures.append("it did not end within a minute")
                continue
            if ran.returncode == 0:
                self.ids.append(int(ran.stdout))
            elif not any(words in ran.stderr for words in NOT_ASKED):
                self.failures.append(ran.stderr.strip())

    def stop(self) -> None:
        """Enqueue no more."""
        self._over.set()
        self._thread.join()


class Followers:
    """A job that lasts, and those who wait for it and follow what happens."""

    def __init__(self, hosts: BrokerHosts, folder: Path) -> None:
        self._laptop, self._end = hosts.laptop, folder / "end"
        line = f"i=0; while [ ! -e {self._end} ]; do echo $i; i=$((i+1)); sleep 0.2;"
        line += f" done; exit {EXIT_CODE}"
        self.job = hosts.laptop.enqueue("--worker", "three", "--", line)
        self._files = {name: folder / name for name in ("wait", "logs", "events")}
        self._waiting = self._follow("wait", "wait", str(self.job))
        self._logging = self._follow("logs", "logs", "-f", str(self.job))
        self._seeing = self._follow("events", "events", "-f", "--json", "-n", "1000")

    def _follow(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        notices = self._files[name].with_suffix(".notices")
        with self._files[name].open("w") as file, notices.open("w") as said:
            return subprocess.Popen(
                [*self._laptop.grass, *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=said,
                cwd=self._laptop.desk,
                env=self._laptop.environment,
            )

    def problems(self) -> list[str]:
        """End the job, and return what those who followed it have missed."""
        self._end.touch()
        problems = []
        if (code := self._waiting.wait(60)) != EXIT_CODE:
            problems.append(f"`wait` ended with {code}")
        if (code := self._logging.wait(60)) != 0:
            problems.append(f"`logs -f` ended with {code}")
        written = list(map(int, self._files["logs"].read_text().split()))
        if written != list(range(len(written))):
            problems.append("`logs -f` has missed or repeated a line")
        last = self._last()
        over = lambda: self._seen()[-1] >= last or self._seeing.poll() is not None  # noqa: E731
        until(over, "all events are told")
        if self._seeing.poll() is not None:
            said = self._files["events"].with_suffix(".notices").read_text()
            problems.append(f"`events -f` has ended: {said.strip()}")
        self._seeing.kill()
        self._seeing.wait()
        seen = self._seen()
        if seen != list(range(seen[0], seen[0] + len(seen))):
            problems.append("`events -f` has missed or repeated an event")
        return problems

    def _seen(self) -> list[int]:
        lines = self._files["events"].read_text().splitlines()
        return [json.loads(line)["seq"] for line in lines]

    def _last(self) -> int:
        shown = json.loads(self._laptop.ok("events", "--json", "-n", "1"))
        return int((shown[-1] if isinstance(shown, list) else shown)["seq"])


class Campaign:
    """Faults, one after the other."""

    def __init__(self, hosts: BrokerHosts, ledger: Ledger) -> None:
        self._hosts, self._ledger = hosts, ledger
        self._faults: dict[str, tuple[Fault, float]] = {
            "killed": (hosts.kill, 0.0),
            "hung": (hosts.hang, LASTS_S),
            "stopped": (hosts.stop, 0.0),
            "cut from the database": (hosts.cut_from_database, LASTS_S),
            "cut from the others": (hosts.cut_from_others, 1.5 * LASTS_S),
            "cut from both": (hosts.cut_from_both, LASTS_S),
            "database restarted": (hosts.restart_database, 0.0),
            "database read-only": (hosts.make_read_only, 0.0),
            "database slow": (hosts.slow_down_database, 0.0),
        }
        self._order: list[str] = []
        self.again: list[int] = []
        """Ids of jobs that were enqueued once more, with the same key."""
        self.problems: list[str] = []

    def play(self, number: int) -> Failover:
        """Play one fault, and measure."""
        hosts = self._hosts
        victim = hosts.brokers[hosts.leader()]
        if not self._order:
            self._order = random.sample(sorted(self._faults), len(self._faults))
        name = self._order.pop()
        act, least_s = self._faults[name]
        _say(f"{victim.name} leads: {name}")
        key = f"{int(time.time()):x}-{number:024x}"
        before = self._enqueued(key)
        over, struck = threading.Event(), time.time()
        acting = threading.Thread(target=act, args=(victim, over), daemon=True)
        acting.start()
        began = self._recovered(struck)
        if (after := self._enqueued(key)) != before:
            self.problems.append(f"a retried enqueue got job {after}, not {before}")
        time.sleep(max(0.0, struck + least_s - time.time()))
        over.set()
        acting.join()
        return Failover(name, began - struck)

    def _recovered(self, struck: float) -> float:
        """Return when jobs start again; one may just have been on its way."""
        return until(
            lambda: self._ledger.next_start(struck + 0.5), "no job starts any more"
        )

    def _enqueued(self, key: str) -> int:
        """Enqueue on the laptop with a key, and return the id."""
        words = (sys.executable, "-c", _AGAIN, key, self._ledger.line)
        ran = self._hosts.laptop.shell(shlex.join(words))
        assert ran.returncode == 0, ran.stderr
        self.again.append(int(ran.stdout))
        return int(ran.stdout)


def check(ids: set[int], refused: int, ledger: Ledger) -> list[str]:
    """Return what is wrong with the ledger once all jobs have started."""
    until(
        lambda: ids - set(ledger.starts()),
        "every job starts",
        lambda missing: not missing,
    )
    ran = Counter(ledger.starts())
    problems = [f"job {job} ran {n} times" for job, n in ran.items() if n > 1]
    # A call that failed may have been carried out.
    if len(ran.keys() - ids) > refused:
        problems.append(f"jobs ran that nobody was told of: {sorted(ran.keys() - ids)}")
    return problems


def report(played: list[Failover], jobs: int, problems: list[str]) -> str:
    """Say what came of it."""
    lines = [f"faults {len(played)}, jobs {jobs}, problems {len(problems)}", *problems]
    lines += [
        "",
        "| fault | times | median s | longest s | bar s |",
        "|---|---|---|---|---|",
    ]
    for fault in sorted({one.fault for one in played}):
        took = sorted(one.took_s for one in played if one.fault == fault)
        middle = statistics.median(took)
        lines.append(
            f"| {fault} | {len(took)} | {middle:.1f} | {took[-1]:.1f} | {BAR_S:g} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the campaign; the exit code is 0 if nothing was lost or run twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--keep", type=Path, help="a new folder for homes and logs")
    asked = parser.parse_args()
    if asked.keep is not None:
        asked.keep.mkdir()
        return _run(asked.keep, asked.kills)
    with tempfile.TemporaryDirectory() as name:
        return _run(Path(name), asked.kills)


def _run(folder: Path, kills: int) -> int:
    folder.chmod(0o755)
    hosts = BrokerHosts(folder)
    try:
        hosts.start()
        return _campaign(hosts, folder, kills)
    finally:
        hosts.close()


def _campaign(hosts: BrokerHosts, folder: Path, kills: int) -> int:
    ledger = Ledger(folder / "ledger")
    followers = Followers(hosts, folder)
    brokers = hosts.brokers.values()
    clients = [Client(one, ledger.brokers_line, SELDOM_S) for one in brokers]
    clients.append(Client(hosts.laptop, ledger.line))
    campaign, played = Campaign(hosts, ledger), list[Failover]()
    try:
        for number in itertools.islice(itertools.count(1), kills):
            _say(f"{number} begins at {time.strftime('%T')}")
            played.append(campaign.play(number))
            _say(f"{number} {played[-1].fault}: {played[-1].took_s:.1f} s")
    finally:
        for client in clients:
            client.stop()
    given = [id for client in clients for id in client.ids] + [*set(campaign.again)]
    failures = [said for client in clients for said in client.failures]
    problems = campaign.problems
    if len(set(given)) != len(given):
        problems.append("an id was given twice")
    problems += check(set(given), len(failures), ledger)
    problems += followers.problems()
    problems += hosts.defects()
    _say(report(played, len(given), problems))
    for failure, times in sorted(Counter(failures).items()):
        _say(f"refused {times} times: {failure}")
    return 1 if problems else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
