"""The newest answers of all workers about their devices.

Workers are asked side by side. One that is late holds nobody up: what it said last is
shown meanwhile, and marked as stale. All who look at the same time share its answer.
"""

import asyncio
import time
from collections.abc import Sequence

from grass.broker.shell.service import Broker
from grass.model.worker import Worker
from grass.queries.device_documents import device_document, unanswered_document
from grass.queries.documents import JsonObject

PATIENCE_S = 0.5
"""How long a caller waits for the workers that it asks."""
STALE_S = 3.0
"""An answer that is older is marked, where the next one is waited for."""


class DeviceReadings:
    """Asks the workers of one broker when somebody looks at their devices."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._said: dict[str, tuple[float, JsonObject]] = {}
        """By worker: its last answer, and when it came."""

    async def documents(self, workers: Sequence[Worker]) -> list[JsonObject]:
        """Return these workers with their GPUs, some of them as they were before."""
        asked = [self._asked.get(one.id) or self._ask(one) for one in workers]
        if asked:
            done, _late = await asyncio.wait(asked, timeout=PATIENCE_S)
            for one in done:
                one.result()
        return [self._shown(one) for one in workers]

    def _ask(self, worker: Worker) -> asyncio.Task[None]:
        task = asyncio.create_task(self._read(worker))
        self._asked[worker.id] = task
        return task

    async def _read(self, worker: Worker) -> None:
        try:
            document = await device_document(self._broker, worker)
            self._said[worker.id] = time.monotonic(), document
        finally:
            del self._asked[worker.id]

    def _shown(self, worker: Worker) -> JsonObject:
        if worker.id not in self._said:
            return {**unanswered_document(self._broker, worker), "stale": True}
        at, document = self._said[worker.id]
        waits = worker.id in self._asked
        return {**document, "stale": waits and time.monotonic() - at > STALE_S}
