"""Which link of a worker counts, and who may speak on it."""

from collections.abc import Callable

import pytest
from tests.support.building import BOOT, units

from grass.broker.core.state import State
from grass.broker.core.workers.worker_memory import Absence
from grass.broker.shell.links import (
    DEFECT,
    MOST_REASONS,
    MOST_REMEMBERED,
    REFUSED_INSTANCE,
    Links,
    WorkerConnection,
)
from grass.link.messages import (
    Exited,
    Forget,
    Heard,
    Heartbeat,
    Hello,
    Resync,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.log_lines import LogEvent
from grass.model.worker import Worker
from grass.store.interface import Snapshot

NEWS = Exited(f"{'a' * 16}.1.1", 5, 0)


class Wire:
    """One end of a link that remembers what it was told."""

    def __init__(self) -> None:
        self.sent: list[ToWorker] = []
        self.closed = False
        self.refusal = ""
        self.failure: Exception | None = None

    def listen(self, *_owner: object) -> None:
        """Do nothing."""

    def send(self, message: ToWorker) -> None:
        if self.failure is not None:
            raise self.failure
        self.sent.append(message)

    def close(self, refusal: str = "") -> None:
        self.closed = True
        self.refusal = self.refusal or refusal


def knowing(*workers: Worker) -> State:
    """Make the memory of a broker that knows these workers, and nothing else."""
    nobody = Snapshot("c", 0, 0, 0, False, [], [], [], [], {}, [], [], {}, 0)
    nobody.workers = list(workers)
    return State(nobody, 1)


HERE = knowing(Worker("w", "desk", connected=True))


class Owner:
    """A broker that only writes down what its links tell it."""

    def __init__(self) -> None:
        self.links = Links(self)
        self.said: list[tuple[str, ToBroker]] = []
        self.gone: list[str] = []
        self.came: list[WorkerConnection] = []
        self.logged: list[str] = []
        self.planned: list[Callable[[], None]] = []

    def received(self, connection: WorkerConnection, messages: list[ToBroker]) -> None:
        self.said += [(connection.worker, one) for one in messages]

    def connected(self, connection: WorkerConnection) -> None:
        self.came.append(connection)

    def disconnected(self, worker: str) -> None:
        self.gone.append(worker)

    def log(self, event: LogEvent) -> None:
        self.logged.append(str(event))

    def defect(self, error: Exception) -> None:
        self.logged.append(f"a defect: {error}")

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        self.planned.append(act)


def hello(
    worker: str = "w", at: float = 0.0, instance: str = "", boot: str = BOOT
) -> Hello:
    found = units("{cpu:1}")
    return Hello(worker, worker, boot, found, [], [], at=at, instance=instance)


@pytest.fixture
def owner() -> Owner:
    return Owner()


def opened(
    owner: Owner, worker: str | None = None, address: str | None = "10.0.0.7"
) -> tuple[WorkerConnection, Wire]:
    wire = Wire()
    return owner.links.open(wire, worker, address), wire


def test_what_is_said_before_a_hello_is_not_heard(owner: Owner) -> None:
    connection, _ = opened(owner)
    connection.arrived([NEWS])
    assert owner.said == []
    connection.arrived([hello(), NEWS])
    assert [one for _, one in owner.said] == [hello(), NEWS]


def test_a_hello_of_another_machine_tells_that_it_reaches_this_broker(
    owner: Owner,
) -> None:
    heard: list[None] = []
    owner.links.heard_machine = lambda: heard.append(None)
    own, _ = opened(owner, address=None)
    own.arrived([hello("own")])
    assert heard == []
    other, _ = opened(owner)
    other.arrived([hello()])
    assert heard == [None]


def test_of_two_links_the_one_that_was_opened_later_counts(owner: Owner) -> None:
    older, old_wire = opened(owner)
    newer, new_wire = opened(owner)
    newer.arrived([hello()])
    older.arrived([hello()])
    assert old_wire.closed
    older.arrived([NEWS])
    older.ended()
    assert [one for _, one in owner.said] == [hello()]
    assert owner.gone == []
    owner.links.send("w", Welcome("c", at=0.0))
    owner.links.send("w", Forget([]))
    assert new_wire.sent == [Welcome("c", at=0.0), Forget([])]


def test_what_was_decided_before_the_last_hello_is_not_sent(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello(at=1.0)])
    owner.links.send("w", Forget([]))
    owner.links.send("w", Resync())
    owner.links.send("w", Welcome("c", at=1.0))
    connection.arrived([hello(at=2.0)])
    owner.links.send("w", Forget(["late"]))
    owner.links.send("w", Welcome("c", at=2.0))
    owner.links.send("w", Forget(["again"]))
    welcomes = [Welcome("c", at=1.0), Welcome("c", at=2.0)]
    assert wire.sent == [Resync(), *welcomes, Forget(["again"])]


def test_a_newer_link_closes_the_older_one(owner: Owner) -> None:
    older, old_wire = opened(owner)
    older.arrived([hello()])
    newer, _ = opened(owner)
    assert not old_wire.closed
    newer.arrived([hello()])
    assert old_wire.closed
    older.arrived([NEWS])
    older.ended()
    assert ("w", NEWS) not in owner.said
    assert owner.gone == []
    newer.ended()
    assert owner.gone == ["w"]


def test_after_the_newer_link_ended_the_older_still_does_not_count(
    owner: Owner,
) -> None:
    older, _ = opened(owner)
    older.arrived([hello()])
    newer, _ = opened(owner)
    newer.arrived([hello()])
    newer.ended()
    older.arrived([NEWS])
    assert ("w", NEWS) not in owner.said


def test_only_the_expected_worker_may_speak(owner: Owner) -> None:
    connection, wire = opened(owner, "w")
    connection.arrived([hello("other")])
    assert wire.closed
    assert owner.said == []
    assert owner.logged == ["worker.wrong_id worker=other address=10.0.0.7"]


def test_a_link_is_of_one_worker(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello("w")])
    connection.arrived([hello("v")])
    assert wire.closed
    assert {worker for worker, _ in owner.said} == {"w"}


def test_no_remote_link_is_that_of_the_brokers_own_worker(owner: Owner) -> None:
    own, _ = opened(owner, address=None)
    own.arrived([hello()])
    stranger, wire = opened(owner)
    stranger.arrived([hello()])
    assert wire.closed
    assert owner.links.of("w") is own


def test_disconnecting_is_at_once_and_for_all_that_is_under_way(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello()])
    owner.links.disconnect("w")
    assert wire.closed
    assert owner.gone == ["w"]
    connection.arrived([NEWS])
    connection.ended()
    assert ("w", NEWS) not in owner.said
    assert owner.gone == ["w"]
    again, _ = opened(owner)
    again.arrived([hello()])
    assert owner.links.of("w") is again


def test_a_heartbeat_is_answered_once_the_hello_was_taken_in(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello(at=3.0)])
    connection.answer(Heartbeat(4.0), HERE)
    assert wire.sent == []
    owner.links.send("w", Welcome("c", at=3.0))
    connection.answer(Heartbeat(5.0), HERE)
    assert wire.sent[1:] == [Heard(5.0)]


def test_a_late_welcome_renews_a_lease_from_the_last_heartbeat(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello(at=3.0)])
    connection.answer(Heartbeat(50.0), HERE)
    owner.links.send("w", Welcome("c", at=3.0))
    assert wire.sent == [Welcome("c", at=50.0)]
    # A hello after that heartbeat counts from its own time.
    connection.arrived([hello(at=51.0)])
    owner.links.send("w", Welcome("c", at=51.0))
    assert wire.sent[1:] == [Welcome("c", at=51.0)]


def test_while_the_core_is_built_anew_a_lease_is_renewed_and_counted_anew(
    owner: Owner,
) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello(at=1.0)])
    owner.links.send("w", Welcome("c", at=1.0))
    anew = knowing(Worker("w", "desk", lease_s=30.0))
    anew.absences["w"] = Absence(30.0, since_s=5.0, next_s=50.0)
    # It reports again, and that is not taken in either: the disk is full.
    connection.arrived([hello(at=4.0)])
    connection.answer(Heartbeat(5.0), anew)
    assert wire.sent[1:] == [Heard(5.0)]
    assert anew.absences["w"] == Absence(30.0)


def test_a_worker_that_is_not_known_gets_no_answer(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello()])
    owner.links.send("w", Welcome("c"))
    connection.answer(Heartbeat(5.0), knowing())
    assert wire.sent == [Welcome("c")]


def test_a_welcome_to_an_earlier_hello_is_not_sent(owner: Owner) -> None:
    older, _ = opened(owner)
    older.arrived([hello(at=1.0)])
    newer, wire = opened(owner)
    newer.arrived([hello(at=2.0)])
    owner.links.send("w", Welcome("c", at=1.0))
    newer.answer(Heartbeat(5.0), HERE)
    assert wire.sent == []


@pytest.mark.parametrize("other", ["two", ""])
def test_a_copy_of_a_home_is_refused_while_the_other_is_here(
    owner: Owner, other: str
) -> None:
    first, wire = opened(owner)
    first.arrived([hello(instance="one")])
    for _ in range(2):
        copy, copied = opened(owner)
        copy.arrived([hello(instance=other), NEWS])
        assert copied.closed
        assert copied.refusal == REFUSED_INSTANCE
        copy.ended()
    assert not wire.closed
    assert (owner.gone, len(owner.said), len(owner.logged)) == ([], 1, 1)
    owner.links.send("w", Welcome("c", at=0.0))
    assert wire.sent == [Welcome("c", at=0.0)]
    first.ended()
    copy, copied = opened(owner)
    copy.arrived([hello(instance=other)])
    assert not copied.closed


@pytest.mark.parametrize("instances", [("one", "one"), ("", "two"), ("", "")])
def test_the_same_home_or_the_first_that_says_its_name_takes_its_link_over(
    owner: Owner, instances: tuple[str, str]
) -> None:
    first, wire = opened(owner)
    second, newer = opened(owner)
    first.arrived([hello(instance=instances[0])])
    second.arrived([hello(instance=instances[1])])
    assert (wire.closed, newer.closed) == (True, False)


def test_a_hello_that_is_refused_ends_the_link_and_other_words_do_not(
    owner: Owner,
) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello()])
    owner.links.refuse("w", NEWS, "nonsense")
    owner.links.refuse("w", NEWS, "nonsense")
    assert (wire.closed, len(owner.logged)) == (False, 1)
    owner.links.refuse("w", hello(), "no such units")
    assert (wire.refusal, owner.gone) == ("no such units", ["w"])


def test_logged_refusals_of_a_worker_are_bounded(owner: Owner) -> None:
    for number in range(3 * MOST_REASONS):
        owner.links.log_refusal("w", f"reason {number}")
    assert len(owner.logged) == MOST_REASONS
    assert owner.logged[-1].endswith(" last=true")
    owner.links.log_refusal("another", "reason 0")
    assert len(owner.logged) == MOST_REASONS + 1


def test_workers_with_logged_refusals_are_bounded(owner: Owner) -> None:
    for number in range(MOST_REMEMBERED + 1):
        owner.links.log_refusal(f"worker {number}", "a reason")
    owner.links.log_refusal(f"worker {MOST_REMEMBERED}", "a reason")
    assert len(owner.logged) == MOST_REMEMBERED + 1
    owner.links.log_refusal("worker 0", "a reason")
    assert len(owner.logged) == MOST_REMEMBERED + 2


def test_a_worker_that_brought_out_a_defect_is_refused_for_a_while(
    owner: Owner,
) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello()])
    owner.links.ban("w")
    owner.links.ban("w")
    assert (wire.closed, wire.refusal, owner.gone) == (True, DEFECT, ["w"])
    second, wire = opened(owner)
    second.arrived([hello()])
    assert (wire.closed, wire.refusal) == (True, DEFECT)
    (end,) = owner.planned
    end()
    third, wire = opened(owner)
    third.arrived([hello()])
    assert not wire.closed


def test_the_own_worker_is_never_expelled(owner: Owner) -> None:
    connection, wire = opened(owner, address=None)
    connection.arrived([hello()])
    owner.links.ban("w")
    assert not wire.closed


def test_a_message_that_cannot_be_sent_ends_its_link_alone(owner: Owner) -> None:
    connection, wire = opened(owner)
    connection.arrived([hello()])
    wire.failure = RuntimeError("no")
    owner.links.send("w", Resync())
    assert (wire.closed, owner.logged) == (True, ["a defect: no"])


def test_a_welcome_names_the_brokers_of_the_cluster(owner: Owner) -> None:
    owner.links.brokers = lambda: ("a:1", "b:1")
    connection, wire = opened(owner)
    connection.arrived([hello(at=1.0)])
    owner.links.send("w", Welcome("c", at=1.0))
    assert wire.sent == [Welcome("c", at=1.0, brokers=("a:1", "b:1"))]
