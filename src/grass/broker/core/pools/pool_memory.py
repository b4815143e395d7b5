"""The rows of pools and pilots, what changed of them, and what is to be done.

A step changes rows and adds effects. Changed rows are committed first and effects are
carried out afterwards, so every pilot that an engine may have is in the store.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from grass.errors import NotFound, Refused
from grass.model.pools import Pilot, PilotStage, Pool, PoolEnvironment
from grass.store.changes import Changes


class Submit(msgspec.Struct, frozen=True):
    """Submit a pilot; the outcome comes back as a step of `engine_answers`."""

    pool: str
    mark: str


class CancelPilots(msgspec.Struct, frozen=True):
    """Have the engine end these jobs."""

    pool: str
    engine_ids: tuple[str, ...]


class DrainWorker(msgspec.Struct, frozen=True):
    """Place nothing more on the worker of a pilot."""

    worker: str


class RefusedJob(NamedTuple):
    """A job for which the engine has refused a pilot of its own."""

    times: int
    retry_at: int | None
    """None: no pilot is asked for any more."""
    pool: str
    words: str
    """Why, in the engine's words or in those of what came."""


class Silence(NamedTuple):
    """An engine that does not answer."""

    words: str
    again_at: int
    """When it is asked again."""


PoolEffect = Submit | CancelPilots | DrainWorker


def placeholder(pool: str) -> str:
    """Return the name of the worker that may come; no worker's id looks like it."""
    return f"pool {pool}"


class PoolMemory:
    """All pools and pilots."""

    def __init__(
        self, pools: Iterable[Pool] = (), pilots: Iterable[Pilot] = ()
    ) -> None:
        self.pools = {pool.name: pool for pool in pools}
        self.pilots = {pilot.mark: pilot for pilot in pilots}
        self.changed_pools: dict[str, Pool] = {}
        self.removed_pools: list[str] = []
        self.changed_pilots: dict[str, Pilot] = {}
        self.removed_pilots: list[str] = []
        self.effects: list[PoolEffect] = []
        self.bound: dict[int, str] = {}
        """By job the worker of the pilot that is there for it alone; not stored."""
        self.taken_back: set[str] = set()
        """Workers that their engines are about to end; not stored."""
        self.refused_jobs: dict[int, RefusedJob] = {}
        """Jobs whose own pilots were refused; not stored."""
        self.silent: dict[str, Silence] = {}
        """Pools whose engines did not answer when they were last asked; not stored."""
        self.left: set[str] = set()
        """Marks of pilots that are over, whose workers are not forgotten yet."""

    def move_to(self, changes: Changes) -> None:
        """Have a batch write what changed since the last one."""
        changes.pools.update(self.changed_pools)
        changes.removed_pools.extend(self.removed_pools)
        changes.pilots.update(self.changed_pilots)
        changes.removed_pilots.extend(self.removed_pilots)
        self.changed_pools, self.removed_pools = {}, []
        self.changed_pilots, self.removed_pilots = {}, []

    @property
    def in_use(self) -> bool:
        """Whether there is a pool, or what is left of one."""
        return bool(self.pools or self.left)

    @property
    def changed(self) -> bool:
        """Whether there is something to write or to do."""
        rows = self.changed_pools or self.changed_pilots
        return bool(rows or self.removed_pools or self.removed_pilots or self.effects)

    def find(self, name: str) -> Pool:
        """Return a pool that is not about to go."""
        pool = self.pools.get(name)
        if pool is not None and pool.removing:
            raise Refused(f"pool `{name}` is being removed")
        if pool is None:
            known = ", ".join(sorted(self.pools))
            raise NotFound(
                f"there is no pool `{name}`", f"pools: {known or 'none yet'}"
            )
        return pool

    def shares_home(self, worker: str) -> bool:
        """Return whether a worker is a pilot that has its callers' files."""
        return any(
            self.pools[one.pool].environment is PoolEnvironment.CALLER
            for one in self.pilots.values()
            if one.worker == worker
        )

    def has_worker(self, worker: str) -> bool:
        """Return whether a worker is that of a pilot."""
        return any(one.worker == worker for one in self.pilots.values())

    def pool_of(self, worker: str) -> str | None:
        """Return the pool of a pilot's worker; None: it is in none."""
        pilots = self.pilots.values()
        return next((one.pool for one in pilots if one.worker == worker), None)

    def pilots_of(self, pool: str) -> list[Pilot]:
        """Return all pilots of a pool that may be alive."""
        return [one for one in self.pilots.values() if one.pool == pool]

    def coming(self, pool: str) -> list[Pilot]:
        """Return the pilots whose workers have not come, and still may."""
        stages = (PilotStage.ASKED, PilotStage.SUBMITTED)
        return [one for one in self.pilots_of(pool) if one.stage in stages]

    def save_pool(self, pool: Pool) -> None:
        """Write a pool with this batch."""
        self.pools[pool.name] = self.changed_pools[pool.name] = pool

    def save(self, pilot: Pilot) -> None:
        """Write a pilot with this batch."""
        self.pilots[pilot.mark] = self.changed_pilots[pilot.mark] = pilot

    def drop(self, pilot: Pilot) -> None:
        """Forget a pilot of which nothing is left, and a pool that waited for that."""
        del self.pilots[pilot.mark]
        self.changed_pilots.pop(pilot.mark, None)
        self.removed_pilots.append(pilot.mark)
        self.left.add(pilot.mark)
        self.drop_if_left(self.pools[pilot.pool])

    def drop_if_left(self, pool: Pool) -> None:
        """Forget a pool that is to be removed, once it has no pilot."""
        if pool.removing and not self.pilots_of(pool.name):
            del self.pools[pool.name]
            self.silent.pop(pool.name, None)
            self.changed_pools.pop(pool.name, None)
            self.removed_pools.append(pool.name)
