"""Pools and pilots: workers that somebody else's scheduler starts for us."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from grass.errors import UsageError
from grass.model.amount_text import WHOLE
from grass.model.command_templates import CommandTemplate
from grass.model.durations import SHORTEST_LEASE_S, duration_text
from grass.model.resources import Capacity

_LABEL = "pool-"
_FOUND_BY = ("--job-name", "--comment")
"""Options of `sbatch` by which the broker finds its pilots again."""
_NOT_OF_A_SITE = (*_FOUND_BY, "--array", "--cluster", "--clusters", "-J", "-a", "-M")


def pool_label(name: str) -> str:
    """Return the label of a pool's workers, which jobs of the pool ask for."""
    return _LABEL + name


def pools_of(labels: Iterable[str]) -> list[str]:
    """Return the pools whose workers have one of these labels."""
    return [one.removeprefix(_LABEL) for one in labels if one.startswith(_LABEL)]


def lacking_text(labels: Sequence[str]) -> str:
    """Say of a worker that it has none of these labels."""
    plain = [f"`{one}`" for one in labels if not one.startswith(_LABEL)]
    parts = [f"is not of pool `{name}`" for name in pools_of(labels)]
    parts += [f"does not have {', '.join(plain)}"] if plain else []
    return " and ".join(parts)


MOST_WORKERS = 10_000
SHORTEST_TIME_S = 60.0
"""A worker takes seconds to start, and Slurm counts in minutes."""
MARK_DIGITS = 24
"""How long the mark of a pilot is, in hexadecimal digits."""


class PilotState(StrEnum):
    """What an engine says of a pilot's job; the worker's connection is the truth."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    """It ended, in whatever way; nothing of it is coming any more."""
    ABSENT = "absent"
    """The engine answered, and lists no such job: it forgot it, or never had it.

    A worker that is connected may still be in it.
    """
    UNKNOWN = "unknown"
    """The engine gave a word that we do not know, or contradicts itself."""


class PilotStage(StrEnum):
    """How far a pilot has come, as far as the broker knows."""

    ASKED = "asked"
    """Its row is written. Whether the engine has it is not known yet."""
    SUBMITTED = "submitted"
    """The engine has it; no worker has come of it."""
    WORKING = "working"
    """Its worker has come."""
    LEAVING = "leaving"
    """It gets no job any more, and the engine is asked to end it."""


class PilotReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says of one pilot."""

    mark: str
    state: PilotState
    engine_id: str = ""
    """The job's id in the engine; "": it lists none."""
    word: str = ""
    """The state in the engine's own word."""
    reason: str = ""
    """Why it waits or has ended, in the engine's words."""
    place: str = ""
    """The partition and the hosts that it names."""
    expected_start: str = ""
    """When the engine expects to start it, as the engine writes it."""


class PoolMode(StrEnum):
    """For which jobs a pilot is asked for."""

    SHARED = "shared"
    """For one job after the other, until it is idle or out of time."""
    PER_JOB = "per-job"
    """For one job alone, with what that asks for."""
    AUTO = "auto"
    """By the time that a job may take."""


class PoolEnvironment(StrEnum):
    """Whose variables the jobs of a pool have, beside those that they name."""

    CALLER = "caller"
    """Those of who enqueued them, as on the broker's own machine."""
    SITE = "site"
    """Those that the engine gives the worker."""


class PilotSize(msgspec.Struct, frozen=True):
    """What an engine is asked for where that is not what the pool declares."""

    cpus: int
    gpus: int
    memory_mib: int | None
    time_limit_s: float


class PoolOptions(msgspec.Struct, kw_only=True):
    """A pool as its user declares it: the body of a request, and part of a pool."""

    name: str
    engine: str
    max_workers: int
    idle_s: float
    """A worker that had no job for this long leaves."""
    time_limit_s: float
    """How long the engine lets a pilot run."""
    lease_s: float = 60.0
    """A worker that has not heard its broker for this long ends its jobs."""
    mode: PoolMode = PoolMode.AUTO
    environment: PoolEnvironment | None = None
    """Whose variables jobs have; None: that follows from where workers run."""
    cpus: int = 1
    gpus: int = 0
    memory_mib: int | None = None
    """None: as much as the site gives by default."""
    options: tuple[str, ...] = ()
    """The site's own options of a submit: `--partition=gpu`."""
    setup: tuple[str, ...] = ()
    """Shell lines before the worker is started."""
    omitted: tuple[str, ...] = ()
    """Options that the site refuses."""
    submit_prefix: tuple[str, ...] = ()
    """What the engine's programs are run with: `ssh login1`."""
    worker_prefix: tuple[str, ...] = ()
    """What the worker is run with: `apptainer exec --nv torch.sif`."""
    python: str = ""
    """The Python with Grass where workers run; "": the broker's own."""
    address: str = ""
    """Of the dashboard of the engine `ray`."""
    token_file: str = ""
    """A file on the broker's host with the token that the engine `ray` asks for."""
    template: CommandTemplate | None = None
    """The commands of the engine `command`."""
    folder: str = ""
    """Where pilots find their tokens and write output; "": in the user's home."""
    paused: bool = False
    """Workers are asked for only by a person; what there is stays."""
    source: str = ""
    """Tells apart the files that pools were made from; "": it was made from none."""

    @property
    def usual_environment(self) -> PoolEnvironment:
        """The caller's where workers have the same home directory.

        They read their tokens there, in files that only their owner can read: so they
        also are of the same user.
        """
        is_shared = not self.folder and not self.submit_prefix
        return PoolEnvironment.CALLER if is_shared else PoolEnvironment.SITE


def check_numbers(pool: PoolOptions) -> None:
    """Refuse numbers with which no worker would come, or stay for a job."""
    if not 0 < pool.max_workers <= MOST_WORKERS:
        raise UsageError(f"a pool has 1 to {MOST_WORKERS} workers", "--max-workers 8")
    if pool.cpus < 1:
        raise UsageError("a worker of a pool has at least 1 core", "--cpus 1")
    if pool.gpus < 0:
        raise UsageError(f"a worker of a pool cannot have {pool.gpus} GPUs")
    if pool.time_limit_s < SHORTEST_TIME_S:
        shortest = duration_text(SHORTEST_TIME_S)
        raise UsageError(f"the time of a pool is at least {shortest}", "--time 4h")
    if pool.idle_s <= 0:
        raise UsageError("the idle time of a pool is more than 0", "--idle 5m")
    if pool.lease_s < SHORTEST_LEASE_S:
        shortest = duration_text(SHORTEST_LEASE_S)
        raise UsageError(f"the lease of a pool is at least {shortest}", "--lease 1m")


def check_options(pool: PoolOptions) -> None:
    """Refuse options with which Slurm would have pilots that nobody finds again."""
    if pool.engine != "slurm":
        return
    for option in pool.options:
        name = option.partition("=")[0] if option.startswith("--") else option[:2]
        if name in _NOT_OF_A_SITE:
            raise UsageError(
                f"`{option}` cannot be an option of a pool",
                "Grass finds its workers by their name and comment, each a job alone",
            )
    for name in pool.omitted:
        if name in _FOUND_BY:
            raise UsageError(f"`{name}` cannot be left out", "workers are found by it")


class Pool(PoolOptions, kw_only=True):
    """A pool, and how its engine has answered."""

    environment: PoolEnvironment = PoolEnvironment.SITE
    created_at: int
    created_by: str
    seed: str = ""
    """Random; marks of pilots are made from it."""
    made: int = 0
    """How many marks were made."""
    removing: bool = False
    """Its pilots leave, and it goes with the last of them."""
    words: str = ""
    """What the engine said when it last refused, or could not be asked."""
    refusals: int = 0
    """How often in a row it refused a pilot."""
    failed_starts: int = 0
    """How often in a row a pilot was of no use: it ended before its worker came."""
    retry_at: int | None = None
    """Nothing is asked for before this time; None: at once."""

    @property
    def label(self) -> str:
        """The label of its workers."""
        return pool_label(self.name)

    def capacity(self) -> Capacity:
        """Return the units that one of its workers will have, as far as is declared."""
        counts = {"cpu": self.cpus, "gpu": self.gpus}
        units = {
            kind: {str(unit): WHOLE for unit in range(count)}
            for kind, count in counts.items()
            if count
        }
        if self.memory_mib is not None:
            units["ram"] = {"0": self.memory_mib * WHOLE // 1024}
        return units


class Pilot(msgspec.Struct, kw_only=True):
    """One job in an engine, with one worker in it."""

    mark: str
    """Random; made and stored before the engine is asked."""
    pool: str
    asked_at: int
    job: int | None = None
    """The only job that it is for; None: it takes any."""
    size: PilotSize | None = None
    """What its job needs; None: what the pool declares."""
    used: bool = False
    """Whether the job that it is for has started there."""
    stage: PilotStage = PilotStage.ASKED
    unsure_since: int | None = None
    """Since when it is not known whether the engine has it; None: it is known."""
    report: PilotReport | None = None
    """What the engine said last."""
    worker: str | None = None
    """The worker that came of it."""
    came_at: int | None = None
    """When its worker came for the first time."""
    by_hand: bool = False
    """A person asked for it: it stays until it was idle for long, or is sent away."""
    ends_at: int | None = None
    """When the engine ends it, as its worker reports; None: it has not come."""
    drained: bool = False
    """Whether its worker gets no job any more."""
    connected: bool = False
    """Whether its worker is connected now."""
    idle_since: int | None = None
    """Since when its worker has had no job; None: it has one, or is not connected."""

    @property
    def engine_id(self) -> str:
        """Its id in the engine; "": not known."""
        return "" if self.report is None else self.report.engine_id
