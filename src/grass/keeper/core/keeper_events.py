"""Events of the keeper's core: verbs of daemons, and what happened to processes.

`at` is microseconds UTC, taken by the shell when the event happened. All other times
reach the core as `now`, in seconds of a clock that cannot jump and that goes on while
the machine sleeps.
"""

from typing import NamedTuple

from grass.keeper.protocol import Entry, StartVerb, Usage, Verb


class Opened(NamedTuple):
    """A daemon connected."""

    connection: int


class Closed(NamedTuple):
    """A connection ended."""

    connection: int


class VerbReceived(NamedTuple):
    """A daemon asks for something."""

    connection: int
    verb: Verb


class Forked(NamedTuple):
    """A child prepares the start; its program does not run yet."""

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
    cgroup: str | None = None
    """Where its processes are already, as those of a runner may be."""


class SpawnFailed(NamedTuple):
    """The attempt's program never ran."""

    id: str
    reason: str
    at: int
    missing: str = ""
    """The file that another machine may have; empty: the attempt has failed."""


class CannotSpawn(NamedTuple):
    """This machine cannot start programs now; the attempt's never ran."""

    start: StartVerb
    reason: str
    at: int
    folder: str | None = None
    """Where its output could not be created, if that is the cause."""


class Probed(NamedTuple):
    """Whether a program could be started now, and if not, why."""

    reason: str | None
    folder: str | None


class Flushed(NamedTuple):
    """Whether the records are complete, and if not, why."""

    reason: str | None


class ChildEnded(NamedTuple):
    """A child was reaped: some attempt's main process or an orphan of one."""

    pid: int
    status: int
    rusage: Usage | None
    at: int


class Answered(NamedTuple):
    """A runner has done its task and could run another one."""

    pid: int
    status: int
    """As if the runner had exited with the code of the task."""
    rusage: Usage | None
    at: int
    reason: str | None = None
    result: str = ""


class Surveyed(NamedTuple):
    """Whether any process of an ended attempt is left, and how much it wrote."""

    id: str
    empty: bool
    output_bytes: int
    oom_killed: bool = False
    """Whether the kernel killed one at the limit of its cgroup."""


class Adopted(NamedTuple):
    """A process left by a dead keeper is alive and watched."""

    id: str
    pid: int
    ticks: int
    at: int


class Missing(NamedTuple):
    """A process that a dead keeper should have left does not exist."""

    id: str
    at: int


class AdoptedEnded(NamedTuple):
    """An adopted process is gone; without a status if the kernel does not tell it."""

    id: str
    status: int | None
    at: int


class AdoptedUnclear(NamedTuple):
    """An adopted process is alive but not watched, or over but not reaped yet."""

    id: str
    over: bool
    at: int


class GivenBack(NamedTuple):
    """A guest is done with its attempt."""

    id: str
    code: int
    at: int


class Written(NamedTuple):
    """Whether all that concerns the attempt is on record."""

    id: str
    done: bool


class Enclosed(NamedTuple):
    """The attempt's processes have a cgroup of their own."""

    id: str
    cgroup: str


class OutputMeasured(NamedTuple):
    """How many bytes the attempt has written so far."""

    id: str
    written: int


class SocketMissing(NamedTuple):
    """The socket's file is gone and cannot be created: no daemon can connect."""

    replaced: bool = False
    """Whether another keeper has the folder by now."""
    ends_jobs: bool = False
    """Whether the jobs end for it, as in the check that failed."""


class FolderLost(NamedTuple):
    """The keeper's folder was deleted, or its lock."""


class Terminated(NamedTuple):
    """Somebody has sent SIGTERM."""


class Synced(NamedTuple):
    """A sync of the records has ended; if not done, a power cut may lose them."""

    done: bool


class Restored(NamedTuple):
    """The records of an earlier keeper, in order."""

    entries: list[Entry]
    rebooted: bool = False
    """Whether they are of an earlier boot: then only exits count."""


class TimerTick(NamedTuple):
    """Deadlines may have come."""


KeeperEvent = (
    Opened
    | Closed
    | VerbReceived
    | Forked
    | Spawned
    | SpawnFailed
    | CannotSpawn
    | Probed
    | Flushed
    | ChildEnded
    | Answered
    | Surveyed
    | Adopted
    | Missing
    | AdoptedEnded
    | AdoptedUnclear
    | GivenBack
    | Written
    | Enclosed
    | OutputMeasured
    | SocketMissing
    | FolderLost
    | Terminated
    | Synced
    | Restored
    | TimerTick
)
