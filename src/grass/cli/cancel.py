"""`grass cancel`: end jobs, and return when they are gone."""

from __future__ import annotations

from grass.cli.durations import seconds
from grass.cli.options import JSON, Command, Option, Values, read
from grass.cli.printing import counted, print_document, say
from grass.client.client import Client
from grass.errors import UsageError

OPTIONS = (
    Option("--now", about="with SIGKILL, without grace"),
    Option("--grace", "TIME", "how long after SIGTERM comes SIGKILL: 30s, 2m"),
    Option("--no-wait", about="return before they are gone"),
    JSON,
)
_KILL = 9


def run(words: list[str]) -> int:
    """End the selected jobs."""
    values, select = read(OPTIONS, words)
    if not select:
        raise UsageError("no job was named", "grass cancel 7, or grass cancel all")
    with Client() as client:
        if values.has("now"):
            ended = client.cancel(select, grace_s=0, signal=_KILL)["jobs"]
        else:
            ended = client.cancel(select, grace_s=_grace(values))["jobs"]
        if ended and not values.has("no_wait"):
            client.wait(ranges(ended))
    if values.has("json"):
        print_document({"jobs": ended})
    elif ended:
        say(f"cancelled {counted(len(ended), 'job')}")
    else:
        say("nothing to cancel: no such job is unfinished")
    return 0


def ranges(ids: list[int]) -> list[str]:
    """Write ids as the fewest selectors: `3-9`, `12`."""
    runs: list[tuple[int, int]] = []
    for one in sorted(ids):
        if runs and runs[-1][1] + 1 == one:
            runs[-1] = (runs[-1][0], one)
        else:
            runs.append((one, one))
    return [f"{first}-{last}" for first, last in runs]


def _grace(values: Values) -> float | None:
    text = values.text("grace")
    return None if text is None else seconds(text)


COMMAND = Command(
    usage="[--now] [--grace TIME] [--no-wait] [--json] SELECTOR...",
    about=(
        "End jobs: those that wait never start; those that run get SIGTERM, and "
        "SIGKILL if they are still there after their grace."
    ),
    options=OPTIONS,
    examples=("grass cancel 7", "grass cancel --now 3-9", "grass cancel queue:q1"),
    run=run,
)
