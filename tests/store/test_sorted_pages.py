"""Pages of jobs in every order, from every place on, of every filter."""

import random
from itertools import product
from pathlib import Path

import pytest
from tests.support.building import a_job, a_selection, a_spec

from grass.errors import TimedOut
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.store.changes import Changes
from grass.store.interface import JobFilter, Sorting, SortKey, Store
from grass.store.sql import sorted_pages
from grass.store.sqlite import sqlite_store
from grass.store.sqlite.sqlite_store import SqliteStore

JOBS = 120
SORTINGS = [Sorting(*one) for one in product(SortKey, (False, True))]


def some_job(number: int, chance: random.Random) -> Job:
    state = chance.choice(list(JobState))
    ended, started = state in ENDED, chance.random() < 0.8
    return a_job(
        number,
        state=state,
        name=chance.choice(["fit-{index}", "eval", "train", "Zebra"]),
        index=number,
        owner=chance.choice(["uid:1", "uid:2"]),
        project=chance.choice(["thesis", "default", "rare"] if number < 9 else ["x"]),
        queue=chance.choice(["default", "gpu"]),
        priority=chance.choice([0, 0, 5, -1]),
        started_at=chance.randrange(50) if started else None,
        finished_at=chance.randrange(50, 100) if ended else None,
    )


@pytest.fixture
def filled(store: Store) -> tuple[Store, list[Job]]:
    chance = random.Random(7)
    jobs = [some_job(number, chance) for number in range(1, JOBS + 1)]
    store.commit(Changes(specs={1: a_spec()}, jobs={job.id: job for job in jobs}))
    return store, jobs


FILTERS = {
    "all": JobFilter(),
    "a state": JobFilter(states=(JobState.FAILED,)),
    "an owner and a queue": JobFilter(owner="uid:2", queue="gpu"),
    "few": JobFilter(project="rare"),
    "none": JobFilter(owner="nobody"),
    "a text in names": JobFilter(selection=a_selection("name~fit-1")),
    "a pattern": JobFilter(selection=a_selection("name~^(fit-.*7|eval)$")),
    "ids": JobFilter(selection=a_selection("5-90 95")),
    "several": JobFilter(
        selection=a_selection("state:lost state:queued name~Zeb queue:gpu")
    ),
}


def expected(jobs: list[Job], sorting: Sorting) -> list[int]:
    """Put jobs in order without any store."""
    places = [sorting.place_of(job) for job in jobs]
    valued = sorted(one for one in places if one[0] is not None)
    if sorting.descending:
        valued.reverse()
    return [one[1] for one in valued] + sorted(
        (one[1] for one in places if one[0] is None), reverse=True
    )


@pytest.mark.parametrize("sorted_at_least", [0, 20_000], ids=["by-index", "sorted"])
@pytest.mark.parametrize("name", FILTERS)
def test_pages_follow_on_each_other_in_every_order(
    filled: tuple[Store, list[Job]],
    name: str,
    sorted_at_least: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sorted_pages, "SORTED_AT_LEAST", sorted_at_least)
    store, jobs = filled
    matching = {one.job.id for one in store.jobs(FILTERS[name], JOBS)}
    for sorting in SORTINGS:
        seen, place = list[int](), None
        while True:
            asked = Sorting(sorting.key, sorting.descending, place)
            page = store.sorted_jobs(FILTERS[name], asked, 7)
            assert sum(page.totals.values()) == len(matching)
            seen += [one.job.id for one in page.jobs]
            place = page.next
            if place is None:
                break
        every = [job for job in jobs if job.id in matching]
        assert seen == expected(every, sorting), sorting


def test_totals_are_by_state(filled: tuple[Store, list[Job]]) -> None:
    store, jobs = filled
    page = store.sorted_jobs(JobFilter(owner="uid:1"), Sorting(SortKey.NAME), 1)
    mine = [job.state for job in jobs if job.owner == "uid:1"]
    assert page.totals == {state: mine.count(state) for state in set(mine)}


def test_a_pattern_has_a_limit_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "PATTERN_S", 0.0)
    store = SqliteStore(tmp_path / "grass.db")
    jobs = {number: a_job(number, name=f"n{number}") for number in range(1, 3000)}
    store.commit(Changes(specs={1: a_spec()}, jobs=jobs))
    pattern = JobFilter(selection=a_selection("name~^n.*x$"))
    with pytest.raises(TimedOut, match="look through all names") as refused:
        store.sorted_jobs(pattern, Sorting(SortKey.ID), 10)
    assert "state" in refused.value.hint
    # The limit is that of one query.
    assert len(store.jobs(JobFilter(), 10)) == 10
    store.close()
