"""Values for tests, complete and unremarkable unless told otherwise."""

from collections.abc import Iterable
from typing import Any

from grass.model import selectors
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import Attempt, Common, Job, JobWithParams
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.pools import Pool
from grass.model.resources import capacity_from
from grass.model.selectors import Selection, combine
from grass.model.worker import FoundUnits, Unit

BOOT = "boot-1"
WORKER = "worker-1"


def a_spec(**fields: Any) -> Spec:
    """Ask for one core."""
    return Spec(**{"request": (("cpu", WHOLE),), **fields})


def a_job(number: int = 1, **fields: Any) -> Job:
    """Give a queued job that runs `true`."""
    standard: dict[str, Any] = {
        "spec": 1,
        "words": ("true",),
        "shell": False,
        "name": "true",
        "project": "default",
        "owner": "uid:1000",
        "queue": "default",
        "priority": 0,
        "state": JobState.QUEUED,
        "created_at": 1_000_000 + number,
    }
    given = {**standard, **fields}
    names = Common.__struct_fields__
    common = Common(**{name: given.pop(name) for name in names if name in given})
    kind = JobWithParams if "params" in given else Job
    return kind(number, common, **given)


def a_selection(words: str, *, union: bool = False) -> Selection:
    """Return the jobs that selectors mean."""
    return combine(map(selectors.read, words.split()), union=union)


def an_attempt(job: int = 1, number: int = 1, **fields: Any) -> Attempt:
    """Give an attempt that holds one core and has not started yet."""
    standard: dict[str, Any] = {
        "worker": WORKER,
        "boot": BOOT,
        "state": AttemptState.STARTING,
        "allocation": {"cpu": {"0": WHOLE}},
        "started_at": 2_000_000,
    }
    return Attempt(job, number, **{**standard, **fields})


def a_pool(name: str = "uni", **fields: Any) -> Pool:
    """Give a pool of up to three workers."""
    standard: dict[str, Any] = {
        "engine": "slurm",
        "created_at": 1,
        "created_by": "uid:1",
        "max_workers": 3,
        "idle_s": 30,
        "time_limit_s": 3600,
    }
    return Pool(name=name, **{**standard, **fields})


def units(text: str) -> FoundUnits:
    """Give units as a machine finds them, from a capacity as people write it."""
    return {
        kind: {name: Unit(amount) for name, amount in found.items()}
        for kind, found in capacity_from(text).items()
    }


def typed(messages: Iterable[object]) -> list[tuple[type, object]]:
    """Pair messages of the keeper's protocol with their types, to compare both.

    Named tuples alone are equal if their values are: a suspend equals a continue.
    """
    return [(type(message), message) for message in messages]
