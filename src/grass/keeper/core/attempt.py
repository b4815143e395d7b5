"""What the keeper knows of one attempt, and the entries that record it.

States: `waiting` (for another attempt to exit) and `due` (to be spawned next), neither
on record; `starting` (the program does not run yet), `running`, `ended` (the main
process is gone, others are left), `exited`. The same entries go to the records and to
the daemon; reading them back in order restores the attempt.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from grass.keeper.exit_reasons import (
    GUEST_ENDED,
    GUEST_GAVE_UP,
    GUEST_GONE,
    KEEPER_KILLED,
)
from grass.keeper.protocol import (
    EnclosedEntry,
    ExitEntry,
    ForgottenEntry,
    ForkedEntry,
    SpawningEntry,
    StartedEntry,
    StateEntry,
    StoppingEntry,
    SuspendedEntry,
    WarnedEntry,
)

if TYPE_CHECKING:
    from grass.keeper.core.keeper_events import Answered, ChildEnded, Spawned
    from grass.keeper.protocol import Entry, Notes, StartVerb, Usage


class StopPlan:
    """A stop that has begun: SIGKILL from `kill_at` on, repeated."""

    __slots__ = ("kill_at", "kills", "reason", "signal")

    def __init__(self, kill_at: float, signal: int, reason: str | None) -> None:
        """Plan `signal` first and SIGKILL at `kill_at`."""
        self.kill_at = kill_at
        self.signal = signal
        self.reason = reason
        self.kills = 0


class KeeperAttempt:
    """One attempt, from its start verb until its exit is forgotten."""

    __slots__ = (
        "after",
        "cgroup",
        "code",
        "exited_at",
        "forgotten",
        "found",
        "id",
        "looks",
        "lost",
        "offset",
        "output_bytes",
        "pid",
        "ran_s",
        "reason",
        "result",
        "rusage",
        "signal",
        "since",
        "spawning",
        "started_at",
        "state",
        "stderr_offset",
        "stop_plan",
        "suspended",
        "ticks",
        "warned",
    )

    def __init__(self, spawning: SpawningEntry) -> None:
        self.id = spawning.id
        self.spawning = spawning
        """Where it writes and its limits, as they are recorded before the spawn."""
        self.state = "starting"
        self.after: str | None = None
        self.looks = 0
        # Of a guest the process is known before the attempt begins.
        self.pid: int | None = spawning.guest
        self.ticks: int | None = spawning.guest_ticks or None
        self.since = 0.0
        self.started_at: int | None = None
        self.offset = 0
        self.stderr_offset = 0
        self.suspended = False
        self.warned = False
        """Whether the signal before its time limit was sent."""
        self.found = False
        """Found by its marker, with no pid on record: maybe not the main process."""
        self.cgroup: str | None = None
        self.stop_plan: StopPlan | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.reason: str | None = None
        self.lost = False
        self.exited_at: int | None = None
        self.ran_s: float | None = None
        self.output_bytes = 0
        self.rusage: Usage | None = None
        self.result = ""
        self.forgotten = False
        """Whether its exit is stored already, as an earlier keeper told it."""

    @property
    def is_guest(self) -> bool:
        """Whether another process started its process, which is only watched."""
        return self.spawning.guest is not None

    @property
    def is_live(self) -> bool:
        """Whether its main process begins or runs."""
        return self.state in ("starting", "running")

    @property
    def gave_back(self) -> bool:
        """Whether a guest is done with it, which is not on record yet."""
        return self.is_guest and self.state == "ended"

    def began(self, spawned: Spawned, now: float) -> None:
        """Note that the program runs."""
        self.state = "running"
        self.pid = spawned.pid
        self.ticks = spawned.ticks
        self.started_at = spawned.at
        self.offset = spawned.offset
        self.stderr_offset = spawned.stderr_offset
        self.cgroup = spawned.cgroup or self.cgroup
        self.since = now

    def ended(self, child: ChildEnded | Answered, now: float) -> None:
        """Note how the main process ended, or the task of a runner."""
        self._set_status(child.status)
        self.state = "ended"
        self.rusage = child.rusage
        self.exited_at = child.at
        self.measure(now)

    def measure(self, now: float) -> None:
        """Note how long the program ran that ends now, if its start is known."""
        if self.started_at is not None and not self.found:
            self.ran_s = round(now - self.since, 6)

    def ended_adopted(self, status: int | None, at: int) -> None:
        """Note the end of a process that an earlier keeper started."""
        self.state = "ended"
        self.exited_at = at
        if status is None and self.is_guest:
            # Only the guest knows more, so nothing was lost.
            self.reason = GUEST_ENDED if self.started_at else GUEST_GONE
        elif status is None:
            self.lost = True
            self.reason = f"{KEEPER_KILLED} and the exit code went with it"
        else:
            self._set_status(status)

    def given_back(self, code: int, at: int) -> None:
        """Note that a guest is done with it."""
        self.state = "ended"
        self.exited_at = at
        if self.started_at is None:
            self.reason = GUEST_GAVE_UP
        else:
            self.code = code

    def finish(self) -> None:
        """Note that no process of it is left."""
        if self.stop_plan is not None and self.stop_plan.reason is not None:
            self.reason = self.stop_plan.reason
        self.state = "exited"

    def _set_status(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.code = code if code >= 0 else None
        self.signal = -code if code < 0 else None

    def files(self) -> list[tuple[str, int]]:
        """Return where it writes, output first, and from which offset on."""
        output, stderr = self.spawning.output, self.spawning.stderr
        files = [(output, self.offset)]
        if stderr is not None and stderr != output:
            files.append((stderr, self.stderr_offset))
        return files

    def started_entry(self) -> StartedEntry:
        """Return the entry of its start."""
        return StartedEntry(
            self.id,
            self.pid or 0,
            self.ticks or 0,
            self.started_at or 0,
            self.offset,
            self.stderr_offset,
            self.since,
            self.found,
        )

    def stopping_entry(self, plan: StopPlan) -> StoppingEntry:
        """Return the entry of a stop that has begun."""
        return StoppingEntry(self.id, plan.signal, plan.reason, plan.kill_at)

    def exit_entry(self) -> ExitEntry:
        """Return the entry of its exit, or of the end of its main process."""
        return ExitEntry(
            self.state,
            self.id,
            self.code,
            self.signal,
            self.reason,
            self.lost,
            self.exited_at or 0,
            self.ran_s,
            self.output_bytes,
            self.rusage,
            self.result,
        )

    def state_entry(self) -> StateEntry:
        """Return everything that a daemon may want to know."""
        over = self.state == "exited"
        return StateEntry(
            "state",
            self.id,
            self.pid,
            self.ticks,
            self.exited_at if over else self.started_at,
            self.offset,
            self.stderr_offset,
            self.since,
            self.found,
            self.code,
            self.signal,
            self.reason,
            self.lost,
            self.ran_s,
            self.output_bytes,
            self.rusage,
            self.state if over or self.state == "waiting" else "running",
            self.started_at,
            self.stop_plan is not None and not over,
            self.suspended and not over,
            self.after,
            self.state not in ("waiting", "due"),
            cast("Notes", self.spawning.meta),
            self.result,
        )

    def entries(self) -> list[Entry]:
        """Return the shortest record from which a successor can restore it."""
        if self.state in ("waiting", "due"):
            return []
        entries: list[Entry] = [self.spawning]
        if self.state == "starting" and self.pid is not None and not self.is_guest:
            entries.append(self.forked_entry())
        if self.started_at is not None:
            entries.append(self.started_entry())
        if self.cgroup is not None and self.state != "exited":
            entries.append(EnclosedEntry(self.id, self.cgroup))
        if self.suspended and self.state != "exited":
            entries.append(SuspendedEntry(self.id, on=True))
        if self.warned and self.state != "exited":
            entries.append(WarnedEntry(self.id))
        if self.stop_plan is not None and self.state != "exited":
            entries.append(self.stopping_entry(self.stop_plan))
        if self.state in ("ended", "exited"):
            entries.append(self.exit_entry())
        return entries

    def forked_entry(self) -> ForkedEntry:
        """Return the entry of a child that prepares the start."""
        return ForkedEntry(self.id, self.pid or 0, self.ticks or 0)


def attempt_of(start: StartVerb) -> KeeperAttempt:
    """Make the attempt that a start verb asks for."""
    base = start.cwd
    return KeeperAttempt(
        SpawningEntry(
            start.id,
            os.path.join(base, start.output),
            start.stderr and os.path.join(base, start.stderr),
            start.grace,
            start.time_limit,
            start.max_output,
            start.own_output,
            start.meta,
            start.limit_signal,
            start.limit_signal_before,
            start.guest,
            start.guest_ticks,
            start.memory_max,
            start.cpu_max,
            start.task is not None,
        )
    )


def attempts_of(entries: list[Entry]) -> dict[str, KeeperAttempt]:
    """Restore attempts from records."""
    attempts: dict[str, KeeperAttempt] = {}
    for entry in entries:
        if isinstance(entry, ForgottenEntry):
            for id in entry.ids:
                attempts.pop(id, None)
        elif isinstance(entry, SpawningEntry):
            attempts[entry.id] = KeeperAttempt(entry)
        elif (attempt := attempts.get(getattr(entry, "id", ""))) is not None:
            _apply(attempt, entry)
    return attempts


def _apply(attempt: KeeperAttempt, entry: Entry) -> None:
    match entry:
        case ForkedEntry():
            attempt.pid, attempt.ticks = entry.pid, entry.ticks
        case StartedEntry():
            attempt.state = "running"
            attempt.pid, attempt.ticks = entry.pid, entry.ticks
            attempt.started_at, attempt.since = entry.at, entry.since or 0.0
            attempt.offset, attempt.stderr_offset = entry.offset, entry.stderr_offset
            attempt.found = entry.found
        case EnclosedEntry():
            attempt.cgroup = entry.cgroup
        case SuspendedEntry():
            attempt.suspended = entry.on
        case WarnedEntry():
            attempt.warned = True
        case StoppingEntry():
            plan = StopPlan(entry.kill_at, entry.signal, entry.reason)
            attempt.stop_plan = plan
        case ExitEntry():
            attempt.state = entry.e
            attempt.exited_at, attempt.ran_s = entry.at, entry.ran_s
            attempt.code, attempt.signal = entry.code, entry.signal
            attempt.reason, attempt.lost = entry.reason, entry.lost
            attempt.output_bytes, attempt.rusage = entry.output_bytes, entry.rusage
            attempt.result = entry.result
        case _:
            pass
