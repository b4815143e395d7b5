"""Who named a job, found by its id: an index of ranges of ids.

A range is cut into aligned blocks of 1, 2, 4, 8 ... ids, at most two of each size, and
each block keeps its holders. So a range of a hundred thousand ids is some thirty
entries, and an id is in as many blocks as there are sizes in use.
"""

from collections.abc import Iterable, Iterator

from grass.model.id_runs import Runs


class RangeIndex:
    """Holders by the ranges that they named.

    A holder names a block once: its own ranges do not overlap.
    """

    def __init__(self) -> None:
        self._levels: dict[int, dict[int, dict[int, None]]] = {}
        """By the binary logarithm of the size: blocks, and the holders of each."""

    def __eq__(self, other: object) -> bool:
        """Return whether the same holders name the same ids."""
        return isinstance(other, RangeIndex) and self._levels == other._levels

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        """Return whether anything is named."""
        return bool(self._levels)

    def __contains__(self, number: int) -> bool:
        """Return whether any holder names this id."""
        return any(number >> level in blocks for level, blocks in self._levels.items())

    def add(self, runs: Runs, holder: int) -> None:
        """Name ranges; naming them a second time changes nothing."""
        for level, block in _blocks(runs):
            blocks = self._levels.setdefault(level, {})
            blocks.setdefault(block, {})[holder] = None

    def discard(self, runs: Runs, holder: int) -> list[tuple[int, int]]:
        """Forget that a holder named ranges; return the parts that no other names so.

        Another holder may name an id of these parts by a block of another size.
        """
        freed: list[tuple[int, int]] = []
        for level, block in _blocks(runs):
            blocks = self._levels.get(level, {})
            holders = blocks.get(block)
            if holders is None:
                continue
            holders.pop(holder, None)
            if not holders:
                del blocks[block]
                freed.append((block << level, ((block + 1) << level) - 1))
            if not blocks:
                del self._levels[level]
        return freed

    def holders(self, number: int) -> list[int]:
        """Return who names an id."""
        found: list[int] = []
        for level, blocks in self._levels.items():
            found += blocks.get(number >> level, ())
        return found

    def among(self, numbers: Iterable[int]) -> list[int]:
        """Return those of the ids that anybody names."""
        return [one for one in numbers if one in self] if self._levels else []


def entries(runs: Runs) -> int:
    """Return how many entries a holder of these ranges has."""
    return sum(1 for _ in _blocks(runs))


def _blocks(runs: Runs) -> Iterator[tuple[int, int]]:
    """Cut ranges into aligned blocks: the level and the number of each."""
    for first, last in runs:
        begin, end, level = first, last + 1, 0
        while begin < end:
            if begin & 1:
                yield level, begin
                begin += 1
            if end & 1:
                end -= 1
                yield level, end
            begin, end, level = begin >> 1, end >> 1, level + 1
