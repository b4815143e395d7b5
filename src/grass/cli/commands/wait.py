"""`grass wait`: wait until jobs have ended, and exit as they did.

Waiting for one job returns the job's own exit code, so errors of grass have a code of
their own, 124. Waiting for several returns 0 if all succeeded, else 1. On a terminal a
line on stderr shows the progress; a last line on stderr says how it ended.
"""

from __future__ import annotations

import time

from grass.cli.parsing.options import (
    ANY,
    BROKER,
    JSON,
    Command,
    Option,
    chosen,
    names_one,
    read,
)
from grass.cli.printing.quantities import brief
from grass.cli.printing.streams import print_document, warn
from grass.cli.printing.usage_text import in_short
from grass.cli.printing.waits import status_line
from grass.cli.printing.waits.pause_notice import PauseNotice
from grass.cli.printing.wording import ENDED_STATES, ended
from grass.client.client import Client
from grass.errors import GrassError, TimedOut, UsageError
from grass.model.durations import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from grass.cli.printing.waits.progress import JobProgress
    from grass.client.json_codec import Document

    T = TypeVar("T")

OPTIONS = (
    ANY,
    Option("--timeout", "TIME", "give up after this long: 90s, 10m, 2h"),
    Option("-q, --quiet", about="say nothing, neither meanwhile nor at the end"),
    BROKER,
    JSON,
)
GRASS_FAILED = 124
HAS_NO_CODE = 125
_KILLED = 128
_MOST_NAMED = 3


def run(words: list[str]) -> int:
    """Wait for the selected jobs."""
    values, select = read(OPTIONS, words)
    if not select:
        raise UsageError("no job was named", "grass wait 7, or grass wait all")
    select = chosen(values, select)
    timeout = values.text("timeout")
    timeout_s = None if timeout is None else seconds(timeout)
    quiet, began = values.has("quiet"), time.monotonic()
    talks = not quiet and not values.has("json")
    try:
        with Client(broker=values.broker) as client:
            if select == ["all"] and not values.has("json"):
                ends = _told(client, select, quiet, lambda: client.wait_all(timeout_s))
                return _all_ended(ends, time.monotonic() - began, talks=talks)
            jobs = _told(client, select, quiet, lambda: client.wait(select, timeout_s))
    except (UsageError, TimedOut):
        raise
    except GrassError as error:
        if not names_one(select):
            raise
        warn(str(error))
        return GRASS_FAILED
    if values.has("json"):
        print_document({"jobs": jobs})
    elif talks:
        took_s = time.monotonic() - began
        warn(closing(jobs, took_s) if jobs else "no job matches: nothing to wait for")
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


def closing(jobs: list[Document], took_s: float) -> str:
    """Write how jobs ended: `3 succeeded, 1 failed (job 7) in 2m05s`.

    Of several it is the time that was waited; of one the time that it ran, which it may
    have done for long before.
    """
    if len(jobs) == 1:
        used, ran_s = in_short(jobs[0]), jobs[0].get("ran_s") or 0
        return ended(jobs[0], _after(ran_s)) + (f"; {used}" if used else "")
    return ended_as(jobs) + _after(took_s)


def ended_as(jobs: list[Document]) -> str:
    """Count jobs by how they ended; a few that did not succeed are named."""
    by_state: dict[str, list[int]] = {state: [] for state in ENDED_STATES}
    for job in jobs:
        by_state[job["state"]].append(job["id"])
    return ", ".join(
        f"{len(ids)} {state}{_named(ids) if state != 'succeeded' else ''}"
        for state, ids in by_state.items()
        if ids
    )


def _named(ids: list[int]) -> str:
    if len(ids) > _MOST_NAMED:
        return ""
    return f" (job{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))})"


def _all_ended(ends: dict[str, int], took_s: float, *, talks: bool) -> int:
    if talks:
        told = [f"{ends[one]} {one}" for one in ENDED_STATES if ends.get(one)]
        warn((", ".join(told) or "no job was unfinished") + _after(took_s))
    return 0 if not ends.keys() - {"succeeded"} else 1


def _after(took_s: float) -> str:
    """Write how long that was, if it is worth a word."""
    return f" in {brief(took_s)}" if took_s >= 1 else ""


def _told(client: Client, select: list[str], quiet: bool, wait: Callable[[], T]) -> T:
    """Wait, and say meanwhile what there is to say."""
    client.outage.tell = warn
    if quiet:
        return wait()
    with _teller(client, select) as teller:
        client.outage.tell = teller.interject
        return wait()


def _teller(client: Client, select: list[str]) -> JobProgress | PauseNotice:
    if status_line.is_possible():
        from grass.cli.printing.waits.progress import JobProgress

        return JobProgress(client, select)
    return PauseNotice(client, select)


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
