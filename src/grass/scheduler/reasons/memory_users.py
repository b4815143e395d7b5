"""Who has the memory of GPUs that a waiting job lacks, in amounts and in words.

The scheduler knows holders and what is withheld. Who the strangers are and why a unit
has a fault is known to its caller, who passes it as `Told`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from grass.model.amount_text import amount_text
from grass.model.resources import Units, unit_order
from grass.scheduler.worker_units import NO_UNITS, Holder, WorkerUnits

MOST_UNITS, MOST_USERS = 2, 2
"""GPUs that are named, and users of each."""


class MemoryUser(NamedTuple):
    """Memory of a GPU that a waiting job cannot have."""

    unit: str
    amount: int
    holder: Holder | None
    """None: it is withheld."""


class Told(NamedTuple):
    """What the scheduler's caller knows of workers and their units."""

    name: Callable[[str], str] = str
    """The name of a worker."""
    strangers: Callable[[str, str], Sequence[str]] = lambda _worker, _unit: ()
    """Processes on a unit, the largest first: `python (pid 4711, alice): 12G`."""
    fault: Callable[[str, str], str | None] = lambda _worker, _unit: None
    """Why nothing can run on a unit."""


class Blame(NamedTuple):
    """What keeps GPUs of one worker from a job."""

    worker: str
    users: tuple[MemoryUser, ...] = ()
    closed: tuple[str, ...] = ()
    """GPUs that take no jobs."""
    full: str = ""
    """What is to say of GPUs that have as many jobs as they may."""
    asked_by: int | None = None
    """The pid of a guest, which is no stranger to itself."""

    def text(self, told: Told) -> str:
        """Name them in a few words; empty: there is nothing to name."""
        faults = ((unit, told.fault(self.worker, unit)) for unit in self.closed)
        named = [f"gpu {unit}: {fault}" for unit, fault in faults if fault]
        if self.full:
            named.append(self.full)
        for user in self.users:
            named += _words(user, self, told)
        return "; ".join(named[: MOST_UNITS * MOST_USERS])


def blame_of(worker: WorkerUnits, gpu: Units, vram: Units, share: int) -> Blame:
    """Find who has what a job lacks that needs this share of each GPU.

    `gpu` and `vram` are on offer to the job. Only GPUs with the share are looked at,
    those first that have the most memory.
    """
    near = sorted(vram, key=lambda unit: -vram[unit])
    if share:
        near = [unit for unit in near if gpu.get(unit, 0) >= share]
    users = tuple(user for unit in near[:MOST_UNITS] for user in _users(worker, unit))
    closed = tuple(sorted(worker.drained.get("gpu", ())))
    return Blame(worker.name, users, closed, _full(worker))


def _full(worker: WorkerUnits) -> str:
    jobs = worker.gpu_jobs
    if jobs is None or not jobs.full:
        return ""
    units = ", ".join(sorted(jobs.full, key=unit_order))
    most = "1 job" if jobs.most == 1 else f"{jobs.most} jobs"
    return f"gpu {units}: at most {most} at a time (`gpu.jobs`)"


def _users(worker: WorkerUnits, unit: str) -> list[MemoryUser]:
    found = [
        MemoryUser(unit, allocation["vram"][unit], holder)
        for holder, allocation in worker.holders.items()
        if allocation.get("vram", NO_UNITS).get(unit)
    ]
    withheld = worker.withheld.get("vram", NO_UNITS).get(unit, 0)
    if withheld:
        found.append(MemoryUser(unit, withheld, None))
    return sorted(found, key=lambda user: -user.amount)[:MOST_USERS]


def _words(user: MemoryUser, blame: Blame, told: Told) -> Iterator[str]:
    amount = amount_text(user.amount, "vram")
    if isinstance(user.holder, int):
        yield f"job {user.holder} holds {amount} of gpu {user.unit}"
    elif user.holder is not None:
        yield f"{user.holder} holds {amount} of gpu {user.unit}"
    elif strangers := _strangers(user.unit, blame, told):
        for stranger in strangers[:MOST_USERS]:
            who, _, size = stranger.rpartition(": ")
            yield f"{who} uses {size} of gpu {user.unit}"
    else:
        yield f"{amount} of gpu {user.unit} is withheld"


def _strangers(unit: str, blame: Blame, told: Told) -> list[str]:
    own = (f"(pid {blame.asked_by})", f"(pid {blame.asked_by},")
    named = told.strangers(blame.worker, unit)
    return [one for one in named if not any(text in one for text in own)]
