"""Jobs as one viewer may see them: single ones, listings and the overview.

Values of the environment in other people's commands are hidden from a viewer that has
not the right to operate on them.
"""

import asyncio
import time
from typing import NamedTuple

import msgspec

from grass.broker.core.state import State
from grass.broker.shell.service import Broker
from grass.model.jobs.job import Job
from grass.model.queue import Queue
from grass.queries.cluster_documents import (
    ForgottenNames,
    daemon_document,
    queue_document,
    worker_document,
)
from grass.queries.documents import JsonObject
from grass.queries.job_documents import array_document, hide_values, job_document
from grass.queries.listing import Listing, Picture
from grass.queries.pool_documents import pool_documents
from grass.queries.usage_documents import usage_fields, usage_now
from grass.store.interface import JobDetails

PRESENTED_AT_ONCE = 100


class Viewer(NamedTuple):
    """Who looks at jobs."""

    actor: str
    operates: bool
    """Whether nothing is hidden from it."""


class DaemonFacts(NamedTuple):
    """What an overview tells of the daemon that no query knows."""

    version: str
    started_at: int
    tcp: JsonObject | None


class Presenter:
    """Makes documents of what was read from the store."""

    def __init__(self, broker: Broker, names: ForgottenNames) -> None:
        self._broker = broker
        self._names = names

    async def jobs(
        self, viewer: Viewer, found: list[JobDetails], *, usage: bool = False
    ) -> list[JsonObject]:
        """Return jobs as documents, in slices: a long page must not delay starts."""
        broker = self._broker
        forgotten = await self._names.of_jobs(broker, found)
        uses = await usage_now(broker, found) if usage else {}
        shown: list[JsonObject] = []
        for begin in range(0, len(found), PRESENTED_AT_ONCE):
            state, now_s = broker.state, time.monotonic()
            for details in found[begin : begin + PRESENTED_AT_ONCE]:
                document = job_document(details, state, now_s, forgotten)
                if usage:
                    document |= usage_fields(details, uses.get(details.job.id))
                shown.append(for_viewer(viewer, details.job, document))
            await asyncio.sleep(0)
        return shown

    async def listing(
        self, viewer: Viewer, found: Listing, *, usage: bool = False
    ) -> JsonObject:
        """Return the jobs of a view, its arrays, and what it leaves out."""
        jobs = await self.jobs(viewer, found.jobs, usage=usage)
        waits = {one["array"]: one["reason"] for one in reversed(jobs) if _waits(one)}
        arrays = []
        for one in found.arrays:
            document = array_document(one, waits.get(one.totals.first))
            arrays.append(for_viewer(viewer, one.shown.job, document))
        left_out = found.left_out
        return {
            "jobs": jobs,
            "arrays": arrays,
            "totals": found.totals,
            "more": sum(left_out.values()),
            "more_by_state": left_out,
        }

    async def overview(
        self,
        viewer: Viewer,
        facts: DaemonFacts,
        found: Picture,
        queues: list[Queue],
        *,
        usage: bool = False,
    ) -> JsonObject:
        """Return the daemon, workers, these queues, and the jobs of a picture."""
        state = self._broker.state
        return {
            "daemon": self._daemon(facts, state, found),
            "workers": [worker_document(one, state) for one in state.workers.values()],
            "pools": msgspec.to_builtins(pool_documents(state)),
            "queues": [
                queue_document(one, state, found.queues.get(one.name, {}))
                for one in queues
            ],
            **await self.listing(viewer, found.listing, usage=usage),
        }

    def _daemon(self, facts: DaemonFacts, state: State, found: Picture) -> JsonObject:
        return {
            **daemon_document(facts.version, facts.started_at, state, found.totals),
            "full": self._broker.shortage() is not None,
            "last_event": found.last_event,
            "last_job": state.last_job,
            "tcp": facts.tcp,
        }


def for_viewer(viewer: Viewer, job: Job, document: JsonObject) -> JsonObject:
    """Hide values of the environment in other people's commands."""
    if not viewer.operates and job.owner != viewer.actor:
        hide_values(job, document)
    return document


def _waits(document: JsonObject) -> bool:
    return document["state"] in ("queued", "waiting", "held")
