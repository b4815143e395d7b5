"""The newest answers of all workers about their devices.

Workers are asked side by side, and each again when it has answered. One that is late
holds nobody up: what it said last is shown meanwhile, and marked as stale.
"""

import asyncio

from grass.broker.shell.service import Broker
from grass.model.worker import Worker
from grass.queries.device_documents import device_document, unanswered_document
from grass.queries.documents import JsonObject

PATIENCE_S = 0.5
"""How long the others wait for one, once each time that it is asked."""


class DeviceReadings:
    """Asks the workers of one broker while somebody follows their devices."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._asked: dict[str, asyncio.Task[JsonObject]] = {}
        self._said: dict[str, JsonObject] = {}
        """By worker: its last answer."""

    async def documents(self) -> list[JsonObject]:
        """Return all workers with their GPUs, some of them as they were before."""
        workers = list(self._broker.state.workers.values())
        new = [self._ask(one) for one in workers if one.id not in self._asked]
        if new:
            await asyncio.wait(new, timeout=PATIENCE_S)
        for id, task in list(self._asked.items()):
            if task.done():
                self._said[id] = self._asked.pop(id).result()
        return [self._shown(one) for one in workers]

    def stop(self) -> None:
        """Ask nobody any more."""
        for task in self._asked.values():
            task.cancel()

    def _ask(self, worker: Worker) -> asyncio.Task[JsonObject]:
        task = asyncio.create_task(device_document(self._broker, worker))
        self._asked[worker.id] = task
        return task

    def _shown(self, worker: Worker) -> JsonObject:
        said = self._said.get(worker.id) or unanswered_document(self._broker, worker)
        return {**said, "stale": worker.id in self._asked}
