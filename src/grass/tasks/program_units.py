"""Whose units the tasks of a program have.

Inside a job they are that job's. Where a daemon runs, the program becomes a guest,
with what `rpw` names or the cores and memory that are free now. Without a daemon they
are what `rpw` names, or the machine's. A GPU is looked for when the first task asks for
one, and only where the machine is all the program's.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from threading import Thread

from grass.client.client import Client
from grass.client.connection import Broken, open_connection
from grass.config import LOCAL, home
from grass.devices.probe import found_units
from grass.errors import GrassError
from grass.model.amount_text import WHOLE
from grass.model.amounts import capacity_amount, decimal_number
from grass.model.gpu_details import visible_devices
from grass.model.resources import request_text
from grass.profiles.allocation import allocate
from grass.profiles.process_state import state
from grass.profiles.surrounding_job import units_of_job
from grass.resource import ZERO, Resource, WTime, capacity_of, combined, counted
from grass.resource import own_parts as own_parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grass.model.resources import Capacity
    from grass.model.worker import FoundUnits

_VISIBLE = "CUDA_VISIBLE_DEVICES"


class ProgramUnits:
    """The units that a program's tasks have."""

    def __init__(
        self,
        capacity: Capacity,
        rpw: Resource | None = None,
        *,
        may_look_for_gpus: bool = False,
    ) -> None:
        own = own_parts_of(rpw or ZERO)
        limit = own.pop("WTime", None)
        self.time = limit if isinstance(limit, WTime) else None
        """How much time is left, where that is limited."""
        self.own = combined(own)
        """Resources of the user's own classes."""
        self.capacity = capacity
        self._may_look = may_look_for_gpus
        self._found: FoundUnits = {}
        # A guest or job was given its GPUs in this order.
        shown = os.environ.get(_VISIBLE, "").split(",")
        names = list(capacity.get("gpu") or capacity.get("vram") or ())
        self._shown = dict(zip(names, shown, strict=False)) if shown != [""] else {}

    def found_gpus(self) -> Capacity:
        """Return the GPUs of the machine, if they were not looked for before."""
        if not self._may_look:
            return {}
        self._may_look = False
        self._found = _look_for_gpus()
        return _amounts({kind: self._found.get(kind, {}) for kind in ("gpu", "vram")})

    def variables(self, gpus: Sequence[str]) -> dict[str, str]:
        """Return the variables of a process that sees these GPUs."""
        if self._shown:
            seen = ",".join(self._shown.get(name, name) for name in gpus)
        else:
            seen = visible_devices(self._found.get("gpu", {}), gpus)
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", _VISIBLE: seen}


@contextmanager
def open_program(rpw: Resource | None) -> Iterator[ProgramUnits]:
    """Hold the units of a program while a block runs; it may wait for them."""
    job = state.outer_job
    if job is not None:
        yield ProgramUnits(_units_within(_units_of(job), rpw), rpw)
    elif _has_daemon():
        with _guest(rpw) as capacity:
            yield ProgramUnits(capacity, rpw)
    elif rpw is not None:
        yield ProgramUnits(capacity_of(rpw), rpw)
    else:
        yield ProgramUnits(_amounts(found_units([])), may_look_for_gpus=True)


def _has_daemon() -> bool:
    connection = open_connection(home().socket)
    if connection is not None:
        connection.close()
    return connection is not None


@contextmanager
def _guest(rpw: Resource | None) -> Iterator[Capacity]:
    """Hold units as a guest of the daemon, and say which."""
    asked = counted(rpw) if rpw is not None else _free_now()
    if not asked:
        yield {}
        return
    require = {kind: decimal_number(amount) for kind, amount in asked}
    with allocate(require=require) as held:
        capacity = {
            kind: {name: capacity_amount(has, kind) for name, has in units.items()}
            for kind, units in held.amounts.items()
        }
        if rpw is None:
            sys.stderr.write(f"grass: tasks have {request_text(asked)}\n")
        yield capacity


def _free_now() -> tuple[tuple[str, int], ...]:
    """Return the cores and memory that are free on this machine; one core at least."""
    with open(home().worker_id, encoding="utf-8") as file:
        own = file.read().strip()
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
            return {
                kind: {name: capacity_amount(has, kind) for name, has in units.items()}
                for kind, units in allocation.items()
            }
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
    from grass.tasks.core.task_units import TaskUnits

    units = TaskUnits(capacity)
    units.submit([1], units.ask_for(counted(rpw)))
    return units.decide(0.0)[0].allocation if counted(rpw) else {}


def _amounts(found: FoundUnits) -> Capacity:
    return {
        kind: {name: unit.amount for name, unit in units.items()}
        for kind, units in found.items()
        if units
    }


def _look_for_gpus() -> FoundUnits:
    """Look at the GPUs of this machine, outside of the loop that runs here."""
    from grass.devices.gpu_check import look

    found: list[FoundUnits] = []
    thread = Thread(target=lambda: found.append(found_units(look().units)))
    thread.start()
    thread.join()
    return found[0] if found else {}
