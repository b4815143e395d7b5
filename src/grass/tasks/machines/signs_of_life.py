"""Signs of life of a program whose event loop is busy, said by another thread.

Its host would take it to be gone otherwise. They go over the channel of the program; if
that breaks meanwhile, over one of the thread, in a loop of its own: the host uses
whichever was opened last. The program opens its own again when its loop has time.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from threading import Event, Thread

import anyio
import anyio.to_thread

from grass.errors import GrassError
from grass.tasks.host.conversation import BEAT_S
from grass.tasks.host.host_frames import SIGN_OF_LIFE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from grass.client.task_channel import TaskChannel

    Reopen = Callable[[], Awaitable[TaskChannel]]

_LOOK_S = 0.1
_PAUSE_S = 0.5


@asynccontextmanager
async def signs_of_life(channel: TaskChannel, reopen: Reopen) -> AsyncIterator[None]:
    """Have another thread say that this program lives, while a block runs."""
    is_over = Event()

    def beat() -> None:
        while not is_over.wait(BEAT_S):
            if not channel.send_from_thread(SIGN_OF_LIFE):
                anyio.run(_say_elsewhere, reopen, is_over)
                return

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        # What it opens late would be used in place of what is opened next.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join)


async def _say_elsewhere(reopen: Reopen, is_over: Event) -> None:
    """Say it over channels of this thread until the program has time again."""
    async with anyio.create_task_group() as group:
        group.start_soon(_say_always, reopen)
        while not is_over.is_set():  # noqa: ASYNC110 -- another thread sets it
            await anyio.sleep(_LOOK_S)
        group.cancel_scope.cancel()


async def _say_always(reopen: Reopen) -> None:
    while True:
        with suppress(GrassError, OSError):
            await _say_over(await reopen())
        await anyio.sleep(_PAUSE_S)


async def _say_over(channel: TaskChannel) -> None:
    try:
        await channel.running()
        while True:
            await channel.send(SIGN_OF_LIFE)
            await anyio.sleep(BEAT_S)
    finally:
        channel.close()
