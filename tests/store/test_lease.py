"""What a store does where several brokers share it, and where one has it alone."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
from tests.simulation.memory_store import MemoryStore, new_disk
from tests.store.conftest import in_postgres
from tests.support.building import a_job, a_spec

from grass.errors import BrokerInUse, LeadLost, StorageError
from grass.model.brokers import CLAIM_S, BrokerPresence
from grass.store.changes import Changes, Event
from grass.store.interface import Store
from grass.store.sqlite.sqlite_store import SqliteStore

TERM_S = 30.0
SHORT_S = 0.02


@pytest.fixture(params=["postgres", "memory"])
def shared(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store that several brokers use at once."""
    store: Store = MemoryStore(new_disk("0123456789abcdef"))
    if request.param == "postgres":
        store = in_postgres(request.getfixturevalue("database"))
    yield store
    store.close()


def write(store: Store, epoch: int, value: int = 7) -> None:
    store.commit(Changes(meta={"last_job": str(value)}), epoch)


def test_nobody_leads_a_new_store_and_its_epoch_is_0(shared: Store) -> None:
    lease = shared.lease()
    assert (lease.holder, lease.epoch) == ("", 0)
    assert lease.remaining_s <= 0
    write(shared, 0)
    with pytest.raises(LeadLost):
        write(shared, 1)


def test_the_first_to_ask_leads_and_others_are_told_who(shared: Store) -> None:
    mine = shared.take_lease("a", "h1:7500", TERM_S)
    assert (mine.holder, mine.address, mine.epoch) == ("a", "h1:7500", 1)
    assert 0 < mine.remaining_s <= TERM_S
    theirs = shared.take_lease("b", "h2:7500", TERM_S)
    assert (theirs.holder, theirs.address, theirs.epoch) == ("a", "h1:7500", 1)
    assert shared.lease().holder == "a"


def test_renewing_begins_the_term_anew_and_keeps_the_epoch(shared: Store) -> None:
    shared.take_lease("a", "h1", 1.0)
    renewed = shared.take_lease("a", "h1", TERM_S, 1)
    assert renewed.epoch == 1
    assert renewed.remaining_s > 1.0


def test_a_term_that_ended_can_be_renewed_while_nobody_took_it(shared: Store) -> None:
    shared.take_lease("a", "h1", 0.0)
    assert shared.take_lease("a", "h1", TERM_S, 1).epoch == 1
    write(shared, 1)


def test_when_the_term_has_ended_another_takes_the_lead(shared: Store) -> None:
    shared.take_lease("a", "h1", SHORT_S)
    sleep(SHORT_S * 2)
    taken = shared.take_lease("b", "h2", TERM_S)
    assert (taken.holder, taken.epoch) == ("b", 2)
    late = shared.take_lease("a", "h1", TERM_S, 1)
    assert (late.holder, late.epoch) == ("b", 2)


def test_a_term_of_0_gives_the_lead_up(shared: Store) -> None:
    shared.take_lease("a", "h1", TERM_S)
    assert shared.take_lease("a", "h1", 0.0, 1).remaining_s <= 0
    assert shared.take_lease("b", "h2", TERM_S).holder == "b"


def test_a_term_that_ends_later_than_one_can_last_is_cut_to_one(
    shared: Store,
) -> None:
    # As if the clock of the database had gone back.
    shared.take_lease("a", "h1", 3600.0)
    assert shared.take_lease("b", "h2", 0.0).remaining_s > TERM_S
    waits = shared.take_lease("b", "h2", SHORT_S)
    assert (waits.holder, waits.epoch) == ("a", 1)
    assert waits.remaining_s <= SHORT_S
    sleep(SHORT_S * 2)
    assert shared.take_lease("b", "h2", TERM_S).holder == "b"


def test_a_blob_is_not_removed_in_a_later_epoch_than_it_was_found_unnamed_in(
    shared: Store,
) -> None:
    data = b"function"
    name = sha256(data).hexdigest()
    draft = shared.blobs.begin(name)
    draft.write(data)
    draft.finish()
    found_in = shared.take_lease("a", "h1", 0.0).epoch
    shared.take_lease("b", "h2", 0.0)
    again = shared.take_lease("a", "h1", TERM_S).epoch
    with pytest.raises(LeadLost):
        shared.blobs.remove([name], found_in)
    assert shared.blobs.size(name) == len(data)
    shared.blobs.remove([name], again)
    assert shared.blobs.size(name) is None


def test_a_broker_that_forgot_its_epoch_gets_the_next_one_at_once(
    shared: Store,
) -> None:
    shared.take_lease("a", "h1", TERM_S)
    again = shared.take_lease("a", "h1", TERM_S)
    assert (again.holder, again.epoch) == ("a", 2)
    with pytest.raises(LeadLost):
        write(shared, 1)
    write(shared, 2)


def test_a_write_of_an_epoch_that_has_ended_changes_nothing(shared: Store) -> None:
    first = shared.take_lease("a", "h1", 0.0).epoch
    write(shared, first, 7)
    second = shared.take_lease("b", "h2", TERM_S).epoch
    for epoch in (first, 0, second + 1):
        with pytest.raises(LeadLost):
            write(shared, epoch, 8)
    assert shared.load(0).last_job == 7
    write(shared, second, 9)
    assert shared.load(0).last_job == 9


def test_brokers_are_listed_with_what_they_said_last(shared: Store) -> None:
    one = BrokerPresence(
        id="b2", name="n2", address="h2:7500", version="1", started_at=3, lag_s=0.25
    )
    for told in (BrokerPresence(id="b2"), BrokerPresence(id="b1"), one):
        shared.announce(told)
    seen = shared.brokers()
    assert [broker.broker for broker in seen] == [BrokerPresence(id="b1"), one]
    assert all(0 <= broker.seen_s < 5 for broker in seen)


def test_announcing_changes_nothing_of_the_lead(shared: Store) -> None:
    shared.take_lease("a", "h1", TERM_S)
    shared.announce(BrokerPresence(id="b"))
    assert shared.lease().holder == "a"


def process(name: str, lock: str = "") -> BrokerPresence:
    """Return a process of the broker `a`, on a host of the same name."""
    return BrokerPresence(
        id="a", process=name, lock=lock or name, host=name, home=f"/{name}"
    )


def age_claim(store: Store, request: pytest.FixtureRequest) -> None:
    """Have the last announcement be as old as one that counts no more."""
    if isinstance(store, MemoryStore):
        seen = store.disk.lead.seen
        for id, (presence, at_s) in seen.items():
            seen[id] = presence, at_s - CLAIM_S
        return
    import psycopg

    with psycopg.connect(request.getfixturevalue("database")) as db:
        update = "UPDATE brokers SET seen_at = seen_at - %s * INTERVAL '1 second'"
        db.execute(update, (CLAIM_S,))


def test_a_second_process_of_a_broker_is_refused_and_told_where_the_first_is(
    shared: Store,
) -> None:
    shared.announce(process("desk"))
    shared.announce(process("desk"))
    with pytest.raises(BrokerInUse) as refused:
        shared.announce(process("copy"))
    assert "desk" in refused.value.message
    assert "/desk" in refused.value.message
    assert 0 <= refused.value.seen_s < CLAIM_S
    assert [one.broker.process for one in shared.brokers()] == ["desk"]


def test_a_second_process_of_a_broker_does_not_take_its_lead(shared: Store) -> None:
    shared.announce(process("desk"))
    first = shared.take_lease("a", "h1", TERM_S, process="desk")
    with pytest.raises(BrokerInUse):
        shared.take_lease("a", "h1", TERM_S, process="copy")
    renewed = shared.take_lease("a", "h1", TERM_S, first.epoch, process="desk")
    assert renewed.epoch == first.epoch
    # Nor once the term is over, as that of a process that hangs.
    shared.take_lease("a", "h1", 0.0, first.epoch, process="desk")
    with pytest.raises(BrokerInUse):
        shared.take_lease("a", "h1", TERM_S, process="copy")


def test_a_process_with_the_same_lock_follows_at_once(shared: Store) -> None:
    shared.announce(process("killed", lock="home"))
    shared.take_lease("a", "h1", TERM_S, process="killed")
    shared.announce(process("next", lock="home"))
    assert shared.take_lease("a", "h1", TERM_S, process="next").epoch == 2
    with pytest.raises(BrokerInUse):
        shared.take_lease("a", "h1", TERM_S, process="killed")


def test_a_process_that_was_not_announced_lately_is_followed(
    shared: Store, request: pytest.FixtureRequest
) -> None:
    shared.announce(process("desk"))
    shared.take_lease("a", "h1", TERM_S, process="desk")
    age_claim(shared, request)
    shared.announce(process("moved"))
    assert shared.take_lease("a", "h1", TERM_S, process="moved").epoch == 2
    with pytest.raises(BrokerInUse):
        shared.announce(process("desk"))


def test_an_announcement_of_the_future_keeps_nobody_out(database: str) -> None:
    """As after the clock of the database has gone back."""
    import psycopg

    store = in_postgres(database)
    store.announce(process("desk"))
    store.take_lease("a", "h1", TERM_S, process="desk")
    with psycopg.connect(database) as db:
        db.execute("UPDATE brokers SET seen_at = seen_at + INTERVAL '1 hour'")
    assert store.take_lease("a", "h1", TERM_S, process="moved").epoch == 2
    store.announce(process("moved"))
    assert [one.broker.process for one in store.brokers()] == ["moved"]
    store.close()


def test_a_file_has_one_broker_which_leads_without_end(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "grass.db")
    try:
        lease = store.take_lease("a", "", 5.0)
        assert (lease.holder, lease.epoch) == ("a", 0)
        assert lease.remaining_s > 1e9
        write(store, lease.epoch)
        store.announce(BrokerPresence(id="a", name="desk"))
        assert [one.broker.name for one in store.brokers()] == ["desk"]
        assert store.lease().holder == "a"
    finally:
        store.close()


@pytest.fixture
def two(database: str) -> Iterator[tuple[Store, Store]]:
    """Two brokers' stores in one database."""
    stores = in_postgres(database), in_postgres(database)
    yield stores
    for store in stores:
        store.close()


def test_taking_waits_for_a_commit_of_the_epoch_before(
    two: tuple[Store, Store], database: str
) -> None:
    import psycopg

    first, second = two
    epoch = first.take_lease("a", "h1", 0.0).epoch
    with psycopg.connect(database) as slow:
        # What a commit of the first broker locks.
        slow.execute("SELECT epoch FROM lead FOR KEY SHARE")
        slow.execute("UPDATE meta SET value = '7' WHERE key = 'last_job'")
        taken: list[int] = []
        taking = Thread(
            target=lambda: taken.append(second.take_lease("b", "h2", TERM_S).epoch)
        )
        taking.start()
        # Renewing does not wait, and keeps the epoch.
        assert first.take_lease("a", "h1", 0.0, epoch).epoch == epoch
        taking.join(0.2)
        assert not taken
        slow.commit()
    taking.join()
    assert taken == [epoch + 1]
    assert second.load(0).last_job == 7
    with pytest.raises(LeadLost):
        write(first, epoch)


def test_who_does_not_lead_discards_nothing_that_arrives(
    two: tuple[Store, Store],
) -> None:
    first, second = two
    first.take_lease("a", "h1", 0.0)
    epoch = second.take_lease("b", "h2", TERM_S).epoch
    second.commit(
        Changes(
            specs={1: a_spec()}, jobs={1: a_job(1)}, arrivals=[(1, 2)], meta=_last(2)
        ),
        epoch,
    )
    assert not first.load(0).jobs
    second.commit(Changes(jobs={2: a_job(2)}, removed_arrivals=[1]), epoch)
    assert [job.id for job in first.load(0).jobs] == [1, 2]


def _last(job: int) -> dict[str, str]:
    return {"last_job": str(job)}


def test_lines_of_the_journal_have_no_gap_where_a_commit_failed(
    two: tuple[Store, Store],
) -> None:
    first, second = two
    epoch = first.take_lease("a", "h1", TERM_S).epoch
    event = Event(1, "uid:1", "paused")
    first.commit(Changes(events=[event, event]), epoch)
    with pytest.raises(StorageError):
        second.commit(Changes(events=[event]), epoch + 1)
    with pytest.raises(StorageError):
        first.commit(Changes(events=[event], jobs={1: a_job(2**70)}), epoch)
    first.commit(Changes(events=[event]), epoch)
    assert [one.seq for one in second.events(0, 10, None, ())] == [1, 2, 3]
    assert second.last_event() == 3


def test_a_refused_process_leaves_commits_and_term_of_the_first_alone(
    two: tuple[Store, Store], database: str
) -> None:
    import psycopg

    first, second = two
    first.announce(process("desk"))
    first.take_lease("a", "h1", TERM_S, process="desk")
    with psycopg.connect(database) as slow:
        slow.execute("SELECT epoch FROM lead FOR KEY SHARE")
        # As long as a commit must have waited for its client to be ended.
        sleep(2.1)
        with pytest.raises(BrokerInUse):
            second.take_lease("a", "h1", TERM_S / 10, process="copy")
        slow.commit()
    assert first.lease().remaining_s > TERM_S / 2
