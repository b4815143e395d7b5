"""Tasks of a program as jobs of a broker, with a real daemon."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grass
from grass.errors import (
    CommitInDoubt,
    GrassError,
    NeverFits,
    NoAnswer,
    NoDaemon,
    Unreachable,
    UsageError,
)
from grass.tasks.queue_options import QueueOptions
from grass.verbs.calling import Caller
from tests.machines.programs import Program
from tests.support.fifo import Fifo
from tests.support.fixtures import fifo, gate
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.tasks.shared import Seats

__all__ = ["fifo", "gate"]
pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    """A home with a daemon that no test of this module leaves otherwise."""
    made = GrassHome(tmp_path_factory.mktemp("queue"))
    made.ok("start")
    yield made
    made.end()


def run(home: GrassHome, folder: Path, text: str, gate: object = "") -> Program:
    return Program(home, text, str(gate), cwd=folder)


RESULTS = """
import helper

async def waits(number):
    import {backend}
    await {backend}.sleep(0)
    return number, os.environ["GRASS_JOB_ID"] != ""

async def here():
    return os.environ.get("GRASS_JOB_ID")

async def main():
    async with grain.open_waitgroup() as wg:
        for number in range(5):
            named = wg.options(name="fit", priority=3)
            named.submit(grain.Cores(1), helper.power, number, exponent=3)
        wg.submit(grain.Cores(1), waits, 6)
        wg.submit(grain.ZERO, here)
    print(wg.results)
    try:
        await grain.exec1(grain.Cores(1), helper.fail)
    except helper.Trouble as error:
        print(error, "raise Trouble" in str(error.__cause__))
    try:
        await grain.exec1(grain.Cores(999), helper.fail)
    except grain.errors.NeverFits as error:
        print("999" in str(error))

grain.run_combine(main, broker=True, backend={backend!r})
"""
HELPER = """
class Trouble(Exception):
    pass

def power(base, exponent):
    return base ** exponent

def fail():
    raise Trouble("no")
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tasks_are_jobs_with_names_priorities_and_results(
    home: GrassHome, tmp_path: Path, backend: str
) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    program = run(home, tmp_path, RESULTS.format(backend=backend))
    assert program.result() == ("[0, 1, 8, 27, 64, (6, True), None]\nno True\nTrue\n")
    jobs = [one for one in home.client.jobs() if one["name"] == "fit"]
    assert {(one["state"], one["priority"]) for one in jobs} == {("succeeded", 3)}


def test_options_of_jobs_are_those_of_enqueue(
    home: GrassHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    home.ok("create-queue", "night")
    first = grass.enqueue(["true"], name="first")

    async def main() -> Any:
        async with grass.open_waitgroup() as wg:
            asks = wg.options(after=[first], priority=2, name="told", retries=7)
            asks.submit(grass.Cores(1), os.getcwd)
        return wg.results

    options: dict[str, Any] = {"queue": "night", "project": "thesis", "cwd": tmp_path}
    found = grass.run_combine(main, broker=True, **options)
    assert found == [str(tmp_path)]
    (job,) = [one for one in home.client.jobs() if one["name"] == "told"]
    assert (job["queue"], job["project"]) == ("night", "thesis")
    assert (job["priority"], job["retries"]) == (2, 7)
    assert job["after"] == [f"{first.id}:succeeded"]


def test_a_function_can_ask_what_its_job_holds_and_where_it_runs(
    home: GrassHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(home.folder))

    def asked() -> tuple[str, ...]:
        return repr(grass.GVAR.res), grass.GVAR.instance, os.environ["GRASS_JOB_ID"]

    async def main() -> Any:
        async with grass.open_waitgroup() as wg:
            wg.submit(grass.Cores(1) & grass.Memory("500M"), asked)
            wg.submit(grass.ZERO, asked)
        return wg.results

    (held, instance, job), (nothing, *_) = grass.run_combine(main, broker=True)
    assert re.fullmatch(r"CPU\(\[\d\]\) & Memory\(.*\)", held), held
    assert instance == f"{os.uname().nodename}(job {job})"
    assert nothing.startswith("CPU(["), "as `grass enqueue` does, it asks for a core"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpu": 1}, "`gpu=` is no option of a task: it asks by its resource"),
        ({"begin": "whenever"}, "whenever"),
        ({"queues": "night"}, "there is no option `queues`: there are name, pers"),
        ({"broker": "x:1"}, "there is no option `broker`"),
    ],
)
def test_options_that_are_none_are_refused_at_once(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises((UsageError, TypeError), match=said):
        QueueOptions({}).changed(**options)


def test_options_of_jobs_are_for_tasks_that_are_jobs() -> None:
    async def main() -> None:
        pass

    with pytest.raises(TypeError, match="there is no option `queue`"):
        grass.run_combine(main, [], grass.Cores(1), queue="night")


HELD = """
async def main():
    async with grain.open_waitgroup() as wg:
        wg.submit(grain.Cores(1), held, "a")
        wg.submit(grain.Cores(1), held, "b")

grain.run_combine(main, broker="local")
"""


def test_ctrl_c_cancels_the_jobs(home: GrassHome, tmp_path: Path, gate: Fifo) -> None:
    program = run(home, tmp_path, HELD, gate)
    program.await_noted("a head", "b head")
    program.process.send_signal(signal.SIGINT)
    program.failure()
    newest = list(home.client.jobs(newest_first=True))[:2]
    assert home.wait(*sorted(job["id"] for job in newest))["state"] == "cancelled"


def test_jobs_outlive_a_program_that_is_killed(
    home: GrassHome, tmp_path: Path, gate: Fifo
) -> None:
    program = run(home, tmp_path, HELD, gate)
    program.await_noted("a head", "b head")
    program.end()
    gate.tell(times=2)
    newest = sorted(job["id"] for job in list(home.client.jobs(newest_first=True))[:2])
    assert home.wait(*newest)["state"] == "succeeded"


RAISES_ONCE = """
def first_time():
    note("tried")
    if len(open(LEDGER).readlines()) == 1:
        raise OSError("not yet")
    return "now"

async def main():
    print(await grain.exec1(grain.Cores(1), first_time))

grain.run_combine(main, broker=True, temporary_err=(OSError,))
"""


def test_errors_that_pass_are_tried_again(home: GrassHome, tmp_path: Path) -> None:
    program = run(home, tmp_path, RAISES_ONCE)
    assert program.result() == "now\n"


def test_a_daemon_that_is_killed_costs_no_task_and_no_second_run(
    home: GrassHome, tmp_path: Path, gate: Fifo
) -> None:
    program = run(home, tmp_path, HELD, gate)
    program.await_noted("a head", "b head")
    home.replace_daemon()
    gate.tell(times=2)
    program.result()
    assert sorted(program.noted()) == ["a head", "b head"]
    until(
        lambda: [job["state"] for job in home.client.jobs(states=["running"])],
        "something still runs",
        lambda running: not running,
    )


@pytest.mark.parametrize("error", [CommitInDoubt, NoDaemon, NoAnswer])
@pytest.mark.parametrize("options", [{}, {"temporary_err": (Exception,)}])
def test_tasks_whose_enqueue_has_no_answer_are_not_enqueued_again(
    home: GrassHome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[GrassError],
    options: dict[str, Any],
) -> None:
    enqueue_jobs, calls = Caller.enqueue_jobs, 0

    def answer_is_lost(client: Caller, *rest: Any) -> Any:
        nonlocal calls
        calls += 1
        enqueue_jobs(client, *rest)
        raise error("the answer is lost", "look at it")

    async def main() -> None:
        async with grass.open_waitgroup() as wg:
            for number in range(4):
                wg.submit(grass.Cores(1), (tmp_path / str(number)).mkdir)

    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    monkeypatch.setattr(Caller, "enqueue_jobs", answer_is_lost)
    with pytest.raises(ExceptionGroup) as raised:
        grass.run_combine(main, broker=True, project=tmp_path.name, **options)
    assert [type(one) for one in raised.value.exceptions] == [error] * 4
    said = str(raised.value.exceptions[0])
    assert said == (
        "it is unknown whether `Path.mkdir` was enqueued: the answer is lost"
        " (look at it)"
    )
    jobs = list(home.client.jobs(project=tmp_path.name))
    assert (calls, len(jobs)) == (1, 4)


def test_of_many_tasks_only_those_that_are_refused_fail(
    home: GrassHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one(cores: int) -> int | None:
        try:
            found: int = await grass.exec1(grass.Cores(cores), abs, cores)
        except NeverFits:
            return None
        return found

    async def main() -> Any:
        async with grass.open_waitgroup() as wg:
            for cores in (1, 999, 1, 1, 999, 1):
                wg.start_subtask(one, cores)
        return wg.results

    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    assert grass.run_combine(main, broker=True) == [1, None, 1, 1, None, 1]


def test_a_result_that_cannot_be_read_is_no_reason_to_run_a_task_again(
    home: GrassHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise NoDaemon("nobody answers")

    async def main() -> None:
        # Too large to be read with others.
        await grass.exec1(grass.Cores(1), bytes, 1_000_000)

    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    monkeypatch.setattr(Caller, "result", away)
    options: dict[str, Any] = {"temporary_err": (Exception,)}
    with pytest.raises(NoDaemon):
        grass.run_combine(main, broker=True, project=tmp_path.name, **options)
    assert len(list(home.client.jobs(project=tmp_path.name))) == 1


ELSEWHERE = """
os.chdir("/")
import helper

K = 1

def use():
    return K, helper.power(2, 3)

async def main():
    global K
    first = await grain.exec1(grain.Cores(1), use)
    K = 2
    print(first, await grain.exec1(grain.Cores(1), use))

grain.run_combine(main, broker=True)
"""


def test_functions_travel_with_their_modules_and_globals_as_they_are_now(
    home: GrassHome, tmp_path: Path
) -> None:
    """In another directory, where nothing finds the modules beside the script."""
    (tmp_path / "helper.py").write_text(HELPER)
    program = run(home, tmp_path, ELSEWHERE)
    assert program.result() == "(1, 8) (2, 8)\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"broker": ""}, "`broker` is empty"),
        ({"addresses": ["a:1"], "rpw": grass.Cores(1)}, "not both"),
        ({"rpw": grass.Cores(1)}, "a job gets what it asks for"),
    ],
)
def test_units_of_ones_own_do_not_go_with_a_broker(
    words: dict[str, Any], said: str
) -> None:
    async def main() -> None:
        pass

    with pytest.raises(UsageError, match=said):
        grass.run_combine(main, **{"broker": True, **words})


def test_a_resource_with_rules_of_its_own_does_not_go_through_a_broker(
    home: GrassHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(home.folder))

    async def main() -> None:
        await grass.exec1(grass.Cores(1) & Seats(1), print)

    with pytest.raises(UsageError, match=r"`Seats\(1\)` is asked in the program"):
        grass.run_combine(main, broker=True)


def test_jobs_that_cannot_be_cancelled_are_named(
    home: GrassHome,
    gate: Fifo,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def held(path: str) -> str:
        with open(path) as file:
            return file.readline()

    def away(*_: object) -> None:
        raise Unreachable("nobody answers")

    async def main() -> None:
        async with grass.open_waitgroup() as wg:
            wg.submit(grass.Cores(1), held, str(gate))
            wg.submit(grass.Cores(1), int, "x")

    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    monkeypatch.setattr(Caller, "cancel", away)
    with pytest.raises(ExceptionGroup):
        grass.run_combine(main, broker=True)
    (going_on,) = home.client.jobs(states=["queued", "running"])
    said = f"grass: not cancelled: {going_on['id']}: nobody answers\n"
    assert capsys.readouterr().err == said
    gate.tell()
    home.wait(going_on["id"])
