"""Learning from attempts: each end, and each note of a worker, is a sample.

Jobs whose memory is looked up are learned from, and those that were given a type. A
sample belongs to the model of the GPUs that the attempt had. Nothing is learned of an
attempt on GPUs of several models.
"""

from msgspec.structs import replace

from grass.broker.core.profiles.prediction import predicted
from grass.broker.core.profiles.profile_memory import ENOUGH_FAILURES, ProfileKey
from grass.broker.core.state import State
from grass.link.messages import Exited, ProfileNoted
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.jobs.endings import OUT_OF_GPU_MEMORY
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.job_types import type_of
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.resources import GPU_KINDS
from grass.model.usage.attempt_usage import ResourceUse
from grass.model.usage.profiles import MeasuredRun, Profile

NEARLY_ALL = 0.9
"""An attempt with this part of a GPU's memory could not have had much more."""


def learns_from(spec: Spec) -> bool:
    """Tell whether jobs of a spec are learned from."""
    return spec.auto_vram or spec.job_type is not None


def ended(
    state: State, job: Job, attempt: Attempt, message: Exited, end: JobState
) -> None:
    """Learn from an attempt that has ended."""
    if not learns_from(state.specs[job.spec]):
        return
    model = model_of(state, attempt)
    if model is None:
        return
    key = type_of(state.specs[job.spec], job), model
    peak = peak_in(attempt, message.peak)
    if message.blamed:
        # It had what it was to have, and another one took of that.
        return
    if message.cause == OUT_OF_GPU_MEMORY and _had_nearly_all(state, attempt):
        # No GPU has enough for it: others of its type, which it tells nothing of, would
        # each get one alone.
        put(state, _counted(state.profiles.of(key[0]).get(key[1]) or Profile(*key)))
    elif message.cause == OUT_OF_GPU_MEMORY:
        peak = max(reserved(attempt), peak or 0)
        ran_s = message.ran_s or 0.0
        sample = MeasuredRun(job.id, state.now_us, peak, ran_s, end="out-of-memory")
        put(state, _counted(state.profiles.with_sample(*key, sample)))
    elif end is JobState.SUCCEEDED and peak is not None:
        _add(state, key, _sample(state, job, attempt, message, peak))
    else:
        _failed(state, key, job, message, peak)


def noted(state: State, job: Job, attempt: Attempt, message: ProfileNoted) -> None:
    """Learn from an attempt that runs, and whose memory does not grow any more."""
    model = model_of(state, attempt)
    if not learns_from(state.specs[job.spec]) or model is None:
        return
    key = type_of(state.specs[job.spec], job), model
    if message.late:
        _give_up(state, key)
        return
    to_peak_s, at = message.to_peak_s, state.now_us
    sample = MeasuredRun(
        job.id, at, message.memory, message.ran_s, to_peak_s, "running"
    )
    _add(state, key, sample)
    state.batch.moved.add(job.id)


def inherit(state: State, job: Job, attempt: Attempt, inner: str) -> bool:
    """Let the profile of a function hold for the job that runs it, if that has none."""
    spec, model = state.specs[job.spec], model_of(state, attempt)
    known = None if model is None else state.profiles.of(inner).get(model)
    if known is None or model is None or not spec.auto_vram:
        return False
    own = state.profiles.of(type_of(spec, job)).get(model)
    if own is not None and predicted(own.samples) is not None:
        # What it was measured to use itself counts more.
        return False
    if predicted(known.samples) is None:
        return False
    put(state, replace(known, job_type=type_of(spec, job), failures=0))
    state.batch.moved.add(job.id)
    return True


def is_known(state: State, job: int, job_type: str) -> bool:
    """Tell whether the memory of a type was measured, on the GPUs that a job has."""
    attempt = state.attempts.get(job)
    model = None if attempt is None else model_of(state, attempt)
    known = None if model is None else state.profiles.of(job_type).get(model)
    return known is not None and predicted(known.samples) is not None


def _give_up(state: State, key: ProfileKey) -> None:
    """Let no job wait any more for an attempt that does not tell what is needed."""
    known = state.profiles.of(key[0]).get(key[1]) or Profile(*key)
    if known.failures < ENOUGH_FAILURES:
        put(state, replace(known, failures=ENOUGH_FAILURES))


def _sample(
    state: State, job: Job, attempt: Attempt, message: Exited, peak: int
) -> MeasuredRun:
    return MeasuredRun(
        job.id,
        state.now_us,
        peak,
        attempt.ran_s or 0.0,
        message.to_peak_s,
        marks=message.marks,
    )


def _failed(
    state: State, key: ProfileKey, job: Job, message: Exited, peak: int | None
) -> None:
    """Learn that a type needs at least what an attempt used that did not succeed."""
    known = state.profiles.of(key[0]).get(key[1]) or Profile(*key)
    noted = [one for one in known.samples if one.job == job.id and one.end == "running"]
    if noted:
        # What it used while its memory did not change was noted: that stays true.
        if peak is not None and peak > noted[0].peak:
            _add(state, key, replace(noted[0], peak=peak))
        return
    if peak:
        ran_s = message.ran_s or 0.0
        sample = MeasuredRun(job.id, state.now_us, peak, ran_s, end="failed")
        known = state.profiles.with_sample(*key, sample)
    put(state, _counted(known))


def _counted(profile: Profile) -> Profile:
    """Count an attempt that did not tell what the type needs."""
    return replace(profile, failures=profile.failures + 1)


def _add(state: State, key: ProfileKey, sample: MeasuredRun) -> None:
    """Keep a sample that tells what the type needs."""
    put(state, replace(state.profiles.with_sample(*key, sample), failures=0))


def put(state: State, profile: Profile) -> None:
    """Replace what is known of a type on one model."""
    state.profiles.put(profile)
    state.batch.changes.profiles[profile.job_type, profile.model] = profile
    publish(state, profile.job_type)


def forget(state: State, job_type: str) -> None:
    """Forget what is known of a type."""
    for key in state.profiles.remove(job_type):
        state.batch.changes.profiles.pop(key, None)
        state.batch.changes.removed_profiles.append(key)
    publish(state, job_type)


def publish(state: State, job_type: str) -> None:
    """Tell the scheduler what jobs of a type are given."""
    state.scheduler.set_profile(job_type, state.profiles.amounts(job_type))


def model_of(state: State, attempt: Attempt) -> str | None:
    """Return the model of an attempt's GPUs; None: it has none, or several."""
    worker = state.workers.get(attempt.worker)
    found = {} if worker is None else worker.found.get("gpu", {})
    details = [found[unit].details if unit in found else {} for unit in _gpus(attempt)]
    models = {str(one.get("name", "")) for one in details}
    return models.pop() if len(models) == 1 else None


def peak_in(attempt: Attempt, peak: ResourceUse | None) -> int | None:
    """Return the most that was used of one of an attempt's GPUs, if that is known."""
    uses = {} if peak is None else peak.gpus
    found = [uses[unit].memory for unit in _gpus(attempt) if unit in uses]
    return max((memory for memory in found if memory is not None), default=None)


def reserved(attempt: Attempt) -> int:
    """Return the least memory that an attempt has reserved of one of its GPUs."""
    amounts = attempt.allocation.get("vram", {}).values()
    return min(amounts, default=0) * GIB // WHOLE


def _had_nearly_all(state: State, attempt: Attempt) -> bool:
    """Tell whether an attempt had its GPUs' memory, but for a few small strangers."""
    worker = state.workers.get(attempt.worker)
    found = {} if worker is None else worker.found.get("vram", {})
    held = attempt.allocation.get("vram", {})
    sizes = {unit: found[unit].amount for unit in held if unit in found}
    return bool(sizes) and all(
        held[unit] >= NEARLY_ALL * size for unit, size in sizes.items()
    )


def _gpus(attempt: Attempt) -> list[str]:
    kinds = (attempt.allocation.get(kind, {}) for kind in sorted(GPU_KINDS))
    return list(dict.fromkeys(unit for units in kinds for unit in units))
