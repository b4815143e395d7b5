"""Whose units the tasks of a program have.

Inside a job, or inside a block of `allocate`, they are what that has. Where a daemon
runs, the program becomes a guest, with what `rpw` names or the cores and memory that
are free now. Without a daemon they are what `rpw` names, or the machine's: cores and
memory may be more than it has, GPUs are those that are found. A GPU is looked for when
`rpw` or the first task asks for one, and only where the machine is all the program's.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from threading import Thread

import anyio.to_thread

from grass.client.client import Client
from grass.client.connection import Broken, open_connection
from grass.client.worker_id_file import read_worker_id
from grass.config import LOCAL, home
from grass.devices.probe import found_units
from grass.errors import GrassError, NeverFits
from grass.model.amount_text import WHOLE
from grass.model.amounts import capacity_amount, decimal_number
from grass.model.gpu_details import visible_devices
from grass.model.resources import GPU_KINDS, request_text
from grass.profiles.allocation import allocate, surrounding
from grass.profiles.process_allocations import state
from grass.profiles.surrounding_job import units_of_job
from grass.resource import ZERO, Resource, WTime, capacity_of, combined, counted
from grass.resource import own_parts as own_parts_of
from grass.tasks.core.task_units import TaskRequest, TaskUnits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from grass.model.resources import Capacity, Request
    from grass.model.worker import FoundUnits
    from grass.profiles.allocation import Allocation

_VISIBLE = "CUDA_VISIBLE_DEVICES"


class ProgramUnits:
    """The units that a program's tasks have."""

    def __init__(
        self,
        capacity: Capacity,
        rpw: Resource | None = None,
        *,
        found: FoundUnits | None = None,
        may_look_for_gpus: bool = False,
    ) -> None:
        """`found` are the GPUs of the machine, if the capacity is of them."""
        own = own_parts_of(rpw or ZERO)
        limit = own.pop("WTime", None)
        self.time = limit if isinstance(limit, WTime) else None
        """How much time is left, where that is limited."""
        self.own = combined(own)
        """Resources of the user's own classes."""
        self.capacity = capacity
        self._may_look = may_look_for_gpus
        self._found: FoundUnits = found or {}
        # A guest or job was given its GPUs in this order.
        shown = os.environ.get(_VISIBLE, "").split(",")
        names = list(capacity.get("gpu") or capacity.get("vram") or ())
        is_given = shown != [""] and found is None
        self._shown = dict(zip(names, shown, strict=False)) if is_given else {}

    def found_gpus(self) -> Capacity:
        """Return the GPUs of the machine, if they were not looked for before."""
        if not self._may_look:
            return {}
        self._may_look = False
        self._found, _ = _look_for_gpus()
        return _amounts(self._found)

    def variables(self, gpus: Sequence[str]) -> dict[str, str]:
        """Return the variables of a process that sees these GPUs."""
        if self._shown:
            seen = ",".join(self._shown.get(name, name) for name in gpus)
        else:
            seen = visible_devices(self._found.get("gpu", {}), gpus)
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", _VISIBLE: seen}


class ProgramBlock:
    """Holds the units of a program while a block runs; entering it may wait."""

    def __init__(self, rpw: Resource | None) -> None:
        self._rpw = rpw
        self.failure: BaseException | None = None
        """The exception that ends the program, where another thread raises it."""
        self._guest: Allocation | None = None
        self._given_up = False

    def __enter__(self) -> ProgramUnits:
        """Find the units, or wait for them as a guest."""
        found = self._find()
        if self._guest is not None:
            self._guest.__enter__()
        return found or self._units_of_guest()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the units back; a guest ends as the program does."""
        if self._guest is not None:
            self._guest.__exit__(kind, error or self.failure, traceback)

    async def __aenter__(self) -> ProgramUnits:
        """Find or wait, while other tasks of the loop go on."""
        found = await anyio.to_thread.run_sync(self._find)
        if self._guest is not None:
            await self._guest.__aenter__()
        return found or self._units_of_guest()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the units back."""
        if self._guest is not None:
            await self._guest.__aexit__(kind, error, traceback)

    def give_up(self) -> None:
        """Have the thread that waits for the units return."""
        self._given_up = True
        if self._guest is not None:
            self._guest.give_up()

    def _find(self) -> ProgramUnits | None:
        """Return units that need not be waited for; None: a guest will have them."""
        job, outer, rpw = state.outer_job, surrounding(), self._rpw
        if job is not None:
            return ProgramUnits(_units_within(_units_of(job), rpw), rpw)
        if outer is not None and outer.job is not None:
            return ProgramUnits(_units_within(_capacity(outer.amounts), rpw), rpw)
        if _has_daemon():
            return self._become_guest()
        if rpw is not None:
            return _named_units(rpw)
        return ProgramUnits(_amounts(found_units([])), may_look_for_gpus=True)

    def _become_guest(self) -> ProgramUnits | None:
        asked = counted(self._rpw) if self._rpw is not None else _free_now()
        if not asked:
            return ProgramUnits({}, self._rpw)
        require = {kind: decimal_number(amount) for kind, amount in asked}
        self._guest = allocate(require=require)
        self._guest.tells_waits = True
        if self._given_up:
            self._guest.give_up()
        return None

    def _units_of_guest(self) -> ProgramUnits:
        assert self._guest is not None
        capacity = _capacity(self._guest.amounts)
        if self._rpw is None:
            totals = {kind: sum(units.values()) for kind, units in capacity.items()}
            shown = request_text(tuple(sorted(totals.items())))
            sys.stderr.write(f"grass: tasks have {shown}\n")
        return ProgramUnits(capacity, self._rpw)


def _has_daemon() -> bool:
    connection = open_connection(home().socket)
    if connection is not None:
        connection.close()
    return connection is not None


def _capacity(amounts: Mapping[str, Mapping[str, float]]) -> Capacity:
    return {
        kind: {name: capacity_amount(has, kind) for name, has in units.items()}
        for kind, units in amounts.items()
    }


def _free_now() -> tuple[tuple[str, int], ...]:
    """Return the cores and memory that are free on this machine; one core at least."""
    own = read_worker_id(home())
    with Client(broker=LOCAL, may_start=False) as client:
        workers = client.workers()["workers"]
    free: Mapping[str, Mapping[str, float]] = next(
        (worker["free"] for worker in workers if worker["id"] == own), {}
    )
    cores = sum(1 for amount in free.get("cpu", {}).values() if amount == 1)
    memory = max(free.get("ram", {}).values(), default=0)
    amounts = [("cpu", max(1, cores) * WHOLE), ("ram", capacity_amount(memory, "ram"))]
    return tuple((kind, amount) for kind, amount in amounts if amount)


def _units_of(job: int) -> Capacity:
    """Return what a job has that this process runs in."""
    with suppress(GrassError, Broken), Client(may_start=False) as client:
        allocation: Mapping[str, Mapping[str, float]] = client.job(job)["allocation"]
        if allocation:
            return _capacity(allocation)
    # Nobody can be asked: names are known, and amounts are taken to be whole.
    named = units_of_job(())
    machine = _amounts(found_units([]))
    return {
        kind: {name: machine.get(kind, {}).get(name, WHOLE) for name in names}
        for kind, names in named.items()
    }


def _units_within(capacity: Capacity, rpw: Resource | None) -> Capacity:
    """Return the part of a job's units that `rpw` names."""
    if rpw is None:
        return capacity
    request = counted(rpw)
    return _part(TaskUnits(capacity), request) if request else {}


def _part(units: TaskUnits, request: Request) -> Capacity:
    units.submit([1], units.ask_for(request))
    return units.decide(0.0)[0].allocation


def _named_units(rpw: Resource) -> ProgramUnits:
    """Return the units that `rpw` names: as many as it says, but GPUs are found ones.

    More tasks than cores can be useful. A task on a GPU that is not there only fails.
    """
    capacity = capacity_of(rpw)
    gpus = tuple(one for one in counted(rpw) if one[0] in GPU_KINDS)
    if not gpus:
        return ProgramUnits(capacity, rpw)
    found, problem = _look_for_gpus()
    units = TaskUnits(_amounts(found))
    if not units.can_be_met(TaskRequest(gpus)):
        raise _no_such_gpus(gpus, units.text() if units.capacity else "", problem)
    return ProgramUnits({**capacity, **_part(units, gpus)}, rpw, found=found)


def _no_such_gpus(gpus: Request, there_is: str, problem: str | None) -> NeverFits:
    reason = f": {problem}" if problem and not there_is else ""
    return NeverFits(
        f"`rpw` has {request_text(gpus)}, and this machine has"
        f" {there_is or 'no GPU'}{reason}",
        "name less in `rpw`; for GPUs that are not found, `grass start` a daemon and"
        " declare them by `grass create-queue`",
    )


def _amounts(found: FoundUnits) -> Capacity:
    return {
        kind: {name: unit.amount for name, unit in units.items()}
        for kind, units in found.items()
        if units
    }


def _look_for_gpus() -> tuple[FoundUnits, str | None]:
    """Look at the GPUs that this program is shown, outside of the loop that runs here.

    Returns them, and why GPUs cannot be found, if they cannot.
    """
    from grass.devices.gpu_check import GpuLook, look

    looks: list[GpuLook] = []
    thread = Thread(target=lambda: looks.append(look(os.environ.get(_VISIBLE))))
    thread.start()
    thread.join()
    if not looks:
        return {}, None
    found = found_units(looks[0].units)
    return {kind: found[kind] for kind in GPU_KINDS & found.keys()}, looks[0].problem
