"""Programs that are guests of a daemon: it is killed, they are, they stop waiting."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.support.fifo import Fifo
from tests.support.fixtures import cold, fifo, gate, home, lasting, news, shared
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S, until
from tests.tasks.shared import is_alive

__all__ = ["cold", "fifo", "gate", "home", "lasting", "news", "shared"]

WORKING = """
import os, sys
import grass as grain

news, gate = sys.argv[2:4]


def work(number):
    with open(news, "w") as told:
        told.write(f"{os.getpid()}\\n")
    with open(gate, "rb", buffering=0) as wait:
        wait.read(1)
    return number


async def main():
    async with grain.open_waitgroup() as wg:
        for number in range(3):
            wg.submit(grain.Cores(1), work, number)
    print(*wg.results, flush=True)


grain.run_combine(main, [], grain.Cores(1), backend=sys.argv[1])
"""
AWAITING = """
import sys
import grass as grain


async def main():
    print("began")


async def program():
    {wait}


{run}
"""
ASYNCIO = AWAITING.format(
    wait="""import asyncio
    task = asyncio.ensure_future(grain.run_combine(main, [], grain.Cores(1)))
    await asyncio.to_thread(sys.stdin.readline)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", flush=True)
    await asyncio.to_thread(sys.stdin.readline)""",
    run="import asyncio; asyncio.run(program())",
)
TRIO = AWAITING.format(
    wait="""import trio
    async with trio.open_nursery() as nursery:
        async def run():
            await grain.run_combine(main, [], grain.Cores(1))
        nursery.start_soon(run)
        await trio.to_thread.run_sync(sys.stdin.readline)
        nursery.cancel_scope.cancel()
    print("cancelled", flush=True)
    await trio.to_thread.run_sync(sys.stdin.readline)""",
    run="import trio; trio.run(program)",
)
EXECUTOR = """
import grass

with grass.Executor(rpw={"cpu": 1}) as executor:
    executor.submit(print, "began").result()
"""
PLAIN = """
import grass as grain


async def main():
    print("began")


grain.run_combine(main, [], grain.Cores(1))
"""

Program = subprocess.Popen[str]
Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start programs of a home; those that are left are killed."""
    begun: list[Program] = []

    def begin(home: GrassHome, text: str, *words: object) -> Program:
        program = subprocess.Popen(
            [sys.executable, "-c", text, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=home.environment,
        )
        begun.append(program)
        return program

    yield begin
    for program in begun:
        with program:
            program.kill()


def only_job(home: GrassHome) -> int:
    """Return the job of a program, once it has come."""
    (job,) = until(home.client.jobs, "the program is no job")
    return int(job["id"])


def take_all(home: GrassHome) -> int:
    """Have a job hold all cores."""
    cores = len(os.sched_getaffinity(0))
    job = home.enqueue("-c", str(cores), "--", "sleep", "600")
    until(partial(home.state, job), "it does not run", lambda one: one == "running")
    return job


@pytest.mark.daemon
def test_tasks_go_on_while_the_daemon_is_killed_and_their_units_stay_counted(
    home: GrassHome, start: Start, news: Fifo, gate: Fifo, backend: str
) -> None:
    program = start(home, WORKING, backend, news, gate)
    first, job = int(news.hear()), only_job(home)
    home.kill_daemon()
    gate.tell("")
    assert int(news.hear()) == first, "the child was not kept"
    home.ok("start")
    held = until(
        lambda: home.client.job(job)["allocation"], "the daemon knows no guest"
    )
    waits = home.enqueue("-c", str(len(os.sched_getaffinity(0))), "--", "true")
    assert (len(held["cpu"]), home.state(waits)) == (1, "queued")
    gate.tell("", times=2)
    news.hear()
    printed, said = program.communicate(timeout=PATIENCE_S)
    assert (printed, program.returncode) == ("0 1 2\n", 0), said
    assert home.wait(job)["state"] == "succeeded"
    assert home.wait(waits)["state"] == "succeeded"


@pytest.mark.daemon
def test_a_program_that_ends_without_a_daemon_is_accounted_by_the_next(
    home: GrassHome, start: Start, news: Fifo, gate: Fifo
) -> None:
    program = start(home, WORKING, "asyncio", news, gate)
    news.hear()
    job = only_job(home)
    home.kill_daemon()
    program.kill()
    program.wait()
    home.ok("start")
    assert home.wait(job)["state"] in ("failed", "lost")
    assert home.wait(home.enqueue("-c", "1", "--", "true"))["state"] == "succeeded"


@pytest.mark.daemon
def test_a_child_that_is_killed_costs_a_try_and_not_the_guest(
    shared: GrassHome, start: Start, news: Fifo, gate: Fifo
) -> None:
    program = start(shared, WORKING, "asyncio", news, gate)
    first, job = int(news.hear()), only_job(shared)
    os.kill(first, signal.SIGKILL)
    assert int(news.hear()) != first
    assert shared.state(job) == "running"
    gate.tell("", times=3)
    printed, said = program.communicate(timeout=PATIENCE_S)
    assert printed == "0 1 2\n", said
    assert shared.wait(job)["state"] == "succeeded"


@pytest.mark.daemon
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT", "cancel"])
def test_a_program_that_is_ended_ends_its_children_and_its_guest(
    shared: GrassHome, start: Start, news: Fifo, gate: Fifo, how: str
) -> None:
    program = start(shared, WORKING, "asyncio", news, gate)
    child, job = int(news.hear()), only_job(shared)
    if how == "cancel":
        shared.client.cancel([str(job)])
    else:
        program.send_signal(getattr(signal, how))
    program.communicate(timeout=PATIENCE_S)
    until(partial(is_alive, child), "its child lives on", lambda alive: not alive)
    ended = shared.wait(job)
    assert ended["state"] == ("cancelled" if how == "cancel" else "failed")


@pytest.mark.daemon
@pytest.mark.parametrize("text", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
def test_a_coroutine_that_waits_for_units_is_cancelled_at_once(
    shared: GrassHome, start: Start, text: str
) -> None:
    all_cores = take_all(shared)
    program = start(shared, text)
    guest = until(
        lambda: [one["id"] for one in shared.client.jobs() if one["id"] > all_cores],
        "the program does not wait",
    )[0]
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "cancelled\n"
    # The program lives on, and its guest does not.
    assert shared.wait(guest)["state"] == "cancelled"
    assert program.poll() is None
    program.communicate("\n", timeout=PATIENCE_S)
    assert program.returncode == 0


@pytest.mark.daemon
@pytest.mark.parametrize("text", [PLAIN, EXECUTOR], ids=["run_combine", "Executor"])
def test_an_interrupt_ends_a_program_that_waits_for_units(
    shared: GrassHome, start: Start, text: str
) -> None:
    all_cores = take_all(shared)
    program = start(shared, text)
    guest = until(
        lambda: [one["id"] for one in shared.client.jobs() if one["id"] > all_cores],
        "the program does not wait",
    )[0]
    assert program.stderr is not None
    assert f"grass: job {guest} waits: " in program.stderr.readline()
    program.send_signal(signal.SIGINT)
    printed, said = program.communicate(timeout=PATIENCE_S)
    assert printed == ""
    assert "KeyboardInterrupt" in said
    assert shared.wait(guest)["state"] == "cancelled"
    assert shared.state(all_cores) == "running"


FAILING = """
import os, signal, sys
import grass


def interrupt():
    os.kill(os.getppid(), signal.SIGINT)
    signal.pause()


def fail(how, executor):
    executor.submit(print, "began").result()
    if how == "interrupted":
        executor.submit(interrupt).result()
    elif how == "exits":
        sys.exit(3)
    elif how == "raises":
        raise ValueError(how)
    elif how == "waits":
        executor.submit(interrupt)


if sys.argv[1] == "block":
    request = {"cpu": 9} if sys.argv[2] == "never fits" else None
    with grass.Executor(request, rpw={"cpu": 1}) as executor:
        fail(sys.argv[2], executor)
else:
    fail(sys.argv[2], grass.Executor(rpw={"cpu": 1}))
"""


@pytest.mark.daemon
@pytest.mark.parametrize(
    ("form", "how", "code", "recorded"),
    [
        ("block", "raises", 1, 1),
        ("block", "never fits", 1, 1),
        ("block", "exits", 3, 3),
        ("block", "interrupted", -signal.SIGINT, 130),
        ("block", "waits", -signal.SIGINT, 130),
        ("block", "succeeds", 0, 0),
        ("no block", "raises", 1, 1),
        ("no block", "interrupted", -signal.SIGINT, 130),
        ("no block", "waits", -signal.SIGINT, 130),
        ("no block", "succeeds", 0, 0),
    ],
)
def test_a_program_with_an_executor_is_recorded_with_its_own_exit_code(
    shared: GrassHome, start: Start, form: str, how: str, code: int, recorded: int
) -> None:
    program = start(shared, FAILING, form, how)
    _, said = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == code, said
    ended = shared.wait(only_job(shared))
    assert (ended["state"], ended["exit_code"]) == (
        "failed" if recorded else "succeeded",
        recorded,
    )


INSIDE = """
import grass as grain


def held():
    return repr(grain.GVAR.res)


async def main():
    return await grain.exec1(grain.Cores(1), held)


with grain.allocate(cpu=1) as units:
    print(grain.run_combine(main), grain.run_combine(main, [], grain.Cores(1)))
    with grain.Executor() as executor:
        print(executor.submit(held).result(), units.units["cpu"][0])
"""


@pytest.mark.daemon
def test_inside_of_an_allocation_tasks_have_what_that_has(
    shared: GrassHome, start: Start
) -> None:
    printed, said = start(shared, INSIDE).communicate(timeout=PATIENCE_S)
    core = printed.split()[-1]
    assert printed == f"CPU([{core}]) CPU([{core}])\nCPU([{core}]) {core}\n", said
    assert len(list(shared.client.jobs())) == 1
