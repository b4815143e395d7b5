"""`grass run --each`: one GPU job for each command, followed together.

Each word is a shell line and becomes a job whose GPU memory is learned, as of a type of
its own unless `--type` names one, unless the options ask for something else. What the
jobs write is printed as it comes, each line after the id of its job. The first Ctrl-C
cancels all of them, a second one leaves them alone.
"""

from __future__ import annotations

import sys
import threading
from _thread import allocate_lock
from queue import SimpleQueue

from grass.cli.commands.enqueue import give_hint
from grass.cli.commands.interrupts import DETACHED
from grass.cli.parsing.job_options import settings
from grass.cli.parsing.options import read
from grass.cli.printing.prefixed_output import Prefixed, for_stdout, prefix
from grass.cli.printing.streams import warn
from grass.cli.printing.table import this_screen
from grass.cli.printing.wording import ended
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError, NeverFits, NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.cli.parsing.options import Option, Values
    from grass.client.json_codec import Document

MOST_COMMANDS = 100
LONGEST_TYPE = 1000


def run_each(options: Sequence[Option], words: list[str]) -> int:
    """Run every word as a job of its own; 1 if any of them failed."""
    values, commands = read(options, words)
    _check(values, commands)
    with Client(broker=values.broker) as client:
        reply = _enqueued(client, values, commands)
        give_hint(reply, values)
        jobs = list(range(reply["first"], reply["last"] + 1))
        try:
            states = _Followed(client, values, jobs).ends()
        except KeyboardInterrupt:
            last = f"{jobs[0]}-{jobs[-1]}" if len(jobs) > 1 else str(jobs[0])
            warn(f"jobs {last} are left to themselves (`grass logs -f {last}`)")
            return DETACHED
    return 0 if all(state == "succeeded" for state in states) else 1


def _check(values: Values, commands: list[str]) -> None:
    if not commands:
        raise UsageError(
            "--each needs commands", "grass run --each 'python a.py' 'python b.py'"
        )
    if len(commands) > MOST_COMMANDS:
        raise UsageError(
            f"{len(commands)} commands are too many to follow at once",
            "`grass enqueue --from FILE` adds as many as you like",
        )
    for option in ("pty", "array"):
        if values.has(option):
            raise UsageError(f"--{option} does not go with --each", "leave one out")


def _enqueued(client: Client, values: Values, commands: list[str]) -> Document:
    """Add the jobs; where there is no GPU and none was asked for, take a core each."""
    fields = {"policy": "spread", **settings(values, values.text("queue"))}
    named = "job_type" in fields
    jobs: list[Document] = [
        {"command": one} if named else {"command": one, **_type(one)}
        for one in commands
    ]
    if {"require", "require_also"} & fields.keys():
        return client.enqueue_jobs(jobs, fields)
    try:
        return client.enqueue_jobs(jobs, {**fields, "require_also": {"vram": "auto"}})
    except NeverFits:
        # GPUs that were only declared have no memory to learn of.
        return _enqueued_whole(client, fields, jobs)


def _enqueued_whole(client: Client, fields: Document, jobs: list[Document]) -> Document:
    try:
        return client.enqueue_jobs(jobs, {**fields, "require_also": {"gpu": 1}})
    except NeverFits as error:
        reply = client.enqueue_jobs(jobs, fields)
        warn(f"{error.message}: each command gets one core instead")
        return reply


def _type(command: str) -> Document:
    """Return the type of a command: the command itself, unless it cannot be a name."""
    from grass.model.jobs.commands import split_assignments

    # Values of NAME=value words may be secret.
    name = " ".join(split_assignments(command.split())[1])
    named = name.isprintable() and 0 < len(name) <= LONGEST_TYPE
    return {"job_type": name} if named else {}


class _Followed:
    """Jobs that are followed, each in a thread over a connection of its own."""

    def __init__(self, client: Client, values: Values, jobs: list[int]) -> None:
        self._client = client
        self._jobs = jobs
        self._talks = not values.has("quiet")
        self._ends: SimpleQueue[str] = SimpleQueue()
        width, lock = len(str(jobs[-1])), allocate_lock()
        coloured = this_screen().colours
        self._writers = {
            job: Prefixed(
                prefix(job, width, place=place if coloured else None),
                lock,
                for_stdout(raw=False),
            )
            for place, job in enumerate(jobs)
        }

    def ends(self) -> list[str]:
        """Return the states in which the jobs ended; Ctrl-C cancels them."""
        with CtrlCForMain():
            for job in self._jobs:
                threading.Thread(target=self._follow, args=(job,), daemon=True).start()
        states: list[str] = []
        try:
            self._collect(states)
        except KeyboardInterrupt:
            warn("cancelling all (Ctrl-C again leaves them to themselves)")
            with self._client.beside() as aside:
                aside.repeat(lambda: aside.cancel([str(job) for job in self._jobs]))
            self._collect(states)
        return states

    def _collect(self, states: list[str]) -> None:
        while len(states) < len(self._jobs):
            states.append(self._ends.get())

    def _follow(self, job: int) -> None:
        state = "unknown"
        try:
            with self._client.beside() as own:
                state = self._state_at_end(own, job)
        except (GrassError, Broken, OSError) as error:
            warn(f"job {job}: {error}")
        finally:
            sys.stdout.flush()
            self._ends.put(state)

    def _state_at_end(self, client: Client, job: int) -> str:
        writer = self._writers[job]
        try:
            for piece in client.output(job, follow=True):
                writer.write(piece)
        except NotFound:
            # It never started.
            client.wait([str(job)])
        writer.end()
        document = client.job(job)
        if self._talks and document["state"] != "succeeded":
            warn(ended(document))
        return str(document["state"])
