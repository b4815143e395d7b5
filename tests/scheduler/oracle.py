"""A brute-force model of what could start: slow, simple and independent.

It shares no code with the scheduler, so that a wrong index or a lost wake-up shows as
a difference.
"""

from dataclasses import dataclass, field, replace
from itertools import combinations

from grass.model.resources import Allocation, Capacity, Policy, Request, Units


@dataclass
class Waiting:
    """One waiting job as it was enqueued."""

    queue: str
    request: Request
    priority: int
    worker: str | None
    limiters: tuple[str, ...] = ()
    model: str | None = None
    policy: Policy | None = None
    learned: str | None = None
    process: int | None = None


@dataclass
class Oracle:
    """The state that the calls to the scheduler imply."""

    capacity: dict[str, Capacity] = field(default_factory=dict)
    models: dict[tuple[str, str], str] = field(default_factory=dict)
    views: dict[tuple[str, str], Capacity] = field(default_factory=dict)
    drained: set[tuple[str, str, str]] = field(default_factory=set)
    withheld: dict[tuple[str, str, str], int] = field(default_factory=dict)
    own: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """What a process of a worker has of the memory that is withheld of a unit."""
    paused: dict[str, bool] = field(default_factory=dict)
    max_running: dict[str, int | None] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    known: dict[str, dict[str, int]] = field(default_factory=dict)
    """The memory of types, by model."""
    profilers: dict[tuple[str, str], int] = field(default_factory=dict)
    """The job that profiles a type on a model."""
    most_jobs: int | None = None
    busy: set[tuple[str, str]] = field(default_factory=set)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    running: dict[int, tuple[Waiting, str, Allocation]] = field(default_factory=dict)

    def startable(self) -> list[int]:
        """Return the waiting jobs that some worker could start now."""
        return [
            job
            for job, asked in self.waiting.items()
            if self._gates_open(asked)
            and any(self.fits(asked, worker) for worker in self.capacity)
        ]

    def fits(self, asked: Waiting, worker: str) -> bool:
        """Return whether one worker could start a job now."""
        if asked.learned is not None:
            return bool(self.gpus_for(asked, worker))
        if asked.process is not None:
            seen = self.seen_by(asked.process, worker)
            return seen.fits(replace(asked, process=None), worker)
        if asked.model is not None:
            narrow = self.of_model(worker, asked.model)
            return narrow.fits(replace(asked, model=None), worker)
        view = self.views.get((asked.queue, worker))
        serves = asked.queue == "default" or view is not None
        if not serves or asked.worker not in (None, worker):
            return False
        request = dict(asked.request)
        if "vram" in request and "gpu" not in request:
            largest = max(self._sizes(asked.queue, worker, "vram").values(), default=0)
            if request["vram"] > largest:
                return False
        if "gpu" in request and "vram" in request:
            return self._fits_tied(asked, worker, request)
        if "gpu" in request and self._sizes(asked.queue, worker, "vram"):
            return self._shares_fit(asked, worker, request)
        return all(
            _kind_fits(
                self._free(asked.queue, worker, kind),
                self._sizes(asked.queue, worker, kind),
                self._whole(asked.queue, worker, kind),
                amount,
            )
            for kind, amount in request.items()
        )

    def gpus_for(self, asked: Waiting, worker: str) -> dict[str, Request]:
        """Return where a job of a type could start now, and what it would ask for."""
        found = {}
        for unit in self._sizes(asked.queue, worker, "vram"):
            request = self.request_on(asked, worker, unit)
            if request is not None:
                # A guest is still one: what it has itself is seen by `fits`.
                plain = replace(asked, request=request, learned=None, model=None)
                if self._only(worker, {unit}).fits(plain, worker):
                    found[unit] = request
        return found

    def request_on(self, asked: Waiting, worker: str, unit: str) -> Request | None:
        """Return what a job of a type asks for on one GPU; None: not now, or never."""
        assert asked.learned is not None
        model = self.models.get((worker, unit), "")
        if asked.model not in (None, model) or (worker, unit) in self.busy:
            return None
        amount = self.known.get(asked.learned, {}).get(model)
        if amount is None and (asked.learned, model) in self.profilers:
            return None
        request = dict(asked.request)
        if (
            amount is not None
            and amount < self._sizes(asked.queue, worker, "vram")[unit]
        ):
            return tuple(sorted({**request, "vram": amount}.items()))
        share = self._sizes(asked.queue, worker, "gpu").get(unit, 0)
        if share == 10_000:
            return tuple(sorted({**request, "gpu": share}.items()))
        if request.get("gpu", 0) > share:
            return None
        return self._part(asked, worker, unit, share)

    def _part(self, asked: Waiting, worker: str, unit: str, share: int) -> Request:
        """Return a request for all that a queue may have of a GPU."""
        of_share = self.capacity[worker]["vram"][unit] * share // 10_000
        memory = min(of_share, self._sizes(asked.queue, worker, "vram")[unit])
        both = {"gpu": share, "vram": memory * 9 // 10}
        return tuple(sorted({**dict(asked.request), **both}.items()))

    def of_model(self, worker: str, model: str) -> "Oracle":
        """Return the same state in which a worker has GPUs of one model alone."""
        return self._only(
            worker,
            {
                unit
                for (at, unit), of in self.models.items()
                if (at, of) == (worker, model)
            },
        )

    def _only(self, worker: str, gpus: set[str]) -> "Oracle":
        left = {
            kind: {u: size for u, size in units.items() if kind == "cpu" or u in gpus}
            for kind, units in self.capacity[worker].items()
        }
        return replace(self, capacity={**self.capacity, worker: left})

    def seen_by(self, process: int | None, worker: str) -> "Oracle":
        """Return the same state in which a process has nothing that is withheld."""
        left = {
            (where, kind, unit): amount - self.own.get((where, process or 0, unit), 0)
            if (where, kind) == (worker, "vram")
            else amount
            for (where, kind, unit), amount in self.withheld.items()
        }
        return replace(self, withheld=left)

    def free_for(self, asked: Waiting, worker: str, kind: str) -> Units:
        """Return what a job could get of each unit of a kind."""
        model, seen = asked.model, self.seen_by(asked.process, worker)
        narrow = seen if model is None else seen.of_model(worker, model)
        return narrow._free(asked.queue, worker, kind)

    def _shares_fit(self, asked: Waiting, worker: str, request: dict[str, int]) -> bool:
        rest = [(k, n) for k, n in request.items() if k != "gpu"]
        others = Waiting(asked.queue, tuple(rest), 0, None)
        free = self._free(asked.queue, worker, "gpu")
        whole = self._whole(asked.queue, worker, "gpu")
        sizes, amount = self._sizes(asked.queue, worker, "gpu"), request["gpu"]

        def gives(unit: str, share: int) -> bool:
            memory = self.memory_of(asked.queue, worker, unit, share)
            return free[unit] >= share and memory is not None

        if amount <= max(sizes.values(), default=0):
            found = any(gives(unit, amount) for unit in free)
            return found and self.fits(others, worker)
        ready = [u for u, has in free.items() if has == whole[u] and gives(u, has)]
        for count in range(len(ready) + 1):
            for chosen in combinations(ready, count):
                left = amount - sum(whole[unit] for unit in chosen)
                if left <= 0 or any(gives(u, left) for u in free if u not in chosen):
                    return self.fits(others, worker)
        return False

    def memory_of(self, queue: str, worker: str, unit: str, share: int) -> int | None:
        """Return the memory that a share of a GPU brings; None: too little is left."""
        size = self._sizes(queue, worker, "vram").get(unit)
        if size is None:
            return 0
        open_share = self._free(None, worker, "gpu").get(unit, 0)
        on_offer = self._free(queue, worker, "vram").get(unit, 0)
        brought = on_offer * share // open_share if open_share else 0
        if share == self.capacity[worker]["gpu"][unit]:
            alone = on_offer == self._whole(queue, worker, "vram")[unit]
            brought = brought if alone else -1
        nominal = size * share // self.capacity[worker]["gpu"][unit]
        return brought if brought >= nominal * 9 // 10 else None

    def _fits_tied(self, asked: Waiting, worker: str, request: dict[str, int]) -> bool:
        rest = [(k, n) for k, n in request.items() if k not in ("gpu", "vram")]
        others = Waiting(asked.queue, tuple(rest), 0, None)
        # The histories ask for vram only next to a share of one gpu.
        gpu = self._free(asked.queue, worker, "gpu")
        vram = self._free(asked.queue, worker, "vram")
        on_one = any(
            free >= request["gpu"] and vram.get(unit, 0) >= request["vram"]
            for unit, free in gpu.items()
        )
        return on_one and self.fits(others, worker)

    def _gates_open(self, asked: Waiting) -> bool:
        if self.paused.get(asked.queue):
            return False
        in_queue = sum(
            each.queue == asked.queue for each, _, _ in self.running.values()
        )
        allowed = self.max_running.get(asked.queue)
        if allowed is not None and in_queue >= allowed:
            return False
        return all(
            sum(one in each.limiters for each, _, _ in self.running.values()) < most
            for one, most in self.limits.items()
            if one in asked.limiters
        )

    def _sizes(self, queue: str | None, worker: str, kind: str) -> Units:
        units = self.capacity[worker].get(kind, {})
        view = self.views.get((queue, worker), {}) if queue is not None else {}
        if kind not in view:
            return units
        return {u: min(n, view[kind][u]) for u, n in units.items() if u in view[kind]}

    def _whole(self, queue: str, worker: str, kind: str) -> Units:
        """Return what units offer while no job holds any of them."""
        has = self.capacity[worker].get(kind, {})
        return {
            unit: max(0, min(size, has[unit] - self._kept(worker, kind, unit)))
            for unit, size in self._sizes(queue, worker, kind).items()
        }

    def _kept(self, worker: str, kind: str, unit: str) -> int:
        return self.withheld.get((worker, kind, unit), 0)

    def _free(self, queue: str | None, worker: str, kind: str) -> Units:
        free = {}
        for unit, size in self._sizes(queue, worker, kind).items():
            if (worker, kind, unit) in self.drained:
                continue
            if kind != "cpu" and self._is_full(worker, unit):
                continue
            used = self._held(None, worker, kind, unit)
            left = self.capacity[worker][kind][unit] - used
            left -= self._kept(worker, kind, unit)
            own = size - self._held(queue, worker, kind, unit)
            limited = queue is not None and kind in self.views.get((queue, worker), {})
            free[unit] = max(0, min(left, own) if limited else left)
        return free

    def _is_full(self, worker: str, unit: str) -> bool:
        """Return whether a GPU has as many jobs as it may."""
        jobs = [
            allocation.get("gpu", {}).keys() | allocation.get("vram", {}).keys()
            for _, where, allocation in self.running.values()
            if where == worker
        ]
        return self.most_jobs is not None and (
            sum(unit in gpus for gpus in jobs) >= self.most_jobs
        )

    def _held(self, queue: str | None, worker: str, kind: str, unit: str) -> int:
        return sum(
            allocation.get(kind, {}).get(unit, 0)
            for asked, where, allocation in self.running.values()
            if where == worker and queue in (None, asked.queue)
        )


def _kind_fits(free: Units, sizes: Units, whole: Units, amount: int) -> bool:
    if amount <= max(sizes.values(), default=0):
        return any(has >= amount for has in free.values())
    ready = [unit for unit, has in free.items() if has == whole[unit]]
    for count in range(len(ready) + 1):
        for chosen in combinations(ready, count):
            rest = amount - sum(whole[unit] for unit in chosen)
            others = [has for unit, has in free.items() if unit not in chosen]
            if rest <= 0 or any(has >= rest for has in others):
                return True
    return False
