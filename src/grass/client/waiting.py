"""Waiting for the end of jobs, and no longer than the caller wants to.

A time limit is kept whatever holds up the call: a daemon that is frozen or gone, a name
server that is silent, a lock that somebody holds. None of them can be given a deadline
of their own. So the call is made in a thread, and the caller waits for that; Ctrl-C
reaches it at any time.
"""

from __future__ import annotations

import time
from _thread import TIMEOUT_MAX, allocate_lock, start_new_thread

from grass.client.caller import PATIENCE_S
from grass.client.threads import CtrlCForMain
from grass.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from grass.client.client import Client
    from grass.client.wire import Document

    T = TypeVar("T")

_ANSWER_S = 0.5
"""How long after the end of its time a wait looks out for the answer."""
_SHORTEST_S = 2.0
"""Who does not want to wait still wants the answer, if there is one."""


def wait_for(
    client: Client, select: Sequence[str], timeout_s: float | None
) -> list[Document]:
    """Return the selected jobs once all have ended, or raise when the time is up."""

    return _limited(client, timeout_s, lambda own, limit: _jobs(own, select, limit))


def _jobs(client: Client, select: Sequence[str], limit: Limit) -> list[Document]:
    if not all(one.replace("-", "").isdecimal() for one in select):
        from grass.client.ids import as_ranges

        # After a restart `all` or `last` may mean other jobs; ids do not.
        select = as_ranges(client.select(select)["jobs"])
    jobs: list[Document] = []
    body: Document = {"select": list(select)}
    return limit.ask(client, "/jobs/wait", body)["jobs"] if select else jobs


def _counted(jobs: list[Document]) -> dict[str, int]:
    ends: dict[str, int] = {}
    for job in jobs:
        ends[job["state"]] = ends.get(job["state"], 0) + 1
    return ends


def wait_for_all(client: Client, timeout_s: float | None) -> dict[str, int]:
    """Return how all unfinished jobs ended, or raise when the time is up.

    A million of them are named by the last of them, before and after a restart.
    """

    def waited(own: Client, limit: Limit) -> dict[str, int]:
        daemon = own.overview()["daemon"]
        if "last_job" not in daemon:
            # A daemon of an earlier version, or one of a worker, which refuses.
            return _counted(_jobs(own, ["all"], limit))
        body = {"up_to": daemon["last_job"], "after": daemon["last_event"]}
        ends: dict[str, int] = limit.ask(own, "/jobs/wait-all", body)["ends"]
        return ends

    return _limited(client, timeout_s, waited)


class Limit:
    """How long a wait may take."""

    def __init__(self, timeout_s: float | None) -> None:
        self.given_up = allocate_lock()
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def ask(self, client: Client, path: str, body: Document) -> Document:
        """Ask the daemon to wait, again after each time that it was restarted."""

        def once() -> Document:
            if self.given_up.locked():
                # For nobody's sake a daemon is to be started.
                raise TimedOut("the time is up")
            timed = {**body, "timeout_s": self._left_s()}
            answer: Document = client.once("POST", path, timed, may_last=True)
            return answer

        left_s = self._left_s() or 0.0
        patience_s = left_s if left_s > PATIENCE_S else None
        return client.patiently(once, patience_s=patience_s)

    def _left_s(self) -> float | None:
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())


def _limited(
    client: Client, timeout_s: float | None, wait: Callable[[Client, Limit], T]
) -> T:
    limit = Limit(timeout_s)
    if timeout_s is None:
        return wait(client, limit)

    def aside() -> T:
        with client.beside() as own:
            return wait(own, limit)

    try:
        # Who answers can say how many are unfinished, and so has the first word.
        return _within(max(_SHORTEST_S, timeout_s + _ANSWER_S), aside)
    except TimeoutError:
        limit.given_up.acquire()
        raise TimedOut(
            f"the time is up, and {client.far_end} has not answered",
            "the jobs may go on; wait for them again",
        ) from None


def _within(limit_s: float, call: Callable[[], T]) -> T:
    """Return or raise what a call does; raises TimeoutError when that takes too long.

    The call itself goes on then, so it must use nothing that its caller uses.
    """
    given: list[T] = []
    raised: list[BaseException] = []
    over = allocate_lock()
    over.acquire()

    def make() -> None:
        try:
            given.append(call())
        except BaseException as error:  # noqa: BLE001 -- it is the caller's
            raised.append(error)
        finally:
            over.release()

    with CtrlCForMain():
        start_new_thread(make, ())
    if not over.acquire(timeout=min(limit_s, TIMEOUT_MAX)):
        raise TimeoutError
    if raised:
        raise raised[0]
    return given[0]
