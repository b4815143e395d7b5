"""Why an attempt died, where its exit alone does not tell."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from grass.devices.readings import GpuReading
from grass.keeper.exit_reasons import MEMORY_LIMIT
from grass.keeper.protocol import ExitEntry, StateEntry
from grass.model.amount_text import size_text
from grass.model.amounts import bytes_of_amount
from grass.model.ids import attempt_id
from grass.model.jobs.endings import GPU_FAULT, OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY
from grass.model.resources import Allocation
from grass.model.usage.attempt_usage import ResourceUse
from grass.worker.core.usage.gpu_attribution import KINDS
from grass.worker.core.usage.overruns import STOPPED, Overrun, reserved_of

SIGKILL = 9
KILLED_CODE = 128 + SIGKILL
OUT_OF_MEMORY = "the machine ran out of memory, and the kernel killed it"


class Cause(NamedTuple):
    """Why an attempt failed: a word that a broker acts on, and a line for people."""

    word: str = ""
    reason: str | None = None
    blamed: str = ""
    """The attempt whose fault it is, where it is not the one that died."""


NO_CAUSE = Cause()


class Evidence(NamedTuple):
    """What a worker knows when an attempt ends."""

    gpus: tuple[GpuReading, ...] = ()
    out_of_memory: bool = False
    """Whether the kernel has killed a process for want of memory just now."""
    no_gpu_memory: bool = False
    """Whether the attempt's output says that a GPU had no memory left."""
    peak: ResourceUse | None = None
    overruns: Iterable[Overrun] = ()
    fault_of: frozenset[str] = frozenset()
    """Attempts of which one caused the fault on a GPU that it died of."""


def is_unexplained(entry: ExitEntry | StateEntry) -> bool:
    """Tell whether an attempt failed for no reason that is known already."""
    return entry.reason is None and not entry.lost and entry.code != 0


def may_be_killed(entry: ExitEntry) -> bool:
    """Tell whether a SIGKILL may have ended an attempt, or a program in it."""
    return entry.signal == SIGKILL or entry.code == KILLED_CODE


def cause_of(entry: ExitEntry, allocation: Allocation, known: Evidence) -> Cause:
    """Return the cause of a failure that has none: no memory left, or a faulty GPU."""
    if (entry.reason or "").startswith(STOPPED):
        return Cause(OUT_OF_GPU_MEMORY, entry.reason)
    if entry.reason == MEMORY_LIMIT:
        return Cause(OUT_OF_HOST_MEMORY, _at_memory_limit(entry, allocation, known))
    if not is_unexplained(entry):
        return NO_CAUSE
    # The kernel does not say which process it killed, so only a SIGKILL counts that
    # grass did not send.
    if known.out_of_memory and may_be_killed(entry):
        return Cause(OUT_OF_HOST_MEMORY, OUT_OF_MEMORY)
    return _of_gpus(entry, allocation, known)


def _at_memory_limit(entry: ExitEntry, allocation: Allocation, known: Evidence) -> str:
    asked = bytes_of_amount(sum(allocation.get("ram", {}).values()))
    # A short life may have ended before it was sampled.
    sampled = known.peak and known.peak.memory
    counted = entry.rusage and entry.rusage.max_rss
    facts = {"asked": asked, "peak": max(sampled or 0, counted or 0)}
    return f"out of memory ({_facts(facts)})"


def _of_gpus(entry: ExitEntry, allocation: Allocation, known: Evidence) -> Cause:
    held = {unit for kind in KINDS for unit in allocation.get(kind, ())}
    for gpu in known.gpus:
        if gpu.fault is not None and gpu.unit in held:
            return Cause(reason=f"gpu {gpu.unit}: {gpu.fault}")
    if known.fault_of:
        return _fault(entry.id, known.fault_of)
    if known.no_gpu_memory:
        return _no_gpu_memory(entry.id, allocation, held, known)
    return NO_CAUSE


def _fault(name: str, suspects: frozenset[str]) -> Cause:
    *others, last = sorted({attempt_id(one).job for one in suspects})
    if not others and suspects == {name}:
        return Cause(GPU_FAULT, "GPU fault: the end of its output says more")
    listed = f"{', '.join(map(str, others))} or {last}" if others else str(last)
    return Cause(GPU_FAULT, f"GPU fault of job {listed}")


def _no_gpu_memory(
    name: str, allocation: Allocation, held: set[str], known: Evidence
) -> Cause:
    others = [one for one in known.overruns if one.unit in held]
    culprit = max(
        (one for one in others if one.attempt != name),
        key=lambda one: one.used - one.reserved,
        default=None,
    )
    if culprit is None or any(one.attempt == name for one in others):
        facts = _asked_and_peak(allocation, known.peak)
        told = f" ({facts})" if facts else ""
        return Cause(OUT_OF_GPU_MEMORY, f"out of GPU memory{told}")
    job = attempt_id(culprit.attempt).job
    used, asked = size_text(culprit.used), size_text(culprit.reserved)
    text = f"out of GPU memory: job {job} on gpu {culprit.unit} used {used} of {asked}"
    return Cause(OUT_OF_GPU_MEMORY, text, culprit.attempt)


def _asked_and_peak(allocation: Allocation, peak: ResourceUse | None) -> str:
    """Write what was reserved of a GPU and the most that was used of it."""
    used = _memory(peak)
    units = {**allocation.get("vram", {}), **used}
    unit = max(units, key=lambda one: used.get(one, 0), default="")
    asked = reserved_of(unit, allocation)
    return _facts({"asked": asked, "peak": used.get(unit)})


def _facts(sizes: Mapping[str, int | None]) -> str:
    known = ((what, size) for what, size in sizes.items() if size)
    return ", ".join(f"{what} {size_text(size)}" for what, size in known)


def _memory(peak: ResourceUse | None) -> Mapping[str, int]:
    gpus = {} if peak is None else peak.gpus
    return {unit: one.memory for unit, one in gpus.items() if one.memory is not None}


JUST_ENDED_S = 10.0
"""A client that failed this long before a fault was heard of may have caused it."""


class GpuFaults:
    """The last fault of each GPU that is shared by MPS.

    All clients of a server die of a fault with the same error. None of them is known to
    have caused it: the log of MPS and the kernel's Xid name a client, but on a real GPU
    not that one, and they end in any order. So every client of that time is suspected.
    """

    def __init__(self) -> None:
        self._suspects: dict[str, frozenset[str]] = {}
        self._failed: dict[str, dict[str, float]] = {}
        """By GPU: clients that failed lately, and when."""

    def failed(self, unit: str, attempt: str, now_s: float) -> None:
        """Note that a client failed, for whatever reason."""
        self._failed[unit] = {**self._lately(unit, now_s), attempt: now_s}

    def suspects(
        self, unit: str, attempt: str, others: Iterable[str], since_s: float
    ) -> frozenset[str]:
        """Return who may have caused the fault of which an attempt died.

        One that failed before `since_s` had no server in common with it.
        """
        # A client that was idle hears of a fault when it next calls CUDA.
        if attempt not in self._suspects.get(unit, ()):
            failed = self._failed.get(unit, {})
            lately = (one for one, at in failed.items() if at >= since_s)
            self._suspects[unit] = frozenset({attempt, *others, *lately})
        return self._suspects[unit]

    def _lately(self, unit: str, now_s: float) -> dict[str, float]:
        known = self._failed.get(unit, {})
        return {one: at for one, at in known.items() if now_s - at <= JUST_ENDED_S}
