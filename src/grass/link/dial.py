"""The worker's side of a link to a broker elsewhere: it dials, for as long as it takes.

A dialer outlives its connections. What is sent while there is none is dropped, and so
is what is sent before the `Hello` of a connection: that reports everything. To get one
said, each connection begins with a `Resync` that the dialer makes itself.

A heartbeat goes out every few seconds and is answered; a broker that is not heard of is
dialled anew. The pauses between attempts grow and are jittered, so that a hundred
workers do not come back in the same instant; a refusal, which only a person can put
right, is tried again slowly.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK

from grass.errors import GrassError, NoBroker, Refused
from grass.link.frames import decoder_to_worker
from grass.link.messages import (
    Heartbeat,
    Hello,
    Resync,
    ToBroker,
    ToWorker,
    Welcome,
    version_problem,
)
from grass.link.opening import (
    CLOSE_S,
    Credential,
    Place,
    one_line,
    open_websocket,
    resolve,
)
from grass.link.remote import REFUSED, SILENCE_S, RemoteEnd
from grass.logs import EventLog
from grass.model.addresses import Address

log = EventLog(__name__)

HEARTBEAT_S = 5.0
SHORTEST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
LASTED_S = 10.0
"""After a connection that lasted so long, the pauses begin anew."""

_POLICY_VIOLATION, _TOO_BIG = 1008, 1009
_NEXT_STEP = "join it again: grass join HOST:PORT/PIN/CODE"


class Phase(Enum):
    """How far a worker has come with its broker."""

    DIALLING = auto()
    """The first attempt has not come to anything yet."""
    CONNECTED = auto()
    """It may still be refused."""
    WELCOMED = auto()
    AWAY = auto()
    """Not within reach, which time may heal."""
    REFUSED = auto()
    """Somebody has to put something right."""


class Standing(NamedTuple):
    """How it stands with the broker, for whoever asks."""

    phase: Phase = Phase.DIALLING
    news: str = "not connected yet"

    @property
    def settled(self) -> bool:
        """Tell whether it is known what came of the last attempt."""
        return self.phase not in (Phase.DIALLING, Phase.CONNECTED)


class Dialer:
    """A `Link` from a worker to a broker, over one connection after the other."""

    def __init__(
        self,
        addresses: Sequence[Address],
        pin: str,
        token: Callable[[], str],
        worker: str,
        on_state: Callable[[Standing], None] = lambda _: None,
        heartbeat_s: float | None = None,
    ) -> None:
        """Know the broker; `run` dials, once somebody listens.

        `token` gives that of now: it is another one after the machine joined again.
        `on_state` is told how it stands, whenever that changes.
        """
        self._heartbeat_s = heartbeat_s or HEARTBEAT_S
        if not addresses:
            raise NoBroker("no address of the broker is known", _NEXT_STEP)
        self._addresses = tuple(addresses)
        self._pin, self._token, self._worker = pin, token, worker
        self._on_state = on_state
        self._standing = Standing()
        self._arrived: Callable[[list[ToWorker]], None] | None = None
        self._ended: Callable[[], None] | None = None
        self._listening = asyncio.Event()
        self._dialling: asyncio.Future[None] | None = None
        self._closed = False
        self._end: RemoteEnd[ToBroker, ToWorker] | None = None
        self._greeted = False
        self._mismatch: str | None = None
        """Why the broker of this connection cannot be understood, if it cannot."""
        self._last_good: Place | None = None
        self._pauses = Pauses()

    @property
    def standing(self) -> Standing:
        """Tell how it stands with the broker now."""
        return self._standing

    def listen(
        self, arrived: Callable[[list[ToWorker]], None], ended: Callable[[], None]
    ) -> None:
        """Have messages handed over from now on; the end comes only with `close`."""
        self._arrived, self._ended = arrived, ended
        self._listening.set()

    def send(self, message: ToBroker) -> None:
        """Hand a message to the broker, if there is a connection that knows us."""
        if self._end is None:
            return
        if isinstance(message, Hello):
            self._greeted = True
        if self._greeted:
            self._end.send(message)

    def close(self, refusal: str = "") -> None:
        """Hang up and dial no more; may be called twice."""
        self._closed = True
        if self._dialling is not None:
            self._dialling.cancel()

    async def run(self) -> None:
        """Dial until closed or cancelled, then tell the owner."""
        try:
            if not self._closed:
                self._dialling = asyncio.ensure_future(self._dial_for_ever())
                await _finished(self._dialling)
        finally:
            ended, self._ended = self._ended, None
            if ended is not None:
                ended()

    async def _dial_for_ever(self) -> None:
        await self._listening.wait()
        while True:
            try:
                place, websocket = await self._opened()
                reason = await self._converse(place, websocket)
            except NoBroker as error:
                self._say(Phase.AWAY, str(error))
            except GrassError as error:
                self._say(Phase.REFUSED, str(error))
                self._pauses.refused()
            else:
                self._say(Phase.AWAY, f"the link to {place.address} ended: {reason}")
            await asyncio.sleep(self._pauses.next())

    async def _opened(self) -> tuple[Place, ClientConnection]:
        """Connect to the first place that works; raise what is most worth saying."""
        problems: list[GrassError] = []
        for address in sorted(self._addresses, key=self._is_new):
            try:
                places = await resolve(address)
            except NoBroker as error:
                problems.append(error)
                continue
            places.sort(key=lambda place: place != self._last_good)
            for place in places:
                try:
                    websocket = await open_websocket(place, self._credential())
                except GrassError as error:
                    problems.append(error)
                else:
                    self._last_good = place
                    return place, websocket
        problems.sort(key=lambda error: isinstance(error, NoBroker))
        raise problems[0]

    def _credential(self) -> Credential:
        return Credential(self._pin, self._token(), self._worker)

    def _is_new(self, address: Address) -> bool:
        """Tell whether an address is not the one that worked last; that goes first."""
        return self._last_good is None or self._last_good.address != address

    async def _converse(self, place: Place, websocket: ClientConnection) -> str:
        """Speak over a connection until it ends; return why it did."""
        end = _end_of(websocket)
        end.listen(self._hand_over, lambda: None)
        self._end, self._greeted, self._mismatch = end, False, None
        self._say(Phase.CONNECTED, f"connected to {place.address}")
        end.hand_over([Resync()])
        beating = asyncio.ensure_future(self._beat(end))
        began = time.monotonic()
        try:
            await end.run()
        finally:
            self._end = None
            beating.cancel()
            await _hang_up(websocket)
            self._pauses.connected(time.monotonic() - began)
        if websocket.close_code in (REFUSED, _POLICY_VIOLATION, _TOO_BIG):
            said = one_line(websocket.close_reason)
            raise Refused(f"the broker at {place.address} refuses: {said}")
        if self._mismatch is not None:
            raise Refused(f"the broker at {place.address}: {self._mismatch}")
        return end.reason

    async def _beat(self, end: RemoteEnd[ToBroker, ToWorker]) -> None:
        loop = asyncio.get_running_loop()
        beat_at = loop.time() + self._heartbeat_s
        while True:
            silent_at = end.heard_at + SILENCE_S
            await asyncio.sleep(min(beat_at, silent_at) - loop.time())
            if loop.time() >= end.heard_at + SILENCE_S:
                end.end(f"nothing was heard for {SILENCE_S:g} s")
                return
            if loop.time() >= beat_at:
                beat_at = loop.time() + self._heartbeat_s
                self.send(Heartbeat(boottime(), time.time_ns() // 1000))

    def _hand_over(self, batch: list[ToWorker]) -> None:
        for message in batch:
            if isinstance(message, Welcome) and self._end is not None:
                problem = version_problem(message.version, "worker", "broker")
                if problem is not None:
                    self._mismatch = problem
                    self._end.close(problem)
                    return
        if self._arrived is not None:
            self._arrived(batch)
        if self._standing.phase is not Phase.CONNECTED:
            return
        if any(isinstance(message, Welcome) for message in batch):
            self._say(Phase.WELCOMED, self._standing.news)

    def _say(self, phase: Phase, news: str) -> None:
        before, self._standing = self._standing, Standing(phase, news)
        if news != before.news:
            log.info("link.changed", state=phase.name.lower(), message=news)
        if self._standing != before:
            self._on_state(self._standing)


class Pauses:
    """How long to wait before the next attempt."""

    def __init__(self) -> None:
        self._pause_s = SHORTEST_PAUSE_S

    def next(self) -> float:
        """Give the next pause; each is up to twice the one before."""
        pause_s = self._pause_s
        self._pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 -- it only spreads

    def refused(self) -> None:
        """Make the next pause the longest: somebody has to do something first."""
        self._pause_s = LONGEST_PAUSE_S

    def connected(self, lasted_s: float) -> None:
        """Begin anew after a connection that lasted."""
        if lasted_s >= LASTED_S:
            self._pause_s = SHORTEST_PAUSE_S


def boottime() -> float:
    """Tell the time of a clock that cannot jump and counts suspend, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _end_of(websocket: ClientConnection) -> RemoteEnd[ToBroker, ToWorker]:
    """Make a link's end of a WebSocket."""

    async def send(frame: bytes) -> None:
        try:
            await websocket.send(frame)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from None

    async def receive() -> bytes | None:
        try:
            return await websocket.recv(decode=False)
        except ConnectionClosedOK:
            return None
        except ConnectionClosed as error:
            raise ConnectionError(one_line(str(error))) from None

    return RemoteEnd(send, receive, decoder_to_worker)


async def _hang_up(websocket: ClientConnection) -> None:
    """Close a WebSocket, politely if the other side answers."""
    try:
        async with asyncio.timeout(CLOSE_S):
            # Its own time limit does not cover a peer that reads nothing.
            await websocket.close(1001)
    except TimeoutError:
        pass
    finally:
        websocket.transport.abort()


async def _finished(task: asyncio.Future[None]) -> None:
    """Wait for a task that may be cancelled; take it along when cancelled."""
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
