"""Bugs between machines that the simulation must find, one at a time."""

import pytest

from grass.broker.core.attempts import foreign, reconcile, tracking
from grass.broker.core.attempts.attempt_memory import ForeignAttempt
from grass.broker.core.state import State
from grass.broker.core.workers import leases
from grass.broker.core.workers.worker_memory import Absence
from grass.broker.shell.links import Links, WorkerConnection
from grass.keeper.core import lease as keeper_lease
from grass.keeper.core.attempt import KeeperAttempt, StopPlan
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.running import SIGTERM
from grass.keeper.exit_reasons import CUT_OFF
from grass.keeper.protocol import (
    StartVerb,
)
from grass.link.messages import Exited, Heard, Hello, Report, ToWorker, Welcome
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.worker import Worker
from grass.worker.core.hello import WorkerLease
from tests.simulation.planting import bug
from tests.simulation.worker_shell import SimWorker

# Leases.


@bug("the broker gives an attempt up with the lease, without a margin")
def _no_margin(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leases, "MARGIN_S", 0.0)
    patch.setattr(leases, "MARGIN_SHARE", 0.0)


@bug("the keeper ignores its lease")
def _lease_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keeper_lease.ClusterLease, "runs_out", lambda self, now: False)


@bug("a worker renews its lease by what it says, not by what it hears")
def _renewed_by_itself(patch: pytest.MonkeyPatch) -> None:
    real = SimWorker._beat

    def beat(self: SimWorker) -> None:
        real(self)
        self._from_broker([Heard(self.now_s())])

    patch.setattr(SimWorker, "_beat", beat)


@bug("the grace counts from when the keeper notices that the lease is over", 1859)
def _grace_from_now(patch: pytest.MonkeyPatch) -> None:
    def cut_off(self: KeeperCore, _: keeper_lease.ClusterLease, now: float) -> None:
        for attempt in list(self.attempts.values()):
            if attempt.state not in ("ended", "exited"):
                kill_at = now + attempt.spawning.grace
                plan = StopPlan(kill_at, SIGTERM, CUT_OFF)
                self._end(attempt, plan, now)

    patch.setattr(KeeperCore, "_cut_off", cut_off)


@bug("a worker promises a lease that its keeper does not have yet")
def _promised_early(patch: pytest.MonkeyPatch) -> None:
    def promise(self: WorkerLease) -> tuple[str, float] | None:
        length_s = self._length_s if self._supported else None
        return None if length_s is None else (self._cluster or "", length_s)

    patch.setattr(WorkerLease, "promise", property(promise))
    patch.setattr(WorkerLease, "before_hello", lambda self, now_s: None)


@bug("a start is taken after the lease is over")
def _started_late(patch: pytest.MonkeyPatch) -> None:
    def start(self: KeeperCore, verb: StartVerb, _by: int, _now: float) -> None:
        if verb.id not in self.attempts:
            self.starts.add(verb)

    patch.setattr(KeeperCore, "_start", start)


@bug("what a worker without a lease runs is given up after a time")
def _given_up(patch: pytest.MonkeyPatch) -> None:
    def gone(state: State, worker: Worker) -> None:
        state.absences[worker.id] = Absence(worker.lease_s or 1.0)

    patch.setattr(leases, "gone", gone)


@bug("a welcome counts a lease from long before the hello")
def _welcomed_with_an_old_time(patch: pytest.MonkeyPatch) -> None:
    real = WorkerConnection.say

    def say(self: WorkerConnection, message: ToWorker) -> None:
        if isinstance(message, Welcome) and message.at == self._hello_at:
            self._hello_at = message.at = message.at - 30.0
        real(self, message)

    patch.setattr(WorkerConnection, "say", say)


# Which worker is believed.


@bug("a hello that is late on an older link wins")
def _older_link_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Links, "outdated", lambda self, connection: False)


@bug("an exit is believed of a worker that does not hold the attempt")
def _anybody_speaks(patch: pytest.MonkeyPatch) -> None:
    def held_by(state: State, worker: str, name: str) -> tuple[Job, Attempt] | None:
        return tracking.live(state, name)

    patch.setattr(tracking, "_held_by", held_by)


@bug("what a forgotten worker still runs is taken back in")
def _forgotten_adopted(patch: pytest.MonkeyPatch) -> None:
    real = foreign._act

    def act(state: State, report: Report, held: ForeignAttempt) -> None:
        who, worker = attempt_id(report.attempt), held.worker
        job = state.jobs.get(who.job)
        if job is None or job.state is not JobState.QUEUED:
            real(state, report, held)
            return
        state.foreign.release(worker, held.name)
        boot = state.workers[worker].boot
        running, units = AttemptState.RUNNING, report.allocation
        attempt = Attempt(
            job.id, who.number, worker, boot, running, units, state.now_us
        )
        state.scheduler.remove(job.id)
        state.scheduler.occupy(job.id, worker, units, job.queue)
        state.attempts[job.id] = attempt
        state.move_job(job, JobState.RUNNING)
        state.save_attempt(attempt)

    patch.setattr(foreign, "_act", act)


@bug("a worker that comes back is taken for its machine rebooted")
def _taken_for_rebooted(patch: pytest.MonkeyPatch) -> None:
    real = reconcile._reconcile

    def reconcile_all(state: State, message: Hello, rebooted: bool) -> list[Report]:
        if message.worker != state.daemon.home_worker:
            message.running = []
        return real(
            state, message, rebooted or message.worker != state.daemon.home_worker
        )

    patch.setattr(reconcile, "_reconcile", reconcile_all)


@bug("what a forgotten worker may still run is run again at once")
def _forgotten_run_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tracking, "FORGOTTEN", "")


# Clocks.


@bug("an end has the time of its worker's clock")
def _workers_time(patch: pytest.MonkeyPatch) -> None:
    real = tracking._end

    def end(
        state: State, job: Job, attempt: Attempt, how: AttemptState, ended: Exited
    ) -> None:
        real(state, job, attempt, how, ended)
        attempt.finished_at = ended.at or state.now_us

    patch.setattr(tracking, "_end", end)


@bug("how long an attempt ran is measured by a clock that jumps")
def _measured_by_the_wall(patch: pytest.MonkeyPatch) -> None:
    def measure(self: KeeperAttempt, now: float) -> None:
        if self.started_at is not None and self.exited_at is not None:
            self.ran_s = max(0, self.exited_at - self.started_at) / 1e6

    patch.setattr(KeeperAttempt, "measure", measure)


# Invented attempts.


@bug("a worker is believed about attempts that it was not given")
def _numbers_believed(patch: pytest.MonkeyPatch) -> None:
    real = foreign._act

    def act(state: State, report: Report, held: ForeignAttempt) -> None:
        real(state, report, held)
        known = attempt_id(report.attempt)
        job = state.jobs.get(known.job)
        if job is not None and job.id not in state.attempts:
            job.attempts = max(job.attempts, known.number)
            state.save_job(job)

    patch.setattr(foreign, "_act", act)


@bug("an attempt that the database knows nothing of is stopped")
def _unknown_stopped(patch: pytest.MonkeyPatch) -> None:
    real = foreign._act

    def act(state: State, report: Report, held: ForeignAttempt) -> None:
        real(state, report, held)
        if report.running:
            foreign._stop(state, held)

    patch.setattr(foreign, "_act", act)


@bug("any worker is believed about the ids of jobs")
def _ids_believed(patch: pytest.MonkeyPatch) -> None:
    real = reconcile._reconcile

    def reconcile_all(state: State, message: Hello, rebooted: bool) -> list[Report]:
        reconcile._catch_up(state, message)
        return real(state, message, rebooted)

    patch.setattr(reconcile, "_reconcile", reconcile_all)
