"""How the GPU memory of attempts grows: what a profile of their type is made of.

Only attempts are followed that the broker learns from. Once the memory of one has been
flat for three times as long as it took to get there, and for ten seconds at least, the
broker is told: a training of a week need not end before others of its type can start.
It is told again when the memory grows after all. Of one that is not flat after ten
minutes, as it hangs or grows without end, the broker is told that: others do not wait.
"""

from collections.abc import Mapping

import msgspec

MIB = 2**20
FLAT_S = 10.0
FLAT_TIMES = 3
"""Flat is what has not grown for this many times the time to its peak."""
FLAT_UNSEEN_S = 60.0
"""The same for an attempt that was not measured from its beginning."""
LONGEST_S = 600.0
"""After this time jobs of its type no longer wait for it to become flat."""
LEAST_STEP = 32 * MIB
STEP_PART = 100
"""Memory has grown if it did by more than this part, a hundredth."""
SEEN_S = 2.0
"""An attempt is followed from its beginning if it was measured so early."""


class MemoryCurve(msgspec.Struct):
    """The most that one attempt used of one GPU, over time."""

    first_s: float
    """At which age it was first measured."""
    peak: int = 0
    to_peak_s: float = 0.0
    """When it had last grown by more than a little."""
    level: int = 0
    """What it had used then."""
    marks: list[int] = []
    """What it had used at most 1, 2, 4, 8 and so on seconds after its start."""
    told: int | None = None
    """What the broker was told."""
    is_late: bool = False
    """Whether the broker was told that it did not become flat in time."""

    @property
    def is_whole(self) -> bool:
        """Whether it was measured from its beginning on."""
        return self.first_s <= SEEN_S

    def add(self, age_s: float, memory: int) -> None:
        """Take in one measurement."""
        while self.is_whole and 2 ** len(self.marks) <= age_s:
            self.marks.append(self.peak)
        self.peak = max(self.peak, memory)
        if self.peak > self.level + max(LEAST_STEP, self.level // STEP_PART):
            self.level, self.to_peak_s = self.peak, age_s

    def is_flat(self, age_s: float) -> bool:
        """Tell whether it will probably not grow any more."""
        if not self.level:
            return False
        if not self.is_whole:
            return age_s - self.to_peak_s >= FLAT_UNSEEN_S
        return age_s - self.to_peak_s >= max(FLAT_S, FLAT_TIMES * self.to_peak_s)

    def is_news(self, age_s: float) -> bool:
        """Tell whether the broker is to be told, and note that it is."""
        if self.told is None and not self.is_flat(age_s):
            was_late, self.is_late = self.is_late, age_s >= LONGEST_S
            return self.is_late and not was_late
        if self.told is not None and self.level <= self.told:
            return False
        self.told = self.level
        return True


class MemoryCurves:
    """The curves of the attempts that are followed."""

    def __init__(self) -> None:
        self._of: dict[str, MemoryCurve] = {}
        self._asked: set[str] = set()

    def __bool__(self) -> bool:
        """Tell whether any attempt is followed."""
        return bool(self._of)

    def add(self, name: str, age_s: float, memory: Mapping[str, int]) -> None:
        """Take in what an attempt uses of each of its GPUs."""
        curve = self._of.setdefault(name, MemoryCurve(age_s))
        curve.add(age_s, max(memory.values(), default=0))

    def news(self, ages_s: Mapping[str, float]) -> dict[str, MemoryCurve]:
        """Return the curves of which the broker is to be told."""
        found = {name: one for name, one in self._of.items() if name in ages_s}
        return {
            name: curve
            for name, curve in found.items()
            if curve.is_news(ages_s[name]) or self._is_asked(name, curve)
        }

    def _is_asked(self, name: str, curve: MemoryCurve) -> bool:
        """Tell whether the broker asked for a curve, which is known by now."""
        if name not in self._asked or not curve.level:
            return False
        self._asked.discard(name)
        curve.told = curve.level
        return True

    def tell(self, name: str) -> None:
        """Have a curve told with the next look at its attempt, flat or not."""
        self._asked.add(name)

    def ended(self, name: str) -> MemoryCurve | None:
        """Forget an attempt that has ended, and return its curve."""
        self._asked.discard(name)
        return self._of.pop(name, None)
