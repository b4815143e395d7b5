"""What the keeper's core wants done; the shell carries it out and reports back.

Effects of one step are carried out in order, with one exception the core relies on:
a `Spawn` happens only after every record before it has reached the file.
"""

from __future__ import annotations

from typing import NamedTuple

from grass.keeper.core.events import Entry, Spec


class Record(NamedTuple):
    """Append the entry to the records."""

    entry: Entry


class Unrecord(NamedTuple):
    """Take back what the records say of an attempt, which never ran."""

    id: str
    entries: list[Entry]


class Publish(NamedTuple):
    """Append the entry to the records and send it to every listening connection.

    One that is not urgent may wait a moment for company.
    """

    entry: Entry
    urgent: bool = True


class Tell(NamedTuple):
    """Send the entry to every listening connection, off the record."""

    entry: Entry


class Reply(NamedTuple):
    """Send the entry to one connection."""

    connection: int
    entry: Entry


class Greet(NamedTuple):
    """Send the entry to one connection, which listens from now on."""

    connection: int
    entry: Entry


class Spawn(NamedTuple):
    """Record that it starts, then start it.

    Answered by Spawned, SpawnFailed, CannotSpawn or Forked.
    """

    spec: Spec


class Probe(NamedTuple):
    """Look whether a program could be started now; answered by Probed."""

    folder: str | None
    """Where it must be possible to make a file."""


class GiveUp(NamedTuple):
    """The attempt is never to run; answered by SpawnFailed with this reason."""

    id: str
    reason: str


class SignalTree(NamedTuple):
    """Send the signals, in order, to every process of the attempt."""

    id: str
    signals: tuple[int, ...]


class KillTree(NamedTuple):
    """Send SIGKILL to every process of the attempt."""

    id: str


class Survey(NamedTuple):
    """Look whether anything of the attempt's tree is left; answered by Surveyed."""

    id: str


class Enclose(NamedTuple):
    """Give the attempt's tree a cgroup; answered by Enclosed where that works."""

    id: str


class Measure(NamedTuple):
    """Look how much the attempt wrote; answered by Measured, or not at all."""

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
    """Ask again about an adopted process that was unclear."""

    id: str


class Know(NamedTuple):
    """Tell the process table what the records say of an attempt."""

    id: str
    pid: int
    ticks: int
    cgroup: str | None
    files: list[tuple[str, int]]


class Release(NamedTuple):
    """The attempt is over: drop its cgroup and whatever is held for it."""

    id: str


class Sync(NamedTuple):
    """Have the disk keep what is on record; answered by Synced, later."""


class CheckSocket(NamedTuple):
    """Put the socket's file back if it is gone; SocketMissing where that fails."""


class Exit(NamedTuple):
    """Nothing is left to keep: end the keeper."""


Effect = (
    Record
    | Unrecord
    | Publish
    | Tell
    | Reply
    | Greet
    | Spawn
    | Probe
    | GiveUp
    | SignalTree
    | KillTree
    | Survey
    | Enclose
    | Measure
    | Truncate
    | Adopt
    | Search
    | Inspect
    | Know
    | Release
    | Sync
    | CheckSocket
    | Exit
)
