"""What a broker's daemon does beside its work: forget old jobs, tell of ended ones."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator

from grass.api.routes.prune import prune_before
from grass.broker.shell.service import Broker
from grass.config import user_environment
from grass.daemon.machine import home_folder, shell
from grass.errors import GrassError
from grass.logs import EventLog
from grass.notify import Around, Notifier
from grass.settings import Settings

log = EventLog("grass.daemon")

DAY_S = 86400.0
RETENTION = "retention"
"""The actor of what is forgotten because of its age."""


async def forget_old(broker: Broker, keep_s: float) -> None:
    """Forget jobs that ended too long ago, now and then once a day."""
    while True:
        before = time.time_ns() // 1000 - int(keep_s * 1_000_000)
        try:
            gone = await prune_before(broker, RETENTION, before)
        except GrassError as error:
            log.warning("retention.failed", error=error)
        else:
            if gone.jobs:
                log.info("retention.pruned", jobs=gone.jobs, keep_s=keep_s)
        await asyncio.sleep(DAY_S)


@contextlib.asynccontextmanager
async def notifier(settings: Settings, broker: Broker) -> AsyncIterator[Notifier]:
    """Run the user's commands when jobs end, for as long as this lasts."""

    async def output_of(job: int, attempt: int) -> str:
        found = await broker.read(lambda db: db.details([job]))
        tries = [one for details in found for one in details.attempts]
        return next((one.output or "" for one in tries if one.number == attempt), "")

    around = Around(user_environment(os.environ), home_folder(), shell())
    telling = Notifier(settings, around, output_of)
    broker.on_ended = telling.ended
    try:
        yield telling
    finally:
        broker.on_ended = None
        await telling.aclose()
