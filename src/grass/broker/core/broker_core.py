"""The broker's decisions, without I/O: calls and time in, replies and batches out.

`step` applies one call; `decide` starts what the scheduler says fits; `take` returns
what must be committed and what is sent afterwards. A call that raises a
`GrassError` has changed nothing. The shell in `service` does the waiting and writing.
"""

from collections.abc import Callable
from typing import Any

from grass.broker.core import calls
from grass.broker.core.access import tokens, worker_identity
from grass.broker.core.attempts import (
    avoided,
    foreign,
    foreign_calls,
    placing,
    prefetch,
    reconcile,
    tracking,
)
from grass.broker.core.batch import Batch
from grass.broker.core.calls import AnyCall, FromWorker, Prune, TimerFired, WorkerGone
from grass.broker.core.jobs import (
    array_limits,
    bulk_calls,
    edits,
    eligibility,
    enqueue,
    enqueue_plan,
    guests,
    queues,
    removals,
    reruns,
    verbs,
)
from grass.broker.core.pools import pool_calls, pool_workers, requests
from grass.broker.core.profiles import learning, profile_calls
from grass.broker.core.state import State
from grass.broker.core.workers import (
    forget,
    gpu_faults,
    leases,
    message_checks,
    queue_views,
    restored,
    units,
    withholding,
)
from grass.errors import ProtocolError
from grass.link.messages import (
    Exited,
    Hello,
    Overran,
    ProfileNoted,
    Readiness,
    Removed,
    Returned,
    Started,
    Withheld,
)
from grass.model.id_runs import runs
from grass.model.jobs.job import alike
from grass.model.jobs.job_types import learned_type
from grass.model.jobs.lifecycle import JobState
from grass.model.usage import held_sums
from grass.store.interface import JobDetails, Snapshot

MINUTE_US = 60 * 1_000_000


class BrokerCore:
    """All state of a cluster and every decision about it."""

    def __init__(self, snapshot: Snapshot, now_us: int) -> None:
        self.state = State(snapshot, now_us)
        self._publish()
        self._handlers: dict[type[Any], Callable[[State, Any], object]] = {
            calls.Enqueue: enqueue.enqueue,
            calls.PlanEnqueue: enqueue_plan.plan,
            calls.CreateQueue: queues.create,
            calls.EditQueue: queues.edit,
            calls.DeleteQueue: queues.delete,
            calls.SetPaused: queues.set_paused,
            calls.Cancel: verbs.cancel,
            calls.HoldJobs: verbs.hold,
            calls.ReleaseJobs: verbs.release,
            calls.SuspendJobs: verbs.suspend,
            calls.ContinueJobs: verbs.continue_jobs,
            calls.SignalJobs: verbs.signal,
            calls.GiveBackGuest: guests.give_back,
            calls.MeasureGuest: guests.measure,
            calls.NoteInnerType: tracking.note_inner_type,
            calls.Edit: edits.edit,
            calls.Rerun: reruns.rerun,
            calls.AddUnits: units.add,
            calls.RemoveUnit: units.remove,
            calls.SetUnitDrained: units.set_drained,
            calls.SetWorkerDrained: units.set_worker_drained,
            calls.ForgetWorker: forget.forget,
            foreign_calls.EndForeign: foreign.end,
            foreign_calls.KeepForeign: foreign.keep,
            calls.NewToken: tokens.new,
            calls.RevokeToken: tokens.revoke,
            calls.Enrol: tokens.enrol,
            calls.BindToken: tokens.bind,
            calls.TouchToken: tokens.touch,
            requests.AddPool: pool_calls.add,
            requests.SetPoolPaused: pool_calls.set_paused,
            requests.RemovePool: pool_calls.remove,
            requests.AskForPilots: pool_calls.ask_by_hand,
            requests.LeavePilot: pool_calls.leave,
            requests.PilotSizes: pool_calls.sizes,
            requests.PilotSubmitted: pool_calls.submitted,
            requests.PilotRefused: pool_calls.refused,
            requests.PilotsListed: pool_calls.listed,
            requests.PilotsNotListed: pool_calls.not_listed,
            calls.ForgetProfiles: profile_calls.forget,
            calls.ImportProfiles: profile_calls.take_over,
            calls.Prune: _prune,
            calls.FromWorker: _from_worker,
            calls.WorkerGone: _worker_gone,
            calls.TimerFired: _nothing,
        }

    def step(self, call: AnyCall, now_us: int) -> object:
        """Apply one call and return its reply."""
        self.state.now_us = now_us
        return self._handlers[type(call)](self.state, call)

    def advance(self) -> None:
        """Do one more slice of what arrives in slices."""
        state = self.state
        bulk_calls.advance(state.bulk.enqueues)
        eligibility.due(state)
        avoided.due(state)
        if state.readiness.due:
            reconcile.note_unable(state)
        gpu_faults.acknowledge_due(state)
        for job, reason in eligibility.advance(state):
            tracking.give_up(state, job, reason)
        bulk_calls.advance(state.bulk.verbs)

    @property
    def busy(self) -> bool:
        """Tell whether `advance` has more to do."""
        state = self.state
        slices_left = state.bulk.busy or state.dependencies.unchecked
        return bool(slices_left or state.avoided.redirected or removals.due(state))

    def decide(self, now_s: float) -> None:
        """Start what fits; `now_s` is a clock that cannot jump."""
        state = self.state
        state.avoided.redirected = False
        restored.follow(state)
        if state.absences:
            leases.run_out(state, now_s)
        if state.pools.in_use:
            pool_workers.follow(state, now_s)
        for placement in state.scheduler.decide(now_s):
            job = placement.job
            if state.bulk.before_start and bulk_calls.act_before_start(state, job):
                continue
            if state.avoided.kinds and placing.redirect(state, placement):
                continue
            placing.place(state, placement)
            state.prefetched.started.append(job)
        if state.prefetched.started:
            self._prefetch(now_s)
        if state.prefetched.sent:
            prefetch.recall(state, prefetch.overdue(state, now_s))
        if state.pools.pools:
            pool_workers.ask(state)

    def _prefetch(self, now_s: float) -> None:
        state = self.state
        started, state.prefetched.started = state.prefetched.started, []
        if state.bulk.before_start:
            # The next job may be one that a bulk call acts on before it starts.
            return
        for number in started:
            job = state.jobs.get(number)
            most = 0 if job is None else prefetch.depth(state, job)
            while most:
                ahead = state.scheduler.prefetch(number, most)
                if ahead is None:
                    break
                after = state.scheduler.predecessor(ahead.job)
                assert isinstance(after, int)
                if state.avoided.kinds and placing.redirect(state, ahead):
                    continue
                state.prefetched.sent[ahead.job] = now_s
                placing.place(state, ahead, after)

    def wake_at(self) -> float | None:
        """Return when to decide again though nothing happened."""
        state = self.state
        known = [
            state.scheduler.wake_at(),
            prefetch.wake_at(state),
            leases.wake_at(state),
        ]
        return min((at for at in known if at is not None), default=None)

    def received(self, worker: str, now_us: int) -> None:
        """Note that a worker sent something; written at most once a minute."""
        known = self.state.workers.get(worker)
        if known is not None:
            if (known.heard_at or 0) // MINUTE_US != now_us // MINUTE_US:
                self.state.batch.changes.workers[worker] = known
            known.heard_at = now_us

    def next_time(self) -> int | None:
        """Return the time of the wall clock at which there is something to do."""
        times = [eligibility.next_time(self.state), *self.state.readiness.due.values()]
        times += [*pool_workers.next_times(self.state), self.state.avoided.next_us]
        times.append(gpu_faults.next_time(self.state))
        return min((at for at in times if at is not None), default=None)

    def take(self) -> Batch:
        """Return what the calls since the last `take` changed."""
        return self.state.take()

    def _publish(self) -> None:
        """Tell a fresh scheduler all that the store remembers.

        Workers are added when they call: until then it is known what they have, and
        their units are held, not offered.
        """
        state = self.state
        for worker in state.workers.values():
            units.publish(state, worker)
            leases.gone(state, worker)
        pool_workers.restarted(state)
        for queue in state.queues.values():
            queue_views.publish(state, queue)
        for job_type in state.profiles.types():
            learning.publish(state, job_type)
        state.daemon.apply_pause(state)
        for common, count in alike(state.jobs.values()):
            array_limits.join(state, common, count)
        for attempt in state.attempts.values():
            if attempt.after not in state.attempts:
                attempt.after = None
                job = state.jobs[attempt.job]
                spec = state.specs[job.spec]
                state.scheduler.occupy(
                    attempt.job,
                    attempt.worker,
                    attempt.allocation,
                    job.queue,
                    array_limits.limiters_of(job, spec),
                    learned_type(spec, job),
                )
        for attempt in state.attempts.values():
            if attempt.after is not None:
                state.scheduler.restore_prefetched(attempt.job, attempt.after)
        jobs = state.jobs.values()
        avoided.restore(state, (job for job in jobs if job.returns))
        eligibility.enter_all(
            state, (job for job in jobs if job.state is not JobState.RUNNING)
        )


def _from_worker(state: State, call: FromWorker) -> None:
    message_checks.check(call.message)
    if not isinstance(call.message, Hello) and _is_of_second(state, call):
        # Its hello was refused, or was not applied.
        return
    match call.message:
        case Hello():
            if call.message.worker != call.worker:
                raise ProtocolError("a worker says hello for another one")
            reconcile.hello(state, call, call.message)
        case Readiness():
            reconcile.readiness(state, call.worker, call.message)
        case Withheld():
            withholding.heard(state, call.worker, call.message)
        case Removed():
            removals.removed(state, call.worker, call.message)
        case _:
            _about_attempt(state, call)


def _about_attempt(state: State, call: FromWorker) -> None:
    match call.message:
        case Started():
            tracking.started(state, call.worker, call.message)
        case Exited():
            tracking.exited(state, call.worker, call.message)
        case Returned():
            tracking.returned(state, call.worker, call.message)
        case Overran():
            tracking.overran(state, call.worker, call.message)
        case ProfileNoted():
            tracking.profile_noted(state, call.worker, call.message)
        case _:
            raise ProtocolError(f"a worker cannot say {type(call.message).__name__}")


def _is_of_second(state: State, call: FromWorker) -> bool:
    known = state.workers.get(call.worker)
    return known is not None and worker_identity.is_second(known, call.instance)


def _worker_gone(state: State, call: WorkerGone) -> None:
    reconcile.gone(state, call.worker)


def _prune(state: State, call: Prune) -> list[JobDetails]:
    """Delete ended jobs, except those that unfinished ones depend on."""
    found = call.found.jobs if call.found is not None else {}
    known = [found[job] for job in dict.fromkeys(call.jobs) if job in found]
    gone = [one for one in known if _may_go(state, one.job.id)]
    for details in gone:
        state.totals.states[details.job.state] -= 1
        # After a restart the ends of jobs are known also if no call waits for them.
        state.dependencies.ends.pop(details.job.id, None)
        held = held_sums.held_by(details.job, details.attempts, state.now_us)
        held_sums.add(state.batch.changes.held_sums, held)
    removals.add(state, gone)
    state.batch.changes.removed_jobs.extend(details.job.id for details in gone)
    _forget_unused(state, gone)
    ids = runs(one.job.id for one in gone)
    state.note_by(call.actor, "pruned", jobs=len(gone), ids=ids)
    return gone


def _forget_unused(state: State, gone: list[JobDetails]) -> None:
    """Delete what only these jobs used, unless others in the store do."""
    specs = {one.job.spec for one in gone if one.job.spec not in state.specs}
    envs = {one.spec.base_env for one in gone if one.spec.base_env is not None}
    unused = sorted(env for env in envs if not state.specs.needs_env(env))
    state.envs.forget(unused)
    state.batch.changes.unused_specs.extend(sorted(specs))
    state.batch.changes.unused_envs.extend(unused)


def _may_go(state: State, job: int) -> bool:
    changed = job in state.jobs or job in state.batch.changes.jobs
    changed = changed or job in state.batch.changes.removed_jobs
    return not changed and job not in state.dependencies.dependents


def _nothing(_state: State, _call: TimerFired) -> None:
    """Time alone changes no state; `advance` and `decide` follow every batch."""
