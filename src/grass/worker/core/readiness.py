"""Whether jobs can be started on this machine, and what is returned while not.

A broker that ignores this state would place what is returned here again at once. It is
not told, and the attempts wait in the keeper until they can start.
"""

from grass.link.messages import Readiness
from grass.worker.core.attempt_table import AttemptTable

LONGEST_UNABLE = 200
"""How many characters of the reason are told."""


class StartReadiness:
    """Why jobs cannot be started here, and whether the broker supports that."""

    def __init__(self, table: AttemptTable) -> None:
        self.unable = ""
        """Why no jobs can be started; empty: they can."""
        self.supported = False
        self.told = ""
        """What the broker was last told, also in a hello."""
        self._table = table

    @property
    def returns_starts(self) -> bool:
        """Tell whether a start is returned at once."""
        return bool(self.unable) and self.supported

    def changed(self, unable: str) -> list[Readiness]:
        """Note why jobs cannot be started, or that they can; return what to report."""
        unable = unable[:LONGEST_UNABLE]
        if unable == self.unable:
            return []
        self.unable = unable
        return self.news()

    def welcomed(self, supported: bool) -> list[Readiness]:
        """Note whether the broker supports it; return what changed since the hello."""
        self.supported = supported
        return self.news()

    def news(self) -> list[Readiness]:
        """Return what the broker has not been told, if it supports it."""
        if not self.supported or self.told == self.unable:
            return []
        self.told = self.unable
        return [Readiness(self.unable)]

    def to_return(self) -> tuple[list[str], list[str]]:
        """Return what the keeper is asked to recall, and what it never received.

        The latter cannot have begun.
        """
        asked: list[str] = []
        unsent: list[str] = []
        known = self._table.attempts.items() if self.returns_starts else ()
        for name, attempt in known:
            if attempt.may_be_returned and not self._table.is_foreign(name):
                attempt.recalled = True
                sent = attempt.sent or attempt.start is None
                (asked if sent else unsent).append(name)
        return asked, unsent
