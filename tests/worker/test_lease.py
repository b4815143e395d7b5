"""A worker with a lease: its keeper always has what the broker counts on."""

from typing import Any

from grass.keeper.protocol import LeaseVerb
from grass.link.messages import Heard, Hello, KnownUnits, Resync, Start, Welcome
from grass.model.amount_text import WHOLE
from grass.worker.core.effects import WorkerEffects
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.prepare import Surroundings
from grass.worker.core.worker_core import WorkerCore
from tests.support.building import units
from tests.worker.lab import entry_of, verbs_of

AROUND = Surroundings("/out", "/home/me", "/bin/sh", {"PATH": "/bin"})
FIRST = f"{'a' * 16}.1.1"
LEASE_S = 30.0
KNOWS = {"e": "hello", "version": 2, "leases": {}, "attempts": []}


class Lab:
    """A worker core, its clock, and what it wants to say."""

    def __init__(self, lease_s: float | None = LEASE_S) -> None:
        found = units("{cpu:1}")
        who = WorkerIdentity("w", "desk", "boot", found, ("big",))
        self.core = WorkerCore(who, AROUND, lease_s)
        self.core.from_broker(KnownUnits({"cpu": {"0": WHOLE}}))

    def broker(self, message: Any, now_s: float = 0.0) -> Any:
        self.core.now_s = now_s
        self.core.from_broker(message)
        return self.core.take()

    def keeper(self, line: dict[str, Any], now_s: float = 0.0) -> Any:
        self.core.now_s = now_s
        self.core.from_keeper(entry_of(line))
        return self.core.take()

    def connected(self, at: float) -> None:
        """Have keeper and broker there, with a lease that counts from a time."""
        self.keeper(KNOWS, at)
        self.broker(Welcome("c", at=at), at)
        self.keeper(leased(at + LEASE_S), at)
        self.broker(Welcome("c", at=at), at)


def leased(until: float | None) -> dict[str, Any]:
    return {"e": "leased", "cluster": "c", "until": until}


def lease(until: float | None) -> LeaseVerb:
    return LeaseVerb("c", until)


def hello_of(effects: WorkerEffects) -> Hello:
    (hello,) = effects.to_broker
    assert isinstance(hello, Hello)
    return hello


def start() -> Start:
    return Start(FIRST, 1, 1, "n", "p", ("true",), False, {"cpu": {"0": WHOLE}})


def welcomed(hello: dict[str, Any]) -> tuple[Lab, WorkerEffects]:
    """Have a keeper there and the broker's name known, all within one moment."""
    lab = Lab()
    assert hello_of(lab.keeper(hello, 5.0)).lease_s is None
    return lab, lab.broker(Welcome("c", at=5.0), 5.0)


def test_a_lease_is_promised_once_it_is_known_whom_and_the_keeper_has_it() -> None:
    lab, effects = welcomed(KNOWS)
    assert effects.to_keeper == [lease(35.0)]
    assert effects.to_broker == []
    hello = hello_of(lab.keeper(leased(35.0), 6.0))
    assert (hello.lease_s, hello.at, hello.labels) == (LEASE_S, 6.0, ("big",))


def test_a_confirmation_of_something_else_is_not_enough() -> None:
    lab, _ = welcomed(KNOWS)
    assert lab.keeper(leased(99.0), 6.0).to_broker == []
    other = {**leased(35.0), "cluster": "d"}
    assert lab.keeper(other, 6.0).to_broker == []


def test_the_lease_of_another_broker_is_left_as_it_is() -> None:
    for length_s in (LEASE_S, None):
        lab = Lab(length_s)
        lab.keeper({**KNOWS, "leases": {"d": 12.0}}, 5.0)
        told = lab.broker(Welcome("c", at=5.0), 5.0).to_keeper
        told += lab.broker(Heard(9.0), 9.0).to_keeper
        assert {verb.cluster for verb in told} <= {"c"}


def test_a_broker_with_a_new_name_gets_a_promise_of_its_own() -> None:
    lab = Lab()
    lab.connected(5.0)
    effects = lab.broker(Welcome("d", at=50.0), 50.0)
    told = LeaseVerb("d", 80.0)
    assert (effects.to_keeper, effects.to_broker) == ([told], [])
    confirmed = {"e": "leased", "cluster": "d", "until": 80.0}
    assert hello_of(lab.keeper(confirmed, 50.0)).lease_s == LEASE_S


def test_a_keeper_with_a_longer_lease_gets_a_shorter_one_first() -> None:
    lab, effects = welcomed({**KNOWS, "leases": {"c": 500.0}})
    assert (effects.to_keeper, effects.to_broker) == ([lease(35.0)], [])
    assert hello_of(lab.keeper(leased(35.0), 5.5)).lease_s == LEASE_S


def test_every_answer_of_the_broker_renews_the_lease() -> None:
    lab = Lab()
    lab.connected(5.0)
    assert lab.broker(Heard(9.0)).to_keeper == [lease(39.0)]
    assert lab.broker(Welcome("c", at=11.0)).to_keeper == [lease(41.0)]


def test_an_answer_that_comes_late_makes_the_lease_no_shorter() -> None:
    lab = Lab()
    lab.connected(5.0)
    lab.broker(Heard(20.0))
    assert lab.broker(Heard(15.0)).to_keeper == []


def test_the_lease_is_told_before_the_starts_that_came_with_it() -> None:
    lab = Lab()
    lab.connected(5.0)
    lab.core.from_broker(Welcome("c", at=8.0))
    lab.core.from_broker(start())
    assert verbs_of(lab.core.take().to_keeper) == [
        "lease",
        "start",
    ]


def test_a_new_keeper_is_told_the_lease_before_what_the_old_one_missed() -> None:
    lab = Lab()
    lab.connected(5.0)
    lab.core.keeper_lost()
    lab.broker(start(), 20.0)
    effects = lab.keeper(KNOWS, 100.0)
    assert verbs_of(effects.to_keeper) == ["lease", "start"]
    assert effects.to_keeper[0] == lease(35.0)


def test_after_every_cut_the_worker_only_says_when_it_was_heard() -> None:
    lab = Lab()
    lab.connected(5.0)
    effects = lab.broker(Resync(), 300.0)
    assert effects.to_keeper == []
    assert hello_of(effects).at == 300.0


def test_an_earlier_keeper_knows_no_leases_and_none_is_promised() -> None:
    lab = Lab()
    effects = lab.keeper({"e": "hello", "version": 1, "attempts": []}, 5.0)
    assert effects.to_keeper == []
    assert hello_of(effects).lease_s is None
    assert lab.broker(Welcome("c", at=5.0)).to_keeper == []


def test_without_a_lease_the_keepers_ends_with_the_welcome_and_not_before() -> None:
    lab = Lab(None)
    effects = lab.keeper({**KNOWS, "leases": {"c": 500.0}}, 5.0)
    assert effects.to_keeper == []
    assert hello_of(effects).lease_s is None
    assert lab.broker(Heard(6.0)).to_keeper == []
    assert lab.broker(Welcome("c", at=5.0)).to_keeper == [lease(None)]


def test_without_a_lease_a_keeper_that_has_none_is_told_nothing() -> None:
    lab = Lab(None)
    lab.keeper(KNOWS, 5.0)
    assert lab.broker(Welcome("c", at=5.0)).to_keeper == []
