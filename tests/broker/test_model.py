"""Random verbs, ends, times and restarts: the broker does what the rules say.

`GRASS_MODEL_EXAMPLES=2000` looks much longer than the tests have time for.
"""

import os
from collections import Counter
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from tests.broker.job_model import ENDED, UNSTARTED
from tests.broker.twins import Twins
from tests.support.brokerage import ME, SECOND
from tests.support.building import WORKER

from grass.broker.core.calls import (
    Cancel,
    ContinueJobs,
    Done,
    Edit,
    FromWorker,
    HoldJobs,
    Prune,
    ReleaseJobs,
    Rerun,
    SetPaused,
    SuspendJobs,
    TimerFired,
    WorkerGone,
)
from grass.link.messages import Returned, Started
from grass.model.jobs import dependencies
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import JobPatch

failures = st.sampled_from(["1", "2", "signal", "time-limit", "not-started"])
# One number for all choices of a step: hypothesis gives up on long runs of large steps.
lucks = st.builds(Random, st.integers(0, 2**32 - 1))

SIMPLE_VERBS = [HoldJobs, ReleaseJobs, SuspendJobs, ContinueJobs]


class Verbs(Twins):
    """All that people, workers and time may do."""

    @rule(luck=lucks)
    def enqueue(self, luck: Random) -> None:
        count = luck.choice([0, 0, 0, 2, 4])
        begin_at = self.broker.now_us + 15 * SECOND if luck.random() < 0.2 else None
        fields: dict[str, Any] = {
            "after": self.some_after(luck),
            "begin_at": begin_at,
            "hold": luck.random() < 0.2,
            "retries": luck.choice([0, 0, 1, 2]),
            "backoff_s": luck.choice([0.0, 8.0]),
            "retry_on": luck.choice([(), (), ("2", "signal")]),
            "retry_lost": luck.randint(0, 1),
            "priority": luck.randint(-1, 1),
            "queue": luck.choice(["default", "strict"]),
            "at_most": luck.choice([None, 1]) if count else None,
            "max_fails": luck.choice([None, 1, 2]) if count else None,
        }
        after = tuple(f"{job}:{need}" for job, need in fields["after"])
        indices = tuple(range(count))
        call = self.broker.new_job(indices=indices, **{**fields, "after": after})
        first = self.broker.state.last_job + 1
        self.ask(call, self.model.enqueue(first, count, fields))

    @precondition(lambda self: self.model.jobs)
    @rule(luck=lucks)
    def cancel(self, luck: Random) -> None:
        jobs = self.some_jobs(luck)
        expected = self.model.cancel(jobs)
        assert self.ask(Cancel(ME, jobs), set()).jobs == expected

    @precondition(lambda self: self.model.jobs)
    @rule(luck=lucks, verb=st.sampled_from(SIMPLE_VERBS))
    def simple_verb(self, luck: Random, verb: Any) -> None:
        fitting = {HoldJobs: UNSTARTED, ReleaseJobs: ["held"]}.get(verb, ["running"])
        jobs = self.some_jobs(luck)
        ready = [job.id for job in self.model.in_state(*fitting)]
        if ready:
            jobs = list(dict.fromkeys([*jobs[:1], luck.choice(ready)]))
        wanted = {
            HoldJobs: self.model.hold,
            ReleaseJobs: self.model.release,
            SuspendJobs: self.model.suspend,
            ContinueJobs: self.model.go_on,
        }[verb]
        expected = wanted(jobs)
        done: Done = self.ask(verb(ME, jobs), set())
        assert done.jobs == expected
        assert done.changed == bool(expected)
        assert len(done.warnings) == len(jobs) - len(expected)

    @precondition(lambda self: self.model.in_state(*UNSTARTED))
    @rule(luck=lucks)
    def edit(self, luck: Random) -> None:
        ready = [job.id for job in self.model.in_state(*UNSTARTED)]
        jobs = luck.sample(ready, luck.randint(1, min(2, len(ready))))
        if luck.random() < 0.1:
            jobs = list(dict.fromkeys([*jobs, *self.some_jobs(luck)]))
        if luck.random() < 0.3:
            self.end_in_this_batch(luck)
        changes = self.some_changes(luck, jobs)
        asked, named = dict(changes), list[tuple[int, int]]()
        if luck.random() < 0.5:
            changes["after"] = self.some_after(luck)
            asked["after"] = dependencies.read(
                [f"{job}:{need}" for job, need in changes["after"]], 0
            )
            named = runs_of(asked["after"])
        self.model.catch_up(self.broker.now_us + SECOND)
        errors = self.model.edit(jobs, changes)
        self.ask(Edit(ME, jobs, JobPatch(**asked), named=named), errors)

    @precondition(lambda self: self.model.in_state(*ENDED))
    @rule(luck=lucks)
    def rerun(self, luck: Random) -> None:
        ended = [job.id for job in self.model.in_state(*ENDED)]
        # Those that others still wait for are the more interesting ones.
        ended = self.waited_for() or ended
        jobs = luck.sample(ended, luck.randint(1, min(2, len(ended))))
        if luck.random() < 0.2:
            jobs = list(dict.fromkeys([*jobs, *self.some_jobs(luck)]))
        changes = self.some_changes(luck, jobs) if luck.random() < 0.3 else {}
        hold = luck.random() < 0.3
        if luck.random() < 0.3:
            self.end_in_this_batch(luck)
        self.model.catch_up(self.broker.now_us + SECOND)
        expected, errors = self.model.rerun(jobs, changes, hold=hold)
        again = Rerun(ME, jobs, JobPatch(**changes), hold, wanted=jobs)
        done = self.ask(again, errors)
        assert done is None or done.jobs == expected

    @precondition(lambda self: self.model.in_state(*ENDED))
    @rule(luck=lucks)
    def prune(self, luck: Random) -> None:
        jobs = self.some_jobs(luck) + self.waited_for()[:1]
        jobs = list(dict.fromkeys(jobs))
        expected = self.model.prune(jobs)
        reply = self.ask(Prune(ME, jobs, wanted=jobs), set())
        assert [one.job.id for one in reply] == expected

    @precondition(lambda self: self.model.in_state("running") and not self.paused())
    @rule(queue=st.sampled_from([None, "default", "strict"]))
    def pause(self, queue: str | None) -> None:
        self.model.set_paused(queue, True)
        self.ask(SetPaused(ME, True, queue), set())

    @precondition(lambda self: self.paused())
    @rule(luck=lucks)
    def resume(self, luck: Random) -> None:
        queue = luck.choice(self.paused())
        self.model.set_paused(queue, False)
        self.ask(SetPaused(ME, False, queue), set())

    @precondition(lambda self: self.model.in_state("waiting"))
    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.broker.now_us += seconds * SECOND
        self.ask(TimerFired(), set())

    @precondition(lambda self: self.model.here and self.model.in_state("running"))
    @rule(luck=lucks)
    def a_process_begins(self, luck: Random) -> None:
        job = luck.choice(self.model.in_state("running"))
        job.begun = True
        started = Started(self.broker.name(job.id), 100, self.broker.now_us)
        self.ask(FromWorker(WORKER, started), set())

    @precondition(lambda self: self.alive())
    @rule(luck=lucks, cause=st.sampled_from(["0", "0", "0", "lost"]))
    def a_process_succeeds_or_is_lost(self, luck: Random, cause: str) -> None:
        self.end(luck.choice(self.alive()), cause)

    @precondition(lambda self: self.alive())
    @rule(luck=lucks, cause=failures)
    def a_process_fails(self, luck: Random, cause: str) -> None:
        again = [job for job in self.alive() if self.model.jobs[job].failures]
        self.end(luck.choice(again or self.alive()), cause)

    @precondition(lambda self: self.model.here and self.alive())
    @rule(luck=lucks, cause=st.sampled_from(["1", "0", "lost"]))
    def a_job_is_cancelled_while_it_runs(self, luck: Random, cause: str) -> None:
        job = luck.choice(self.alive())
        expected = self.model.cancel([job])
        assert self.ask(Cancel(ME, [job]), set()).jobs == expected
        self.end(job, cause)

    @precondition(lambda self: self.starting())
    @rule(luck=lucks, cancelled=st.booleans())
    def a_start_is_returned(self, luck: Random, cancelled: bool) -> None:
        job = luck.choice(self.starting())
        if cancelled:
            self.model.cancel([job.id])
            self.ask(Cancel(ME, [job.id]), set())
        if not job.stopping:
            # Its units differ: nothing goes there before it has reported again.
            self.model.here = False
        returned = Returned(self.broker.name(job.id), "in use")
        self.model.returned(job.id)
        self.ask(FromWorker(WORKER, returned), set())
        self.connect()

    @precondition(lambda self: self.model.here and self.model.in_state("running"))
    @rule()
    def the_worker_goes(self) -> None:
        self.model.here = False
        self.ask(WorkerGone(WORKER), set())

    @precondition(lambda self: self.model.here and self.model.in_state("running"))
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
        assert self.broker.state.totals.states == {one: states[one] for one in JobState}
        self.broker.state.scheduler.check()

    @invariant()
    def queues_are_paused_as_the_rules_say(self) -> None:
        known = self.broker.state.queues
        paused = {name: queue.paused for name, queue in self.model.queues.items()}
        assert {name: known[name].paused for name in paused} == paused
        assert known["strict"].fails == self.model.queues["strict"].fails
        arrays = self.broker.state.arrays.active.items()
        fails = {first: array.fails for first, array in arrays if array.fails}
        assert fails == self.model.array_fails


Verbs.TestCase.settings = settings(
    max_examples=int(os.environ.get("GRASS_MODEL_EXAMPLES", "50")),
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestTheRules = Verbs.TestCase
