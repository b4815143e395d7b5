"""Guests on a machine that works for another machine's broker: real daemons and TLS."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT, steps
from tests.profiles.programs import SOURCE, Programs, python, script
from tests.support.machines import (
    LOOPBACK,
    Machine,
    await_worker,
    invitation,
    join,
    machines,
    new_line,
    place_of,
)
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

HOLD = """
import grass, os, sys
with grass.allocate(require={"slot": 1}, name="held") as a:
    print(a.job, os.environ["GRASS_SLOT"], os.getpid(), flush=True)
    sys.stdin.readline()
print("given back", flush=True)
sys.stdin.readline()
"""


class Lab:
    """A broker without a worker, and a machine `rack` that has one slot for it."""

    def __init__(self, machine: Machine) -> None:
        self.broker, self.rack = machine("broker"), machine("rack")
        started = self.broker.ok("start", *LOOPBACK, "--no-worker")
        self.address = place_of(invitation(started))
        join(self.broker, self.rack, "rack")
        self.rack.ok("capacity", "add", "{slot:1}")

    def stop_broker(self) -> None:
        self.broker.ok("stop")
        self.broker.client.close()

    def start_broker(self) -> None:
        self.broker.ok("start", "--bind", self.address)
        await_worker(self.broker, "rack", connected=True)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A broker, and a worker on another machine."""
    with machines(tmp_path_factory.mktemp("lab")) as machine:
        yield Lab(machine)


@pytest.fixture
def programs(lab: Lab) -> Iterator[Programs]:
    """Programs beside a test; the next one finds nothing of them."""
    begun = Programs()
    yield begun
    begun.end()
    lab.broker.run("wait", "all")


def told(program: subprocess.Popen[str]) -> list[str]:
    """Read a line of what a program prints."""
    assert program.stdout is not None
    return program.stdout.readline().split()


def go_on(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()


def queued(lab: Lab) -> int:
    """Return the one guest that waits."""
    (found,) = until(
        lambda: list(lab.broker.client.jobs(states=["queued"])), "no guest waits"
    )
    return int(found["id"])


def test_guest_is_a_job_of_the_broker_on_the_worker_of_its_machine(
    lab: Lab, programs: Programs
) -> None:
    holder = programs.begin(lab.rack, HOLD)
    job, *rest = told(holder)
    assert rest == ["0", str(holder.pid)]
    document = lab.broker.client.job(job)
    assert (document["worker"], document["guest"]) == ("rack", holder.pid)
    assert (document["name"], document["owner"]) == ("held", "token:rack")
    other = programs.begin(lab.rack, HOLD)
    waits = queued(lab)
    assert "needs slot 1, free 0 of 1" in lab.rack.ok("explain", str(waits))
    go_on(holder)
    assert told(holder) == ["given", "back"]
    assert told(other) == [str(waits), "0", str(other.pid)]
    assert lab.broker.wait(int(job))["state"] == "succeeded"
    lab.rack.ok("cancel", str(waits))
    assert other.wait() == -signal.SIGTERM
    assert lab.broker.wait(waits)["state"] == "cancelled"


def test_program_of_the_page_runs_on_another_machine(lab: Lab) -> None:
    lab.rack.ok("capacity", "add", "{gpu:1}")
    page = (ROOT / "docs/how-to/python.md").read_text()
    files = dict(one.file for one in steps(page) if one.file is not None)
    ran = script(lab.rack, "block.py", files["block.py"])
    assert ran.stdout == "holding 1 GPU\ngiven back\n", ran.stderr
    (job,) = lab.broker.client.jobs(name="half")
    # The units go back to the machine's worker, which tells the broker afterwards.
    ended = lab.broker.wait(int(job["id"]))
    assert (ended["worker"], ended["state"]) == ("rack", "succeeded")


def test_guest_that_is_killed_gives_up_its_wait_or_its_units(
    lab: Lab, programs: Programs
) -> None:
    holder = programs.begin(lab.rack, HOLD)
    job = int(told(holder)[0])
    waiting = programs.begin(lab.rack, HOLD)
    waits = queued(lab)
    waiting.kill()
    assert lab.broker.wait(waits)["state"] == "cancelled"
    holder.kill()
    assert lab.broker.wait(job)["state"] == "failed"


def test_restarts_of_worker_and_broker_are_not_noticed(
    lab: Lab, programs: Programs
) -> None:
    holder = programs.begin(lab.rack, HOLD)
    job = int(told(holder)[0])
    waiting = programs.begin(lab.rack, HOLD)
    waits = queued(lab)
    lab.rack.ok("restart")
    lab.stop_broker()
    lab.start_broker()
    assert lab.broker.client.job(job)["pid"] == holder.pid
    holder.communicate("\n\n")
    assert told(waiting)[0] == str(waits)
    waiting.communicate("\n\n")
    assert lab.broker.wait(job)["state"] == "succeeded"
    assert lab.broker.wait(waits)["state"] == "succeeded"


def test_broker_that_is_away_hears_of_guests_when_it_is_back(
    lab: Lab, programs: Programs
) -> None:
    holder = programs.begin(lab.rack, HOLD)
    job = int(told(holder)[0])
    waiting = programs.begin(lab.rack, HOLD)
    waits = queued(lab)
    lab.stop_broker()
    go_on(holder)
    assert told(holder) == ["given", "back"]
    code = """
import grass
@grass.job(cpu=1, continue_on_server_unavailable=True)
def f(): return 7
print(f() + f())
"""
    ran = python(lab.rack, code)
    assert ran.stdout == "14\n", ran.stderr
    assert ran.stderr.count("without an allocation") == 1
    assert f"the broker at {lab.address} cannot be reached" in ran.stderr
    refused = python(lab.rack, "import grass\nwith grass.allocate(cpu=1): pass")
    assert "NoBroker" in refused.stderr
    lab.start_broker()
    assert lab.broker.wait(job)["state"] == "succeeded"
    assert told(waiting)[0] == str(waits)
    # Of the guest that gave back, the process is there still.
    assert holder.poll() is None


def test_machine_without_a_worker_takes_no_guests(lab: Lab, machine: Machine) -> None:
    laptop = machine("laptop")
    laptop.ok("join", new_line(lab.broker, "--role", "submit"))
    code = "import grass\nwith grass.allocate(cpu=1): print('held')"
    ran = python(laptop, code)
    assert f"only calls the broker at {lab.address} and has no worker" in ran.stderr
    assert "`grass start` gives it a queue of its own" in ran.stderr
    laptop.ok("start")
    assert python(laptop, code).stdout == "held\n"


def test_role_that_may_not_enqueue_takes_no_guests(lab: Lab, machine: Machine) -> None:
    hand = machine("hand")
    hand.ok("join", "--name", "hand", new_line(lab.broker, "--role", "worker"))
    await_worker(lab.broker, "hand", connected=True)
    ran = python(hand, "import grass\nwith grass.allocate(cpu=1): pass")
    assert "the right `submit`, which the role `worker` does not have" in ran.stderr


def test_inside_a_job_units_of_that_job_are_taken(lab: Lab) -> None:
    code = "import grass\nwith grass.allocate(cpu=1) as a: print(a.job, a.units)"
    words = ("--env", f"PYTHONPATH={SOURCE}", "--", sys.executable, "-c", code)
    job = lab.broker.enqueue(*words)
    assert lab.broker.wait(job)["state"] == "succeeded"
    assert lab.broker.logs(job).startswith("None {'cpu': [")
