"""Daemon and keeper killed at named places, with jobs in flight.

Whatever was being done there, afterwards ledger, database and output agree: nothing is
lost, nothing has run twice, and no exit code is wrong.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from grass.client.client import Client
from grass.client.connection import Broken
from grass.errors import GrassError
from grass.keeper import crash_points
from tests.fault.witness import Verdict, judge, line
from tests.support.fifo import Fifo
from tests.support.homes import GRASS, GrassHome
from tests.support.patience import PATIENCE_S, until

pytestmark = pytest.mark.daemon

JOBS = 14
DAEMON_POINTS = (
    "broker.before-commit:9",
    "broker.after-commit:2",
    "broker.before-answer:7",
    "broker.before-dispatch:2",
    "worker.before-start:4",
    "worker.before-forget:1",
    "worker.before-report:6",
)
KEEPER_POINTS = (
    "keeper.before-record:6",
    "keeper.after-record:7",
    "keeper.before-spawn:1",
    "keeper.after-spawn:5",
    "keeper.after-reap:1",
    "keeper.before-publish:7",
    "keeper.after-publish:2",
)
"""Each point once, some early and some with many jobs in flight; the simulation kills
everywhere."""
IDLE_KEEPER_POINTS = (
    "keeper.before-rename:1",
    "keeper.before-publish:1",
    "keeper.after-publish:1",
    "keeper.before-record:1",
)
"""Before any job was started: nothing could have been seen by the keeper alone."""
KEEPER_DIED = ("keeper.lost", "keeper.unreachable")


class Doomed:
    """A daemon in the foreground that will be killed, or whose keeper will."""

    def __init__(self, home: GrassHome, point: str) -> None:
        self.home = home
        self.ledger = home.desk / "ledger"
        self.numbers: dict[int, int] = {}
        """Each acknowledged job's id, and the number it was given here."""
        self.client = Client(home.client.home, may_start=False)
        self._log = home.desk / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*GRASS, "daemon"],
                stdin=subprocess.DEVNULL,
                stderr=log,
                cwd=home.desk,
                env={**home.environment, crash_points.VARIABLE: point},
            )

    def enqueue_until_killed(self) -> None:
        """Go on until the daemon is gone; sends again what was not answered."""
        self.enqueue_until(lambda: self._process.poll() is not None)
        assert self._process.returncode == -signal.SIGKILL

    def enqueue_until_keeper_is_killed(self) -> None:
        """Go on until the daemon has noticed, then kill it as well."""
        self.enqueue_until(self._keeper_died)
        self._process.kill()
        self._process.wait()

    def _keeper_died(self) -> bool:
        told = self._log.read_text()
        return any(words in told for words in KEEPER_DIED)

    def enqueue_until(self, over: Callable[[], bool]) -> None:
        """Enqueue one job after the other until something has happened."""
        deadline = time.monotonic() + PATIENCE_S
        number = 1
        while not over():
            assert time.monotonic() < deadline, "the place was never reached"
            if number > JOBS or not self._enqueued(number):
                time.sleep(0.005)
            else:
                number += 1

    def _enqueued(self, number: int) -> bool:
        try:
            reply = self.client.once("POST", "/jobs", self.body(number))
        except (Broken, GrassError):
            return False
        self.numbers[reply["first"]] = number
        return True

    def body(self, number: int) -> dict[str, object]:
        """Give the call by which a job is enqueued, the same each time."""
        directory = str(self.home.desk)
        jobs = [self.job(number)]
        return {"jobs": jobs, "key": f"job-{number}", "directory": directory}

    def job(self, number: int) -> dict[str, object]:
        """Describe one job."""
        seconds = 0.02 * (number % 4)
        command = line(self.ledger, number, seconds)
        return {"command": command, "name": str(number), "require": "{cpu:0.25}"}

    def has_started(self, id: int) -> bool:
        """Tell whether a job runs or has ended."""
        job = self.home.client.job(id)
        return job["pid"] is not None or job["finished_at"] is not None

    def finish(self) -> Verdict:
        """Start another daemon, enqueue the rest, and tell how all of it ended."""
        self.client.close()
        self.home.ok("start")
        for number in range(1, JOBS + 1):
            reply = self.home.client.once("POST", "/jobs", self.body(number))
            known = self.numbers.setdefault(reply["first"], number)
            assert known == number
        self.home.wait(*self.numbers)
        return judge(self.home, self.ledger, self.numbers)

    def close(self) -> None:
        """Kill it, if nothing else did."""
        self.client.close()
        self._process.kill()
        self._process.wait()


@pytest.fixture
def doomed(cold: GrassHome, request: pytest.FixtureRequest) -> Iterator[Doomed]:
    one = Doomed(cold, request.param)
    yield one
    one.close()


@pytest.mark.parametrize("doomed", DAEMON_POINTS, indirect=True)
def test_a_daemon_killed_there_leaves_nothing_undone(doomed: Doomed) -> None:
    doomed.enqueue_until_killed()
    verdict = doomed.finish()
    assert verdict.fine
    assert verdict.called_lost == []


@pytest.mark.parametrize("doomed", IDLE_KEEPER_POINTS, indirect=True)
def test_a_keeper_killed_before_any_start_loses_nothing(doomed: Doomed) -> None:
    doomed.enqueue_until_keeper_is_killed()
    verdict = doomed.finish()
    assert verdict.fine
    assert verdict.called_lost == []


@pytest.mark.parametrize("doomed", KEEPER_POINTS, indirect=True)
def test_a_keeper_killed_there_takes_at_most_what_only_it_saw(doomed: Doomed) -> None:
    doomed.enqueue_until_keeper_is_killed()
    verdict = doomed.finish()
    assert verdict.fine
    for one in verdict.called_lost:
        assert one.reason is not None
        assert "keeper was killed" in one.reason


@pytest.mark.parametrize("doomed", ["keeper.before-spawn:9"], indirect=True)
def test_a_keeper_killed_among_many_starts_costs_one_of_them(
    doomed: Doomed, gate: Fifo
) -> None:
    doomed.enqueue_until(lambda: len(doomed.numbers) == 1)
    doomed.home.wait(*doomed.numbers)
    # They ask for nothing, so all of them start at once; the next keeper has fewer to
    # start than would have it killed as well. None ends before that one watches it.
    jobs = [{**doomed.job(number), "require": "{}"} for number in range(2, JOBS + 1)]
    for job in jobs:
        job["command"] = f"read x < {gate}; {job['command']}"
    body = {"jobs": jobs, "directory": str(doomed.home.desk)}
    first = doomed.client.once("POST", "/jobs", body)["first"]
    doomed.numbers |= {first + place: place + 2 for place in range(JOBS - 1)}
    until(lambda: all(map(doomed.has_started, doomed.numbers)), "some do not start")
    gate.tell(times=len(jobs))
    doomed.home.wait(*doomed.numbers)
    verdict = judge(doomed.home, doomed.ledger, doomed.numbers)
    assert verdict.fine
    [lost] = verdict.called_lost
    assert lost.output is not None


def test_no_job_sees_the_wish(cold: GrassHome) -> None:
    with contextlib.closing(Doomed(cold, "nowhere:1")) as daemon:
        daemon.enqueue_until(cold.folder.joinpath("grass.sock").exists)
        job = {"command": ["env"], "name": "1"}
        reply = daemon.client.once("POST", "/jobs", {"jobs": [job]})
        cold.wait(reply["first"])
        assert crash_points.VARIABLE not in cold.logs(reply["first"])
