"""Workers and the units they have."""

import msgspec

from grass.model.resources import Capacity


class Unit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of a kind, with what the device itself says about it."""

    amount: int
    details: dict[str, str | int] = {}


Found = dict[str, dict[str, Unit]]
"""Kind to unit name to unit, as found on a machine."""


class Worker(msgspec.Struct):
    """The agent of one machine, as the broker knows it."""

    id: str
    """Random, kept in the worker's home, apart from its name."""
    name: str
    boot: str = ""
    found: Found = {}
    added: Capacity = {}
    connected: bool = False
    drained: dict[str, list[str]] = {}
    """Units on which nothing new starts, by kind."""

    def found_capacity(self) -> Capacity:
        """Give the found units as plain amounts."""
        return {
            kind: {name: unit.amount for name, unit in units.items()}
            for kind, units in self.found.items()
        }
