"""What the attempts of this machine use now, and the most that each of them used.

The shell looks at processes and GPUs, and is told here when to look and at which
attempts: often while an attempt is young, as most of its memory is taken then; every
second while any runs; rarely otherwise. Points of the history gather here until they
are written.
"""

from collections.abc import Collection, Mapping

from grass.devices.readings import GpuReading
from grass.keeper.protocol import ExitEntry, Notes, StateEntry
from grass.link.messages import ProfileNoted
from grass.model.resources import GPU_KINDS, Allocation
from grass.model.usage.attempt_usage import ResourceUse, UsagePoint, most, usage_path
from grass.worker.core.attempt_table import WorkerAttempt
from grass.worker.core.causes import (
    JUST_ENDED_S,
    NO_CAUSE,
    Cause,
    Evidence,
    GpuFaults,
    cause_of,
    is_unexplained,
)
from grass.worker.core.failure_messages import (
    tells_of_gpu_fault,
    tells_of_no_gpu_memory,
)
from grass.worker.core.usage.gpu_attribution import KINDS, GpuDivision, GpuUses, Holders
from grass.worker.core.usage.measured import YOUNG_S, Measured
from grass.worker.core.usage.memory_curves import MemoryCurve, MemoryCurves
from grass.worker.core.usage.overruns import overruns
from grass.worker.core.usage.samples import (
    AttemptUse,
    ProcessUse,
    RunningAttempt,
    Sample,
)

YOUNG_LOOK_S, LOOK_S, IDLE_LOOK_S = 0.1, 1.0, 10.0
"""How often young attempts, all attempts, and idle GPUs are looked at."""
FIRST_LOOK_S = 0.3
"""At this age an attempt is looked at for the first time; many have ended by then."""
ALL_SHARE = 0.001
"""Which part of a core looking at the processes of all attempts may take."""
MOST_LOOK_S = 5.0
"""The longest pause between two looks at all processes, however many there are."""
WATCHED_S = 10.0
"""For how long after a question a client is assumed to watch."""
AFTER_END_S = 5.0
"""For how long GPUs are looked at every second after an attempt on one has ended."""
OUT_OF_MEMORY_S = 2.0
"""An exit so soon after the kernel killed a process may be of that process."""
_EARLY_S = 0.02
"""A timer may fire this much early."""


class UsageTable:
    """The usage of all attempts that run here."""

    def __init__(self, attempts: dict[str, WorkerAttempt], folder: str) -> None:
        """`attempts` is the worker's table; histories are only in `folder`."""
        self._attempts = attempts
        self._folder = folder
        self._measured: dict[str, Measured] = {}
        self._processes: dict[str, ProcessUse] = {}
        self._division = GpuDivision()
        self._all_at = float("-inf")
        self._all_every_s = LOOK_S
        self._gpus_at = float("-inf")
        self._looked_s = float("-inf")
        self._watched_until = float("-inf")
        self._unwritten: dict[str, list[UsagePoint]] = {}
        """Points by file, of attempts that have ended."""
        self._oom_kills: int | None = None
        self._out_of_memory_s = float("-inf")
        """When the kernel was last seen to have killed a process for want of memory."""
        self._faults = GpuFaults()
        self._fault_of: dict[str, frozenset[str]] = {}
        """Attempts that died of a fault of a GPU, and whose it may be."""
        self._no_gpu_memory: set[str] = set()
        """Attempts whose output says that a GPU had no memory left for them."""
        self._curves = MemoryCurves()
        self.sample = Sample(float("-inf"), (), {})
        """The last look."""

    # When to look, and at what.

    def running(self, now_s: float) -> dict[str, RunningAttempt]:
        """Return the attempts whose program runs."""
        begun = self._begun()
        return self._running({name: now_s - begun[name] for name in begun})

    def _running(self, ages: dict[str, float]) -> dict[str, RunningAttempt]:
        found = {}
        for name, age_s in ages.items():
            one = self._attempts[name]
            assert one.started is not None
            found[name] = RunningAttempt(one.started.pid, one.ticks, age_s)
        return found

    def youngest_s(self, now_s: float) -> float | None:
        """Return the age of the youngest attempt whose program runs, if any does."""
        latest_s = max(self._begun().values(), default=None)
        return None if latest_s is None else now_s - latest_s

    def _begun(self) -> dict[str, float]:
        """Return since when the attempts have run whose program runs."""
        return {
            name: one.since
            for name, one in self._attempts.items()
            if one.started is not None and one.exited is None and one.since is not None
        }

    def pause_s(self, now_s: float, *, has_gpus: bool) -> float | None:
        """Return how long to wait before the next look; None: until one starts."""
        ages = [now_s - since_s for since_s in self._begun().values()]
        watched = has_gpus and now_s < self._watched_until
        waits_s = max(0.0, FIRST_LOOK_S - max(ages)) if ages else 0.0
        if any(age_s < YOUNG_S for age_s in ages):
            interval_s = YOUNG_LOOK_S
        elif ages or watched:
            interval_s = LOOK_S
        elif has_gpus:
            interval_s = IDLE_LOOK_S
        else:
            return None
        return max(waits_s, self._looked_s + interval_s - now_s)

    def due(self, now_s: float) -> dict[str, RunningAttempt]:
        """Return the attempts to look at now: all, or in between the young ones."""
        ages = {
            name: age_s
            for name, since_s in self._begun().items()
            if (age_s := now_s - since_s) >= FIRST_LOOK_S - _EARLY_S
        }
        if now_s - self._all_at >= self._all_every_s - _EARLY_S:
            self._all_at = now_s
            return self._running(ages)
        return self._running(
            {
                name: age_s
                for name, age_s in ages.items()
                if age_s < YOUNG_S or name not in self._processes
            }
        )

    def took(self, count: int, cost_s: float) -> None:
        """Note what it cost to look at this many attempts: many are looked at less."""
        all_s = cost_s * len(self._processes) / max(1, count)
        self._all_every_s = min(max(LOOK_S, all_s / ALL_SHARE), MOST_LOOK_S)

    def known(self, now_s: float) -> dict[str, RunningAttempt]:
        """Return the attempts that a process on a GPU may be of.

        They are all but those that are too young to be looked at and hold no GPU.
        """
        return {
            name: one
            for name, one in self.running(now_s).items()
            if one.age_s >= FIRST_LOOK_S - _EARLY_S or self._holds_gpus(name)
        }

    def _holds_gpus(self, name: str) -> bool:
        held = self._attempts[name].notes.allocation
        return any(kind in held for kind in KINDS)

    def pids_without(self, due: Collection[str]) -> set[int]:
        """Return the processes of the attempts that run and are not looked at now."""
        known = self._processes
        return set[int]().union(
            *(known[name].pids for name in known if name not in due)
        )

    def needs_gpus(self, due: Mapping[str, RunningAttempt], now_s: float) -> bool:
        """Tell whether GPUs are to be read with a look at these attempts."""
        needed = now_s - self._gpus_at >= LOOK_S - _EARLY_S or any(
            one.age_s < YOUNG_S and self._holds_gpus(name) for name, one in due.items()
        )
        if needed:
            self._gpus_at = now_s
        return needed

    def watch(self, now_s: float) -> None:
        """Note that a client watches."""
        self._watched_until = now_s + WATCHED_S

    def oom_kills(self, count: int | None, now_s: float) -> None:
        """Note how many processes the kernel has killed for want of memory."""
        before, self._oom_kills = self._oom_kills, count
        if count is not None and before is not None and count > before:
            self._out_of_memory_s = now_s

    # A look.

    def left(self, uses: Mapping[str, ProcessUse]) -> set[int]:
        """Return the processes that were of an attempt and now are of none.

        Of what a look has found, `uses` is not taken in yet.
        """
        now = {**self._processes, **uses}
        running = self._begun().keys() & now.keys()
        own = {pid for name in running for pid in now[name].pids}
        before = {pid for use in self.sample.attempts.values() for pid in use.pids}
        return before.union(*(use.pids for use in uses.values())) - own

    def sampled(
        self,
        at_s: float,
        gpus: tuple[GpuReading, ...],
        uses: Mapping[str, ProcessUse],
        names: dict[int, str] | None = None,
    ) -> Sample:
        """Take in a look; of attempts that are not in `uses` the last one counts."""
        self._looked_s = at_s
        begun = self._begun()
        known = {**self._processes, **uses}
        self._processes = {name: known[name] for name in begun if name in known}
        holders = Holders(
            {name: one.pids for name, one in self._processes.items()},
            {name: self._attempts[name].notes.allocation for name in self._processes},
        )
        divided = self._division.divide(gpus, holders)
        attempts = {
            name: _attempt_use(use, divided[name])
            for name, use in self._processes.items()
        }
        for name, use in attempts.items():
            measured = self._measured.setdefault(name, Measured())
            age_s = at_s - begun[name]
            if name in uses:
                measured.add(at_s, age_s, use)
            else:
                measured.note_gpus(use)
            self._learn(name, age_s, use)
        self.sample = Sample(at_s, gpus, attempts, names or {})
        return self.sample

    def _learn(self, name: str, age_s: float, use: AttemptUse) -> None:
        """Follow the memory of an attempt that the broker learns from."""
        if self._attempts[name].notes.learns:
            self._curves.add(name, age_s, use.gpu_memory)

    # What came of it.

    def of(self, name: str) -> Measured | None:
        """Return what is known of an attempt that runs."""
        return self._measured.get(name)

    def profile_notes(self, now_s: float) -> list[ProfileNoted]:
        """Return what is new of attempts that the broker learns from."""
        if not self._curves:
            return []
        ages = {name: now_s - since_s for name, since_s in self._begun().items()}
        return [
            ProfileNoted(
                name,
                curve.peak,
                round(ages[name], 2),
                round(curve.to_peak_s, 2),
                self._attempts[name].notes.placed_at,
                late=curve.told is None,
            )
            for name, curve in self._curves.news(ages).items()
        ]

    def tell_profile(self, name: str) -> bool:
        """Have the curve of an attempt told after the next look, if it is followed."""
        attempt = self._attempts.get(name)
        follows = attempt is not None and attempt.notes.learns and not attempt.exited
        if follows:
            self._curves.tell(name)
        return follows

    def curve_of(self, name: str) -> MemoryCurve | None:
        """Forget the curve of an attempt that has ended, and return it."""
        return self._curves.ended(name)

    def recover(self, name: str, peak: ResourceUse) -> None:
        """Take in what an earlier daemon measured of an attempt."""
        known = self._measured.setdefault(name, Measured())
        known.peak = peak if known.peak is None else most([peak, known.peak])

    def telling_files(self, entry: ExitEntry) -> list[str]:
        """Return the files whose end may tell why an attempt on a GPU failed."""
        attempt = self._attempts.get(entry.id)
        if attempt is None or attempt.exited is not None:
            return []
        return _telling_files(entry, attempt.notes)

    def own_files_of(self, state: StateEntry) -> list[str]:
        """Return the same for an exit that is listed, of Grass's own files alone."""
        if state.state != "exited" or state.id in self._attempts:
            return []
        found = _telling_files(state, state.meta)
        return [path for path in found if path.startswith(f"{self._folder}/")]

    def output_ended(self, name: str, tail: bytes, now_s: float = 0.0) -> str:
        """Note how an attempt's output ends, before its exit is applied.

        Returns the GPU whose MPS server has had a fault, or nothing.
        """
        attempt = self._attempts.get(name)
        unit = "" if attempt is None else attempt.notes.mps
        if attempt is not None and unit and tells_of_gpu_fault(tail):
            others = self._clients_of(unit)
            since_s = max(attempt.since or 0.0, now_s - JUST_ENDED_S)
            self._fault_of[name] = self._faults.suspects(unit, name, others, since_s)
            return unit
        if tells_of_no_gpu_memory(tail):
            self._no_gpu_memory.add(name)
        return ""

    def _clients_of(self, unit: str) -> list[str]:
        """Return the attempts that share a GPU by MPS and have not ended."""
        return [
            name
            for name, one in self._attempts.items()
            if one.notes.mps == unit and one.exited is None
        ]

    def cause_of(self, entry: ExitEntry, now_s: float) -> Cause:
        """Return why an attempt failed, where that is known."""
        if entry.code == 0 and entry.reason is None:
            return NO_CAUSE
        attempt, known = self._attempts.get(entry.id), self._measured.get(entry.id)
        if attempt is not None and attempt.notes.mps:
            self._faults.failed(attempt.notes.mps, entry.id, now_s)
        evidence = Evidence(
            self.sample.gpus,
            now_s - self._out_of_memory_s <= OUT_OF_MEMORY_S,
            entry.id in self._no_gpu_memory,
            None if known is None else known.peak,
            overruns(self.sample, self._allocations()),
            self._fault_of.get(entry.id, frozenset()),
        )
        held = {} if attempt is None else attempt.notes.allocation
        return cause_of(entry, held, evidence)

    def _allocations(self) -> dict[str, Allocation]:
        """Return what the measured attempts have reserved."""
        return {
            name: self._attempts[name].notes.allocation
            for name in self.sample.attempts
            if name in self._attempts
        }

    def ended(self, name: str, now_s: float) -> ResourceUse | None:
        """Forget an attempt that has ended, and return the most that it used."""
        if name in self._attempts and self._holds_gpus(name):
            # What it used beyond its reservation is withheld until a look.
            self._watched_until = max(self._watched_until, now_s + AFTER_END_S)
        self._processes.pop(name, None)
        self._no_gpu_memory.discard(name)
        self._fault_of.pop(name, None)
        known = self._measured.pop(name, None)
        if known is None:
            return None
        path = self.file_of(name)
        if path is not None and known.points:
            self._unwritten.setdefault(path, []).extend(known.points)
        return known.peak

    def take_points(self) -> dict[str, list[UsagePoint]]:
        """Return the points that are to be written, by file."""
        taken, self._unwritten = self._unwritten, {}
        for name, known in self._measured.items():
            path, points, known.points = self.file_of(name), known.points, []
            if path is not None and points:
                taken[path] = points
        return taken

    def file_of(self, name: str) -> str | None:
        """Return the file with the history of an attempt."""
        attempt = self._attempts.get(name)
        return None if attempt is None else self.file_in(attempt.notes)

    def file_in(self, notes: Notes) -> str | None:
        """Return the file of a history, from the notes of its attempt."""
        path = notes.usage or usage_path(notes.output)
        inside = path is not None and path.startswith(f"{self._folder}/")
        return path if inside else None


def _telling_files(entry: ExitEntry | StateEntry, notes: Notes) -> list[str]:
    if not is_unexplained(entry) or GPU_KINDS.isdisjoint(notes.allocation):
        return []
    return [path for path in (notes.stderr, notes.output) if path is not None]


def _attempt_use(use: ProcessUse, gpus: GpuUses) -> AttemptUse:
    return AttemptUse(
        use.pids, use.memory, use.cpu_s, gpus.memory, gpus.utilization, gpus.note
    )
