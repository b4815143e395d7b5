"""What is known to the screens: the documents that were read last, and their age."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from grass.cli.printing.quantities import brief
from grass.cli.printing.signs import Signs
from grass.cli.printing.styled import Styled, cells
from grass.cli.printing.wording import IN_ORDER, TINTS
from grass.client.json_codec import Document
from grass.tui.updates import News

_NOTHING: Document = {"workers": []}


class ScreenState:
    """The documents, and whether they are up to date."""

    def __init__(self) -> None:
        self.overview: Document | None = None
        self.listing: Document | None = None
        self.devices: Document = _NOTHING
        self.job: Document | None = None
        self.strips: dict[tuple[str, str], Sequence[Document]] = {}
        self.select: list[str] = []
        """The selector words of the filter."""
        self.lost = ""
        """Why nothing is read; empty: all is well."""
        self.is_paused = False
        self._held: dict[str, News] = {}
        """What was read while it was paused, the last of each topic."""
        self._since = time.monotonic()
        """From when on it is not up to date, if it is not."""

    def take(self, news: News) -> None:
        """Note what was read; while paused, it is kept for later."""
        self.lost = ""
        if self.is_paused:
            self._held[news.topic] = news
            return
        document = news.document
        if news.topic == "overview":
            self.overview = document
        elif news.topic == "listing":
            self.listing = document if self.select else None
        elif news.topic == "devices":
            self.devices = document
        elif news.topic == "job":
            self.job = document
        elif news.topic == "strip":
            key = document["worker"], document["unit"]
            self.strips[key] = document["points"]

    def lose(self, why: str) -> None:
        """Note that nothing is read any more."""
        if not self.lost and not self.is_paused:
            self._since = time.monotonic()
        self.lost = why

    def pause(self, *, on: bool) -> None:
        """Stay as it is, or take over what was read meanwhile."""
        if on and not self.lost:
            self._since = time.monotonic()
        self.is_paused = on
        if not on:
            held, self._held = self._held, {}
            lost = self.lost
            for news in held.values():
                self.take(news)
            self.lost = lost

    def choose(self, words: Sequence[str]) -> None:
        """Show the jobs that these words select."""
        self.select = list(words)
        self.listing = None

    @property
    def age_s(self) -> float:
        """How old the documents are, if they are not up to date."""
        return time.monotonic() - self._since

    @property
    def shown(self) -> Document | None:
        """The jobs to be shown; None: they were not read yet."""
        return self.listing if self.select else self.overview

    @property
    def workers(self) -> list[Document]:
        """The workers."""
        return [] if self.overview is None else list(self.overview["workers"])

    @property
    def queues(self) -> list[Document]:
        """The queues."""
        return [] if self.overview is None else list(self.overview["queues"])

    @property
    def totals(self) -> Mapping[str, int]:
        """How many jobs are in each state."""
        totals: Mapping[str, int] = {}
        return totals if self.overview is None else self.overview["daemon"]["jobs"]


def counts(state: ScreenState, signs: Signs, width: int) -> Styled:
    """Write how many jobs are in each state, as much of it as fits.

    Where there is little room those that are over and done with are left out first,
    and the words only after them.
    """
    fitting = [one for one in IN_ORDER if state.totals.get(one) or one == "running"]
    done = ("succeeded", "cancelled")
    for spared in ((), done[:1], done, (*done, "held", "waiting")):
        shown = [one for one in fitting if one not in spared]
        line = _counts(state, signs, shown, " {}")
        if cells(str(line)) <= width:
            return line
    return _counts(state, signs, fitting, "")


def _counts(
    state: ScreenState, signs: Signs, shown: Sequence[str], word: str
) -> Styled:
    line = Styled()
    for one in shown:
        count = state.totals.get(one, 0)
        text = f"{signs.of(one)}{count}{word.format(one)}  "
        line += Styled((text, TINTS.get(one, "") if count else "dim"))
    return line


def badge(state: ScreenState, signs: Signs) -> Styled:
    """Write whether what is shown is live."""
    if state.lost:
        old = brief(state.age_s)
        return Styled((f"{signs.of('lost')}away, as of {old} ago", "red"))
    if state.is_paused:
        return Styled((f"{signs.of('held')}paused for {brief(state.age_s)}", "yellow"))
    if state.overview is None:
        return Styled(("reading", "dim"))
    return Styled((f"{signs.of('running')}live", "green"))
