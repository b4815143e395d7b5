"""The broker as it runs with several links: heartbeats, cuts, output on demand."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.broker.serving import Story, play
from tests.support.building import BOOT, WORKER, units
from tests.support.enrolled import bind_token
from tests.support.far_end import FarEnd

from grass.broker.core.attempts import placing, reconcile, tracking
from grass.broker.core.calls import Enqueue, NewJob, SetPaused
from grass.broker.core.state import State
from grass.broker.core.workers.worker_memory import Absence
from grass.broker.shell import output_streams
from grass.broker.shell.service import Broker
from grass.errors import StorageError, TimedOut, Unreachable
from grass.link.channel import LinkEnd, pair
from grass.link.messages import (
    CloseOutput,
    Exited,
    Heard,
    Heartbeat,
    Hello,
    OutputData,
    ReadOutput,
    Report,
    Resync,
    Returned,
    Start,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.model.jobs.spec import JobPatch

FARM = "farm"


def call_in(broker: Broker) -> FarEnd:
    """Open a link from another machine."""
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
    bind_token(broker.state, FARM)
    broker.serve(ends[0], worker=FARM, address="10.0.0.7")
    return FarEnd(ends[1])


def say_hello(worker: FarEnd, at: float = 1.0) -> None:
    worker.link.send(Hello(FARM, FARM, BOOT, units("{cpu:4}"), [], [], at=at))


async def joined(broker: Broker) -> FarEnd:
    worker = call_in(broker)
    say_hello(worker)
    await worker.hears(Welcome)
    return worker


def test_a_heartbeat_is_answered_with_its_own_time(tmp_path: Path) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        worker = await joined(broker)
        worker.link.send(Heartbeat(17.25))
        assert await worker.hears(Heard) == Heard(17.25)
        assert broker.state.workers[FARM].heard_at is not None
        assert broker.state.workers[FARM].address == "10.0.0.7"

    play(tmp_path, story)


def test_a_newer_link_of_a_worker_closes_the_older_one(tmp_path: Path) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        older = await joined(broker)
        newer = await joined(broker)
        assert older.link.closed
        await asyncio.sleep(0)
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch(worker=FARM))]))
        assert broker.state.workers[FARM].connected
        await newer.hears(Start)

    play(tmp_path, story)


def test_a_link_that_was_disconnected_is_over_at_once(tmp_path: Path) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        worker = await joined(broker)
        broker.disconnect(FARM)
        assert worker.link.closed
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch())]))
        assert not broker.state.workers[FARM].connected

    play(tmp_path, story)


def test_the_brokers_own_worker_is_known_before_it_reports(tmp_path: Path) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
        broker.serve(ends[0], worker="next")
        assert broker.state.daemon.home_worker == "next"

    play(tmp_path, story)


def test_the_brokers_own_worker_is_known_also_after_a_dropped_batch(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, own: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        with pytest.raises(StorageError):
            await broker.call(Enqueue("me", [NewJob(("true",), JobPatch())]))
        await own.hears(Resync)
        own.hello()
        await own.hears(Welcome)
        assert broker.state.daemon.home_worker == WORKER
        call = Enqueue("me", [NewJob(("true",), JobPatch())], base_env={"A": "1"})
        await broker.call(call)
        start = await own.hears(Start)
        assert isinstance(start, Start)
        assert start.base_env == {"A": "1"}

    play(tmp_path, story, StorageError("the disk is full"))


def test_while_batches_are_dropped_heartbeats_are_answered_and_counted_from(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        worker = call_in(broker)
        bind = Enqueue("me", [NewJob(("true",), JobPatch(worker=FARM))])
        hello = Hello(FARM, FARM, BOOT, units("{cpu:4}"), [], [], at=1.0, lease_s=30.0)
        worker.link.send(hello)
        await worker.hears(Welcome)
        broker._store.errors = [StorageError("the disk is full")] * 4  # type: ignore[attr-defined]
        for beat in (2.0, 3.0):
            with pytest.raises(StorageError):
                await broker.call(bind)
            await worker.hears(Resync)
            worker.link.send(msgspec.structs.replace(hello, at=beat))
            worker.link.send(Heartbeat(beat))
            assert await worker.hears(Heard) == Heard(beat)
            assert broker.state.absences.get(FARM, Absence(0)).since_s is None

    play(tmp_path, story)


def test_a_new_worker_whose_first_hello_was_dropped_is_asked_again(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        worker = call_in(broker)
        say_hello(worker)
        await worker.hears(Resync)
        assert FARM not in broker.state.workers
        # Its token was in the batch that was dropped: no real one would be.
        bind_token(broker.state, FARM)
        say_hello(worker, 2.0)
        welcome = await worker.hears(Welcome)
        assert isinstance(welcome, Welcome)
        assert (welcome.cluster, welcome.at) == (broker.state.cluster, 2.0)

    play(tmp_path, story, StorageError("the disk is full"))


def test_a_bad_message_of_a_worker_affects_no_other(tmp_path: Path) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        worker = await joined(broker)
        worker.link.send(Exited("nonsense", 5, 0))
        worker.link.send(Returned("", "full"))
        worker.link.send(Heartbeat(3.0))
        assert await worker.hears(Heard) == Heard(3.0)
        call = Enqueue("me", [NewJob(("true",), JobPatch(worker=FARM))])
        assert (await broker.call(call)).first == 1
        await worker.hears(Start)

    play(tmp_path, story)


def test_who_reads_output_hears_that_its_worker_is_gone(tmp_path: Path) -> None:
    async def story(broker: Broker, own: FarEnd) -> None:
        worker = await joined(broker)
        reading = asyncio.ensure_future(broker.requests.output.grown(FARM, "/o", 0))
        asked = await worker.hears(ReadOutput)
        assert isinstance(asked, ReadOutput)
        # Nobody answers for another worker.
        own.link.send(OutputData(asked.stream, b"forged"))
        worker.link.close()
        with pytest.raises(Unreachable, match="is unreachable"):
            await reading

    play(tmp_path, story)


def test_no_more_output_is_taken_than_was_asked_for(tmp_path: Path) -> None:
    async def story(broker: Broker, _own: FarEnd) -> None:
        worker = await joined(broker)
        reading = asyncio.ensure_future(broker.requests.output.read(FARM, "/o", 0, 3))
        asked = await worker.hears(ReadOutput)
        assert isinstance(asked, ReadOutput)
        worker.link.send(OutputData(asked.stream, b"much more"))
        assert await reading == b"muc"

    play(tmp_path, story)


def test_who_reads_output_does_not_wait_for_ever_for_a_mute_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_streams, "PATIENCE_S", 0.05)

    async def story(broker: Broker, _own: FarEnd) -> None:
        worker = await joined(broker)
        with pytest.raises(TimedOut, match="did not send the output within"):
            await broker.requests.output.read(FARM, "/o", 0)
        asked = await worker.hears(ReadOutput)
        assert isinstance(asked, ReadOutput)
        assert await worker.hears(CloseOutput) == CloseOutput(asked.stream)

    play(tmp_path, story)


def test_the_time_of_an_absent_worker_runs_from_the_start(tmp_path: Path) -> None:
    async def first(broker: Broker, _own: FarEnd) -> None:
        worker = call_in(broker)
        hello = Hello(FARM, FARM, BOOT, units("{cpu:4}"), [], [], lease_s=30.0)
        worker.link.send(hello)
        await worker.hears(Welcome)
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch(worker=FARM))]))

    async def second(broker: Broker, _own: FarEnd) -> None:
        absence = broker.state.absences[FARM]
        assert absence.since_s is not None
        assert absence.next_s == pytest.approx(absence.since_s + 30 + 15 + 13)

    stories: list[Story] = [first, second]
    for story in stories:
        play(tmp_path, story)


def test_a_daemon_that_starts_no_jobs_starts_none_after_a_dropped_batch(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, own: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        broker.stop_starting()
        with pytest.raises(StorageError):
            await broker.call(Enqueue("me", [NewJob(("true",), JobPatch())]))
        await own.hears(Resync)
        own.hello()
        await own.hears(Welcome)
        # Somebody else resumes what was never paused.
        await broker.call(SetPaused("me", False, None))
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch())]))
        assert not broker.state.attempts
        broker.resume_starting()
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch())]))
        await own.hears(Start)

    play(tmp_path, story, StorageError("the disk is full"))


@pytest.mark.parametrize("where", ["exited", "_reconcile"])
def test_a_message_that_brings_out_a_defect_costs_its_own_link_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    module = tracking if where == "exited" else reconcile
    real = getattr(module, where)

    def fail(state: State, *said: object) -> object:
        if FARM in state.workers and any(_of_the_farm(one) for one in said):
            raise RuntimeError("a defect")
        return real(state, *said)

    async def story(broker: Broker, own: FarEnd) -> None:
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch(worker=WORKER))]))
        start = await own.hears(Start)
        monkeypatch.setattr(module, where, fail)
        broker._rounds._pause_s = 0.0
        worker = call_in(broker)
        say_hello(worker)
        worker.link.send(Exited(f"{'a' * 16}.1.1", 5, 0))
        await own.hears(Resync)
        assert worker.link.closed
        again = call_in(broker)
        say_hello(again)
        assert isinstance(start, Start)
        report = Report(start.attempt, start.allocation, running=True)
        own.link.send(Hello(WORKER, "desk", BOOT, units("{cpu:2}"), [report], []))
        await own.hears(Welcome)
        assert again.link.closed
        own.link.send(Exited(start.attempt, 5, 0))
        await broker.ended([1])

    play(tmp_path, story)


def _of_the_farm(said: object) -> bool:
    return said == FARM or (isinstance(said, Hello) and said.worker == FARM)


def test_a_defect_after_the_commit_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = placing.unless_obsolete, [RuntimeError("a defect")]

    def fail(state: State, worker: str, message: ToWorker) -> ToWorker:
        if failures:
            raise failures.pop()
        return real(state, worker, message)

    async def story(broker: Broker, own: FarEnd) -> None:
        broker._rounds._pause_s = 0.0
        monkeypatch.setattr(placing, "unless_obsolete", fail)
        await broker.call(Enqueue("me", [NewJob(("true",), JobPatch())]))
        await own.hears(Resync)
        own.hello()
        start = await own.hears(Start)
        assert isinstance(start, Start)
        own.link.send(Exited(start.attempt, 5, 0))
        await broker.ended([1])

    play(tmp_path, story)
