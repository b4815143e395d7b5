"""`run_combine`: a program whose functions ask for resources."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Generator, Iterable
from contextlib import nullcontext
from functools import partial

import anyio

from grass.config import LOCAL
from grass.errors import UsageError
from grass.resource import resource_from
from grass.tasks.coroutine_call import chosen_backend
from grass.tasks.program_units import ProgramBlock, ProgramUnits
from grass.tasks.session import Session, current
from grass.tasks.task import Options, awaited, check_is_function
from grass.tasks.wait_group import open_waitgroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from grass.resource import Asked, Resource

    Main = Callable[[], Awaitable[Any]]


def run_combine(
    subtasks: Main | Iterable[Main],
    addresses: Iterable[str] = (),
    rpw: Asked = None,
    *,
    broker: str | bool | None = None,
    backend: str | None = None,
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Run a coroutine function, or several side by side, that submit tasks.

    Returns what it returns; a list for several. `rpw` is what tasks have here, and on
    each machine that an address names: `["node1:7501"]` is the broker there, which this
    machine has joined. With `broker="my.server.com:7500"`, or `True` for this machine's
    own daemon, each task is a job there instead, which outlives the program. `backend`
    is `asyncio` or `trio`. In a program that runs an event loop already it returns what
    has to be awaited. `reschedule`, `persistent` and `temporary_err` are as for
    `options` of a wait-group; with `broker` so are options of jobs, as `queue="night"`.
    """
    if current.get() is not None:
        raise UsageError(
            "`run_combine` runs already", "use `open_waitgroup` and `start_subtask`"
        )
    if not callable(subtasks):
        subtasks = _functions(subtasks)
    has = None if rpw is None else resource_from(rpw)
    if broker is None or broker is False:
        where: Machines | TasksAsJobs = Machines(addresses, has)
    else:
        where = TasksAsJobs(broker, addresses, has)
    main = partial(_main, subtasks, where.options().changed(**options), where)
    if _is_in_loop():
        return Unawaited(_run_in_loop(main, where))
    loop = chosen_backend(backend)
    with where.block() as program:
        try:
            return anyio.run(main, program, backend=loop)
        except (KeyboardInterrupt, BaseExceptionGroup) as error:
            if _is_interrupt(error):
                # Without what was cancelled by it: that tells nothing.
                raise KeyboardInterrupt from None
            raise


def _is_interrupt(error: BaseException) -> bool:
    """Tell whether this is Ctrl-C alone, which trio puts into groups."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(KeyboardInterrupt)[1] is None
    return isinstance(error, KeyboardInterrupt)


def _functions(subtasks: Iterable[Main]) -> list[Main]:
    """Read several functions."""
    if not isinstance(subtasks, Iterable):
        check_is_function(subtasks)
    functions = list(subtasks)
    for one in functions:
        check_is_function(one)
    return functions


class Machines:
    """The addresses of a program, and what it asks for at each of them."""

    def __init__(self, addresses: Iterable[str], rpw: Resource | None) -> None:
        """Refuse addresses that are none, before anything is waited for."""
        if not isinstance(addresses, Iterable):
            raise UsageError(
                f"addresses are a list, not {addresses!r}",
                "what tasks have comes after them: `run_combine(main, [], Cores(4))`",
            )
        self._addresses = addresses if isinstance(addresses, str) else list(addresses)
        self._rpw = rpw
        if self._addresses:
            from grass.tasks.machines.addresses import check_addresses

            check_addresses(self._addresses, rpw)

    def options(self) -> Options:
        """Return the options of tasks that are given none."""
        return Options()

    def block(self) -> ProgramBlock:
        """Return what holds the units of this machine."""
        return ProgramBlock(self._rpw)

    def session(self, program: ProgramUnits, options: Options) -> Session:
        """Return what runs the tasks."""
        return Session(program, options)

    async def open(self, session: Session) -> None:
        """Enqueue a task host at each of them, for as long as the session lasts."""
        if self._addresses:
            from grass.tasks.machines.addresses import open_hosts

            assert self._rpw is not None
            await open_hosts(session, self._addresses, self._rpw, running_backend())


class TasksAsJobs:
    """A broker whose jobs the tasks of a program are."""

    def __init__(
        self, broker: str | bool, addresses: Iterable[str], rpw: Resource | None
    ) -> None:
        """Refuse what is about units of the program's own."""
        if not broker:
            raise UsageError(
                "`broker` is empty", "name one, or `True` for this machine's own"
            )
        self._broker = LOCAL if broker is True else str(broker)
        if list(addresses):
            raise UsageError(
                "tasks are jobs of a broker, or run at addresses; not both",
                "leave out `broker`, or write [] for addresses",
            )
        if rpw is not None:
            raise UsageError(
                "`rpw` is what a program has itself: a job gets what it asks for",
                "leave it out with `broker`",
            )

    def options(self) -> Options:
        """Return the options of tasks that are given none; those of jobs are some."""
        from grass.tasks.queue_options import QueueOptions

        return QueueOptions({})

    def block(self) -> nullcontext[ProgramUnits]:
        """Return what holds nothing: the jobs hold their units themselves."""
        return nullcontext(ProgramUnits({}))

    def session(self, _program: ProgramUnits, options: Options) -> Session:
        """Return what enqueues the tasks."""
        from grass.tasks.queue_session import QueueSession

        return QueueSession(self._broker, running_backend(), options)

    async def open(self, session: Session) -> None:
        """Connect to the broker."""
        await session.connect()


class Unawaited(Coroutine):  # type: ignore[type-arg]
    """What `run_combine` returns in a loop; shown by a cell, it says what to do."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __repr__(self) -> str:
        """Return the next step."""
        return "<nothing has run yet: write `await run_combine(...)`>"

    def __await__(self) -> Generator[Any, Any, Any]:
        """Run it."""
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:  # noqa: ANN401
        """Go on, as a task of the loop."""
        return self._coroutine.send(value)

    def throw(self, *raised: Any) -> Any:  # noqa: ANN401
        """Go on with an exception."""
        return self._coroutine.throw(*raised)

    def close(self) -> None:
        """Do not run it."""
        self._coroutine.close()


async def _run_in_loop(
    main: Callable[[ProgramUnits], Awaitable[Any]], where: Machines | TasksAsJobs
) -> Any:  # noqa: ANN401
    async with where.block() as program:
        return await main(program)


async def _main(
    subtasks: Main | Iterable[Main],
    options: Options,
    where: Machines | TasksAsJobs,
    program: ProgramUnits,
) -> Any:  # noqa: ANN401
    failed: BaseException | None = None
    value: Any = None
    async with where.session(program, options) as session:
        try:
            await where.open(session)
            if callable(subtasks):
                value = await awaited(subtasks)
            else:
                value = await _side_by_side(subtasks)
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- raised below
            # Outside of our task group, which would put it into a group.
            failed = error
    if failed is not None:
        raise failed
    return value


async def _side_by_side(subtasks: Iterable[Main]) -> list[Any]:
    async with open_waitgroup() as group:
        for subtask in subtasks:
            group.start_subtask(subtask)
    return group.results


def running_backend() -> str:
    """Return which event loop this code runs in."""
    trio = sys.modules.get("trio")
    is_trio = trio is not None and trio.lowlevel.in_trio_run()
    return "trio" if is_trio else "asyncio"


def _is_in_loop() -> bool:
    if running_backend() == "trio":
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
