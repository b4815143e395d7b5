"""Having a database without a leader, for as long as one transaction lasts.

Commits of brokers lock the row of the lead, so they wait for this transaction, and so
does whoever would take the lead. When it is done the epoch is another one: a broker
that did not know of it, because it hung or was cut off, writes nothing any more.
"""

from contextlib import closing

from grass.errors import Refused
from grass.store.postgres.address import DatabaseAddress
from grass.store.postgres.connections import PostgresConnection, connect
from grass.store.postgres.failures import FAILURES, storage_error
from grass.store.postgres.sealing import forget_environments

_LOCK = "LOCK TABLE lead IN EXCLUSIVE MODE"
"""The first statement: what the transaction reads is then read after it."""
_IS_LED = "SELECT ends_at > clock_timestamp() FROM lead"
_END = """UPDATE lead SET epoch = epoch + 1, holder = '', address = '',
taken_at = clock_timestamp(), ends_at = clock_timestamp()"""


def begin_alone(db: PostgresConnection, address: DatabaseAddress) -> None:
    """Begin a transaction that no broker can write beside; refuse while one leads."""
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    db.execute(_LOCK)
    if db.execute(_IS_LED).fetchone()[0]:
        raise used(address)
    db.execute(_END)


def used(address: DatabaseAddress) -> Refused:
    """Return the error for a database that a broker uses."""
    return Refused(
        f"a broker uses the database {address.shown}", "stop all of its brokers first"
    )


def give_up_environments(address: DatabaseAddress) -> int:
    """Remove the environments, and which key they are sealed with; return how many."""
    with closing(connect(address)) as db:
        try:
            begin_alone(db, address)
            removed = forget_environments(db)
            db.execute("COMMIT")
        except FAILURES as error:
            raise storage_error(error, address) from error
    return removed
