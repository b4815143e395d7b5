"""A running broker, and a worker with a good token that sends whatever it is told to.

Frames go through the real decoder, the real end of a link, the broker as it runs and a
real store. Beside the hostile worker there is the broker's own, with jobs that run and
jobs that wait: nothing of theirs may change.
"""

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from secrets import token_hex
from typing import Any

from grass.api.routes.worker_link import CheckedLink
from grass.broker.core.calls import (
    Enqueue,
    HoldJobs,
    NewJob,
    ReleaseJobs,
    TimerFired,
)
from grass.broker.core.rounds import loaded
from grass.broker.core.state import State
from grass.broker.shell.service import Broker
from grass.link.channel import LinkEnd, pair
from grass.link.frames import decoder_to_broker, decoder_to_worker, encode
from grass.link.messages import Hello, Start, Started, ToBroker, ToWorker, Welcome
from grass.link.remote_end import RemoteEnd
from grass.model.jobs.spec import JobPatch
from grass.model.resources import request_from
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore
from tests.support.broker_memory import check, memory
from tests.support.building import WORKER, units
from tests.support.enrolled import bind_token
from tests.support.far_end import FarEnd

HOSTILE = "00000000000000f9"
OWN, FREE = 4, 2
"""How many jobs are for the own worker, and after them for the hostile one."""
MOST_NUMBER = 10_000
CLUSTER, PLACED = "0123456789abcdef", 7_777_777_777
THIS_BOOT = "this boot"
"""What stands for the broker's id, the time of a placement and the hostile worker's
boot in drawn documents."""
PATIENCE_S = 10.0
ONE_CORE = request_from("{cpu:1}")


class Peer:
    """One link of the hostile worker, in memory."""

    def __init__(self, broker: Broker) -> None:
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._heard: asyncio.Queue[ToWorker] = asyncio.Queue()
        self._waits = asyncio.Event()
        end: RemoteEnd[ToWorker, ToBroker] = RemoteEnd(
            self._take, self._next, decoder_to_broker
        )
        checked = CheckedLink(end, HOSTILE)
        broker.serve(checked, worker=HOSTILE, address="192.0.2.1")
        self._running = asyncio.create_task(end.run())
        self._running.add_done_callback(lambda _: self._waits.set())

    @property
    def closed(self) -> bool:
        return self._running.done()

    async def _next(self) -> bytes | None:
        if self._frames.empty():
            self._waits.set()
        return await self._frames.get()

    async def _take(self, frame: bytes) -> None:
        for message in decoder_to_worker.decode(frame):
            self._heard.put_nowait(message)

    async def say(self, frame: bytes) -> None:
        """Send a frame, and wait until it was read, or the link has ended."""
        await self._waits.wait()
        if not self._running.done():
            self._waits.clear()
            self._frames.put_nowait(frame)
            await self._waits.wait()

    async def is_welcomed(self, at: float) -> None:
        while True:
            message = await self._heard.get()
            if isinstance(message, Welcome) and message.at == at:
                return

    async def close(self) -> None:
        self._frames.put_nowait(None)
        await self._running


class Defects(logging.Handler):
    """Keeps what is logged as an error, and of batches: those are defects of grass."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if record.levelno >= logging.ERROR or "a batch was dropped" in text:
            self.found.append(text)


class Besieged:
    """The broker, and what must stay as it is."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._store = SqliteStore(folder / f"{token_hex(8)}.db")
        self._defects = Defects()
        logging.getLogger("grass").addHandler(self._defects)
        self._greeted = self._boots = 0
        self.before: dict[str, Any] = {}
        self._runner.run(self._start())

    @property
    def state(self) -> State:
        return self.broker.state

    async def _start(self) -> None:
        self.broker = Broker(self._store, is_fatal)
        bind_token(self.state, HOSTILE)
        ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
        self.broker.serve(ends[0])
        self.own = FarEnd(ends[1])
        self._running = asyncio.create_task(self.broker.run())
        self.own.hello()
        await self.own.hears(Welcome)
        mine = JobPatch(worker=WORKER, request=ONE_CORE)
        await self.broker.call(Enqueue("me", [NewJob(("x",), mine)] * OWN))
        for _ in range(2):
            start = await self.own.hears(Start)
            assert isinstance(start, Start)
            self.own.link.send(Started(start.attempt, 7, 5))
        await self.broker.call(HoldJobs("me", [OWN]))
        await self._hold_again()
        while any(one.pid is None for one in self.state.attempts.values()):
            await self.broker.next_commit()
        self._last = self.state.last_job
        await self._is_well()
        self.before = self.kept()

    async def _hold_again(self) -> None:
        """Make two calls like any other, of which the second takes the first back."""
        await self.broker.call(ReleaseJobs("me", [OWN]))
        await self.broker.call(HoldJobs("me", [OWN]))

    async def _refill(self) -> None:
        """Have jobs that the hostile worker is to run, whatever became of others."""
        theirs = sum(one > OWN for one in self.state.jobs)
        wanted = JobPatch(worker=HOSTILE, request=ONE_CORE)
        for _ in range(FREE - theirs):
            await self.broker.call(Enqueue("me", [NewJob(("y",), wanted)]))

    def kept(self) -> dict[str, Any]:
        """Give all that is none of the hostile worker's business."""
        mine = memory(self.state)
        jobs, attempts = self.state.jobs, self.state.attempts
        return {
            "jobs": {id: repr(job) for id, job in jobs.items() if id <= OWN},
            "attempts": {id: repr(one) for id, one in attempts.items() if id <= OWN},
            "queues": repr(mine["queues"]),
            "tokens": sorted(self.state.tokens),
            "own": repr(self.state.workers[WORKER].found),
            "workers": {*self.state.workers} - {HOSTILE},
            "paused": mine["paused"],
        }

    def attack(self, frames: list[bytes]) -> None:
        """Send frames on a link of the hostile worker, then look at everything."""
        self._runner.run(self._while_it_runs(self._attack(frames)))

    async def _while_it_runs(self, story: Coroutine[Any, Any, None]) -> None:
        """Do something, unless the broker ends meanwhile: nobody would be answered."""
        doing = asyncio.ensure_future(story)
        await asyncio.wait([doing, self._running], return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            doing.cancel()
            self._running.result()
        await doing

    async def _attack(self, frames: list[bytes]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            peer: Peer | None = None
            for frame in frames:
                if peer is None or peer.closed:
                    peer = Peer(self.broker)
                    await self._say(peer, encode([self.greeting()])[0])
                await self._say(peer, frame)
            if peer is not None:
                await peer.close()
            await self._is_well()

    async def _say(self, peer: Peer, frame: bytes) -> None:
        """Send a frame, and have it looked at: of several hellos only the last is."""
        await peer.say(frame)
        await self.broker.call(TimerFired())

    def greeting(self) -> Hello:
        """Give a good hello."""
        self._greeted += 1
        found, at = units("{cpu:2}"), float(self._greeted)
        return Hello(HOSTILE, "lab", _boot(self._boots), found, [], [], at=at)

    async def _is_well(self) -> None:
        """Look whether all goes on as before, in memory and in the store."""
        # One that it has left, as it may have said meanwhile, never comes back.
        self._boots += 1
        peer, good = Peer(self.broker), self.greeting()
        await peer.say(encode([good])[0])
        await peer.is_welcomed(good.at)
        assert self.state.last_job == self._last, "ids of jobs were used up"
        await self._refill()
        self._last = self.state.last_job
        assert all(one.attempts < MOST_NUMBER for one in self.state.jobs.values())
        await self._hold_again()
        assert not self._running.done(), "the broker ended"
        assert not self._defects.found, self._defects.found[0]
        kept = self.kept()
        for what, known in self.before.items():
            assert kept[what] == known, f"{what}: {known} became {kept[what]}"
        check(self.state)
        await peer.close()

    def resolved(self, document: Any) -> Any:
        """Put this broker's own id and times where a drawn document stands for them."""
        if isinstance(document, dict):
            return {
                self.resolved(key): self.resolved(one) for key, one in document.items()
            }
        if isinstance(document, list):
            return [self.resolved(one) for one in document]
        if isinstance(document, str):
            if document == THIS_BOOT:
                return _boot(self._boots)
            return document.replace(CLUSTER, self.state.cluster)
        if document == PLACED and type(document) is int:
            return max(one.started_at for one in self.state.attempts.values())
        return document

    def restart(self) -> None:
        """End the broker, and look whether the next one knows the same."""
        self._runner.run(self._stop())
        again = loaded(0)(self._store)
        check(again.state)
        known, before = memory(again.state), memory(self.state)
        for what in ("jobs", "attempts", "workers", "last_job", "counts"):
            assert known[what] == before[what], what

    def close(self) -> None:
        logging.getLogger("grass").removeHandler(self._defects)
        self._runner.run(self._stop())
        self._runner.close()
        self._store.close()

    async def _stop(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)


def _boot(number: int) -> str:
    return f"boot of greeting {number}"
