"""The verbs in coroutines, under asyncio and trio."""

import asyncio

import anyio
import pytest

import grass
from grass.errors import TimedOut
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.daemon
both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@both
def test_every_verb_can_be_awaited(desk: GrassHome, backend: str) -> None:
    async def main() -> None:
        job = await grass.enqueue_async("echo one; echo two", project="demo")
        assert (await job.wait_async(PATIENCE_S)).has_succeeded
        assert [line async for line in job.logs_async()] == ["one", "two"]
        assert "succeeded" in await job.explain_async()
        assert (await job.rerun_async(hold=True)).state == "held"
        many = await grass.enqueue_many_async([["true"]], hold=True)
        made = await grass.enqueue_array_async(["true"], "1-2", hold=True)
        found = await grass.jobs_async("all")
        assert found.ids == [job.id, *many.ids, *made.ids]
        assert len(await found.cancel_async()) == 4
        await found.refresh_async()
        assert {one.state for one in found} == {"cancelled"}
        held = await grass.enqueue_async(["true"], hold=True)
        with pytest.raises(TimedOut):
            await held.wait_async(0.1)

    anyio.run(main, backend=backend)


@both
def test_other_tasks_go_on_while_one_waits(
    desk: GrassHome, gate: Fifo, backend: str
) -> None:
    async def main() -> None:
        job = grass.enqueue(f"read x < {gate}")
        async with anyio.create_task_group() as group:
            group.start_soon(job.wait_async)
            await anyio.to_thread.run_sync(gate.tell, "go")
        assert job.has_succeeded

    anyio.run(main, backend=backend)


@both
@pytest.mark.parametrize("limit_s", [None, PATIENCE_S])
def test_a_wait_that_is_cancelled_is_broken_off(
    desk: GrassHome, backend: str, limit_s: float | None
) -> None:
    job = grass.enqueue(["true"], hold=True)

    async def main() -> bool:
        with anyio.move_on_after(0.2) as scope:
            await job.wait_async(limit_s)
        return scope.cancelled_caught

    # It returns although the job never ends, and leaves no thread that waits.
    assert anyio.run(main, backend=backend)


def test_a_task_of_asyncio_that_is_cancelled_is_broken_off(desk: GrassHome) -> None:
    job = grass.enqueue(["true"], hold=True)

    async def main() -> None:
        waiting = asyncio.create_task(job.wait_async())
        await asyncio.sleep(0.2)
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


@both
def test_lines_that_are_not_read_to_the_end_are_let_go(
    desk: GrassHome, gate: Fifo, backend: str
) -> None:
    job = grass.enqueue(f"echo one; read x < {gate}; echo two")

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async for line in job.logs_async(follow=True):
                assert line == "one"
                scope.cancel()
        assert scope.cancelled_caught

    anyio.run(main, backend=backend)
    gate.tell("go")
    assert list(job.wait(PATIENCE_S).logs()) == ["one", "two"]
