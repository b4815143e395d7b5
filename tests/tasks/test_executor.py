"""`grass.Executor`: futures, from any thread, with resources."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, as_completed, wait
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import grass
from grass.errors import NeverFits
from grass.tasks.errors import TaskLost
from tests.support.patience import PATIENCE_S, until
from tests.tasks import functions
from tests.tasks.shared import is_alive


def test_calls_return_and_raise() -> None:
    with grass.Executor(rpw={"cpu": 2}) as executor:
        futures = [executor.submit(functions.add, one, second=1) for one in range(20)]
        failed = executor.submit(functions.fail)
        assert sorted(one.result() for one in as_completed(futures)) == list(
            range(1, 21)
        )
        with pytest.raises(functions.Critical):
            failed.result()
        assert list(executor.map(functions.add, [1, 2], [3, 4])) == [4, 6]
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(functions.pid)


def test_each_call_has_what_the_request_asks_for() -> None:
    with grass.Executor({"cpu": 2, "ram": "1G"}, rpw=grass.Node(3, 2)) as executor:
        assert executor.submit(functions.held).result() == "CPU([0, 1]) & Memory(1)"


def test_a_request_that_can_never_be_met_is_refused_by_the_first_call() -> None:
    with (
        grass.Executor({"gpu": 1}, rpw={"cpu": 1}) as executor,
        pytest.raises(NeverFits, match="gpu 1 is more"),
    ):
        executor.submit(functions.pid)


def test_a_loop_can_use_it() -> None:
    async def program(executor: grass.Executor) -> int:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor, functions.add, 3, 4)

    with grass.Executor(rpw={"cpu": 1}) as executor:
        assert asyncio.run(program(executor)) == 7


def test_coroutine_functions_run_in_its_thread() -> None:
    async def what_is_held() -> str:
        await asyncio.sleep(0)
        return repr(grass.GVAR.res)

    with grass.Executor(rpw={"cpu": 1}) as executor:
        found: object = executor.submit(what_is_held).result()
    assert found == "CPU([0])"


def test_a_future_that_is_cancelled_ends_its_task(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with grass.Executor(rpw={"cpu": 1}) as executor:
        runs = executor.submit(functions.wait_for_ever, str(path))
        waits = executor.submit(functions.wait_for_ever, str(tmp_path / "never"))
        until(path.exists, "the call did not begin")
        assert waits.cancel()
        assert runs.cancel()
        assert executor.submit(functions.add, 1).result() == 1
    assert not (tmp_path / "never").exists()


def test_a_coroutine_function_that_runs_is_cancelled_with_its_future() -> None:
    began = Event()

    async def wait_for_ever() -> None:
        began.set()
        await asyncio.sleep(600)

    with grass.Executor(rpw={"cpu": 1}) as executor:
        runs = executor.submit(wait_for_ever)
        assert began.wait(PATIENCE_S)
        assert runs.cancel()
        assert executor.submit(functions.add, 1).result() == 1
        left = executor.submit(wait_for_ever)
        executor.shutdown(cancel_futures=True)
    # Who waits for several is told of it.
    assert wait([runs, left], timeout=PATIENCE_S).done == {runs, left}


def test_a_shutdown_can_cancel_what_is_left(tmp_path: Path) -> None:
    executor = grass.Executor(rpw={"cpu": 1})
    futures = [executor.submit(time.sleep, 600) for _ in range(3)]
    executor.shutdown(cancel_futures=True)
    for future in futures:
        with pytest.raises(CancelledError):
            future.result()


def test_a_shutdown_cancels_what_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = grass.Executor(rpw={"cpu": 1})
    submit_here = executor._submit_here

    def shut_first(*call: Any) -> None:
        executor.shutdown(wait=False, cancel_futures=True)
        submit_here(*call)

    monkeypatch.setattr(executor, "_submit_here", shut_first)
    future = executor.submit(time.sleep, 600)
    executor.shutdown()
    assert future.cancelled()


IN_A_BLOCK = """
import sys
import grass
from tests.tasks import functions

with grass.Executor(rpw={"cpu": 1}) as executor:
    executor.submit(functions.wait_for_ever, sys.argv[1])
    executor.submit(functions.wait_for_ever, sys.argv[1]).result()
"""
WITHOUT_ONE = """
import sys
import grass
from tests.tasks import functions

executor = grass.Executor(rpw={"cpu": 1})
executor.submit(functions.wait_for_ever, sys.argv[1])
executor.submit(functions.wait_for_ever, sys.argv[1]).result()
"""


@pytest.mark.parametrize("text", [IN_A_BLOCK, WITHOUT_ONE], ids=["block", "no-block"])
def test_an_interrupt_cancels_what_runs_and_waits(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pid"
    program = subprocess.Popen(
        [sys.executable, "-c", text, str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    until(path.exists, "the call did not begin")
    program.send_signal(signal.SIGINT)
    _, said = program.communicate(timeout=PATIENCE_S)
    assert said.endswith("\nKeyboardInterrupt\n")
    assert program.returncode == -signal.SIGINT
    pid = int(path.read_text())
    until(partial(is_alive, pid), "its child lives on", lambda alive: not alive)


def test_an_interrupt_of_the_first_call_is_nothing_but_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_: Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Thread, "start", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        grass.Executor(rpw={"cpu": 1}) as executor,
    ):
        executor.submit(functions.pid)


def test_a_process_that_dies_is_the_futures_error(tmp_path: Path) -> None:
    die = partial(functions.die, str(tmp_path / "n"), 9)
    with (
        grass.Executor(rpw={"cpu": 1}, reschedule=False) as executor,
        pytest.raises(TaskLost, match="was killed by SIGKILL"),
    ):
        executor.submit(die).result()


def test_a_session_that_breaks_is_the_error_of_all_that_was_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with grass.Executor(rpw={"cpu": 1}) as executor:
        future = executor.submit(functions.pid)
        assert isinstance(future.exception(PATIENCE_S), FileNotFoundError)
        with pytest.raises(RuntimeError, match="after shutdown"):
            executor.submit(functions.pid)


FORKED = """
import os, sys
import grass

executor = grass.Executor(rpw={"cpu": 1})
executor.submit(int).result()
child = os.fork()
if child == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_copy_of_a_program_waits_for_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKED],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert ran.stdout == "3\n"
