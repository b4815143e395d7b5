"""The tasks of a program as jobs of a broker: `run_combine(main, broker=...)`.

Wait-groups and `exec1` are the same as with units of one's own. Tasks that are
submitted in one turn of the event loop are enqueued by one call. One follower of the
journal tells which have ended, and their results are read many at a time. Always true:
a task waits to be sent, is being sent, or has a job; when it has ended it is none of
that. Jobs outlive the program: one that is killed leaves them to the broker. A task is
enqueued a second time only after its function has raised one of its `temporary_err`:
where a call has no answer its tasks fail, for they may run.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.from_thread
import anyio.to_thread

from grass.client.connection import Broken
from grass.client.id_ranges import as_ranges, in_words
from grass.client.long_calls import follow_events
from grass.errors import (
    CommitInDoubt,
    GrassError,
    NeverFits,
    NoDaemon,
    NotFound,
    Refused,
    UsageError,
)
from grass.resource import ZERO
from grass.tasks.core.task_units import TaskStart
from grass.tasks.neighbours import with_neighbours
from grass.tasks.program_units import ProgramUnits
from grass.tasks.queue_options import QueueOptions, check_counted
from grass.tasks.session import Session
from grass.tasks.task import Task
from grass.verbs.calling import Caller, CallThread
from grass.verbs.packing import pack_arguments, pack_function, unpacked
from grass.verbs.task_jobs import PackedCall, enqueue_tasks, read_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

    from grass.client.json_codec import Document
    from grass.resource import Resource
    from grass.tasks.functions import Snapshot
    from grass.tasks.task import Options, Owner
    from grass.verbs.packing import Packed

_ENDS = ["finished", "cancelled"]
"""The events of which the first always is the end of a job, and the second may be."""
_TOGETHER = 250
_REFUSALS = (UsageError, Refused, NeverFits, NotFound)
"""The broker enqueues nothing of a call that it answers by one of these."""
_IN_DOUBT = (CommitInDoubt, NoDaemon)
"""After one of these the broker may have enqueued the tasks of a call."""


class _Outcome(NamedTuple):
    """The end of a job, as far as it could be read."""

    job: int
    value: object = None
    error: BaseException | None = None
    is_raised: bool = False
    """Whether the task has raised the error; otherwise reading has failed."""


class QueueSession(Session):
    """The tasks of a program, each of which is a job."""

    def __init__(self, broker: str, backend: str, options: Options) -> None:
        super().__init__(ProgramUnits({}), options)
        self._broker, self._backend = broker, backend
        self._client = Caller(broker=broker)
        self._fields: dict[int, Document] = {}
        """What the job of each task is given, by its number."""
        self._unsent: dict[int, Task] = {}
        self._sending: dict[int, Task] = {}
        self._jobs: dict[int, Task] = {}
        self._ended_early: set[int] = set()
        self._to_read: dict[int, None] = {}
        self._cancelled: set[int] = set()
        self._send_wanted = anyio.Event()
        self._read_wanted = anyio.Event()

    async def connect(self) -> None:
        """Connect, and follow the journal from now on; raise where that fails."""
        shown = await CallThread().call(self._client.overview)
        self.start_soon(self._follow, shown["daemon"]["last_event"])
        self.start_soon(self._send_always)
        self.start_soon(self._read_always)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Follow no more; jobs that were not cancelled go on."""
        try:
            return await super().__aexit__(kind, error, traceback)
        finally:
            self._client.close()

    @property
    def running(self) -> int:
        """How many tasks are jobs that have not ended."""
        return len(self._jobs) + len(self._sending)

    @property
    def waiting(self) -> int:
        """How many tasks are still to be enqueued."""
        return len(self._unsent)

    def submit(
        self,
        owner: Owner,
        options: Options,
        res: Resource,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Task:
        """Have a task enqueued; a coroutine function without a request runs here."""
        task = Task(owner, options, function, args, more)
        assert isinstance(options, QueueOptions)
        fields = options.fields_for(res)
        self._count += 1
        task.number = self._count
        if task.is_async and not res.parts:
            task.start = TaskStart(task.number, {}, ZERO)
            owner.begin(task)
        else:
            self._fields[task.number] = fields
            self._send_soon(task)
        return task

    def check(self, res: Resource) -> None:
        """Refuse what cannot go through a broker."""
        check_counted(res)

    def drop(self, task: Task) -> None:
        """Forget a task that nobody waits for."""
        task.start = None
        self._forget(task)

    def _forget(self, task: Task) -> None:
        self._fields.pop(task.number, None)

    async def cancel(self, tasks: Iterable[Task]) -> None:
        """Cancel the jobs of tasks; they are not waited for."""
        numbers = {task.number for task in tasks}
        for number in numbers & self._unsent.keys():
            del self._unsent[number]
        self._cancelled |= numbers & self._sending.keys()
        jobs = sorted(job for job, task in self._jobs.items() if task.number in numbers)
        for job in jobs:
            del self._jobs[job]
        await self._cancel_jobs(jobs)

    async def _cancel_jobs(self, jobs: list[int]) -> None:
        def cancel() -> None:
            try:
                with Caller(broker=self._broker) as client:
                    _cancel(client, jobs)
            except (GrassError, Broken, OSError) as error:
                those = in_words(jobs)
                sys.stderr.write(f"grass: not cancelled: {those}: {error}\n")

        if jobs:
            await anyio.to_thread.run_sync(cancel)

    def _send_soon(self, task: Task) -> None:
        self._unsent[task.number] = task
        self._send_wanted.set()

    async def _send_always(self) -> None:
        while True:
            await self._send_wanted.wait()
            self._send_wanted = anyio.Event()
            self._sending, self._unsent = self._unsent, {}
            those = list(self._sending.values())
            sent = await CallThread().call(partial(self._sent, those))
            await self._note_sent(sent)

    def _sent(self, those: list[Task]) -> list[tuple[Task, int | BaseException]]:
        """Enqueue tasks; return the job of each, or its error. Runs in a thread."""
        calls: list[tuple[Task, PackedCall]] = []
        found: list[tuple[Task, int | BaseException]] = []
        # A worker may be on another machine, or in another directory.
        with with_neighbours():
            for task in those:
                try:
                    calls.append((task, self._call(task)))
                except GrassError as error:
                    found.append((task, error))
        return found + self._enqueued(calls)

    def _enqueued(
        self, calls: list[tuple[Task, PackedCall]]
    ) -> list[tuple[Task, int | BaseException]]:
        if not calls:
            return []
        try:
            reply = enqueue_tasks(self._client, [call for _, call in calls], {})
        except _REFUSALS as error:
            if len(calls) == 1:
                return [(calls[0][0], error)]
            # All or none: look for the one that is refused.
            half = len(calls) // 2
            return self._enqueued(calls[:half]) + self._enqueued(calls[half:])
        except GrassError as error:
            # The client has repeated the call with its key. Another key could enqueue
            # the tasks a second time.
            return [(task, _not_enqueued(task, error)) for task, _ in calls]
        first = int(reply["first"])
        return [(task, first + place) for place, (task, _) in enumerate(calls)]

    def _call(self, task: Task) -> PackedCall:
        assert task.function is not None
        fields = self._fields.get(task.number, {})
        packed = self._packed_function(task.function, task.owner.snapshot)
        arguments = pack_arguments(packed.title, task.args, task.more or {})
        return PackedCall(packed, arguments, fields)

    def _packed_function(
        self, function: Callable[..., Any], snapshot: Snapshot
    ) -> Packed:
        """Return a function as it was when its wait-group first submitted it."""
        known = snapshot.get(id(function))
        if known is None:
            packed = pack_function(function, self._backend)
            known = snapshot[id(function)] = function, packed
        found: Packed = known[1]
        return found

    async def _note_sent(self, sent: list[tuple[Task, int | BaseException]]) -> None:
        unwanted: list[int] = []
        for task, job in sent:
            if task.number in self._cancelled:
                unwanted += [] if isinstance(job, BaseException) else [job]
            elif isinstance(job, BaseException):
                self._failed(task, job)
            else:
                self._jobs[job] = task
                if job in self._ended_early:
                    self._read_soon(job)
        self._sending = {}
        self._ended_early.clear()
        self._cancelled.clear()
        await self._cancel_jobs(unwanted)

    async def _follow(self, after: int) -> None:
        def follow() -> None:
            with Caller(broker=self._broker) as client:
                for event in follow_events(client, after, {"kind": _ENDS}):
                    anyio.from_thread.run_sync(self._note_end, event["job"])

        await CallThread().call(follow)

    def _note_end(self, job: int) -> None:
        if job in self._jobs:
            self._read_soon(job)
        elif self._sending:
            # It may be one whose number is still to be told.
            self._ended_early.add(job)

    def _read_soon(self, job: int) -> None:
        self._to_read[job] = None
        self._read_wanted.set()

    async def _read_always(self) -> None:
        with Caller(broker=self._broker) as reader:
            while True:
                await self._read_wanted.wait()
                self._read_wanted = anyio.Event()
                ended = [job for job in self._to_read if job in self._jobs]
                self._to_read.clear()
                for begin in range(0, len(ended), _TOGETHER):
                    await self._read(reader, ended[begin : begin + _TOGETHER])

    async def _read(self, reader: Caller, jobs: list[int]) -> None:
        outcomes = await CallThread().call(partial(self._outcomes, reader, jobs))
        for outcome in outcomes:
            task = self._jobs.pop(outcome.job, None)
            if task is not None:
                self._finish(task, outcome)

    def _outcomes(self, client: Caller, jobs: list[int]) -> list[_Outcome]:
        """Read how tasks have ended, without those that have not. Runs in a thread."""
        small = client.small_results(jobs)
        found: list[_Outcome] = []
        for job in jobs:
            content: bytes | bytearray
            is_own, content = small.get(job, (False, b""))
            if not is_own:
                try:
                    if client.job(job)["finished_at"] is None:
                        continue
                    content = read_content(client, job)
                except Exception as error:  # noqa: BLE001 -- the task fails by it
                    found.append(_Outcome(job, error=error))
                    continue
            found.append(_outcome(job, content))
        return found

    def _finish(self, task: Task, outcome: _Outcome) -> None:
        error = outcome.error
        if error is None:
            self._forget(task)
            self.ended += 1
            task.value = outcome.value
            task.owner.succeeded(task)
        elif (
            outcome.is_raised
            and isinstance(error, task.options.temporary_err)
            and task.may_run_again(failed_by_itself=True)
        ):
            task.tries += 1
            self._send_soon(task)
        else:
            self._failed(task, error)

    def _failed(self, task: Task, error: BaseException) -> None:
        self._forget(task)
        self.ended += 1
        task.owner.failed(task, error)


def _outcome(job: int, content: bytes | bytearray) -> _Outcome:
    """Return what a task returned or raised."""
    try:
        return _Outcome(job, unpacked(content, job))
    except Exception as error:  # noqa: BLE001 -- it is the task's
        return _Outcome(job, error=error, is_raised=True)


def _not_enqueued(task: Task, error: GrassError) -> GrassError:
    if not isinstance(error, _IN_DOUBT):
        return error
    return error.reworded(
        f"it is unknown whether `{task.name}` was enqueued: {error.message}"
    )


def _cancel(client: Caller, jobs: list[int]) -> None:
    """Cancel jobs; those that have ended and were removed are passed over."""
    try:
        client.cancel(as_ranges(jobs))
    except NotFound:
        half = len(jobs) // 2
        if half:
            _cancel(client, jobs[:half])
            _cancel(client, jobs[half:])
