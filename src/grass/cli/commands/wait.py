"""`grass wait`: wait until jobs have ended, and exit as they did.

Waiting for one job returns the job's own exit code, so errors of grass have a code of
their own, 124. Waiting for several returns 0 if all succeeded, else 1. On a terminal a
line on stderr shows the progress.
"""

from __future__ import annotations

import os

from grass.cli.parsing.options import BROKER, JSON, Command, Option, names_one, read
from grass.cli.printing.streams import print_document, warn
from grass.client.client import Client
from grass.errors import GrassError, TimedOut, UsageError
from grass.model.durations import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from grass.client.json_codec import Document

    T = TypeVar("T")

OPTIONS = (
    Option("--timeout", "TIME", "give up after this long: 90s, 10m, 2h"),
    BROKER,
    JSON,
)
GRASS_FAILED = 124
HAS_NO_CODE = 125
_KILLED = 128
_STDERR = 2


def run(words: list[str]) -> int:
    """Wait for the selected jobs."""
    values, select = read(OPTIONS, words)
    if not select:
        raise UsageError("no job was named", "grass wait 7, or grass wait all")
    timeout = values.text("timeout")
    timeout_s = None if timeout is None else seconds(timeout)
    try:
        with Client(broker=values.broker) as client:
            if select == ["all"] and not values.has("json"):
                ends = _shown(client, select, lambda: client.wait_all(timeout_s))
                return 0 if not ends.keys() - {"succeeded"} else 1
            jobs = _shown(client, select, lambda: client.wait(select, timeout_s))
    except (UsageError, TimedOut):
        raise
    except GrassError as error:
        if not names_one(select):
            raise
        warn(str(error))
        return GRASS_FAILED
    if values.has("json"):
        print_document({"jobs": jobs})
    if names_one(select):
        return exit_code(jobs[0])
    return 0 if all(job["state"] == "succeeded" for job in jobs) else 1


def exit_code(job: Document) -> int:
    """Return the exit code for a job that has ended."""
    if job["state"] in ("cancelled", "lost"):
        return HAS_NO_CODE
    if job["signal"] is not None:
        return _KILLED + int(job["signal"])
    if job["exit_code"] is None:
        return HAS_NO_CODE
    # A program that is stopped at its time limit may exit with 0.
    return int(job["exit_code"]) or int(job["state"] == "failed")


def _shown(client: Client, select: list[str], wait: Callable[[], T]) -> T:
    """Wait, and show the progress on a terminal."""
    if not os.isatty(_STDERR):
        client.outage.tell = warn
        return wait()
    from grass.cli.printing.progress import Progress

    with Progress(client, select) as progress:
        client.outage.tell = progress.interject
        return wait()


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about=(
        "Wait until jobs have ended. For one job (an id, or last) the exit code is the "
        "job's own, 128+N when signal N killed it, 125 when it was cancelled, lost or "
        "could not start, 124 when grass itself failed. For several it is 0 if all "
        "succeeded, else 1. It is 7 when the time was up."
    ),
    options=OPTIONS,
    examples=("grass wait 7", "grass wait --timeout 10m all"),
    run=run,
)
