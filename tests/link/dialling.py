"""A worker's side of a link for tests: it dials, and keeps what arrives."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from grass.link.dialer import Dialer, DialerState, Phase
from grass.link.messages import Exited, Hello, Resync, ToWorker
from grass.model.addresses import Address
from tests.support.building import units
from tests.support.patience import PATIENCE_S

TOKEN = "desk.s3cret"
HELLO = Hello("w1", "desk", "boot", units("{cpu:1}"), [], [], at=5.0)


class Owner:
    """Sends a hello after a resync, and keeps what arrives."""

    def __init__(self, addresses: list[Address], pin: str) -> None:
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        """What is reported of the link, each line once until another comes."""
        self.states: asyncio.Queue[DialerState] = asyncio.Queue()
        self.last = DialerState()
        self.dialer = Dialer(addresses, pin, lambda: TOKEN, "w1")
        self.dialer.on_state = self.on_state
        self.got: asyncio.Queue[ToWorker] = asyncio.Queue()
        self.ends = 0
        self.dialer.listen(self.arrived, self.ended)

    def on_state(self, state: DialerState) -> None:
        self.states.put_nowait(state)
        if state.news != self.last.news:
            self.lines.put_nowait(state.news)
        self.last = state

    def arrived(self, batch: list[ToWorker]) -> None:
        for message in batch:
            if isinstance(message, Resync):
                self.dialer.send(Exited("early", 1, 0))
                self.dialer.send(HELLO)
            self.got.put_nowait(message)

    def ended(self) -> None:
        self.ends += 1

    async def next(self) -> ToWorker:
        async with asyncio.timeout(PATIENCE_S):
            return await self.got.get()

    async def line(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.lines.get()

    async def phase(self) -> tuple[Phase, bool]:
        """Return the next phase, and whether the attempt has a result."""
        async with asyncio.timeout(PATIENCE_S):
            state = await self.states.get()
        return state.phase, state.has_result


@contextlib.asynccontextmanager
async def dialling(*addresses: Address, pin: str) -> AsyncIterator[Owner]:
    """Dial until the end of the block; the owner is then notified, once."""
    owner = Owner(list(addresses), pin)
    running = asyncio.ensure_future(owner.dialer.run())
    try:
        yield owner
    finally:
        owner.dialer.close()
        async with asyncio.timeout(PATIENCE_S):
            await running
        assert owner.ends == 1
        assert owner.dialer.state == owner.last


def closed_port() -> Address:
    """Return an address at which no server listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", taken.getsockname()[1])
