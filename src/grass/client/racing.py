"""Looking for a broker at several addresses, which may all lead nowhere.

Each address has a head start over the next one, and all of them together have the time
that one alone would have: a machine that is switched off says nothing at any of them.
"""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from grass.client.dialling import PATIENCE_S, unreachable
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError, NoBroker, Untrusted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grass.client.connection import Connection
    from grass.model.addresses import Address

    Open = Callable[[Address], Connection]

HEAD_START_S = 1.0


def first_found(addresses: Sequence[Address], open: Open) -> Connection:
    """Connect where it works; where it works nowhere, tell of all addresses."""
    if len(addresses) == 1:
        return open(addresses[0])
    race = _Race(addresses, open)
    found = race.winner(time.monotonic() + PATIENCE_S)
    if found is None:
        raise race.trouble()
    return found


class _Race:
    """Connections that are being made, each by a thread of its own."""

    def __init__(self, addresses: Sequence[Address], open: Open) -> None:
        self._addresses = addresses
        self._open = open
        self._errors: dict[Address, GrassError] = {}
        self._ends: SimpleQueue[tuple[Address, Connection | Exception]] = SimpleQueue()
        self._over = False
        self._lock = threading.Lock()

    def winner(self, deadline: float) -> Connection | None:
        """Return the first connection; None when there will be none."""
        waiting, running = list(self._addresses), 0
        try:
            while waiting or running:
                if waiting:
                    self._start(waiting.pop(0))
                    running += 1
                left = deadline - time.monotonic()
                ended = self._next(min(left, HEAD_START_S) if waiting else left)
                if ended is not None:
                    running -= 1
                    if not isinstance(ended, GrassError):
                        return ended
                elif time.monotonic() >= deadline:
                    break
        finally:
            self._end()
        return None

    def trouble(self) -> GrassError:
        """Say what went wrong at the first address, and name the others."""
        first, *others = self._addresses
        silent = unreachable(first, f"no answer within {PATIENCE_S:g} s")
        error = self._errors.get(first, silent)
        places = ", ".join(map(str, others))
        return type(error)(f"{error.message}; nor was it found at {places}", error.hint)

    def _start(self, address: Address) -> None:
        with CtrlCForMain():
            threading.Thread(target=self._try, args=[address], daemon=True).start()

    def _try(self, address: Address) -> None:
        try:
            ended: Connection | Exception = self._open(address)
        except Exception as error:  # noqa: BLE001 -- raised where it is taken
            ended = error
        with self._lock:
            if not self._over:
                self._ends.put((address, ended))
                return
        _hang_up(ended)

    def _next(self, wait_s: float) -> Connection | GrassError | None:
        """Wait for an end; None when there was none in time."""
        try:
            address, ended = self._ends.get(timeout=max(0.0, wait_s))
        except Empty:
            return None
        if isinstance(ended, (NoBroker, Untrusted)):
            self._errors[address] = ended
            return ended
        if isinstance(ended, Exception):
            raise ended
        return ended

    def _end(self) -> None:
        """Have no use for whatever is connected from now on."""
        with self._lock:
            self._over = True
        while not self._ends.empty():
            _hang_up(self._ends.get()[1])


def _hang_up(ended: Connection | Exception) -> None:
    if not isinstance(ended, Exception):
        ended.close()
