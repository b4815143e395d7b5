"""`GrainExecutor`: submit tasks in a block, and find their results after it."""

from __future__ import annotations

import math

import anyio
import anyio.lowlevel

from grass.resource import resource_from
from grass.tasks.combine import Machines, run_combine
from grass.tasks.program_units import ProgramBlock
from grass.tasks.session import Session
from grass.tasks.task import Options
from grass.tasks.wait_group import WaitGroup, open_waitgroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, Self

    from anyio.streams.memory import MemoryObjectReceiveStream

    from grass.resource import Asked, Resource
    from grass.tasks.task import Task


class GrainExecutor:
    """Runs what is submitted in a block, which ends when all of it is done.

    In a plain `with`, tasks begin when the block ends. In an `async with` they begin at
    once, and `resultq` has the number of each task and its result as they end.
    """

    def __init__(
        self,
        addresses: Iterable[str] = (),
        rpw: Asked = None,
        *,
        backend: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        # Grain's executor is given a nursery; this one has its own.
        options.pop("_n", None)
        self._rpw = None if rpw is None else resource_from(rpw)
        self._addresses = list(addresses)
        self._machines = Machines(self._addresses, self._rpw)
        self._backend, self._given = backend, options
        self._calls: list[tuple[Resource, Callable[..., Any], Any, Any]] = []
        self._group: _Numbered | None = None
        self._count = 0
        self.results: list[Any] = []
        """The results in the order of submission, once the block has ended."""
        self.resultq: MemoryObjectReceiveStream[tuple[int, Any]]

    def submit(
        self,
        res: Resource,
        fn: Callable[..., Any],
        /,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> int:
        """Have a function called once its resources are free; return its number."""
        self._count += 1
        if self._group is None:
            self._calls.append((res, fn, args, kwargs))
        else:
            self._group.submit(res, fn, *args, **kwargs)
        return self._count

    async def asubmit(
        self,
        res: Resource,
        fn: Callable[..., Any],
        /,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> int:
        """Submit, and let other tasks go on."""
        number = self.submit(res, fn, *args, **kwargs)
        await anyio.lowlevel.checkpoint()
        return number

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, traceback: object
    ) -> None:
        """Run all that was submitted, unless the block has failed."""
        if kind is None:
            where = (self._addresses, self._rpw)
            run_combine(self._run_all, *where, backend=self._backend, **self._given)

    async def _run_all(self) -> None:
        async with open_waitgroup() as group:
            for res, fn, args, kwargs in self._calls:
                group.submit(res, fn, *args, **kwargs)
        self.results = group.results

    async def __aenter__(self) -> Self:
        """Begin to run what is submitted."""
        self._program = ProgramBlock(self._rpw)
        program = await self._program.__aenter__()
        self._session = Session(program, Options().changed(**self._given))
        await self._session.__aenter__()
        try:
            await self._machines.open(self._session)
        except BaseException as error:
            await self._session.__aexit__(type(error), error, error.__traceback__)
            await self._program.__aexit__(type(error), error, error.__traceback__)
            raise
        self._group = _Numbered(self._session)
        self.resultq = self._group.resultq
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait until all is done."""
        assert self._group is not None
        try:
            try:
                await self._group.__aexit__(kind, error, traceback)
                self.results = self._group.results
            finally:
                self._group.push_result.close()
                await self._session.__aexit__(None, None, None)
        finally:
            await self._program.__aexit__(kind, error, traceback)


class _Numbered(WaitGroup):
    """A wait-group that tells each result as it comes."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.push_result, self.resultq = anyio.create_memory_object_stream[
            tuple[int, object]
        ](math.inf)

    def succeeded(self, task: Task) -> None:
        """Take the result of a task."""
        self.push_result.send_nowait((task.place + 1, task.value))
        super().succeeded(task)
