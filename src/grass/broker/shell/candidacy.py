"""Carries out what `leadership` decides: asks the store for the lead, tells who has it.

Requests block, so they run in threads; the event loop owns the decisions. A loop that
stands still for longer than a term has lost the lead when it looks again, as a process
that was stopped has. Each look also announces this broker, and reads who else is there.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from grass.broker.core.leadership import (
    CUT_OFF_S,
    TERM_S,
    AskForLease,
    Decision,
    Leadership,
    LeadPhase,
    Release,
    StepDown,
    is_cut_off,
)
from grass.errors import BrokerInUse, GrassError, LeadLost
from grass.event_log import EventLog
from grass.model.access import hash_of, may_work, split_token
from grass.model.brokers import BrokerPresence, Lease, SeenBroker
from grass.model.worker import is_worker_id
from grass.store.interface import Store

log = EventLog(__name__)

ANNOUNCED_S = 0.9
"""How often a broker says that it is there, and looks for others: with each request."""
FOUND_S = 6.0
"""How long workers may take to find a broker that leads now."""
NAMED_S = 86400.0
MOST_DIALS = 64
"""How many of the last dials are looked at: a few tell that a leader is cut off."""
ASKING_THREADS = 2
"""One more than is used, as a request to a database that is gone may hang."""


class Lead(Protocol):
    """The lead as the broker that has it sees it."""

    @property
    def epoch(self) -> int:
        """The epoch that it leads with."""

    def trusts(self) -> bool:
        """Tell whether it may speak as the leader now."""

    def check(self) -> None:
        """Raise `LeadLost` if it may not."""

    def lost_error(self) -> LeadLost:
        """Return what callers are told: where the leader is."""

    def give_up(self, reason: str) -> None:
        """Step down: a commit was refused."""

    def heard_machine(self) -> None:
        """Note that another machine's worker was heard."""

    def addresses(self) -> tuple[str, ...]:
        """Return where the cluster's brokers are, if it has several."""

    @property
    def brokers(self) -> list[SeenBroker]:
        """All that were announced lately."""

    @property
    def lease(self) -> Lease:
        """Who leads, as the store told last."""

    async def next_epoch(self) -> int:
        """Take the next epoch; raise `LeadLost` if another broker leads."""


class Candidacy:
    """One broker's part in who leads, for as long as its daemon runs."""

    def __init__(self, store: Store, presence: BrokerPresence) -> None:
        self._brokers: list[SeenBroker] = []
        self._looked_s = boottime()
        self._store = store
        self._presence = presence
        self._leadership = Leadership(presence.id, boottime())
        self._moved = asyncio.Event()
        self._threads = ThreadPoolExecutor(ASKING_THREADS, thread_name_prefix="lead")
        self._asking: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        """Why a request ended that failed with more than an error of the store."""
        self._announced_s = -ANNOUNCED_S
        self._reason = "it has not led yet"
        self._failure: GrassError | None = None
        """Why the store did not tell who leads, when it was asked last."""
        self._heard_s = 0.0
        """When another machine's worker was heard last."""
        self._dials: deque[_Dial] = deque(maxlen=MOST_DIALS)
        """Of workers that dialled this standby; anybody may say to be one."""

    # As the broker sees it.

    @property
    def id(self) -> str:
        """The id of this broker."""
        return self._presence.id

    @property
    def address(self) -> str:
        """Where this broker is reached."""
        return self._presence.address

    @property
    def epoch(self) -> int:
        """The epoch that this broker leads with; 0: it does not."""
        return self._leadership.epoch

    @property
    def leads(self) -> bool:
        """Whether this broker has the lead, as far as it knows."""
        return self._leadership.leads

    @property
    def brokers(self) -> list[SeenBroker]:
        """All that were announced lately."""
        return self._brokers

    @property
    def lease(self) -> Lease:
        """Who leads, as the store told last."""
        return self._leadership.lease

    def seen_now(self) -> tuple[list[SeenBroker], Lease]:
        """Return all brokers and who leads, as far as is known by now."""
        passed_s = boottime() - self._looked_s
        seen = [replace(one, seen_s=one.seen_s + passed_s) for one in self._brokers]
        return seen, self._leadership.lease_at(boottime())

    def leader(self) -> Lease | None:
        """Return who leads now, if that is known."""
        return self._leadership.leader(boottime())

    def trusts(self) -> bool:
        """Tell whether this broker may speak as the leader now."""
        return self._leadership.trusts(boottime())

    def check(self) -> None:
        """Raise `LeadLost` if this broker does not lead."""
        if not self.trusts():
            raise self.lost_error()

    def lost_error(self) -> LeadLost:
        """Return what callers are told: where the leader is, if there is one."""
        known = self.leader()
        if known is None or known.holder == self.id:
            last = f"; the last was {self.lease.address}" if self.lease.address else ""
            return LeadLost(
                f"no broker leads at present{last}, in epoch {self.lease.epoch}",
                "one will within seconds, if it reaches the database",
            )
        error = LeadLost(
            f"the broker at {known.address} leads", f"ask there: {known.address}"
        )
        error.leader = known.address
        return error

    def lost_error_here(self) -> LeadLost:
        """Return the same for this machine's user, with what the database has said."""
        error, failure = self.lost_error(), self._failure
        if error.leader or failure is None:
            return error
        return LeadLost(f"{error.message}: {failure.message}", failure.hint)

    def addresses(self) -> tuple[str, ...]:
        """Return where the cluster's brokers are, the leader first, if it has several.

        One that was not heard for a day is not named any more.
        """
        known = [one for one in self._brokers if one.seen_s < NAMED_S]
        leader = self.lease.address
        places = [leader, *(one.broker.address for one in known)]
        found = tuple(dict.fromkeys(place for place in places if place))
        return found if len(found) > 1 else ()

    def heard_machine(self) -> None:
        """Note that another machine's worker was heard, and so reaches this broker."""
        self._heard_s = boottime()

    def asked_by(self, worker: str, token: str) -> None:
        """Note that a worker has dialled this standby: it may not reach the leader."""
        if is_worker_id(worker) and worker != self.id:
            name, secret = split_token(token)
            self._dials.append(_Dial(boottime(), name, hash_of(secret)))

    async def next_epoch(self) -> int:
        """Take the next epoch: it is not known what came of a commit."""
        now_s = boottime()
        self._act(self._leadership.doubt(now_s))
        lead = self._leadership
        await self._until(lambda: not lead.leads or lead.epoch > 0)
        if not lead.leads:
            raise self.lost_error()
        self._act(lead.loaded(lead.epoch, boottime()))
        return lead.epoch

    # As the daemon sees it.

    async def taken(self) -> int:
        """Return the epoch once this broker has the lead, and is to load the state."""
        lead = self._leadership
        await self._until(lambda: lead.phase is LeadPhase.LOADING and lead.epoch > 0)
        return lead.epoch

    def loaded(self, epoch: int) -> None:
        """Lead: the state was read after this epoch was taken."""
        self._heard_s = boottime() + FOUND_S
        self._act(self._leadership.loaded(epoch, boottime()))

    def give_up(self, reason: str) -> None:
        """Step down: the state could not be read, or a commit was refused."""
        self._act(self._leadership.lost(reason, boottime()))

    async def lost(self) -> str:
        """Return why, once this broker does not lead any more."""
        await self._until(lambda: not self._leadership.leads)
        return self._reason

    async def heard(self) -> None:
        """Return when something was heard of the lead."""
        await self._moved.wait()

    async def run(self) -> None:
        """Ask for the lead, and renew it, until cancelled.

        Raises `BrokerInUse` if another process is this broker by now.
        """
        try:
            while True:
                if self._error is not None:
                    raise self._error
                now_s = boottime()
                self._act(self._leadership.step(now_s))
                due_s = self._leadership.wake_at() - now_s
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.01, due_s)):
                        await self._moved.wait()
        finally:
            for asking in self._asking:
                asking.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def leave(self) -> None:
        """Give the lead up, so that another broker need not wait for the term's end."""
        epoch = self.epoch
        self._act(self._leadership.leave("the daemon stops"))
        if epoch:
            with contextlib.suppress(GrassError, TimeoutError):
                async with asyncio.timeout(TERM_S):
                    await asyncio.to_thread(self._take, 0.0, epoch)

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await self._moved.wait()

    def _act(self, decisions: list[Decision]) -> None:
        for one in decisions:
            if isinstance(one, AskForLease):
                self._start(self._ask(one))
            elif isinstance(one, Release):
                self._start(self._release(one.epoch))
            elif isinstance(one, StepDown):
                self._reason = one.reason
                log.warning("lead.lost", reason=one.reason)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        asking = asyncio.get_running_loop().create_task(work)
        self._asking.add(asking)
        asking.add_done_callback(self._ended)

    def _ended(self, asking: asyncio.Task[None]) -> None:
        self._asking.discard(asking)
        error = None if asking.cancelled() else asking.exception()
        if error is not None:
            self._error = error
            self._act([])

    async def _release(self, epoch: int) -> None:
        with contextlib.suppress(GrassError):
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, self._take, 0.0, epoch)

    async def _ask(self, ask: AskForLease) -> None:
        loop = asyncio.get_running_loop()
        try:
            lease = await loop.run_in_executor(
                self._threads, self._take, TERM_S, ask.epoch
            )
        except BrokerInUse:
            raise
        except GrassError as error:
            self._failure = error
            log.warning("lead.unknown", error=error)
            self._act(self._leadership.failed(ask.number, boottime()))
        else:
            self._failure = None
            self._act(self._leadership.answered(ask.number, lease, boottime()))
            if self._is_cut_off():
                self._act(self._leadership.yield_lead(boottime()))

    def _is_cut_off(self) -> bool:
        """Tell whether this leader should yield; nobody finds one that still loads."""
        if self._leadership.phase is not LeadPhase.LEADING:
            return False
        return is_cut_off(boottime() - self._heard_s, self._brokers, self.id)

    def _take(self, term_s: float, epoch: int) -> Lease:
        """Ask for the lead, and announce this broker when that is due."""
        began_s = time.monotonic()
        me = self._presence
        lease = self._store.take_lease(me.id, me.address, term_s, epoch, me.process)
        now_s = time.monotonic()
        if term_s and now_s >= self._announced_s + ANNOUNCED_S:
            self._announced_s = now_s
            try:
                lag_s = round(now_s - began_s, 4)
                self._store.announce(replace(me, lag_s=lag_s, asks=self._asks()))
                self._brokers, self._looked_s = self._store.brokers(), boottime()
            except BrokerInUse:
                raise
            except GrassError:
                # The next request announces it: the lead does not depend on that.
                pass
        return lease

    def _asks(self) -> int:
        """Count how often workers of other machines dialled this standby lately."""
        since_s = boottime() - CUT_OFF_S
        recent = [one for one in tuple(self._dials) if one.at_s > since_s]
        if not recent:
            return 0
        known = {one.name: one for one in self._store.tokens() if may_work(one.role)}
        now_us = time.time_ns() // 1000
        return sum(
            one.name in known and known[one.name].admits(one.hashed, now_us)
            for one in recent
        )


class _Dial(NamedTuple):
    at_s: float
    name: str
    hashed: bytes


def boottime() -> float:
    """Return the seconds since boot, with those that the machine has slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
