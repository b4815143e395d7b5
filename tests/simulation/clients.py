"""The clients of the broker: which calls they make, and when.

Which verbs there are, whether jobs are short and whether they have one shape is drawn
once for each run, so that some runs prefetch jobs all the time and others never do.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from grass.broker.core.calls import (
    AnyCall,
    Cancel,
    ContinueJobs,
    Edit,
    Enqueue,
    ForgetWorker,
    HoldJobs,
    NewJob,
    Prune,
    ReleaseJobs,
    Rerun,
    SetPaused,
    SetWorkerDrained,
    SuspendJobs,
)
from grass.model.jobs import dependencies
from grass.model.jobs.dependencies import After, runs_of
from grass.model.jobs.lifecycle import ENDED
from grass.model.jobs.spec import JobPatch
from tests.simulation.array_edits import ArrayEdits
from tests.simulation.cluster import Cluster
from tests.simulation.devices import MEMORY
from tests.simulation.guests import Guests
from tests.simulation.job_plans import FOLDERS, LONG, MIXED, SHORT
from tests.simulation.machine import Machine
from tests.simulation.requests import Request
from tests.simulation.task_blobs import TaskBlobs
from tests.simulation.world import SECOND

_FITTING: dict[type, tuple[str, ...]] = {
    Cancel: ("held", "waiting", "queued", "running", "running"),
    HoldJobs: ("waiting", "queued"),
    ReleaseJobs: ("held",),
    SuspendJobs: ("running",),
    ContinueJobs: ("running",),
    Edit: ("held", "waiting", "queued"),
    Rerun: ("succeeded", "failed", "cancelled", "lost"),
    Prune: ("succeeded", "failed", "cancelled", "lost"),
}

WARNED_LIMIT_S = 1.0
"""Jobs with this time limit get a signal before it."""

GIB_PER_UNIT = 19
"""How much memory a job asks for where it would ask for one unit of another kind."""


class Clients:
    """All callers of one run."""

    def __init__(self, cluster: Cluster) -> None:
        self.requests: list[Request] = []
        self._sizes: dict[str, int] = {}
        self._cluster = cluster
        self._world = cluster.world
        self._host = cluster.world.elsewhere
        rng = self._world.rng
        # A source of its own: runs without GPUs have the history they had.
        self._types = Random(f"types {cluster.world.seed}")
        self._tasks = Random(f"tasks {cluster.world.seed}")
        self._folders = Random(f"folders {cluster.world.seed}")
        self._named = self._folders.random() < 0.4 and len(cluster.machines) > 1
        """Whether jobs name folders, which not all machines have."""
        self._blobs = TaskBlobs(cluster.world.seed, is_used=cluster.has_blobs)
        self._task_share = self._tasks.choice((0.0, 0.0, 0.5, 1.0))
        self._short = rng.random() < (0.15 if cluster.leases else 0.35)
        self._pace = SHORT if self._short else LONG if cluster.leases else MIXED
        self._graces = (0.0, 2.0, 4.0) if cluster.leases else (0.0, 0.5, 2.0)
        self._one_shape = self._short and rng.random() < 0.8
        self._retry_lost = rng.random() < 0.5
        self._pins = rng.random() < 0.5 and len(cluster.machines) > 1
        self._verbs = [Cancel, HoldJobs, ReleaseJobs, SuspendJobs, ContinueJobs]
        self._verbs += [Edit, Rerun, SetPaused, Prune]
        if cluster.others:
            self._verbs += [SetWorkerDrained, ForgetWorker, ForgetWorker]
        rng.shuffle(self._verbs)
        del self._verbs[rng.randint(2, len(self._verbs)) :]

    def plan(self, until_us: int, enqueues: int, verbs: int) -> None:
        """Draw calls and their times."""
        for _ in range(enqueues):
            self._host.after(self._world.between(0, until_us), "", self.enqueue)
        for _ in range(verbs):
            self._host.after(self._world.between(0, until_us), "", self.some_verb)
        for at in self._blobs.prunes(until_us):
            self._host.after(at, "", self._prune_tasks)

        Guests(self, self._cluster).plan(until_us)
        ArrayEdits(self, self._cluster).plan(until_us)

    def size_of(self, name: str) -> int:
        """Return how many jobs a request enqueues."""
        return self._sizes[name]

    def ask(self, make: Callable[[str], AnyCall], size: int = 0) -> Request:
        """Send a request, perhaps for so many jobs."""
        name = f"r{len(self.requests) + 1}"
        self._sizes[name] = size
        patience = 0.02 * 200 ** self._world.rng.random()
        request = Request(self._cluster, name, make, patience)
        self.requests.append(request)
        request.ask()
        return request

    # Enqueue.

    def enqueue(self) -> None:
        """Ask for a job, or for an array of them."""
        rng = self._world.rng
        size = rng.choice((0, 0, 0, 2, 3, 6))
        patch = self._patch(array=size > 0)
        named = runs_of(patch.after or ())

        words = ("work",) if not patch.task else ()
        arguments = self._blobs.arguments() if patch.task else None

        def make(name: str) -> AnyCall:
            job = NewJob(words, patch, name=name, arguments=arguments)
            jobs = [replace(job, index=n) for n in range(size)] or [job]
            return Enqueue("uid:1", jobs, name, named=named)

        self.ask(make, max(1, size))

    def _patch(self, *, array: bool) -> JobPatch:
        rng = self._world.rng
        plain = self._one_shape and rng.random() < 0.9
        odd = 0.0 if plain else 1.0
        machine = rng.choice(self._cluster.machines)
        pinned = self._pins and rng.random() < 0.3 * odd
        patch = JobPatch(
            request=(("cpu", 10_000),) if plain else self._request(machine),
            worker=self._name(machine) if pinned and not machine.labels else None,
            labels=machine.labels if pinned else (),
            priority=0 if plain else rng.choice((0, 0, 0, 1, -1)),
            env=(("PACE", self._pace), *self._task_key()),
            after=self._after() if rng.random() < 0.3 * odd else (),
            begin_at=self._begin_at() if rng.random() < 0.1 * odd else None,
            hold=rng.random() < 0.1 * odd,
            grace_s=rng.choice(self._graces),
            time_limit_s=rng.choice((0.05, WARNED_LIMIT_S))
            if rng.random() < 0.1 * odd
            else None,
            retries=rng.choice((0, 0, 1, 2)),
            backoff_s=rng.choice((0.0, 0.0, 0.3)),
            retry_lost=rng.choice((0, 1, 2)) if self._retry_lost else 0,
            at_most=1 if array and rng.random() < 0.3 * odd else None,
        )
        if self._named and self._folders.random() < 0.5:
            patch = replace(patch, cwd=self._folders.choice(FOLDERS))
        if patch.time_limit_s == WARNED_LIMIT_S:
            patch = replace(patch, limit_signal="USR1@0.5")
        return self._blobs.with_task(self._with_type(patch))

    def _task_key(self) -> tuple[tuple[str, str], ...]:
        """Have some jobs be tasks, which a runner of their key can run."""
        if self._tasks.random() >= self._task_share:
            return ()
        return (("TASK", self._tasks.choice("aab")),)

    def _with_type(self, patch: JobPatch) -> JobPatch:
        """Have some jobs ask for memory that is looked up by their type."""
        asked = dict(patch.request or ())
        if "vram" not in asked or self._types.random() < 0.4:
            return patch
        del asked["vram"]
        job_type = self._types.choice(sorted(MEMORY))
        # So that some run until their memory has long been flat.
        env = (("PACE", LONG), ("JOB_TYPE", job_type))
        return replace(
            patch,
            request=tuple(asked.items()),
            auto_vram=True,
            job_type=job_type,
            env=env if self._types.random() < 0.5 else (*(patch.env or ()), env[1]),
        )

    def _name(self, machine: Machine) -> str:
        """Return the name or the id of a machine's worker."""
        known = self._cluster.disk.workers.get(machine.id)
        named = known is not None and self._world.chance(0.5)
        return known.name if named and known is not None else machine.id

    def _request(self, machine: Machine) -> tuple[tuple[str, int], ...]:
        rng = self._world.rng
        amounts: dict[str, int] = {}
        for kind, units in machine.capacity.items():
            if kind == "cpu" or rng.random() < 0.4:
                most = min(2, len(units))
                amounts[kind] = rng.choice((5_000, 10_000, 10_000, most * 10_000))
        if "vram" in amounts:
            amounts["vram"] *= GIB_PER_UNIT
        return tuple(sorted(amounts.items()))

    def _begin_at(self) -> int:
        return self._host.wall_us + self._world.between(-SECOND, 5 * SECOND)

    def _after(self) -> tuple[After, ...]:
        rng, last = self._world.rng, self._last_job()
        if not last:
            return ()
        chosen = {rng.randint(max(1, last - 8), last) for _ in range(rng.randint(1, 2))}
        needs = ("any", "any", "succeeded", "failed")
        more = rng.choice((0, 0, 0, 1, 3))
        texts = [
            f"{job}-{min(job + more, last)}:{rng.choice(needs)}"
            for job in sorted(chosen)
        ]
        return dependencies.read(texts, last)

    def _last_job(self) -> int:
        return int(self._cluster.disk.meta["last_job"])

    # The other verbs.

    def some_verb(self) -> None:
        """Call a verb on some jobs."""
        rng = self._world.rng
        verb = rng.choice(self._verbs)
        if verb is SetPaused:
            queue = rng.choice((None, "default"))
            self.ask(lambda name: SetPaused(name, True, queue))
            resume = lambda: self.ask(lambda name: SetPaused(name, False, queue))  # noqa: E731
            self._host.after(self._world.between(0, 3 * SECOND), "", resume)
            return
        if verb in (SetWorkerDrained, ForgetWorker):
            self._some_worker(verb)
            return
        jobs = self._some_jobs(verb)
        if not jobs:
            return
        if verb is Edit:
            patch = JobPatch(**self._changes())
            named = runs_of(patch.after or ())
            self.ask(lambda name: Edit(name, list(jobs), patch, named=named))
        elif verb is Rerun:
            hold = rng.random() < 0.1
            self.ask(lambda name: Rerun(name, list(jobs), hold=hold, wanted=list(jobs)))
        elif verb is Prune:
            self.ask(lambda name: Prune(name, list(jobs), wanted=list(jobs)))
        elif verb is Cancel:
            grace = rng.choice((None, 0.0, 0.2))
            self.ask(lambda name: Cancel(name, list(jobs), grace))
        else:
            self.ask(lambda name: verb(name, list(jobs)))

    def _prune_tasks(self) -> None:
        """Forget all tasks that have ended, so that blobs go and come again."""
        disk = self._cluster.disk
        tasks = {one for one, spec in disk.specs.items() if spec.task is not None}
        ended = [
            job.id
            for job in disk.jobs.values()
            if job.spec in tasks and job.state in ENDED
        ]
        if ended:
            self.ask(lambda name: Prune(name, list(ended), wanted=list(ended)))

    def _some_worker(self, verb: type) -> None:
        """Drain a machine for a while, or forget one that is away."""
        world, machine = self._world, self._world.rng.choice(self._cluster.others)
        who = self._name(machine)
        if verb is SetWorkerDrained:
            self.ask(lambda name: SetWorkerDrained(name, who, True))

            def again() -> None:
                self.ask(lambda name: SetWorkerDrained(name, machine.id, False))

            self._host.after(world.between(0, 5 * SECOND), "", again)
        elif machine.away:
            self.ask(lambda name: ForgetWorker(name, who))

    def _some_jobs(self, verb: type) -> list[int]:
        rng, disk = self._world.rng, self._cluster.disk
        fitting = _FITTING.get(verb, ())
        ready = [job.id for job in disk.jobs.values() if job.state in fitting]
        if not ready or rng.random() < 0.15:
            ready = list(disk.jobs)
        return rng.sample(ready, min(len(ready), rng.randint(1, 3)))

    def _changes(self) -> dict[str, Any]:
        rng = self._world.rng
        changes: dict[str, Any] = {"priority": rng.randint(-1, 2)}
        if rng.random() < 0.3:
            changes["after"] = self._after()
        if rng.random() < 0.3:
            machine = rng.choice(self._cluster.machines)
            changes["request"] = self._request(machine)
            if self._pins:
                changes["worker"] = rng.choice((None, machine.id))
        return changes
