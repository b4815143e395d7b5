"""Asks engines for what pools need, beside the task that owns the state.

Each effect of the core is carried out once its rows are committed. An engine that hangs
holds up its own pool alone. What an engine answers goes back as a call.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from grass.broker.core.calls import Enqueue, NewToken
from grass.broker.core.pools.pool_memory import CancelPilots, PoolEffect, Submit
from grass.broker.core.pools.pool_workers import token_name
from grass.broker.core.pools.requests import (
    PilotRefused,
    PilotSizes,
    PilotsListed,
    PilotsNotListed,
    PilotSubmitted,
)
from grass.broker.core.pools.sizing import sized
from grass.broker.core.state import SCHEDULER
from grass.broker.shell.new_secrets import new_secret
from grass.broker.shell.service import Broker
from grass.engines.provider import PilotRequest, Provider
from grass.errors import CannotAsk, GrassError, LeadLost
from grass.event_log import EventLog
from grass.keeper.crash_points import crash_point
from grass.model.access import hash_of, token_text
from grass.model.pools import (
    Pilot,
    PilotReport,
    PilotSize,
    PilotStage,
    PilotState,
    Pool,
)

log = EventLog(__name__)

POLL_S = 10.0
SOON_S = 1.0
"""How long after a submit or a cancel the engine is asked what became of it."""
TOKEN_US = 7 * 86_400 * 1_000_000
"""How long a pilot may wait in its engine; when it comes, its token gets its end."""
WORKER_ROLE = "worker"
CHECK_LIMIT_S = 5.0
"""How long an enqueue waits for engines to say whether they would take its jobs."""
TAKEN_S = 300.0
"""For how long an engine is not asked again about what it would take."""
_MOST_TAKEN = 1000
_UNCHECKED = "pool `{}` did not say whether it would take such a worker: {}"
_NO_MARK = "MARK"


class Launcher(Protocol):
    """Prepares what a pilot finds on its host."""

    def request(self, pool: Pool, mark: str) -> PilotRequest:
        """Return what the engine is asked for."""

    async def write_token(self, pool: Pool, mark: str, token: str) -> None:
        """Write the file with which the pilot's worker comes; raises CannotAsk."""

    async def stop(self, pool: Pool, mark: str) -> None:
        """Tell a pilot to end itself that its engine has lost; raises CannotAsk."""

    async def logs(self, pool: Pool) -> dict[str, str]:
        """Return the ends of what its pilots printed, by mark, the last ones last."""

    async def forget(self, pool: Pool, mark: str) -> None:
        """Remove that file, if it is there and its host can be asked."""


class PoolRunner:
    """All pools of a broker, and their engines."""

    def __init__(
        self,
        broker: Broker,
        provider_of: Callable[[Pool], Provider],
        launcher: Launcher,
        poll_s: float = POLL_S,
    ) -> None:
        self._broker = broker
        self._provider_of = provider_of
        self._launcher = launcher
        self._poll_s = poll_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._polling: set[str] = set()
        self._looking: set[str] = set()
        self._cancelled: set[str] = set()
        """Ids of jobs that engines were told to end."""
        self._taken: dict[tuple[str, PilotSize], float] = {}
        """By pool and size, until when an engine is known to take such pilots."""
        broker.ask_engines = self._ask

    async def check(self, pool: Pool) -> str:
        """Ask the engine of a pool whether it would take such pilots."""
        request = self._launcher.request(pool, "check")
        return await self._provider_of(pool).check(request)

    def script(self, pool: Pool) -> str:
        """Return what the engine of a pool would be given for one worker."""
        request = self._launcher.request(pool, _NO_MARK)
        return self._provider_of(pool).preview(request)

    async def check_jobs(self, call: Enqueue) -> list[str]:
        """Raise EngineRefusal if an engine says that it can never start a job.

        Returns a line for each pool whose engine did not answer in a few seconds. Its
        jobs are added unchecked, as those are that a submit refuses later.
        """
        unasked: dict[str, str] = {}
        deadline = asyncio.get_running_loop().time() + CHECK_LIMIT_S
        for name, size in await self._broker.call(PilotSizes(call)):
            pool = self._broker.state.pools.pools.get(name)
            if pool is not None and name not in unasked:
                try:
                    async with asyncio.timeout_at(deadline):
                        await self._check_size(pool, size)
                except TimeoutError:
                    unasked[name] = f"no answer within {CHECK_LIMIT_S:g} s"
                except CannotAsk as error:
                    unasked[name] = error.message
        return [_UNCHECKED.format(name, words) for name, words in unasked.items()]

    async def _check_size(self, pool: Pool, size: PilotSize) -> None:
        """Ask about a pilot, unless the engine is silent or has said yes before."""
        silence = self._broker.state.pools.silent.get(pool.name)
        if silence is not None:
            raise CannotAsk(silence.words)
        now = asyncio.get_running_loop().time()
        if now < self._taken.get((pool.seed, size), now):
            return
        await self.check(sized(pool, size))
        if len(self._taken) >= _MOST_TAKEN:
            self._taken.clear()
        self._taken[pool.seed, size] = now + TAKEN_S

    async def logs(self, pool: Pool) -> dict[str, str]:
        """Read what the pilots of a pool printed, also of some that are gone."""
        return await self._launcher.logs(pool)

    async def run(self) -> None:
        """Look after all pilots until cancelled."""
        try:
            while True:
                for name in {one.pool for one in self._pilots()}:
                    if name not in self._polling:
                        self._start(self._poll(name))
                await asyncio.sleep(self._poll_s)
        finally:
            self._broker.ask_engines = list
            for task in self._tasks:
                task.cancel()

    def _pilots(self) -> list[Pilot]:
        return list(self._broker.state.pools.pilots.values())

    def _ask(self, effects: list[PoolEffect]) -> None:
        pools = self._broker.state.pools.pools
        for effect in effects:
            if isinstance(effect, Submit) and effect.pool in pools:
                self._start(self._submit(pools[effect.pool], effect.mark))
            elif isinstance(effect, CancelPilots) and effect.pool in pools:
                self._start(self._cancel(pools[effect.pool], effect))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        # The next leader finds by its mark what an engine has taken meanwhile.
        if error is not None and not isinstance(error, LeadLost):
            assert isinstance(error, Exception)
            log.defect(error)

    async def _submit(self, declared: Pool, mark: str) -> None:
        pilot = self._broker.state.pools.pilots.get(mark)
        pool = sized(declared, None if pilot is None else pilot.size)
        asked = False
        try:
            await self._give_token(pool, mark)
            request = self._launcher.request(pool, mark)
            asked = True
            engine_id = await self._provider_of(pool).submit(request)
        except LeadLost:
            raise
        except (GrassError, OSError) as error:
            # What went wrong before the engine was asked is a refusal, too.
            answered = not (asked and isinstance(error, CannotAsk))
            log.warning("pool.refused", pool=pool.name, error=error)
            await self._broker.call(PilotRefused(mark, _words(error), answered))
            if answered:
                await self._launcher.forget(pool, mark)
            return
        crash_point("pools.submitted")
        log.info("pool.submitted", pool=pool.name, engine_id=engine_id)
        await self._broker.call(PilotSubmitted(pool.name, mark, engine_id))
        self._look_soon(pool.name)

    async def _give_token(self, pool: Pool, mark: str) -> None:
        secret, name = new_secret(), token_name(mark)
        made = NewToken(SCHEDULER, WORKER_ROLE, hash_of(secret), name)
        made.expires_at = time.time_ns() // 1000 + TOKEN_US
        await self._broker.call(made)
        await self._launcher.write_token(pool, mark, token_text(name, secret))

    async def _cancel(self, pool: Pool, effect: CancelPilots) -> None:
        try:
            await self._provider_of(pool).cancel(effect.engine_ids)
        except CannotAsk as error:
            # The next list repeats it.
            log.warning("pool.not_cancelled", pool=pool.name, error=error)
            return
        # One that takes long to end is looked for with all others.
        if not self._cancelled.issuperset(effect.engine_ids):
            self._cancelled.update(effect.engine_ids)
            self._look_soon(pool.name)

    def _look_soon(self, name: str) -> None:
        """Have the engine list a pool's pilots sooner than it would be its turn."""
        if name not in self._looking:
            self._looking.add(name)
            self._start(self._look(name))

    async def _look(self, name: str) -> None:
        await asyncio.sleep(SOON_S)
        self._looking.discard(name)
        if name not in self._polling and name in self._broker.state.pools.pools:
            await self._poll(name)

    async def _stop_lost(self, pool: Pool, found: Mapping[str, PilotReport]) -> None:
        """Have pilots end themselves that the engine has lost, but that live on."""
        for pilot in self._pilots():
            if pilot.mark in found and _is_lost(pilot, found[pilot.mark]):
                try:
                    await self._launcher.stop(pool, pilot.mark)
                except (CannotAsk, OSError) as error:
                    # The next list repeats it.
                    log.warning("pool.not_cancelled", pool=pool.name, error=error)

    async def _poll(self, name: str) -> None:
        pool = self._broker.state.pools.pools[name]
        marks = [one.mark for one in self._pilots() if one.pool == name]
        self._polling.add(name)
        try:
            found = await self._provider_of(pool).poll(job_name(pool), marks)
        except CannotAsk as error:
            log.warning("pool.not_listed", pool=name, error=error)
            await self._broker.call(PilotsNotListed(name, _words(error), self._poll_s))
        else:
            await self._broker.call(PilotsListed(list(found.values())))
            await self._stop_lost(pool, found)
        finally:
            self._polling.discard(name)
        kept = {one.mark for one in self._pilots()}
        for mark in set(marks) - kept:
            await self._launcher.forget(pool, mark)


def _is_lost(pilot: Pilot, report: PilotReport) -> bool:
    """Return whether a worker leaves that its engine can end no more."""
    over = report.state in (PilotState.ENDED, PilotState.ABSENT)
    return over and pilot.connected and pilot.stage is PilotStage.LEAVING


def job_name(pool: Pool) -> str:
    """Return what the pilots of a pool are called in its engine."""
    return f"grass-{pool.name}"


def _words(error: GrassError | OSError) -> str:
    return error.message if isinstance(error, GrassError) else str(error)
