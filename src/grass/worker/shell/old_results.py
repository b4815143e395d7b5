"""Removes results of tasks that are older than a user wants to keep them.

Without that setting they go with their jobs, as output does. A result is known by its
ending, and its age is that of the file.
"""

import asyncio
import os
import time

from grass.event_log import EventLog

log = EventLog(__name__)

LOOK_S = 600.0
"""How often results are looked at, or sooner where they are kept for less."""
LEAST_LOOK_S = 1.0
ENDING = ".result"


async def remove_old_results(folder: str, keep_s: float) -> None:
    """Remove results in time, now and from then on."""
    pause_s = min(LOOK_S, max(LEAST_LOOK_S, keep_s / 4))
    while True:
        removed = await asyncio.to_thread(_remove, folder, time.time() - keep_s)
        if removed:
            log.info("results.removed", results=removed, keep_s=keep_s)
        await asyncio.sleep(pause_s)


def _remove(folder: str, before: float) -> int:
    """Remove the results that were written before a time, and count them."""
    removed = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if name.endswith(ENDING) and _is_older(path, before):
                os.unlink(path)
                removed += 1
    return removed


def _is_older(path: str, before: float) -> bool:
    try:
        return os.stat(path).st_mtime < before
    except FileNotFoundError:
        return False
