"""What jobs asked for, were given and use, side by side.

What is used now is known to the workers alone, and is read from them; the most that an
attempt used is stored with its end.
"""

from collections.abc import Iterable

from grass.broker.shell.service import Broker
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.resources import Allocation, Request
from grass.model.usage.attempt_usage import AttemptUsage, ResourceUse, UnitUse
from grass.queries.documents import JsonObject
from grass.queries.listing import is_ahead, last_attempt
from grass.store.interface import JobDetails

MEMORY, CPU = "memory", "cpu"
GPU_MEMORY, GPU_UTILIZATION = "gpu memory", "gpu utilization"


async def usage_now(
    broker: Broker, found: Iterable[JobDetails]
) -> dict[int, AttemptUsage]:
    """Return what running jobs use now, as far as their workers tell, by job."""
    asked: dict[str, dict[str, int]] = {}
    for details in found:
        last = last_attempt(details)
        if last is None or details.job.state is not JobState.RUNNING:
            continue
        if last.state is AttemptState.RUNNING and not is_ahead(details.job, last):
            name = broker.state.attempt_id(last)
            asked.setdefault(last.worker, {})[name] = details.job.id
    known: dict[int, AttemptUsage] = {}
    for worker, jobs in asked.items():
        uses = await broker.requests.usage.read(worker, list(jobs))
        known.update({jobs[name]: use for name, use in uses.items() if name in jobs})
    return known


def usage_fields(details: JobDetails, usage: AttemptUsage | None) -> JsonObject:
    """Return what a document tells of a job's usage."""
    last = last_attempt(details)
    if last is None or is_ahead(details.job, last):
        return {"usage": [], "usage_note": ""}
    return {
        "usage": usage_rows(details.spec.request, last, usage),
        "usage_note": note_of(last, usage),
    }


def usage_rows(
    request: Request, attempt: Attempt, usage: AttemptUsage | None
) -> list[JsonObject]:
    """Return a row for each thing that is measured: asked, given, used now and peak.

    Sizes are bytes, `cpu` is in cores and utilization in percent of one GPU.
    """
    now = usage.now if usage is not None else None
    peak = peak_of(attempt, usage)
    asked, given = dict(request), attempt.allocation
    memory = _bytes(asked.get("ram")), _bytes(_sum(given, "ram"))
    cores = _whole(asked.get("cpu")), _whole(_sum(given, "cpu"))
    rows = [
        _row(MEMORY, None, memory, (_memory(now), _memory(peak))),
        _row(CPU, None, cores, (_cores(now), _cores(peak))),
    ]
    units = {*given.get("gpu", ()), *given.get("vram", ()), *_gpus(now), *_gpus(peak)}
    for unit in sorted(units):
        rows += _gpu_rows(unit, asked, given, _gpus(now), _gpus(peak))
    return rows


def peak_of(attempt: Attempt, usage: AttemptUsage | None) -> ResourceUse | None:
    """Return the most that an attempt used; its keeper knows of memory in any case."""
    peak = attempt.peak if usage is None or usage.peak is None else usage.peak
    if attempt.max_rss is None:
        return peak
    if peak is None:
        return ResourceUse(attempt.max_rss)
    memory = max(peak.memory, attempt.max_rss)
    return ResourceUse(memory, peak.cpu, peak.gpus, peak.note)


def note_of(attempt: Attempt, usage: AttemptUsage | None) -> str:
    """Return how it was measured, where that is worth a word."""
    if usage is not None and usage.now is not None:
        return usage.now.note
    return attempt.peak.note if attempt.peak is not None else ""


def use_json(use: ResourceUse | None) -> JsonObject | None:
    """Return a measurement as a document."""
    if use is None:
        return None
    return {
        "memory": use.memory,
        "cpu": use.cpu,
        "gpus": {
            unit: {"memory": one.memory, "utilization": one.utilization}
            for unit, one in use.gpus.items()
        },
    }


def _gpu_rows(
    unit: str,
    asked: dict[str, int],
    given: Allocation,
    now: dict[str, UnitUse],
    peak: dict[str, UnitUse],
) -> list[JsonObject]:
    nothing = UnitUse()
    used, most = now.get(unit, nothing), peak.get(unit, nothing)
    share, memory = given.get("gpu", {}).get(unit), given.get("vram", {}).get(unit)
    return [
        _row(
            GPU_MEMORY,
            unit,
            (_bytes(_part(asked, given, "vram", unit)), _bytes(memory)),
            (used.memory, most.memory),
        ),
        _row(
            GPU_UTILIZATION,
            unit,
            (_percent(_part(asked, given, "gpu", unit)), _percent(share)),
            (used.utilization, most.utilization),
        ),
    ]


def _part(asked: dict[str, int], given: Allocation, kind: str, unit: str) -> int | None:
    """Return the part of a request that is met by one unit."""
    units = given.get(kind, {})
    if kind not in asked or unit not in units:
        return None
    return asked[kind] * units[unit] // sum(units.values())


def _row(
    what: str,
    unit: str | None,
    wanted: tuple[float | None, float | None],
    used: tuple[float | None, float | None],
) -> JsonObject:
    return {
        "what": what,
        "unit": unit,
        "asked": wanted[0],
        "given": wanted[1],
        "now": used[0],
        "peak": used[1],
    }


def _memory(use: ResourceUse | None) -> int | None:
    return None if use is None else use.memory


def _cores(use: ResourceUse | None) -> float | None:
    return None if use is None else use.cpu


def _gpus(use: ResourceUse | None) -> dict[str, UnitUse]:
    return {} if use is None else use.gpus


def _sum(allocation: Allocation, kind: str) -> int | None:
    units = allocation.get(kind)
    return sum(units.values()) if units else None


def _bytes(amount: int | None) -> int | None:
    return None if amount is None else amount * GIB // WHOLE


def _whole(amount: int | None) -> float | None:
    return None if amount is None else amount / WHOLE


def _percent(amount: int | None) -> float | None:
    return None if amount is None else 100 * amount / WHOLE
