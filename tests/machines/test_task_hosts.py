"""Functions on other machines: real daemons on loopback, and programs that use them."""

import platform
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from grass.tasks.host.host_frames import FRAMES_VERSION
from grass.tasks.machines.task_host import mismatch
from tests.machines.programs import Program, joined, node
from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome
from tests.support.machines import Machine, join, machines
from tests.support.patience import until
from tests.support.processes import kill

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

FRAMES = str(FRAMES_VERSION)
RUN = """
async def main():
    async with grain.open_waitgroup() as wg:
        for word in {words!r}:
            wg.submit(grain.Cores(1), {function}, word)
    print(*wg.results)

grain.run_combine(main, [{address!r}], grain.Node(N={cores}, M=0.1), {options})
"""
"""Where the head has one core and the host has one, two words run side by side."""


class Lab(NamedTuple):
    """A broker with a worker, and a machine whose programs use it."""

    head: GrassHome
    node: GrassHome
    address: str

    def text(
        self,
        words: str = "ab",
        function: str = "held",
        cores: int = 1,
        options: str = "",
    ) -> str:
        return RUN.format(
            words=words,
            function=function,
            address=self.address,
            cores=cores,
            options=options,
        )

    def replace_daemon(self) -> None:
        """Kill the daemon, and start one at the same port."""
        self.node.kill_daemon()
        self.node.ok("start", "--bind", self.address)

    def newest(self) -> Document:
        """Return the task host that was enqueued last."""
        jobs = self.node.client.jobs(newest_first=True)
        return next(jobs, {"state": "none"})

    def host(self) -> Document:
        """Return the task host that was enqueued last, once it runs."""
        return until(
            self.newest,
            "there is no task host",
            lambda job: job["state"] == "running" and job["pid"],
        )

    def last(self, state: str) -> Document:
        """Return the task host that was enqueued last, once it is in a state."""
        return until(
            self.newest,
            f"the task host has not {state}",
            lambda job: job["state"] == state,
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that no test of this module leaves otherwise than it was."""
    with machines(tmp_path_factory.mktemp("lab")) as machine:
        yield made(machine)


def made(machine: Machine) -> Lab:
    head, broker = machine("head"), machine("node")
    address = node(broker)
    joined(head, broker)
    return Lab(head, broker, address)


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path, gate: Fifo) -> Iterator[Start]:
    """Start programs, and end those that a test leaves."""
    begun: list[Program] = []

    def make(lab: Lab, text: str) -> Program:
        begun.append(Program(lab.head, text, str(gate), cwd=tmp_path))
        return begun[-1]

    yield make
    for one in begun:
        one.end()


def begun_on_both(program: Program, lab: Lab) -> int:
    """Wait until one word runs here and one there; return the host's job."""
    job = int(lab.host()["id"])
    until(
        lambda: sorted(line.split()[1] for line in program.noted()),
        "the functions did not begin on both",
        lambda places: places == sorted([str(job), "head"]),
    )
    return job


def test_functions_run_here_and_there(lab: Lab, start: Start, gate: Fifo) -> None:
    program = start(lab, lab.text())
    job = begun_on_both(program, lab)
    shown = lab.node.client.job(job)
    assert shown["name"] == "tasks of prog.py"
    assert shown["command"] == ["python", "-m", "grass.tasks.host", "asyncio", "30"]
    gate.tell(times=2)
    assert program.result() == "a b\n"
    assert lab.last("succeeded")["id"] == job


BUSY = """
async def beside(main):
    # The core that is here runs `held`, and so the other one all else.
    import anyio
    async with anyio.create_task_group() as group:
        group.start_soon(grain.exec1, grain.Cores(1), held, "a")
        while not os.path.getsize(LEDGER):
            await anyio.sleep(0.01)
        await main()
        group.cancel_scope.cancel()

def run(main, **options):
    where = [{address!r}], grain.Node(N=1, M=0.1)
    grain.run_combine(lambda: beside(main), *where, **options)
"""
COROUTINES = """
import helper

async def paused(word):
    note(word)
    passed()
    return word, grain.GVAR.instance.partition("(")[2], await helper.doubled(4)

async def main():
    print(await grain.exec1(grain.Cores(1), paused, "b"))

run(main, backend={backend!r})
"""
HELPER = """
import grass

@grass.subprocify
def doubled(number):
    return Pair(number)

class Pair:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"Pair({2 * self.number})"
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_coroutine_functions_and_modules_beside_the_script_run_there(
    lab: Lab, start: Start, gate: Fifo, tmp_path: Path, backend: str
) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    text = BUSY + COROUTINES
    program = start(lab, text.format(address=lab.address, backend=backend))
    job = begun_on_both(program, lab)
    gate.tell(times=2)
    assert program.result() == f"('b', 'job {job})', Pair(8))\n"


RAISES = """
import helper

def fails(word):
    helper.fail(word)

async def main():
    try:
        await grain.exec1(grain.Cores(1), fails, "no")
    except helper.Trouble as error:
        there = "helper.fail(word)" in str(error.__cause__)
        print(error, type(error) is helper.Trouble, there)

run(main)
"""
MISSING = """
sys.path.insert(0, os.path.dirname(LEDGER) + "/lib")

def uses():
    import only_here

async def main():
    import only_here
    await grain.exec1(grain.Cores(1), uses)

run(main)
"""
TROUBLE = """
class Trouble(Exception):
    pass

def fail(word):
    raise Trouble(word)
"""


def test_an_exception_comes_back_with_the_traceback_there(
    lab: Lab, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text(TROUBLE)
    program = start(lab, (BUSY + RAISES).format(address=lab.address))
    assert program.result() == "no True True\n"


def test_a_module_that_is_missing_there_is_named_in_a_line(
    lab: Lab, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "only_here.py").write_text("")
    program = start(lab, (BUSY + MISSING).format(address=lab.address))
    last = program.failure()
    assert "`uses` needs the module `only_here`, which" in last
    assert f"{lab.address} (Python 3." in last
    assert "does not have; here, with Python 3." in last


def test_a_host_that_is_killed_costs_a_retry_where_that_is_allowed(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    program = start(lab, lab.text())
    job = begun_on_both(program, lab)
    kill(lab.node.client.job(job)["pid"])
    lab.last("failed")
    # The one that ran there waits for the core that is here.
    gate.tell()
    until(program.noted, "nothing was tried again", lambda noted: len(noted) == 3)
    gate.tell()
    assert program.result() == "a b\n"
    assert sorted(line.split()[1] for line in program.noted()) == sorted(
        [str(job), "head", "head"]
    )


def test_a_host_that_is_killed_fails_what_must_not_run_twice(
    lab: Lab, start: Start
) -> None:
    program = start(lab, lab.text(options="reschedule=False"))
    job = begun_on_both(program, lab)
    kill(lab.node.client.job(job)["pid"])
    said = program.failure()
    assert f"`held` is lost: the task host on {lab.address}, job {job}, was" in said
    assert len(program.noted()) == 2


def test_a_host_that_a_person_cancels_is_given_up(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    program = start(lab, lab.text())
    job = begun_on_both(program, lab)
    lab.node.ok("cancel", str(job))
    gate.tell(times=1)
    until(program.noted, "nothing was tried again", lambda noted: len(noted) == 3)
    gate.tell()
    printed, said = program.process.communicate()
    assert printed == "a b\n"
    assert f"grass: the task host on {lab.address}, job {job}, was cancelled" in said


def test_ctrl_c_ends_the_host_with_all_its_processes(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    program = start(lab, lab.text())
    begun_on_both(program, lab)
    program.process.send_signal(signal.SIGINT)
    program.failure()
    lab.last("cancelled")
    until(
        lambda: lab.node.client.workers()["workers"][0]["running"],
        "something still runs",
        lambda running: running == 0,
    )


def test_a_program_that_is_killed_takes_its_host_along(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    text = "from grass.tasks.machines import addresses\naddresses.PATIENCE_S = 1.0\n"
    program = start(lab, text + lab.text())
    job = begun_on_both(program, lab)
    program.process.kill()
    assert lab.last("failed")["id"] == job
    assert "the program was not heard for 1 s" in lab.node.logs(job)


LATE = """
import anyio, socket
from grass.client.task_channel import TaskChannel

opened = []
begin = TaskChannel.__init__

def noted(self, channel):
    opened.append(self)
    begin(self, channel)

TaskChannel.__init__ = noted
from grass.tasks.machines import addresses, signs_of_life
addresses.PATIENCE_S, signs_of_life.BEAT_S = 2.0, 0.2

async def main():
    async with grain.open_waitgroup() as wg:
        wg.submit(grain.Cores(1), held, "a")
        wg.submit(grain.Cores(1), held, "b")
        while len(open(LEDGER).readlines()) < 2:
            await anyio.sleep(0.05)
        if {cut!r}:
            opened[-1]._channel.shutdown(socket.SHUT_RDWR)
        time.sleep(4)
        note("busy")
    print(*wg.results)

grain.run_combine(main, [{address!r}], grain.Node(N=1, M=0.1))
"""


@pytest.mark.parametrize("cut", [False, True])
def test_a_program_that_is_busy_keeps_its_host(
    lab: Lab, start: Start, gate: Fifo, *, cut: bool
) -> None:
    """Its event loop does nothing for longer than a host waits to hear of it.

    Not even if its connection breaks before that.
    """
    program = start(lab, LATE.format(address=lab.address, cut=cut))
    until(program.noted, "it was not busy", lambda noted: "busy head" in noted)
    gate.tell(times=2)
    assert program.result() == "a b\n"
    assert len(program.noted()) == 3


def test_a_host_that_waits_for_units_holds_nobody_up(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    cores = len(lab.node.client.workers()["workers"][0]["free"]["cpu"])
    job = lab.node.enqueue("-c", str(cores), "--", "sleep", "600")
    program = start(lab, lab.text())
    gate.tell(times=2)
    assert program.result() == "a b\n"
    assert {line.split()[1] for line in program.noted()} == {"head"}
    lab.last("cancelled")
    lab.node.ok("cancel", str(job))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("[{0!r}]", "`rpw` says what each machine gives"),
        ("{0!r}, grain.Cores(1)", "addresses are a list"),
        ("['local'], grain.Cores(1)", "`local` is no address of a broker"),
        ("[{0!r}], grain.Cores(999)", "999"),
        ("['127.0.0.1:1'], grain.Cores(1)", "cannot be reached: connection refused"),
    ],
)
def test_bad_addresses_are_refused_in_a_sentence(
    lab: Lab, start: Start, call: str, said: str
) -> None:
    text = "async def main():\n    pass\n\n"
    program = start(lab, f"{text}grain.run_combine(main, {call.format(lab.address)})\n")
    assert said in program.failure().splitlines()[-1]


EXECUTOR = """
with grain.GrainExecutor([{address!r}], grain.Node(N=1, M=0.1)) as executor:
    for word in "ab":
        executor.submit(grain.Cores(1), held, word)
print(*executor.results)
"""


def test_the_executor_of_grain_takes_addresses(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    program = start(lab, EXECUTOR.format(address=lab.address))
    begun_on_both(program, lab)
    gate.tell(times=2)
    assert program.result() == "a b\n"


def test_a_host_that_cannot_start_leaves_the_work_to_the_others(
    lab: Lab, start: Start, gate: Fifo
) -> None:
    missing = "import grass.tasks.machines.addresses as a; a.MODULE = 'grass.nothing'\n"
    program = start(lab, missing + lab.text())
    assert program.process.stderr is not None
    said = program.process.stderr.readline()
    gate.tell(times=2)
    assert program.result() == "a b\n"
    job = lab.last("failed")["id"]
    assert f"job {job}, has ended with exit code 1; see `grass logs {job}`" in said


def test_another_minor_version_of_python_is_refused_with_both() -> None:
    told = {"python": "3.9.1", "program": "/usr/bin/python3.9", "frames": FRAMES}
    refused = mismatch("node1:7501 (Python 3.9.1, /usr/bin/python3.9)", told)
    assert refused is not None
    assert "Python 3.9.1" in refused.message
    assert f"Python {platform.python_version()}" in refused.message
    other = mismatch("node1:7501", {"python": platform.python_version()})
    assert other is not None
    assert "another version of Grass" in other.message
    same = {"python": platform.python_version(), "frames": told["frames"]}
    assert mismatch("node1:7501", same) is None


@pytest.mark.parametrize("part", ["daemon", "keeper"])
def test_nothing_is_lost_or_run_twice_when_a_daemon_or_keeper_is_killed(
    machine: Machine, start: Start, gate: Fifo, part: str
) -> None:
    lab = made(machine)
    program = start(lab, lab.text("abcd"))
    begun_on_both(program, lab)
    if part == "daemon":
        lab.replace_daemon()
    else:
        lab.node.kill_keeper()
    gate.tell(times=4)
    assert program.result() == "a b c d\n"
    assert sorted(line.split()[0] for line in program.noted()) == list("abcd")
    # A code that only the keeper had seen is not known without it.
    until(lab.newest, "it has not ended", lambda job: job["finished_at"] is not None)


def test_nothing_is_lost_or_run_twice_when_the_broker_is_killed(
    machine: Machine, start: Start, gate: Fifo
) -> None:
    head, broker, worker = machine("head"), machine("broker"), machine("worker")
    address = node(broker, "--no-worker")
    join(broker, worker, "worker")
    joined(head, broker)
    lab = Lab(head, broker, address)
    program = start(lab, lab.text("abcd"))
    begun_on_both(program, lab)
    lab.replace_daemon()
    gate.tell(times=4)
    assert program.result() == "a b c d\n"
    assert sorted(line.split()[0] for line in program.noted()) == list("abcd")
    lab.last("succeeded")


def test_an_address_that_was_not_joined_says_how_to(
    lab: Lab, machine: Machine, start: Start
) -> None:
    other = machine("other")
    address = node(other)
    text = lab._replace(address=address).text()
    said = start(lab, text).failure().splitlines()[-1]
    assert f"the broker at {address} proves the key" in said
    assert "paste the line that it prints: grass join HOST:PORT/PIN/CODE" in said
