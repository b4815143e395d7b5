"""Brokers that compete for the lead of one number, as the tests have them.

Each leader counts: it loads the number after it has taken the lead, adds one in memory
and writes it. A write that succeeds and does not follow on what the store has shows
that two led at once, or that one led with a state of before its epoch.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.simulation.memory_lead import MemoryLead

from grass.broker.core.leadership import (
    TERM_S,
    AskForLease,
    Decision,
    Leadership,
    Load,
    Release,
    StepDown,
)
from grass.errors import LeadLost
from grass.model.brokers import Lease


class Database:
    """The row of the lease, and a number; both by the database's own clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.clock_s = 0.0
        """How far its clock is ahead of the time that passes."""
        self.lead = MemoryLead()
        self.number = 0
        self.reachable = True

    def take(self, holder: str, epoch: int, term_s: float = TERM_S) -> Lease:
        now_s = self.now_s + self.clock_s
        ends_s = now_s + term_s
        return self.lead.take(
            holder, f"{holder}:7500", epoch, ends_s=ends_s, now_s=now_s
        )

    def write(self, number: int, epoch: int) -> None:
        """Write, and raise where the epoch has ended."""
        self.lead.check(epoch)
        assert number == self.number + 1, f"{number} was written over {self.number}"
        self.number = number


class Reply(NamedTuple):
    """A reply on its way back."""

    number: int
    lease: Lease


class Broker:
    """One broker, with a clock of its own, that may hang and be cut off."""

    def __init__(self, name: str, database: Database, clock_s: float) -> None:
        self.name = name
        self.database = database
        self.clock_s = clock_s
        self.leadership = Leadership(name, self.now_s)
        self.hangs = self.cut = False
        self.late = False
        """Whether replies are on their way for long."""
        self.slow = False
        """Whether its writes are under way for long."""
        self.asked: list[AskForLease] = []
        self.replies: list[Reply] = []
        self.memory: int | None = None
        """The number as a leader knows it."""
        self.loading = 0
        self.writing: list[tuple[int, int]] = []
        """Writes that are under way: number and epoch."""
        self.led: list[int] = []

    @property
    def now_s(self) -> float:
        return self.database.now_s + self.clock_s

    @property
    def speaks(self) -> bool:
        return not self.hangs and self.leadership.trusts(self.now_s)

    def step(self) -> None:
        if not self.hangs:
            self.act(self.leadership.step(self.now_s))

    def act(self, decisions: list[Decision]) -> None:
        for one in decisions:
            match one:
                case AskForLease():
                    self.asked.append(one)
                case Load(epoch):
                    self.loading = epoch
                case StepDown():
                    self.memory, self.loading = None, 0
                case Release(epoch):
                    if not self.cut:
                        self.database.take(self.name, epoch, 0.0)

    def send(self) -> None:
        """Let the oldest request reach the database, or fail."""
        if self.asked and not self.hangs:
            ask = self.asked.pop(0)
            if self.cut:
                self.act(self.leadership.failed(ask.number, self.now_s))
            else:
                lease = self.database.take(self.name, ask.epoch)
                self.replies.append(Reply(ask.number, lease))

    def receive(self) -> None:
        if self.replies and not self.hangs and not self.late:
            number, lease = self.replies.pop(0)
            self.act(self.leadership.answered(number, lease, self.now_s))

    def lose_reply(self) -> None:
        if self.replies and not self.hangs:
            number, _ = self.replies.pop(0)
            self.act(self.leadership.failed(number, self.now_s))

    def load(self) -> None:
        """Read the number, after the epoch was taken."""
        if self.loading and not self.hangs and not self.cut:
            epoch, self.loading = self.loading, 0
            self.memory = self.database.number
            self.led.append(epoch)
            self.act(self.leadership.loaded(epoch, self.now_s))

    def begin_write(self) -> None:
        if self.memory is not None and self.speaks and not self.writing:
            self.writing.append((self.memory + 1, self.leadership.epoch))

    def finish_write(self) -> None:
        """Let a write reach the database; it goes on there if its broker does not."""
        if not self.writing or self.slow:
            return
        number, epoch = self.writing.pop(0)
        expected = self.memory is not None and epoch == self.leadership.epoch
        try:
            self.database.write(number, epoch)
        except LeadLost as lost:
            if expected:
                self.act(self.leadership.lost(str(lost), self.now_s))
                self.memory = None
        else:
            if expected:
                self.memory = number

    def lose_write(self) -> None:
        """Have the broker give a write up that reaches the database later, or never."""
        if self.writing and self.memory is not None and not self.hangs:
            self.memory = None
            self.act(self.leadership.doubt(self.now_s))

    def forget_write(self) -> None:
        if self.writing and self.memory is None:
            self.writing.pop(0)

    def yield_lead(self) -> None:
        """See that other machines reach a standby alone."""
        if not self.hangs:
            self.act(self.leadership.yield_lead(self.now_s))

    def set_database_back(self) -> None:
        """See a database whose clock is behind in the place of the one before."""
        self.database.clock_s -= 3600.0

    def restart(self) -> None:
        """Be killed, and start again with the same name."""
        self.leadership = Leadership(self.name, self.now_s)
        self.asked, self.replies = [], []
        self.memory, self.loading, self.hangs = None, 0, False


FLAGS = ("hangs", "cut", "late", "slow")
ROUTINE = ("step", "send", "receive", "finish_write", "load", "begin_write")
TICK_S = 0.2


def leaders(brokers: list[Broker]) -> Iterator[Broker]:
    """Give those that may speak as the leader now."""
    return (one for one in brokers if one.speaks)


def run(database: Database, brokers: list[Broker], for_s: float) -> None:
    """Let time pass; at no time do two speak as the leader."""
    until = database.now_s + for_s
    while database.now_s < until:
        for one in brokers:
            for do in ROUTINE:
                getattr(one, do)()
        database.now_s += TICK_S
        assert len(list(leaders(brokers))) <= 1
