"""A child that is given up while it starts."""

import asyncio
import subprocess
import threading
from typing import Any

import pytest

from grass.devices import child_process
from grass.devices.child_process import MonitorProcess, file_beside


def test_a_start_that_is_cancelled_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spawn, spawned = child_process._spawn, list[subprocess.Popen[bytes]]()

    async def test() -> None:
        program = file_beside("gpu_child.py")
        start = asyncio.create_task(MonitorProcess.start(program, ["nvml"], {}))
        loop, cancelled = asyncio.get_running_loop(), threading.Event()

        def cancel() -> None:
            start.cancel()
            loop.call_soon(cancelled.set)

        def spawn_and_cancel(*words: Any) -> "subprocess.Popen[bytes]":
            spawned.append(spawn(*words))
            loop.call_soon_threadsafe(cancel)
            assert cancelled.wait(30)
            return spawned[0]

        monkeypatch.setattr(child_process, "_spawn", spawn_and_cancel)
        with pytest.raises(asyncio.CancelledError):
            await start

    asyncio.run(test())
    [process] = spawned
    assert process.returncode is not None
