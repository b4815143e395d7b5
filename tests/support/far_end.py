"""A worker's end of a link, played by a test."""

import asyncio

from grass.link.channel import LinkEnd
from grass.link.messages import Exited, Hello, ToBroker, ToWorker
from tests.support.building import BOOT, WORKER, units


class FarEnd:
    """The far end of the link: keeps what it hears, and says what the test wants."""

    def __init__(self, link: LinkEnd[ToBroker, ToWorker]) -> None:
        self.link = link
        self.heard: list[ToWorker] = []
        self._news = asyncio.Event()
        link.listen(self._take, lambda: None)

    def _take(self, messages: list[ToWorker]) -> None:
        self.heard += messages
        self._news.set()

    async def hears(self, kind: type[ToWorker]) -> ToWorker:
        while True:
            for message in self.heard:
                if isinstance(message, kind):
                    self.heard.remove(message)
                    return message
            self._news.clear()
            await self._news.wait()

    def hello(self, exited: list[Exited] | None = None) -> None:
        found = units("{cpu:2}")
        hello = Hello(WORKER, "desk", BOOT, found, [], exited or [], runs_tasks=True)
        self.link.send(hello)
