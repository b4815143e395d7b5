"""What the keeper's core is told: wishes of a daemon, and what became of processes.

Every event is a plain value. `at` is microseconds UTC, taken by the shell when the
thing happened; everything else about time reaches the core as `now`, in seconds of a
clock that cannot jump and counts a suspended machine's sleep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Entry = dict[str, Any]


class Spec(NamedTuple):
    """What to run and under which limits, as a start message gave it."""

    id: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    umask: int
    output: str
    stderr: str | None
    grace: float
    time_limit: float | None
    max_output: int | None
    nice: int
    cpus: list[int] | None
    meta: Any
    own_output: bool = False
    """Whether nobody else writes to its output, so that it may be cut."""


class Opened(NamedTuple):
    """A daemon connected."""

    connection: int


class Closed(NamedTuple):
    """A connection ended, for whatever cause."""

    connection: int


class Hello(NamedTuple):
    """The connection wants the full state now and every event from now on."""

    connection: int


class Start(NamedTuple):
    """Run this attempt, unless its id is known already.

    With `after` it runs as soon as that attempt is gone.
    """

    connection: int
    spec: Spec
    after: str | None = None


class Recall(NamedTuple):
    """Drop those of these attempts that still wait for another one."""

    ids: list[str]


class Stop(NamedTuple):
    """End the attempt's whole tree: the signal first, after the grace SIGKILL."""

    connection: int
    id: str
    signal: int
    grace: float
    reason: str


class Signal(NamedTuple):
    """Send one signal to every process of the attempt."""

    connection: int
    id: str
    signal: int


class Suspend(NamedTuple):
    """Stop every process of the attempt where it is."""

    connection: int
    id: str


class Continue(NamedTuple):
    """Let every process of the attempt go on."""

    connection: int
    id: str


class Forget(NamedTuple):
    """These exits are safe with the daemon."""

    ids: list[str]


class Lease(NamedTuple):
    """End a cluster's attempts at this time unless told otherwise; None: never."""

    connection: int
    cluster: str
    until: float | None


class Leave(NamedTuple):
    """Exit as soon as nothing is kept."""


class Forked(NamedTuple):
    """A careful start is under way in this child; its program does not run yet."""

    id: str
    pid: int
    ticks: int


class Spawned(NamedTuple):
    """The attempt's program runs."""

    id: str
    pid: int
    ticks: int
    at: int
    offset: int
    stderr_offset: int


class SpawnFailed(NamedTuple):
    """The attempt's program never ran."""

    id: str
    reason: str
    at: int


class CannotSpawn(NamedTuple):
    """This machine cannot start programs now; the attempt's never ran."""

    spec: Spec
    reason: str
    at: int
    folder: str | None = None
    """Where its output could not be made, if it is that."""


class Probed(NamedTuple):
    """Whether a program could be started now, and if not, why."""

    reason: str | None
    folder: str | None


class Flushed(NamedTuple):
    """Whether the records tell all that is known, and if not, why."""

    reason: str | None


class ChildEnded(NamedTuple):
    """A child was reaped: some attempt's main process or an orphan of one."""

    pid: int
    status: int
    rusage: Entry
    at: int


class Surveyed(NamedTuple):
    """Whether anything of an ended attempt's tree is left, and what it wrote."""

    id: str
    empty: bool
    output_bytes: int


class Adopted(NamedTuple):
    """A process left by a dead keeper is alive and watched."""

    id: str
    pid: int
    ticks: int
    at: int


class Missing(NamedTuple):
    """Nothing is known of a process that a dead keeper should have left."""

    id: str
    at: int


class AdoptedEnded(NamedTuple):
    """An adopted process is gone; without a status the kernel did not tell it."""

    id: str
    status: int | None
    at: int


class AdoptedUnclear(NamedTuple):
    """An adopted process lives unwatched, or is over but not reaped yet."""

    id: str
    over: bool
    at: int


class Enclosed(NamedTuple):
    """The attempt's tree now has a cgroup of its own."""

    id: str
    cgroup: str


class Measured(NamedTuple):
    """How many bytes the attempt has written so far."""

    id: str
    written: int


class SocketMissing(NamedTuple):
    """The socket's file is gone and cannot be put back: no daemon can connect."""


class Synced(NamedTuple):
    """A sync of the records has ended; not done: what was written may be lost."""

    done: bool


class Restored(NamedTuple):
    """What a predecessor had on record, in order."""

    entries: list[Entry]
    rebooted: bool = False
    """Whether that was in an earlier boot: then only exits still mean something."""


class Tick(NamedTuple):
    """Time passed; timers that are due act."""


Event = (
    Opened
    | Closed
    | Hello
    | Start
    | Recall
    | Stop
    | Signal
    | Suspend
    | Continue
    | Forget
    | Lease
    | Leave
    | Forked
    | Spawned
    | SpawnFailed
    | CannotSpawn
    | Probed
    | Flushed
    | ChildEnded
    | Surveyed
    | Adopted
    | Missing
    | AdoptedEnded
    | AdoptedUnclear
    | Enclosed
    | Measured
    | SocketMissing
    | Synced
    | Restored
    | Tick
)
