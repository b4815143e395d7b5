"""Checks of a whole store: what is counted, what names what, and whether it is read."""

from collections.abc import Iterator

from grass.store.blobs import Blobs
from grass.store.bodies import CorruptRow
from grass.store.sql import rows
from grass.store.sql.dialect import Connection

NAMED_AT_ONCE = 1000
_ARRIVED = """NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
)"""
_COUNTED = (
    "SELECT state, CAST(SUM(jobs) AS BIGINT) FROM job_counts"
    " GROUP BY state HAVING SUM(jobs) <> 0"
)
_FOUND = f"SELECT j.state, COUNT(*) FROM jobs AS j WHERE {_ARRIVED} GROUP BY j.state"  # noqa: S608 -- ours
_LONELY = {
    "jobs without a spec": "SELECT COUNT(*) FROM jobs AS j WHERE NOT EXISTS"
    " (SELECT 1 FROM specs AS s WHERE s.id = j.spec)",
    "attempts without a job": "SELECT COUNT(*) FROM attempts AS a WHERE NOT EXISTS"
    " (SELECT 1 FROM jobs AS j WHERE j.id = a.job)",
    "jobs beyond the last id": "SELECT COUNT(*) FROM jobs WHERE id >"
    " (SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'last_job')",
}
_JOBS = """SELECT
    id, spec, words, shell, name, project, owner, queue, priority, created_at, "array",
    state, array_index, finished_at, attempts, body
FROM jobs ORDER BY id"""
_ATTEMPTS = "SELECT job, number, state, output_bytes, ran_s, body FROM attempts"
_BLOBS = "SELECT blob FROM spec_blobs UNION SELECT blob FROM job_blobs"


def problems(db: Connection, blobs: Blobs) -> Iterator[str]:
    """Yield what is wrong, a line each; all reads are of one transaction."""
    counted, found = dict(db.execute(_COUNTED)), dict(db.execute(_FOUND))
    for state in sorted(counted.keys() | found.keys()):
        if counted.get(state, 0) != found.get(state, 0):
            yield (
                f"{found.get(state, 0)} jobs are {state},"
                f" and {counted.get(state, 0)} are counted"
            )
    for what, question in _LONELY.items():
        (number,) = db.execute(question).fetchone()
        if number:
            yield f"{number} {what}"
    yield from _unreadable(db)
    yield from _missing(db, blobs)


def sizes(db: Connection) -> dict[str, int]:
    """Return how many rows the large tables have."""
    return {
        table: int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 -- ours
        for table in ("jobs", "attempts", "specs", "events")
    }


def _unreadable(db: Connection) -> Iterator[str]:
    try:
        for _job in rows.jobs_from(db.execute(_JOBS)):
            pass
        for row in db.execute(_ATTEMPTS):
            rows.attempt_from(row)
    except CorruptRow as error:
        yield str(error)


def _missing(db: Connection, blobs: Blobs) -> Iterator[str]:
    named = [row[0] for row in db.execute(_BLOBS)]
    for at in range(0, len(named), NAMED_AT_ONCE):
        for name in blobs.missing(named[at : at + NAMED_AT_ONCE]):
            yield f"blob {name} is named and not there"
