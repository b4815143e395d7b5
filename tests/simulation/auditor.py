"""Checks all that the broker writes, sends and acknowledges against the witness.

It sees every batch right before it is on the disk, every message to a worker and every
answer to a client. So a start that was not committed, an end that did not happen, or an
acknowledgement that is not in the store is found at once, not at the end.
"""

import json
from collections import defaultdict

from grass.broker.core.attempts.foreign import STOP_REASON
from grass.keeper.exit_reasons import GUEST_ENDED
from grass.link.messages import Forget, RemoveOutput, Start, Stop, ToWorker
from grass.model.ids import AttemptId, attempt_id
from grass.model.jobs.dependencies import met
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import ENDED, AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.resources import Allocation
from grass.model.worker import Worker
from grass.store.changes import Changes
from tests.simulation.devices import LOST
from tests.simulation.faulty_gpus import FaultyGpus
from tests.simulation.job_plans import lacks
from tests.simulation.memory_store import MemoryDisk
from tests.simulation.processes import DISK_FULL, NO_PROCESS, Process
from tests.simulation.pruned_output import PrunedOutput
from tests.simulation.witness import Run, Witness
from tests.simulation.world import SECOND, Host, Violation, World

OVER = (AttemptState.EXITED, AttemptState.LOST)
FORGOTTEN = "its worker was forgotten"
NOWHERE = "could not start on "
"""How the reason begins of a job that every worker has returned."""
RESTARTED = "the machine was restarted"
TIME_LIMIT = "time limit"
KEEPERS_DEATH = ("the keeper was killed", "its keeper was killed")
MOST_WRONG_US = SECOND
"""How long before it is to be written an end may have been decided."""
MOST_MISMEASURED_US = 60 * SECOND
LONGEST_LEASE_US = 30 * SECOND
CUT_OFF = ("cut off from the broker", "its worker was cut off")


class Auditor:
    """Compares the disk and the broker's messages with what really happened."""

    def __init__(self, world: World, disk: MemoryDisk, witness: Witness) -> None:
        self.disk = disk
        self.noted: set[tuple[str, str, int | None]] = set()
        """Actor, kind and job of every event of the journal."""
        self.cancelled: set[int | None] = set()
        """Jobs whose cancel was acknowledged, until they are run again."""
        self.forgotten: dict[int, str] = {}
        """Jobs that were pruned, and their names."""
        self.pruned_output = PrunedOutput(disk)
        self.spoiled: set[str] = set()
        """Blobs of which the broker's disk has given a wrong piece."""
        self.ended_by_hand: set[str] = set()
        """Foreign attempts that a person has asked to end."""
        self.in_doubt: set[str] = set()
        """Attempts whose keeper died between their record and their start."""
        self.unrecorded: set[str] = set()
        """Those whose keeper was killed while it could not record anything."""
        self._unclear_at: dict[str, int] = {}
        """When a machine last had a fault that may lose an exit code."""
        self._apart_at: dict[str, int] = {}
        """When a machine last had no link to the broker."""
        self._insisted: set[int | None] = set()
        """Jobs that were run again after their machine was forgotten."""
        self._forgotten: set[str] = set()
        """Attempts of forgotten machines."""
        self._on_record: dict[str, list[str]] = {}
        """Exits that survived a machine's last reboot in its records."""
        self._world = world
        self._witness = witness
        self._run_again: set[int | None] = set()
        """Jobs that the last batch ran again."""
        self._never_ran: dict[str, int] = {}
        """How children ended that had not run their program yet."""
        self._stops: dict[str, set[str]] = {}
        """Why the broker had attempts stopped."""
        self._ends = defaultdict[int | None, list[JobState]](list)
        """How jobs ended, each time; one that is retried has not ended."""
        self._gpus = FaultyGpus()
        self._placed_at: dict[tuple[int, int], int] = {}
        self._base: dict[int, int] = {}
        """The last attempt of a job before it was run again."""

    # Faults.

    def unclear(self, host: Host) -> None:
        """Record that exit codes of a machine may be lost from now on."""
        self._unclear_at[host.name] = self._world.now

    def apart(self, host: Host) -> None:
        """Record that a machine may have no link to the broker from now on."""
        self._apart_at[host.name] = self._world.now

    def on_record(self, host: Host, exits: list[str]) -> None:
        """Record which exits a machine that goes down will know after its boot."""
        self._on_record[host.name] = exits

    # Processes.

    def started(self, process: Process) -> None:
        """Check a start against what is on the disk."""
        who = attempt_id(process.attempt)
        attempt = self._attempt(who.job, who.number)
        if attempt is None and process.attempt in self._forgotten:
            # Its job was pruned, which a forgotten machine cannot know.
            self._witness.started(process, forgiven=True)
            return
        if attempt is None:
            raise Violation(f"{process.attempt} runs and is not committed")
        forgiven = attempt.reason == FORGOTTEN
        self._witness.started(process, forgiven=forgiven)
        if attempt.state in OVER and not forgiven:
            raise Violation(f"{process.attempt} runs and is recorded as over")
        if attempt.worker != process.host.name:
            raise Violation(f"{process.attempt} runs on {process.host.name}")

    def shrunk(self, name: str, allocation: Allocation) -> None:
        """Record what an attempt keeps of its units."""
        self._witness.shrunk(name, allocation)

    def ended(self, process: Process) -> None:
        """Record an end."""
        self._witness.ended(process)
        if not process.runs and process.status is not None:
            self._never_ran[process.attempt] = process.status

    # Messages.

    def sent(self, worker: str, message: ToWorker) -> None:
        """Check a message: it must follow from what is committed."""
        self._world.note(f"says to {worker} {_named(message)}")
        if isinstance(message, Start):
            attempt = self._attempt(message.job, message.number)
            if attempt is None or attempt.state in OVER:
                raise Violation(f"start of {message.attempt}, which is not committed")
            if attempt.worker != worker:
                raise Violation(f"start of {message.attempt} on {worker}")
            if attempt.allocation != message.allocation:
                raise Violation(f"start of {message.attempt} with other units")
            if message.job in self.cancelled:
                raise Violation(f"start of {message.attempt}, which was cancelled")
        elif isinstance(message, Stop):
            if message.reason == STOP_REASON:
                self._check_foreign_stop(worker, message.attempt)
            self._stops.setdefault(message.attempt, set()).add(message.reason)
        elif isinstance(message, Forget):
            self._check_forget(worker, message)
        elif isinstance(message, RemoveOutput):
            self._check_removal(worker, message)

    def _check_foreign_stop(self, worker: str, name: str) -> None:
        """Only what is recorded as over there is stopped without a person's word."""
        who = attempt_id(name)
        attempt = self._attempt(who.job, who.number)
        is_over = attempt is not None and attempt.state in OVER
        if name not in self.ended_by_hand and not (
            is_over and attempt is not None and attempt.worker == worker
        ):
            raise Violation(f"{name} is stopped, and the database does not have it")

    def _check_forget(self, worker: str, message: Forget) -> None:
        for name in message.attempts:
            self._check_forgotten(worker, name)

    def _check_removal(self, worker: str, message: RemoveOutput) -> None:
        wrong = set(message.paths) - self.pruned_output.of(worker)
        if wrong:
            raise Violation(f"{min(wrong)} is removed, and its job is there still")

    def _check_forgotten(self, worker: str, name: str) -> None:
        who = attempt_id(name)
        attempt = self._attempt(who.job, who.number)
        if attempt is None or attempt.worker != worker:
            # A worker that does not hold the attempt may forget its report.
            return
        if attempt.state not in OVER:
            raise Violation(f"the exit of {name} is forgotten and not committed")

    def told_ended(self, jobs: list[Job]) -> None:
        """Check that ends which clients are told of are on the disk."""
        for job in jobs:
            kept = self.disk.jobs.get(job.id)
            again = job.id in self._run_again
            if kept is None or (kept.state != job.state and not again):
                raise Violation(f"job {job.id} is said to be over and is not on disk")

    # Commits.

    def decided(self, changes: Changes, wall_us: int) -> None:
        """Check that ends have the time of their broker, before it asks to write them.

        A commit may be late, and its broker's clock may be set meanwhile.
        """
        for key, attempt in changes.attempts.items():
            before = self._attempt(*key)
            if attempt.state in OVER and (before is None or before.state not in OVER):
                late_us = abs(wall_us - (attempt.finished_at or 0))
                if late_us > MOST_WRONG_US:
                    late = f"{self._name(*key)} ended {late_us / SECOND} s ago"
                    raise Violation(f"{late} by another clock")

    def written(self, changes: Changes) -> None:
        """Check a batch before it is on the disk."""
        self._world.note(f"writes {len(changes.jobs)} jobs {len(changes.events)} lines")
        reruns = {line.job for line in changes.events if line.kind == "rerun"}
        self._run_again = reruns
        self._read_journal(changes)
        self._gpus.written(changes)
        self.cancelled -= reruns
        for number, job in changes.jobs.items():
            self._check_job(number, job, again=number in reruns)
        for key in changes.removed_attempts:
            self._check_taken_back(*key)
        for key, attempt in changes.attempts.items():
            gone = key in changes.removed_attempts
            if self._attempt(*key) is None:
                self._gpus.check(attempt)
            self._check_attempt(attempt, None if gone else self._attempt(*key), changes)
        for line in changes.events:
            self.noted.add((line.actor, line.kind, line.job))
        self._check_held(changes)
        for number in changes.removed_jobs:
            self.forgotten[number] = self.disk.jobs[number].name
        self.pruned_output.written(changes)

    def _check_held(self, changes: Changes) -> None:
        """Check that what pruned attempts held stays, as sums."""
        pruned = [
            (one.finished_at or self.disk.jobs[number].finished_at or 0, one.started_at)
            for number in set(changes.removed_jobs)
            for one in self.disk.attempts.get(number, {}).values()
        ]
        held = sum(max(0, ended - began) for ended, began in pruned)
        sums = changes.held_sums.values()
        kept = sum(one.attempts for one in sums), sum(one.held_us for one in sums)
        if kept != (len(pruned), held):
            raise Violation(f"{held} us of pruned attempts are kept as {kept[1]} us")

    def _read_journal(self, changes: Changes) -> None:
        for line in changes.events:
            # A job that is run again in the same batch has ended before.
            if line.kind == "finished":
                self._ends[line.job].append(JobState(json.loads(line.data)["state"]))
            elif line.kind == "cancelled" and line.attempt is None:
                self._ends[line.job].append(JobState.CANCELLED)
            elif line.kind in ("retried", "requeued"):
                self._ends[line.job].pop()
            elif line.kind == "held":
                self._insisted.discard(line.job)
            elif line.kind in ("released", "rerun"):
                self._insisted.add(line.job)

    def _check_job(self, number: int, job: Job, *, again: bool) -> None:
        before = self.disk.jobs.get(number)
        if before is not None and before.state in ENDED and before != job and not again:
            raise Violation(f"job {number} was {before.state} and is now {job.state}")
        if again:
            self._base[number] = before.attempts if before is not None else job.attempts

    def _check_taken_back(self, job: int, number: int) -> None:
        if self._name(job, number) in self._witness.runs:
            raise Violation(f"attempt {job}.{number} ran and is taken back")

    def _check_attempt(
        self, attempt: Attempt, before: Attempt | None, changes: Changes
    ) -> None:
        key = (attempt.job, attempt.number)
        if before is not None and before.state in OVER:
            if before != attempt:
                raise Violation(f"attempt {key} was over and changed")
            return
        if before is None:
            self._placed_at[key] = self._world.now
            self._check_placed(attempt, changes)
        if attempt.state in OVER:
            self._check_end(attempt)
            self._check_missing(attempt, changes)
            self._check_duration(attempt)

    def _check_placed(self, attempt: Attempt, changes: Changes) -> None:
        job = changes.jobs[attempt.job]
        if self._name(job.id, attempt.number) in self._witness.runs:
            raise Violation(f"attempt {job.id}.{attempt.number} ran and is used again")
        if job.id in self.cancelled:
            raise Violation(f"job {job.id} was cancelled and is placed")
        before = self._witness.runs.get(self._name(job.id, attempt.number - 1))
        if before is not None and before.forgiven and not before.over:
            self._check_insisted(job.id)
        spec = changes.specs.get(job.spec) or self.disk.specs[job.spec]
        for after in spec.after:
            for other in after.jobs:
                if not any(met(after.need, end) for end in self._ends[other]):
                    raise Violation(f"job {job.id} starts before {after}")
        self._check_tries(attempt, spec, changes)

    def _check_insisted(self, job: int) -> None:
        """What may be alive on a forgotten machine runs again only on request."""
        if job not in self._insisted:
            raise Violation(f"job {job} runs again unasked while it may be alive")

    def _check_tries(self, attempt: Attempt, spec: Spec, changes: Changes) -> None:
        job = attempt.job
        earlier = [
            changes.attempts.get((job, number)) or self._attempt(job, number)
            for number in range(self._base.get(job, 0) + 1, attempt.number)
        ]
        lost = sum(one is None or one.state is AttemptState.LOST for one in earlier)
        if lost > spec.retry_lost:
            raise Violation(f"job {attempt.job} was lost and runs again unasked")
        if len(earlier) - lost > spec.retries:
            raise Violation(f"job {attempt.job} failed and runs again unasked")

    def _check_end(self, attempt: Attempt) -> None:
        name = self._name(attempt.job, attempt.number)
        run = self._witness.runs.get(name)
        if attempt.reason == FORGOTTEN:
            self._forgotten.add(name)
        if run is None:
            self._check_never_ran(attempt, name)
            return
        if attempt.reason == FORGOTTEN:
            run.forgiven = True
            return
        if attempt.state is AttemptState.LOST:
            self._check_cause(attempt, name)
            known = self._on_record.get(attempt.worker, ())
            if attempt.reason == RESTARTED and name in known:
                raise Violation(f"{name} is lost and its exit is on record")
        if not run.over:
            if not _ended_in_its_sleep(attempt, run):
                raise Violation(f"{name} is recorded as {attempt.state} and is alive")
            run.doomed = True
        elif attempt.state is AttemptState.EXITED:
            self._check_exit(attempt, name, run)

    def _check_exit(self, attempt: Attempt, name: str, run: Run) -> None:
        if run.main.guest and _has_no_status(attempt):
            if run.main.alive and attempt.reason in (None, GUEST_ENDED):
                raise Violation(f"{name} is recorded as ended, and its process lives")
            return
        if _has_no_status(attempt) and attempt.reason is not None:
            # It was stopped: its outcome is known, and its exit code may be lost.
            self._check_cause(attempt, name)
        else:
            self._check_status(attempt, name, run.main.status)
        self._check_reason(attempt, name, run)

    def _check_never_ran(self, attempt: Attempt, name: str) -> None:
        """An attempt that never ran must not fail or be lost by machine or keeper."""
        if attempt.reason is None:
            self._check_status(attempt, name, self._never_ran.get(name))
        elif attempt.reason in (NO_PROCESS, DISK_FULL):
            raise Violation(f"{name} fails by its machine: {attempt.reason}")
        elif "blob" in attempt.reason and not self._is_spoiled(attempt.reason):
            raise Violation(f"{name} fails for want of a blob: {attempt.reason}")
        elif attempt.reason.startswith(KEEPERS_DEATH) and name not in self.in_doubt:
            raise Violation(f"{name} never ran and is lost: {attempt.reason}")
        elif _is_cut_off(attempt):
            # It was sent to a keeper whose lease was over, which has the same causes.
            self._check_cause(attempt, name)

    def _check_missing(self, attempt: Attempt, changes: Changes) -> None:
        """A job must not fail for want of a folder that a worker has which fits it."""
        if not (attempt.reason or "").startswith(NOWHERE):
            return
        job = changes.jobs[attempt.job]
        spec = changes.specs.get(job.spec) or self.disk.specs[job.spec]
        for worker in self.disk.workers.values():
            gone = worker.id in changes.removed_workers
            fits = spec.worker in (None, worker.id) and _has_room(worker, spec)
            if fits and not gone and not lacks(self._world.seed, worker.id, spec.cwd):
                name = self._name(job.id, attempt.number)
                raise Violation(f"{name} fails, and {worker.id} has {spec.cwd}")

    def _is_spoiled(self, reason: str) -> bool:
        return any(name in reason for name in self.spoiled)

    def _check_duration(self, attempt: Attempt) -> None:
        """Check that an end has the right duration."""
        name = self._name(attempt.job, attempt.number)
        run = self._witness.runs.get(name)
        placed_at = self._placed_at[attempt.job, attempt.number]
        if run is None or self._unclear_at.get(attempt.worker, -1) >= placed_at:
            return
        if run.main.guest:
            # It is done when it says so, which may be long before anybody hears it.
            return
        if attempt.state is AttemptState.EXITED and run.lasted_us is not None:
            wrong_us = (attempt.ran_s or 0.0) * SECOND - run.lasted_us
            if abs(wrong_us) > MOST_MISMEASURED_US:
                raise Violation(f"{name} ran for {attempt.ran_s} s by another clock")

    def _check_cause(self, attempt: Attempt, name: str) -> None:
        """An attempt is lost only if its machine had a fault while it ran."""
        placed_at = self._placed_at[attempt.job, attempt.number]
        known = self._apart_at if _is_cut_off(attempt) else self._unclear_at
        since = placed_at - LONGEST_LEASE_US if _is_cut_off(attempt) else placed_at
        if known.get(attempt.worker, -1) < since:
            raise Violation(f"{name} is lost without cause: {attempt.reason}")

    def _check_status(self, attempt: Attempt, name: str, status: int | None) -> None:
        if status is None:
            raise Violation(f"{name} never ran and ended without a reason")
        code = status >> 8 if status >= 256 or not status else None
        signal = None if code is not None else status
        if (attempt.exit_code, attempt.signal) != (code, signal):
            recorded = (attempt.exit_code, attempt.signal)
            raise Violation(f"{name} ended with {(code, signal)}, recorded {recorded}")

    def _check_reason(self, attempt: Attempt, name: str, run: Run) -> None:
        """A stopped attempt has a reason: its time limit, or the broker's."""
        causes: set[str | None] = set(self._stops.get(name, ()))
        if run.main.start.time_limit is not None:
            causes.add(TIME_LIMIT)
        causes |= {f"gpu {unit}: {LOST}" for unit in run.allocation.get("vram", ())}
        if name in self.unrecorded:
            # Nobody knows any more that it was stopped.
            causes.add(None)
        if attempt.reason not in causes and (run.was_stopped or attempt.reason):
            raise Violation(f"{name} was stopped, recorded reason: {attempt.reason}")

    # The disk.

    def _attempt(self, job: int, number: int) -> Attempt | None:
        return self.disk.attempts.get(job, {}).get(number)

    def _name(self, job: int, number: int) -> str:
        return str(AttemptId(self.disk.meta["cluster"], job, number))


def _has_no_status(attempt: Attempt) -> bool:
    """Return whether it is not known how an attempt ended: not all kernels tell."""
    known = attempt.exit_code is not None or attempt.signal is not None
    return attempt.state is AttemptState.EXITED and not known


def _has_room(worker: Worker, spec: Spec) -> bool:
    """Return whether a worker surely fits a job: one that asks for cores alone."""
    cores = sum(worker.found_capacity().get("cpu", {}).values())
    fits = all(kind == "cpu" and amount <= cores for kind, amount in spec.request)
    return fits and not spec.auto_vram and set(spec.labels) <= set(worker.labels)


def _is_cut_off(attempt: Attempt) -> bool:
    return attempt.reason is not None and attempt.reason.startswith(CUT_OFF)


def _ended_in_its_sleep(attempt: Attempt, run: Run) -> bool:
    """Return whether an attempt's lease ran out while its machine slept."""
    host = run.main.host
    asleep = host.asleep or host.world.now <= host.excused_until
    return attempt.state is AttemptState.LOST and _is_cut_off(attempt) and asleep


def _named(message: ToWorker) -> str:
    name = getattr(message, "attempt", None) or getattr(message, "attempts", "")
    more = f" on {message.allocation}" if isinstance(message, Start) else ""
    if isinstance(message, Start) and message.after is not None:
        more += f" after {message.after}"
    return f"{type(message).__name__} {name}{more}"
