"""The worker's side of a link to a broker on another machine: it connects and retries.

A dialer outlives its connections. What is sent while there is none is dropped, and so
is what is sent before the `Hello` of a connection, which reports everything. To make
the worker send one, the dialer itself delivers a `Resync` on each new connection.

A heartbeat is sent every few seconds and answered; a broker that is silent is dialled
again. The pauses between attempts grow and are jittered, so that a hundred workers do
not come back at once; a refusal, which a person has to fix, is retried slowly.

A cluster may have several brokers, of which one leads. The others name it, and are told
apart soon: with more than one address each gets little time, and pauses stay short
unless the one that leads refuses the worker.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from websockets.asyncio.client import ClientConnection

from grass.errors import GrassError, LeadLost, NoBroker, Refused, UsageError
from grass.event_log import EventLog
from grass.link.connect import (
    OPEN_S,
    Credential,
    ResolvedAddress,
    close_websocket,
    one_line,
    open_websocket,
    resolve,
    worker_end,
)
from grass.link.messages import (
    Heard,
    Heartbeat,
    Hello,
    Resync,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.link.remote_end import LINK_SILENCE_S, REFUSED, RemoteEnd
from grass.link.versions import version_problem
from grass.model.addresses import Address, read_address

log = EventLog(__name__)

HEARTBEAT_S = 5.0
SHORTEST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
LASTED_S = 10.0
SEVERAL_HEARTBEAT_S, SEVERAL_SILENCE_S = 1.0, 4.0
"""Where another broker may lead by then, a silent one is left sooner."""
SEVERAL_OPEN_S, SEVERAL_PAUSE_S = 2.0, 1.0
"""After a connection that lasted so long, the pauses start over."""

_POLICY_VIOLATION, _TOO_BIG = 1008, 1009
_NEXT_STEP = "join it again: grass join HOST:PORT/PIN/CODE"


class Phase(Enum):
    """Where a worker is in connecting to its broker."""

    DIALLING = auto()
    """The first attempt has no result yet."""
    CONNECTED = auto()
    """It may still be refused."""
    WELCOMED = auto()
    AWAY = auto()
    """The broker cannot be reached now; it is retried."""
    REFUSED = auto()
    """A person has to fix something."""


class DialerState(NamedTuple):
    """The phase of a dialer, and one line about the last attempt."""

    phase: Phase = Phase.DIALLING
    news: str = "not connected yet"

    @property
    def has_result(self) -> bool:
        """Return whether the last attempt has a result."""
        return self.phase not in (Phase.DIALLING, Phase.CONNECTED)


class Dialer:
    """A `Link` from a worker to a broker, over one connection after the other."""

    def __init__(
        self,
        addresses: Sequence[Address],
        pin: str,
        token: Callable[[], str],
        worker: str,
        heartbeat_s: float | None = None,
    ) -> None:
        """`run` connects, once `listen` was called.

        `token` returns the current token: joining again replaces it.
        """
        self._usual_heartbeat_s = heartbeat_s or HEARTBEAT_S
        self.on_state: Callable[[DialerState], None] = lambda _: None
        """Called with the state whenever it changes."""
        self.on_brokers: Callable[[list[Address]], None] = lambda _: None
        """Called with where the cluster's brokers are, when the leader tells of others
        than are known."""
        self.known_brokers: Callable[[], Sequence[Address]] = tuple
        """Returns where they are as far as this machine knows: a command that was told
        writes it down, too."""
        if not addresses:
            raise NoBroker("no address of the broker is known", _NEXT_STEP)
        self._addresses = tuple(addresses)
        self._pin, self._token, self._worker = pin, token, worker
        self._state = DialerState()
        self._arrived: Callable[[list[ToWorker]], None] | None = None
        self._ended: Callable[[], None] | None = None
        self._listening = asyncio.Event()
        self._dialling: asyncio.Future[None] | None = None
        self._closed = False
        self._end: RemoteEnd[ToBroker, ToWorker] | None = None
        self._greeted = False
        self._mismatch: str | None = None
        """Why the broker's version of the link is not supported, if it is not."""
        self._last_good: ResolvedAddress | None = None
        self._silent: Address | None = None
        """The broker that accepted the last connection and then did not answer."""
        self._pauses = Pauses()

    @property
    def state(self) -> DialerState:
        """The current state."""
        return self._state

    def listen(
        self, arrived: Callable[[list[ToWorker]], None], ended: Callable[[], None]
    ) -> None:
        """Deliver messages from now on; `ended` is called only after `close`."""
        self._arrived, self._ended = arrived, ended
        self._listening.set()

    def send(self, message: ToBroker) -> None:
        """Send a message to the broker, if a connection is past its `Hello`."""
        if self._end is None:
            return
        if isinstance(message, Hello):
            self._greeted = True
        if self._greeted:
            self._end.send(message)

    def close(self, refusal: str = "") -> None:
        """Disconnect and stop dialling; may be called twice."""
        self._closed = True
        if self._dialling is not None:
            self._dialling.cancel()

    async def run(self) -> None:
        """Dial until closed or cancelled, then notify the owner."""
        try:
            if not self._closed:
                self._dialling = asyncio.ensure_future(self._dial_until_cancelled())
                await _finished(self._dialling)
        finally:
            ended, self._ended = self._ended, None
            if ended is not None:
                ended()

    async def _dial_until_cancelled(self) -> None:
        await self._listening.wait()
        while True:
            failure: GrassError | None = None
            try:
                place, websocket = await self._opened()
                reason = await self._serve(place, websocket)
            except (NoBroker, LeadLost) as error:
                self._set_state(Phase.AWAY, str(error))
            except GrassError as error:
                failure = error
                self._set_state(Phase.REFUSED, str(error))
                self._pauses.refused()
            else:
                self._set_state(
                    Phase.AWAY, f"the link to {place.address} ended: {reason}"
                )
            await asyncio.sleep(self._pause_s(failure))

    def _pause_s(self, failure: GrassError | None) -> float:
        """Return how long to wait; with several brokers another may lead soon.

        But the one that leads has refused this machine, where one of them did.
        """
        pause_s = self._pauses.next()
        is_short = self._several and not isinstance(failure, Refused)
        return min(pause_s, SEVERAL_PAUSE_S) if is_short else pause_s

    async def _opened(self) -> tuple[ResolvedAddress, ClientConnection]:
        """Connect to the first place that works; prefer to raise a refusal.

        A broker that does not lead names the one that does, which is tried next.
        """
        problems: list[GrassError] = []
        known = dict.fromkeys((*self._addresses, *self.known_brokers()))
        self._addresses = tuple(known)
        untried = sorted(known, key=self._rank)
        tried: set[Address] = set()
        while untried:
            address = untried.pop(0)
            tried.add(address)
            found = await self._opened_at(address, problems)
            if found is not None:
                return found
            leader = _leader(problems[-1])
            # One that fell silent is dialled last: each standby is to learn of it.
            if leader is not None and leader not in {*tried, self._silent}:
                untried = [leader, *(one for one in untried if one != leader)]
        problems.sort(key=_may_pass)
        raise problems[0]

    async def _opened_at(
        self, address: Address, problems: list[GrassError]
    ) -> tuple[ResolvedAddress, ClientConnection] | None:
        try:
            places = await resolve(address)
        except NoBroker as error:
            problems.append(error)
            return None
        places.sort(key=lambda place: place != self._last_good)
        limit_s = SEVERAL_OPEN_S if self._several else OPEN_S
        for place in places:
            try:
                websocket = await open_websocket(place, self._credential(), limit_s)
            except GrassError as error:
                problems.append(error)
            else:
                self._last_good = place
                return place, websocket
        return None

    @property
    def _several(self) -> bool:
        """Whether the cluster has more than one broker, as far as is known."""
        return len(self._addresses) > 1

    @property
    def _heartbeat_s(self) -> float:
        usual_s = self._usual_heartbeat_s
        return min(usual_s, SEVERAL_HEARTBEAT_S) if self._several else usual_s

    def _credential(self) -> Credential:
        return Credential(self._pin, self._token(), self._worker)

    def _rank(self, address: Address) -> int:
        """Put the broker that served last first, and one that fell silent last.

        Also a broker that hangs, or whose database does, may accept connections.
        """
        if address == self._silent:
            return 2
        last = self._last_good
        return 0 if last is not None and last.address == address else 1

    async def _serve(self, place: ResolvedAddress, websocket: ClientConnection) -> str:
        """Use a connection until it ends; return why it ended."""
        end = worker_end(websocket)
        end.listen(self._deliver, lambda: None)
        self._end, self._greeted, self._mismatch = end, False, None
        self._set_state(Phase.CONNECTED, f"connected to {place.address}")
        end.deliver([Resync()])
        beating = asyncio.ensure_future(self._beat(end))
        began = time.monotonic()
        try:
            await end.run()
        finally:
            self._end = None
            beating.cancel()
            await close_websocket(websocket)
            self._pauses.connected(time.monotonic() - began)
            self._note_service(place.address, end)
        if websocket.close_code in (REFUSED, _POLICY_VIOLATION, _TOO_BIG):
            said = one_line(websocket.close_reason)
            raise Refused(f"the broker at {place.address} refuses: {said}")
        if self._mismatch is not None:
            raise Refused(f"the broker at {place.address}: {self._mismatch}")
        return end.reason

    def _note_service(
        self, address: Address, end: RemoteEnd[ToBroker, ToWorker]
    ) -> None:
        quiet_s = asyncio.get_running_loop().time() - end.heard_at
        served = self._state.phase is Phase.WELCOMED and quiet_s < SEVERAL_SILENCE_S
        self._silent = None if served else address

    async def _beat(self, end: RemoteEnd[ToBroker, ToWorker]) -> None:
        loop = asyncio.get_running_loop()
        beaten_at = loop.time()
        while True:
            silence_s = SEVERAL_SILENCE_S if self._several else LINK_SILENCE_S
            beat_at, silent_at = beaten_at + self._heartbeat_s, end.heard_at + silence_s
            # Not for long: the leader may tell meanwhile that there are others.
            left_s = min(beat_at, silent_at) - loop.time()
            await asyncio.sleep(min(left_s, SEVERAL_HEARTBEAT_S))
            if loop.time() >= end.heard_at + silence_s:
                end.end(f"nothing was heard for {silence_s:g} s")
                return
            if loop.time() >= beaten_at + self._heartbeat_s:
                beaten_at = loop.time()
                self.send(Heartbeat(boottime(), time.time_ns() // 1000))

    def _deliver(self, batch: list[ToWorker]) -> None:
        for message in batch:
            if isinstance(message, Welcome) and self._end is not None:
                problem = version_problem(message.version, "worker", "broker")
                if problem is not None:
                    self._mismatch = problem
                    self._end.close(problem)
                    return
            if isinstance(message, Welcome | Heard) and message.brokers:
                self._note_brokers(message.brokers)
        if self._arrived is not None:
            self._arrived(batch)
        if self._state.phase is not Phase.CONNECTED:
            return
        if any(isinstance(message, Welcome) for message in batch):
            self._set_state(Phase.WELCOMED, self._state.news)

    def _note_brokers(self, told: tuple[str, ...]) -> None:
        """Note where the brokers of the cluster are.

        The address in use is kept: this machine may know the brokers by other names.
        """
        with contextlib.suppress(UsageError):
            addresses = [read_address(text) for text in told]
            if self._last_good is not None and self._last_good.address not in addresses:
                addresses.insert(0, self._last_good.address)
            if set(addresses) != set(self._addresses):
                self._addresses = tuple(addresses)
                self.on_brokers(addresses)

    def _set_state(self, phase: Phase, news: str) -> None:
        before, self._state = self._state, DialerState(phase, news)
        if news != before.news:
            log.info("link.changed", state=phase.name.lower(), message=news)
        if self._state != before:
            self.on_state(self._state)


class Pauses:
    """The pauses between attempts: growing and jittered."""

    def __init__(self) -> None:
        self._pause_s = SHORTEST_PAUSE_S

    def next(self) -> float:
        """Return the next pause; each is up to twice the one before."""
        pause_s = self._pause_s
        self._pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return pause_s * random.uniform(0.5, 1.0)  # noqa: S311 -- it only spreads

    def refused(self) -> None:
        """Make the next pause the longest: a person has to act first."""
        self._pause_s = LONGEST_PAUSE_S

    def connected(self, lasted_s: float) -> None:
        """Start over after a connection that lasted."""
        if lasted_s >= LASTED_S:
            self._pause_s = SHORTEST_PAUSE_S


def _may_pass(error: GrassError) -> bool:
    """Return whether no person has to fix this."""
    return isinstance(error, NoBroker | LeadLost)


def _leader(error: GrassError) -> Address | None:
    """Return the address of the leader that a broker has named."""
    if isinstance(error, LeadLost) and error.leader:
        with contextlib.suppress(UsageError):
            return read_address(error.leader)
    return None


def boottime() -> float:
    """Return seconds of the monotonic clock that counts suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def _finished(task: asyncio.Future[None]) -> None:
    """Wait for a task that may be cancelled; cancel it when cancelled."""
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
