"""Effects of the keeper's core; the shell carries them out and answers with events.

Effects of one step are carried out in order, with one exception that the core relies
on: a `Spawn` happens only after every record before it has reached the file.
"""

from typing import NamedTuple

from grass.keeper.protocol import Entry, StartVerb


class Record(NamedTuple):
    """Append the entry to the records."""

    entry: Entry


class Unrecord(NamedTuple):
    """Remove an attempt, which never ran, from the records."""

    id: str
    entries: list[Entry]


class Publish(NamedTuple):
    """Append the entry to the records and send it to every listening connection.

    One that is not urgent may wait a moment for others.
    """

    entry: Entry
    urgent: bool = True


class Tell(NamedTuple):
    """Send the entry to every listening connection, without a record."""

    entry: Entry


class Reply(NamedTuple):
    """Send the entry to one connection."""

    connection: int
    entry: Entry


class SendHello(NamedTuple):
    """Send the entry to one connection, which listens from now on."""

    connection: int
    entry: Entry


class Spawn(NamedTuple):
    """Record that it starts, then start it.

    Answered by Spawned, SpawnFailed, CannotSpawn or Forked; for a guest as an Adopt is.
    A task is handed to the runner that was chosen for it, or to a new one.
    """

    start: StartVerb


class Probe(NamedTuple):
    """Try whether a program could be started now; answered by Probed."""

    folder: str | None
    """A folder in which a file must be creatable."""


class GiveUp(NamedTuple):
    """The attempt is never to run; answered by SpawnFailed with this reason."""

    id: str
    reason: str


class EndGuest(NamedTuple):
    """A guest is done with its attempt; answered by GivenBack."""

    id: str
    code: int


class Write(NamedTuple):
    """Write all that is to be on record now; answered by Written."""

    id: str


class SignalProcesses(NamedTuple):
    """Send the signals, in order, to every process of the attempt."""

    id: str
    signals: tuple[int, ...]


class SignalHandlers(NamedTuple):
    """Send a signal to the attempt's processes that handle it; if none does, to all.

    A process dies of most signals that it does not handle, such as the shell that runs
    the program for which the signal is meant.
    """

    id: str
    signal: int


class KillProcesses(NamedTuple):
    """Send SIGKILL to every process of the attempt."""

    id: str


class Survey(NamedTuple):
    """Look whether any process of the attempt is left; answered by Surveyed.

    A runner is not one of them until its line is hung up.
    """

    id: str


class HangUp(NamedTuple):
    """End the line to a runner: it exits, at the latest after its task."""

    pid: int
    taken: bool = False
    """Whether its last answer is on record: it need not write its result itself."""


class Enclose(NamedTuple):
    """Move the attempt's processes into a cgroup; answered by Enclosed if possible."""

    id: str
    memory_max: int | None = None
    cpu_max: float | None = None


class NameOutput(NamedTuple):
    """Let the output of a task have its name from now on, also if it is empty."""

    id: str


class Measure(NamedTuple):
    """Measure how much the attempt wrote; answered by OutputMeasured, or not at all."""

    id: str


class Truncate(NamedTuple):
    """Cut a file to this size."""

    path: str
    size: int


class Adopt(NamedTuple):
    """Watch a process that a dead keeper left; answered by an Adopted... or Missing."""

    id: str
    pid: int
    ticks: int


class Search(NamedTuple):
    """Find a process by its marker; answered by Adopted or Missing."""

    id: str


class Inspect(NamedTuple):
    """Look again at an adopted process that was unclear."""

    id: str


class Know(NamedTuple):
    """Tell the process table what the records say of an attempt."""

    id: str
    pid: int
    ticks: int
    cgroup: str | None
    files: list[tuple[str, int]]
    guest: bool = False
    runner: bool = False


class ReleaseAttempt(NamedTuple):
    """The attempt is over: remove its cgroup and all that is held for it."""

    id: str


class Sync(NamedTuple):
    """Sync the records to the disk; answered by Synced, later."""


class CheckSocket(NamedTuple):
    """Create the socket's file again if it is gone; SocketMissing if that fails."""

    ends_jobs: bool = False
    """Whether the jobs end if it fails."""


class Exit(NamedTuple):
    """End the keeper: it has neither attempts nor exits."""


Effect = (
    Record
    | Unrecord
    | Publish
    | Tell
    | Reply
    | SendHello
    | Spawn
    | Probe
    | GiveUp
    | EndGuest
    | Write
    | SignalProcesses
    | SignalHandlers
    | KillProcesses
    | Survey
    | HangUp
    | Enclose
    | NameOutput
    | Measure
    | Truncate
    | Adopt
    | Search
    | Inspect
    | Know
    | ReleaseAttempt
    | Sync
    | CheckSocket
    | Exit
)
