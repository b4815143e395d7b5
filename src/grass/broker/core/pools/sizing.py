"""Which jobs get a pilot of their own, and how large each pilot is.

In mode `per-job` the engine is asked for what a job asks for, and for its time, so the
site's scheduler decides where and when it runs. In mode `shared` every pilot is as the
pool was declared, and takes job after job. In `auto` the time that a job may take
decides: a pilot of its own costs seconds of the engine and of the worker, less than a
hundredth of ten minutes, but many times what a short job takes. So does memory of which
the pool declares none: only a pilot of its own is sure to have it. No pool declares the
memory of GPUs: the worker of a pilot tells how much there is, and `binding` checks
whether that is enough for the job.
"""

import math

from msgspec.structs import replace

from grass.model.amount_text import WHOLE
from grass.model.jobs.spec import Spec, least_request
from grass.model.pools import Pilot, PilotSize, Pool, PoolMode
from grass.model.resources import ANY_MEMORY, Capacity

LONG_S = 600.0
"""In mode `auto` jobs that may take this long get a pilot of their own."""
START_S = 120.0
"""How much longer than its job a pilot may run, to connect and to report the end."""
REPORT_S = 5.0
"""How long before its end a pilot must be done with its jobs."""


def has_own_pilot(pool: Pool, spec: Spec) -> bool:
    """Return whether a pool asks for a pilot for this job alone."""
    if pool.mode is PoolMode.AUTO:
        undeclared = _undeclared_memory(pool)
        is_long = spec.may_take_s is not None and spec.may_take_s >= LONG_S
        return is_long or any(kind in undeclared for kind, _ in least_request(spec))
    return pool.mode is PoolMode.PER_JOB


def most_units(pool: Pool) -> Capacity:
    """Return what a job may ask for: any memory, where the engine is asked for it."""
    units = pool.capacity()
    return units if pool.mode is PoolMode.SHARED else units | _undeclared_memory(pool)


def _undeclared_memory(pool: Pool) -> Capacity:
    """Return the kinds of memory of which a pool does not say how much there is."""
    units = {"vram": dict.fromkeys(pool.capacity().get("gpu", ()), ANY_MEMORY)}
    if pool.memory_mib is None:
        units["ram"] = {"0": ANY_MEMORY}
    return {kind: amounts for kind, amounts in units.items() if amounts}


def own_size(pool: Pool, spec: Spec) -> PilotSize:
    """Return what a job needs; what it does not name is as the pool declares it."""
    asked = dict(least_request(spec))
    memory = asked.get("ram")
    limit_s = spec.may_take_s
    return PilotSize(
        cpus=_whole(asked["cpu"]) if asked.get("cpu") else pool.cpus,
        gpus=_whole(asked.get("gpu", int("vram" in asked))),
        memory_mib=math.ceil(memory * 1024 / WHOLE) if memory else pool.memory_mib,
        time_limit_s=pool.time_limit_s if limit_s is None else limit_s + START_S,
    )


def sized(pool: Pool, size: PilotSize | None) -> Pool:
    """Return a pool as it is declared for one of its pilots."""
    if size is None:
        return pool
    return replace(
        pool,
        cpus=size.cpus,
        gpus=size.gpus,
        memory_mib=size.memory_mib,
        time_limit_s=size.time_limit_s,
    )


def longest_s(pool: Pool) -> float | None:
    """Return how long a job of this pool may take; None: the engine decides."""
    is_bounded = pool.mode is PoolMode.SHARED
    return pool.time_limit_s - REPORT_S if is_bounded else None


def unlimited_s(pool: Pool) -> float:
    """Return how much time must be left of a shared pilot for a job without a limit.

    Nobody knows how long it takes. Half of a pilot's time is promised to it, so that
    neither every short job needs a new pilot, nor a long one begins shortly before
    the end.
    """
    return pool.time_limit_s / 2


def time_limit_s(pool: Pool, pilot: Pilot) -> float:
    """Return how long the engine was asked to let a pilot run."""
    return pool.time_limit_s if pilot.size is None else pilot.size.time_limit_s


def _whole(amount: int) -> int:
    return max(1, math.ceil(amount / WHOLE)) if amount else 0
