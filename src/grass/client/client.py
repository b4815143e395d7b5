"""The blocking client: one method for each call of the API.

A client connects when it is first used, starting a daemon if need be, and keeps its
connection. Replies are the API's documents.
"""

from __future__ import annotations

import os
import time

from grass.client.cluster_client import ClusterClient
from grass.client.json_codec import filter_fields, query, quoted, selecting
from grass.config import caller_directory, caller_umask, user_environment
from grass.errors import CommitInDoubt, NoDaemon, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grass.client.json_codec import Document


def _ignore(_job: Document) -> None:
    pass


def _enqueue_body(
    jobs: list[Document], defaults: Document, params: Document | None
) -> Document:
    body: Document = {"jobs": jobs, "defaults": defaults}
    return body if params is None else {**body, "params": params}


class Client(ClusterClient):
    """The calls of the API, to the daemon of one state directory or to its broker."""

    def enqueue(self, command: Sequence[str] | str, **settings: object) -> int:
        """Add one job and return its id once it is durable."""
        return int(self.enqueue_many([command], **settings)["first"])

    def enqueue_many(
        self, commands: Iterable[Sequence[str] | str], **settings: object
    ) -> Document:
        """Add jobs with the same settings, all or none; return `first` and `last`."""
        jobs = [
            {"command": one if isinstance(one, str) else list(one)} for one in commands
        ]
        return self.enqueue_jobs(jobs, settings)

    def enqueue_jobs(
        self,
        jobs: list[Document],
        defaults: Document,
        params: Document | None = None,
        arguments: list[str] | None = None,
    ) -> Document:
        """Add jobs given as documents; what one leaves out is taken from `defaults`.

        With `params` the one job becomes an array: `names` of parameters, and a list
        of values for each member in `rows`. With `arguments` the one task does.
        """
        body = _enqueue_body(jobs, defaults, params)
        if arguments is not None:
            body["arguments"] = arguments
        # See `grass.model.ids`, which would cost every enqueue an import.
        body["key"] = f"{time.time_ns() // 10**9:x}-{os.urandom(12).hex()}"
        return self._added(lambda: self._from_here(body))

    def _added(self, body: Callable[[], Document]) -> Document:
        """Add jobs with a key; the key tells, too, what became of a commit in doubt."""

        def send() -> Document:
            document: Document = self.once("POST", "/jobs", body)
            return document

        try:
            return self.repeat(send)
        except CommitInDoubt as doubt:
            try:
                return self.outlast(send)
            except (NoDaemon, StorageError):
                raise doubt from None

    def plan_jobs(
        self,
        jobs: list[Document],
        defaults: Document,
        params: Document | None = None,
    ) -> Document:
        """Return what `enqueue_jobs` would add, or raise as it would; add nothing."""
        body = _enqueue_body(jobs, defaults, params)
        return self.idempotent("POST", "/jobs/plan", lambda: self._from_here(body))

    def _from_here(self, body: Document) -> Document:
        """Add the directory, and what may hold secrets if it stays on this machine.

        Only who sends knows: a standby sends the call on to another machine.
        """
        body = {**body, "directory": caller_directory()}
        if self.remote:
            return body
        own = {"environment": user_environment(os.environ), "umask": caller_umask()}
        return {**body, **own}

    def overview(
        self, queue: str | None = None, *, members: bool = False, usage: bool = False
    ) -> Document:
        """Read the daemon, workers, queues, and the active and recent jobs.

        An array is one row, with a few of its members; with `members`, none is.
        """
        wanted = {"members": 1 if members else None, "usage": 1 if usage else None}
        return self.read("/overview" + query(queue=queue, **wanted))

    def listing(
        self, *, limit: int | None = None, members: bool = False, **wanted: object
    ) -> Document:
        """Read the jobs that match, as people look at them, and what is left out.

        Running ones are first, then the next ones, then those that ended last;
        `wanted` is as in `jobs`.
        """
        asked = {
            **filter_fields(wanted),
            "limit": limit,
            "members": 1 if members else None,
        }
        asked["usage"] = 1 if asked.pop("usage", None) else None
        return self.read("/jobs" + query(order="display", **asked))

    def jobs(  # noqa: PLR0913 -- each narrows what is read
        self,
        *,
        states: Sequence[str] = (),
        queue: str | None = None,
        project: str | None = None,
        name: str | None = None,
        owner: str | None = None,
        select: Sequence[str] = (),
        usage: bool = False,
        newest_first: bool = False,
    ) -> Iterator[Document]:
        """Read jobs, a page at a time, the oldest first unless `newest_first`."""
        wanted: dict[str, object] = {"state": list(states), "queue": queue}
        wanted |= {"project": project, "name": name, "owner": owner}
        wanted |= {**selecting(select), "usage": 1 if usage else None}
        wanted["order"] = "newest" if newest_first else "oldest"
        cursor = "before" if newest_first else "after"
        return self.pages("/jobs", "jobs", cursor, wanted)

    def export(
        self, form: str = "csv", columns: str | None = None, **wanted: object
    ) -> Iterator[bytes]:
        """Read all jobs that match as a table, `csv` or `json`, in pieces.

        `wanted` is as in `jobs`.
        """
        asked = {
            **filter_fields(wanted),
            "format": form,
            "columns": columns,
            "usage": None,
        }
        path = "/jobs/export" + query(**asked)
        return self.repeat(lambda: self.stream(path))[1]

    def job(self, selector: int | str, *, usage: bool = False) -> Document:
        """Read the one job that a selector names; `usage` is what it uses."""
        asked = query(usage=1 if usage else None)
        return self.read(f"/jobs/{quoted(str(selector))}{asked}")

    def usage(self, selector: int | str, attempt: int | None = None) -> Document:
        """Read what a job used over time: a list of `points`."""
        return self.read(
            f"/jobs/{quoted(str(selector))}/usage" + query(attempt=attempt)
        )

    def gpu_usage(self, worker: str, unit: str) -> Document:
        """Read how a GPU was used over time: a list of `points`."""
        return self.read(f"/workers/{quoted(worker)}/gpus/{quoted(unit)}/usage")

    def explain(self, selector: int | str) -> Document:
        """Read why a job waits, or how it ended."""
        return self.read(f"/jobs/{quoted(str(selector))}/explain")

    def output(
        self,
        selector: int | str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        stderr: bool = False,
        tail: int | None = None,
        on_away: Callable[[Document], None] = _ignore,
    ) -> Iterator[bytes]:
        """Read what a job wrote, or its last lines; with `follow`, until it has ended.

        Following survives a restart of the daemon, so it needs an id for a selector.
        It waits for a worker that is unreachable; `on_away` gets the job.
        """
        stream = "stderr" if stderr else None
        wanted = {"attempt": attempt, "stream": stream, "tail": tail}
        path = f"/jobs/{quoted(str(selector))}/output"
        if not follow:
            return self.repeat(lambda: self.stream(path + query(**wanted)))[1]
        from grass.client.long_calls import follow_output

        return follow_output(self, path, {"follow": "1", **wanted}, on_away)

    def result(
        self, job: int, timeout_s: float | None = None
    ) -> tuple[dict[str, str], bytearray]:
        """Read what a task returned or raised, once it has ended: headers, and bytes.

        Raises `TimedOut` when the time is up, whether the daemon answers or not.
        """
        from grass.client.long_calls import wait_for_result

        return wait_for_result(self, job, timeout_s)

    def small_results(self, jobs: Sequence[int]) -> dict[int, tuple[bool, bytes]]:
        """Read the small results of ended tasks: whether each is our own, and bytes.

        Those that are not there have to be asked for with `result`.
        """
        from grass.client.long_calls import several_results

        return several_results(self, list(jobs))

    def output_lines(
        self,
        selector: int | str,
        first: int = 1,
        last: int | None = None,
        *,
        attempt: int | None = None,
        stderr: bool = False,
    ) -> Iterator[str]:
        """Read the lines of a job's output from one to another, counted from 1."""
        from grass.client import output_lines

        stream = "stderr" if stderr else None
        return output_lines.output_lines(
            self, selector, first, last, attempt=attempt, stream=stream
        )

    def matching_lines(
        self,
        selector: int | str,
        pattern: str,
        *,
        attempt: int | None = None,
        stderr: bool = False,
    ) -> Iterator[Document]:
        """Read the lines of a job's output that match: `line`, its number, and `text`.

        The pattern is RE2's, and is searched for where the output is.
        """
        from grass.client import output_lines

        stream = "stderr" if stderr else None
        return output_lines.matching_lines(
            self, selector, pattern, attempt=attempt, stream=stream
        )

    def write_input(
        self,
        job: int,
        sender: str,
        offset: int,
        data: bytes = b"",
        *,
        end: bool = False,
        window: tuple[int, int] | None = None,
    ) -> Document:
        """Give a job input, once it runs; return up to which `offset` it was taken.

        A piece that is sent again, by the same sender, is not taken twice.
        """
        from binascii import b2a_base64

        text = b2a_base64(data, newline=False).decode()
        body: Document = {"sender": sender, "offset": offset, "data": text}
        body |= {"end": end, "window": window}
        path = f"/jobs/{job}/input"
        return self.repeat(lambda: self.once("POST", path, body, may_last=True))

    def events(
        self, after: int | None = None, job: int | None = None, kind: str | None = None
    ) -> Iterator[Document]:
        """Read the journal from a number on, a page at a time, the oldest first."""
        wanted: dict[str, object] = {"after": after, "job": job, "kind": kind}
        return self.pages("/events", "events", "after", wanted)

    def follow_events(
        self, after: int | None = None, job: int | None = None, kind: str | None = None
    ) -> Iterator[Document]:
        """Return events as they happen, from now on or after a number.

        Goes on over a restart of the daemon; ends with an error when it was stopped.
        """
        from grass.client.long_calls import follow_events

        return follow_events(self, after, {"job": job, "kind": kind})

    def follow(
        self, topics: Sequence[str], after: int | None = None
    ) -> Iterator[tuple[str, Document]]:
        """Return what changes of some topics: each frame's topic and its data.

        Goes on over a restart of the daemon, as `follow_events` does.
        """
        from grass.client.long_calls import follow

        return follow(self, topics, after)

    def select(self, select: Sequence[str], **more: object) -> Document:
        """Return the jobs that selectors mean now: `jobs`, `count` and `running`.

        `states` leaves out others; `dependents` adds jobs cancelled because of these.
        """
        return self.idempotent("POST", "/jobs/select", {**selecting(select), **more})

    def estimate(self, select: Sequence[str]) -> Document:
        """Return when the selected jobs may have ended: `ends_at` and `runs`."""
        return self.idempotent("POST", "/jobs/estimate", selecting(select))

    def cancel(
        self, select: Sequence[str], *, grace_s: float | None = None, signal: int = 15
    ) -> Document:
        """End jobs; the reply comes once the request is durable, not at their end."""
        return self._verb("cancel", select, grace_s=grace_s, signal=signal)

    def hold(self, select: Sequence[str]) -> Document:
        """Keep jobs from starting until they are released."""
        return self._verb("hold", select)

    def release(self, select: Sequence[str]) -> Document:
        """Release held jobs into their queues."""
        return self._verb("release", select)

    def rerun(
        self, select: Sequence[str], *, hold: bool = False, **changes: object
    ) -> Document:
        """Queue ended jobs for a new attempt, changed where a field is named."""
        return self._verb("rerun", select, hold=hold, **changes)

    def edit(self, select: Sequence[str], **changes: object) -> Document:
        """Change jobs that have not started, where a field is named."""
        return self._verb("edit", select, **changes)

    def suspend(self, select: Sequence[str]) -> Document:
        """Stop running jobs where they are; their units stay held."""
        return self._verb("suspend", select)

    def continue_(self, select: Sequence[str]) -> Document:
        """Continue suspended jobs."""
        return self._verb("continue", select)

    def signal(self, select: Sequence[str], signal: int) -> Document:
        """Send one signal to every process of running jobs."""
        return self._verb("signal", select, signal=signal)

    def remove(self, select: Sequence[str]) -> Document:
        """Forget these ended jobs, with their output."""
        return self._verb("remove", select)

    def prune(self, older_s: float, *, dry_run: bool = False) -> Document:
        """Forget jobs that ended that long ago, with their output."""
        body = {"older_s": older_s, "dry_run": dry_run}
        return self.write("POST", "/jobs/prune", body)

    def wait(
        self, select: Sequence[str], timeout_s: float | None = None
    ) -> list[Document]:
        """Return the selected jobs once all have ended.

        Raises `TimedOut` when the time is up, whether the daemon answers or not.
        """
        from grass.client.long_calls import wait_for

        return wait_for(self, select, timeout_s)

    def wait_all(self, timeout_s: float | None = None) -> dict[str, int]:
        """Return how many jobs ended how once all that are unfinished have ended.

        Raises `TimedOut` when the time is up, whether the daemon answers or not.
        """
        from grass.client.long_calls import wait_for_all

        return wait_for_all(self, timeout_s)

    def _verb(self, verb: str, select: Sequence[str], **more: object) -> Document:
        return self.write("POST", f"/jobs/{verb}", {**selecting(select), **more})
