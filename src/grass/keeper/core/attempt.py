"""What the keeper knows of one attempt, and how it is written down.

States: `waiting` (for another attempt to be gone) and `due` (to be spawned next), both
not on record; `starting` (program not running yet), `running`, `ended` (main process
gone, rest of the tree not), `exited`. The same entries go to the records and to the
daemon; reading the entries back in order gives the attempt again.
"""

from __future__ import annotations

import os

from grass.keeper.core.events import ChildEnded, Entry, Spawned, Spec


class Ladder:
    """A stop under way: SIGKILL from `kill_at` on, again and again."""

    __slots__ = ("kill_at", "reason", "rounds", "signal")

    def __init__(self, kill_at: float, signal: int, reason: str | None) -> None:
        """Plan `signal` first and SIGKILL at `kill_at`."""
        self.kill_at = kill_at
        self.signal = signal
        self.reason = reason
        self.rounds = 0


class Attempt:
    """One attempt, from the wish to start it until its exit is forgotten."""

    __slots__ = (
        "after",
        "cgroup",
        "code",
        "exited_at",
        "found",
        "grace",
        "id",
        "ladder",
        "looks",
        "lost",
        "max_output",
        "meta",
        "offset",
        "output",
        "output_bytes",
        "own_output",
        "pid",
        "ran_s",
        "reason",
        "rusage",
        "signal",
        "since",
        "started_at",
        "state",
        "stderr",
        "stderr_offset",
        "suspended",
        "ticks",
        "time_limit",
    )

    def __init__(self, id: str, limits: Entry) -> None:
        self.id = id
        self.output: str = limits["output"]
        self.stderr: str | None = limits["stderr"]
        self.grace: float = limits["grace"]
        self.time_limit: float | None = limits["time_limit"]
        self.max_output: int | None = limits["max_output"]
        self.own_output: bool = limits.get("own_output", False)
        self.meta = limits["meta"]
        self.state = "starting"
        self.after: str | None = None
        self.looks = 0
        self.pid: int | None = None
        self.ticks: int | None = None
        self.since = 0.0
        self.started_at: int | None = None
        self.offset = 0
        self.stderr_offset = 0
        self.suspended = False
        # Found by its marker, with no pid on record: maybe not the main process.
        self.found = False
        self.cgroup: str | None = None
        self.ladder: Ladder | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.reason: str | None = None
        self.lost = False
        self.exited_at: int | None = None
        self.ran_s: float | None = None
        self.output_bytes = 0
        self.rusage: Entry | None = None

    def began(self, spawned: Spawned, now: float) -> None:
        """Take over the facts of a program that runs."""
        self.state = "running"
        self.pid = spawned.pid
        self.ticks = spawned.ticks
        self.started_at = spawned.at
        self.offset = spawned.offset
        self.stderr_offset = spawned.stderr_offset
        self.since = now

    def ended(self, child: ChildEnded, now: float) -> None:
        """Take over the main process's own end."""
        self._take_status(child.status)
        self.state = "ended"
        self.rusage = child.rusage
        self.exited_at = child.at
        self.measure(now)

    def measure(self, now: float) -> None:
        """Note how long the program ran that ends now, if its start was seen."""
        if self.started_at is not None and not self.found:
            self.ran_s = round(now - self.since, 6)

    def ended_adopted(self, status: int | None, at: int) -> None:
        """Take over the end of a process whose parent was a keeper now dead."""
        self.state = "ended"
        self.exited_at = at
        if status is None:
            self.lost = True
            self.reason = "the keeper was killed and the exit code went with it"
        else:
            self._take_status(status)

    def finish(self) -> None:
        """Be over: nothing of the tree is left."""
        if self.ladder is not None and self.ladder.reason is not None:
            self.reason = self.ladder.reason
        self.state = "exited"

    def _take_status(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.code = code if code >= 0 else None
        self.signal = -code if code < 0 else None

    def files(self) -> list[tuple[str, int]]:
        """Where it writes, output first, and from which offset on."""
        files = [(self.output, self.offset)]
        if self.stderr is not None and self.stderr != self.output:
            files.append((self.stderr, self.stderr_offset))
        return files

    def spawning_entry(self) -> Entry:
        """What must be on record before the program may run."""
        return {
            "e": "spawning",
            "id": self.id,
            "output": self.output,
            "stderr": self.stderr,
            "grace": self.grace,
            "time_limit": self.time_limit,
            "max_output": self.max_output,
            "own_output": self.own_output,
            "meta": self.meta,
        }

    def started_entry(self) -> Entry:
        """The event `started`."""
        return {
            "e": "started",
            "id": self.id,
            "pid": self.pid,
            "ticks": self.ticks,
            "at": self.started_at,
            "offset": self.offset,
            "stderr_offset": self.stderr_offset,
            "since": self.since,
            "found": self.found,
        }

    def stopping_entry(self, ladder: Ladder) -> Entry:
        """The event `stopping`."""
        return {
            "e": "stopping",
            "id": self.id,
            "signal": ladder.signal,
            "reason": ladder.reason,
            "kill_at": ladder.kill_at,
        }

    def exited_entry(self, kind: str) -> Entry:
        """The event `exited`, or under the name `ended` the note before it."""
        return {
            "e": kind,
            "id": self.id,
            "code": self.code,
            "signal": self.signal,
            "reason": self.reason,
            "lost": self.lost,
            "at": self.exited_at,
            "ran_s": self.ran_s,
            "output_bytes": self.output_bytes,
            "rusage": self.rusage,
        }

    def full_entry(self) -> Entry:
        """Everything a daemon may ask about; `at` is that of the latest event."""
        over = self.state == "exited"
        entry = {**self.started_entry(), **self.exited_entry("state")}
        entry["state"] = self.state if over or self.state == "waiting" else "running"
        entry["at"] = self.exited_at if over else self.started_at
        entry["started_at"] = self.started_at
        entry["stopping"] = self.ladder is not None and not over
        entry["suspended"] = self.suspended and not over
        entry["after"] = self.after
        entry["begun"] = self.state not in ("waiting", "due")
        entry["meta"] = self.meta
        return entry

    def entries(self) -> list[Entry]:
        """The shortest record from which a successor learns the same."""
        if self.state in ("waiting", "due"):
            return []
        entries = [self.spawning_entry()]
        if self.state == "starting" and self.pid is not None:
            entries.append(self.forked_entry())
        if self.started_at is not None:
            entries.append(self.started_entry())
        if self.cgroup is not None and self.state != "exited":
            entries.append({"e": "enclosed", "id": self.id, "cgroup": self.cgroup})
        if self.suspended and self.state != "exited":
            entries.append(self.suspended_entry())
        if self.ladder is not None and self.state != "exited":
            entries.append(self.stopping_entry(self.ladder))
        if self.state in ("ended", "exited"):
            entries.append(self.exited_entry(self.state))
        return entries

    def suspended_entry(self) -> Entry:
        """The note that its processes are to stand still, or not any more."""
        return {"e": "suspended", "id": self.id, "on": self.suspended}

    def forked_entry(self) -> Entry:
        """The note that a careful start is under way in a child."""
        return {"e": "forked", "id": self.id, "pid": self.pid, "ticks": self.ticks}


def attempt_of(spec: Spec) -> Attempt:
    """Make the attempt that a start message asks for."""
    base = spec.cwd
    return Attempt(
        spec.id,
        {
            "output": os.path.join(base, spec.output),
            "stderr": spec.stderr and os.path.join(base, spec.stderr),
            "grace": spec.grace,
            "time_limit": spec.time_limit,
            "max_output": spec.max_output,
            "own_output": spec.own_output,
            "meta": spec.meta,
        },
    )


def attempts_of(entries: list[Entry]) -> dict[str, Attempt]:
    """Read records back; entries that cannot be understood are passed over."""
    attempts: dict[str, Attempt] = {}
    for entry in entries:
        if entry.get("e") == "forgotten":
            for id in entry.get("ids", []):
                attempts.pop(id, None)
        elif entry.get("e") == "spawning":
            attempts[entry["id"]] = Attempt(entry["id"], entry)
        elif (attempt := attempts.get(entry.get("id", ""))) is not None:
            _replay(attempt, entry)
    return attempts


def _replay(attempt: Attempt, entry: Entry) -> None:
    kind = entry["e"]
    if kind == "forked":
        attempt.pid, attempt.ticks = entry["pid"], entry["ticks"]
    elif kind == "started":
        attempt.state = "running"
        attempt.started_at = entry["at"]
        attempt.found = entry.get("found", False)
        attempt.stderr_offset = entry.get("stderr_offset", 0)
        for name in ("pid", "ticks", "offset", "since"):
            setattr(attempt, name, entry[name])
    elif kind == "enclosed":
        attempt.cgroup = entry["cgroup"]
    elif kind == "suspended":
        attempt.suspended = entry["on"]
    elif kind == "stopping":
        attempt.ladder = Ladder(entry["kill_at"], entry["signal"], entry["reason"])
    elif kind in ("ended", "exited"):
        attempt.state = kind
        attempt.exited_at = entry["at"]
        attempt.ran_s = entry.get("ran_s")
        for name in ("code", "signal", "reason", "lost", "output_bytes", "rusage"):
            setattr(attempt, name, entry[name])
