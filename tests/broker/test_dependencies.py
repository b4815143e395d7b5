"""Jobs that wait for other jobs, and for times."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage, memory
from tests.support.building import WORKER

from grass.broker.core.calls import Cancel, Done, Edit, FromWorker, Prune, Rerun
from grass.broker.core.jobs import dependency_graph, eligibility
from grass.broker.core.jobs.dependency_graph import open_dependencies
from grass.errors import NotFound, Refused, UsageError
from grass.link.messages import Exited
from grass.model.jobs.dependencies import HAS_ENDED, VERBS
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch

Meanwhile = Callable[[Brokerage], None]

ENDS: dict[str, dict[str, Any]] = {
    "succeeded": {"code": 0},
    "failed": {"code": 1},
    "lost": {"code": None, "lost": True},
}


def end(broker: Brokerage, job: int, how: str) -> None:
    """End a running job in one of the four ways."""
    if how == "cancelled":
        broker.cancel(job)
        broker.exit(job, 0)
    else:
        broker.exit(job, **ENDS[how])
    assert broker.job_state(job).value == how


@pytest.mark.parametrize("how", ["succeeded", "failed", "cancelled", "lost"])
@pytest.mark.parametrize("need", ["succeeded", "failed", "any"])
def test_a_dependency_is_met_or_cancels_who_waits(
    broker: Brokerage, need: str, how: str, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=(f"{first}:{need}",))
    assert broker.job_state(second) is JobState.WAITING
    meanwhile(broker)
    assert not broker.started_jobs() or second not in broker.started_jobs()
    end(broker, first, how)
    if need in ("any", how):
        assert broker.started_jobs() == [second]
    else:
        assert broker.job_state(second) is JobState.CANCELLED
        said = f"job {first} to {VERBS[need]}, and it {HAS_ENDED[JobState(how)]}"
        assert said in broker.reason(second)
        assert not broker.started_jobs()


def test_all_dependencies_must_be_met(broker: Brokerage, meanwhile: Meanwhile) -> None:
    one, two = broker.enqueue(), broker.enqueue()
    last = broker.enqueue(after=(f"{one},{two}",))
    broker.exit(one)
    assert broker.job_state(last) is JobState.WAITING
    assert str(two) in broker.why(last)
    meanwhile(broker)
    assert broker.job_state(last) is JobState.WAITING
    broker.exit(two)
    assert broker.started_jobs() == [last]


def test_a_dependency_that_has_ended_already_is_met_at_once(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    broker.exit(first)
    meanwhile(broker)
    second = broker.enqueue(after=(str(first), f"{first}:any"))
    assert broker.started_jobs() == [second]


def test_two_needs_of_one_job_must_both_be_met(broker: Brokerage) -> None:
    first = broker.enqueue()
    never = broker.enqueue(after=(f"{first}:failed", f"{first}:succeeded"))
    both = broker.enqueue(after=(f"{first}:any", f"{first}:succeeded"))
    broker.exit(first)
    assert broker.states(never, both) == ["cancelled", "running"]


def test_cancelling_goes_on_to_those_that_wait_for_the_cancelled(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=(str(first),))
    third = broker.enqueue(after=(str(second),))
    other = broker.enqueue(after=(f"{third}:any",))
    fallback = broker.enqueue(after=(f"{first}:failed",))
    meanwhile(broker)
    broker.exit(first, 3)
    assert broker.states(second, third) == ["cancelled", "cancelled"]
    assert broker.states(other, fallback) == ["running", "running"]
    assert f"job {second}" in broker.reason(third)


def test_a_cancelled_job_takes_those_along_that_wait_for_it(broker: Brokerage) -> None:
    broker.pause()
    first = broker.enqueue()
    second = broker.enqueue(after=(str(first),))
    held = broker.enqueue(after=(str(second),), hold=True)
    broker.cancel(first)
    assert broker.states(first, second, held) == ["cancelled"] * 3


def test_those_that_a_cancelled_job_takes_along_are_counted(broker: Brokerage) -> None:
    first, other = broker.enqueue(), broker.enqueue()
    second = broker.enqueue(after=(str(first),))
    both = broker.enqueue(after=(str(first), str(second)))
    broker.array(5, after=(str(both),), hold=True)
    broker.enqueue(after=(f"{first}:any",))
    broker.enqueue(after=(str(other),))
    done: Done = broker.call(Cancel(ME, [first, second]))
    assert (done.jobs, done.dependents) == ([first, second], 6)
    again: Done = broker.call(Cancel(ME, [second]))
    assert (again.jobs, again.dependents) == ([], 0)


def test_a_chain_of_many_is_cancelled_to_its_end(broker: Brokerage) -> None:
    chain = [broker.enqueue()]
    for _ in range(50):
        chain.append(broker.enqueue(after=(str(chain[-1]),)))
    broker.exit(chain[0], 1)
    assert set(broker.states(*chain[1:])) == {"cancelled"}
    assert not broker.state.dependencies.dependents


def test_more_than_a_slice_may_wait_for_one_end(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    members = broker.array(eligibility.SLICE, after=(str(first),))
    more = [broker.enqueue(after=(f"{first}:failed",)) for _ in range(3)]
    meanwhile(broker)
    broker.exit(first)
    counts = broker.state.totals.states
    assert counts[JobState.WAITING] == 0
    assert counts[JobState.RUNNING] == 2
    assert counts[JobState.QUEUED] == len(members) - 2
    assert broker.states(*more) == ["cancelled"] * 3


@pytest.mark.parametrize("after", ["99", "1-3", "99:any", "0"])
def test_jobs_that_never_were_are_refused(broker: Brokerage, after: str) -> None:
    broker.enqueue()
    before = memory(broker.state)
    with pytest.raises(NotFound) as caught:
        broker.enqueue(after=(after,))
    assert caught.value.exit_code == 4
    assert memory(broker.state) == before


def test_a_job_cannot_wait_for_itself_or_one_that_comes_later(
    broker: Brokerage,
) -> None:
    with pytest.raises(NotFound):
        broker.enqueue(after=(str(broker.state.last_job + 1),))
    with pytest.raises(UsageError):
        broker.enqueue(after=("last",))


def test_the_last_job_is_the_newest(broker: Brokerage) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=("last",))
    broker.exit(first)
    assert broker.started_jobs() == [second]


@pytest.mark.parametrize("how", ["failed", "cancelled", "lost"])
def test_a_dependency_that_failed_before_cancels_the_job_as_one_that_fails_later(
    broker: Brokerage, how: str, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    waited = broker.enqueue(after=(str(first),))
    end(broker, first, how)
    meanwhile(broker)
    reply = broker.call(broker.new_job(after=(str(first),)))
    held = broker.enqueue(after=(str(first),), hold=True)
    last = broker.enqueue(after=(str(reply.first),))
    for job in (waited, reply.first, held):
        assert broker.job_state(job) is JobState.CANCELLED
        said = f"waited for job {first} to succeed, and it {HAS_ENDED[JobState(how)]}"
        assert broker.reason(job) == said
    assert broker.job_state(last) is JobState.CANCELLED
    assert f"job {first} {HAS_ENDED[JobState(how)]} already" in reply.hint


def test_a_dependency_that_ended_in_the_same_batch_is_seen(broker: Brokerage) -> None:
    first = broker.enqueue()
    broker.step_hear(Exited(broker.name(first), broker.now_us, 1))
    broker.step(broker.new_job(after=(str(first),)))
    broker.step(broker.new_job(after=(f"{first}:failed",)))
    broker.flush()
    assert broker.states(first + 1, first + 2) == ["cancelled", "running"]


def test_a_job_forgotten_in_the_same_batch_is_not_waited_for(
    broker: Brokerage,
) -> None:
    first, second = broker.enqueue(), broker.enqueue()
    broker.exit(first)
    call = broker.new_job(after=(str(first), str(second)))
    again = Rerun(ME, [first], wanted=[first])
    broker.step(Prune(ME, [first], wanted=[first]))
    with pytest.raises(NotFound):
        broker.step(call)
    with pytest.raises(NotFound):
        broker.step(again)
    broker.flush()
    assert not broker.store.details([first])


def test_a_job_that_is_still_on_its_way_in_is_not_known_yet(
    broker: Brokerage,
) -> None:
    broker.step(broker.new_job(indices=tuple(range(2500))))
    with pytest.raises(NotFound):
        broker.step(broker.new_job(after=("1",)))
    while broker.core.busy:
        broker.flush()
    broker.call(broker.new_job(after=("1",)))


def test_an_array_may_wait_while_it_arrives_in_slices(broker: Brokerage) -> None:
    first = broker.enqueue()
    call = broker.new_job(indices=tuple(range(2500)), after=(str(first),))
    broker.step(call)
    broker.flush()
    broker.exit(first)
    while broker.core.busy:
        broker.flush()
    counts = broker.state.totals.states
    assert (counts[JobState.RUNNING], counts[JobState.WAITING]) == (2, 0)
    assert not broker.state.dependencies.dependents


def test_what_is_met_once_counts_no_more(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue(require="{cpu:2}")
    second = broker.enqueue(require="{cpu:2}", after=(str(first),))
    blocker = broker.enqueue(require="{cpu:2}", priority=1)
    broker.exit(first)
    assert broker.started_jobs() == [blocker]
    assert broker.job_state(second) is JobState.QUEUED
    broker.rerun(first)
    meanwhile(broker)
    broker.cancel(first)
    assert broker.job_state(second) is JobState.QUEUED
    broker.exit(blocker)
    assert broker.started_jobs() == [second]


def test_an_edit_between_an_end_and_what_follows_from_it_counts_nothing_twice(
    broker: Brokerage,
) -> None:
    one, two = broker.enqueue(), broker.enqueue()
    last = broker.enqueue(after=(str(one), str(two)))
    broker.step_hear(Exited(broker.name(one), broker.now_us, 0))
    broker.step(Edit(ME, [last], JobPatch(priority=1)))
    broker.flush()
    assert broker.job_state(last) is JobState.WAITING
    broker.exit(two)
    assert broker.started_jobs() == [last]


@pytest.mark.parametrize("batches", [1, 2])
def test_an_end_is_final_for_who_waits_though_the_job_runs_again_at_once(
    broker: Brokerage, batches: int
) -> None:
    first = broker.enqueue()
    waits = broker.enqueue(after=(str(first),))
    any_end = broker.enqueue(after=(f"{first}:any",), hold=True)
    broker.step(FromWorker(WORKER, Exited(broker.name(first), broker.now_us, 1)))
    if batches == 2:
        broker.flush()
    broker.call(Rerun(ME, [first], wanted=[first]))
    assert broker.job_state(waits) is JobState.CANCELLED
    assert open_dependencies(broker.state, broker.state.jobs[any_end]) == 1
    broker.exit(first, 1)
    broker.release(any_end)
    assert broker.job_state(any_end) is JobState.RUNNING


def test_why_names_who_is_waited_for_and_how(broker: Brokerage) -> None:
    one, two = broker.enqueue(), broker.enqueue()
    jobs = {
        need: broker.enqueue(after=(f"{one}:{need}", f"{two}:any"))
        for need in ("succeeded", "failed", "any")
    }
    says = {need: broker.why(job) for need, job in jobs.items()}
    more = f"waits for job {one} (running) and 1 more"
    assert says["succeeded"] == f"{more} to end as asked"
    assert says["failed"] == f"{more} to end as asked"
    assert says["any"] == f"{more} to end"
    alone = broker.enqueue(after=(f"{one}:failed",))
    assert broker.why(alone) == f"waits for job {one} (running) to fail"
    held = broker.enqueue(hold=True)
    assert f"grass release {held}" in broker.why(held)


def test_a_cancelled_job_is_not_waited_for_by_memory_any_more(
    broker: Brokerage,
) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=(str(first),))
    broker.call(Cancel(ME, [second]))
    assert not broker.state.dependencies.dependents
    assert not broker.state.dependencies.groups
    broker.exit(first)
    assert broker.job_state(second) is JobState.CANCELLED


def test_what_others_wait_for_is_not_forgotten(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    one, two, free = broker.enqueue(), broker.enqueue(), broker.enqueue()
    broker.exit(one)
    waits = broker.enqueue(after=(str(one), str(two)))
    broker.exit(free)
    meanwhile(broker)
    assert broker.prune(one, free) == [free]
    broker.exit(two)
    assert broker.job_state(waits) is JobState.RUNNING
    assert broker.prune(one, two) == [one, two]
    broker.restart_all()
    assert broker.job_state(waits) is JobState.RUNNING


def test_what_a_held_job_waits_for_is_not_forgotten(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    held = broker.enqueue(after=(str(first),), hold=True)
    broker.exit(first)
    meanwhile(broker)
    assert broker.prune(first) == []
    broker.release(held)
    assert broker.job_state(held) is JobState.RUNNING
    assert broker.prune(first) == [first]


def test_a_job_forgotten_after_a_restart_is_not_known_as_a_dependency(
    broker: Brokerage,
) -> None:
    first = broker.enqueue()
    broker.cancel(first)
    broker.exit(first, 0)
    broker.pause()
    second = broker.enqueue(after=(f"{first}:any",))
    broker.restart()
    assert broker.prune(first) == [first]
    broker.refused(NotFound, lambda: broker.edit(second, after=(str(first),)))


def test_ranges_of_a_large_array_take_little_memory(broker: Brokerage) -> None:
    broker.array(900, hold=True)
    tracemalloc.start()
    for first in range(1, 101):
        broker.enqueue(after=(f"{first}-900",))
    broker.flush()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 100 * 20_000
    assert broker.state.dependencies.entries[ME] < 100 * 30


def test_an_owner_names_a_limited_number_of_jobs(
    broker: Brokerage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependency_graph, "MAX_ENTRIES_EACH", 10)
    broker.array(30, hold=True)
    odd = ",".join(map(str, range(1, 17, 2)))
    first = broker.enqueue(after=(odd,))
    text = broker.refused(Refused, lambda: broker.enqueue(after=("21,23,25",)))
    assert "name too many others: 11 entries, at most 10" in text
    second = broker.enqueue(after=("21,23",))
    broker.refused(Refused, lambda: broker.edit(second, after=("1,3,5",)))
    broker.cancel(first)
    broker.enqueue(after=("25,27",))
    assert broker.state.dependencies.entries[ME] == 4


def test_unfinished_jobs_name_a_limited_number_of_jobs_in_all(
    broker: Brokerage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependency_graph, "MAX_ENTRIES", 3)
    broker.array(9, hold=True)
    broker.enqueue(after=("1,3,5",))
    broker.refused(Refused, lambda: broker.enqueue(after=("7",)))


def test_a_range_waits_for_each_of_its_jobs(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    jobs = [broker.enqueue() for _ in range(5)]
    last = broker.enqueue(after=(f"{jobs[0]}-{jobs[-1]}:any",))
    for job in jobs:
        assert broker.job_state(last) is JobState.WAITING
        assert f"waits for job {job} " in broker.why(last)
        meanwhile(broker)
        broker.exit(job, 1)
    assert broker.started_jobs() == [last]
