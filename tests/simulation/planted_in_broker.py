"""Bugs of a broker that the simulation must find, one at a time.

Each removes one rule behind "nothing lost, nothing run twice": a test that cannot fail
proves nothing.
"""

from typing import Any

import pytest

from grass.broker.core import rounds
from grass.broker.core.applied_calls import Applied
from grass.broker.core.attempts import (
    avoided,
    outcomes,
    prefetch,
    reconcile,
    tracking,
)
from grass.broker.core.jobs import bulk_enqueue, dependency_graph, removals, verbs
from grass.broker.core.jobs import enqueue as enqueueing
from grass.broker.core.jobs.edits import Change
from grass.broker.core.jobs.job_memory import AnsweredCalls
from grass.broker.core.rounds import Rounds
from grass.broker.core.shell_interface import Commit
from grass.broker.core.state import State
from grass.keeper.protocol import ExitEntry, RecallVerb
from grass.link.messages import Exited, Hello, Recall, RemoveOutput, Report, Start
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import ENDED, AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.usage import held_sums
from grass.model.worker import GpuFault
from grass.store.changes import Changes
from grass.store.interface import Snapshot
from grass.worker.core.attempt_table import AllocatedUnits
from grass.worker.core.worker_core import WorkerCore
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.planting import bug

# The broker's order.


@bug("a commit is skipped now and then")
def _commit_skipped(patch: pytest.MonkeyPatch) -> None:
    real, count = FaultyStore.commit, [0]

    def commit(self: FaultyStore, changes: Changes, epoch: int = 0) -> None:
        count[0] += 1
        if count[0] % 50:
            real(self, changes, epoch)

    patch.setattr(FaultyStore, "commit", commit)


@bug("what pruned jobs held is forgotten")
def _held_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(held_sums, "add", lambda _sums, _more: None)


@bug("callers are answered before the commit")
def _answer_first(patch: pytest.MonkeyPatch) -> None:
    def round(self: Rounds) -> rounds.Round:
        applied: list[Applied] = []
        yield from self._read_jobs()
        self._apply(applied)
        self._answer(applied)
        effects_of_it = self.core.take()
        yield Commit(effects_of_it.changes)
        self._finish([], effects_of_it)

    patch.setattr(Rounds, "round", round)


@bug("starts are sent before the commit")
def _start_first(patch: pytest.MonkeyPatch) -> None:
    real = Rounds._apply

    def apply(self: Rounds, applied: list[Applied]) -> None:
        real(self, applied)
        for worker, message in self.core.state.batch.outbox:
            if isinstance(message, Start):
                self._shell.send(worker, message)

    patch.setattr(Rounds, "_apply", apply)


@bug("a batch that failed is kept in memory")
def _no_rebuild(patch: pytest.MonkeyPatch) -> None:
    def rebuilt(self: Rounds) -> Any:
        yield from ()
        return self.core

    patch.setattr(Rounds, "_rebuilt", rebuilt)


@bug("a repeated call is not recognised after a restart")
def _keys_forgotten(patch: pytest.MonkeyPatch) -> None:
    def add(self: AnsweredCalls, answered: Any, _changes: Any) -> None:
        self.by_key[answered.key] = answered

    patch.setattr(AnsweredCalls, "add", add)


# Attempts in the broker.


@bug("a unit is freed twice")
def _freed_twice(patch: pytest.MonkeyPatch) -> None:
    real = AllocatedUnits.free

    def free(self: AllocatedUnits, allocation: Any) -> None:
        real(self, allocation)
        for kind, amounts in allocation.items():
            for unit, amount in amounts.items():
                if self._allocated.get((kind, unit), 0) >= amount:
                    real(self, {kind: {unit: amount}})

    patch.setattr(AllocatedUnits, "free", free)


@bug("the broker frees units when a cancel is asked for")
def _freed_early(patch: pytest.MonkeyPatch) -> None:
    real = verbs._stop

    def stop(state: State, job: Job, call: Any) -> None:
        real(state, job, call)
        state.scheduler.release(job.id)

    patch.setattr(verbs, "_stop", stop)


@bug("a report about an older attempt is believed")
def _stale_believed(patch: pytest.MonkeyPatch) -> None:
    def live(state: State, name: str) -> tuple[Job, Attempt] | None:
        identity = attempt_id(name)
        attempt = state.attempts.get(identity.job)
        return None if attempt is None else (state.jobs[identity.job], attempt)

    patch.setattr(tracking, "live", live)
    # An attempt is known by its number and by when it was placed: either would do.
    patch.setattr(tracking, "is_about", lambda *_: True)


@bug("a job fails with the first worker that lacks its folder")
def _first_return_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(avoided, "has_host", lambda state, job: False)


@bug("an exit is forgotten before it is committed")
def _forgotten_early(patch: pytest.MonkeyPatch) -> None:
    real = WorkerCore._exited

    def exited(self: WorkerCore, attempt: Any, entry: ExitEntry) -> None:
        real(self, attempt, entry)
        self._let_keeper_forget(self._table.forget([entry.id]))

    patch.setattr(WorkerCore, "_exited", exited)


@bug("a cancel is not remembered over a restart")
def _cancel_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = State.__init__

    def init(self: State, snapshot: Any, now_us: int) -> None:
        for job in snapshot.jobs:
            job.stopping_since = None
        real(self, snapshot, now_us)

    patch.setattr(State, "__init__", init)


@bug("the number of an attempt that ran is used again")
def _number_reused(patch: pytest.MonkeyPatch) -> None:
    real = tracking._try_again

    def try_again(state: State, job: Job, *how: Any) -> None:
        job.attempts -= 1
        real(state, job, *how)

    patch.setattr(tracking, "_try_again", try_again)


@bug("a lost attempt is tried again unasked")
def _lost_retried(patch: pytest.MonkeyPatch) -> None:
    real = outcomes.retried

    def retried(job: Job, spec: Any, end: JobState, ended: Exited) -> bool:
        if end is JobState.LOST and job.stopping_since is None:
            return job.losses < 3
        return real(job, spec, end, ended)

    patch.setattr(tracking, "retried", retried)


@bug("a worker that connects again makes its attempts lost")
def _lost_on_connect(patch: pytest.MonkeyPatch) -> None:
    real = reconcile._reconcile

    def reconcile_all(state: State, message: Hello, rebooted: bool) -> list[Report]:
        message.running = message.running[1:]
        return real(state, message, rebooted)

    patch.setattr(reconcile, "_reconcile", reconcile_all)


@bug("an attempt that ran is started again after a reboot")
def _reboot_restarts(patch: pytest.MonkeyPatch) -> None:
    def lose(state: State, job: Job, attempt: Attempt, reason: str) -> None:
        if attempt.state is AttemptState.STARTING:
            tracking.take_back(state, job, attempt, reason)
        else:
            real(state, job, attempt, reason)

    real = tracking.lose
    patch.setattr(tracking, "lose", lose)


@bug("a job is prefetched behind one that was recalled")
def _line_up_behind_recalled(patch: pytest.MonkeyPatch) -> None:
    # The broker does not do it, and the worker would not go along: here both do.
    patch.setattr(prefetch, "_last_is_recalled", lambda state, job: False)
    patch.setattr(WorkerCore, "_recall", _recall_carelessly)


def _recall_carelessly(worker: WorkerCore, message: Recall) -> None:
    worker._effects.to_keeper.append(RecallVerb(message.attempts))


@bug("dependencies are ignored after a restart")
def _dependencies_ignored(patch: pytest.MonkeyPatch) -> None:
    real = State._restore

    def restore(self: State, snapshot: Any) -> None:
        real(self, snapshot)
        for job in self.jobs.values():
            job.met = True

    patch.setattr(State, "_restore", restore)


@bug("a dependency counts as met however it ended")
def _any_end_is_met(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dependency_graph, "met", lambda need, state: state in ENDED or None)


@bug("the last job of an array is dropped")
def _array_cut(patch: pytest.MonkeyPatch) -> None:
    real = bulk_enqueue._arrive

    def arrive(state: State, arrival: bulk_enqueue.Arrival) -> None:
        if len(arrival.jobs) > 2:
            state.batch.changes.jobs.pop(arrival.jobs[-1].id, None)
        real(state, arrival)

    patch.setattr(bulk_enqueue, "_arrive", arrive)


@bug("a change in slices does not hold the spec that it gives to jobs", 7)
def _spec_not_held(patch: pytest.MonkeyPatch) -> None:
    real = Change._number

    def number(self: Change, spec: Spec) -> int:
        is_first = id(spec) not in self._numbers
        found = real(self, spec)
        self._state.specs._users[found] -= is_first
        return found

    patch.setattr(Change, "_number", number)
    patch.setattr(Change, "close", lambda self: None)


@bug("a repeated call makes new jobs while the first is in memory")
def _keys_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(enqueueing, "_known_call", lambda state, call: None)


@bug("a removal of output is forgotten at a crash")
def _removal_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = removals._add

    def add(state: State, worker: str, files: list[str], size: int) -> None:
        # Only memory knows of it, and sends it without reading it.
        real(state, worker, files, size)
        added = state.batch.changes.removals.pop()
        state.batch.send(worker, RemoveOutput(list(added.paths), added.id))
        state.removals.sent[worker] = added.id

    patch.setattr(removals, "_add", add)


@bug("output counts as removed when its worker is asked")
def _removal_unconfirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removals, "sent", removals._gone)


@bug("a GPU that works again is used before its fault is acknowledged")
def _unacknowledged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GpuFault, "needs_acknowledgement", property(lambda _: False))


@bug("a restart of the broker forgets faults of GPUs")
def _faults_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = State.__init__

    def restored(self: State, snapshot: Snapshot, now_us: int) -> None:
        real(self, snapshot, now_us)
        for worker in self.workers.values():
            worker.gpu_faults = {}

    patch.setattr(State, "__init__", restored)
