"""Filling a database with something of everything, and writing it down as SQL.

`python -m tests.store.filling` prints a database of the present schema. One that was
released is kept in `databases/` and never written again: every later version must be
able to open it.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.brokerage import ME, SECOND, Brokerage

from grass.broker.core.calls import Enqueue, Enrol, NewJob, NewToken
from grass.link.messages import Exited, Started
from grass.model.access import hash_of
from grass.model.jobs.spec import JobPatch
from grass.model.resources import request_from
from grass.model.usage.attempt_usage import ResourceUse, UnitUse
from grass.store.sqlite.sqlite_store import SqliteStore

FOUND = "{cpu:4,ram:[16],gpu:2}"
KEPT = sorted(
    Path(__file__).with_name("databases").glob("schema_*.sql"),
    key=lambda file: int(file.stem.removeprefix("schema_")),
)


def fill(path: Path) -> None:
    """Make a database with queues, and with jobs in every state."""
    broker = Brokerage(path, FOUND, SqliteStore)
    _add_queues(broker)
    _add_ended_jobs(broker)
    _add_live_jobs(broker)
    _add_waiting_jobs(broker)
    _add_tokens(broker)
    _add_profiles(broker)
    broker.store.close()


def _add_queues(broker: Brokerage) -> None:
    request = request_from("{gpu:0.5}")
    more = {"cwd": "/tmp", "env": (("A", "b"),), "max_running": 2, "max_fails": 3}
    broker.create_queue("q1", "{gpu:1}", "echo", default_request=request, **more)
    broker.create_queue("paused", "{licence:2}")
    broker.pause("paused")
    broker.add_units("{printer:1}")
    broker.drain("cpu", "3")


def _add_ended_jobs(broker: Brokerage) -> None:
    good = broker.enqueue("python", "fit.py", name="fit", project="thesis", priority=3)
    broker.start(good, 4711)
    broker.exit(good, 0, output_bytes=12, max_rss=5_000_000, cpu_s=1.25)
    bad = broker.enqueue("false", max_output=1000, retries=1)
    for pid in (4712, 4713):
        broker.start(bad, pid)
        broker.exit(bad, 3, reason="exit 3")
    lost = broker.enqueue("sleep 5", require="{gpu:0.5}", queue="q1")
    broker.start(lost)
    broker.exit(lost, None, lost=True, reason="the machine was restarted")
    killed = broker.enqueue("sleep", "9")
    broker.start(killed)
    broker.exit(killed, None, signal=9)
    broker.cancel(broker.enqueue("x", queue="paused"))
    pruned = broker.enqueue("gone")
    broker.start(pruned)
    broker.exit(pruned)
    broker.prune(pruned)


def _add_live_jobs(broker: Brokerage) -> None:
    running = broker.enqueue("long", require="{cpu:1,ram:'2G'}", output="/tmp/{id}")
    broker.start(running, 4717)
    broker.suspend(running)
    stopping = broker.enqueue("stopping", require="{cpu:1}")
    broker.start(stopping, 4718)
    broker.cancel(stopping)
    broker.enqueue("starting", require="{cpu:1}")


def _add_waiting_jobs(broker: Brokerage) -> None:
    wanted = JobPatch(request=request_from("{cpu:3}"), project="p")
    jobs = [NewJob(("big", str(number)), wanted) for number in range(3)]
    broker.call(Enqueue(ME, jobs, "a-key", {"PATH": "/bin"}))
    broker.enqueue("waits", queue="paused")
    broker.enqueue("held", hold=True)
    broker.enqueue("after", after=("7:any",))
    broker.enqueue("later", begin_at=2_000_000_000_000_000)
    broker.array(3, require="{cpu:3}", at_most=2, max_fails=1)


def _add_tokens(broker: Brokerage) -> None:
    ends = broker.now_us + 3_600 * SECOND
    broker.call(NewToken(ME, "machine", hash_of("a"), None, True, ends))
    broker.call(Enrol("code", "laptop", "00000000000000b2", hash_of("b")))
    broker.call(NewToken(ME, "read", hash_of("c"), "page"))


def _add_profiles(broker: Brokerage) -> None:
    broker.join("learner", "{cpu:1, gpu:1, vram:[80]}")
    learned = {"require": "{vram:1}", "job_type": "fit.py", "worker": "learner"}
    for code in (0, 1):
        job = broker.enqueue("python", "fit.py", **learned)
        broker.hear(Started(broker.name(job), 5, 9), "learner")
        peak = ResourceUse(5, gpus={"0": UnitUse(2**30)})
        broker.hear(Exited(broker.name(job), 9, code, peak=peak), "learner")
    broker.leave("learner")


def dump(path: Path) -> Iterator[str]:
    """Write a database as SQL, its version included."""
    with closing(sqlite3.connect(path)) as db:
        yield from db.iterdump()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        yield f"PRAGMA user_version = {version};"


def restored(file: Path, folder: Path) -> Path:
    """Make the database again that was written as SQL."""
    path = folder / "grass.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(file.read_text())
        db.execute("PRAGMA journal_mode = WAL")
    return path


def version_of(path: Path) -> int:
    """Return the schema's version that a database has."""
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def multiply(path: Path, times: int) -> None:
    """Add copies of the jobs and attempts in a database, under other ids."""
    with closing(sqlite3.connect(path)) as db:
        for table, key in (("jobs", "id"), ("attempts", "job")):
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            others = ", ".join(name for name in names if name != key)
            db.executemany(
                f"INSERT INTO {table} ({key}, {others})"
                f" SELECT {key} + ?, {others} FROM {table} WHERE {key} <= 1000",
                [(1000 * number,) for number in range(1, times)],
            )
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        fill(Path(folder) / "grass.db")
        sys.stdout.writelines(f"{line}\n" for line in dump(Path(folder) / "grass.db"))
