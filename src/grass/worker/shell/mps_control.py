"""Waits until a control daemon of MPS takes clients."""

import asyncio
import os

from grass.worker.core.mps_limits import PID_FILE

PATIENCE_S = 5.0
_LOOK_S = 0.01


async def is_ready(pipes: str, pid: int) -> bool:
    """Return whether a control daemon is ready, waiting for it for a while.

    It writes its pid beside its pipes when it is.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    while loop.time() < until:
        if _pid_in(os.path.join(pipes, PID_FILE)) == pid:
            return True
        await asyncio.sleep(_LOOK_S)
    return False


def _pid_in(path: str) -> int | None:
    try:
        with open(path, "rb") as file:
            text = file.read(32).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
