"""The broker as it runs: batches, answers, waiting, and stores that fail."""

import asyncio
import threading
from pathlib import Path

import pytest
from tests.broker.serving import play, play_on_uvloop
from tests.support.building import WORKER
from tests.support.far_end import FarEnd
from tests.support.patience import PATIENCE_S

from grass.broker.core.calls import (
    AnyCall,
    Cancel,
    Edit,
    Enqueue,
    Enqueued,
    HoldJobs,
    NewJob,
    Rerun,
)
from grass.broker.shell.service import Broker
from grass.errors import DiskFull, GrassError, NotFound, StorageError
from grass.link.messages import (
    Exited,
    Forget,
    Resync,
    Start,
    Welcome,
)
from grass.model.jobs.dependencies import After
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch

ONE = [NewJob(("true",), JobPatch())]


def test_an_answer_is_durable_and_a_start_follows(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        assert await broker.call(Enqueue("me", ONE)) == Enqueued(1, 1)
        (found,) = await broker.read(lambda store: store.details([1]))
        assert found.job.state is JobState.RUNNING
        start = await worker.hears(Start)
        assert isinstance(start, Start)
        worker.link.send(Exited(start.attempt, 5, 0))
        await broker.ended([1])
        assert await worker.hears(Forget) == Forget([start.attempt])

    play(tmp_path, story)


def test_waiting_for_all_is_over_with_the_last_of_those_that_were_there(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        held = [NewJob(("true",), JobPatch(hold=True))]
        await broker.call(Enqueue("me", held * 3))
        over = asyncio.ensure_future(broker.all_ended(3))
        await broker.call(Enqueue("me", held))
        for job in (3, 1):
            await broker.call(Cancel("me", [job]))
            assert not over.done()
        # One that is run again has ended once, and is waited for no more.
        await broker.call(Rerun("me", [1], hold=True, wanted=[1]))
        await broker.call(Cancel("me", [2]))
        await asyncio.wait_for(over, PATIENCE_S)
        assert not broker.unfinished(2)
        assert broker.unfinished(4)

    play(tmp_path, story)


def test_many_callers_at_once_all_get_their_own_ids(tmp_path: Path) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        calls = [broker.call(Enqueue("me", ONE)) for _ in range(50)]
        replies = await asyncio.gather(*calls)
        assert sorted(reply.first for reply in replies) == list(range(1, 51))

    play(tmp_path, story)


def test_a_large_call_is_answered_when_its_last_slice_is_durable(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        large = asyncio.ensure_future(broker.call(Enqueue("me", ONE * 3500)))
        await asyncio.sleep(0)
        small = await broker.call(Enqueue("me", ONE))
        assert not large.done()
        assert small == Enqueued(3501, 3501)
        assert await large == Enqueued(1, 3500)
        found = await broker.read(lambda store: store.details([1, 3500]))
        assert len(found) == 2

    play(tmp_path, story)


def test_a_long_listing_holds_up_no_call_that_reads_jobs(tmp_path: Path) -> None:
    listed = threading.Event()

    async def story(broker: Broker, _worker: FarEnd) -> None:
        await broker.call(Enqueue("me", ONE))
        listing = asyncio.ensure_future(broker.read(lambda _: listed.wait(PATIENCE_S)))
        after = [NewJob(("true",), JobPatch(after=(After("succeeded", 1, 1),)))]
        await broker.call(Enqueue("me", after, named=[(1, 1)]))
        assert not listing.done()
        listed.set()
        assert await listing

    play(tmp_path, story)


def test_a_large_verb_is_answered_when_its_last_slice_is_durable(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        broker.stop_starting()
        await broker.call(Enqueue("me", ONE * 2000))
        jobs = list(range(1, 2001))
        large = asyncio.ensure_future(broker.call(HoldJobs("me", jobs)))
        await asyncio.sleep(0)
        small = await broker.call(Enqueue("me", ONE))
        assert not large.done()
        assert small == Enqueued(2001, 2001)
        assert (await large).jobs == jobs
        found = await broker.read(lambda store: store.outcomes(jobs))
        assert {job.state for job in found} == {JobState.HELD}

    play(tmp_path, story)


def test_others_are_served_while_a_large_edit_is_checked(tmp_path: Path) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        broker.stop_starting()
        await broker.call(Enqueue("me", ONE * 5000))
        jobs = list(range(1, 5001))
        edit = Edit("me", jobs, JobPatch(priority=3))
        large = asyncio.ensure_future(broker.call(edit))
        await asyncio.sleep(0)
        await broker.call(Enqueue("me", ONE))
        assert broker.state.jobs[1].priority == 0
        assert (await large).jobs == jobs
        assert broker.state.jobs[1].priority == 3

    play(tmp_path, story)


def test_a_refusal_reaches_its_caller_alone(tmp_path: Path) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        bad = [NewJob(("true",), JobPatch(queue="nobody's"))]
        refused = asyncio.ensure_future(broker.call(Enqueue("me", bad)))
        assert await broker.call(Enqueue("me", ONE)) == Enqueued(1, 1)
        with pytest.raises(NotFound):
            await refused

    play(tmp_path, story)


def test_a_batch_that_cannot_be_committed_is_dropped_whole(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        with pytest.raises(StorageError, match="full"):
            await broker.call(Enqueue("me", ONE, "key"))
        await worker.hears(Resync)
        worker.hello()
        await worker.hears(Welcome)
        assert await broker.call(Enqueue("me", ONE, "key")) == Enqueued(1, 1)
        await worker.hears(Start)

    play(tmp_path, story, StorageError("the disk is full"))


def test_a_defect_drops_its_batch_and_the_broker_goes_on(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        with pytest.raises(Exception, match="went wrong inside grass"):
            await broker.call(Enqueue("me", ONE))
        await worker.hears(Resync)
        worker.hello()
        await worker.hears(Welcome)
        assert await broker.call(Enqueue("me", ONE)) == Enqueued(1, 1)

    play(tmp_path, story, RuntimeError("a defect"))


def test_a_tick_may_be_wanted_again_before_one_that_is_due_at_once(
    tmp_path: Path,
) -> None:
    """A delay under half a millisecond has no timer there that knows its time."""

    async def story(broker: Broker, _worker: FarEnd) -> None:
        for delay_s in (0.0004, 0.0, 10.0, 0.0002):
            broker.wake_within(delay_s)
        assert await broker.call(Enqueue("me", ONE)) == Enqueued(1, 1)

    play_on_uvloop(tmp_path, story)


def raises(*_arguments: object) -> None:
    """Stand in for a handler with a defect."""
    raise RuntimeError("a defect")


def test_a_defect_in_one_call_costs_that_call_and_no_other(tmp_path: Path) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        await broker.call(Enqueue("me", ONE * 3))
        await broker.call(Cancel("me", [3]))
        broker._rounds.core._handlers[Cancel] = raises
        first = asyncio.ensure_future(broker.call(Enqueue("me", ONE)))
        rerun = asyncio.ensure_future(broker.call(Rerun("me", [3], wanted=[3])))
        bad = asyncio.ensure_future(broker.call(Cancel("me", [1])))
        after = asyncio.ensure_future(broker.call(Enqueue("me", ONE)))
        with pytest.raises(GrassError, match="went wrong inside grass"):
            await bad
        assert ((await first).last, (await after).last) == (4, 5)
        assert (await rerun).jobs == [3]

    play(tmp_path, story)


def test_a_defect_after_a_commit_leaves_the_broker_alive(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        broker.wake_at = raises  # type: ignore[assignment, method-assign]
        assert await broker.call(Enqueue("me", ONE)) == Enqueued(1, 1)
        await worker.hears(Resync)
        del broker.wake_at
        worker.hello()
        await worker.hears(Welcome)
        assert await broker.call(Enqueue("me", ONE)) == Enqueued(2, 2)

    play(tmp_path, story)


def test_on_a_full_disk_all_goes_on_but_what_adds_and_starts(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        await broker.call(Enqueue("me", ONE * 5))
        first = await worker.hears(Start)
        assert isinstance(first, Start)
        running = sorted(broker.state.attempts)
        full = DiskFull("the disk is full")
        broker._store.shortage = lambda: full  # type: ignore[method-assign]
        adding: AnyCall
        for adding in (Enqueue("me", ONE), Rerun("me", [1], wanted=[1])):
            with pytest.raises(DiskFull):
                await broker.call(adding)
        assert (await broker.call(Cancel("me", [5]))).jobs == [5]
        worker.link.send(Exited(first.attempt, 5, 0))
        await broker.ended([running[0]])
        assert sorted(broker.state.attempts) == running[1:]
        del broker._store.shortage
        await broker.next_commit()
        assert len(broker.state.attempts) == len(running)

    play(tmp_path, story)


def test_a_large_call_is_given_up_whole_when_the_disk_fills_up(tmp_path: Path) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        large = asyncio.ensure_future(broker.call(Enqueue("me", ONE * 3500)))
        await broker.next_commit()
        full = DiskFull("the disk is full")
        broker._store.shortage = lambda: full  # type: ignore[method-assign]
        with pytest.raises(DiskFull):
            await large
        del broker._store.shortage
        assert await broker.read(lambda store: store.details([1, 3500])) == []

    play(tmp_path, story)


def test_a_key_that_is_not_text_is_refused_alone(tmp_path: Path) -> None:
    async def story(broker: Broker, _worker: FarEnd) -> None:
        with pytest.raises(StorageError):
            await broker.call(Enqueue("me", ONE, "\ud800"))
        assert (await broker.call(Enqueue("me", ONE))).first == 1

    play(tmp_path, story)


def test_waiting_ends_with_the_job_and_not_before(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        await broker.call(Enqueue("me", ONE * 3))
        waiting = asyncio.ensure_future(broker.ended([1, 2, 3]))
        await broker.call(Cancel("me", [3]))
        for _ in range(2):
            assert not waiting.done()
            start = await worker.hears(Start)
            assert isinstance(start, Start)
            worker.link.send(Exited(start.attempt, 5, 0))
        await waiting

    play(tmp_path, story)


def test_a_worker_that_hangs_up_is_noted(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        worker.link.close()
        await asyncio.sleep(0)
        await broker.call(Enqueue("me", ONE))
        assert not broker.state.workers[WORKER].connected
        assert not broker.state.attempts

    play(tmp_path, story)
