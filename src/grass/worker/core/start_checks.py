"""Starts on GPUs are checked against a fresh look at the devices.

A broker places by what it was last told. So before a start on a GPU the worker looks
once more, unless it has just done so, and returns a start whose memory is not there,
after it told the broker what is: the broker does not place it there again. While a
start waits for the look it holds its units, as one does that the keeper has not
received. A broker that ignores what is withheld would place it again at once, so it
gets no start back for that.

A start whose blobs are still being fetched waits in the same way, and so does one that
is to follow it.
"""

from collections.abc import Iterator

from grass.link.messages import Withheld
from grass.model.amount_text import amount_text
from grass.model.resources import Allocation
from grass.worker.core.admission import Admission
from grass.worker.core.attempt_table import AttemptTable, WorkerAttempt
from grass.worker.core.usage.samples import Sample

FRESH_S = 1.0
"""A look is used for starts for this long."""


class StartChecks:
    """Which starts wait for a look, and what the broker knows of the devices."""

    def __init__(self, table: AttemptTable, admission: Admission | None) -> None:
        """Without an `Admission` nothing is checked: the devices are not read."""
        self._table = table
        self._admission = admission
        self._supported = False
        """Whether the broker takes into account what is withheld."""
        self._told: Withheld | None = None
        """What it was last told."""

    def for_hello(self) -> Withheld | None:
        """Return what a hello tells."""
        self._told = None if self._admission is None else self._admission.told
        return self._told

    def welcomed(self, supported: bool) -> list[Withheld]:
        """Note whether the broker supports it; return what changed since the hello."""
        self._supported = supported
        return self._news()

    def sampled(self, sample: Sample, now_s: float) -> list[Withheld]:
        """Note a look at the devices; return what to tell the broker."""
        if self._admission is None:
            return []
        self._admission.sampled(sample, self._table.reserved(), now_s)
        return self._news()

    def holds(self, attempt: WorkerAttempt, now_s: float) -> bool:
        """Tell whether a start must wait for a look; its units are allocated already.

        One that waits for its predecessor is sent after that one.
        """
        if attempt.after is not None:
            return self._table.attempts[attempt.after].unchecked
        if self._admission is None or not self._supported:
            return False
        if "vram" not in attempt.notes.allocation:
            return False
        last_s = self._admission.looked_at_s
        return last_s is None or not 0 <= now_s - last_s <= FRESH_S

    def shrunk(self) -> None:
        """Use the last look for no start: it counted what an attempt has no more."""
        if self._admission is not None:
            self._admission.looked_at_s = None

    def waiting(self) -> Iterator[tuple[str, WorkerAttempt]]:
        """Yield the starts that waited for a look, in order, as ones that do not."""
        for name, attempt in list(self._table.attempts.items()):
            if (
                attempt.unchecked
                and not attempt.fetching
                and not self._follows(attempt)
            ):
                attempt.unchecked = False
                yield name, attempt

    def _follows(self, attempt: WorkerAttempt) -> bool:
        """Tell whether the start before this one still waits."""
        before = self._table.attempts.get(attempt.after or "")
        return before is not None and before.unchecked

    def fetched(self, name: str, now_s: float) -> Iterator[tuple[str, WorkerAttempt]]:
        """Yield the starts that waited only for the blobs of this one."""
        attempt = self._table.attempts.get(name)
        while attempt is not None and attempt.unchecked:
            attempt.fetching = False
            if self.holds(attempt, now_s):
                return
            attempt.unchecked = False
            yield name, attempt
            name = self._table.followers.get(name, "")
            attempt = self._table.attempts.get(name)
            if attempt is not None and attempt.fetching:
                return

    def refusal(self, attempt: WorkerAttempt) -> str | None:
        """Say why a start cannot have its units, which are allocated to it; or None."""
        told = None if self._admission is None else self._admission.told
        if told is None or not self._supported or attempt.after is not None:
            return None
        allocation = attempt.notes.allocation
        guest = None if attempt.start is None else attempt.start.guest
        for unit in {**allocation.get("gpu", {}), **allocation.get("vram", {})}:
            fault = told.faults.get(unit)
            if fault is not None:
                return f"gpu {unit}: {fault}"
        return self._shortage(allocation, told, guest)

    def _shortage(
        self, allocation: Allocation, told: Withheld, guest: int | None
    ) -> str | None:
        withheld, own = told.units.get("vram", {}), told.processes.get(guest or 0, {})
        for unit in allocation.get("vram", {}):
            others = withheld.get(unit, 0) - own.get(unit, 0)
            short = self._table.units.missing(unit, others)
            if short:
                users = ", ".join(told.strangers.get(unit, ()))
                text = f"gpu {unit} has {amount_text(short, 'vram')} less than it needs"
                return f"{text}; {users}" if users else text
        return None

    def _news(self) -> list[Withheld]:
        told = None if self._admission is None else self._admission.told
        if told is None or told is self._told or not self._supported:
            return []
        self._told = told
        return [told]
