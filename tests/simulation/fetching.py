"""The blobs of a worker: the real decisions, with a link that breaks and a slow disk.

The counterpart of `grass.worker.shell.blob_files`. What an attempt needs must be there,
whole and with the right bytes, when its keeper is told to start it.
"""

import hashlib
from collections.abc import Callable
from random import Random

from grass.errors import UsageError
from grass.keeper.protocol import StartVerb, TaskRun, Verb
from grass.link.messages import Start
from grass.link.requests import BlobData, ReadBlob
from grass.worker.core.blob_fetches import BlobFetches, DropBlob, KeepBlob, WriteBlob
from tests.simulation.memory_blobs import MemoryBlobs, MemoryDraft
from tests.simulation.world import MILLISECOND, Host, Life, Violation


class SimFetches:
    """What one worker fetches; files stay when it dies, drafts do not."""

    def __init__(
        self,
        host: Host,
        life: Life,
        files: dict[str, bytes],
        ask: Callable[[ReadBlob], None],
        fetched: Callable[[str, str], None],
    ) -> None:
        self.dies: Callable[[], None] | None = None
        """What dies when the next piece has come."""
        self._host, self._life, self._files = host, life, files
        self._ask, self._fetched = ask, fetched
        self._folder = MemoryBlobs(files)
        self._drafts: dict[str, MemoryDraft] = {}
        self._core = BlobFetches()
        self._rng = Random(f"fetches {host.seed} {host.name} {host.now}")

    def need(self, start: Start) -> bool:
        """Tell whether the blobs of a start are here; the others are fetched."""
        assert start.task is not None
        names = [name for name in (start.task.function, start.arguments_blob) if name]
        missing = [name for name in dict.fromkeys(names) if name not in self._files]
        if missing and not self._core.is_waiting(start.attempt):
            self._core.need(start.attempt, missing)
            self._perform()
        return not missing

    def received(self, data: BlobData) -> None:
        """Take a piece."""
        self._core.received(data)
        self._perform()

    def connected(self) -> None:
        """Ask anew for what was asked before."""
        self._core.connected()
        self._perform()

    def check(self, verbs: list[Verb]) -> None:
        """Check that what starts need is here."""
        for verb in verbs:
            if isinstance(verb, StartVerb) and verb.task is not None:
                self._check_start(verb, verb.task)

    def _check_start(self, start: StartVerb, task: TaskRun) -> None:
        for path in (task.function, task.arguments):
            name = path.rpartition("/")[2]
            if name and name not in self._files:
                raise Violation(f"{start.id} starts before blob {name} is there")
            if name and hashlib.sha256(self._files[name]).hexdigest() != name:
                raise Violation(f"{start.id} starts with other bytes for blob {name}")

    def _perform(self) -> None:
        effects = self._core.take()
        for asked in effects.asks:
            self._ask(asked)
        for work in effects.disk:
            self._on_disk(work)
        for attempt, problem in effects.ready:
            self._fetched(attempt, problem)

    def _on_disk(self, work: WriteBlob | KeepBlob | DropBlob) -> None:
        if isinstance(work, DropBlob):
            self._drafts.pop(work.name, None)
            return
        delay = int(20 + self._rng.random() * 20 * MILLISECOND)
        self._host.after(delay, "writes a blob", lambda: self._do(work), self._life)

    def _do(self, work: WriteBlob | KeepBlob) -> None:
        dies, self.dies = self.dies, None
        if dies is not None:
            dies()
            if not self._life.alive:
                return
        try:
            if isinstance(work, WriteBlob):
                if work.name not in self._drafts:
                    self._drafts[work.name] = self._folder.begin(work.name)
                self._drafts[work.name].write(work.data)
            else:
                self._drafts.pop(work.name).finish()
        except UsageError as error:
            self._core.failed(work.name, error.message)
        else:
            self._core.done(work.name)
        self._perform()
