"""Profiles as JSON documents: what is known, and what follows from it."""

from grass.broker.core.profiles.prediction import Prediction, size
from grass.broker.core.profiles.profile_memory import Profiles, reasoned
from grass.broker.core.state import State
from grass.model.jobs.job import Job
from grass.model.jobs.job_types import type_of
from grass.model.jobs.spec import Spec
from grass.model.times import rfc3339
from grass.model.usage.profiles import Profile
from grass.queries.documents import JsonObject


def profile_documents(profiles: Profiles, job_type: str | None) -> list[JsonObject]:
    """Return all profiles, or those of one type with their samples."""
    if job_type is None:
        return [_document(one) for one in profiles]
    found = sorted(profiles.of(job_type).items())
    return [{**_document(one), "samples": _samples(one)} for _, one in found]


def learned_lines(state: State, spec: Spec, job: Job) -> list[str]:
    """Say what a job whose memory is looked up is given, on each model of GPU."""
    if not spec.auto_vram:
        return []
    known = state.profiles.of(type_of(spec, job))
    if not known:
        return ["nothing is known yet: the first of its type is measured, alone"]
    return [_line(one) for _, one in sorted(known.items())]


def _line(profile: Profile) -> str:
    found = reasoned(profile)
    where = f"{profile.model}: " if profile.model else ""
    if isinstance(found, Prediction):
        return f"{where}{size(found.memory)} ({found.why})"
    return f"{where}{found}"


def _document(profile: Profile) -> JsonObject:
    """Return one profile; `memory` is None where the next attempt gets a whole GPU."""
    found = reasoned(profile)
    known = isinstance(found, Prediction)
    last = profile.samples[-1] if profile.samples else None
    seen = [one.peak for one in profile.samples if one.end != "out-of-memory"]
    return {
        "job_type": profile.job_type,
        "model": profile.model,
        "memory": found.memory if isinstance(found, Prediction) else None,
        "peak": max(seen, default=None),
        "grows": isinstance(found, Prediction) and found.grows,
        "provisional": known and all(one.end == "running" for one in profile.samples),
        "runs": profile.runs,
        "failures": profile.failures,
        "last_job": None if last is None else last.job,
        "last_at": None if last is None else rfc3339(last.at),
        "why": found.why if isinstance(found, Prediction) else found,
    }


def _samples(profile: Profile) -> list[JsonObject]:
    return [
        {
            "job": one.job,
            "at": rfc3339(one.at),
            "peak": one.peak,
            "ran_s": one.ran_s,
            "to_peak_s": one.to_peak_s,
            "end": one.end,
        }
        for one in profile.samples
    ]
