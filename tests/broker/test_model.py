"""Random verbs, ends, times and restarts: the broker does what the rules say.

`GRASS_MODEL_EXAMPLES=2000` looks much longer than the tests have time for.
"""

import os
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from tests.broker.job_model import (
    ENDED,
)
from tests.broker.twins import Twins, queues
from tests.support.brokerage import ME, SECOND
from tests.support.building import WORKER

from grass.broker.calls import (
    Cancel,
    Continue,
    Done,
    Edit,
    FromWorker,
    Hold,
    Prune,
    Release,
    Rerun,
    SetPaused,
    Suspend,
    Tick,
    WorkerGone,
)
from grass.link.messages import Returned, Started
from grass.model.lifecycle import AttemptState, JobState

failures = st.sampled_from(["1", "2", "signal", "time-limit", "not-started", "1"])


class Verbs(Twins):
    """All that people, workers and time may do."""

    @rule(
        data=st.data(),
        count=st.sampled_from([0, 0, 0, 2, 4]),
        hold=st.sampled_from([False, False, False, True]),
        retries=st.sampled_from([0, 0, 1, 2]),
        backoff_s=st.sampled_from([0.0, 8.0]),
        retry_on=st.sampled_from([(), (), ("2", "signal")]),
        retry_lost=st.integers(0, 1),
        begin_in=st.sampled_from([None, None, None, 15]),
        priority=st.integers(-1, 1),
        queue=queues,
        at_most=st.sampled_from([None, 1]),
        max_fails=st.sampled_from([None, 1, 2]),
    )
    def enqueue(
        self, data: st.DataObject, count: int, begin_in: int | None, **fields: Any
    ) -> None:
        begin_at = None if begin_in is None else self.broker.now_us + begin_in * SECOND
        if not count:
            fields["at_most"] = fields["max_fails"] = None
        fields |= {"after": self.some_after(data), "begin_at": begin_at}
        indices = tuple(range(count))
        after = tuple(f"{job}:{need}" for job, need in fields["after"])
        call = self.broker.new_job(indices=indices, **{**fields, "after": after})
        first = self.broker.state.last_job + 1
        self.ask(call, self.model.enqueue(first, count, fields))

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        jobs = self.some_jobs(data)
        expected = self.model.cancel(jobs)
        assert self.ask(Cancel(ME, jobs), set()).jobs == expected

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), verb=st.sampled_from([Hold, Release, Suspend, Continue]))
    def simple_verb(self, data: st.DataObject, verb: Any) -> None:
        jobs = self.some_jobs(data)
        if verb is Release:
            held = [job.id for job in self.model.in_state("held")]
            jobs = list(dict.fromkeys([*jobs, *held[:1]]))
        wanted = {
            Hold: self.model.hold,
            Release: self.model.release,
            Suspend: self.model.suspend,
            Continue: self.model.go_on,
        }[verb]
        expected = wanted(jobs)
        done: Done = self.ask(verb(ME, jobs), set())
        assert done.jobs == expected
        assert done.changed == bool(expected)
        assert len(done.warnings) == len(jobs) - len(expected)

    @precondition(lambda self: self.model.in_state("held", "waiting", "queued"))
    @rule(data=st.data(), after=st.booleans())
    def edit(self, data: st.DataObject, after: bool) -> None:
        ready = [job.id for job in self.model.in_state("held", "waiting", "queued")]
        jobs = data.draw(st.lists(st.sampled_from(ready), min_size=1, unique=True))
        if data.draw(st.integers(0, 5)) == 0:
            jobs = list(dict.fromkeys([*jobs, *self.some_jobs(data)]))
        changes = self.some_changes(data, jobs)
        asked, named = dict(changes), list[int]()
        if after:
            changes["after"] = self.some_after(data)
            asked["after"] = tuple(f"{job}:{need}" for job, need in changes["after"])
            named = [job for job, _ in changes["after"]]
        errors = self.model.edit(jobs, changes)
        self.ask(Edit(ME, jobs, asked, wanted=named), errors)

    @precondition(lambda self: self.model.in_state(*ENDED))
    @rule(data=st.data(), hold=st.booleans(), change=st.booleans())
    def rerun(self, data: st.DataObject, hold: bool, change: bool) -> None:
        ended = [job.id for job in self.model.in_state(*ENDED)]
        # Those that others still wait for are the more interesting ones.
        ended = self.waited_for() or ended
        jobs = data.draw(st.lists(st.sampled_from(ended), min_size=1, unique=True))
        if data.draw(st.integers(0, 4)) == 0:
            jobs = list(dict.fromkeys([*jobs, *self.some_jobs(data)]))
        changes = self.some_changes(data, jobs) if change else {}
        known = [self.model.jobs[job] for job in jobs if job in self.model.jobs]
        wanted = [*jobs, *(other for job in known for other, _ in job.after)]
        expected, errors = self.model.rerun(jobs, changes, hold=hold)
        done = self.ask(Rerun(ME, jobs, changes, hold, wanted=wanted), errors)
        assert done is None or done.jobs == expected

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def prune(self, data: st.DataObject) -> None:
        jobs = self.some_jobs(data) + self.waited_for()[:1]
        jobs = list(dict.fromkeys(jobs))
        expected = self.model.prune(jobs)
        reply = self.ask(Prune(ME, jobs, wanted=jobs), set())
        assert [one.job.id for one in reply.jobs] == expected

    @rule(queue=st.none() | queues)
    def pause(self, queue: str | None) -> None:
        self.model.set_paused(queue, True)
        self.ask(SetPaused(ME, True, queue), set())

    @precondition(lambda self: self.paused())
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        queue = data.draw(st.sampled_from(self.paused()))
        self.model.set_paused(queue, False)
        self.ask(SetPaused(ME, False, queue), set())

    @precondition(lambda self: len(self.paused()) > 1 or self.model.paused)
    @rule()
    def resume_all(self) -> None:
        for queue in self.paused():
            self.model.set_paused(queue, False)
            self.ask(SetPaused(ME, False, queue), set())

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.broker.now_us += seconds * SECOND
        self.ask(Tick(), set())

    @precondition(lambda self: self.model.here and self.model.in_state("running"))
    @rule(data=st.data())
    def a_process_begins(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.model.in_state("running")))
        job.begun = True
        started = Started(self.broker.name(job.id), 100, self.broker.now_us)
        self.ask(FromWorker(WORKER, started), set())

    @precondition(lambda self: self.alive())
    @rule(data=st.data(), cause=st.sampled_from(["0", "0", "0", "lost"]))
    def a_process_succeeds_or_is_lost(self, data: st.DataObject, cause: str) -> None:
        self.end(data.draw(st.sampled_from(self.alive())), cause)

    @precondition(lambda self: self.alive())
    @rule(data=st.data(), cause=failures)
    def a_process_fails(self, data: st.DataObject, cause: str) -> None:
        self.end(data.draw(st.sampled_from(self.alive())), cause)

    @precondition(lambda self: self.model.here and self.alive())
    @rule(data=st.data(), cause=st.sampled_from(["1", "0", "lost"]))
    def a_job_is_cancelled_while_it_runs(self, data: st.DataObject, cause: str) -> None:
        job = data.draw(st.sampled_from(self.alive()))
        assert self.ask(Cancel(ME, [job]), set()).jobs == self.model.cancel([job])
        self.end(job, cause)

    @precondition(lambda self: self.starting())
    @rule(data=st.data(), cancelled=st.booleans())
    def a_start_is_returned(self, data: st.DataObject, cancelled: bool) -> None:
        job = data.draw(st.sampled_from(self.starting()))
        if cancelled:
            self.model.cancel([job.id])
            self.ask(Cancel(ME, [job.id]), set())
        returned = Returned(self.broker.name(job.id), "in use")
        if not job.stopping:
            # Its books differ: nothing goes there before it has reported again.
            self.model.here = False
        self.model.returned(job.id)
        self.ask(FromWorker(WORKER, returned), set())
        self.connect()

    @precondition(lambda self: self.model.here)
    @rule()
    def the_worker_goes(self) -> None:
        self.model.here = False
        self.ask(WorkerGone(WORKER), set())

    @rule(deaf=st.booleans())
    def the_broker_restarts(self, deaf: bool) -> None:
        self.model.here = False
        self.broker.restart()
        self.broker.flush()
        self.follow()
        if not deaf:
            self.connect()

    @precondition(lambda self: not self.model.here)
    @rule(rebooted=st.sampled_from([False, False, False, True]))
    def the_worker_connects(self, rebooted: bool) -> None:
        if rebooted:
            self.boot += "'"
            self.unreported = []
            for job in self.model.in_state("running"):
                self.model.exited(job.id, "lost", self.broker.now_us + SECOND)
        self.connect()

    @invariant()
    def every_job_is_in_the_state_that_the_rules_say(self) -> None:
        last = self.broker.state.last_job
        found = self.broker.store.details(list(range(1, last + 1)))
        states = {one.job.id: one.job.state.value for one in found}
        assert states == {job.id: job.state for job in self.model.jobs.values()}
        for one in found:
            expected = self.model.jobs[one.job.id]
            assert one.job.attempts == expected.attempts == len(one.attempts)
            assert bool(one.job.suspended_since) == expected.suspended
            assert bool(one.job.stopping_since) == expected.stopping
            assert (one.job.priority, one.job.queue) == (
                expected.priority,
                expected.queue,
            )
            assert one.job.failures == expected.failures
            assert one.job.losses == expected.losses
            assert one.job.not_before == expected.not_before
            if expected.after:
                assert one.job.met == expected.met
            live = (AttemptState.STARTING, AttemptState.RUNNING)
            running = [each for each in one.attempts if each.state in live]
            assert len(running) == (expected.state == "running")

    @invariant()
    def what_is_counted_is_what_there_is(self) -> None:
        states = Counter(job.state for job in self.model.jobs.values())
        assert self.broker.state.counts == {one: states[one] for one in JobState}
        self.broker.state.scheduler.check()

    @invariant()
    def queues_are_paused_as_the_rules_say(self) -> None:
        known = self.broker.state.queues
        paused = {name: queue.paused for name, queue in self.model.queues.items()}
        assert {name: known[name].paused for name in paused} == paused
        assert known["strict"].fails == self.model.queues["strict"].fails
        arrays = self.broker.state.arrays.items()
        fails = {first: array.fails for first, array in arrays if array.fails}
        assert fails == self.model.array_fails


Verbs.TestCase.settings = settings(
    max_examples=int(os.environ.get("GRASS_MODEL_EXAMPLES", "50")),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestTheRules = Verbs.TestCase
