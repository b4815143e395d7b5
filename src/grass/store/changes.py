"""What one transaction writes.

The broker's core collects changes while it applies a batch of calls; a store commits
them as one transaction or not at all. Jobs, attempts, queues and workers are written
whole: the last version in a batch is the one that counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from grass.model.access import Token
from grass.model.jobs.job import Attempt, Common, Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.pools import Pilot, Pool
from grass.model.queue import Queue, View
from grass.model.usage.held_sums import HeldSums
from grass.model.usage.profiles import Profile
from grass.model.worker import Worker


class Event(NamedTuple):
    """One line of the journal."""

    at: int
    actor: str
    kind: str
    job: int | None = None
    attempt: int | None = None
    data: str = "{}"


class StoredEvent(NamedTuple):
    """A line of the journal as it was written; `seq` only ever grows."""

    seq: int
    at: int
    actor: str
    kind: str
    job: int | None
    attempt: int | None
    data: str


class AnsweredCall(NamedTuple):
    """What an idempotency key was answered with."""

    key: str
    actor: str
    first_job: int
    last_job: int
    at: int


class Env(NamedTuple):
    """A stored environment; `body` is a JSON object."""

    id: int
    owner: str
    body: str
    origin: str = ""
    """The worker of the machine that it came from, as specs that name it say."""


def env_origins(specs: Iterable[Spec]) -> dict[int, str]:
    """Return from which machine each environment came that specs name."""
    return {spec.base_env: spec.origin for spec in specs if spec.base_env is not None}


class Removal(NamedTuple):
    """Output of forgotten jobs that a worker is to remove."""

    id: int
    worker: str
    paths: tuple[str, ...]
    bytes: int


class Changes(msgspec.Struct):
    """Everything a batch changed, in no particular order."""

    meta: dict[str, str] = {}
    envs: list[Env] = []
    specs: dict[int, Spec] = {}
    queues: dict[str, Queue] = {}
    removed_queues: list[str] = []
    views: dict[tuple[str, str], View] = {}
    removed_views: list[tuple[str, str]] = []
    workers: dict[str, Worker] = {}
    removed_workers: list[str] = []
    """Forgotten; their views are removed with them."""
    jobs: dict[int, Job] = {}
    before: dict[int, tuple[JobState, Common]] = {}
    """How the store has some of these jobs, so that it need not look.

    What such a job has in common with others is written again only if it has changed.
    """
    attempts: dict[tuple[int, int], Attempt] = {}
    removed_attempts: list[tuple[int, int]] = []
    """Attempts that were decided and taken back before anything was run."""
    events: list[Event] = []
    calls: list[AnsweredCall] = []
    arrivals: list[tuple[int, int]] = []
    """Ranges of ids that are written in slices; their jobs do not exist yet."""
    removed_arrivals: list[int] = []
    arrays: dict[int, int] = {}
    """How many members of an array have failed, by its first job."""
    removed_arrays: list[int] = []
    tokens: dict[str, Token] = {}
    removed_tokens: list[str] = []
    pools: dict[str, Pool] = {}
    removed_pools: list[str] = []
    pilots: dict[str, Pilot] = {}
    """By their marks."""
    removed_pilots: list[str] = []
    profiles: dict[tuple[str, str], Profile] = {}
    """By job type and model of GPU."""
    removed_profiles: list[tuple[str, str]] = []
    removed_jobs: list[int] = []
    """Pruned: jobs leave with their attempts and their events.

    With them go events of workers' connections that are older than all other jobs.
    """

    held_sums: HeldSums = {}
    """What attempts of the removed jobs held, added to what is there."""
    unused_specs: list[int] = []
    unused_envs: list[int] = []
    """What is removed unless jobs or specs in the store still use it."""
    removals: list[Removal] = []
    removed_removals: list[int] = []
    """Removals whose files are gone."""

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        return any(getattr(self, name) for name in self.__struct_fields__)
