"""Python functions as jobs: enqueued, awaited, and read by whoever comes later."""

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

import grass
from grass.errors import (
    Forbidden,
    NeverFits,
    NoResult,
    NotFound,
    Refused,
    TimedOut,
    UsageError,
)
from grass.tasks.errors import ChildTraceback
from grass.verbs import task_jobs
from grass.verbs.calling import Caller
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.daemon


@pytest.fixture
def double() -> Callable[[int], int]:
    def double(number: int) -> int:
        return 2 * number

    return double


def test_a_function_is_a_job_and_returns_its_value(desk: GrassHome) -> None:
    def train(lr: float, *, epochs: int = 1) -> dict[str, Any]:
        sys.stdout.write(f"epochs: {epochs}\n")
        return {
            "loss": lr * epochs,
            "job": os.environ["GRASS_JOB_ID"],
            "cwd": os.getcwd(),
        }

    job = grass.enqueue(train, 0.5, epochs=4, request={"cpu": 1}, priority=3)
    assert job.result(PATIENCE_S) == {
        "loss": 2.0,
        "job": str(job.id),
        "cwd": str(desk.desk),
    }
    job.refresh()
    assert job.name == "train"
    assert (job.priority, job.request, job.state) == (3, {"cpu": 1}, "succeeded")
    assert job.command == ["train(...)"]
    assert list(job.logs()) == ["epochs: 4"]
    assert grass.jobs(job.id).result() == job.result()
    shown = desk.ok("show", str(job.id))
    assert "train(...)\n" in shown


def test_functions_that_write_nothing_have_empty_logs(
    desk: GrassHome, double: Callable[[int], int]
) -> None:
    jobs = grass.map(double, range(4))
    assert jobs.results(PATIENCE_S) == [0, 2, 4, 6]
    for job in jobs:
        assert list(job.logs()) == list(job.logs(tail=3)) == []
        assert list(job.logs(follow=True)) == []


def test_what_it_raises_is_raised_with_its_traceback(desk: GrassHome) -> None:
    def fails() -> None:
        raise KeyError("missing")

    job = grass.enqueue(fails)
    with pytest.raises(KeyError, match="missing") as raised:
        job.result(PATIENCE_S)
    assert isinstance(raised.value.__cause__, ChildTraceback)
    assert "in fails" in str(raised.value.__cause__)
    assert job.refresh().state == "failed"
    assert "KeyError" in desk.ok("explain", str(job.id))


def test_the_members_of_a_map_return_in_order(
    desk: GrassHome, double: Callable[[int], int]
) -> None:
    jobs = grass.map(double, range(5), at_most=2)
    assert jobs.results(PATIENCE_S) == [0, 2, 4, 6, 8]
    assert [job.index for job in jobs] == [1, 2, 3, 4, 5]
    assert len(grass.map(double, [])) == 0
    assert grass.map(double, []).results() == []
    with pytest.raises(UsageError, match="these are 5 jobs"):
        jobs.result()


def test_results_are_read_in_parts_once_all_have_ended(
    desk: GrassHome, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_jobs, "_TOGETHER", 2)
    path = str(gate)

    def member(number: int) -> int:
        if number == 4:
            with open(path) as file:
                file.readline()
        return 2 * number

    jobs = grass.map(member, range(5))
    with pytest.raises(TimedOut, match=r"\d of 5 jobs are unfinished"):
        jobs.results(0.1)
    gate.tell()
    assert jobs.results(PATIENCE_S) == [0, 2, 4, 6, 8]


def test_large_arguments_and_results_come_through(desk: GrassHome) -> None:
    data = bytearray(os.urandom(3_000_000))
    jobs = [grass.enqueue(bytes.__len__, bytes(data)), grass.enqueue(bytes, data)]
    assert jobs[0].result(PATIENCE_S) == len(data)
    assert jobs[1].result(PATIENCE_S) == data
    blobs = [path for path in (desk.folder / "blobs").rglob("*") if path.is_file()]
    assert any(path.stat().st_size > len(data) for path in blobs)


def test_large_buffers_of_a_result_can_be_written_to(desk: GrassHome) -> None:
    def filled() -> pickle.PickleBuffer:
        return pickle.PickleBuffer(bytearray(b"x" * 3_000_000))

    read = grass.enqueue(filled).result(PATIENCE_S)
    assert (read.nbytes, read.readonly) == (3_000_000, False)


def test_a_later_program_reads_the_result_by_id(desk: GrassHome) -> None:
    """The first is killed while its job runs; the daemon is restarted, too."""
    script = desk.desk / "first.py"
    script.write_text(
        "import grass, os, signal, beside\n"
        "job = grass.enqueue(beside.slow, 4)\n"
        "print(job.id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (desk.desk / "beside.py").write_text(
        "import time\ndef slow(x):\n    time.sleep(0.3)\n    return x * helper()\n"
        "def helper(): return 10\n"
    )
    ran = subprocess.run(
        [sys.executable, str(script)],
        env={**desk.environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    desk.restart()
    assert grass.jobs(int(ran.stdout)).result(PATIENCE_S) == 40


def test_a_coroutine_function_is_run_in_a_loop_of_its_own(desk: GrassHome) -> None:
    async def later(number: int) -> int:
        import anyio.lowlevel

        await anyio.lowlevel.checkpoint()
        return 2 * number

    job = grass.enqueue(later, 4)
    assert job.name == "later"
    assert job.result(PATIENCE_S) == 8
    assert grass.map(later, [1, 2]).results(PATIENCE_S) == [2, 4]
    assert grass.enqueue(grass.subprocify(abs), -3).result(PATIENCE_S) == 3


def test_options_of_a_job_are_told_from_arguments(desk: GrassHome) -> None:
    def named(name: str, *rest: int, **more: int) -> tuple[Any, ...]:
        return name, rest, more

    with pytest.raises(UsageError, match=r"`name=` is an option.*functools\.partial"):
        grass.enqueue(named, name="x")
    job = grass.enqueue(partial(named, name="x"), name="other", depth=3)
    assert job.name == "other"
    assert job.result(PATIENCE_S) == ("x", (), {"depth": 3})


def test_bad_calls_are_one_sentence_each(
    desk: GrassHome, double: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = threading.Lock()
    with pytest.raises(UsageError, match=r"argument 2 of `print`, a lock, cannot be"):
        grass.enqueue(print, 1, lock)
    with pytest.raises(UsageError, match="call 3: argument 1 of `double`, a lock"):
        grass.map(double, [1, 2, lock, 4])
    with pytest.raises(UsageError, match="cannot be sent to another process"):
        grass.enqueue(lambda: lock)
    with pytest.raises(UsageError, match="only a function has arguments"):
        grass.enqueue(["true"], "x")  # type: ignore[call-overload]
    with pytest.raises(NeverFits, match="has no licence"):
        grass.enqueue(double, 1, request={"licence": 1})
    monkeypatch.setattr(task_jobs, "_uploaded", {})
    monkeypatch.setattr(
        Caller, "missing_blobs", lambda _, names: {"missing": names, "largest": 10}
    )
    with pytest.raises(UsageError, match=r"`double`: [\d,]+ bytes, and the broker"):
        grass.enqueue(double, 1)


def test_calls_that_cannot_be_made_are_refused_at_once(
    desk: GrassHome, double: Callable[[int], int]
) -> None:
    @wraps(double)
    def given_more(*args: int) -> int:
        return double(*args or (3,))

    with pytest.raises(UsageError, match=r"`double` cannot .*: missing a .* 'number'"):
        grass.enqueue(double)
    with pytest.raises(UsageError, match=r"`double` cannot .*: too many positional"):
        grass.enqueue(double, 1, 2)
    with pytest.raises(
        UsageError, match=r"unexpected keyword argument 'requests' .*opt"
    ):
        grass.enqueue(partial(double, 1), requests={"cpu": 1})
    with pytest.raises(UsageError, match=r"too many positional"):
        grass.map(lambda: None, [1])
    # What a decorator has made is called as it is, not as what it is made of.
    assert grass.enqueue(given_more).result(PATIENCE_S) == 6


def test_an_older_broker_is_named(
    desk: GrassHome, double: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise NotFound("there is no /api/v1/blobs/missing here")

    monkeypatch.setattr(task_jobs, "_uploaded", {})
    monkeypatch.setattr(Caller, "missing_blobs", unknown)
    with pytest.raises(Refused, match="has an older grass, which runs no Python"):
        grass.enqueue(double, 1)


def test_a_blob_that_is_gone_is_uploaded_again(
    desk: GrassHome, double: Callable[[int], int]
) -> None:
    first = grass.enqueue(double, 1)
    assert first.result(PATIENCE_S) == 2
    desk.ok("remove", str(first.id))
    assert grass.enqueue(double, 4).result(PATIENCE_S) == 8


def test_why_there_is_no_result(desk: GrassHome, gate: Fifo) -> None:
    def waits(path: str) -> None:
        Path(path).read_text()

    job = grass.enqueue(waits, str(gate))
    with pytest.raises(TimedOut, match=rf"^job {job.id} has not ended within 0\.125 s"):
        job.result(0.125)
    job.cancel(now=True)
    with pytest.raises(NoResult, match="is cancelled"):
        job.result(PATIENCE_S)
    reads = grass.enqueue(["cat", str(gate)])
    with pytest.raises(NoResult, match="runs a command"):
        reads.result(PATIENCE_S)
    assert reads.state in ("queued", "running"), "nobody has waited for its end"
    reads.cancel(now=True)
    desk.ok("remove", str(job.id))
    with pytest.raises(NoResult, match=r"was forgotten with its result at 20\d\d-"):
        job.result()
    with pytest.raises(NotFound, match=r"was forgotten with its result at 20\d\d-"):
        grass.jobs(job.id)
    with pytest.raises(NotFound, match="there is no job 999999"):
        grass.jobs(999999)
    with pytest.raises(NoResult, match="runs a command"):
        grass.enqueue(["true"]).result(PATIENCE_S)


def test_a_function_that_ends_its_process_is_told(desk: GrassHome) -> None:
    left = r"`_exit`, job (\d+), is failed.*no result: exit code 3 .*`grass logs \1`"
    with pytest.raises(NoResult, match=left):
        grass.enqueue(os._exit, 3).result(PATIENCE_S)
    with pytest.raises(NoResult, match=r"`abort`, job .* killed by SIGABRT .*logs"):
        grass.enqueue(os.abort).result(PATIENCE_S)
    with pytest.raises(RuntimeError, match="left with exit code 4"):
        grass.enqueue(sys.exit, 4).result(PATIENCE_S)


def test_the_result_of_somebody_else_is_not_unpickled(
    desk: GrassHome, double: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = grass.enqueue(double, 1)
    real = Caller.result

    def of_others(self: Caller, *how: Any) -> tuple[dict[str, str], bytearray]:
        headers, _ = real(self, *how)
        assert headers["grass-own"] == "1"
        return {**headers, "grass-own": "0", "grass-owner": "uid:7"}, bytearray()

    monkeypatch.setattr(Caller, "result", of_others)
    with pytest.raises(Forbidden, match=r"was enqueued by uid:7.*would run code"):
        job.result(PATIENCE_S)


def test_a_rerun_computes_the_result_again(desk: GrassHome, tmp_path: Path) -> None:
    def count(path: str) -> int:
        with open(path, "a") as file:
            return file.write("x") and file.tell()

    job = grass.enqueue(count, str(tmp_path / "count"))
    assert job.result(PATIENCE_S) == 1
    job.rerun()
    assert job.result(PATIENCE_S) == 2


def test_coroutines_enqueue_and_await(
    desk: GrassHome, double: Callable[[int], int]
) -> None:
    async def story() -> tuple[Any, Any]:
        job = await grass.enqueue_async(double, 4)
        jobs = await grass.map_async(double, [1, 2])
        return await job.result_async(PATIENCE_S), await jobs.results_async(PATIENCE_S)

    assert asyncio.run(story()) == (8, [2, 4])
