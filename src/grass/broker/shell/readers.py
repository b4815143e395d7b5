"""Threads that read the store for users: one that stays, and others while it is busy.

A slow query holds up nobody while another thread may be had. Those besides the first
leave when nobody has needed them for a while, and take their connections with them: an
idle daemon must be small.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from grass.store.interface import Store

T = TypeVar("T")

MOST = 4
IDLE_S = 10.0
"""After this time without a query every thread but the first one ends."""
SCANS_AT_ONCE = 2
"""Queries that look at all jobs: others always find a thread."""


class _Question(NamedTuple):
    query: Callable[[Store], Any]
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"


class Readers:
    """The threads, and the queries that wait for one."""

    def __init__(self, store: Store) -> None:
        """Start the first thread; `stop` ends all."""
        self._store = store
        self._changed = threading.Condition()
        self._questions: deque[_Question] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._stopping = False
        self._scans = asyncio.Semaphore(SCANS_AT_ONCE)
        # Now: a machine that is short of processes gives none later.
        self._start(stays=True)

    async def read(self, query: Callable[[Store], T]) -> T:
        """Run a query; all it reads is of one commit."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        with self._changed:
            self._questions.append(_Question(query, loop, answer))
            if self._idle >= len(self._questions):
                self._changed.notify()
            elif len(self._threads) < MOST:
                # Where no thread can be had, one of those that there are does it.
                with suppress(RuntimeError):
                    self._start(stays=False)
        return await answer

    async def scan(self, query: Callable[[Store], T]) -> T:
        """Run a query that may look at all jobs; only a few such run at a time."""
        async with self._scans:
            return await self.read(query)

    def stop(self) -> None:
        """Answer what waits and end all threads; may be called twice."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in list(self._threads):
            thread.join()

    def _start(self, *, stays: bool) -> None:
        thread = threading.Thread(
            target=self._run, args=(stays,), name="reader", daemon=True
        )
        thread.start()
        self._threads.add(thread)

    def _run(self, stays: bool) -> None:
        while (question := self._next(None if stays else IDLE_S)) is not None:
            _answer(question, self._store)
        self._store.release()

    def _next(self, patience_s: float | None) -> _Question | None:
        """Wait for a query; None: this thread is to leave."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(
                lambda: self._questions or self._stopping, patience_s
            )
            self._idle -= 1
            if self._questions:
                return self._questions.popleft()
            self._threads.discard(threading.current_thread())
            return None


def _answer(question: _Question, store: Store) -> None:
    query, loop, answer = question
    if answer.cancelled():
        return
    try:
        with store.consistent():
            result = query(store)
    except BaseException as error:  # noqa: BLE001 -- carried to the caller
        _tell(loop, _fail, answer, error)
    else:
        _tell(loop, _succeed, answer, result)


def _tell(
    loop: asyncio.AbstractEventLoop, act: Callable[..., None], *said: object
) -> None:
    # At the end of the daemon nobody may be left to tell.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act, *said)


def _succeed(answer: "asyncio.Future[Any]", result: object) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: "asyncio.Future[Any]", error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
