"""Prefetch: jobs that are decided ahead and take over a holder's units on release.

For very short jobs the way from an end to the next start is longer than the job, so
the next job of the same shape may be decided ahead, as the follower of a holder. When
the holder is released its units pass to the follower without being free in between.
Units are never counted twice: a prefetched job holds nothing before its predecessor is
released. It is only done while a single shape waits, so no job is overtaken.
"""

from grass.model.resources import Allocation, Request
from grass.scheduler.shapes import Shape
from grass.scheduler.worker_units import HeldUnits, Holder


class PrefetchChains:
    """The follower of each holder or prefetched job, and the predecessors.

    A chain is a dictionary of its members in order, each with a number that is one more
    than that of its predecessor: chains are long, and their ends are often asked for.
    """

    def __init__(self) -> None:
        self.followers: dict[Holder, int] = {}
        self.predecessors: dict[int, Holder] = {}
        self._chains: dict[Holder, dict[Holder, int]] = {}

    def last_of(self, holder: Holder) -> tuple[Holder, int]:
        """Return the end of a holder's chain, and how many jobs are behind it."""
        chain = self._chains.get(holder)
        if chain is None:
            return holder, 0
        last = next(reversed(chain))
        return last, chain[last] - chain[holder]

    def first_of(self, job: int) -> Holder:
        """Return the holder whose chain a prefetched job is in."""
        return next(iter(self._chains[job]))

    def append(self, job: int, predecessor: Holder) -> None:
        """Put a job, and those behind it, behind one that has no follower."""
        assert predecessor not in self.followers
        self.followers[predecessor] = job
        self.predecessors[job] = predecessor
        chain = self._chains.setdefault(predecessor, {predecessor: 0})
        behind = self._chains.get(job, (job,))
        for number, member in enumerate(behind, chain[predecessor] + 1):
            chain[member] = number
            self._chains[member] = chain

    def remove(self, job: int) -> None:
        """Remove a prefetched job; its follower takes its place."""
        predecessor = self.predecessors.pop(job)
        del self.followers[predecessor]
        follower = self.followers.pop(job, None)
        if follower is not None:
            self.followers[predecessor] = follower
            self.predecessors[follower] = predecessor
        self._leave(job)

    def pop_follower(self, holder: Holder) -> int | None:
        """Remove and return the job that takes over a holder's units."""
        follower = self.followers.pop(holder, None)
        if follower is not None:
            del self.predecessors[follower]
            self._leave(holder)
        return follower

    def _leave(self, member: Holder) -> None:
        chain = self._chains.pop(member)
        is_first = next(iter(chain)) == member
        del chain[member]
        if len(chain) == 1:
            del self._chains[next(iter(chain))]
        elif not is_first:
            chain.update(zip(list(chain), range(len(chain)), strict=True))


def may_follow(shape: Shape, held: HeldUnits) -> bool:
    """Return whether the next job of a shape may take over exactly what is held."""
    worker, queue = held.worker, shape.queue
    if queue is not held.gates.queue or queue.paused:
        return False
    if not shape.gates.are_of_queue() or not held.gates.are_of_queue():
        return False
    if worker.away or worker.withdrawn or any(worker.drained.values()):
        return False
    if not _is_met_by(shape.request, held.allocation):
        return False
    return shape.key.labels <= worker.labels and _has_models(shape, held)


def _has_models(shape: Shape, held: HeldUnits) -> bool:
    """Return whether all GPUs that are held match the model that a shape needs."""
    model, given = shape.key.model, held.allocation
    if model is None:
        return True
    gpus = given.get("gpu", {}) | given.get("vram", {})
    usable = held.worker.gpus_of(model)
    return usable is None or usable.issuperset(gpus)


def _is_met_by(request: Request, allocation: Allocation) -> bool:
    """Return whether an allocation is what a request asks for, and the memory of it."""
    asked = dict(request)
    given = {kind: sum(units.values()) for kind, units in allocation.items()}
    if "gpu" in asked and "vram" not in asked:
        given.pop("vram", None)
    return given == asked
