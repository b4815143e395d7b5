"""Selections in every store: as plain Python has them, and read by an index."""

import random
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.building import a_job, a_selection, a_spec

from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.store.changes import Changes
from grass.store.interface import JobFilter, Order, Sorting, SortKey, Store
from grass.store.sql import job_queries
from grass.store.sqlite.dialect import SqliteDialect
from grass.store.sqlite.sqlite_store import SqliteStore

JOBS = 60
Test = Callable[[Job], bool]

words = st.lists(
    st.one_of(
        st.integers(1, JOBS + 2).map(str),
        st.tuples(st.integers(1, 30), st.integers(0, 40)).map(
            lambda pair: f"{pair[0]}-{sum(pair)}"
        ),
        st.sampled_from(JobState).map(lambda state: f"state:{state}"),
        st.sampled_from(["all", "last", "@a", "@b", "@none", "queue:q", "queue:none"]),
        st.sampled_from(["name~^fit", "name~-1", "name~eval", "name~"]),
    ),
    min_size=1,
    max_size=14,
)


def some_jobs() -> list[Job]:
    chance = random.Random(3)
    found = []
    for number in range(1, JOBS + 1):
        state = chance.choice(list(JobState))
        job = a_job(
            number,
            state=state,
            name=chance.choice(["fit-{index}", "eval", "train"]),
            index=number,
            array=1 if number < 20 else None,
            project=chance.choice("abc"),
            queue=chance.choice(["default", "q"]),
            finished_at=chance.randrange(50, 90) if state in ENDED else None,
        )
        found.append(job)
    return found


@pytest.fixture
def filled(store: Store) -> Store:
    jobs = {job.id: job for job in some_jobs()}
    store.commit(Changes(specs={1: a_spec()}, jobs=jobs))
    return store


def kind_and_test(word: str) -> tuple[str, Test]:
    """Read a selector in another way than the program does."""
    before, _, value = word.partition(":")
    if before == "state":
        return "state", lambda job: job.state == value
    if before == "queue":
        return "queue", lambda job: job.queue == value
    if word == "all":
        return "state", lambda job: job.state not in ENDED
    if word.startswith("@"):
        return "project", lambda job: job.project == word[1:]
    if word.startswith("name~"):
        return "name", lambda job: bool(re.search(word[5:], job.name))
    first, _, last = word.partition("-")
    return "ids", lambda job: int(first) <= job.id <= int(last or first)


def expected(texts: list[str], jobs: list[Job], *, union: bool) -> list[int]:
    tests = [kind_and_test(word) for word in texts if word != "last"]
    if union:
        found = [job for job in jobs if any(test(job) for _, test in tests)]
        ids = {job.id for job in found}
        return sorted(ids | {JOBS} if "last" in texts else ids)
    kinds = {kind for kind, _ in tests}
    found = [
        job
        for job in jobs
        if all(any(test(job) for one, test in tests if one == kind) for kind in kinds)
    ]
    ids = {job.id for job in found}
    return sorted(ids)[-1:] if "last" in texts else sorted(ids)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    texts=words,
    union=st.booleans(),
    states=st.lists(st.sampled_from(JobState), max_size=3).map(tuple),
)
def test_any_words_mean_what_they_mean_in_plain_python(
    filled: Store, texts: list[str], union: bool, states: tuple[JobState, ...]
) -> None:
    jobs = some_jobs()
    selection = a_selection(" ".join(texts), union=union)
    ids = expected(texts, jobs, union=union)
    assert filled.select(selection) == ids
    shown = [
        job for job in jobs if job.id in ids and (job.state in states or not states)
    ]
    wanted = JobFilter(states, selection=selection)
    counts = {state: sum(job.state is state for job in shown) for state in JobState}
    assert filled.counts(wanted) == {state: n for state, n in counts.items() if n}
    page = filled.sorted_jobs(wanted, Sorting(SortKey.ID), JOBS)
    assert [one.job.id for one in page.jobs] == [job.id for job in shown]
    for order in Order:
        asked = JobFilter(states, selection=selection, order=order)
        found = sorted(one.job.id for one in filled.jobs(asked, JOBS))
        in_order = (job for job in shown if job.finished_at or order != Order.FINISHED)
        assert found == [job.id for job in in_order], order


@pytest.mark.parametrize(
    ("texts", "index"),
    [
        ("@rare state:succeeded", "jobs_project (project=?)"),
        ("@usual state:failed", "jobs_state (state=?)"),
        ("@usual state:succeeded queue:few", "jobs_queue (queue=?)"),
        ("2 5 state:succeeded @usual", "INTEGER PRIMARY KEY"),
        ("2-5 state:succeeded @usual", "INTEGER PRIMARY KEY"),
        ("1-9000 state:failed", "jobs_state (state=?)"),
        ("@usual state:failed name~^fit", "jobs_state (state=?)"),
        ("@rare last", "jobs_project (project=?)"),
        ("state:failed @usual last", "jobs_state (state=?)"),
        ("1 2 3", "INTEGER PRIMARY KEY"),
    ],
)
def test_the_words_with_the_fewest_jobs_are_looked_up_in_an_index(
    tmp_path: Path, texts: str, index: str
) -> None:
    path = tmp_path / "grass.db"
    store = SqliteStore(path)
    jobs = {}
    for number in range(1, 200):
        state = JobState.FAILED if number % 20 == 0 else JobState.SUCCEEDED
        project = "rare" if number < 5 else "usual"
        queue = "few" if number == 7 else "default"
        jobs[number] = a_job(
            number, state=state, project=project, queue=queue, finished_at=number
        )
    store.commit(Changes(specs={1: a_spec()}, jobs=jobs))
    wanted = a_selection(texts)
    ids = store.select(wanted)
    with sqlite3.connect(path) as db:
        # Plans do not depend on what a pattern is.
        db.create_function("regexp", 2, lambda *_: True)
        db.create_function("filled_name", 4, lambda *_: "")
        asked = list[str]()
        db.set_trace_callback(asked.append)
        job_queries.select(db, SqliteDialect(), wanted)
        job_queries.page(db, SqliteDialect(), JobFilter(selection=wanted), 10)
        db.set_trace_callback(None)
        asked = [one for one in asked if "FROM jobs AS j" in one]
        steps = [
            row[3]
            for one in asked
            for row in db.execute(f"EXPLAIN QUERY PLAN {one}")
            if re.match("(SCAN|SEARCH) j\\b", row[3])
        ]
    assert steps
    assert all(index in one or "PRIMARY KEY (rowid=?)" in one for one in steps), steps
    assert ids == sorted(ids)
    store.close()
