"""Pools without I/O: how many pilots are asked for, and when they leave."""

import pytest
from msgspec.structs import replace
from tests.support.building import a_pool

from grass.broker.core.pools import asking, engine_answers, leaving
from grass.broker.core.pools.asking import WaitingJob
from grass.broker.core.pools.pool_memory import (
    CancelPilots,
    DrainWorker,
    PoolEffect,
    PoolMemory,
    Submit,
)
from grass.model.pools import PilotReport, PilotSize, PilotStage, PilotState
from grass.model.resources import ONE_CPU

SECOND = 1_000_000
NOW = 1_000 * SECOND
MARKS = ["m1", "m2", "m3", "m4", "m5"]


@pytest.fixture
def memory() -> PoolMemory:
    pool = a_pool("uni")
    return PoolMemory([pool])


def taken(memory: PoolMemory) -> list[PoolEffect]:
    effects, memory.effects = memory.effects, []
    return effects


def ask(memory: PoolMemory, waiting: int, now: int = NOW) -> int:
    """Ask, and return how many pilots that made."""
    before = len(memory.pilots)
    fresh = [mark for mark in MARKS if mark not in memory.pilots]
    jobs = [WaitingJob(number, request=ONE_CPU) for number in range(1, waiting + 1)]
    asking.ask(memory, memory.pools["uni"], jobs, fresh, now)
    return len(memory.pilots) - before


def working(memory: PoolMemory, needed: bool = True) -> None:
    """Have one pilot whose worker has come."""
    ask(memory, 1)
    engine_answers.submitted(memory, "uni", "m1", "7")
    come(memory, needed=needed)


def come(memory: PoolMemory, needed: bool = True, has_jobs: bool = False) -> None:
    arrival = leaving.Arrival(needed, has_jobs)
    leaving.came(memory, memory.pilots["m1"], "w1", NOW, arrival)


def report(state: PilotState, engine_id: str = "7", word: str = "") -> PilotReport:
    return PilotReport(mark="m1", state=state, engine_id=engine_id, word=word)


def test_rows_are_there_before_anything_is_submitted(memory: PoolMemory) -> None:
    assert ask(memory, 2) == 2
    assert list(memory.changed_pilots) == ["m1", "m2"]
    assert taken(memory) == [Submit("uni", "m1"), Submit("uni", "m2")]


def test_no_more_are_asked_for_than_jobs_wait_or_the_limit_allows(
    memory: PoolMemory,
) -> None:
    assert ask(memory, 0) == 0
    assert ask(memory, 1) == 1
    assert ask(memory, 1) == 0
    assert ask(memory, 100) == 2
    assert ask(memory, 100) == 0


def test_pilots_that_leave_count_against_the_limit(memory: PoolMemory) -> None:
    ask(memory, 3)
    for mark in ("m1", "m2", "m3"):
        leaving.leave(memory, memory.pilots[mark])
    assert ask(memory, 3) == 0


def test_a_refusal_is_waited_out_longer_each_time(memory: PoolMemory) -> None:
    waits, now = [], NOW
    for _ in range(4):
        assert ask(memory, 1, now) == 1
        engine_answers.refused(memory, "m1", "QOSMaxSubmitJobPerUserLimit", now)
        retry = asking.retry_at(memory)
        assert retry is not None
        assert ask(memory, 1, retry - 1) == 0
        waits.append((retry - now) // SECOND)
        now = retry
    assert waits == [5, 15, 60, 300]


def test_ten_refusals_pause_the_pool_with_the_engines_words(
    memory: PoolMemory,
) -> None:
    now = NOW
    for _ in range(10):
        assert ask(memory, 1, now) == 1
        engine_answers.refused(memory, "m1", "Invalid account", now)
        now += 3600 * SECOND
    pool = memory.pools["uni"]
    assert (pool.paused, pool.words) == (True, "Invalid account")
    assert ask(memory, 1, now) == 0
    assert asking.resume(memory, pool)
    assert ask(memory, 1, now) == 1


def test_one_that_is_accepted_makes_refusals_forgotten(memory: PoolMemory) -> None:
    ask(memory, 1)
    engine_answers.refused(memory, "m1", "no", NOW)
    ask(memory, 1, NOW + 5 * SECOND)
    engine_answers.submitted(memory, "uni", "m1", "7")
    assert (memory.pools["uni"].refusals, memory.pools["uni"].words) == (0, "")


def test_an_engine_that_does_not_answer_never_pauses_a_pool(
    memory: PoolMemory,
) -> None:
    ask(memory, 1)
    for _ in range(20):
        engine_answers.not_answered(memory, "m1", "Unable to contact", NOW)
    assert not memory.pools["uni"].paused
    assert memory.pools["uni"].words == "Unable to contact"


def test_after_a_crash_what_the_engine_lists_is_adopted(memory: PoolMemory) -> None:
    ask(memory, 1)
    engine_answers.restarted(memory, NOW)
    assert ask(memory, 1) == 0
    engine_answers.listed(memory, [report(PilotState.PENDING)], NOW)
    pilot = memory.pilots["m1"]
    assert (pilot.stage, pilot.engine_id) == (PilotStage.SUBMITTED, "7")


def test_after_a_crash_what_never_came_is_asked_for_again_only_later(
    memory: PoolMemory,
) -> None:
    ask(memory, 1)
    engine_answers.restarted(memory, NOW)
    absent = [report(PilotState.ABSENT, "")]
    engine_answers.listed(memory, absent, NOW + SECOND)
    assert ask(memory, 1) == 0
    engine_answers.listed(memory, absent, NOW + engine_answers.UNLISTED_US)
    assert not memory.pilots
    assert memory.removed_pilots == ["m1"]


def test_a_connected_worker_is_alive_whatever_the_engine_says(
    memory: PoolMemory,
) -> None:
    working(memory)
    late = NOW + 10 * engine_answers.UNLISTED_US
    engine_answers.listed(memory, [report(PilotState.ABSENT, "")], late)
    engine_answers.listed(memory, [report(PilotState.ENDED)], late)
    assert memory.pilots["m1"].stage is PilotStage.WORKING
    leaving.gone(memory, "w1")
    engine_answers.listed(memory, [report(PilotState.ENDED)], late)
    assert not memory.pilots


def test_an_unknown_word_ends_nothing(memory: PoolMemory) -> None:
    ask(memory, 1)
    engine_answers.submitted(memory, "uni", "m1", "7")
    unknown = report(PilotState.UNKNOWN, word="FROZEN")
    engine_answers.listed(memory, [unknown], NOW + 10 * engine_answers.UNLISTED_US)
    assert memory.pilots["m1"].report == unknown


def fail_to_start(memory: PoolMemory, now: int) -> None:
    """Have the engine take a pilot that ends before its worker comes."""
    assert ask(memory, 1, now) == 1
    engine_answers.submitted(memory, "uni", "m1", "7")
    ended = report(PilotState.ENDED, word="NODE_FAIL")
    engine_answers.listed(memory, [ended], now)


def test_pilots_that_end_before_their_worker_came_pause_the_pool(
    memory: PoolMemory,
) -> None:
    """The engine takes each of them, which says nothing about the next."""
    pool, waits, now = memory.pools["uni"], [], NOW
    for _ in range(10):
        fail_to_start(memory, now)
        assert pool.retry_at is not None
        waits.append((pool.retry_at - now) // SECOND)
        now = pool.retry_at
        assert pool.words == (
            "the engine's job ended before its worker came: NODE_FAIL;"
            " `grass pool logs uni` shows what it printed"
        )
    assert waits[:4] == [5, 15, 60, 300]
    assert (pool.paused, pool.failed_starts, len(memory.pilots)) == (True, 10, 0)
    assert asking.resume(memory, pool)
    assert ask(memory, 1, now) == 1


def test_pilots_that_failed_together_count_once(memory: PoolMemory) -> None:
    ask(memory, 3)
    for mark in ("m1", "m2", "m3"):
        engine_answers.submitted(memory, "uni", mark, mark)
    ended = [replace(report(PilotState.ENDED), mark=mark) for mark in ("m1", "m2")]
    engine_answers.listed(memory, ended, NOW)
    assert memory.pools["uni"].failed_starts == 1


def test_a_worker_that_comes_makes_failed_starts_forgotten(memory: PoolMemory) -> None:
    fail_to_start(memory, NOW)
    ask(memory, 1, NOW + 5 * SECOND)
    engine_answers.submitted(memory, "uni", "m1", "8")
    pool = memory.pools["uni"]
    assert "NODE_FAIL" in pool.words
    come(memory)
    assert (pool.failed_starts, pool.words, pool.retry_at) == (0, "", None)


def test_a_job_that_the_engine_never_takes_delays_no_other(memory: PoolMemory) -> None:
    pool, now = memory.pools["uni"], NOW
    own = PilotSize(1, 0, None, 700.0)
    for times in range(1, 11):
        asking.ask(memory, pool, [WaitingJob(7, own)], ["m1"], now)
        engine_answers.refused(memory, "m1", "time limit is invalid", now)
        known = memory.refused_jobs[7]
        assert (known.times, pool.refusals) == (times, 1)
        if times > 1:
            assert ask(memory, 1, now) == 1
            memory.drop(memory.pilots["m1"])
        now = max(known.retry_at or now, pool.retry_at or now)
    assert memory.refused_jobs[7].retry_at is None
    assert (pool.paused, pool.words) == (False, "time limit is invalid")


def test_as_many_pilots_are_asked_for_as_the_jobs_fill() -> None:
    memory = PoolMemory([replace(a_pool("uni"), cpus=4)])
    assert ask(memory, 9) == 3
    assert ask(memory, 12) == 0
    memory = PoolMemory([replace(a_pool("uni"), cpus=4)])
    assert ask(memory, 4) == 1


def test_an_idle_worker_is_drained_before_it_is_ended(memory: PoolMemory) -> None:
    working(memory)
    taken(memory)
    leaving.busy(memory, "w1")
    leaving.advance(memory, NOW + 100 * SECOND)
    assert taken(memory) == []
    leaving.idle(memory, "w1", NOW + 100 * SECOND)
    assert leaving.wake_at(memory) == NOW + 130 * SECOND
    leaving.advance(memory, NOW + 129 * SECOND)
    assert taken(memory) == []
    leaving.advance(memory, NOW + 130 * SECOND)
    assert taken(memory) == [DrainWorker("w1"), CancelPilots("uni", ("7",))]


def test_a_worker_that_nobody_waits_for_leaves_at_once(memory: PoolMemory) -> None:
    working(memory, needed=False)
    assert CancelPilots("uni", ("7",)) in taken(memory)


def test_a_worker_that_comes_back_is_not_sent_away(memory: PoolMemory) -> None:
    working(memory)
    leaving.gone(memory, "w1")
    come(memory, needed=False)
    assert memory.pilots["m1"].stage is PilotStage.WORKING


def test_a_removed_pool_ends_no_job_of_a_worker_that_was_away(
    memory: PoolMemory,
) -> None:
    working(memory)
    leaving.busy(memory, "w1")
    leaving.gone(memory, "w1")
    taken(memory)
    leaving.remove(memory, memory.pools["uni"], {"w1"})
    come(memory, has_jobs=True)
    assert set(taken(memory)) == {DrainWorker("w1")}
    leaving.idle(memory, "w1", NOW)
    assert CancelPilots("uni", ("7",)) in taken(memory)


def test_a_worker_without_time_gets_no_job_and_leaves_when_idle(
    memory: PoolMemory,
) -> None:
    working(memory)
    leaving.busy(memory, "w1")
    taken(memory)
    at = leaving.wake_at(memory)
    assert at == NOW + (3600 - 60) * SECOND
    leaving.advance(memory, at)
    assert taken(memory) == [DrainWorker("w1")]
    assert leaving.wake_at(memory) is None
    leaving.idle(memory, "w1", at)
    assert CancelPilots("uni", ("7",)) in taken(memory)


def test_a_cancel_that_was_lost_is_repeated(memory: PoolMemory) -> None:
    working(memory, needed=False)
    taken(memory)
    engine_answers.listed(memory, [report(PilotState.RUNNING)], NOW)
    assert taken(memory) == [CancelPilots("uni", ("7",))]


def test_a_pool_goes_with_its_last_pilot(memory: PoolMemory) -> None:
    working(memory)
    leaving.busy(memory, "w1")
    taken(memory)
    leaving.remove(memory, memory.pools["uni"], {"w1"})
    assert taken(memory) == [DrainWorker("w1")]
    leaving.idle(memory, "w1", NOW)
    assert CancelPilots("uni", ("7",)) in taken(memory)
    leaving.gone(memory, "w1")
    engine_answers.listed(memory, [report(PilotState.ENDED)], NOW)
    assert (memory.pools, memory.removed_pools) == ({}, ["uni"])


def test_what_is_submitted_after_its_row_is_gone_is_ended(memory: PoolMemory) -> None:
    engine_answers.submitted(memory, "uni", "m9", "12")
    assert taken(memory) == [CancelPilots("uni", ("12",))]


def test_what_a_person_asked_for_stays_though_no_job_waits(memory: PoolMemory) -> None:
    asking.ask_by_hand(memory, memory.pools["uni"], ["m1"], NOW)
    assert taken(memory) == [Submit("uni", "m1")]
    engine_answers.submitted(memory, "uni", "m1", "7")
    come(memory, needed=False)
    assert taken(memory) == []
    leaving.advance(memory, NOW + int(memory.pools["uni"].idle_s) * SECOND)
    assert CancelPilots("uni", ("7",)) in taken(memory)


def test_one_that_is_sent_away_finishes_its_jobs_first(memory: PoolMemory) -> None:
    working(memory)
    leaving.busy(memory, "w1")
    taken(memory)
    leaving.leave_after_jobs(memory, memory.pilots["m1"], has_jobs=True)
    assert taken(memory) == [DrainWorker("w1")]
    leaving.idle(memory, "w1", NOW)
    assert CancelPilots("uni", ("7",)) in taken(memory)
