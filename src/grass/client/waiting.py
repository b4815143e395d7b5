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
    from _thread import LockType
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from grass.client.client import Client
    from grass.client.wire import Document

    T = TypeVar("T")

_ANSWER_S = 0.5
"""How long after the end of its time a wait looks out for the answer."""
_SHORTEST_S = 2.0
"""Who does not want to wait still wants the answer, if there is one."""


def wait_for_ever(client: Client, select: Sequence[str]) -> list[Document]:
    """Return the selected jobs once all have ended."""
    return _waited(client, select, None, allocate_lock())


def wait_for_a_time(
    client: Client, select: Sequence[str], timeout_s: float
) -> list[Document]:
    """Return the selected jobs once all have ended, or raise when the time is up."""
    deadline, given_up = time.monotonic() + timeout_s, allocate_lock()

    def aside() -> list[Document]:
        with client.beside() as own:
            return _waited(own, select, deadline, given_up)

    try:
        # Who answers can say how many are unfinished, and so has the first word.
        return _within(max(_SHORTEST_S, timeout_s + _ANSWER_S), aside)
    except TimeoutError:
        given_up.acquire()
        raise TimedOut(
            f"the time is up, and {client.far_end} has not answered",
            "the jobs may go on; wait for them again",
        ) from None


def _waited(
    client: Client, select: Sequence[str], deadline: float | None, given_up: LockType
) -> list[Document]:
    def once() -> list[Document]:
        if given_up.locked():
            # For nobody's sake a daemon is to be started.
            raise TimedOut("the time is up")
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        body = {"select": list(select), "timeout_s": left}
        found = client.once("POST", "/jobs/wait", body, may_last=True)
        jobs: list[Document] = found["jobs"]
        return jobs

    if not all(one.replace("-", "").isdecimal() for one in select):
        from grass.client.ids import as_ranges

        # After a restart `all` or `last` may mean other jobs; ids do not.
        select = as_ranges(client.select(select)["jobs"])
    left_s = 0.0 if deadline is None else deadline - time.monotonic()
    patience_s = left_s if left_s > PATIENCE_S else None
    return client.patiently(once, patience_s=patience_s) if select else []


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
