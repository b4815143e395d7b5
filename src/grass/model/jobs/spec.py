"""How a job runs: the one record of it, from a request to the worker.

`RunOptions` is what a worker acts on; the link's `Start` has the same fields. `Spec`
adds what only the broker needs, and is stored once for all jobs that share it. A
`JobPatch` is what a request gives of a job: of a new one over the defaults, or of a
known one that is edited or run again. `JOB_READERS` says how its fields are read.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from grass.errors import About
from grass.model import field_readers as read
from grass.model.amount_text import WHOLE
from grass.model.durations import rounded_up
from grass.model.field_readers import FieldReader
from grass.model.jobs import dependencies, signals
from grass.model.jobs.dependencies import After
from grass.model.jobs.sbatch import SbatchForm, SbatchScript, read_sbatch
from grass.model.jobs.task_call import TaskCall, TaskForm, read_task
from grass.model.pools import pool_label
from grass.model.resources import AUTO, Policy, Request, request_json
from grass.model.usage.enforcement import Enforcement
from grass.model.worker import RUNS_TASKS

DEFAULT_MAX_OUTPUT = 10 * 2**30
DEFAULT_GRACE_S = 15.0
NO_INPUT, CHANNEL = read.NO_INPUT, read.CHANNEL


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a worker acts on.

    A spec is stored without its defaults, so a default must not change, or jobs in an
    older database would change with it.
    """

    env: tuple[tuple[str, str], ...] = ()
    umask: int | None = None
    output: str | None = None
    stderr: str | None = None
    raw: bool = False
    """Whether placeholders are left alone."""
    verbatim: bool = False
    """Whether those of the command alone are left alone: it is a script's text."""
    pin: bool = False
    max_output: int = DEFAULT_MAX_OUTPUT
    grace_s: float = DEFAULT_GRACE_S
    time_limit_s: float | None = None
    nice: int = 0
    shell_program: str | None = None
    """The program that runs a shell line; None: the worker's own."""
    threads: int | None = None
    """How many threads it is told to use; None: it asked for no cores itself."""
    limit_signal: str | None = None
    """A signal before the time limit, and how long before: `USR1@60`."""
    stdin: str = NO_INPUT
    """What the job's stdin is: `null`, or a `pipe` or `pty` for which input is sent.

    With `channel` it is null, and the program that enqueued the job talks to it by a
    socket: see `GRASS_CHANNEL`.
    """
    window: tuple[int, int] | None = None
    """Rows and columns of a `pty` when the job starts."""
    guest: tuple[int, int] | None = None
    """The pid and start ticks of a process that is there already and runs the job."""
    enforce: Enforcement | None = None
    """Whether it is held to its request, and what happens if it uses more."""
    task: TaskCall | None = None
    """The Python function that it calls; None: it has a command, or is a guest."""
    sbatch: SbatchScript | None = None
    """Its script's `#SBATCH` lines; None: it has none, and no variables of Slurm."""


_OPTIONS = RunOptions.__struct_fields__
_option_values = attrgetter(*_OPTIONS)


def run_options(options: RunOptions) -> dict[str, Any]:
    """Give what a worker acts on, by name."""
    return dict(zip(_OPTIONS, _option_values(options), strict=True))


class Spec(RunOptions, frozen=True, kw_only=True):
    """How to run: shared by every job of an array or a bulk call."""

    request: Request
    prefix: tuple[str, ...] = ()
    """The queue's part of the command, as it was when the last attempt started."""
    cwd: str | None = None
    queue_cwd: str | None = None
    """The queue's directory, for jobs that named none themselves."""
    base_env: int | None = None
    """The stored environment of the caller; None: the worker's own."""
    origin: str = ""
    """Where several brokers share a store: the worker of the caller's own machine."""
    after: tuple[After, ...] = ()
    """The jobs that must have ended, and how, before this one may start."""
    begin_at: int | None = None
    retries: int = 0
    """How many failures are followed by another attempt."""
    backoff_s: float = 0.0
    """The pause before the first retry; every further one is twice as long."""
    retry_on: tuple[str, ...] = ()
    """The failures that are retried; empty: all."""
    retry_lost: int = 0
    """How many losses are followed by another attempt."""
    worker: str | None = None
    """The id of the only worker that may run it; None: any."""
    labels: tuple[str, ...] = ()
    """What a worker must say of itself to run it; sorted."""
    pool: str | None = None
    """The pool on whose workers alone it may run; None: anywhere."""
    gpu_model: str | None = None
    """A pattern that the name of each of its GPUs must match; None: any."""
    policy: Policy | None = None
    """How units are chosen among those that fit; None: as usual for its request."""
    auto_vram: bool = False
    """Whether the memory that it needs of a GPU is looked up in its type's profile."""
    job_type: str | None = None
    """Jobs of one type share a profile; None: the default type of its command."""
    at_most: int | None = None
    """How many members of its array may run at a time."""
    max_fails: int | None = None
    """After this many failed members of its array the queue pauses."""
    short_of_memory: int = 0
    """After how many ends for want of memory it was queued again."""

    @property
    def all_labels(self) -> frozenset[str]:
        """What a worker must have, by its own words, its pool or its version."""
        own = (
            self.labels if self.pool is None else (*self.labels, pool_label(self.pool))
        )
        return frozenset(own if self.task is None else (*own, RUNS_TASKS))

    @property
    def may_take_s(self) -> float | None:
        """How long it may take, with the grace after its limit; None: it has none."""
        return None if self.time_limit_s is None else self.time_limit_s + self.grace_s

    @property
    def rounded_time_s(self) -> float | None:
        """The same, rounded up: jobs that differ little are placed alike."""
        return None if self.may_take_s is None else rounded_up(self.may_take_s)

    @property
    def asks_again(self) -> int | None:
        """The pid of a guest that asks for GPUs which it had before; or None."""
        named = self.gpu_model is not None
        return self.guest[0] if self.guest is not None and named else None


class JobPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is given of a job; a field that is unset leaves what there is.

    None takes something away, where the spec has it so.
    """

    words: tuple[str, ...] | UnsetType = UNSET
    shell: bool | UnsetType | None = UNSET
    """None: one word with spaces is a shell line."""
    queue: str | UnsetType = UNSET
    request: Request | UnsetType = UNSET
    request_also: dict[str, int] | UnsetType = UNSET
    """Kinds to ask another amount of; what else was asked for stays."""
    priority: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    env: tuple[tuple[str, str], ...] | UnsetType = UNSET
    """Added to those of the spec."""
    cwd: str | UnsetType | None = UNSET
    umask: int | UnsetType | None = UNSET
    output: str | UnsetType | None = UNSET
    stderr: str | UnsetType | None = UNSET
    max_output: int | UnsetType = UNSET
    raw: bool | UnsetType = UNSET
    verbatim: bool | UnsetType = UNSET
    pin: bool | UnsetType = UNSET
    after: tuple[After, ...] | UnsetType = UNSET
    begin_at: int | UnsetType | None = UNSET
    hold: bool | UnsetType = UNSET
    time_limit_s: float | UnsetType | None = UNSET
    grace_s: float | UnsetType = UNSET
    retries: int | UnsetType = UNSET
    backoff_s: float | UnsetType = UNSET
    retry_on: tuple[str, ...] | UnsetType = UNSET
    retry_lost: int | UnsetType = UNSET
    nice: int | UnsetType = UNSET
    shell_program: str | UnsetType | None = UNSET
    limit_signal: str | UnsetType | None = UNSET
    stdin: str | UnsetType = UNSET
    window: tuple[int, int] | UnsetType | None = UNSET
    threads: int | UnsetType | None = UNSET
    at_most: int | UnsetType | None = UNSET
    max_fails: int | UnsetType | None = UNSET
    worker: str | UnsetType | None = UNSET
    """By name or id, in a request; in the broker by id."""
    labels: tuple[str, ...] | UnsetType = UNSET
    pool: str | UnsetType | None = UNSET
    guest: tuple[int, int] | UnsetType | None = UNSET
    gpu_model: str | UnsetType | None = UNSET
    policy: Policy | UnsetType | None = UNSET
    enforce: Enforcement | UnsetType | None = UNSET
    auto_vram: bool | UnsetType = UNSET
    job_type: str | UnsetType | None = UNSET
    task: TaskCall | UnsetType | None = UNSET
    sbatch: SbatchScript | UnsetType | None = UNSET


NOT_IN_A_REQUEST = ("words", "shell", "umask", "threads", "guest", "auto_vram")
"""Fields that a call makes of its command, its caller and its request."""

EDITABLE = (
    "require",
    "require_also",
    "priority",
    "queue",
    "time_limit_s",
    "limit_signal",
    "env",
    "cwd",
    "name",
    "after",
    "begin_at",
    "retries",
    "worker",
    "labels",
    "pool",
    "gpu_model",
    "policy",
    "job_type",
)
"""What a job that has not started can be given anew, besides its command."""

RERUNNABLE = tuple(
    name for name in EDITABLE if name not in ("after", "begin_at", "retries")
)
"""What an ended job can be given when it is run again, besides its command."""

SHOWN_AS_STORED = (
    "grace_s",
    "time_limit_s",
    "limit_signal",
    "nice",
    "shell_program",
    "retries",
    "backoff_s",
    "stdin",
    "retry_on",
    "retry_lost",
    "labels",
    "max_fails",
    "pool",
    "gpu_model",
    "policy",
    "enforce",
)
"""Fields that a job's document has as they are.

Any other is shown only where `queries/job_documents.py` does so: it may hold a secret.
"""

JOB_READERS = {
    "require": FieldReader(read.request, read.WrittenAmounts, "request"),
    "require_also": FieldReader(read.amounts, dict[str, Any], "request_also"),
    "priority": FieldReader(read.priority),
    "project": FieldReader(read.project),
    "env": FieldReader(read.pairs, dict[str, str]),
    "cwd": FieldReader(read.path("--cwd")),
    "output": FieldReader(read.path("--output")),
    "stderr": FieldReader(read.path("--stderr")),
    "max_output": FieldReader(read.size, read.Bytes | str),
    "after": FieldReader(read.texts, list[str] | None),
    "begin_at": FieldReader(read.begin_at, str | None),
    "time_limit_s": FieldReader(read.time_limit),
    "limit_signal": FieldReader(signals.written_limit_signal),
    "stdin": FieldReader(read.stdin),
    "window": FieldReader(read.window, list[int] | None),
    "grace_s": FieldReader(read.seconds("--grace")),
    "retries": FieldReader(read.count("--retries")),
    "backoff_s": FieldReader(read.seconds("--backoff")),
    "retry_on": FieldReader(read.failures, list[str | int]),
    "retry_lost": FieldReader(read.count("--retry-lost")),
    "nice": FieldReader(read.count("--nice", read.LOWEST_CPU_PRIORITY)),
    "shell_program": FieldReader(read.program("--shell")),
    "at_most": FieldReader(read.at_least_one("--at-most")),
    "max_fails": FieldReader(read.at_least_one("--max-fails")),
    "labels": FieldReader(read.labels, list[str] | None),
    "pool": FieldReader(read.pool),
    "gpu_model": FieldReader(read.gpu_model),
    "policy": FieldReader(read.policy, str | None),
    "enforce": FieldReader(read.enforcement, str | None),
    "job_type": FieldReader(read.job_type),
    "task": FieldReader(read_task, TaskForm | None),
    "sbatch": FieldReader(read_sbatch, SbatchForm | None),
}
"""By a field's name in a request: how it is read and checked."""


def job_fields(asked: Mapping[str, Any], last_job: int) -> dict[str, Any]:
    """Read what a request gives of a job, as fields of a patch.

    `last` in `after` is replaced by the newest job now: another may be it later.
    """
    plain, auto = read.without_auto(asked)
    fields = read.read_fields(plain, JOB_READERS) | auto
    if "after" in fields:
        with About("after"):
            fields["after"] = dependencies.read(fields["after"], last_job)
    return fields | _threads(fields)


def _threads(fields: Mapping[str, Any]) -> dict[str, int | None]:
    """Return as many threads as whole cores are asked for, at least one."""
    also = fields.get("request_also", {})
    if "request" not in fields and "cpu" not in also:
        return {}
    cores = also.get("cpu", dict(fields.get("request", ())).get("cpu", 0))
    return {"threads": max(1, cores // WHOLE) if cores else None}


def least_request(spec: Spec) -> Request:
    """Return the least that a job asks for: of memory that is looked up, some."""
    if not spec.auto_vram:
        return spec.request
    return tuple(sorted((*spec.request, ("vram", 1))))


def asked_json(spec: Spec) -> dict[str, int | float | str]:
    """Return what a job asks for, for JSON."""
    asked = request_json(spec.request)
    return {**asked, "vram": AUTO} if spec.auto_vram else {**asked}


def given(patch: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that a patch gives."""
    fields = {name: getattr(patch, name) for name in patch.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not UNSET}


_OF_A_SPEC = tuple(
    name for name in JobPatch.__struct_fields__ if name in Spec.__struct_fields__
)


def changed(spec: Spec, patch: JobPatch) -> Spec:
    """Return a spec with what a patch gives."""
    values = {name: getattr(patch, name) for name in _OF_A_SPEC}
    other = {name: value for name, value in values.items() if value is not UNSET}
    if "request" in other:
        other.setdefault("auto_vram", False)
    if patch.request_also is not UNSET:
        asked = dict(other.get("request", spec.request)) | patch.request_also
        left = ((kind, amount) for kind, amount in asked.items() if amount)
        other["request"] = tuple(sorted(left))
    if "request" in other:
        other["short_of_memory"] = 0
    if patch.env is not UNSET:
        other["env"] = (*spec.env, *patch.env)
    return replace(spec, **other) if other else spec
