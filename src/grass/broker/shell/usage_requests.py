"""Usage on demand: workers are asked what attempts use when people look.

Nothing measured is kept here or goes through a commit. A worker that does not answer in
time, such as one of an older version, is not asked again until it connects again.
"""

import asyncio
from itertools import count

from grass.broker.core.workers.message_checks import check_use
from grass.broker.shell.links import LinkOf
from grass.errors import ProtocolError
from grass.link.messages import ReadUsage, UsageData
from grass.model.usage.attempt_usage import AttemptUsage

PATIENCE_S = 2.0

Uses = dict[str, AttemptUsage]


class UsageRequests:
    """Requests that wait for a worker's answer."""

    def __init__(self, link_of: LinkOf) -> None:
        """`link_of` finds a worker's link, if it is connected."""
        self._link_of = link_of
        self._numbers = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[UsageData]]] = {}
        self._silent: set[str] = set()

    async def read(self, worker: str, attempts: list[str]) -> Uses:
        """Return what attempts use now, of those of which the worker tells."""
        said = await self._ask(worker, attempts)
        return _checked(said.attempts)

    async def device_files(self, worker: str) -> dict[str, str]:
        """Return the file with the history of each GPU of a worker."""
        return (await self._ask(worker, [], devices=True)).devices

    async def _ask(
        self, worker: str, attempts: list[str], *, devices: bool = False
    ) -> UsageData:
        link = self._link_of(worker)
        if link is None or worker in self._silent:
            return UsageData(0, {})
        number = next(self._numbers)
        answer: asyncio.Future[UsageData] = asyncio.get_running_loop().create_future()
        self._waiting[number] = worker, answer
        link.send(ReadUsage(number, attempts, devices))
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await answer
        except TimeoutError:
            self._silent.add(worker)
            return UsageData(0, {})
        finally:
            del self._waiting[number]

    def received(self, worker: str, said: UsageData) -> None:
        """Deliver a worker's answer; it is dropped if no call waits for it."""
        asked, answer = self._waiting.get(said.number, ("", None))
        if answer is not None and asked == worker and not answer.done():
            answer.set_result(said)

    def gone(self, worker: str) -> None:
        """Answer the requests that wait for a worker: nothing is known."""
        self._silent.discard(worker)
        for asked, answer in self._waiting.values():
            if asked == worker and not answer.done():
                answer.set_result(UsageData(0, {}))


def _checked(uses: Uses) -> Uses:
    """Leave out measurements that cannot be true."""
    right = {}
    for name, usage in uses.items():
        try:
            for use in (usage.now, usage.peak):
                if use is not None:
                    check_use(use)
        except ProtocolError:
            continue
        right[name] = usage
    return right
