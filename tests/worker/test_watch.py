"""Holding on to real processes, should the keeper be killed."""

import asyncio
import os
import subprocess

import pytest

from grass.keeper.process_table import start_ticks
from grass.worker.shell.exit_watch import ExitWatch


def ticks_of(pid: int) -> int:
    ticks = start_ticks(pid)
    assert ticks is not None
    return ticks


def waiting_child() -> "subprocess.Popen[bytes]":
    """Start a process that ends with 3 once it has read a line."""
    return subprocess.Popen(["sh", "-c", "read x; exit 3"], stdin=subprocess.PIPE)


def test_the_kernel_tells_how_a_held_process_ended() -> None:
    async def story() -> int | None:
        watch = ExitWatch()
        with waiting_child() as child:
            watch.add("a", child.pid, ticks_of(child.pid))
            watch.open_all()
            assert watch.status("a") is None
            child.communicate(b"\n")
        status = watch.status("a")
        watch.drop("a")
        assert watch.status("a") is None
        watch.close()
        return status

    status = asyncio.run(story())
    if status is None:
        pytest.skip("this kernel does not tell exit codes by pidfd")
    assert os.waitstatus_to_exitcode(status) == 3


def test_a_process_with_another_start_time_is_not_held() -> None:
    async def story() -> None:
        watch = ExitWatch()
        watch.add("a", os.getpid(), ticks_of(os.getpid()) + 1)
        watch.add("b", 2**22 + 1, 1)
        watch.open_all()
        assert not watch._descriptors
        watch.close()

    asyncio.run(story())


def test_descriptors_are_given_back() -> None:
    async def story() -> None:
        before = len(os.listdir("/proc/self/fd"))
        watch = ExitWatch()
        watch.add("a", os.getpid(), ticks_of(os.getpid()))
        watch.open_all()
        watch.add("a", os.getpid(), ticks_of(os.getpid()))
        watch.open_all()
        assert len(os.listdir("/proc/self/fd")) == before + 1
        watch.close()
        watch.close()
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(story())
