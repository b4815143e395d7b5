"""What one worker lacks for a job: amounts, words, and who has them.

All functions are about a worker that is connected and could meet the request.
"""

from dataclasses import dataclass

from grass.model.amount_text import amount_text, amount_texts
from grass.model.gpu_details import named_gpus
from grass.model.resources import GPU_KINDS, unit_order
from grass.scheduler.device_memory import brings_memory, most_memory
from grass.scheduler.learned_memory import choices, open_choices
from grass.scheduler.placement import (
    allocate,
    amounts_needed,
    free_units,
    kinds_of,
    offer_now,
    shortage,
)
from grass.scheduler.reasons.memory_users import Blame, blame_of
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
    """How much of it is on units that take no jobs: drained, or with a fault."""
    model: str | None = None
    """The pattern that the GPUs match which are counted here."""
    brought: bool = False
    """Whether it is the memory that comes with a share of a GPU, `free` too."""

    def __str__(self) -> str:
        """Return one line with the numbers."""
        asked, free, total, idle = amount_texts(
            self.kind, self.asked, self.free, self.total, self.drained
        )
        pieces = ", in smaller pieces" if self.free >= self.asked else ""
        out = f", {idle} out of use" if self.drained else ""
        has = f"free {free} of {total}{out}{pieces}"
        return f"needs {self.kind} {asked}{of_model(self.model)}, {has}"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What keeps a job from starting on a worker; without a text, nothing does."""

    needs: tuple[Need, ...] = ()
    """Kinds that are short on their own."""
    together: tuple[Need, ...] = ()
    """Kinds that are free, but not on the same units."""
    text: str = ""
    blame: Blame | None = None
    """Who has the GPUs, or the memory of them, that are short."""
    holders: tuple[Holder, ...] = ()
    """The holders of units of the kinds that are short."""


def shortfall(worker: WorkerUnits, asked: ShapeKey, order: StartOrder) -> Shortfall:
    """Find what a worker is short of for a job of this order."""
    key = nearest_key(worker, asked, order)
    needs = _needs(worker, key, order)
    together = () if needs else _together(worker, key, order)
    short = needs + together
    if not short:
        return Shortfall(text=_busy_text(worker, asked, order))
    why = _learned_texts(worker, asked, key)
    text = _lack(worker, key, needs, together, why)
    blame = _blame(worker, key, order, short)
    return Shortfall(needs, together, text, blame, _holders(worker, key, short))


def _busy_text(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> str:
    """Say that GPUs would fit, but are busy; empty: that is not so."""
    if key.learned is None or not worker.busy:
        return ""
    if not open_choices(worker, key) or allocate(worker, key, order) is not None:
        return ""
    units = ", ".join(sorted(worker.busy, key=unit_order))
    return f"waits for a GPU that is not busy; gpu {units}: too busy (`gpu.busy`)"


def of_model(pattern: str | None) -> str:
    """Say which GPUs are meant, if not all."""
    if pattern is None:
        return ""
    named = named_gpus(pattern)
    if named is None:
        return f" of model `{pattern}`"
    return f" of gpu {', '.join(sorted(named, key=unit_order))}"


def nearest_key(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> ShapeKey:
    """Return the ordinary key that a job could start by first on a worker."""
    if key.learned is None:
        return key
    found = [one.key for one in open_choices(worker, key) or choices(worker, key)]
    return min(found, key=lambda one: missing_share(worker, one, order), default=key)


def missing_share(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> float:
    """Return what is short on a worker, as a sum of shares of each kind asked."""
    short, asked = shortage(worker, key, order), amounts_needed(worker, key)
    return sum(amount / asked[kind] for kind, amount in short.items())


def _learned_texts(
    worker: WorkerUnits, key: ShapeKey, given: ShapeKey
) -> dict[str, str]:
    """Return why a job asks for so much, by the kinds whose amounts it did not say."""
    looked_up = dict(set(given.request) - set(key.request))
    return dict.fromkeys(looked_up, _learned_text(worker, key, given))


def _learned_text(worker: WorkerUnits, key: ShapeKey, given: ShapeKey) -> str:
    """Say why a job asks for that much memory; empty: it said so itself."""
    if key.learned is None:
        return ""
    choice = next((one for one in choices(worker, key) if one.key == given), None)
    if choice is None or choice.profiles is not None:
        return f" (to learn the memory of `{key.learned}`)"
    if choice.is_known:
        return f" (as learned of `{key.learned}`)"
    return f" (`{key.learned}` needs all of a GPU)"


def _needs(worker: WorkerUnits, key: ShapeKey, order: StartOrder) -> tuple[Need, ...]:
    short = shortage(worker, key, order)
    needs = tuple(_need(worker, key, order, kind) for kind in short)
    if "gpu" not in dict(key.request):
        return needs
    return tuple(n for n in needs if n.kind != "vram" or n.free < n.asked)


def _together(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder
) -> tuple[Need, ...]:
    if allocate(worker, key, order) is not None:
        return ()
    return tuple(_need(worker, key, order, kind) for kind in ("gpu", "vram"))


def _lack(
    worker: WorkerUnits,
    key: ShapeKey,
    needs: tuple[Need, ...],
    together: tuple[Need, ...],
    why: dict[str, str],
) -> str:
    """Say what a worker is short of, and of GPUs why it is so much."""
    short = needs + together
    brought = [need for need in short if need.kind == "vram"]
    if brought and "vram" not in dict(key.request):
        others = [str(need) for need in needs if need.kind != "vram"]
        return "; ".join(
            [_share(worker, key, brought[0]) + why.get("gpu", ""), *others]
        )
    if together:
        asked = [
            f"{need.kind} {amount_text(need.asked, need.kind)}" for need in together
        ]
        together_on = f"on the same unit{of_model(key.model)}"
        return f"needs {' and '.join(asked)} {together_on}{why.get('vram', '')}"
    texts = []
    for need in needs:
        texts.append(f"{need}{why.get(need.kind, '')}")
        # It is said once.
        why = {} if need.kind in why else why
    return "; ".join(texts)


def _blame(
    worker: WorkerUnits, key: ShapeKey, order: StartOrder, short: tuple[Need, ...]
) -> Blame | None:
    if not any(need.kind in ("gpu", "vram") for need in short):
        return None
    kinds = kinds_of(worker, key)
    worker = worker.seen_by(key.process, key.queue)
    gpu = free_units(worker, key, "gpu", order)
    vram = free_units(worker, key, "vram", order)
    largest = kinds["gpu"].largest if "gpu" in kinds else 0
    share = min(dict(key.request).get("gpu", 0), largest)
    return blame_of(worker, gpu, vram, share)._replace(asked_by=key.process)


def _holders(
    worker: WorkerUnits, key: ShapeKey, needs: tuple[Need, ...]
) -> tuple[Holder, ...]:
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
    kinds = kinds_of(worker, key)
    kind_units, brought = (
        kinds[kind],
        kind == "vram" and brings_memory(key.request, kinds),
    )
    free = sum(free_units(worker, key, kind, order).values())
    if brought:
        free = most_memory(offer_now(worker, key, order), dict(key.request)["gpu"])
    drained = worker.drained.get(kind, ())
    idle = sum(kind_units.sizes.get(unit, 0) for unit in drained)
    asked = amounts_needed(worker, key)[kind]
    model = key.model if kind in GPU_KINDS else None
    return Need(kind, asked, free, kind_units.total, idle, model, brought)
