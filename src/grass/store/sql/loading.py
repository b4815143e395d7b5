"""Reading back the state that a broker starts from.

A million unfinished jobs may wait, most of which are members of arrays: their ids are
consecutive, they differ in id and index only, and nothing has happened to them yet. To
read all columns of each would take most of a restart. So after some equal jobs, the
database is asked how far that goes, and of the others only id and index are read.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TypeVar

from grass.model.access import Token
from grass.model.id_runs import merged_runs, runs_without
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.job import Job, alike
from grass.model.jobs.lifecycle import ENDED, UNFINISHED, JobState
from grass.model.jobs.spec import Spec
from grass.model.queue import Queue
from grass.model.restored import RESTORED_LAST_JOB
from grass.store.bodies import json_text
from grass.store.changes import AnsweredCall, Env, env_origins
from grass.store.interface import Snapshot
from grass.store.sql import job_queries, rows
from grass.store.sql.dialect import Connection, Dialect

T = TypeVar("T")

HOME_WORKER = "home_worker"
"""The key of the worker whose machine a file was on that was moved here."""
LONG = 1000
"""After this many equal jobs it is worth asking how many more there are."""


def discard_incomplete(db: Connection, sql: Dialect, calls_since: int) -> None:
    """Remove jobs whose enqueue was not completed, and expired answers.

    The ids of such jobs are free again, unless others came after them.
    """
    db.execute(sql["expire_calls"], (calls_since,))
    db.execute(sql["drop_arriving_jobs"])
    last = known = int(dict(db.execute(sql["load_meta"]))["last_job"])
    for first, end in sorted(db.execute(sql["load_arrivals"]), reverse=True):
        last = first - 1 if end == last else last
    if last != known:
        db.execute(sql["save_meta"], ("last_job", str(last)))
    if db.execute(sql["drop_arrivals"]).rowcount:
        db.execute(sql["remove_unused_specs"])
        db.execute(sql["remove_unused_envs"])


def snapshot(db: Connection, sql: Dialect, calls_since: int) -> Snapshot:
    """Read all that a broker needs."""
    meta = dict(db.execute(sql["load_meta"]))
    last_spec, last_env = db.execute(sql["largest_ids"]).fetchone()
    jobs = unfinished(db, sql)
    specs = _specs(db, sql, {common.spec for common, _ in alike(jobs)})
    calls = db.execute(sql["load_calls"], (calls_since,))
    return Snapshot(
        cluster=meta["cluster"],
        last_job=int(meta["last_job"]),
        last_spec=last_spec,
        last_env=last_env,
        paused=meta["paused"] == "1",
        queues=_queues(db, sql),
        workers=_bodies(db, sql["load_workers"], rows.worker_from),
        jobs=jobs,
        attempts=list(map(rows.attempt_from, db.execute(sql["load_live_attempts"]))),
        specs=specs,
        envs=read_envs(db, sql, env_origins(specs.values())),
        calls=[AnsweredCall(*row) for row in calls],
        counts=dict(db.execute(sql["count_by_state"])),
        output_bytes=db.execute(sql["output_usage"]).fetchone()[0],
        last_removal=int(meta.get("last_removal", "0")),
        removals=db.execute(sql["load_removals"]).fetchall(),
        arrays=dict(db.execute(sql["load_arrays"])),
        pools=_bodies(db, sql["load_pools"], rows.pool_from),
        pilots=_bodies(db, sql["load_pilots"], rows.pilot_from),
        profiles=_bodies(db, sql["load_profiles"], rows.profile_from),
        tokens=read_tokens(db, sql),
        restored_last_job=int(meta.get(RESTORED_LAST_JOB, "0")),
        home_worker=meta.get(HOME_WORKER, ""),
        dependency_ends=_ends(db, sql, specs.values(), {job.id for job in jobs}),
    )


def read_tokens(db: Connection, sql: Dialect) -> list[Token]:
    """Read all tokens and codes, the oldest first."""
    return sorted(_bodies(db, sql["load_tokens"], rows.token_from), key=_age)


def _queues(db: Connection, sql: Dialect) -> list[Queue]:
    found = _bodies(db, sql["load_queues"], rows.queue_from)
    queues = {queue.name: queue for queue in sorted(found, key=_age)}
    for queue, worker, body in db.execute(sql["load_views"]):
        queues[queue].views[worker] = rows.view_from(queue, worker, body)
    return list(queues.values())


def _bodies(db: Connection, statement: str, read: Callable[[str, str], T]) -> list[T]:
    return [read(key, body) for key, body in db.execute(statement)]


def _age(one: Queue | Token) -> tuple[int, str]:
    return one.created_at, one.name


def _specs(db: Connection, sql: Dialect, ids: set[int]) -> dict[int, Spec]:
    found = db.execute(sql["read_specs"], (json_text(sorted(ids)),))
    return {number: rows.spec_from(number, body) for number, body in found}


def read_envs(db: Connection, sql: Dialect, origins: Mapping[int, str]) -> list[Env]:
    """Read environments, each of which came from a machine."""
    found = db.execute(sql["read_envs"], (json_text(sorted(origins)),))
    return [sql.opened(Env(*row)._replace(origin=origins[row[0]])) for row in found]


def _ends(
    db: Connection, sql: Dialect, specs: Iterable[Spec], unfinished: set[int]
) -> dict[int, JobState]:
    """Read how those of the jobs ended that others wait for."""
    named = merged_runs(run for spec in specs for run in runs_of(spec.after))
    states = job_queries.states(db, sql, runs_without(named, unfinished))
    return {job: state for job, state in states.items() if state in ENDED}


def unfinished(db: Connection, sql: Dialect) -> list[Job]:
    """Read the jobs that have not ended, in the order of their ids."""
    jobs: list[Job] = []
    for state in UNFINISHED:
        jobs += _untouched(db, sql, state.value)
        jobs += rows.jobs_from(db.execute(sql["load_touched_jobs"], (state.value,)))
    jobs.sort(key=attrgetter("id"))
    return jobs


def _untouched(db: Connection, sql: Dialect, state: str) -> Iterator[Job]:
    """Read jobs that have no body."""
    after: int | None = 0
    while after is not None:
        found = db.execute(sql["load_untouched_jobs"], (state, after))
        last = yield from _until_alike(rows.jobs_from(found))
        found.close()
        after = None if last is None else (yield from _rest(db, sql, last))


def _until_alike(jobs: Iterator[Job]) -> Generator[Job, None, Job | None]:
    """Give jobs until many in a row are alike; return the last of those."""
    first, count = None, 0
    for job in jobs:
        yield job
        count = count + 1 if job.common is first else 1
        first = job.common
        if count == LONG:
            return job
    return None


def _rest(db: Connection, sql: Dialect, last: Job) -> Generator[Job, None, int | None]:
    """Give the jobs that follow on one and are like it; return the last of them."""
    common, state = last.common, last.state
    values = rows.common_row(common)
    (end,) = db.execute(sql["end_of_alike"], (state.value, last.id, *values)).fetchone()
    bounds = (state.value, last.id, 2**62 if end is None else end)
    for number, index in db.execute(sql["load_alike_jobs"], bounds):
        yield Job(number, common, state, index)
    return None if end is None else end - 1
