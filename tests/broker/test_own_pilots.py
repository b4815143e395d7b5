"""Jobs with a pilot of their own, and pilots that take many: a whole broker, no I/O."""

import signal
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import a_pool

from grass.broker.core.pools.pool_workers import token_name
from grass.broker.core.pools.requests import (
    AddPool,
    PilotRefused,
    PilotSizes,
    PilotsListed,
    PilotSubmitted,
    RemovePool,
    SetPoolPaused,
)
from grass.errors import NeverFits, Refused
from grass.link.messages import Exited
from grass.model.access import Token, hash_of
from grass.model.jobs.lifecycle import JobState
from grass.model.pools import (
    Pilot,
    PilotReport,
    PilotSize,
    PilotStage,
    PilotState,
    PoolMode,
)
from grass.queries.job_documents import why_waiting

LONG_S = 3600.0


@pytest.fixture
def pool_of(broker: Brokerage) -> Callable[..., Brokerage]:
    """Give a broker with a pool, beside a worker of two cores."""

    def made(**fields: Any) -> Brokerage:
        given = {"cpus": 4, "gpus": 2, "time_limit_s": 7200, **fields}
        broker.call(AddPool(ME, a_pool(**given)))
        return broker

    return made


def pilots(broker: Brokerage) -> list[Pilot]:
    return list(broker.state.pools.pilots.values())


def submit(broker: Brokerage, pilot: Pilot) -> None:
    broker.call(PilotSubmitted("uni", pilot.mark, f"id-{pilot.mark}"))


def come(broker: Brokerage, pilot: Pilot, found: str = "", **said: Any) -> str:
    """Have the worker of a pilot connect; return its name."""
    name, worker = token_name(pilot.mark), f"w-{pilot.mark[:8]}"
    token = Token(name, "worker", hash_of(name), 0, ME, worker=worker)
    broker.state.tokens[name] = broker.state.batch.changes.tokens[name] = token
    size = pilot.size or PilotSize(4, 2, None, 7200)
    usual = f"{{cpu:{size.cpus},gpu:{size.gpus}}}" if size.gpus else "{cpu:4}"
    left_s = {"time_left_s": size.time_limit_s - 5}
    broker.join(worker, found or usual, labels=("pool-uni",), **(left_s | said))
    return worker


def end(broker: Brokerage, pilot: Pilot) -> None:
    """Have a worker go, and the engine tell that its job is over."""
    if pilot.worker is not None and broker.state.workers[pilot.worker].connected:
        broker.leave(pilot.worker)
    ended = PilotReport(mark=pilot.mark, state=PilotState.ENDED, engine_id="1")
    broker.call(PilotsListed([ended]))


def test_the_engine_is_asked_for_what_the_job_asks_for(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB, memory_mib=2048)
    broker.enqueue(pool="uni", require="{gpu:0.5,cpu:2}", time_limit_s=LONG_S)
    (pilot,) = pilots(broker)
    assert pilot.job == 1
    assert pilot.size == PilotSize(2, 1, 2048, LONG_S + 15 + 120)


def test_a_job_without_a_limit_has_the_time_of_the_pool(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB)
    broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    assert pilot.size == PilotSize(1, 0, None, 7200)


@pytest.mark.parametrize(
    ("mode", "limit_s", "own"),
    [
        (PoolMode.AUTO, None, False),
        (PoolMode.AUTO, 60.0, False),
        (PoolMode.AUTO, 600.0, True),
        (PoolMode.SHARED, LONG_S, False),
        (PoolMode.PER_JOB, 60.0, True),
        (PoolMode.PER_JOB, None, True),
    ],
)
def test_the_mode_and_the_time_decide_whether_a_job_has_its_own(
    pool_of: Callable[..., Brokerage], mode: PoolMode, limit_s: float | None, own: bool
) -> None:
    broker = pool_of(mode=mode)
    broker.enqueue(pool="uni", time_limit_s=limit_s)
    (pilot,) = pilots(broker)
    assert (pilot.job is not None) is own


def test_memory_that_the_pool_does_not_declare_is_asked_of_the_engine(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.AUTO)
    broker.enqueue(pool="uni", require="{cpu:1,ram:16}")
    (pilot,) = pilots(broker)
    assert (pilot.job, pilot.size) == (1, PilotSize(1, 0, 16 * 1024, 7200))


def test_memory_of_a_shared_pilot_is_what_the_pool_declares(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED)
    with pytest.raises(NeverFits):
        broker.enqueue(pool="uni", require="{cpu:1,ram:16}")


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({"require": "{cpu:1,vram:10}"}, 1),
        ({"require": "{cpu:1,gpu:0.5,vram:10}"}, 1),
        ({"require": "{cpu:1,gpu:2,vram:10}"}, 2),
        ({"auto_vram": True}, 1),
    ],
)
def test_memory_of_gpus_is_known_when_the_worker_of_a_job_has_come(
    pool_of: Callable[..., Brokerage], asked: dict[str, Any], gpus: int
) -> None:
    broker = pool_of(mode=PoolMode.AUTO)
    job = broker.enqueue(pool="uni", **asked)
    (pilot,) = pilots(broker)
    assert (pilot.job, pilot.size) == (job, PilotSize(1, gpus, None, 7200))
    worker = come(broker, pilot, found="{cpu:1,gpu:2,vram:{'0':16,'1':16}}")
    assert broker.where(job) == worker


def test_a_pilot_with_too_little_memory_of_gpus_leaves_and_its_job_says_why(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.AUTO)
    job = broker.enqueue(pool="uni", require="{cpu:1,vram:10}")
    words = "vram: asked 10G, the largest GPU of pool `uni` has 8G"
    for times in (1, 2):
        (pilot,) = pilots(broker)
        submit(broker, pilot)
        come(broker, pilot, found="{cpu:1,gpu:1,vram:[8]}")
        assert (broker.running(), pilots(broker)[0].stage) == ([], PilotStage.LEAVING)
        assert broker.state.pools.refused_jobs[job].times == times
        said = why_waiting(broker.state.jobs[job], broker.state, 0.0, {})
        assert str(said).startswith("pool `uni` is asked again at ")
        assert str(said).endswith(f"too small: {words}; there are 1 GPU of 8G")
        broker.leave(str(pilot.worker))
        assert why_waiting(broker.state.jobs[job], broker.state, 0.0, {}) == said
        end(broker, pilot)
        broker.pass_time(20)


def test_memory_of_gpus_of_a_shared_pilot_is_not_known_before(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED)
    with pytest.raises(NeverFits, match="pool `uni` has no vram; it") as caught:
        broker.enqueue(pool="uni", require="{cpu:1,vram:10}")
    assert caught.value.hint == (
        "ask for GPUs alone, `-g 1`, or add the pool with --mode auto: memory of GPUs"
        " is not known before a worker has come"
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"require": "{gpu:4}"}, "gpu: asked 4, the most any worker of pool `uni` has"),
        ({"require": "{cpu:5}"}, "cpu: asked 5, the most any worker of pool `uni` has"),
        ({"require": "{tpu:1}"}, "pool `uni` has no tpu; it has cpu, gpu"),
        ({"labels": frozenset({"fast"})}, "no worker of pool `uni` has `fast`"),
    ],
)
def test_what_a_pool_can_never_do_is_refused_in_its_name(
    pool_of: Callable[..., Brokerage], asked: dict[str, Any], words: str
) -> None:
    broker = pool_of()
    with pytest.raises(NeverFits) as caught:
        broker.enqueue(pool="uni", **asked)
    assert str(caught.value).startswith(words)
    assert caught.value.hint == "see `grass pool show` for what there is"


def test_a_job_runs_on_its_own_pilot_and_no_other_job_does(
    pool_of: Callable[..., Brokerage], meanwhile: Callable[[Brokerage], None]
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB)
    broker.enqueue(pool="uni", require="{gpu:1,cpu:1}", time_limit_s=LONG_S)
    other = broker.enqueue(pool="uni", time_limit_s=LONG_S)
    first, second = sorted(pilots(broker), key=lambda one: one.job or 0)
    submit(broker, first)
    meanwhile(broker)
    worker = come(broker, second)
    assert broker.where(other) == worker
    assert broker.running() == [other]
    broker.hear(Exited(broker.name(other), broker.now_us, 0), worker)
    assert broker.state.pools.pilots[second.mark].stage is PilotStage.LEAVING
    assert broker.running() == []


def test_a_job_that_ends_with_the_worker_that_was_lent_is_lost(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED)
    jobs = [broker.enqueue(pool="uni", retry_lost=number) for number in (0, 1)]
    failing = broker.enqueue(pool="uni", retry_lost=1)
    worker = come(broker, pilots(broker)[0])
    by_itself, by_its_shell = jobs
    now_us = broker.now_us
    taken = Exited(broker.name(by_itself), now_us, signal=signal.SIGTERM)
    broker.hear(taken, worker)
    broker.hear(Exited(broker.name(by_its_shell), now_us, 143), worker)
    broker.hear(Exited(broker.name(failing), broker.now_us, 1), worker)
    assert broker.states(*jobs, failing) == ["lost", "queued", "failed"]
    assert pilots(broker)[0].stage is PilotStage.LEAVING
    assert broker.reason(jobs[0]) == "its worker was taken back by the engine"


def test_a_job_that_ends_by_sigterm_itself_takes_no_other_along(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED, max_workers=1)
    job, other = broker.enqueue(pool="uni"), broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    submit(broker, pilot)
    worker = come(broker, pilot)
    broker.hear(Exited(broker.name(job), broker.now_us, 143), worker)
    (pilot,) = pilots(broker)
    assert broker.state.workers[worker].draining
    assert (pilot.stage, broker.running()) == (PilotStage.WORKING, [other])
    broker.hear(Exited(broker.name(other), broker.now_us, 0), worker)
    assert pilots(broker)[0].stage is PilotStage.LEAVING


def test_a_worker_that_its_engine_has_lost_gets_no_job_any_more(
    pool_of: Callable[..., Brokerage],
) -> None:
    """After a restart the engine may be heard before the worker is."""
    broker = pool_of(mode=PoolMode.SHARED, max_workers=1)
    job = broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    submit(broker, pilot)
    worker = come(broker, pilot)
    broker.restart()
    ended = PilotReport(mark=pilot.mark, state=PilotState.ENDED, engine_id="1")
    broker.call(PilotsListed([ended]))
    assert pilots(broker) == []
    broker.join(worker, "{cpu:4}", labels=("pool-uni",), running=[broker.report(job)])
    broker.enqueue(pool="uni")
    assert broker.running() == [job]
    assert broker.state.workers[worker].draining


def test_a_pool_that_is_being_removed_takes_nothing_more(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED)
    broker.enqueue(pool="uni")
    come(broker, pilots(broker)[0])
    broker.call(RemovePool(ME, "uni"))
    with pytest.raises(Refused, match="`uni` is being removed"):
        broker.call(SetPoolPaused(ME, "uni", paused=False))
    with pytest.raises(Refused, match="`uni` is being removed"):
        broker.enqueue(pool="uni")


def test_a_pilots_token_ends_soon_after_the_pilot(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED)
    broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    come(broker, pilot)
    token = broker.state.tokens[token_name(pilot.mark)]
    assert token.expires_at == broker.now_us + (7195 + 600) * 1_000_000


def test_a_pilot_leaves_at_once_when_its_job_is_gone(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB)
    job = broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    submit(broker, pilot)
    broker.cancel(job)
    assert pilots(broker)[0].stage is PilotStage.LEAVING
    worker = come(broker, pilot)
    broker.enqueue()
    assert broker.state.workers[worker].draining
    assert broker.where(2) != worker


def test_a_job_starts_where_there_is_room_first(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB)
    jobs = [broker.enqueue(time_limit_s=LONG_S) for _ in range(3)]
    (pilot,) = pilots(broker)
    assert pilot.job == jobs[2]
    broker.exit(jobs[0])
    assert broker.where(jobs[2]) == "worker-1"
    broker.pass_time()
    assert pilots(broker)[0].stage is PilotStage.LEAVING


def test_a_job_that_is_tried_again_gets_another_pilot(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB)
    job = broker.enqueue(pool="uni", retries=1, time_limit_s=LONG_S)
    (first,) = pilots(broker)
    worker = come(broker, first)
    broker.hear(Exited(broker.name(job), broker.now_us, 1), worker)
    end(broker, first)
    (second,) = pilots(broker)
    assert (second.job, broker.running()) == (job, [])
    assert come(broker, second) == broker.where(job) != worker


def test_a_pilot_with_less_time_than_its_job_needs_is_not_used(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB)
    broker.enqueue(pool="uni", time_limit_s=LONG_S)
    (pilot,) = pilots(broker)
    come(broker, pilot, time_left_s=600.0)
    assert broker.running() == []
    pool = broker.state.pools.pools["uni"]
    assert (pool.refusals, pilots(broker)[0].stage) == (1, PilotStage.LEAVING)
    assert pool.words == "a worker has 10m left, and job 1 may take 1h15s"


def test_jobs_that_an_engine_refuses_come_last(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.PER_JOB, max_workers=1)
    bad = broker.enqueue(pool="uni", time_limit_s=1e6)
    good = broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    assert pilot.job == bad
    broker.call(PilotRefused(pilot.mark, "time limit", answered=True))
    broker.pass_time(6)
    assert [one.job for one in pilots(broker)] == [good]


def test_a_shared_pilot_gets_no_job_that_cannot_end_in_its_time(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED, max_workers=1)
    short = broker.enqueue(pool="uni", time_limit_s=60)
    (pilot,) = pilots(broker)
    worker = come(broker, pilot)
    long = broker.enqueue(pool="uni", time_limit_s=LONG_S)
    broker.pass_time(4000)
    late = broker.enqueue(pool="uni", time_limit_s=LONG_S)
    unlimited = broker.enqueue(pool="uni")
    quick = broker.enqueue(pool="uni", time_limit_s=600)
    assert broker.running() == [short, long, quick]
    assert {broker.where(job) for job in (short, long, quick)} == {worker}
    assert broker.states(late, unlimited) == ["queued", "queued"]


def test_an_idle_pilot_without_time_makes_room_for_another(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED, max_workers=1, idle_s=9999)
    job = broker.enqueue(pool="uni")
    (pilot,) = pilots(broker)
    worker = come(broker, pilot)
    broker.pass_time(4000)
    broker.hear(Exited(broker.name(job), broker.now_us, 0), worker)
    assert pilots(broker)[0].stage is PilotStage.WORKING
    broker.enqueue(pool="uni")
    assert pilots(broker)[0].stage is PilotStage.LEAVING
    end(broker, pilots(broker)[0])
    assert [one.stage for one in pilots(broker)] == [PilotStage.ASKED]


def test_what_a_shared_pool_has_no_time_for_is_refused(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of(mode=PoolMode.SHARED)
    said = broker.refused(
        NeverFits, lambda: broker.enqueue(pool="uni", time_limit_s=7200)
    )
    assert "stays for the 2h" in said


def test_the_engine_is_asked_before_about_jobs_with_their_own_pilots(
    pool_of: Callable[..., Brokerage],
) -> None:
    broker = pool_of()
    call = broker.new_job(pool="uni", time_limit_s=LONG_S, require="{cpu:3}")
    assert broker.call(PilotSizes(call)) == [("uni", PilotSize(3, 0, None, 3735))]
    assert broker.call(PilotSizes(broker.new_job(pool="uni"))) == []
    assert broker.call(PilotSizes(broker.new_job(time_limit_s=LONG_S))) == []


@pytest.mark.parametrize("seed", range(15))
def test_in_any_history_a_job_runs_on_its_own_pilot_or_elsewhere_once(
    pool_of: Callable[..., Brokerage], seed: int
) -> None:
    random, broker = Random(seed), pool_of(max_workers=4, idle_s=300)
    workers: dict[str, Pilot] = {}
    for _ in range(100):
        act = random.choice(("enqueue", "come", "exit", "end", "cancel", "time"))
        if act == "enqueue":
            limit_s = random.choice((None, 60.0, 900.0, LONG_S))
            retries = random.choice((0, 1))
            broker.enqueue(pool="uni", time_limit_s=limit_s, retries=retries)
        waiting = [one for one in pilots(broker) if one.worker is None]
        if act == "come" and waiting:
            pilot = random.choice(waiting)
            workers[come(broker, pilot)] = pilot
        running = broker.running()
        if act == "exit" and running:
            job = random.choice(running)
            code = random.choice((0, 1))
            message = Exited(broker.name(job), broker.now_us, code)
            broker.hear(message, broker.where(job))
        leaving = [one for one in pilots(broker) if one.stage is PilotStage.LEAVING]
        if act == "end" and leaving:
            end(broker, random.choice(leaving))
        waits = [job for job in broker.state.jobs if job not in running]
        if act == "cancel" and waits:
            broker.cancel(random.choice(waits))
        if act == "time":
            broker.pass_time(random.uniform(0, 400))
        _check(broker, workers)
    assert workers


def _check(broker: Brokerage, workers: dict[str, Pilot]) -> None:
    for job, attempt in broker.state.attempts.items():
        own = workers[attempt.worker].job
        assert own in (None, job), "a job runs on the pilot of another"
    staying = [one for one in pilots(broker) if one.stage is not PilotStage.LEAVING]
    owned = [one.job for one in staying if one.job is not None]
    assert len(owned) == len(set(owned)), "a job has two pilots"
    for pilot in staying:
        job_state = broker.state.jobs[pilot.job].state if pilot.job else None
        assert job_state in (None, JobState.QUEUED, JobState.RUNNING)
    assert len(pilots(broker)) <= 4
