"""Workers that were forgotten: the journal still knows their names.

Jobs go on naming them, as where they ran or as where alone they may run. A name is
looked up when somebody asks, and kept.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from starlette.requests import HTTPConnection

from grass.broker.shell.service import Broker
from grass.store import Store
from grass.store.changes import StoredEvent
from grass.store.interface import JobDetails

KIND = "worker-forgotten"
_PAGE = 1000

Former = Mapping[str, str]
"""The names of workers that were forgotten, by id."""


class FormerNames:
    """The names of forgotten workers, by id."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._read_to = 0

    async def of_jobs(self, broker: Broker, jobs: Sequence[JobDetails]) -> Former:
        """Give the names of those that these jobs speak of."""
        asked = {job.spec.worker for job in jobs if job.spec.worker is not None}
        asked |= {one.worker for job in jobs for one in job.attempts}
        return await self.of(broker, asked)

    async def of(self, broker: Broker, workers: Iterable[str]) -> Former:
        """Give the names of those among these workers that were forgotten."""
        unknown = set(workers) - broker.state.workers.keys() - self._names.keys()
        if unknown:
            after = self._read_to
            last, found = await broker.read(lambda db: _forgotten(db, after))
            self._read_to = max(self._read_to, last)
            self._names.update(map(_named, found))
        return self._names


def former_names(request: HTTPConnection) -> FormerNames:
    """Find what is known to the daemon that a request is for."""
    known = request.app.state.former_names
    assert isinstance(known, FormerNames)
    return known


def _forgotten(store: Store, after: int) -> tuple[int, list[StoredEvent]]:
    last, found = store.last_event(), list[StoredEvent]()
    while page := store.events(after, _PAGE, None, (KIND,)):
        found += page
        after = page[-1].seq
    return max(last, after), found


def _named(event: StoredEvent) -> tuple[str, str]:
    told = msgspec.json.decode(event.data)
    return str(told["worker"]), str(told["name"])
