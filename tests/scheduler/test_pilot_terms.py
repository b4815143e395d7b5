"""Workers that an engine lends for a time, or for one job alone."""

from random import Random

import pytest

from grass.model.resources import request_from
from grass.scheduler.pilot_terms import LOOK_S, PilotTerms
from tests.scheduler.lab import Lab


@pytest.fixture
def lab() -> Lab:
    made = Lab()
    made.worker("pilot", "{cpu:2}")
    made.scheduler.set_terms("pilot", PilotTerms(ends_at=100.0, unlimited_s=50.0))
    return made


def test_a_job_that_cannot_end_in_time_is_not_placed(lab: Lab) -> None:
    long = lab.enqueue("{cpu:1}", time_s=101.0)
    short = lab.enqueue("{cpu:1}", time_s=100.0)
    assert list(lab.decide()) == [short]
    assert lab.scheduler.waits(long)


def test_time_makes_a_worker_too_short_for_jobs_that_wait(lab: Lab) -> None:
    first, second = (lab.enqueue("{cpu:2}", time_s=40.0) for _ in range(2))
    third = lab.enqueue("{cpu:2}", time_s=20.0)
    assert list(lab.decide()) == [first]
    lab.now = 70.0
    assert list(lab.release(first)) == [third]
    assert lab.scheduler.waits(second)


def test_a_job_without_a_limit_needs_a_part_of_the_time(lab: Lab) -> None:
    lab.now = 50.0
    assert lab.start("{cpu:1}")
    lab.now = 52.0
    waiting = lab.enqueue("{cpu:1}")
    assert not lab.decide()
    lab.worker("other", "{cpu:1}")
    assert list(lab.decide()) == [waiting]


def test_a_bound_worker_takes_the_job_that_names_it_and_no_other(lab: Lab) -> None:
    lab.worker("own", "{cpu:1}")
    lab.scheduler.set_terms("own", PilotTerms(ends_at=10.0, bound=True))
    other = lab.enqueue("{cpu:1}", time_s=101.0)
    mine = lab.enqueue("{cpu:1}", time_s=101.0, worker="own")
    assert lab.decide() == {mine: ("own", {"cpu": {"0": 10_000}})}
    assert lab.scheduler.waits(other)


def test_more_time_is_seen_at_once(lab: Lab) -> None:
    job = lab.enqueue("{cpu:1}", time_s=150.0)
    assert not lab.decide()
    lab.scheduler.set_terms("pilot", PilotTerms(ends_at=200.0, unlimited_s=50.0))
    assert list(lab.decide()) == [job]


def test_what_no_worker_stays_for_is_refused_in_words(lab: Lab) -> None:
    lab.scheduler.remember_worker("pool uni", {"cpu": {"0": 10_000}})
    lab.scheduler.set_terms("pool uni", PilotTerms(longest_s=3600.0))
    asked = request_from("{cpu:1}")
    assert lab.scheduler.never_fits("default", asked, time_s=3600.0) is None
    problem = lab.scheduler.never_fits("default", asked, time_s=5400.0)
    assert problem == (
        "no worker of queue `default` stays for the 1h30m that it may take"
    )


def test_jobs_wait_for_a_worker_to_come_only_if_it_stays_long_enough(
    lab: Lab,
) -> None:
    lab.scheduler.remember_worker("pool uni", {"cpu": {"0": 10_000}})
    lab.scheduler.set_terms("pool uni", PilotTerms(longest_s=800.0))
    jobs = [lab.enqueue("{cpu:1}", time_s=one) for one in (None, 10.0, 700.0, 900.0)]
    lab.now = 99.0
    lab.decide()
    assert lab.scheduler.waiting_for("pool uni") == 3
    assert lab.scheduler.first_waiting_for("pool uni", 9) == jobs[:3]


@pytest.mark.parametrize("seed", range(20))
def test_in_any_history_every_job_ends_before_its_worker(seed: int) -> None:
    random, lab, ends = Random(seed), Lab(overtakes=3), dict[str, float]()
    running: dict[int, float] = {}
    needs: dict[int, float | None] = {}
    for step in range(150):
        if random.random() < 0.1:
            name = f"p{step}"
            ends[name] = lab.now + random.uniform(5, 100)
            lab.worker(name, "{cpu:4}")
            terms = PilotTerms(ends_at=ends[name], unlimited_s=20.0)
            lab.scheduler.set_terms(name, terms)
        for name, at in list(ends.items()):
            if at <= lab.now:
                lab.scheduler.remove_worker(name)
                lab.scheduler.check()
        time_s = random.choice([None, 1.0, 10.0, 30.0, 60.0])
        needs[lab.enqueue(f"{{cpu:{random.randint(1, 4)}}}", time_s=time_s)] = time_s
        over = [job for job, at in running.items() if at <= lab.now]
        started = lab.release(*over)
        for job in over:
            del running[job]
        for job, (worker, _) in started.items():
            needed = needs[job] or 20.0
            assert lab.now + needed <= ends[worker] + LOOK_S
            running[job] = lab.now + random.uniform(0, needed)
        lab.now += random.uniform(0, 3)
