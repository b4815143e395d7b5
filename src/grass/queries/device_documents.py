"""The GPUs of all workers: their memory in four parts, and who is on them.

The worker tells what is used now and by whom, the broker what jobs have reserved. The
parts of a GPU's memory are what jobs use, what they have reserved and do not use yet,
what others use, and what is left of it.
"""

from collections.abc import Mapping

from grass.broker.core.state import State
from grass.broker.core.workers import gpu_faults
from grass.broker.shell.service import Broker
from grass.errors import GrassError, ProtocolError
from grass.model.amounts import bytes_of_amount, decimal_number
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt
from grass.model.resources import unit_order
from grass.model.usage.gpu_use import GpuUse, GpuUser
from grass.model.worker import Worker
from grass.queries.cluster_documents import fault_document
from grass.queries.constraints import absence
from grass.queries.documents import JsonObject

Reserved = Mapping[int, int]
"""What each job has reserved of a GPU's memory, in bytes."""


async def device_document(broker: Broker, worker: Worker) -> JsonObject:
    """Ask one worker for its GPUs; where it does not answer the document says why."""
    found = worker.found.get("gpu", {})
    problem, uses = None, list[GpuUse]()
    if found and not worker.connected:
        problem = absence(broker.state, worker)
    elif found:
        try:
            uses = await broker.requests.devices.read(worker.id)
        except GrassError as error:
            problem = error.message
    return _document(broker, worker, uses, problem)


def unanswered_document(broker: Broker, worker: Worker) -> JsonObject:
    """Return what is known of a worker's GPUs before it has answered."""
    return _document(broker, worker, [], "the worker has not answered yet")


def _document(
    broker: Broker, worker: Worker, uses: list[GpuUse], problem: str | None
) -> JsonObject:
    read, gpus = {use.unit for use in uses}, worker.found.get("gpu", {})
    # The worker may not list one with a fault any more.
    faulty = [fault.unit for fault in worker.gpu_faults.values()]
    unread = [unit for unit in (faulty if uses else gpus) if unit not in read]
    uses = uses + [_unread(worker, unit) for unit in unread if unit in gpus]
    known = read if problem is None else set[str]()
    return {
        "id": worker.id,
        "name": worker.name,
        "connected": worker.connected,
        "problem": problem,
        "stale": False,
        "gpus": [
            _gpu_document(use, worker, broker.state, known=use.unit in known)
            for use in sorted(uses, key=lambda use: unit_order(use.unit))
        ],
    }


def _unread(worker: Worker, unit: str) -> GpuUse:
    """Return what is known of a GPU without asking."""
    details = worker.found["gpu"][unit].details
    vram = worker.found.get("vram", {}).get(unit)
    memory = 0 if vram is None else bytes_of_amount(vram.amount)
    name, uuid = details.get("name", ""), details.get("uuid", "")
    return GpuUse(unit, str(name), str(uuid), memory)


def _gpu_document(
    use: GpuUse, worker: Worker, state: State, *, known: bool
) -> JsonObject:
    holders = _holders(use.unit, worker, state)
    reserved = {one.job: _vram(one, use.unit) for one in holders}
    used = _used(use, reserved)
    fault = gpu_faults.of_unit(worker, use.unit)
    memory = _parts(use, reserved, used, known=known)
    if fault is not None:
        memory["free"] = 0
    return {
        "unit": use.unit,
        "name": use.name,
        "uuid": use.uuid,
        "memory": memory,
        "utilization": use.utilization,
        "temperature": use.temperature,
        "power_w": use.power_w,
        "power_limit_w": use.power_limit_w,
        "fault": None if fault is None else fault_document(worker, fault),
        "drained": use.unit in worker.drained.get("gpu", ()),
        "pids_hidden": use.pids_hidden,
        "jobs": [_job_document(one, state, use.unit, used) for one in holders],
        "processes": [_process_document(one, reserved) for one in use.users],
    }


def _holders(unit: str, worker: Worker, state: State) -> list[Attempt]:
    """Return the attempts that hold something of a GPU, by job."""
    held = [
        one
        for one in state.attempts_on(worker.id)
        if one.after is None
        and (unit in one.allocation.get("gpu", ()) or _vram(one, unit))
    ]
    return sorted(held, key=lambda one: one.job)


def _vram(attempt: Attempt, unit: str) -> int:
    return bytes_of_amount(attempt.allocation.get("vram", {}).get(unit, 0))


def _used(use: GpuUse, reserved: Reserved) -> dict[int, int]:
    """Return what each job uses of a GPU; a job that is not there uses nothing."""
    used = dict[int, int]()
    for attempt, amount in use.attempts.items():
        job = _job_of(attempt)
        if job in reserved:
            used[job] = used.get(job, 0) + amount
    return used


def _job_of(attempt: str) -> int:
    """Return the job of an attempt; 0, which no job has, for what is none."""
    try:
        return attempt_id(attempt).job
    except ProtocolError:
        return 0


def _parts(
    use: GpuUse, reserved: Reserved, used: dict[int, int], *, known: bool
) -> JsonObject:
    """Divide the memory; without an answer only what is reserved is known."""
    unused = sum(max(0, size - used.get(job, 0)) for job, size in reserved.items())
    jobs = sum(used.values())
    strangers = max(0, use.used - jobs)
    left = max(0, use.memory - jobs - strangers)
    # A whole GPU is reserved with whatever strangers use of it.
    unused = min(unused, left)
    return {
        "total": use.memory,
        "jobs": jobs if known else None,
        "reserved": unused,
        "strangers": strangers if known else None,
        "free": left - unused if known else None,
    }


def _job_document(
    attempt: Attempt, state: State, unit: str, used: dict[int, int]
) -> JsonObject:
    job = state.jobs.get(attempt.job)
    return {
        "job": attempt.job,
        "name": "" if job is None else job.name,
        "owner": "" if job is None else job.owner,
        "gpu": decimal_number(attempt.allocation.get("gpu", {}).get(unit, 0)),
        "reserved": _vram(attempt, unit),
        "used": used.get(attempt.job, 0),
    }


def _process_document(user: GpuUser, reserved: Reserved) -> JsonObject:
    job = _job_of(user.attempt)
    return {
        "pid": user.pid,
        "job": job if job in reserved else None,
        "memory": user.memory,
        "utilization": user.utilization,
        "user": user.user,
        "command": user.command,
    }
