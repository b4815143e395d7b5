"""Workers and the units they have."""

import re
from typing import NamedTuple

import msgspec

from grass.errors import UsageError
from grass.model.resources import Capacity

LONGEST_LABEL = 64
_ID = re.compile(r"[0-9a-f]{16}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


class Unit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One unit of a kind, with details of the device."""

    amount: int
    details: dict[str, str | int] = {}


FoundUnits = dict[str, dict[str, Unit]]
"""Kind to unit name to unit, as found on a machine."""


RUNS_TASKS = "a version that runs tasks"
"""The label of workers that run Python functions; no user can write one like it."""


class GpuFault(msgspec.Struct, omit_defaults=True):
    """A fault of a GPU, which takes no job until the fault is over.

    It is over when a check finds that the GPU works and somebody has acknowledged the
    fault; a fault that `passes` needs nobody.
    """

    unit: str
    reason: str
    since: int
    """In microseconds UTC, as all times of the broker."""
    passes: bool = False
    """Whether only an answer is missing, so that the next one ends it."""
    works_since: int | None = None
    """Since when checks find that the GPU works; None: they do not."""
    acknowledged_by: str = ""
    """The actor; empty: nobody."""
    listed: bool = True
    """Whether the worker still lists the GPU."""
    noted: bool = True
    """Whether the journal has its last beginning: one comes and goes too often."""

    @property
    def needs_acknowledgement(self) -> bool:
        """Whether the GPU stays out of use until somebody acknowledges the fault."""
        return not (self.passes or self.acknowledged_by)


class GpuNotice(NamedTuple):
    """A GPU that has failed or works again, for notifications."""

    event: str
    """The kind of the journal's event."""
    worker: str
    """The name."""
    unit: str
    reason: str
    at: int


class Worker(msgspec.Struct):
    """The broker's record of a worker."""

    id: str
    """Random, stored in the worker's home; independent of its name."""
    name: str
    boot: str = ""
    found: FoundUnits = {}
    added: Capacity = {}
    connected: bool = False
    """Whether it has a link to the broker; not stored."""
    drained: dict[str, list[str]] = {}
    """Units on which nothing new starts, by kind."""
    labels: tuple[str, ...] = ()
    """Its labels, for jobs that ask for them."""
    lease_s: float | None = None
    """After this time without the broker its keeper ends attempts; None: never."""
    draining: bool = False
    """Drained as a whole: nothing new starts there."""
    draining_reason: str = ""
    """Why, where no person drained it."""
    address: str | None = None
    """Its address; None: it is part of the broker's own daemon."""
    heard_at: int | None = None
    """When its last message arrived."""
    instance: str = ""
    """Which home it called from: a copied home has the same id."""
    skew_s: float = 0.0
    """How far its wall clock is ahead of the broker's; not stored."""
    enforces: tuple[str, ...] = ()
    """What of a request it can enforce: features of `model.enforcement`."""
    shrinks: bool = False
    """Whether an attempt there can be given less while it runs; not stored."""
    runs_tasks: bool = False
    """Whether it runs Python functions: an older one does not."""
    ends_at: int | None = None
    """When an engine ends it, as it reports; None: no engine does."""
    kept_attempts: tuple[str, ...] = ()
    """Foreign attempts that a person lets run to their end."""
    unable: str = ""
    """Why it cannot start jobs, as last reported, or ""; not stored."""
    gpu_faults: dict[str, GpuFault] = {}
    """By uuid, or by the unit's name where a GPU has none."""

    @property
    def all_labels(self) -> frozenset[str]:
        """Its own labels, and the one that jobs with functions ask for."""
        return frozenset((*self.labels, RUNS_TASKS) if self.runs_tasks else self.labels)

    def found_capacity(self) -> Capacity:
        """Return the found units as plain amounts."""
        return capacity_of(self.found)


def is_worker_id(text: str) -> bool:
    """Return whether this is a worker's id; no worker's name looks like one."""
    return _ID.fullmatch(text) is not None


def check_worker_id(text: str) -> str:
    """Return the id of a worker on another machine if it is valid."""
    if not is_worker_id(text):
        raise UsageError(
            "a worker's id is 16 hexadecimal digits",
            "remove `worker-id` from that machine's state directory",
        )
    return text


def check_worker_name(text: str) -> str:
    """Return a worker's name if it is valid and not an id."""
    if not _LABEL.match(text) or len(text) > LONGEST_LABEL or is_worker_id(text):
        raise UsageError(
            f"`{text}` cannot be the name of a worker",
            f"use letters, digits, `_`, `.` and `-`, at most {LONGEST_LABEL} of them",
        )
    return text


def capacity_of(found: FoundUnits) -> Capacity:
    """Return found units as plain amounts."""
    return {
        kind: {name: unit.amount for name, unit in units.items()}
        for kind, units in found.items()
    }


def gpu_memory(found: FoundUnits) -> dict[str, int]:
    """Return the memory of each GPU, in amounts."""
    return capacity_of(found).get("vram", {})


def check_label(label: str) -> str:
    """Return a worker's label if it is valid."""
    if not _LABEL.match(label) or len(label) > LONGEST_LABEL:
        raise UsageError(
            f"label `{label}` is not allowed", "use letters, digits, `_`, `.` and `-`"
        )
    return label
