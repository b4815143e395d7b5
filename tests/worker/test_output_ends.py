"""Exits wait for the end of their output, however many come at once."""

import asyncio
from pathlib import Path

from grass.keeper.protocol import ExitEntry
from grass.worker.shell.output_ends import OutputEnds

CLIENTS = 48
"""So many processes may share a GPU by MPS, and a fault ends all of them at once."""


def test_the_output_of_all_that_died_together_is_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("illegal memory access")
    told: list[tuple[str, bytes]] = []

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            ends = OutputEnds(
                lambda one, end: told.append((one.id, end)), group.create_task
            )
            for number in range(CLIENTS):
                entry = ExitEntry("exited", str(number), 1)
                ends.read(entry, [str(tmp_path / "log")])
        ends.close()

    asyncio.run(story())
    assert len(told) == CLIENTS
    assert {end for _, end in told} == {b"illegal memory access"}
