"""Who leads, among brokers that share a PostgreSQL database.

The row of the lead has an epoch, which every commit checks and keeps from changing
until it ends (`FOR KEY SHARE`). Taking the lead changes the epoch, and so waits for
such commits. Renewing it does not, and waits for none. A commit whose broker hangs, or
is gone, would be waited for without end; when the term is over it is ended instead.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from grass.model.brokers import (
    CLAIM_S,
    BrokerPresence,
    Lease,
    SeenBroker,
    broker_in_use,
)
from grass.store.bodies import from_json, json_text
from grass.store.postgres.address import DatabaseAddress
from grass.store.postgres.connections import PostgresConnection, connect
from grass.store.postgres.failures import FAILURES, is_away, storage_error
from grass.store.postgres.migrating import SCHEMA_VERSION, usable_version
from grass.store.sql.dialect import Dialect

T = TypeVar("T")

WAIT_S = 8.0
"""How long taking the lead waits for a commit of the epoch before."""


class Leading:
    """The lead, over a connection of its own that no long commit holds up."""

    def __init__(self, address: DatabaseAddress, sql: Dialect) -> None:
        self._address, self._sql = address, sql
        self._db: PostgresConnection | None = None
        self._lock = threading.Lock()
        self.epoch = 0
        """The epoch that this process was given last."""

    def take(
        self, holder: str, address: str, term_s: float, epoch: int, process: str
    ) -> Lease:
        """Take or renew the lead for a term, if nobody else has it."""

        def take(db: PostgresConnection) -> Lease:
            is_ours = False
            if epoch:
                values = (address, term_s, epoch, holder)
                is_ours = db.execute(self._sql["renew_lead"], values).rowcount > 0
            is_ours = is_ours or self._take(db, holder, address, term_s, process)
            lease = self._read(db)
            if not is_ours and lease.holder in ("", holder):
                # No other broker leads: the database does not allow it, or another
                # process of this broker.
                usable_version(db, self._address)
                self._check_process(db, holder, process)
            return lease

        lease = self._run(take)
        if lease.holder == holder:
            self.epoch = lease.epoch
        return lease

    def _take(
        self,
        db: PostgresConnection,
        holder: str,
        address: str,
        term_s: float,
        process: str,
    ) -> bool:
        claimed = (holder, process, CLAIM_S)
        if db.execute(self._sql["is_claimed"], claimed).fetchone():
            # The commits and the term may be those of the process that has the claim.
            return False
        db.execute(self._sql["end_left_commits"], (holder,))
        if term_s:
            db.execute(self._sql["cut_term"], (term_s,))
        taken = (holder, address, term_s, holder, SCHEMA_VERSION)
        return db.execute(self._sql["take_lead"], (*taken, *claimed)).rowcount > 0

    def _check_process(self, db: PostgresConnection, holder: str, process: str) -> None:
        me = BrokerPresence(id=holder, process=process)
        for one in self._load_brokers(db):
            if one.broker.id == holder and not me.may_follow(one):
                raise broker_in_use(one)

    def lease(self) -> Lease:
        """Return who leads."""
        return self._run(self._read)

    def announce(self, broker: BrokerPresence) -> None:
        """Note that a broker is there; refuse a second process of it."""

        def save(db: PostgresConnection) -> None:
            row = (broker.id, json_text(broker))
            claim = (broker.process, broker.lock, CLAIM_S)
            if not db.execute(self._sql["save_broker"], (*row, *claim)).rowcount:
                seen = self._load_brokers(db)
                raise broker_in_use(next(o for o in seen if o.broker.id == broker.id))

        self._run(save)

    def brokers(self) -> list[SeenBroker]:
        """Return all brokers that were announced in the last week, by id."""
        return self._run(self._load_brokers)

    def _load_brokers(self, db: PostgresConnection) -> list[SeenBroker]:
        rows = db.execute(self._sql["load_brokers"]).fetchall()
        return [
            SeenBroker(broker=from_json(body, BrokerPresence), seen_s=max(0.0, seen_s))
            for body, seen_s in rows
        ]

    def close(self) -> None:
        """Close the connection; may be called twice."""
        if self._db is not None:
            self._db.close()

    def _read(self, db: PostgresConnection) -> Lease:
        row = db.execute(self._sql["read_lead"]).fetchone()
        holder, address, epoch, remaining_s, led_s = row
        return Lease(
            holder=holder,
            address=address,
            epoch=epoch,
            remaining_s=remaining_s,
            led_s=led_s if epoch else 0.0,
        )

    def _run(self, work: Callable[[PostgresConnection], T]) -> T:
        """Do something, over a new connection if the last one was lost."""
        with self._lock:
            for is_last in (False, True):
                if self._db is None or not self._db.is_open:
                    self._db = connect(self._address, idle_s=WAIT_S, lock_s=WAIT_S)
                try:
                    return work(self._db)
                except FAILURES as error:
                    if is_away(error):
                        self._db.close()
                        if not is_last:
                            continue
                    raise storage_error(error, self._address) from error
        raise AssertionError("unreachable")
