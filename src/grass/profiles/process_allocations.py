"""What this process holds as a guest: its allocations, their variables, its first GPU.

A process has one set of environment variables and, once CUDA has started, one set of
GPUs. So all its allocations are of the GPUs of the first one. The variables are set
when the first allocation is held and are as before when the last one is given back.
A forked child holds nothing: it is inside the job that its parent holds.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from grass.config import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LOOK_S = 0.1


class ProcessAllocations:
    """The allocations of one process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = allocate_lock()
        self._first = allocate_lock()
        """Held while the first GPUs are waited for: the others will be the same."""
        self._held: dict[int, str] = {}
        self._before: dict[str, str | None] = {}
        self.gpus: tuple[str, ...] = ()
        """The GPUs of the first allocation that had any: it keeps them."""

    @property
    def outer_job(self) -> int | None:
        """The job that this process runs in, by its id; None: it is in none."""
        marker = os.environ.get(MARKER)
        if marker is None or (self._is_own and marker in self._held.values()):
            return None
        number = os.environ.get("GRASS_JOB_ID", "")
        return int(number) if number.isdecimal() else 0

    @property
    def is_holding(self) -> bool:
        """Whether this process holds an allocation."""
        return self._is_own and bool(self._held)

    @property
    def _is_own(self) -> bool:
        return self._pid == os.getpid()

    def await_first(self, given_up: Callable[[], bool]) -> bool:
        """Wait until the GPUs of this process are known, or are to be chosen now.

        Tells whether the caller chooses them, and so has to call `chosen`.
        """
        with self._lock:
            self._start_over_in_child()
        while not self.gpus:
            if self._first.acquire(timeout=_LOOK_S):
                if not self.gpus:
                    return True
                self._first.release()
            elif given_up():
                return False
        return False

    def chosen(self) -> None:
        """End the choice of the first GPUs, whether there are any now or not."""
        self._first.release()

    def hold(
        self, job: int, variables: Mapping[str, str], gpus: tuple[str, ...]
    ) -> None:
        """Note an allocation, and set its variables."""
        with self._lock:
            self._start_over_in_child()
            self.gpus = self.gpus or gpus
            # Children of this process are inside the job: a second allocation in one
            # of them would wait for the first without end.
            marker = f"guest.{job}"
            self._held[job] = marker
            for name, value in {**variables, MARKER: marker}.items():
                self._before.setdefault(name, os.environ.get(name))
                os.environ[name] = value

    def release(self, job: int) -> None:
        """Note that an allocation is given back; after the last, undo its variables."""
        with self._lock:
            self._held.pop(job, None)
            if self._held or not self._is_own:
                return
            before, self._before = self._before, {}
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _start_over_in_child(self) -> None:
        if not self._is_own:
            self._pid = os.getpid()
            self._first = allocate_lock()
            self._held.clear()
            self._before.clear()


state = ProcessAllocations()
"""That of this process."""
