"""One side of a link between machines, over anything that carries frames.

What is sent in one turn of the event loop goes into one frame, and so does what gathers
while a frame is on its way. Output waits in a lane of its own: a piece leaves only when
nothing else does, and the next only when the one before is on its way, so that neither
a heartbeat nor a start ever stands behind more than one piece.

A peer that does not read loses the link: when much is unsent and nothing of it leaves
for a while. (Output is not counted: there is no more of it than the other side asked
for.) It is the owner of the
transport who closes that, once `run` is over, and who notices a silent peer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

from grass.errors import ProtocolError
from grass.link.frames import Decoder, join, pack
from grass.link.messages import Exited, Message, OutputData, Start
from grass.logs import EventLog

log = EventLog(__name__)

MOST_UNSENT = 32 * 1024 * 1024
"""How many bytes may wait for a peer that takes none."""
SLOW_S = 15.0
"""With so many waiting, a peer must take a frame within this time."""
USUAL_FRAME = 256 * 1024
"""A frame of several messages is no larger, so that even a slow peer takes it soon."""
REFUSED = 4003
"""The WebSocket's close code of a side that will not speak to this peer at all."""
WORKER_HEADER = "Grass-Worker"
"""Names the worker that asks for a link, beside its token."""
SILENCE_S = 15.0
"""After so long without a word, from either side, the connection counts as dead."""

HERE = "closed here"
THERE = "closed by the other side"
TOO_SLOW = "the other side does not read what it is sent"

Out = TypeVar("Out", bound=Message)
In = TypeVar("In")

Send = Callable[[bytes], Awaitable[None]]
"""Sends a frame, waiting while the transport is full; OSError if it is gone."""
Receive = Callable[[], Awaitable[bytes | None]]
"""Gives the next frame, or None once there are no more; OSError if it is gone."""


class RemoteEnd(Generic[Out, In]):
    """One side of a link; a `Link`."""

    def __init__(self, send: Send, receive: Receive, decoder: Decoder[In]) -> None:
        """Speak over a transport that is open; `run` does so."""
        self._transport_send = send
        self._transport_receive = receive
        self._decoder = decoder
        self._unsent: list[bytes] = []
        self._output: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._took_at = asyncio.get_running_loop().time()
        """When the peer last took a frame, or had none to take."""
        self._looking: asyncio.TimerHandle | None = None
        self._something = asyncio.Event()
        self._over = asyncio.Event()
        self._kept: list[In] = []
        self._arrived: Callable[[list[In]], None] | None = None
        self._ended: Callable[[], None] | None = None
        self._told = False
        self.reason = ""
        """Why it ended, once it has."""
        self.refusal = ""
        """Why the other side is not spoken to, if it is not."""
        self.heard_at = asyncio.get_running_loop().time()
        """When the last frame came, by the event loop's clock."""

    @property
    def closed(self) -> bool:
        """Tell whether nothing is sent or handed over any more."""
        return bool(self.reason)

    def listen(
        self, arrived: Callable[[list[In]], None], ended: Callable[[], None]
    ) -> None:
        """Have messages handed over from now on, also those that came before."""
        self._arrived, self._ended = arrived, ended
        if self._kept or self._told:
            asyncio.get_running_loop().call_soon(self._catch_up)

    def send(self, message: Out) -> None:
        """Hand a message to the other side; after an end it goes nowhere."""
        if self.closed:
            return
        try:
            packed = pack(message)
        except ProtocolError as error:
            # Ending the link would not help: the same message would end the next one.
            log.error("message.too_large", error=error)  # noqa: TRY400
            if isinstance(message, Start):
                asyncio.get_running_loop().call_soon(self._not_started, message, error)
            return
        if isinstance(message, OutputData):
            self._output.append(packed)
        else:
            self._unsent.append(packed)
            self._unsent_bytes += len(packed)
            if self._unsent_bytes > MOST_UNSENT and self._looking is None:
                self._look_again(SLOW_S)
        self._something.set()

    def _not_started(self, message: Start, error: ProtocolError) -> None:
        """Answer for the worker: an attempt that it never hears of has failed."""
        reason = f"could not start: {error}"
        answer: Any = Exited(message.attempt, 0, reason=reason)
        if not self.closed:
            self.hand_over([answer])

    def close(self, refusal: str = "") -> None:
        """End the link; may be called twice."""
        if refusal and not self.closed:
            self.refusal = refusal
        self.end(refusal or HERE)

    def end(self, reason: str) -> None:
        """End the link and say why; the first reason counts."""
        if not self.closed:
            self.reason = reason
            self._unsent.clear()
            self._output.clear()
            self._over.set()
            if self._looking is not None:
                self._looking.cancel()

    def _look_again(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(delay_s, self._look)

    def _look(self) -> None:
        """End the link if the peer has taken nothing of too much for too long."""
        self._looking = None
        if self.closed or self._unsent_bytes <= MOST_UNSENT:
            return
        left_s = self._took_at + SLOW_S - asyncio.get_running_loop().time()
        if left_s <= 0:
            self.end(TOO_SLOW)
        else:
            self._look_again(left_s)

    async def run(self) -> None:
        """Read and write until the link ends, then tell the owner."""
        tasks = [
            asyncio.ensure_future(work())
            for work in (self._read, self._write, self._over.wait)
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.end(HERE)
            try:
                await _stopped(tasks)
            finally:
                self._tell()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while (frame := await self._transport_receive()) is not None:
                self.heard_at = loop.time()
                self.hand_over(self._decoder.decode(frame))
                if self.closed:
                    return
            self.end(THERE)
        except OSError as error:
            self.end(f"the connection broke: {error}")
        except ProtocolError as error:
            self.close(str(error))

    async def _write(self) -> None:
        try:
            while True:
                await self._something.wait()
                self._something.clear()
                self._took_at = asyncio.get_running_loop().time()
                await self._write_all()
        except OSError as error:
            self.end(f"the connection broke: {error}")

    async def _write_all(self) -> None:
        while self._unsent or self._output:
            if self._unsent:
                batch, self._unsent = self._unsent, []
                for frame in join(batch, USUAL_FRAME):
                    await self._give(frame)
                self._unsent_bytes -= sum(map(len, batch))
            else:
                (piece,) = join([self._output.popleft()])
                await self._give(piece)

    async def _give(self, frame: bytes) -> None:
        await self._transport_send(frame)
        self._took_at = asyncio.get_running_loop().time()

    def hand_over(self, batch: list[In]) -> None:
        """Give the owner messages, as those that came are given."""
        if self._arrived is None or self._kept:
            self._kept.extend(batch)
        elif batch:
            self._deliver(batch)

    def _deliver(self, batch: list[In]) -> None:
        assert self._arrived is not None
        try:
            self._arrived(batch)
        except ProtocolError as error:
            self.close(str(error))
        except Exception as error:  # noqa: BLE001 -- see below
            # The next connection settles what this batch left undone.
            log.defect(error)
            self.end("a defect of grass")

    def _catch_up(self) -> None:
        batch, self._kept = self._kept, []
        if batch:
            self._deliver(batch)
        if self._told:
            self._tell()

    def _tell(self) -> None:
        self._told = True
        if self._ended is not None and not self._kept:
            ended, self._ended = self._ended, None
            ended()


async def _stopped(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait for them; what one of them raised is raised again."""
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
