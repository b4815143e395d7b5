"""Daemon and keeper killed and stopped at random, while jobs come in, run and end.

A restart of the machine is one as far as Grass can see it: all processes are gone at
once, sockets and locks lie where they were, and the boot is another one.
Where asked, the disk is full meanwhile, or the keeper cannot make processes.

Everything that is drawn comes from one seed. Callers go on enqueueing and repeat what
was not answered; the jobs' own ledger is the witness of what came of it.
"""

import contextlib
import itertools
import os
import random
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from grass.client.client import Client
from grass.client.connection import Broken, open_connection
from grass.errors import GrassError
from tests.fault.timeline import Timeline
from tests.fault.witness import line, lives
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import kill
from tests.support.shortage import ForkLimit, fill, make_room

IN_FLIGHT = 50
MOST_WAITING = 25
CALLERS = 2
QUEUE = "torture"
LONG_LIFE_S, LONG_LIVES = 4.0, 0.04
"""A few live long enough to take hold of processes besides the keeper."""
LONGEST_STOP_S = 0.3
STOPPED_FIRST = 0.2
"""The share of kills before which something is stopped for a while."""
BLIND, LONGEST_BLIND_S = 0.7, 3.0
"""How often, and for how long, a machine that goes down had no daemon before."""
DRAIN_S = 120.0
BURST = 5
"""How many jobs a caller enqueues before it looks how many wait."""
UNFINISHED = ("held", "waiting", "queued", "running")


class Timing(NamedTuple):
    """How long daemon and keeper live before the next kill."""

    shortest_s: float
    longest_s: float
    ready_first: float
    """The share of kills that wait for a daemon that answers."""


SHORT = Timing(0.0, 1.0, 0.3)
"""What is short meanwhile lasts for several kills."""
LONGEST_SHORTAGE_S = 4.0
HASTY = Timing(0.0, 0.35, 0.5)
"""Much is caught on its way up."""
CALM = Timing(2.0, 3.0, 1.0)
"""Most processes are held by the daemon before their keeper dies."""


class Caller(threading.Thread):
    """Goes on enqueueing; what was not answered is sent again under the same key."""

    def __init__(self, torture: "Torture") -> None:
        super().__init__(daemon=True)
        self._torture = torture
        self._client = Client(torture.home.client.home)
        self.errors: Counter[tuple[str, str]] = Counter()
        self.numbers: dict[int, int] = {}
        self.power = threading.Lock()
        """Held while it calls: nobody calls while the machine is down."""

    def run(self) -> None:
        while not self._torture.enough.is_set():
            if self._patiently(self._waiting) >= IN_FLIGHT + MOST_WAITING:
                self._torture.enough.wait(0.05)
                continue
            for _ in range(BURST):
                self._enqueue()
        self._client.close()

    def _waiting(self) -> int:
        return unfinished(self._client)

    def _enqueue(self) -> None:
        number = self._torture.next_number()
        body = self._torture.body(number)
        job = self._patiently(lambda: self._client.once("POST", "/jobs", body)["first"])
        self.numbers[job] = number

    def _patiently(self, call: Callable[[], int]) -> int:
        while True:
            try:
                with self.power:
                    return call()
            except Broken:
                pass
            except GrassError as error:
                self.errors[type(error).__name__, str(error).split(":")[0]] += 1
            time.sleep(0.01)


class Victim:
    """A process held by descriptor, so that no other is ever hit in its place."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor

    @classmethod
    def of(cls, pid: int, word: bytes) -> "Victim | None":
        """Take hold of a process, if its command line has this word."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        try:
            said = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            said = b""
        if word in said:
            return cls(pid, descriptor)
        os.close(descriptor)
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)

    def send(self, number: int) -> None:
        """Send a signal; after SIGKILL, return when the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)
        if number == signal.SIGKILL:
            assert select.select([self._descriptor], [], [], 30.0)[0], self.pid


class Torture:
    """One run: a home, those who enqueue, and the one who kills."""

    def __init__(
        self,
        home: GrassHome,
        seed: int,
        timing: Timing = HASTY,
        disk: Path | None = None,
    ) -> None:
        self.home = home
        self._disk = disk
        self._forks = ForkLimit()
        self._short_until: dict[str, float] = {}
        self._timing = timing
        self.ledger = home.desk / "ledger"
        self.enough = threading.Event()
        self.timeline = Timeline()
        self.done: Counter[str] = Counter()
        self._seed = seed
        self._chance = random.Random(seed)
        self._counter = itertools.count(1)
        self._lock = threading.Lock()
        self._callers = [Caller(self) for _ in range(CALLERS)]

    # What callers need.

    def next_number(self) -> int:
        with self._lock:
            return next(self._counter)

    def body(self, number: int) -> dict[str, object]:
        """Give the call that enqueues a job, the same each time it is made."""
        chance = random.Random(f"{self._seed} {number}")
        seconds = chance.choice((0.0, 0.05, 0.3, 1.0, 2.0)) * (0.5 + chance.random())
        job: dict[str, object] = {
            "command": line(self.ledger, number, seconds),
            "name": str(number),
            "queue": QUEUE,
            "require": "{slot:1}",
        }
        if self._disk is not None:
            # The job's own shell says it on stderr when it cannot fork.
            job["command"] = f"exec 2>/dev/null; {job['command']}"
            # What a job writes to a full disk is lost, and nobody's fault.
            job["output"] = str(self.home.desk / "output" / f"{number}.log")
        directory = str(self.home.desk)
        return {"jobs": [job], "key": f"{self._seed}-{number}", "directory": directory}

    # The one who kills.

    def run(self, kills: list[str], progress: Callable[[int], None]) -> None:
        """Kill what the list names, one after the other."""
        self.home.ok("start")
        self.home.ok("create-queue", QUEUE, "--json", f"{{slot:{IN_FLIGHT}}}")
        for caller in self._callers:
            caller.start()
        try:
            for number, victim in enumerate(kills):
                self._live_for_a_while()
                if self._chance.random() < STOPPED_FIRST:
                    self._stop_something(kills)
                if victim in ("disk", "forks"):
                    self._run_short_of(victim)
                else:
                    self._kill(victim)
                progress(number + 1)
        finally:
            self._mend(*self._short_until)
            self.enough.set()
        for caller in self._callers:
            caller.join()

    def _live_for_a_while(self) -> None:
        """Let daemon and keeper come up, or be caught on their way."""
        if self._chance.random() < self._timing.ready_first:
            while not self._sees_both():
                time.sleep(0.005)
        long = self._chance.random() < LONG_LIVES
        longest_s = LONG_LIFE_S if long else self._timing.longest_s
        life_s = self._chance.uniform(self._timing.shortest_s, longest_s)
        until = time.monotonic() + life_s
        while time.monotonic() < until:
            self._sees_both()
            time.sleep(0.005)

    def _run_short_of(self, what: str) -> None:
        """Fill the disk, or let the keeper make no processes, for a while."""
        if what == "disk":
            assert self._disk is not None
            self.timeline.disk_full()
            fill(self._disk)
        else:
            with self._seized("keeper") as victim, contextlib.suppress(OSError):
                self._forks.deny(victim.pid)
        lasts_s = self._chance.uniform(0.1, LONGEST_SHORTAGE_S)
        self._short_until[what] = time.monotonic() + lasts_s
        self.done[f"short of {what}"] += 1

    def _mend(self, *short: str) -> None:
        for what in short:
            del self._short_until[what]
            if what == "disk":
                assert self._disk is not None
                make_room(self._disk)
                self.timeline.disk_has_room()
            else:
                self._forks.allow()

    def _mend_in_time(self) -> None:
        now = time.monotonic()
        over = [what for what, until in self._short_until.items() if until < now]
        self._mend(*over)

    def _sees_both(self) -> bool:
        self._mend_in_time()
        assert all(caller.is_alive() for caller in self._callers)
        connection = open_connection(self.home.client.home.socket)
        if connection is None:
            return False
        connection.close()
        # A daemon listens only after a keeper has told it all.
        self.timeline.daemon_ready()
        if self.home.keeper_pid() is None:
            return False
        self.timeline.keeper_watches()
        return True

    def _stop_something(self, mortal: list[str]) -> None:
        name = self._chance.choice(("daemon", "keeper"))
        goes_on = self._chance.random() < 0.7 or name not in mortal
        pause = self._chance.random() * LONGEST_STOP_S
        with self._seized(name) as victim:
            self._note_harm(name, killed=not goes_on)
            victim.send(signal.SIGSTOP)
            time.sleep(pause)
            victim.send(signal.SIGCONT if goes_on else signal.SIGKILL)
        self.done[f"{name} stopped"] += 1

    def _restart_machine(self, *, unseen: bool) -> None:
        """Take everything down at once, mostly after the daemon was gone for a while.

        Meanwhile jobs end of which only the keeper knows; `unseen` waits for one.
        """
        with contextlib.ExitStack() as down:
            for caller in self._callers:
                down.enter_context(caller.power)
            if unseen:
                self._kill("daemon")
                until(self._keeper_alone_saw_an_end, "no job ends without a daemon")
            elif self._chance.random() < BLIND:
                self._kill("daemon")
                time.sleep(self._chance.uniform(0.5, LONGEST_BLIND_S))
            self.timeline.machine_down()
            while pids := self.home.processes():
                # Jobs last: a keeper that sees them killed tells that as their end.
                for pid in sorted(pids, key=_is_job):
                    kill(pid)
            self.home.pretend_other_boot()
        self.done["machine restarted"] += 1

    def _keeper_alone_saw_an_end(self) -> bool:
        ends = (life.ended_at for each in lives(self.ledger).values() for life in each)
        return any(end and self.timeline.only_keeper_saw(end) for end in ends)

    def _kill(self, name: str) -> None:
        if name in ("machine", "machine unseen"):
            self._restart_machine(unseen=name == "machine unseen")
            return
        with self._seized(name) as victim:
            self._note_harm(name, killed=True)
            victim.send(signal.SIGKILL)

    def _note_harm(self, name: str, *, killed: bool) -> None:
        if not killed:
            return
        if name == "keeper":
            self.timeline.keeper_still()
        else:
            self.timeline.daemon_killed()
        self.done[f"{name} killed"] += 1

    def _seized(self, name: str) -> Victim:
        """Take hold of the daemon or keeper that lives now, however long it takes."""
        home = self.home
        find = home.daemon_pid if name == "daemon" else home.keeper_pid
        word = b"\0daemon\0" if name == "daemon" else os.fsencode(home.folder)
        while True:
            self._mend_in_time()
            pid = find()
            # A new one may hold the lock that has not yet put its pid there.
            if pid is not None and (victim := Victim.of(pid, word)) is not None:
                return victim
            time.sleep(0.002)

    def drain(self) -> None:
        """Wait until every job has ended."""
        until(
            lambda: unfinished(self.home.client),
            "jobs do not end",
            lambda left: not left,
            DRAIN_S,
        )
        self.timeline.end()
        self._forks.end()

    @property
    def numbers(self) -> dict[int, int]:
        """Every acknowledged job's id, and the number it was given here."""
        return {id: n for one in self._callers for id, n in one.numbers.items()}

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        """What callers were told besides that the connection broke."""
        return sum((one.errors for one in self._callers), Counter())


def _is_job(pid: int) -> bool:
    """Tell whether a process belongs to an attempt."""
    with contextlib.suppress(OSError):
        return b"GRASS_ATTEMPT_ID=" in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def unfinished(client: Client) -> int:
    """Count the jobs that have not ended."""
    counts = client.overview()["daemon"]["jobs"]
    return sum(int(counts.get(state, 0)) for state in UNFINISHED)
