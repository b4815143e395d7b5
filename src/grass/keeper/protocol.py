"""The keeper's protocol: JSON lines on a socket, and the keeper's records on disk.

A worker sends verbs, the keeper answers with entries; most entries are also written to
the records. Each message is one named tuple: its fields are the keys of a JSON object
and its class's name is its tag there. Nothing else in grass knows the keys.

Version 0.1 speaks the same bytes: keys are only ever added, a key that is missing has a
default and an unknown one is ignored. Text may contain bytes that are not UTF-8, as
lone surrogates. `codec` writes and reads these messages.
"""

from __future__ import annotations

from typing import NamedTuple

# Parts of the protocol, in a module of their own.
from grass.keeper.start_parts import AdoptVerb as AdoptVerb  # noqa: PLC0414
from grass.keeper.start_parts import Notes as Notes  # noqa: PLC0414
from grass.keeper.start_parts import Seconds as Seconds  # noqa: PLC0414
from grass.keeper.start_parts import TaskRun as TaskRun  # noqa: PLC0414

VERSION = 6
"""Grows with the verbs: from 2 on it knows `lease`, from 3 on guests, from 4 tasks.

From 5 on it reads starts that are like the one before: see `alike_starts`. From 6 on it
knows `adopt`.
"""

MARKER = "GRASS_ATTEMPT_ID"
"""The variable in every process of a job; `config` has it too, below the keeper."""


def cluster_of(id: str) -> str:
    """Return the cluster with which an attempt's id begins; any text may be an id."""
    head, dot, _ = id.partition(".")
    return head if dot else ""


# Kinds of values that the keeper checks more closely than their types.

Command = list[str]
"""Empty only for a guest."""
Mode = int
"""Permission bits; others are masked out."""
SignalNumber = int
"""From 1 to 64."""


# Verbs: from the worker to the keeper.


class StartVerb(NamedTuple):
    """Run this attempt, unless its id is known already.

    With `after` it runs as soon as that attempt has exited. A guest has no `argv`.
    """

    id: str
    argv: Command
    env: dict[str, str]
    cwd: str
    umask: Mode
    output: str
    stderr: str | None = None
    grace: Seconds = 15.0
    time_limit: Seconds | None = None
    max_output: int | None = None
    own_output: bool = False
    """Whether only this attempt writes to its output, so that it may be truncated."""
    nice: int = 0
    cpus: list[int] | None = None
    after: str | None = None
    meta: object = None
    """`Notes` in a worker; in the keeper whatever JSON value came."""
    limit_signal: SignalNumber | None = None
    """Sent once, as by a `SignalVerb`, so long before the time limit."""
    limit_signal_before: Seconds = 0.0
    under: list[str] = []  # noqa: RUF012 -- never changed
    """Words of a program that runs this one: its path and `argv` are added to them."""
    guest: int | None = None
    """The pid of a guest's process, which is watched; it started at `guest_ticks`."""
    guest_ticks: int = 0
    memory_max: int | None = None
    """In bytes; this and `cpu_max`, in cores, by cgroup where that is possible."""
    cpu_max: Seconds | None = None
    task: TaskRun | None = None
    """What a runner is to do; `argv` and `env` are those of the runner."""
    may_return: bool = False
    """Whether a start is returned whose directory, program or script is missing."""
    script: str | None = None
    """The file that the program reads first, which is checked if it may return."""


class StopVerb(NamedTuple):
    """End all processes of the attempt: this signal first, SIGKILL after the grace."""

    id: str
    signal: SignalNumber = 15
    grace: Seconds = 15.0
    reason: str = "cancelled"


class SignalVerb(NamedTuple):
    """Send one signal to the attempt's processes that handle it; if none, to all."""

    id: str
    signal: SignalNumber


class SuspendVerb(NamedTuple):
    """Suspend every process of the attempt."""

    id: str


class ContinueVerb(NamedTuple):
    """Continue every process of the attempt."""

    id: str


class GiveBackVerb(NamedTuple):
    """A guest is done with this attempt, or does not wait for it any more."""

    id: str
    code: int = 0


class RecallVerb(NamedTuple):
    """Drop those of these attempts that have not begun."""

    ids: list[str]


class ForgetVerb(NamedTuple):
    """Drop these exits: the broker has stored them."""

    ids: list[str]


class LeaseVerb(NamedTuple):
    """End a cluster's attempts at this time unless it is renewed; None: never."""

    cluster: str
    until: Seconds | None


class HelloVerb(NamedTuple):
    """Send the full state now, and every event from now on."""


class LeaveVerb(NamedTuple):
    """Exit as soon as there is no attempt left."""


Verb = (
    StartVerb
    | StopVerb
    | SignalVerb
    | SuspendVerb
    | ContinueVerb
    | GiveBackVerb
    | RecallVerb
    | AdoptVerb
    | ForgetVerb
    | LeaseVerb
    | HelloVerb
    | LeaveVerb
)


# Entries: from the keeper to the worker, to the records, or both.


class KeeperEntry(NamedTuple):
    """The first line of the records."""

    version: int
    pid: int
    ticks: int | None
    boot: str


class SpawningEntry(NamedTuple):
    """An attempt is about to be started; on record before its process exists."""

    id: str
    output: str
    stderr: str | None
    grace: float
    time_limit: float | None
    max_output: int | None
    own_output: bool
    meta: object
    limit_signal: SignalNumber | None = None
    limit_signal_before: Seconds = 0.0
    guest: int | None = None
    guest_ticks: int = 0
    memory_max: int | None = None
    cpu_max: Seconds | None = None
    runner: bool = False
    """Whether its process is a runner, which may have run other attempts before."""


class ForkedEntry(NamedTuple):
    """A child exists that prepares the start; the program does not run yet."""

    id: str
    pid: int
    ticks: int


class StartedEntry(NamedTuple):
    """The attempt's program runs."""

    id: str
    pid: int
    ticks: int
    at: int
    offset: int = 0
    stderr_offset: int = 0
    since: float | None = None
    """The same moment as `at`, in seconds since boot."""
    found: bool = False
    """Found by its marker: maybe not the main process."""


class EnclosedEntry(NamedTuple):
    """The attempt's processes have a cgroup of their own."""

    id: str
    cgroup: str


class SuspendedEntry(NamedTuple):
    """The attempt's processes are to be suspended, or not any more."""

    id: str
    on: bool


class WarnedEntry(NamedTuple):
    """The signal before the time limit is being sent."""

    id: str


class StoppingEntry(NamedTuple):
    """The attempt is being stopped, with SIGKILL from `kill_at` on."""

    id: str
    signal: int
    reason: str | None
    kill_at: float


class Usage(NamedTuple):
    """What an attempt's main process used, with the children it waited for."""

    user_s: float
    system_s: float
    max_rss: int | None


class ExitEntry(NamedTuple):
    """How an attempt ended.

    `e` is `exited`; on record also `ended`, while processes of the attempt are left.
    """

    e: str
    id: str
    code: int | None = None
    signal: int | None = None
    reason: str | None = None
    lost: bool = False
    at: int = 0
    ran_s: float | None = None
    output_bytes: int = 0
    rusage: Usage | None = None
    result: str = ""
    """What a task returned, in base64, where it is small."""


class StateEntry(NamedTuple):
    """All that the keeper knows of an attempt; `at` is the time of the latest event.

    `e` is `state` in a hello. As the answer to a start of an attempt that is known
    already it is `started`, `exited` or `waiting`.
    """

    e: str
    id: str
    pid: int | None
    ticks: int | None
    at: int | None
    offset: int
    stderr_offset: int
    since: float | None
    found: bool
    code: int | None
    signal: int | None
    reason: str | None
    lost: bool
    ran_s: float | None
    output_bytes: int
    rusage: Usage | None
    state: str
    """`waiting`, `running` or `exited`."""
    started_at: int | None
    stopping: bool
    suspended: bool
    after: str | None
    begun: bool
    """Whether it is on record: otherwise nothing was run."""
    meta: Notes
    """As a worker reads it; the keeper writes the JSON value that came with a start."""
    result: str = ""


class HelloEntry(NamedTuple):
    """The full state of the keeper."""

    version: int
    pid: int | None
    boot: str
    leases: dict[str, float]
    unable: str | None
    attempts: list[StateEntry]
    controllers: list[str] = []  # noqa: RUF012 -- never changed
    """The controllers of cgroups that can limit attempts: `memory`, `cpu`."""


class ForgottenEntry(NamedTuple):
    """These attempts are no longer known."""

    ids: list[str]


class RecalledEntry(NamedTuple):
    """An attempt was dropped before it began."""

    id: str
    why: str = ""
    """Empty where it was asked for."""
    missing: str = ""
    """The file that is missing here."""


class LeaseEntry(NamedTuple):
    """A lease as it is recorded."""

    cluster: str
    until: float | None


class LeasedEntry(NamedTuple):
    """A lease is on record: the answer to a LeaseVerb."""

    cluster: str
    until: float | None


class UnableEntry(NamedTuple):
    """The machine cannot start programs now."""

    reason: str


class AbleEntry(NamedTuple):
    """The machine can start programs again."""


class ErrorEntry(NamedTuple):
    """A line or a verb was refused."""

    message: str
    id: object = None
    verb: str | None = None
    """Which verb could not be read; version 0.1 says so only in the message."""


Entry = (
    KeeperEntry
    | SpawningEntry
    | ForkedEntry
    | StartedEntry
    | EnclosedEntry
    | SuspendedEntry
    | WarnedEntry
    | StoppingEntry
    | ExitEntry
    | StateEntry
    | HelloEntry
    | ForgottenEntry
    | RecalledEntry
    | LeaseEntry
    | LeasedEntry
    | UnableEntry
    | AbleEntry
    | ErrorEntry
)
