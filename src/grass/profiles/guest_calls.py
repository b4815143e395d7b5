"""The calls of a guest: to enter, to wait for its units, to give them back.

They go to the daemon of this machine, which is started if need be, wherever other
commands go: a guest is a process of this machine. A daemon that works for another
machine's broker passes them on. Every call may be repeated, so a restart of the daemon
is not noticed.
"""

from __future__ import annotations

import contextlib
import os
import time

from grass.client.client import Client
from grass.client.connection import Broken, open_connection
from grass.config import BROKER_VARIABLE, LOCAL
from grass.errors import GrassError, NoBroker, NoDaemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document
    from grass.config import Home

_PAUSE_S = 1.0
"""How long to wait before a broker that is away is asked again."""


class GuestCalls:
    """One guest's calls, over a connection of its own."""

    def __init__(self) -> None:
        self._client = Client(broker=LOCAL)

    def enter(self, asked: Document) -> Document:
        """Ask for units; return the job's id as `first`, and a `hint`."""
        _check_has_worker(self._client.home)
        key = f"{time.time_ns() // 10**9:x}-{os.urandom(12).hex()}"
        body = {**asked, "ticks": start_ticks(), "key": key}
        return self._client.idempotent("POST", "/guests", body)

    def wait(self, job: int, timeout_s: float) -> Document:
        """Return the job once it has its units or has ended, or the time is up."""
        path, body = f"/guests/{job}/wait", {"timeout_s": timeout_s}
        try:
            document: Document = self._client.repeat(
                lambda: self._client.once("POST", path, body, may_last=True)
            )
        except NoBroker as error:
            # Its place in the queue is kept there, however long that takes.
            time.sleep(_PAUSE_S)
            return {"state": "queued", "reason": str(error), "environment": {}}
        return document

    def measured(self, job: int) -> None:
        """Have it learned what this process uses of its GPUs now."""
        self._client.idempotent("POST", f"/guests/{job}/measured", {})

    def give_back(self, job: int, exit_code: int) -> None:
        """Give the units back, or do not wait for them any more.

        Over another connection: the first may be in the middle of a wait.
        """
        with self._client.beside() as aside:
            body = {"exit_code": exit_code}
            aside.idempotent("POST", f"/guests/{job}/end", body)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def tell_inner_type(job: int, job_type: str) -> bool:
    """Say that a function runs inside a job; return whether its memory is known.

    It does not matter if that is not heard: no daemon is started for it, and one that
    is away is not waited for.
    """
    with (
        contextlib.suppress(GrassError, Broken),
        Client(broker=LOCAL, may_start=False) as client,
    ):
        path, body = f"/jobs/{job}/inner-type", {"job_type": job_type}
        return bool(client.once("POST", path, body).get("profiled"))
    return False


def _check_has_worker(home: Home) -> None:
    """Refuse to start a daemon on a machine that only calls another one's broker."""
    is_local = os.environ.get(BROKER_VARIABLE) == LOCAL
    if is_local or not os.path.exists(home.brokers) or _is_served(home):
        return
    from grass.client.credentials import Credentials
    from grass.model.access import may_work

    known = Credentials.load(home).current()
    if known is not None and not may_work(known.role):
        raise NoDaemon(
            f"this machine only calls the broker at {known.place} and has no worker, so"
            " its processes cannot be guests",
            "`grass start` gives it a queue of its own, or join as a worker with a line"
            " of `grass token new` there",
        )


def _is_served(home: Home) -> bool:
    found = open_connection(home.socket)
    if found is not None:
        found.close()
    return found is not None


def start_ticks() -> int:
    """Return when this process started, in clock ticks since boot."""
    with open("/proc/self/stat", "rb") as file:
        text = file.read()
    # The name may hold anything, so count fields from its closing bracket.
    return int(text[text.rindex(b")") + 2 :].split()[19])
