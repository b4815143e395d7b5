"""A machine that makes random histories, and compares them with the oracle."""

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from grass.model.gpu_details import GpuDetails
from grass.model.resources import Capacity, Policy, Request, Units
from grass.scheduler import Placement, Scheduler

from .oracle import Oracle, Waiting

QUEUES = ("default", "a", "b", "c")
WORKERS = ("u", "v", "w")
LIMITERS = (("x",), ("y",), ("x", "y"))
MODELS = ("a100", "h200")
TYPES = ("train.py", "eval.py")
PROCESSES = (7, 8)
POLICIES: tuple[Policy | None, ...] = (None, None, "spread", "pack")
KINDS = ("cpu", "gpu", "vram")
HALVES = st.integers(1, 8).map(lambda n: n * 5_000)
SMALL = st.sampled_from([2_500, 5_000, 5_000, 10_000, 15_000, 20_000, 30_000])
PROFILED = st.sampled_from([2_500, 5_000, 15_000, 30_000, 10**9])


@st.composite
def capacities(draw: st.DrawFn) -> Capacity:
    """Small machines; gpu and vram have the same units."""
    units = draw(st.integers(1, 3))
    capacity = {
        "gpu": {str(unit): 10_000 for unit in range(units)},
        "vram": {str(unit): draw(HALVES) for unit in range(units)},
        "cpu": {str(unit): draw(HALVES) for unit in range(draw(st.integers(1, 4)))},
    }
    kinds = draw(
        st.sampled_from([KINDS, KINDS, ("gpu", "vram"), ("cpu", "gpu"), *KINDS])
    )
    return {kind: capacity[kind] for kind in KINDS if kind in kinds}


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Small requests; one gpu at most where vram is asked too."""
    kinds = draw(st.sets(st.sampled_from(KINDS), min_size=1, max_size=2))
    amounts = {kind: draw(SMALL) for kind in kinds}
    if {"gpu", "vram"} <= amounts.keys():
        amounts["gpu"] = min(amounts["gpu"], 5_000)
    return tuple(sorted(amounts.items()))


def _one_gpu_without_memory(request: Request) -> Request:
    """Return what a job asks for whose memory is looked up."""
    asked = {kind: amount for kind, amount in request if kind != "vram"}
    if "gpu" in asked:
        asked["gpu"] = min(asked["gpu"], 10_000)
    return tuple(asked.items())


class Histories(RuleBasedStateMachine):
    """Any order of calls, small enough for the oracle to try everything."""

    overtakes = 10**9

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(overtakes=self.overtakes)
        self.oracle = Oracle()
        self.now = 0.0
        self.jobs = 0
        for queue in QUEUES:
            self.set_queue(queue, paused=False, max_running=None)

    @initialize(capacity=capacities(), request=requests())
    def begin(self, capacity: Capacity, request: Request) -> None:
        """One worker is there from the beginning, and a few jobs wait for it."""
        self.add_worker("u", capacity)
        limits = {"worker": None, "limiters": (), "model": None, "policy": None}
        limits |= {"learned": None, "process": None}
        self.enqueue("default", request, 0, **limits, copies=3, decides=True)

    @rule(worker=st.sampled_from(WORKERS), capacity=capacities())
    def add_worker(self, worker: str, capacity: Capacity) -> None:
        """A worker joins, if it is not there; changes have tests of their own."""
        if worker not in self.oracle.capacity and not self._held_on(worker):
            # What is found of the last GPU has no model: it was declared.
            models = {str(unit): model for unit, model in enumerate(MODELS)}
            gpus = {unit: GpuDetails(model) for unit, model in models.items()}
            self.scheduler.add_worker(worker, capacity, gpus=gpus)
            self.oracle.capacity[worker] = capacity
            for unit, model in models.items():
                self.oracle.models[worker, unit] = model

    @rule(worker=st.sampled_from(WORKERS))
    def remove_worker(self, worker: str) -> None:
        """A worker goes away, with or without holders."""
        for drained in sorted(d for d in self.oracle.drained if d[0] == worker):
            # A worker with views is remembered, and what is drained of it.
            self.scheduler.drain(*drained, False)
            self.oracle.drained.discard(drained)
        self.scheduler.remove_worker(worker)
        self.oracle.capacity.pop(worker, None)
        for unit in [one for one in self.oracle.withheld if one[0] == worker]:
            del self.oracle.withheld[unit]
        for own in [one for one in self.oracle.own if one[0] == worker]:
            del self.oracle.own[own]

    @precondition(lambda self: self.oracle.capacity)
    @rule(data=st.data(), on=st.booleans())
    def drain(self, data: st.DataObject, on: bool) -> None:
        """One unit of one worker is drained or opened."""
        worker = data.draw(st.sampled_from(sorted(self.oracle.capacity)))
        kind = data.draw(st.sampled_from(sorted(self.oracle.capacity[worker])))
        unit = data.draw(st.sampled_from(sorted(self.oracle.capacity[worker][kind])))
        self.scheduler.drain(worker, kind, unit, on)
        (self.oracle.drained.add if on else self.oracle.drained.discard)(
            (worker, kind, unit)
        )

    @precondition(lambda self: self.oracle.capacity)
    @rule(
        data=st.data(),
        amount=st.sampled_from([0, 300, 900, 3_000, 12_000, 90_000]),
        process=st.sampled_from(PROCESSES),
        own=st.sampled_from([0, 300, 3_000, 12_000, 90_000]),
    )
    def withhold(
        self, data: st.DataObject, amount: int, process: int, own: int
    ) -> None:
        """Processes that are no jobs use more or less of a unit."""
        worker = data.draw(st.sampled_from(sorted(self.oracle.capacity)))
        kind = data.draw(st.sampled_from(sorted(self.oracle.capacity[worker])))
        unit = data.draw(st.sampled_from(sorted(self.oracle.capacity[worker][kind])))
        self.use(worker, kind, unit, amount, (process, own))

    def use(
        self, worker: str, kind: str, unit: str, amount: int, of_guest: tuple[int, int]
    ) -> None:
        """Processes that are no jobs use so much of a unit, one of them a guest."""
        process, own = of_guest
        self.oracle.withheld[worker, kind, unit] = amount
        for one in [one for one in self.oracle.own if one[::2] == (worker, unit)]:
            del self.oracle.own[one]
        if kind == "vram":
            self.oracle.own[worker, process, unit] = min(own, amount)
        processes: dict[int, Units] = {}
        for (where, pid, which), kept in self.oracle.own.items():
            if where == worker:
                processes.setdefault(pid, {})[which] = kept
        withheld: Capacity = {}
        for (where, what, which), kept in self.oracle.withheld.items():
            if where == worker and kept:
                withheld.setdefault(what, {})[which] = kept
        self.scheduler.withhold(worker, withheld, processes)

    @rule(
        queue=st.sampled_from(QUEUES[1:]),
        worker=st.sampled_from(WORKERS),
        limits=st.none() | capacities(),
    )
    def set_view(self, queue: str, worker: str, limits: Capacity | None) -> None:
        """A view comes, changes or goes."""
        self.scheduler.set_view(queue, worker, limits)
        if limits is None:
            self.oracle.views.pop((queue, worker), None)
        else:
            self.oracle.views[queue, worker] = limits

    @rule(worker=st.sampled_from(WORKERS), limits=capacities())
    def set_same_view(self, worker: str, limits: Capacity) -> None:
        """All queues see the same of a worker: they wait together for it."""
        for queue in QUEUES[1:]:
            self.set_view(queue, worker, limits)

    @rule(
        queue=st.sampled_from(QUEUES),
        paused=st.sampled_from([False, False, True]),
        max_running=st.none() | st.integers(0, 3),
    )
    def set_queue(self, queue: str, paused: bool, max_running: int | None) -> None:
        """A queue is paused, resumed or limited."""
        self.scheduler.set_queue(
            queue,
            paused=paused,
            max_running=max_running,
            open_to_all=queue == "default",
        )
        self.oracle.paused[queue] = paused
        self.oracle.max_running[queue] = max_running

    @rule(limiter=st.sampled_from("xy"), at_most=st.integers(0, 3))
    def set_limit(self, limiter: str, at_most: int) -> None:
        """A limiter changes."""
        self.scheduler.set_limit(limiter, at_most)
        self.oracle.limits[limiter] = at_most

    @rule(
        queue=st.sampled_from(["default", *QUEUES]),
        request=requests(),
        priority=st.sampled_from([0, 0, 0, 1, -1]),
        worker=st.sampled_from([None, None, *WORKERS]),
        limiters=st.sampled_from([(), (), *LIMITERS]),
        model=st.sampled_from([None, None, *MODELS]),
        policy=st.sampled_from(POLICIES),
        learned=st.sampled_from([None, None, None, *TYPES]),
        process=st.sampled_from([None, None, *PROCESSES]),
        copies=st.integers(1, 3),
        decides=st.booleans(),
    )
    def enqueue(
        self,
        queue: str,
        request: Request,
        priority: int,
        worker: str | None,
        limiters: tuple[str, ...],
        model: str | None,
        policy: Policy | None,
        learned: str | None,
        process: int | None,
        copies: int,
        decides: bool,
    ) -> None:
        """A few jobs of one shape arrive; a guest is of one worker."""
        if learned is not None:
            request = _one_gpu_without_memory(request)
        if process is not None:
            worker, model = "u", model or MODELS[0]
        for _ in range(copies):
            self.jobs += 1
            self.scheduler.enqueue(
                self.jobs,
                queue,
                request,
                priority,
                worker=worker,
                limiters=limiters,
                gpu_model=model,
                policy=policy,
                learned=learned,
                process=process,
            )
            self.oracle.waiting[self.jobs] = Waiting(
                queue,
                request,
                priority,
                worker,
                limiters,
                model,
                policy,
                learned,
                process,
            )
        if decides:
            self.decide()

    @rule(
        job_type=st.sampled_from(TYPES),
        known=st.dictionaries(st.sampled_from([*MODELS, ""]), PROFILED),
    )
    def set_profile(self, job_type: str, known: dict[str, int]) -> None:
        """Something is learned of a type, or forgotten."""
        self.scheduler.set_profile(job_type, known)
        self.oracle.known[job_type] = known
        for model in known:
            self.oracle.profilers.pop((job_type, model), None)

    @precondition(lambda self: self.oracle.waiting)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """A waiting job is cancelled."""
        job = data.draw(st.sampled_from(sorted(self.oracle.waiting)))
        self.scheduler.remove(job)
        del self.oracle.waiting[job]

    @precondition(lambda self: self.oracle.running)
    @rule(data=st.data(), count=st.integers(1, 3), decides=st.booleans())
    def release(self, data: st.DataObject, count: int, decides: bool) -> None:
        """A few jobs end."""
        for _ in range(min(count, len(self.oracle.running))):
            self.end(data.draw(st.sampled_from(sorted(self.oracle.running))))
        if decides:
            self.decide()

    def end(self, job: int) -> None:
        """One job ends."""
        self.scheduler.release(job)
        del self.oracle.running[job]
        profilers = self.oracle.profilers
        for one in [one for one, by in profilers.items() if by == job]:
            del profilers[one]

    @rule()
    def decide(self) -> None:
        """Jobs start; then nothing startable may be left."""
        self.now += 1.0
        placements = self.scheduler.decide(self.now)
        for placement in placements:
            self._check_placement(placement)
        assert self.scheduler.decide(self.now) == []
        self.check_nothing_startable_is_left()

    def check_nothing_startable_is_left(self) -> None:
        """Compare with the oracle, which tries everything."""
        assert self.oracle.startable() == []

    @invariant()
    def everything_adds_up(self) -> None:
        """Walk the scheduler's own invariants."""
        self.scheduler.check()
        assert self.scheduler.waiting() == len(self.oracle.waiting)

    def _check_placement(self, placement: Placement) -> None:
        job, worker, allocation = placement
        asked = self.oracle.waiting.pop(job)
        if asked.learned is not None:
            self._check_learned(asked, placement)
            self._check_turn(asked, placement)
            self.oracle.running[job] = (asked, worker, allocation)
            return
        given = {kind: sum(units.values()) for kind, units in allocation.items()}
        if "gpu" in given and "vram" not in dict(asked.request):
            self.check_memory(asked, placement)
            given.pop("vram", None)
        assert given == dict(asked.request)
        assert self.oracle.fits(asked, worker)
        self._check_turn(asked, placement)
        self.check_choice(asked, placement)
        self.oracle.running[job] = (asked, worker, allocation)

    def _check_turn(self, asked: Waiting, placement: Placement) -> None:
        """Jobs of one shape start in their order."""
        job = placement.job
        for other, each in self.oracle.waiting.items():
            ahead = (-each.priority, other) < (-asked.priority, job)
            same = replace(each, priority=0) == replace(asked, priority=0)
            assert not (ahead and same), f"{job} went before {other}"

    def _check_learned(self, asked: Waiting, placement: Placement) -> None:
        """A job of a type has the memory that is known, or else a GPU alone."""
        job, worker, allocation = placement
        (unit,) = allocation["vram"]
        request = self.oracle.gpus_for(asked, worker)[unit]
        given = {kind: sum(units.values()) for kind, units in allocation.items()}
        if "vram" not in dict(request):
            self.check_memory(asked, placement)
            given.pop("vram")
        assert given == dict(request)
        model = self.oracle.models.get((worker, unit), "")
        assert asked.learned is not None
        if model not in self.oracle.known.get(asked.learned, {}):
            self.oracle.profilers[asked.learned, model] = job

    def check_choice(self, asked: Waiting, placement: Placement) -> None:
        """A kind that one unit gives comes from the tightest, or the emptiest one."""
        (kind, amount), *others = asked.request
        given = placement.allocation[kind]
        if others or kind == "gpu" or len(given) > 1:
            return
        free = self.oracle.free_for(asked, placement.worker, kind)
        fitting = [has for has in free.values() if has >= amount]
        spread = asked.policy == "spread" or (kind == "vram" and not asked.policy)
        assert free[next(iter(given))] == (max if spread else min)(fitting)

    def check_memory(self, asked: Waiting, placement: Placement) -> None:
        """A share brings what is left of its unit's memory, in its proportion."""
        seen = self.oracle.seen_by(asked.process, placement.worker)
        brought = {
            unit: seen.memory_of(asked.queue, placement.worker, unit, share)
            for unit, share in placement.allocation["gpu"].items()
        }
        given = placement.allocation.get("vram", {})
        assert given == {unit: memory for unit, memory in brought.items() if memory}

    def _held_on(self, worker: str) -> bool:
        return any(where == worker for _, where, _ in self.oracle.running.values())


class HistoriesWithReservations(Histories):
    """The same with heads that reserve units after being overtaken twice."""

    overtakes = 2

    def check_choice(self, asked: Waiting, placement: Placement) -> None:
        """Units that are reserved are left alone, so another one may be chosen."""

    def check_nothing_startable_is_left(self) -> None:
        """Allow for jobs that leave reserved units alone."""
        reservations = {
            self.scheduler.explain(job, self.now).reserved_on: job
            for job in self.oracle.waiting
        }
        for job in self.oracle.startable():
            for worker in self.oracle.capacity:
                if self.oracle.fits(self.oracle.waiting[job], worker):
                    assert worker in reservations, f"{job} could start on {worker}"
                    assert self._order(reservations[worker]) < self._order(job)

    def _order(self, job: int) -> tuple[int, int]:
        return -self.oracle.waiting[job].priority, job
