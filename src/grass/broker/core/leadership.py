"""A broker's view of the lead: when to ask for it, to trust it, and to give it up.

The row of the lease in the store is the truth, and every commit is checked against it;
this decides what a broker does between two looks at the row. It asks every second, as
long as no request is under way. A term counts from the moment the request was *sent*,
on a clock of this host that cannot jump and that counts while the machine sleeps; it is
trusted for a margin less than the store grants. So a leader has stopped to speak before
the store lets another one lead, whatever the wall clocks show and however late replies
arrive.

    STANDBY --answered: the lead is ours--> LOADING --loaded--> LEADING
       ^                                     |  ^                |  |
       |                                     |  +----in doubt----+  |
       +-- another leads, or the term is over, or a commit is refused, or it yields

The state is loaded after the epoch was taken, never before. A broker that stepped down,
or does not know what came of a commit, asks without its old epoch: what it left under
way in the store has ended when it gets the next one.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from grass.model.brokers import Lease, SeenBroker

TERM_S = 5.0
RENEW_S = 1.0
MARGIN_S = 1.0
"""How much less than the term a leader trusts: for the rates of two clocks, and for the
time from the last check to what is then sent."""
MOMENT_S = 0.02
"""How long after the end of another's term it is asked for."""
CUT_OFF_S = 4.0
"""So long without a word of another machine's worker is a reason to yield, if those
workers are heard elsewhere."""
ENOUGH_ASKED = 2
"""How often standbys must have been dialled meanwhile."""
ABSTAINS_S = TERM_S
"""For how long a broker that has yielded lets the others have the lead."""


class LeadPhase(StrEnum):
    """What a broker is."""

    STANDBY = "standby"
    LOADING = "loading"
    """The lead is taken, and the state is being read."""
    LEADING = "leading"


class AskForLease(NamedTuple):
    """Ask the store for the lease."""

    number: int
    """Of the request: the reply names it."""
    epoch: int
    """The epoch that is held; 0: none, the next one is wanted."""


class Load(NamedTuple):
    """Read the state, and lead with this epoch."""

    epoch: int


class StepDown(NamedTuple):
    """Write and say nothing more: callers are told where the leader is."""

    reason: str


class Release(NamedTuple):
    """End the term in the store: another broker need not wait for that."""

    epoch: int


Decision = AskForLease | Load | StepDown | Release


class Leadership:
    """One broker's part in who leads; all times are seconds of one monotonic clock."""

    def __init__(self, holder: str, now_s: float) -> None:
        """Begin as a standby that asks at once."""
        self.holder = holder
        self.phase = LeadPhase.STANDBY
        self.epoch = 0
        """The epoch that is held; 0: none."""
        self.lease = Lease(holder="")
        """Who leads, as the store told last."""
        self._told_s = now_s
        self._trusted_s = now_s
        self._asked_s: float | None = None
        """When the request that is under way was sent."""
        self._asked = AskForLease(0, 0)
        self._ask_s = now_s
        self._abstains_s = now_s
        """Until when it does not ask, whoever leads."""

    @property
    def leads(self) -> bool:
        """Whether the lead was taken and not given up; it may have run out since."""
        return self.phase is not LeadPhase.STANDBY

    def trusts(self, now_s: float) -> bool:
        """Tell whether this broker may speak as the leader now."""
        return self.leads and now_s < self._trusted_s

    def leader(self, now_s: float) -> Lease | None:
        """Return who leads, if that is known and its term is not over."""
        known = self.lease
        left_s = known.remaining_s - (now_s - self._told_s)
        return known if known.holder and left_s > 0 else None

    def lease_at(self, now_s: float) -> Lease:
        """Return the lease as it was told last, with its spans as they are now."""
        known, passed_s = self.lease, now_s - self._told_s
        return Lease(
            holder=known.holder,
            address=known.address,
            epoch=known.epoch,
            remaining_s=known.remaining_s - passed_s,
            led_s=known.led_s + passed_s if known.epoch else 0.0,
        )

    def wake_at(self) -> float:
        """Return when `step` has something to do."""
        due_s = max(self._ask_s, self._abstains_s)
        ask_s = due_s if self._asked_s is None else self._asked_s + TERM_S
        return min(ask_s, self._trusted_s) if self.leads else ask_s

    # Events.

    def step(self, now_s: float) -> list[Decision]:
        """Do what is due by now."""
        decided: list[Decision] = []
        if self.leads and now_s >= self._trusted_s:
            decided.append(self._step_down("the lease was not renewed in time"))
        if self._asked_s is not None and now_s >= self._asked_s + TERM_S:
            # Whatever comes of that request: its term would be over.
            self._asked_s = None
        if self._asked_s is None and now_s >= max(self._ask_s, self._abstains_s):
            self._asked_s = now_s
            self._asked = AskForLease(self._asked.number + 1, self.epoch)
            decided.append(self._asked)
        return decided

    def answered(self, number: int, lease: Lease, now_s: float) -> list[Decision]:
        """Take in the reply to a request."""
        if number != self._asked.number or self._asked_s is None:
            return self.step(now_s)
        asked_s = self._replied(now_s)
        self.lease, self._told_s = lease, asked_s
        if lease.holder != self.holder:
            if 0 < lease.remaining_s < RENEW_S:
                # Not a whole second later: nobody leads until then.
                self._ask_s = now_s + lease.remaining_s + MOMENT_S
            return [self._step_down(f"{_name(lease)} leads")] if self.leads else []
        if self.epoch and lease.epoch != self.epoch:
            return [self._step_down("the lead was taken again in our name")]
        until_s = asked_s + min(lease.remaining_s, TERM_S) - MARGIN_S
        if self.epoch:
            self._trusted_s = max(self._trusted_s, until_s)
            return self.step(now_s)
        return self._taken(lease.epoch, until_s, now_s)

    def failed(self, number: int, now_s: float) -> list[Decision]:
        """Note that a request came to nothing, as far as is known."""
        if number == self._asked.number and self._asked_s is not None:
            self._replied(now_s)
        return self.step(now_s)

    def loaded(self, epoch: int, now_s: float) -> list[Decision]:
        """Lead: the state was read, after this epoch was taken."""
        if epoch and epoch == self.epoch and self.trusts(now_s):
            self.phase = LeadPhase.LEADING
        return self.step(now_s)

    def doubt(self, now_s: float) -> list[Decision]:
        """Have the next epoch taken: it is not known what came of a commit.

        The state is to be loaded again then. Nobody else leads meanwhile.
        """
        if self.leads:
            self.phase, self.epoch, self._ask_s = LeadPhase.LOADING, 0, now_s
        return self.step(now_s)

    def lost(self, reason: str, now_s: float) -> list[Decision]:
        """Step down: a commit was refused, or the state could not be read."""
        decided: list[Decision] = [self._step_down(reason)] if self.leads else []
        return decided + self.step(now_s)

    def yield_lead(self, now_s: float) -> list[Decision]:
        """Let a standby lead: the other machines reach that one, and not this broker.

        Nothing else would end its lead, as it reaches the store.
        """
        if not self.leads or not self.epoch:
            return self.step(now_s)
        self._abstains_s = now_s + ABSTAINS_S
        release = Release(self.epoch)
        return [self._step_down("other machines reach a standby alone"), release]

    def leave(self, reason: str) -> list[Decision]:
        """Lead no more, and never ask again: the daemon stops."""
        self._abstains_s = math.inf
        return [self._step_down(reason)] if self.leads else []

    def _taken(self, epoch: int, until_s: float, now_s: float) -> list[Decision]:
        """Take the lead, if the reply is to a request for the next epoch, and in time.

        The reply to one that was to renew an epoch tells of that epoch, which was given
        up meanwhile.
        """
        if self._asked.epoch:
            self._ask_s = now_s
        elif until_s > now_s >= self._abstains_s:
            self.phase, self.epoch, self._trusted_s = LeadPhase.LOADING, epoch, until_s
            return [Load(epoch)]
        return self.step(now_s)

    def _replied(self, now_s: float) -> float:
        asked_s, self._asked_s = self._asked_s, None
        assert asked_s is not None
        self._ask_s = max(now_s, asked_s + RENEW_S)
        return asked_s

    def _step_down(self, reason: str) -> StepDown:
        self.phase, self.epoch = LeadPhase.STANDBY, 0
        return StepDown(reason)


def is_cut_off(quiet_s: float, seen: Iterable[SeenBroker], holder: str) -> bool:
    """Tell whether other machines look for a leader elsewhere, and not at its place.

    `quiet_s` is how long it has heard none of their workers. A broker that nobody
    dials stays silent for good reasons; one whose workers dial a standby does not.
    """
    others = [one for one in seen if one.broker.id != holder and one.seen_s < CUT_OFF_S]
    asks = sum(one.broker.asks for one in others)
    return quiet_s >= CUT_OFF_S and asks >= ENOUGH_ASKED


def _name(lease: Lease) -> str:
    return lease.address or lease.holder or "nobody"
