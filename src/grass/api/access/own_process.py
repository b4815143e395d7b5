"""The process that calls: who it is, as the kernel tells of its socket, and its end.

Nothing that a process says of itself is believed: its pid and uid are those of the
other end of the socket, and when it started has to agree with the kernel, as a pid
alone may be that of another process by now.
"""

import asyncio
import os

from starlette.requests import Request

from grass.errors import Forbidden, Refused
from grass.keeper import pidfd


def calling_process(request: Request) -> int:
    """Return the pid of the process that calls over the local socket, or refuse it."""
    state = request.scope.get("state", {})
    pid = state.get("pid")
    if not pid:
        raise Refused(
            "only a process on the worker's own machine can be a guest",
            "run it there, or enqueue a command",
        )
    if state.get("uid") != os.geteuid():
        # The keeper could neither signal it nor see how it ends.
        raise Forbidden("a guest's process belongs to the user of the daemon")
    return int(pid)


def check_started(pid: int, ticks: int) -> None:
    """Refuse a process that did not start when it is said to have started."""
    try:
        descriptor = pidfd.open_checked(pid, ticks)
    except OSError:
        descriptor = None
    if descriptor is None:
        raise Refused("this process is not the one that was named")
    os.close(descriptor)


async def until_gone(pid: int, ticks: int) -> None:
    """Wait until a process has ended."""
    descriptor = pidfd.open_checked(pid, ticks)
    if descriptor is None:
        return
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(descriptor, gone.set)
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
