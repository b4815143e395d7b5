"""The calls of a guest: to enter, to wait for its units, to give them back.

They go to the daemon of this machine, which is started if need be, wherever other
commands go: a guest is a process of this machine. Every call may be repeated, so a
restart of the daemon is not noticed.
"""

from __future__ import annotations

import os
import time

from grass.client.client import Client
from grass.config import LOCAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document


class GuestCalls:
    """One guest's calls, over a connection of its own."""

    def __init__(self) -> None:
        self._client = Client(broker=LOCAL)

    def enter(self, asked: Document) -> Document:
        """Ask for units; return the job's id as `first`, and a `hint`."""
        key = f"{time.time_ns() // 10**9:x}-{os.urandom(12).hex()}"
        body = {**asked, "ticks": start_ticks(), "key": key}
        return self._client.idempotent("POST", "/guests", body)

    def wait(self, job: int, timeout_s: float) -> Document:
        """Return the job once it has its units or has ended, or the time is up."""
        path, body = f"/guests/{job}/wait", {"timeout_s": timeout_s}
        document: Document = self._client.repeat(
            lambda: self._client.once("POST", path, body, may_last=True)
        )
        return document

    def measured(self, job: int) -> None:
        """Have it learned what this process uses of its GPUs now."""
        self._client.idempotent("POST", f"/guests/{job}/measured")

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


def start_ticks() -> int:
    """Return when this process started, in clock ticks since boot."""
    with open("/proc/self/stat", "rb") as file:
        text = file.read()
    # The name may hold anything, so count fields from its closing bracket.
    return int(text[text.rindex(b")") + 2 :].split()[19])
