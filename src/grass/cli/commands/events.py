"""`grass events`: the journal of everything that happened, and what happens now."""

from __future__ import annotations

import sys

from grass.cli.parsing.options import BROKER, Command, Option, at_most, read
from grass.cli.printing.quantities import age, local, utc_now
from grass.cli.printing.streams import print_document, printable, safe, warn
from grass.cli.printing.wording import owner
from grass.client.client import Client
from grass.client.json_codec import encoded
from grass.errors import UsageError
from grass.model.durations import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document

OPTIONS = (
    Option("-f, --follow", about="go on with what happens, until Ctrl-C"),
    Option("--job", "JOB", "only what happened to this job"),
    Option("--kind", "KIND", "only events of this kind: started, finished"),
    Option("--since", "TIME", "not longer ago than this: 30m, 1h, 2d"),
    Option("-n, --lines", "N", "the last N events (default: 50, or all with --since)"),
    BROKER,
    Option("--json", about="print JSON objects, one for each event"),
)
_USUAL = 50
_WINDOW = 1000
_KIND_WIDTH = 16
_NO_PERSON = "scheduler"


class EventOptions:
    """Which events were asked for."""

    def __init__(self, values: Values, job: int | None) -> None:
        since = values.text("since")
        self.since_s = None if since is None else seconds(since)
        self.job = job
        self.kind = values.text("kind")
        if self.kind is not None:
            _check_kind(self.kind)
        self.most = values.whole_number("lines")
        if self.most is None and since is None:
            self.most = _USUAL
        if self.most is not None and self.most < 0:
            raise UsageError("-n must not be negative")

    def chosen(self, events: list[Document]) -> list[Document]:
        """Leave out events that are too old, or too many."""
        now = utc_now()
        if self.since_s is not None:
            events = [one for one in events if age(one["at"], now) <= self.since_s]
        first = 0 if self.most is None else max(0, len(events) - self.most)
        return events[first:]


def _check_kind(kind: str) -> None:
    """Warn of an unknown kind; a daemon of a later version may know it."""
    from difflib import get_close_matches

    from grass.model.journal import KINDS

    if kind in KINDS:
        return
    near = get_close_matches(kind, KINDS, 1)
    hint = f"did you mean {near[0]}?" if near else f"kinds: {', '.join(KINDS)}"
    warn(f"no event is of the kind `{kind}` ({hint})")


def run(words: list[str]) -> int:
    """Print the journal."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    show = print_document if values.has("json") else _print
    with Client(broker=values.broker) as client:
        client.outage.tell = warn
        job = values.text("job")
        wanted = EventOptions(
            values, None if job is None else int(client.job(job)["id"])
        )
        last = int(client.overview()["daemon"]["last_event"])
        for event in wanted.chosen(past(client, wanted, last)):
            last = max(last, event["seq"])
            show(event)
        if values.has("follow"):
            _follow(client, wanted, last, show)
    return 0


def past(client: Client, wanted: EventOptions, last: int) -> list[Document]:
    """Read enough of the journal, from as near to its end as possible."""
    window = max(_WINDOW, wanted.most or 0)
    while True:
        after = max(0, last - window) if wanted.job is None else 0
        found = list(client.events(after=after, job=wanted.job, kind=wanted.kind))
        if after == 0 or _is_enough(wanted, found):
            return found
        window *= 8


def _is_enough(wanted: EventOptions, found: list[Document]) -> bool:
    if wanted.most is not None and len(found) >= wanted.most:
        return True
    now = utc_now()
    return wanted.since_s is not None and any(
        age(one["at"], now) > wanted.since_s for one in found[:1]
    )


def _follow(
    client: Client, wanted: EventOptions, last: int, show: Callable[[Document], None]
) -> None:
    sys.stdout.flush()
    for event in client.follow_events(last, wanted.job, wanted.kind):
        show(event)
        sys.stdout.flush()


def _print(event: Document) -> None:
    sys.stdout.write(printable(line(event)) + "\n")


def line(event: Document) -> str:
    """Write an event on one line."""
    job, attempt = event["job"], event["attempt"]
    what = "" if job is None else f"job {job}"
    what += "" if attempt is None else f", attempt {attempt}"
    said = [what] if what else []
    facts = event["data"].items()
    said += [f"{name}={_value(name, fact)}" for name, fact in facts if fact is not None]
    if event["actor"] != _NO_PERSON:
        said.append(f"by {owner(event['actor'])}")
    text = "  ".join(said)
    return safe(
        f"{local(event['at'])}  {event['kind']:<{_KIND_WIDTH}}  {text}"
    ).rstrip()


def _value(name: str, value: Any) -> str:  # noqa: ANN401 -- a journal holds anything
    if name == "units":
        return " ".join(f"{kind}:{','.join(names)}" for kind, names in value.items())
    return value if isinstance(value, str) else encoded(value).decode("ascii")


COMMAND = Command(
    usage="[OPTIONS]",
    about=(
        "Print the journal: what happened, when, and who wanted it. With -f it goes on "
        "with what happens, also while the daemon is restarted."
    ),
    options=OPTIONS,
    examples=(
        "grass events",
        "grass events -f --kind finished",
        "grass events --job 7 --json",
        "grass events --since 1h",
    ),
    run=run,
)
