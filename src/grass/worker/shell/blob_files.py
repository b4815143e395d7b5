"""Blobs that attempts of this machine need: here already, or fetched from the broker.

A start that names blobs is begun once all of them are files here. A worker in the
broker's own daemon shares its folder and fetches nothing. Any other asks for pieces, a
few at a time, and writes each before it asks for more, so that neither side has more
than those in memory. After a new connection it goes on where it was.

Fetched blobs stay for the next start that names them, up to a limit; those that were
used longest ago are removed first, and never one that an attempt here may still open.
"""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, TypeVar

from grass.errors import GrassError
from grass.event_log import EventLog
from grass.link.requests import BLOB_PIECE, BlobData, ReadBlob
from grass.store.blob_folder import BlobFolder

log = EventLog(__name__)

T = TypeVar("T")

WINDOW = 3
"""How many pieces are asked for ahead."""
MOST_KEPT = 8 * 2**30
"""How many bytes of fetched blobs stay."""
RECENT_S = 600.0
"""A blob that was used since then is not removed: an adopted attempt may need it."""
MOST_NOTED = 64
"""When so many attempts are noted, and twice those that ran, others are forgotten."""

AskForBlob = Callable[[ReadBlob], None]
CreateTask = Callable[[Coroutine[Any, Any, None]], object]
Fetched = Callable[[str, str], None]
"""Called with an attempt, and why it cannot have its blobs; empty: it has them."""


class BlobFiles:
    """The blobs in one folder of this machine."""

    def __init__(
        self,
        place: tuple[str, int | None],
        is_running: Callable[[str], bool],
        ask: AskForBlob,
        create_task: CreateTask,
        fetched: Fetched,
    ) -> None:
        """Take the folder, and how many bytes stay; None: it is the broker's own."""
        folder, self._most = place
        # After a restart of the machine fetched ones are fetched again.
        is_shared = self._most is None
        sync = os.fsync if is_shared else _not_synced
        self._folder = BlobFolder(folder, sync, is_shared=is_shared)
        self._ask = ask
        self._create_task = create_task
        self._fetched = fetched
        self._is_running = is_running
        self._numbers = count(1)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="blob")
        self._users: dict[str, tuple[str, ...]] = {}
        """By attempt: the blobs that it names; in a broker's own folder, waits for."""
        self._most_users = MOST_NOTED
        self._fetches: dict[str, _Fetch] = {}
        self._asked: dict[int, _Fetch] = {}

    def need(self, attempt: str, names: Iterable[str]) -> bool:
        """Tell whether all blobs of an attempt are here; the others are fetched."""
        known = tuple(dict.fromkeys(names))
        missing = [name for name in known if self._folder.size(name) is None]
        if self._most is not None:
            self._note_use(set(known).difference(missing))
        if missing or self._most is not None:
            self._note_user(attempt, known)
        for name in missing:
            fetch = self._fetches.get(name)
            if fetch is None:
                fetch = self._fetches[name] = _Fetch(name)
                self._create_task(self._fetch(fetch))
            fetch.attempts.add(attempt)
        return not missing

    def received(self, data: BlobData) -> None:
        """Take a piece; one that was not asked for is dropped."""
        fetch = self._asked.pop(data.number, None)
        if fetch is not None:
            fetch.arrived.put_nowait(data)

    def connected(self) -> None:
        """Ask anew for what was asked over the link before."""
        again = set(self._asked.values())
        self._asked.clear()
        for fetch in again:
            fetch.arrived.put_nowait(None)

    def close(self) -> None:
        """Stop writing."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _fetch(self, fetch: "_Fetch") -> None:
        problem = ""
        try:
            await self._write(fetch)
            if self._most is not None:
                most, used = self._most, self._used()
                await self._in_thread(lambda: self._remove_unused(most, used))
        except GrassError as error:
            problem = f"{error.message}"
            log.warning("blob.not_fetched", blob=fetch.name, error=error.message)
        del self._fetches[fetch.name]
        for attempt in fetch.attempts:
            waits = any(one in self._fetches for one in self._users.get(attempt, ()))
            if problem or not waits:
                if self._most is None:
                    self._users.pop(attempt, None)
                self._fetched(attempt, problem)

    async def _write(self, fetch: "_Fetch") -> None:
        """Write the pieces of a blob as they come."""
        draft = await self._in_thread(lambda: self._folder.begin(fetch.name))
        try:
            self._ask_for_more(fetch)
            while not fetch.is_whole:
                came = await fetch.next_pieces()
                if came is None:
                    fetch.begin_again()
                else:
                    data = b"".join(one.data for one in came)
                    fetch.check(came)
                    # More is on its way while this is being written.
                    self._ask_for_more(fetch)
                    await self._in_thread(lambda piece=data: draft.write(piece))  # type: ignore[misc]
                self._ask_for_more(fetch)
            await self._in_thread(draft.finish)
        finally:
            await self._in_thread(draft.discard)

    def _ask_for_more(self, fetch: "_Fetch") -> None:
        """Keep some pieces asked for; of a blob of unknown size only the first."""
        while fetch.may_ask:
            number = next(self._numbers)
            self._asked[number] = fetch
            self._ask(ReadBlob(number, fetch.name, fetch.asked, BLOB_PIECE))
            fetch.asked += BLOB_PIECE

    def _note_use(self, names: Iterable[str]) -> None:
        for name in names:
            os.utime(self._folder.path(name))

    def _note_user(self, attempt: str, names: tuple[str, ...]) -> None:
        """Note what an attempt names; now and then forget those that have ended."""
        if len(self._users) >= self._most_users:
            self._forget_ended()
            self._most_users = max(MOST_NOTED, 2 * len(self._users))
        self._users[attempt] = names

    def _forget_ended(self) -> None:
        for attempt in [one for one in self._users if not self._is_wanted(one)]:
            del self._users[attempt]

    def _is_wanted(self, attempt: str) -> bool:
        waits = any(attempt in one.attempts for one in self._fetches.values())
        return waits or self._is_running(attempt)

    def _used(self) -> set[str]:
        self._forget_ended()
        return {name for names in self._users.values() for name in names}

    def _remove_unused(self, most: int, used: set[str]) -> None:
        """Remove what was used longest ago, as far as there is too much."""
        found = [(self._folder.path(name), name) for name in self._folder.names()]
        files = [(os.stat(path), name) for path, name in found]
        ages = sorted((one.st_mtime, one.st_size, name) for one, name in files)
        total, recent = sum(size for _, size, _ in ages), time.time() - RECENT_S
        for at, size, name in ages:
            if total <= most or at > recent:
                return
            if name not in used:
                self._folder.remove([name])
                total -= size

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _not_synced(_file: int) -> None:
    """Leave a file to the kernel: what is lost with the power is fetched again."""


def folder_of_boot(folder: str, boot: str) -> str:
    """Return where blobs are that were fetched since the machine was started.

    Those from before may not be whole, and are removed.
    """
    own = os.path.join(folder, boot)
    with contextlib.suppress(FileNotFoundError):
        for other in os.listdir(folder):
            if other != boot:
                shutil.rmtree(os.path.join(folder, other), ignore_errors=True)
    return own


class _Fetch:
    """One blob that is being fetched."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.attempts: set[str] = set()
        self.asked = 0
        """Up to where it was asked for."""
        self.arrived: asyncio.Queue[BlobData | None] = asyncio.Queue()
        """Pieces in order; None: ask again for what has not come."""
        self._written = 0
        self._size: int | None = None

    @property
    def is_whole(self) -> bool:
        return self._written == self._size

    @property
    def may_ask(self) -> bool:
        if self._size is None:
            return self.asked == 0
        ahead = self.asked - self._written
        return self.asked < self._size and ahead < WINDOW * BLOB_PIECE

    async def next_pieces(self) -> list[BlobData] | None:
        """Return what has come, at least one piece; None: ask again."""
        came = [await self.arrived.get()]
        while not self.arrived.empty():
            came.append(self.arrived.get_nowait())
        return None if None in came else [one for one in came if one is not None]

    def check(self, came: list[BlobData]) -> None:
        """Note pieces that are written next; refuse what is no part of the blob."""
        for data in came:
            if data.missing:
                raise GrassError(f"blob {self.name} is gone from the broker")
            if not data.data and data.size != self._written:
                raise GrassError(
                    f"the broker has sent less of blob {self.name} than it has"
                )
            self._size = data.size
            self._written += len(data.data)

    def begin_again(self) -> None:
        """Ask again from where it was written to."""
        while not self.arrived.empty():
            self.arrived.get_nowait()
        self.asked, self._size = (
            self._written,
            None if not self._written else self._size,
        )
