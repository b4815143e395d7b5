"""Sorted amounts, each with its best entry, and the best entry of any range.

The question asked of it after every release: of all shapes that ask for at most this
much, which goes first? Amounts stand in blocks of bounded size, each with its own best,
so a question looks at whole blocks by their best and into two blocks at most.
"""

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grass.scheduler.ranks import Ranked

BLOCK = 48


class _Block:
    __slots__ = ("amounts", "best", "entries")

    def __init__(self, amounts: list[int], entries: "list[Ranked]") -> None:
        self.amounts = amounts
        self.entries = entries
        self.best = min(entries)

    def put(self, amount: int, entry: "Ranked") -> None:
        at = bisect_left(self.amounts, amount)
        if at < len(self.amounts) and self.amounts[at] == amount:
            former = self.entries[at]
            self.entries[at] = entry
            if former is self.best:
                self.best = min(self.entries)
        else:
            self.amounts.insert(at, amount)
            self.entries.insert(at, entry)
        self.best = min(self.best, entry)

    def remove(self, amount: int) -> None:
        at = bisect_left(self.amounts, amount)
        del self.amounts[at]
        if self.entries.pop(at) is self.best and self.entries:
            self.best = min(self.entries)

    def best_within(self, above: int, up_to: int) -> "Ranked | None":
        amounts = self.amounts
        if amounts[0] > above and amounts[-1] <= up_to:
            return self.best
        low, high = bisect_right(amounts, above), bisect_right(amounts, up_to)
        return min(self.entries[low:high], default=None)


class Ladder:
    """The best entry per amount, and over ranges of amounts."""

    __slots__ = ("_blocks", "_lasts")

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._lasts: list[int] = []

    def put(self, amount: int, entry: "Ranked") -> None:
        """Set the best entry of an amount."""
        if not self._blocks:
            self._blocks.append(_Block([amount], [entry]))
            self._lasts.append(amount)
            return
        at = min(bisect_left(self._lasts, amount), len(self._lasts) - 1)
        block = self._blocks[at]
        block.put(amount, entry)
        self._lasts[at] = block.amounts[-1]
        if len(block.amounts) > BLOCK:
            self._split(at)

    def remove(self, amount: int) -> None:
        """Forget an amount that is known."""
        at = bisect_left(self._lasts, amount)
        block = self._blocks[at]
        block.remove(amount)
        if block.amounts:
            self._lasts[at] = block.amounts[-1]
        else:
            del self._blocks[at]
            del self._lasts[at]

    def best(self, above: int, up_to: int) -> "Ranked | None":
        """Return the best entry with an amount above one bound and up to another."""
        found = None
        for at in range(bisect_right(self._lasts, above), len(self._blocks)):
            block = self._blocks[at]
            if block.amounts[0] > up_to:
                break
            if found is None or block.best < found:
                entry = block.best_within(above, up_to)
                if entry is not None and (found is None or entry < found):
                    found = entry
        return found

    def top(self) -> "Ranked | None":
        """Return the best entry of all."""
        return min((block.best for block in self._blocks), default=None)

    def greatest(self) -> int:
        """Return the largest amount known, 0 if none."""
        return self._lasts[-1] if self._lasts else 0

    def _split(self, at: int) -> None:
        block = self._blocks[at]
        middle = len(block.amounts) // 2
        left = _Block(block.amounts[:middle], block.entries[:middle])
        right = _Block(block.amounts[middle:], block.entries[middle:])
        self._blocks[at : at + 1] = [left, right]
        self._lasts[at : at + 1] = [left.amounts[-1], right.amounts[-1]]
