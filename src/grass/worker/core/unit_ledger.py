"""What is given out on this machine, kept by the worker itself.

The broker decides; the worker checks. Whatever a broker may get wrong, no unit here is
ever given out twice.
"""

from grass.model.resources import Allocation, Capacity


class Ledger:
    """Amounts held per unit, never above its capacity."""

    def __init__(self) -> None:
        self._capacity: Capacity = {}
        self._held: dict[tuple[str, str], int] = {}

    def set_capacity(self, capacity: Capacity) -> None:
        """Learn what there is; what is held stays held."""
        self._capacity = capacity

    def excess(self, allocation: Allocation) -> str | None:
        """Name the first unit that this would give out beyond its capacity."""
        for kind, amounts in allocation.items():
            known = self._capacity.get(kind, {})
            for unit, amount in amounts.items():
                if self._held.get((kind, unit), 0) + amount > known.get(unit, 0):
                    return f"{kind} {unit}"
        return None

    def hold(self, allocation: Allocation) -> None:
        """Give these amounts out."""
        for kind, amounts in allocation.items():
            for unit, amount in amounts.items():
                self._held[kind, unit] = self._held.get((kind, unit), 0) + amount

    def release(self, allocation: Allocation) -> None:
        """Take these amounts back."""
        for kind, amounts in allocation.items():
            for unit, amount in amounts.items():
                left = self._held[kind, unit] - amount
                if left:
                    self._held[kind, unit] = left
                else:
                    del self._held[kind, unit]
