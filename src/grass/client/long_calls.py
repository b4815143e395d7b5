"""Calls that last: following output and events, and waiting for jobs to end.

All of them go on over a restart of the daemon or of its database.

A wait keeps its time limit whatever delays the call: a daemon that is frozen or gone, a
name server that does not answer, a lock that another process holds. Not all of these
take a deadline. So the call is made in a thread, and the caller waits for that thread;
Ctrl-C interrupts it at any time.
"""

from __future__ import annotations

import struct
import time
from _thread import allocate_lock

from grass.client.connection import Broken
from grass.client.id_ranges import as_ranges
from grass.client.json_codec import decoded, query, selecting
from grass.client.threads import call_within
from grass.errors import TimedOut, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from grass.client.broker_session import BrokerSession
    from grass.client.client import Client
    from grass.client.json_codec import Document

    T = TypeVar("T")

LOOK_S = 1.0
"""How often to ask whether a worker is back."""
WORKER_BACK_S = 30.0
"""How long a worker may take to connect to another leader."""
_ANSWER_S = 0.5
"""How long after its time limit a wait still takes the daemon's answer."""
_SHORTEST_S = 2.0
"""How long an answer may take also where the time limit is shorter."""
_FOREVER_S, _LEAST_S = 1e9, 0.001
"""What a wait without a time limit asks for, and one whose time is just over."""
_RESULT = struct.Struct("<QBQ")
_FIRST_LOOK_S = 0.2
_NEXT_LOOK_S = 5.0
"""How long to wait before checking whether a worker went away."""


def follow_output(
    session: BrokerSession,
    path: str,
    wanted: dict[str, object],
    on_away: Callable[[Document], None],
) -> Iterator[bytes]:
    """Give what a job writes until it has ended.

    After a break the daemon is asked to begin where it began the first time, also if
    that was some lines from an end that has moved since; what was seen is left out.
    While the job's worker is unreachable it is waited for; `on_away` gets the job.
    """
    seen, patience_s = 0, 0.0
    while True:
        known = seen
        headers, pieces = _open_output(session, path, wanted, on_away, patience_s)
        if "grass-begin" in headers:
            wanted = {**wanted, "tail": None, "begin": headers["grass-begin"]}
        try:
            for piece in pieces:
                fresh = piece[known:]
                known -= len(piece) - len(fresh)
                seen += len(fresh)
                yield fresh
        except Broken:
            session.close()
            patience_s = WORKER_BACK_S
        else:
            return


def _open_output(
    session: BrokerSession,
    path: str,
    wanted: dict[str, object],
    on_away: Callable[[Document], None],
    patience_s: float,
) -> tuple[dict[str, str], Iterator[bytes]]:
    """Begin to read, once the job's worker can be asked.

    The worker of a job that has ended is tried once more, or for as long as workers
    may take to find another leader.
    """
    deadline: float | None = None
    while True:
        try:
            return _open(session, path + query(**wanted))
        except Unreachable:
            if _await_worker(session, path, on_away):
                deadline, patience_s = None, WORKER_BACK_S
            elif deadline is None:
                deadline = time.monotonic() + patience_s
            elif time.monotonic() > deadline:
                raise
            else:
                time.sleep(LOOK_S)


def _await_worker(
    session: BrokerSession, path: str, on_away: Callable[[Document], None]
) -> bool:
    """Wait while a running job's worker is unreachable; tell whether it was."""
    path = path.removesuffix("/output")

    def look() -> Document:
        job: Document = session.outlast(lambda: session.once("GET", path))
        return job

    job = look()
    if not job.get("unreachable"):
        return False
    on_away(job)
    while job.get("unreachable"):
        time.sleep(LOOK_S)
        job = look()
    return True


def follow_events(
    session: BrokerSession, after: int | None, wanted: dict[str, object]
) -> Iterator[Document]:
    """Give events as they are written, until the daemon was stopped for good."""
    for fields in _followed(session, "/events/stream", after, wanted):
        yield decoded(fields[b"data"])


def follow(
    session: BrokerSession, topics: Sequence[str], after: int | None
) -> Iterator[tuple[str, Document]]:
    """Give the frames of topics, until the daemon was stopped for good."""
    wanted: dict[str, object] = {"topics": ",".join(topics)}
    for fields in _followed(session, "/stream", after, wanted):
        yield fields[b"event"].decode(), decoded(fields[b"data"])


def _followed(
    session: BrokerSession, path: str, after: int | None, wanted: dict[str, object]
) -> Iterator[dict[bytes, bytes]]:
    last = after
    while True:
        _, pieces = _open(session, path + query(after=last, **wanted))
        try:
            for fields in _messages(pieces):
                if b"id" in fields:
                    last = int(fields[b"id"])
                if b"data" in fields:
                    yield fields
        except Broken:
            pass
        # What ended is the daemon, not the journal: another one may take over.
        session.close()


def _open(session: BrokerSession, path: str) -> tuple[dict[str, str], Iterator[bytes]]:
    return session.outlast(lambda: session.stream(path))


def _messages(pieces: Iterator[bytes]) -> Iterator[dict[bytes, bytes]]:
    """Split server-sent events; each ends with an empty line."""
    unread = b""
    for piece in pieces:
        *whole, unread = (unread + piece).split(b"\n\n")
        for text in whole:
            lines = (line.partition(b": ") for line in text.split(b"\n"))
            yield {name: value for name, _, value in lines}


def wait_for(
    client: Client, select: Sequence[str], timeout_s: float | None
) -> list[Document]:
    """Return the selected jobs once all have ended, or raise when the time is up."""
    return _limited(client, timeout_s, lambda own, limit: _jobs(own, select, limit))


def wait_for_all(client: Client, timeout_s: float | None) -> dict[str, int]:
    """Return how all unfinished jobs ended, or raise when the time is up.

    The last of them names all of them, before and after a restart.
    """

    def wait(own: Client, limit: TimeLimit) -> dict[str, int]:
        daemon = own.overview()["daemon"]
        if "last_job" not in daemon:
            # A daemon of an earlier version, or one of a worker, which refuses.
            return _count_states(_jobs(own, ["all"], limit))
        body = {"up_to": daemon["last_job"], "after": daemon["last_event"]}
        ends: dict[str, int] = limit.ask(own, "/jobs/wait-all", body)["ends"]
        return ends

    return _limited(client, timeout_s, wait)


def wait_for_result(
    client: Client, job: int, timeout_s: float | None
) -> tuple[dict[str, str], bytearray]:
    """Return the result of a task once it has ended, or raise when the time is up."""

    def wait(own: Client, limit: TimeLimit) -> tuple[dict[str, str], bytearray]:
        try:
            return own.outlast(
                lambda: _result(own, job, limit.left_s()), limit.left_s() or 0.0
            )
        except TimedOut:
            # The daemon was told what was left of the time, not all of it.
            raise TimedOut(
                f"job {job} has not ended within {timeout_s or 0:g} s"
            ) from None

    return _limited(client, timeout_s, wait)


def _result(
    client: Client, job: int, left_s: float | None
) -> tuple[dict[str, str], bytearray]:
    wait_s = _FOREVER_S if left_s is None else max(_LEAST_S, left_s)
    headers, pieces = client.stream(f"/jobs/{job}/result" + query(wait=wait_s))
    # Large arrays are used where they lie in it, and can be written to.
    content = bytearray()
    try:
        for piece in pieces:
            content += piece
    except Broken:
        client.close()
        raise
    return headers, content


def several_results(client: Client, jobs: list[int]) -> dict[int, tuple[bool, bytes]]:
    """Read small results together; they come one behind the other."""
    content = client.repeat(lambda: client.content("POST", "/jobs/results", jobs=jobs))
    found, at = {}, 0
    while at < len(content):
        job, is_own, size = _RESULT.unpack_from(content, at)
        at += _RESULT.size
        found[job] = bool(is_own), content[at : at + size]
        at += size
    return found


def await_cancelled(
    client: Client, jobs: list[int], on_away: Callable[[list[Document]], None]
) -> None:
    """Wait for cancelled jobs to end; `on_away` gets those on unreachable workers."""
    patience_s = _FIRST_LOOK_S
    while jobs:
        try:
            client.wait(as_ranges(jobs), patience_s)
        except TimedOut:
            wanted, running = set(jobs), client.jobs(states=["running"])
            unreachable = [job for job in running if job.get("unreachable")]
            away = [job for job in unreachable if job["id"] in wanted]
            on_away(away)
            jobs = sorted(wanted - {job["id"] for job in away})
            patience_s = _NEXT_LOOK_S
        else:
            return


class TimeLimit:
    """How long a wait may take."""

    def __init__(self, timeout_s: float | None) -> None:
        self.given_up = allocate_lock()
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def ask(self, client: Client, path: str, body: Document) -> Document:
        """Ask the daemon to wait, again after each time that it was restarted."""

        def once() -> Document:
            if self.given_up.locked():
                # The caller is gone: no daemon is to be started any more.
                raise TimedOut("the time is up")
            timed = {**body, "timeout_s": self.left_s()}
            answer: Document = client.once("POST", path, timed, may_last=True)
            return answer

        return client.outlast(once, self.left_s() or 0.0)

    def left_s(self) -> float | None:
        """Return how much of it is left; None: it has no end."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())


def _jobs(client: Client, select: Sequence[str], limit: TimeLimit) -> list[Document]:
    if not all(one.replace("-", "").isdecimal() for one in select):
        # After a restart `all` or `last` may mean other jobs; ids do not.
        select = as_ranges(client.select(select)["jobs"])
    jobs: list[Document] = []
    return (
        limit.ask(client, "/jobs/wait", selecting(select))["jobs"] if select else jobs
    )


def _count_states(jobs: list[Document]) -> dict[str, int]:
    ends: dict[str, int] = {}
    for job in jobs:
        ends[job["state"]] = ends.get(job["state"], 0) + 1
    return ends


def _limited(
    client: Client, timeout_s: float | None, wait: Callable[[Client, TimeLimit], T]
) -> T:
    limit = TimeLimit(timeout_s)
    if timeout_s is None:
        return wait(client, limit)

    def in_thread() -> T:
        with client.beside() as own:
            return wait(own, limit)

    try:
        # The daemon's answer says how many are unfinished, so it gets a bit longer.
        return call_within(max(_SHORTEST_S, timeout_s + _ANSWER_S), in_thread)
    except TimeoutError:
        limit.given_up.acquire()
        raise TimedOut(
            f"the time is up, and {client.peer} has not answered",
            "the jobs may go on; wait for them again",
        ) from None
