"""Whether jobs can be started on this machine, and what is given back while not.

A broker that does not heed it would place what is given back here again at once. Such a
one is told nothing, and the attempts wait in the keeper until they can start.
"""

from grass.link.messages import Readiness
from grass.worker.core.attempt_table import Books

LONGEST_REASON = 200
"""So many characters say why no jobs can be started."""


class Ability:
    """What keeps jobs from starting here, and whether the broker heeds it."""

    def __init__(self, books: Books) -> None:
        self.unable = ""
        """Why no jobs can be started; empty: they can."""
        self.heeded = False
        self.told = ""
        """What the broker was last told, be it in a hello."""
        self._books = books

    @property
    def takes_none(self) -> bool:
        """Tell whether a start is to be returned at once."""
        return bool(self.unable) and self.heeded

    def changed(self, unable: str) -> list[Readiness]:
        """Note why jobs cannot be started, or that they can; give what to say of it."""
        unable = unable[:LONGEST_REASON]
        if unable == self.unable:
            return []
        self.unable = unable
        return self.news()

    def welcomed(self, heeded: bool) -> list[Readiness]:
        """Note whether the broker heeds it; give what came after the hello."""
        self.heeded = heeded
        return self.news()

    def news(self) -> list[Readiness]:
        """Give what the broker heeds and has not been told."""
        if not self.heeded or self.told == self.unable:
            return []
        self.told = self.unable
        return [Readiness(self.unable)]

    def given_back(self) -> tuple[list[str], list[str]]:
        """Choose what is given back now: by the keeper, and without asking one.

        What no keeper has heard of cannot have begun.
        """
        asked: list[str] = []
        unheard: list[str] = []
        for attempt, held in self._books.attempts.items() if self.takes_none else ():
            if held.may_be_given_back and not self._books.is_foreign(attempt):
                held.recalled = True
                heard = held.sent or held.verb is None
                (asked if heard else unheard).append(attempt)
        return asked, unheard
