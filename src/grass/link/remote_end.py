"""One side of a link between machines, over any transport of frames.

Messages that are sent in one turn of the event loop go into one frame, and so do those
that gather while a frame is being sent. Bytes of tasks have a queue of their own, and
output has another: a piece is sent only when nothing that goes before it waits, so that
a heartbeat or a start waits for one piece at most.

The link ends if the peer does not read: much is unsent and no frame was taken for a
while. Output is not counted: there is no more of it than the other side has asked for.
Bytes of tasks are limited, as a worker may ask for blobs and read nothing. The owner of
the transport closes it when `run` returns, and detects a silent peer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

from grass.errors import ProtocolError
from grass.event_log import EventLog
from grass.link.frames import Decoder, join, pack
from grass.link.messages import (
    BlobData,
    Devices,
    Exited,
    Message,
    OutputData,
    Start,
    TaskBytes,
    UsageData,
)

log = EventLog(__name__)

MOST_UNSENT = 32 * 1024 * 1024
"""Bytes that may wait for a peer that reads nothing."""
MOST_TASK_BYTES = 64 * 1024 * 1024
"""Bytes of tasks that may wait for a peer which asks for more than it reads."""
SLOW_S = 15.0
"""With more waiting, a peer must take a frame within this time."""
USUAL_FRAME = 256 * 1024
"""The limit of a frame of several messages, so that a slow peer takes it soon."""
REFUSED = 4003
"""The WebSocket close code of a side that refuses this peer."""
WORKER_HEADER = "Grass-Worker"
"""The HTTP header with the id of the worker that opens a link."""
LINK_SILENCE_S = 15.0
"""After this time without a frame, either side treats the connection as dead."""

HERE = "closed here"
THERE = "closed by the other side"
TOO_SLOW = "the other side does not read what it is sent"

TASK_MESSAGES = TaskBytes | BlobData
"""What is sent after all else but output."""
OUTPUT_MESSAGES = OutputData | Devices | UsageData
"""What is sent after all else."""

Out = TypeVar("Out", bound=Message)
In = TypeVar("In")

Send = Callable[[bytes], Awaitable[None]]
"""Sends a frame, waiting while the transport is full; OSError if it is gone."""
Receive = Callable[[], Awaitable[bytes | None]]
"""Returns the next frame, or None after the last; OSError if it is gone."""


class RemoteEnd(Generic[Out, In]):
    """One side of a link over a transport; a `Link`."""

    def __init__(self, send: Send, receive: Receive, decoder: Decoder[In]) -> None:
        """Use an open transport; `run` reads and writes it."""
        self._transport_send = send
        self._transport_receive = receive
        self._decoder = decoder
        self._unsent: list[bytes] = []
        self._task_bytes: deque[bytes] = deque()
        self._task_size = 0
        self._output: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._took_at = asyncio.get_running_loop().time()
        """When the peer last took a frame, or there was none to take."""
        self._slow_check: asyncio.TimerHandle | None = None
        self._something = asyncio.Event()
        self._over = asyncio.Event()
        self._undelivered: list[In] = []
        self._arrived: Callable[[list[In]], None] | None = None
        self._ended: Callable[[], None] | None = None
        self._finished = False
        self.reason = ""
        """Why it ended, once it has."""
        self.refusal = ""
        """Why the other side is refused, if it is."""
        self.heard_at = asyncio.get_running_loop().time()
        """When the last frame arrived, by the event loop's clock."""

    @property
    def closed(self) -> bool:
        """Whether nothing is sent or delivered any more."""
        return bool(self.reason)

    def listen(
        self, arrived: Callable[[list[In]], None], ended: Callable[[], None]
    ) -> None:
        """Deliver messages from now on, also those that arrived before."""
        self._arrived, self._ended = arrived, ended
        if self._undelivered or self._finished:
            asyncio.get_running_loop().call_soon(self._catch_up)

    def send(self, message: Out) -> None:
        """Send a message to the other side; dropped after the end."""
        if self.closed:
            return
        try:
            packed = pack(message)
        except ProtocolError as error:
            # Ending the link would not help: the message would be sent again.
            log.error("message.too_large", error=error)  # noqa: TRY400
            if isinstance(message, Start):
                asyncio.get_running_loop().call_soon(self._not_started, message, error)
            return
        if isinstance(message, OUTPUT_MESSAGES):
            self._output.append(packed)
        elif isinstance(message, TASK_MESSAGES):
            self._task_bytes.append(packed)
            self._task_size += len(packed)
            if self._task_size > MOST_TASK_BYTES:
                self.end(TOO_SLOW)
        else:
            self._unsent.append(packed)
            self._unsent_bytes += len(packed)
            if self._unsent_bytes > MOST_UNSENT and self._slow_check is None:
                self._check_slow_in(SLOW_S)
        self._something.set()

    def _not_started(self, message: Start, error: ProtocolError) -> None:
        """Report in the worker's place that an attempt failed: it gets no `Start`."""
        reason = f"could not start: {error}"
        answer: Any = Exited(message.attempt, 0, reason=reason)
        if not self.closed:
            self.deliver([answer])

    def close(self, refusal: str = "") -> None:
        """End the link; may be called twice."""
        if refusal and not self.closed:
            self.refusal = refusal
        self.end(refusal or HERE)

    def end(self, reason: str) -> None:
        """End the link; the first reason is kept."""
        if not self.closed:
            self.reason = reason
            self._unsent.clear()
            self._task_bytes.clear()
            self._output.clear()
            self._over.set()
            if self._slow_check is not None:
                self._slow_check.cancel()

    def _check_slow_in(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._slow_check = loop.call_later(delay_s, self._check_slow)

    def _check_slow(self) -> None:
        """End the link if too much is unsent and the peer has read nothing."""
        self._slow_check = None
        if self.closed or self._unsent_bytes <= MOST_UNSENT:
            return
        left_s = self._took_at + SLOW_S - asyncio.get_running_loop().time()
        if left_s <= 0:
            self.end(TOO_SLOW)
        else:
            self._check_slow_in(left_s)

    async def run(self) -> None:
        """Read and write until the link ends, then notify the owner."""
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
                self._notify_ended()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while (frame := await self._transport_receive()) is not None:
                self.heard_at = loop.time()
                self.deliver(self._decoder.decode(frame))
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
        while self._unsent or self._task_bytes or self._output:
            if self._unsent:
                batch, self._unsent = self._unsent, []
                for frame in join(batch, USUAL_FRAME):
                    await self._send_frame(frame)
                self._unsent_bytes -= sum(map(len, batch))
            else:
                if self._task_bytes:
                    packed = self._task_bytes.popleft()
                    self._task_size -= len(packed)
                else:
                    packed = self._output.popleft()
                await self._send_frame(*join([packed]))

    async def _send_frame(self, frame: bytes) -> None:
        await self._transport_send(frame)
        self._took_at = asyncio.get_running_loop().time()

    def deliver(self, batch: list[In]) -> None:
        """Deliver messages to the owner, as if they had arrived."""
        if self._arrived is None or self._undelivered:
            self._undelivered.extend(batch)
        elif batch:
            self._call_owner(batch)

    def _call_owner(self, batch: list[In]) -> None:
        assert self._arrived is not None
        try:
            self._arrived(batch)
        except ProtocolError as error:
            self.close(str(error))
        except Exception as error:  # noqa: BLE001 -- see below
            # Both sides reconcile on the next connection.
            log.defect(error)
            self.end("a defect of grass")

    def _catch_up(self) -> None:
        batch, self._undelivered = self._undelivered, []
        if batch:
            self._call_owner(batch)
        if self._finished:
            self._notify_ended()

    def _notify_ended(self) -> None:
        self._finished = True
        if self._ended is not None and not self._undelivered:
            ended, self._ended = self._ended, None
            ended()


async def _stopped(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait for them; raise what one of them raised."""
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
