"""The memory store on a disk that fails when it is told to."""

from collections.abc import Callable
from typing import Any

from grass.errors import DiskFull, StorageError
from grass.store.changes import Changes
from grass.store.interface import Store
from tests.simulation.memory_store import MemoryDisk, MemoryStore
from tests.simulation.world import World


class InputOutputError(StorageError):
    """A sync failed: nobody knows what is on the disk."""


def is_fatal(error: StorageError) -> bool:
    """Tell whether the daemon must stop and start anew from what is on the disk."""
    return isinstance(error, InputOutputError)


class FaultyStore(MemoryStore):
    """A store that may fail; whatever is written is shown to an observer."""

    def __init__(
        self, disk: MemoryDisk, world: World, written: Callable[[Changes], None]
    ) -> None:
        super().__init__(disk)
        self._world = world
        self._written = written
        self.full = False
        self.reserve = 0
        """So many commits a full disk still takes."""
        self.unreadable = False
        self.fails_in = 0
        """How many commits from now the disk fails; 0: it does not."""

    def commit(self, changes: Changes) -> None:
        """Write durably, or fail as was drawn."""
        if self.full:
            if not self.reserve:
                raise DiskFull("the disk is full")
            self.reserve -= 1
        if self.fails_in:
            self.fails_in -= 1
            if not self.fails_in:
                if self._world.chance(0.5):
                    self.write_anyway(changes)
                raise InputOutputError("an input/output error")
        self.write_anyway(changes)

    def fill(self) -> None:
        """Leave no room but what is kept back."""
        self.full, self.reserve = True, self._world.rng.choice((0, 3, 30))

    def shortage(self) -> StorageError | None:
        """Tell that nothing may be added for want of room."""
        return DiskFull("the disk is full") if self.full else None

    def read(self, query: Callable[[Store], Any]) -> Any:
        """Read for a broker that runs; none is started while that is impossible."""
        if self.unreadable:
            raise StorageError("the disk cannot be read")
        return query(self)

    def heal(self) -> None:
        """Let it be read and written again."""
        self.full = self.unreadable = False

    def write_anyway(self, changes: Changes) -> None:
        """Write it, whoever learns of that."""
        self._written(changes)
        super().commit(changes)
