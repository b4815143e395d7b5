"""Functions on machines of a network of their own: Grain's own example, and trouble."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.machines.programs import Program
from tests.support.fifo import Fifo
from tests.support.lan import Host, Lan
from tests.support.machines import await_worker
from tests.support.patience import PATIENCE_S, until

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(180)]
EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "lab_machines.py"

GRAIN = """
def job(word, key):
    # Each waits until all three machines have one: so none does all of it.
    note(word + "-" + os.uname().nodename)
    while len({{line.split()[0][1:] for line in open(LEDGER)}}) < 3:
        time.sleep(0.01)
    return word * key

async def async_job(word):
    return word, grain.GVAR.res

async def vfn(word):
    return await grain.exec1(grain.Cores(1), async_job, word)

async def main1():
    # Jobs/subtasks inside a waitgroup run parallelly
    async with grain.open_waitgroup() as wg:
        for word in "abcd":
            wg.submit(grain.Cores(1), job, word, key=2)
        wg.start_subtask(vfn, "x")
    print(wg.results)

async def main2():
    result = await grain.exec1(grain.Cores(1) & grain.Memory(0.1), job, "e", 3)
    print(result)

grain.run_combine([main1, main2], ["node1:7501", "node2:7501"], grain.Node(N=1, M=0.2))
"""
HELD = """
from grass.tasks.machines import addresses, task_host
addresses.PATIENCE_S = task_host.PATIENCE_S = {patience}
task_host._MARGIN_S = 1.0

async def main():
    async with grain.open_waitgroup() as wg:
        for word in "ab":
            wg.submit(grain.Cores(1), held, word)
    print(*wg.results)

grain.run_combine(main, ["node1:7501"], grain.Node(N=1, M=0.1), reschedule={again})
"""


@pytest.fixture(scope="module")
def lan(tmp_path_factory: pytest.TempPathFactory, namespaces: None) -> Iterator[Lan]:
    """A head that has joined the brokers of two nodes."""
    folder = tmp_path_factory.mktemp("lan")
    with closing(Lan(folder, ("head", "node1", "node2"))) as lan:
        head, *nodes = lan.hosts.values()
        for node in nodes:
            started = node.serve("--bind", "0.0.0.0:7501")
            assert started.stdout is not None
            started.stdout.readline()
            line = node.ok("token", "new", "--role", "submit").strip()
            head.ok("join", "--no-start", line.removeprefix("grass join "))
        yield lan


Start = Callable[..., Program]


@pytest.fixture
def start(lan: Lan, tmp_path: Path, gate: Fifo) -> Iterator[Start]:
    """Start programs at the head, and end those that a test leaves."""
    begun: list[Program] = []

    def make(text: str, **words: object) -> Program:
        filled = text.format(**words)
        begun.append(Program(lan.hosts["head"], filled, str(gate), cwd=tmp_path))
        return begun[-1]

    yield make
    for one in begun:
        one.end()


def begun_on_both(program: Program) -> None:
    until(
        lambda: {line.split()[1] == "head" for line in program.noted()},
        "the functions did not begin on both",
        lambda places: places == {True, False},
    )


def host_state(node: Host) -> str:
    job = next(node.client.jobs(newest_first=True), None)
    return "none" if job is None else str(job["state"])


def test_the_example_of_grain_runs_on_its_machines(lan: Lan, start: Start) -> None:
    program = start(GRAIN)
    lines = sorted(program.result().splitlines())
    assert lines == ["['aa', 'bb', 'cc', 'dd', ('x', CPU([0]))]", "eee"]
    places = {line.split()[0].partition("-")[2] for line in program.noted()}
    assert places == {"head", "node1", "node2"}
    for name in ("node1", "node2"):
        node = lan.hosts[name]
        until(lambda n=node: host_state(n), "it has not ended", "succeeded".__eq__)  # type: ignore[misc]


def test_the_example_of_ours_runs_there(lan: Lan) -> None:
    head = lan.hosts["head"]
    ran = subprocess.run(
        [*head.inside(), sys.executable, str(EXAMPLE), "node1:7501", "node2:7501"],
        env=head.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("pi is about 3.14, by ")


def test_a_network_that_comes_back_costs_no_second_run(
    lan: Lan, start: Start, gate: Fifo
) -> None:
    node = lan.hosts["node1"]
    program = start(HELD, patience=30.0, again=True)
    begun_on_both(program)
    node.cut()
    # The result waits on the other side of the cut.
    gate.tell(times=2)
    node.reset_connections()
    node.heal()
    assert program.result() == "a b\n"
    assert len(program.noted()) == 2


def test_a_network_that_stays_away_costs_a_retry(
    lan: Lan, start: Start, gate: Fifo
) -> None:
    node = lan.hosts["node1"]
    program = start(HELD, patience=2.0, again=True)
    begun_on_both(program)
    node.cut()
    lan.hosts["head"].reset_connections()
    try:
        # Either of both may read a word: the one that is cut off does not need it.
        gate.tell(times=2)
        until(program.noted, "nothing is run again", lambda noted: len(noted) == 3)
        gate.tell()
        assert program.result() == "a b\n"
    finally:
        node.heal()
    # It has ended itself: what was run again did not run there any more.
    until(lambda: host_state(node), "it still runs", lambda state: state != "running")


def test_a_network_that_stays_away_fails_what_must_not_run_twice(
    lan: Lan, start: Start
) -> None:
    node = lan.hosts["node1"]
    program = start(HELD, patience=2.0, again=False)
    begun_on_both(program)
    node.cut()
    lan.hosts["head"].reset_connections()
    try:
        assert "`held` is lost: node1:7501 was not heard for" in program.failure()
    finally:
        node.heal()
    assert len(program.noted()) == 2


BULK = """
async def main():
    import anyio
    async with anyio.create_task_group() as group:
        group.start_soon(grain.exec1, grain.Cores(1), held, "a")
        while not os.path.getsize(LEDGER):
            await anyio.sleep(0.01)
        print(await grain.exec1(grain.Cores(1), len, bytes(3_000_000)))
        group.cancel_scope.cancel()

grain.run_combine(main, ["node2:7501"], grain.Node(N=1, M=0.1))
"""


def test_a_slow_line_is_not_cut_for_bulk(lan: Lan, start: Start) -> None:
    head, node = lan.hosts["head"], lan.hosts["node2"]
    head.slow_down("8mbit")
    assert start(BULK).result() == "3000000\n"
    await_worker(node, "node2", connected=True)
