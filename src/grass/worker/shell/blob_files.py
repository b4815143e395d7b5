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
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from grass.errors import GrassError
from grass.event_log import EventLog
from grass.link.requests import BlobData, ReadBlob
from grass.store.blob_folder import BlobFolder, FileDraft
from grass.worker.core.blob_fetches import BlobFetches, DropBlob, KeepBlob, WriteBlob
from grass.worker.shell.output_ends import CreateTask

log = EventLog(__name__)

T = TypeVar("T")

MOST_KEPT = 8 * 2**30
"""How many bytes of fetched blobs stay."""
RECENT_S = 600.0
"""A blob that was used since then is not removed: an adopted attempt may need it."""
MOST_NOTED = 64
"""When this many attempts are noted, and twice those that ran, others are forgotten."""

AskForBlob = Callable[[ReadBlob], None]
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
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="blob")
        self._users: dict[str, tuple[str, ...]] = {}
        """By attempt: the blobs that it names; in a broker's own folder, none."""
        self._most_users = MOST_NOTED
        self._fetches = BlobFetches()
        self._seen: set[str] = set()
        """Those that were here when the present messages came."""
        self._drafts: dict[str, FileDraft] = {}
        """Those that are being written; only the thread uses them."""

    def need(self, attempt: str, names: Iterable[str]) -> bool:
        """Tell whether all blobs of an attempt are here; the others are fetched."""
        known = tuple(dict.fromkeys(names))
        missing = [name for name in known if not self._is_here(name)]
        if self._most is not None:
            self._note_user(attempt, known)
        if missing:
            self._fetches.need(attempt, missing)
            self._perform()
        return not missing

    def look_again(self) -> None:
        """Look for each blob again: what was seen may be gone by now.

        Starts that come together name the same function, which is looked for once.
        """
        self._seen.clear()

    def _is_here(self, name: str) -> bool:
        if self._most is not None:
            return self._note_use(name)
        if name not in self._seen and self._folder.size(name) is not None:
            self._seen.add(name)
        return name in self._seen

    def received(self, data: BlobData) -> None:
        """Take a piece; one that was not asked for is dropped."""
        self._fetches.received(data)
        self._perform()

    def connected(self) -> None:
        """Ask anew for what was asked over the link before."""
        self._fetches.connected()
        self._perform()

    def close(self) -> None:
        """Stop writing."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _perform(self) -> None:
        effects = self._fetches.take()
        for asked in effects.asks:
            self._ask(asked)
        for work in effects.disk:
            self._create_task(self._on_disk(work))
        for attempt, problem in effects.ready:
            self._fetched(attempt, problem)

    async def _on_disk(self, work: "WriteBlob | KeepBlob | DropBlob") -> None:
        name = work.name
        try:
            if isinstance(work, DropBlob):
                log.warning("blob.not_fetched", blob=name, error=work.problem)
                await self._in_thread(lambda: self._drop(name))
                return
            if isinstance(work, WriteBlob):
                await self._in_thread(lambda: self._write(work))
            else:
                used = self._used()
                await self._in_thread(lambda: self._keep(name, used))
            self._fetches.done(name)
        except GrassError as error:
            self._fetches.failed(name, error.message)
        self._perform()

    def _write(self, work: WriteBlob) -> None:
        draft = self._drafts.get(work.name)
        if draft is None:
            draft = self._drafts[work.name] = self._folder.begin(work.name)
        draft.write(work.data)

    def _keep(self, name: str, used: set[str]) -> None:
        self._drafts.pop(name).finish()
        if self._most is not None:
            self._remove_unused(self._most, used | {name})

    def _drop(self, name: str) -> None:
        draft = self._drafts.pop(name, None)
        if draft is not None:
            draft.discard()

    def _note_use(self, name: str) -> bool:
        """Note that a fetched blob is used; tell whether it is here.

        In one step: the thread may be about to remove it.
        """
        try:
            os.utime(self._folder.path(name))
        except FileNotFoundError:
            return False
        return True

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
        return self._fetches.is_waiting(attempt) or self._is_running(attempt)

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
            # It may have been used since all were looked at.
            if name not in used and os.stat(self._folder.path(name)).st_mtime == at:
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
