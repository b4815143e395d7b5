"""The worker's part in a lease: it passes on what the broker has answered.

A lease lets the broker run a job elsewhere when this machine is cut off: the keeper
ends every attempt when the lease runs out, also while the daemon is dead. It counts
from a time of this machine's own clock that the broker has repeated, so the broker,
which counts from when it last answered, always waits longer.

What the broker may count on from a `Hello` on, the keeper has before: a lease that is
new, or shorter than the keeper's, is confirmed by the keeper first. Only an answer of
the broker makes a lease longer.
"""

from typing import Any

from grass.link.messages import Heard, Welcome

Verb = dict[str, Any]

FIRST_VERSION = 2
"""Keepers from this version on know leases."""


class Lease:
    """Until when the keeper lets attempts live, as the worker knows it."""

    def __init__(self, length_s: float | None) -> None:
        """Begin without a keeper, and without an answer of the broker."""
        self._length_s = length_s
        self._heard_s: float | None = None
        self._can = False
        self._until: float | None = None
        """What the keeper has, or was told last."""
        self._confirmed = True

    @property
    def promised_s(self) -> float | None:
        """What the broker may count on: nothing, with a keeper that knows no leases."""
        return self._length_s if self._can else None

    def keeper_came(self, hello: Verb) -> list[Verb]:
        """Learn what a keeper can and has; tell it what it may not know."""
        self._can = hello.get("version", 1) >= FIRST_VERSION
        self._until, self._confirmed = hello.get("lease"), True
        return [] if self._length_s is None else self._renewed()

    def before_hello(self, now_s: float) -> list[Verb] | None:
        """Give what the keeper must confirm before a hello; None: it may be said."""
        if self.promised_s is None:
            return None
        most = now_s + self.promised_s
        if self._until is None or self._until > most:
            return self._told(most)
        return None if self._confirmed else []

    def confirmed(self, line: Verb) -> None:
        """Take the keeper's word that it has the lease it was told."""
        self._confirmed = self._confirmed or line.get("until") == self._until

    def answered(self, message: Welcome | Heard) -> list[Verb]:
        """Count from what the broker has answered; give what the keeper is to know.

        That there is no lease any more is told with a welcome only: before it the
        broker may count on the lease that a daemon before this one had.
        """
        self._heard_s = max(message.at, self._heard_s or 0.0)
        if self._length_s is None and not isinstance(message, Welcome):
            return []
        return self._renewed()

    def _renewed(self) -> list[Verb]:
        if not self._can or self._heard_s is None:
            return []
        length_s = self._length_s
        until = None if length_s is None else self._heard_s + length_s
        return [] if until == self._until else self._told(until)

    def _told(self, until: float | None) -> list[Verb]:
        self._until, self._confirmed = until, False
        return [{"v": "lease", "until": until}]
