"""The memory store on a disk with injected faults."""

from collections.abc import Callable
from typing import Any

from grass.errors import DiskFull, StorageError
from grass.store.changes import Changes
from grass.store.interface import Store
from tests.simulation.memory_store import MemoryDisk, MemoryStore
from tests.simulation.world import World


class InputOutputError(StorageError):
    """A sync failed: what is on the disk is unknown."""


def is_fatal(error: StorageError) -> bool:
    """Return whether the daemon must stop and load what is on the disk."""
    return isinstance(error, InputOutputError)


class FaultyStore(MemoryStore):
    """A store that may fail; an observer gets all that is written."""

    def __init__(
        self, disk: MemoryDisk, world: World, written: Callable[[Changes], None]
    ) -> None:
        super().__init__(disk)
        self._world = world
        self._written = written
        self.full = False
        self.reserve = 0
        """How many commits a full disk still takes."""
        self.unreadable = False
        self.fails_in = 0
        """How many commits from now the disk fails; 0: it does not."""

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        """Write durably, or fail if a fault is due."""
        if self.full:
            if not self.reserve:
                raise DiskFull("the disk is full")
            self.reserve -= 1
        if self.fails_in:
            self.fails_in -= 1
            if not self.fails_in:
                if self._world.chance(0.5):
                    self.write_anyway(changes, epoch)
                raise InputOutputError("an input/output error")
        self.write_anyway(changes, epoch)

    def fill(self) -> None:
        """Fill the disk, except for a reserve."""
        self.full, self.reserve = True, self._world.rng.choice((0, 3, 30))

    def shortage(self) -> StorageError | None:
        """Return an error if the disk is full."""
        return DiskFull("the disk is full") if self.full else None

    def read(self, query: Callable[[Store], Any]) -> Any:
        """Read for a running broker; fails while the disk is unreadable."""
        if self.unreadable:
            raise StorageError("the disk cannot be read")
        return query(self)

    def heal(self) -> None:
        """End all faults of the disk."""
        self.full = self.unreadable = False

    def write_anyway(self, changes: Changes, epoch: int = 0) -> None:
        """Write it, acknowledged or not."""
        self.disk.lead.check(epoch)
        self._written(changes)
        super().commit(changes, epoch)
