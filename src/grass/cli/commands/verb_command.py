"""What the commands for verbs on jobs share: choose the jobs, confirm, report.

A verb on one job is sent at once. Every other selection is first read: only jobs in
states that the verb is for are counted, the user confirms, and then exactly the jobs
that were counted are sent, whatever the selectors mean by then.
"""

from __future__ import annotations

import sys

from grass.cli.parsing.options import (
    ANY,
    BROKER,
    JSON,
    Option,
    Values,
    chosen,
    is_one,
    names_one,
    read,
)
from grass.cli.printing.streams import counted, counted_jobs, print_document, say, warn
from grass.client.client import Client
from grass.client.id_ranges import as_ranges
from grass.errors import GrassError, UsageError
from grass.model.id_runs import runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from grass.client.json_codec import Document

YES = Option("-y, --yes", about="do not ask, however many jobs there are")
OPTIONS = (
    ANY,
    YES,
    Option("--dry-run", about="only say which jobs it would be"),
    Option("-q, --quiet", about="print ids only"),
    BROKER,
    JSON,
)
"""The options of every verb on jobs."""


class JobVerb:
    """A verb on jobs: its words, and the states that it is for."""

    def __init__(
        self, name: str, done: str, states: tuple[str, ...], idle: str
    ) -> None:
        self.name = name
        self.done = done
        self.states = states
        self.idle = idle


class ChosenJobs:
    """The jobs that a verb is sent for."""

    def __init__(self, select: list[str], ids: list[int] | None = None) -> None:
        self.select = select
        self.ids = ids


def do(
    verb: JobVerb, words: list[str], send: Callable[[Client, list[str]], Document]
) -> int:
    """Run a verb that takes nothing but jobs."""
    values, select = read(OPTIONS, words)
    with Client(broker=values.broker) as client:
        choice = choose(client, verb, values, select)
        if choice is not None:
            report(verb, values, send(client, choice.select))
    return 0


def choose(
    client: Client, verb: JobVerb, values: Values, select: list[str]
) -> ChosenJobs | None:
    """Return the jobs to send; None when there is nothing left to do."""
    if not select:
        raise UsageError("no job was named", f"grass {verb.name} 7")
    if names_one(select) and not values.has("dry_run"):
        return ChosenJobs(select)
    select = chosen(values, select)
    found = client.select(select, states=verb.states)
    ids: list[int] = found["jobs"]
    if values.has("dry_run"):
        _print_plan(verb, values, ids)
        return None
    if len(ids) > 1:
        confirm(f"{verb.name} {counted_jobs(len(ids), found['running'])}", values)
    if all(map(is_one, select)):
        # Of jobs that are named one by one, the daemon explains each that is skipped.
        named: list[int] = client.select(select)["jobs"]
        return ChosenJobs([str(id) for id in named], named)
    if not ids:
        report(verb, values, {"jobs": [], "warnings": [], "changed": False})
        return None
    return ChosenJobs(as_ranges(ids), ids)


def confirm(what: str, values: Values, look: str = "--dry-run") -> None:
    """Ask on a terminal; elsewhere require `--yes`, and say what is done."""
    if values.has("yes"):
        if not values.has("quiet"):
            warn(f"will {what}")
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"this would {what}", f"add --yes to do so, {look} to see which"
        )
    sys.stderr.write(f"{what}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise GrassError("nothing was done")


def report(verb: JobVerb, values: Values, done: Document) -> None:
    """Print what a verb did."""
    if values.has("json"):
        print_document(done)
        return
    ids = done["jobs"]
    if values.has("quiet"):
        print_ids(ids)
        return
    warnings = done.get("warnings", ())
    for warning in warnings:
        warn(warning)
    if ids:
        say(f"{verb.done} {counted(len(ids), 'job')}{_along(ids, done)}")
    elif not warnings:
        say(f"nothing to {verb.name}: {verb.idle}")


def _along(ids: list[int], done: Document) -> str:
    """Say how many other jobs went along because they waited for these."""
    dependents = done.get("dependents") or 0
    whom = "it" if len(ids) == 1 else "them"
    return f", and {dependents} that waited for {whom}" if dependents else ""


def print_ids(ids: Iterable[int]) -> None:
    """Print each id on a line of its own."""
    sys.stdout.write("".join(f"{id}\n" for id in ids))


def compact(ids: Iterable[int]) -> list[str]:
    """Write ids for people: `3-9`, `12`."""
    return [
        f"{first}" if first == last else f"{first}-{last}" for first, last in runs(ids)
    ]


def _print_plan(verb: JobVerb, values: Values, ids: list[int]) -> None:
    if values.has("json"):
        print_document({"jobs": ids, "dry_run": True})
    elif values.has("quiet"):
        print_ids(ids)
    else:
        which = f": {', '.join(compact(ids))}" if ids else ""
        say(f"would {verb.name} {counted(len(ids), 'job')}{which}")
