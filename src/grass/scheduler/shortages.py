"""What one worker lacks for a job: amounts, words, and who has them.

All functions are about a worker that is connected and could meet the request.
"""

from dataclasses import dataclass

from grass.model.amount_text import amount_text, amount_texts
from grass.model.resources import GPU_KINDS
from grass.scheduler.memory_users import Blame, blame_of
from grass.scheduler.placement import (
    allocate,
    amounts_needed,
    free_units,
    kinds_of,
    shortage,
)
from grass.scheduler.shapes import ShapeKey, StartOrder
from grass.scheduler.worker_units import Holder, WorkerUnits


@dataclass(frozen=True, slots=True)
class Need:
    """One kind that is short: amounts asked, free to this job, and in all."""

    kind: str
    asked: int
    free: int
    total: int
    drained: int = 0
    """How much of it is on drained units."""
    model: str | None = None
    """The pattern that the GPUs match which are counted here."""

    def __str__(self) -> str:
        """Return one line with the numbers."""
        asked, free, total, idle = amount_texts(
            self.kind, self.asked, self.free, self.total, self.drained
        )
        pieces = ", in smaller pieces" if self.free >= self.asked else ""
        drained = f", {idle} drained" if self.drained else ""
        has = f"free {free} of {total}{drained}{pieces}"
        return f"needs {self.kind} {asked}{of_model(self.model)}, {has}"


def of_model(pattern: str | None) -> str:
    """Say which GPUs are meant, if not all."""
    return "" if pattern is None else f" of model `{pattern}`"


def needs_of(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> tuple[Need, ...]:
    """Return the kinds that are short on their own."""
    short = shortage(worker, key, order)
    needs = tuple(_need(worker, key, order, kind) for kind in short)
    if "gpu" not in dict(key.request):
        return needs
    return tuple(n for n in needs if n.kind != "vram" or n.free < n.asked)


def needs_together(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder
) -> tuple[Need, ...]:
    """Return GPUs and memory, where both are free but not on the same units."""
    if allocate(worker, key, order) is not None:
        return ()
    return tuple(_need(worker, key, order, kind) for kind in ("gpu", "vram"))


def lack_of(
    worker: WorkerUnits,
    key: ShapeKey,
    needs: tuple[Need, ...],
    together: tuple[Need, ...],
) -> str:
    """Say what a worker is short of."""
    short = needs + together
    brought = [need for need in short if need.kind == "vram"]
    if brought and "vram" not in dict(key.request):
        others = [str(need) for need in needs if need.kind != "vram"]
        return "; ".join([_share(worker, key, brought[0]), *others])
    if together:
        asked = [
            f"{need.kind} {amount_text(need.asked, need.kind)}" for need in together
        ]
        together_on = f"on the same unit{of_model(key.model)}"
        return f"needs {' and '.join(asked)} {together_on}"
    return "; ".join(map(str, needs))


def blame_for(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder, short: tuple[Need, ...]
) -> Blame | None:
    """Return who has the GPUs or the memory of them that are short."""
    if not any(need.kind in ("gpu", "vram") for need in short):
        return None
    kinds = kinds_of(worker, key)
    gpu = free_units(worker, key, "gpu", order)
    vram = free_units(worker, key, "vram", order)
    largest = kinds["gpu"].largest if "gpu" in kinds else 0
    share = min(dict(key.request).get("gpu", 0), largest)
    return blame_of(worker, gpu, vram, share)


def holders_of(
    worker: WorkerUnits, key: ShapeKey, needs: tuple[Need, ...]
) -> tuple[Holder, ...]:
    """Return who holds units of the kinds that are short."""
    kinds = kinds_of(worker, key)
    wanted = [(need.kind, kinds[need.kind].sizes) for need in needs]
    return tuple(
        holder
        for holder, allocation in worker.holders.items()
        if any(
            not sizes.keys().isdisjoint(allocation.get(k, ())) for k, sizes in wanted
        )
    )


def _share(worker: WorkerUnits, key: ShapeKey, memory: Need) -> str:
    """Say that a share of a GPU is free, and its memory is not."""
    asked = dict(key.request)["gpu"]
    share = f"needs gpu {amount_text(asked, 'gpu')}{of_model(memory.model)}"
    if asked >= kinds_of(worker, key)["gpu"].largest:
        return f"{share} whole with its memory"
    return f"{share} with vram {amount_text(memory.asked, 'vram')}"


def _need(worker: WorkerUnits, key: ShapeKey, order: StartOrder, kind: str) -> Need:
    free = sum(free_units(worker, key, kind, order).values())
    kind_units = kinds_of(worker, key)[kind]
    drained = worker.drained.get(kind, ())
    idle = sum(kind_units.sizes.get(unit, 0) for unit in drained)
    asked = amounts_needed(worker, key)[kind]
    model = key.model if kind in GPU_KINDS else None
    return Need(kind, asked, free, kind_units.total, idle, model)
