"""Plain functions in child processes: warm, pinned, killed, lost, and what is sent."""

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import grass as grain
from grass.errors import UsageError
from grass.resource import ZERO, Cores, Gpu, Memory, Node, WTime
from grass.tasks.errors import ChildTraceback, TaskFailed, TaskLost, death
from tests.support.gpus import FakeGpus
from tests.support.patience import in_time, until
from tests.tasks import functions
from tests.tasks.functions import Block, Critical, Temporary, swapped
from tests.tasks.shared import is_alive


def run(main: Any, rpw: Any, backend: str = "asyncio") -> Any:
    return grain.run_combine(main, [], rpw, backend=backend)


def only(error: ExceptionGroup[Exception]) -> BaseException:
    (one,) = error.exceptions
    return one


def test_children_are_warm_and_gone_with_the_program(backend: str) -> None:
    async def main() -> Any:
        first = await grain.exec1(Cores(1), functions.pid)
        assert first == await grain.exec1(Cores(1), functions.pid)
        return first

    pid = run(main, Cores(1), backend)
    assert pid != os.getpid()
    assert not is_alive(pid)


def test_many_short_tasks_run_on_a_few_children(backend: str) -> None:
    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            for number in range(500):
                wg.submit(Cores(1), functions.add, number, second=1)
            wg.submit(Cores(1), functions.pid)
        return wg.results

    *sums, _pid = run(main, Cores(2), backend)
    assert sums == list(range(1, 501))


def test_a_child_is_pinned_to_the_cores_of_its_task() -> None:
    core = max(os.sched_getaffinity(0))

    async def main() -> Any:
        return await grain.exec1(Cores(1), functions.cores)

    assert run(main, Cores([core])) == {core}


def test_a_child_sees_only_the_devices_of_its_task(gpus: FakeGpus) -> None:
    gpus.device(0)
    gpus.device(1)

    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            wg.submit(Gpu(2), functions.devices)
            wg.submit(Gpu(0.5), functions.devices)
            wg.submit(Cores(1), functions.devices)
        return [seen for seen, _instance in wg.results]

    assert run(main, Cores(1) & Gpu(2)) == ["0,1", "0", ""]


def test_an_exception_comes_back_with_the_childs_traceback(backend: str) -> None:
    async def main() -> None:
        await grain.exec1(Cores(1), functions.fail)

    with pytest.raises(Critical, match="as told") as raised:
        run(main, Cores(1), backend)
    assert isinstance(raised.value.__cause__, ChildTraceback)
    assert 'raise Critical("as told")' in str(raised.value.__cause__)
    assert "child_main" not in str(raised.value.__cause__)


def test_an_exception_whose_class_takes_other_arguments_is_the_functions_own() -> None:
    async def main() -> None:
        await grain.exec1(Cores(1), functions.fail_pickily)

    with pytest.raises(functions.Picky, match="1 and 2") as raised:
        run(main, Cores(1))
    assert raised.value.second == 2
    assert "in fail_pickily" in str(raised.value.__cause__)


def test_an_exception_comes_without_what_cannot_be_pickled() -> None:
    async def main() -> None:
        await grain.exec1(Cores(1), functions.fail_with_a_lock)

    with pytest.raises(Critical, match="as told") as raised:
        run(main, Cores(1))
    assert raised.value.__notes__ == [
        "`lock` cannot be pickled, and did not come along"
    ]


def test_each_exception_of_a_group_is_the_functions_own() -> None:
    async def main() -> None:
        await grain.exec1(Cores(1), functions.fail_as_a_group)

    with pytest.raises(ExceptionGroup, match="both") as raised:
        run(main, Cores(1))
    picky, inner = raised.value.exceptions
    assert isinstance(picky, functions.Picky)
    assert picky.second == 2
    assert isinstance(inner, ExceptionGroup)
    assert [type(one) for one in inner.exceptions] == [Critical]
    assert "| tests.tasks.functions.Picky: 1 and 2" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (functions.fail_mutely, "Mute$"),
        (functions.leave, "SystemExit: 3"),
    ],
)
def test_an_exception_that_cannot_come_here_is_told_in_words(
    function: Any, said: str
) -> None:
    async def main() -> None:
        await grain.exec1(Cores(1), function)

    with pytest.raises(TaskFailed, match=f"`{function.__name__}` raised {said}"):
        run(main, Cores(1))


def test_what_cannot_be_pickled_is_named() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match=r"`second=` of `add`, a lock, cannot be"):
            await grain.exec1(Cores(1), functions.add, 1, second=threading.Lock())
        with pytest.raises(UsageError, match=r"argument 1 of `add`, a lock, cannot be"):
            await grain.exec1(Cores(1), functions.add, threading.Lock())
        lock = threading.Lock()
        with pytest.raises(UsageError, match=r"cannot be sent to another process"):
            await grain.exec1(Cores(1), lambda: lock)
        async with grain.open_waitgroup() as wg:
            for _ in range(50):
                wg.submit(Cores(1), functions.add, 1)
        await grain.exec1(Cores(1), threading.Lock)

    with pytest.raises(UsageError, match=r"the result of `\w+`, a lock, cannot be"):
        run(main, Cores(1))


def test_large_buffers_go_by_shared_memory_and_can_be_changed() -> None:
    size = 3_000_000

    async def main() -> Any:
        block = Block(bytearray(size))
        async with grain.open_waitgroup() as wg:
            for _ in range(4):
                wg.submit(Cores(1), functions.grown, block)
        return wg.results

    for length, block in run(main, Cores(2)):
        view = memoryview(block.content)
        assert (length, view.nbytes, view[0], view[-1]) == (size, size, 1, 0)
        view[1] = 7


def test_a_large_argument_is_sent_as_the_child_reads_it(backend: str) -> None:
    text = "x" * 5_000_000

    async def main() -> Any:
        return await grain.exec1(Cores(1), len, text)

    assert run(main, Cores(1), backend) == len(text)


def test_a_child_that_ends_before_it_has_read_its_argument_leaves_nothing_open(
    backend: str,
) -> None:
    text, block = "x" * 5_000_000, Block(bytearray(1_000_000))

    async def main() -> Any:
        before = set(os.listdir("/proc/self/fd"))
        for _ in range(4):
            # It takes longer than this to start.
            with anyio.move_on_after(0.01):
                await grain.exec1(Cores(1), swapped, text, 0)
            with anyio.move_on_after(0.01):
                async with grain.open_waitgroup() as wg:
                    wg.submit(Cores(1), swapped, text, 0)
                    wg.submit(Cores(1), swapped, block, 0)
        left = set(os.listdir("/proc/self/fd")) - before
        return len(left), await grain.exec1(Cores(1), len, text)

    assert run(main, Cores(2), backend) == (0, len(text))


def test_closures_and_lambdas_are_sent_by_value() -> None:
    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            for number in range(3):
                wg.submit(Cores(1), functions.closure_of(number), 10)
                wg.submit(Cores(1), lambda one=number: one)
        return wg.results

    assert run(main, Cores(1)) == [10, 0, 11, 1, 12, 2]


def test_a_function_is_sent_as_it_is_when_a_group_submits_it() -> None:
    number = 1

    def read() -> int:
        return number

    async def main() -> Any:
        nonlocal number
        first = await grain.exec1(Cores(1), read)
        number = 2
        return first, await grain.exec1(Cores(1), read)

    assert run(main, Cores(1)) == (1, 2)


def test_submitting_in_a_child_names_start_subtask() -> None:
    async def main() -> Any:
        return await grain.exec1(Cores(1), functions.asked_inside)

    assert "run it by `start_subtask`" in run(main, Cores(1))


def test_a_child_that_dies_costs_a_retry(tmp_path: Path, backend: str) -> None:
    async def main() -> Any:
        return await grain.exec1(Cores(1), functions.die, str(tmp_path / "n"), 1)

    assert run(main, Cores(1), backend) == 2


def test_a_child_that_dies_again_and_again_is_told_with_its_signal(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        await grain.exec1(Cores(1), functions.die, str(tmp_path / "n"), 9)

    lost = r"`die` is lost in try 3: its process \d+ was killed by SIGKILL .perhaps"
    with pytest.raises(TaskLost, match=lost):
        run(main, Cores(1))
    assert functions.count(str(tmp_path / "n")) == 4


def test_how_a_process_died_is_told_for_every_signal() -> None:
    assert "was killed by SIGSEGV" in str(death("f", -11, "process 7", 1))
    assert "was killed by signal 40" in str(death("f", -40, "process 7", 1))
    assert "has left with exit code 3" in str(death("f", 3, "process 7", 1))


@pytest.mark.parametrize("option", ["reschedule", "persistent"])
def test_nothing_runs_twice_where_that_is_not_allowed(
    tmp_path: Path, option: str
) -> None:
    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            once = wg.options(**{option: False})
            once.submit(Cores(1), functions.die, str(tmp_path / "n"), 9)

    with pytest.raises(ExceptionGroup) as raised:
        run(main, Cores(1))
    assert isinstance(only(raised.value), TaskLost)
    assert functions.count(str(tmp_path / "n")) == 2


def test_errors_that_pass_are_tried_again(tmp_path: Path) -> None:
    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            again = wg.options(temporary_err=(Temporary,))
            again.submit(Cores(1), functions.fail_twice, str(tmp_path / "n"))
        return wg.results

    assert run(main, Cores(1)) == [3]


def test_a_failure_kills_the_siblings_that_run(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "pid"

    async def fail() -> None:
        await anyio.to_thread.run_sync(until, path.exists, "the task did not begin")
        raise Critical

    async def main() -> Any:
        try:
            async with grain.open_waitgroup() as wg:
                wg.submit(Cores(1), functions.wait_for_ever, str(path))
                wg.submit(Cores(1), functions.wait_for_ever, str(tmp_path / "never"))
                wg.submit(ZERO, fail)
        except* Critical:
            pass
        assert not is_alive(int(path.read_text()))
        return await grain.exec1(Cores(1), functions.add, 1)

    assert run(main, Cores(1), backend) == 1
    assert not (tmp_path / "never").exists()


def test_a_time_limit_kills_a_child() -> None:
    async def main() -> None:
        await grain.exec1(Cores(1) & WTime(T=0.2), time.sleep, 600)

    with pytest.raises(TimeoutError, match=r"`sleep` took longer than 0\.2 s"):
        run(main, Cores(1))


def test_the_start_of_a_child_is_no_part_of_the_time_of_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def play(limit_s: float) -> bool | None:
        slow = f"import time; time.sleep({1.5 * limit_s})"
        (tmp_path / "sitecustomize.py").write_text(slow)

        async def main() -> None:
            await grain.exec1(Cores(1) & WTime(T=limit_s), functions.pid)

        try:
            run(main, Cores(1))
        except TimeoutError:
            return None
        return True

    assert in_time(play, "the start of a child is counted")


def test_tasks_sent_behind_a_long_one_run_elsewhere(tmp_path: Path) -> None:
    behind = tmp_path / "behind"

    async def main() -> Any:
        with anyio.CancelScope() as scope:
            async with grain.open_waitgroup() as wg:
                for _ in range(200):
                    wg.submit(Cores(1), functions.count, str(tmp_path / "before"))
                wg.submit(Cores(1), functions.wait_once, str(tmp_path / "long"))
                for _ in range(200):
                    wg.submit(Cores(1), functions.count, str(behind))
                await anyio.to_thread.run_sync(
                    until, lambda: _lines(behind) >= 200, "some wait behind a long one"
                )
                scope.cancel()
        return await grain.exec1(Cores(2), functions.add, 1)

    assert run(main, Cores(2)) == 1
    assert _lines(tmp_path / "before") == _lines(behind) == 200


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_subprocified_function_takes_what_its_task_holds(backend: str) -> None:
    held = grain.subprocify(functions.held)

    async def task() -> Any:
        return await held()

    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            wg.submit(Cores(2) & Memory(1), task)
            wg.submit(Memory(2), held)
            wg.start_subtask(held)
        return wg.results

    inside, submitted, alone = run(main, Node(2, 4), backend)
    assert (inside, submitted) == ("CPU([0, 1]) & Memory(1)", "Memory(2)")
    assert alone in ("CPU([0])", "CPU([1])")
    with pytest.raises(TypeError, match="`main` is a coroutine function"):
        grain.subprocify(main)


PROGRAM = """
import os, sys, time
import grass as grain
import beside


class Point:
    def __init__(self, x):
        self.x = x


class Wrong(Exception):
    pass


def moved(point):
    return Point(point.x + beside.STEP)


def fail():
    raise Wrong("by value")


async def main():
    async with grain.open_waitgroup() as wg:
        for x in range(3):
            wg.submit(grain.Cores(1), moved, Point(x))
    assert all(type(point) is Point for point in wg.results)
    print(*(point.x for point in wg.results))
    try:
        await grain.exec1(grain.Cores(1), fail)
    except Wrong as error:
        print("caught", error)


grain.run_combine(main)
"""


def test_a_script_and_a_module_beside_it_are_known_in_children(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("STEP = 10\n")
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=os.environ | {"GRASS_HOME": str(tmp_path / "home")},
    )
    assert (ran.stdout, ran.returncode) == ("10 11 12\ncaught by value\n", 0), (
        ran.stderr
    )


WAITING = """
import sys
import grass as grain
from tests.tasks import functions


async def main():
    async with grain.open_waitgroup() as wg:
        wg.submit(grain.Cores(1), functions.wait_for_ever, sys.argv[1])
        wg.submit(grain.Cores(1), functions.wait_for_ever, sys.argv[1])


grain.run_combine(main, [], grain.Cores(1), backend=sys.argv[2])
"""


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGKILL"])
def test_a_program_that_is_ended_leaves_no_process(
    tmp_path: Path, backend: str, signal_name: str
) -> None:
    import signal

    path = tmp_path / "pid"
    program = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(path), backend],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    until(path.exists, "the task did not begin")
    program.send_signal(getattr(signal, signal_name))
    _, said = program.communicate()
    pid = int(path.read_text())
    until(partial(is_alive, pid), "its child lives on", lambda alive: not alive)
    assert program.returncode != 0
    if signal_name == "SIGINT":
        assert said.endswith("\nKeyboardInterrupt\n")
        assert "Cancelled" not in said
        assert program.returncode == -signal.SIGINT


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Critical])
def test_an_idle_child_leaves_by_itself_whatever_ends_the_program(
    tmp_path: Path, backend: str, error: type[BaseException]
) -> None:
    path = tmp_path / "left"

    async def main() -> None:
        await grain.exec1(Cores(1), functions.touch_at_exit, str(path))
        raise error

    with pytest.raises(error):
        run(main, Cores(1), backend)
    assert path.exists()


def test_tasks_that_were_sent_ahead_are_cancelled_with_their_group() -> None:
    async def one_round() -> None:
        try:
            async with grain.open_waitgroup() as wg:
                for number in range(200):
                    wg.submit(Cores(1), functions.add, number)
                    if number == 100:
                        wg.submit(Cores(1), functions.fail)
        except* Critical:
            pass
        else:
            raise AssertionError("nothing was raised")

    async def main() -> Any:
        for _ in range(8):
            await one_round()
        return await grain.exec1(Cores(2), functions.add, 1)

    assert grain.run_combine(main, [], Cores(2), reschedule=False) == 1
