"""A large job is overtaken a bounded number of times."""

from .lab import Lab


def full_lab(overtakes: int = 1, patience_s: float = 900.0) -> Lab:
    """Return a worker `w` with two cpus, on which jobs 1 and 2 run."""
    lab = Lab(overtakes, patience_s)
    lab.worker("w", "{cpu:2}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}")
    lab.decide()
    return lab


def keep_busy(lab: Lab, rounds: int, request: str = "{cpu:1}") -> list[int]:
    """Enqueue and end small jobs; return the jobs in the order of their starts."""
    running = [job for job in lab.scheduler.holders("w") if isinstance(job, int)]
    started: list[int] = []
    for _ in range(rounds):
        lab.enqueue(request)
        new = list(lab.release(running.pop(0)) if running else lab.decide())
        running += new
        started += new
    return started


def test_a_job_that_needs_every_unit_starts_within_the_bound() -> None:
    lab = Lab(overtakes=10)
    lab.worker("w", "{cpu:4}")
    for _ in range(4):
        lab.enqueue("{cpu:1}")
    lab.decide()
    large = lab.enqueue("{cpu:4}")
    started = keep_busy(lab, 40)
    assert large in started
    assert started.index(large) <= 10


def test_a_job_overtaken_for_too_long_reserves_units() -> None:
    lab = full_lab(overtakes=1000, patience_s=900.0)
    large = lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    lab.now = 5.0
    assert lab.scheduler.wake_at() is None
    assert list(lab.release(1)) == [4]
    assert lab.scheduler.wake_at() == 905.0
    lab.now = 65.0
    explanation = lab.explain(large)
    assert (explanation.overtaken, explanation.overtaken_s) == (1, 60.0)
    lab.now = 905.0
    assert lab.decide() == {}
    assert lab.scheduler.wake_at() is None
    assert lab.explain(large).reserved_on == "w"
    small = lab.enqueue("{cpu:1}")
    assert lab.release(2) == {}
    assert f"kept for job {large}" in str(lab.explain(small))
    assert list(lab.release(4)) == [large]
    assert list(lab.release(large)) == [small]


def test_a_better_job_may_still_take_reserved_units() -> None:
    lab = full_lab()
    large = lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    assert list(lab.release(1)) == [4]
    urgent = lab.enqueue("{cpu:1}", priority=1)
    lab.enqueue("{cpu:1}")
    assert list(lab.release(2)) == [urgent]
    assert list(lab.release(4, urgent)) == [large]


def lab_with_reservation() -> Lab:
    """Job 3 needs both units and has reserved them; 2 and 4 run, 5 waits behind."""
    lab = full_lab()
    lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}")
    assert list(lab.release(1)) == [4]
    assert lab.release(2) == {}
    return lab


def test_a_reservation_ends_when_its_job_is_removed() -> None:
    lab = lab_with_reservation()
    lab.scheduler.remove(3)
    assert list(lab.decide()) == [5]


def test_a_reservation_moves_on_when_its_worker_goes_away() -> None:
    lab = lab_with_reservation()
    lab.scheduler.remove_worker("w")
    lab.scheduler.check()
    lab.worker("v", "{cpu:2}")
    assert list(lab.decide()) == [3]


def test_a_reservation_is_suspended_while_its_queue_is_paused() -> None:
    lab = full_lab()
    lab.queue("q", open_to_all=True)
    large = lab.enqueue("{cpu:2}", queue="q")
    lab.enqueue("{cpu:1}")
    assert list(lab.release(1)) == [4]
    lab.queue("q", open_to_all=True, paused=True)
    small = lab.enqueue("{cpu:1}")
    assert list(lab.release(2)) == [small]
    lab.queue("q", open_to_all=True)
    lab.enqueue("{cpu:1}")
    assert lab.decide() == {}
    assert lab.release(4) == {}
    assert list(lab.release(small)) == [large]


def test_a_large_job_of_a_limited_queue_is_not_starved_by_its_own_queue() -> None:
    lab = Lab(overtakes=5)
    lab.worker("w", "{cpu:2}")
    lab.queue("q", max_running=1, open_to_all=True)
    lab.scheduler.occupy("lease", "w", {"cpu": {"0": 10_000}})
    lab.enqueue("{cpu:1}", queue="q")
    lab.decide()
    large = lab.enqueue("{cpu:2}", queue="q")
    last = 1
    for _ in range(5):
        job = lab.enqueue("{cpu:1}", queue="q")
        assert list(lab.release(last)) == [job]
        last = job
    lab.enqueue("{cpu:1}", queue="q")
    assert lab.release(last) == {}
    assert list(lab.release("lease")) == [large]


def test_a_worker_has_one_reservation_at_a_time() -> None:
    lab = Lab(overtakes=1)
    lab.worker("w", "{cpu:2,gpu:2}")
    for _ in range(2):
        lab.enqueue("{cpu:1}")
        lab.enqueue("{gpu:1}")
    lab.decide()
    cpus, gpus = lab.enqueue("{cpu:2}"), lab.enqueue("{gpu:2}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{gpu:1}")
    assert sorted(lab.release(1, 2)) == [7, 8]
    reserved_on = [lab.explain(job).reserved_on for job in (cpus, gpus)]
    assert reserved_on == ["w", None]
    assert list(lab.release(3, 7)) == [cpus]
    assert lab.explain(gpus).reserved_on == "w"


def test_the_worker_that_drains_soonest_is_reserved() -> None:
    lab = Lab(overtakes=1)
    lab.worker("a", "{cpu:4}")
    lab.worker("b", "{cpu:4}")
    for _ in range(8):
        lab.enqueue("{cpu:1}")
    started = lab.decide()
    on_b = [job for job, (worker, _) in started.items() if worker == "b"]
    large = lab.enqueue("{cpu:4}")
    small = lab.enqueue("{cpu:1}")
    assert list(lab.release(*on_b[:3])) == [small]
    assert lab.explain(large).reserved_on == "b"


def test_jobs_on_another_worker_are_not_held_up_by_a_reservation() -> None:
    lab = lab_with_reservation()
    lab.worker("v", "{cpu:1}")
    assert list(lab.decide()) == [5]


def test_pausing_the_queue_of_a_reservation_lets_the_jobs_behind_it_start() -> None:
    lab = full_lab()
    lab.queue("q", open_to_all=True)
    lab.enqueue("{cpu:2}", queue="q")
    lab.enqueue("{cpu:1}")
    behind = lab.enqueue("{cpu:1}")
    lab.release(1)
    assert lab.release(2) == {}
    lab.queue("q", open_to_all=True, paused=True)
    assert list(lab.decide()) == [behind]


def test_a_reservation_on_one_kind_leaves_other_kinds_alone() -> None:
    lab = Lab(overtakes=1)
    lab.worker("w", "{cpu:2,gpu:1}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}")
    gpu = lab.enqueue("{gpu:1}")
    lab.decide()
    large = lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    lab.release(1)
    assert lab.explain(large).reserved_on == "w"
    waiting = lab.enqueue("{gpu:1}")
    assert lab.decide() == {}
    assert list(lab.release(gpu)) == [waiting]


def test_units_beside_a_reservation_are_still_given_away() -> None:
    lab = Lab(overtakes=1)
    lab.worker("w", "{ram:[8]}")
    lab.enqueue("{ram:4}")
    lab.enqueue("{ram:4}")
    lab.decide()
    lab.enqueue("{ram:5}")
    lab.enqueue("{ram:1}")
    assert list(lab.release(1)) == [4]
    small, tiny = lab.enqueue("{ram:4}"), lab.enqueue("{ram:2}")
    assert lab.decide() == {}
    assert list(lab.release(2)) == [3, tiny]
    assert lab.explain(small).needs


def test_a_reservation_holds_its_queue_to_what_the_view_has_left() -> None:
    lab = Lab(overtakes=1)
    lab.worker("w", "{cpu:[4]}")
    lab.view("q", "w", "{cpu:[2]}")
    lab.enqueue("{cpu:1}", queue="q")
    lab.enqueue("{cpu:1}", queue="q")
    lab.decide()
    large = lab.enqueue("{cpu:2}", queue="q")
    lab.enqueue("{cpu:1}", queue="q")
    assert list(lab.release(1)) == [4]
    assert lab.explain(large).reserved_on == "w"
    lab.enqueue("{cpu:1}", queue="q")
    assert lab.release(2) == {}
    other = lab.enqueue("{cpu:1}")
    assert list(lab.decide()) == [other]
    assert list(lab.release(4)) == [large]


def test_a_reservation_given_up_for_another_worker_frees_its_units_at_once() -> None:
    lab = Lab(overtakes=1)
    lab.worker("a", "{cpu:2}")
    lab.worker("b", "{cpu:2}")
    lab.scheduler.occupy("on b", "b", {"cpu": {"0": 10_000, "1": 10_000}})
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}")
    lab.decide()
    large = lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    behind = lab.enqueue("{cpu:1}")
    assert list(lab.release(1)) == [4]
    assert lab.explain(large).reserved_on == "a"
    assert lab.release(2) == {}
    started = lab.release("on b")
    assert {job: where for job, (where, _) in started.items()} == {
        large: "b",
        behind: "a",
    }


def test_heads_beyond_the_bound_wait_for_a_reservation() -> None:
    lab = full_lab(overtakes=1000, patience_s=10.0)
    first = lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    lab.release(1)
    lab.now = 10.0
    lab.decide()
    assert lab.explain(first).reserved_on == "w"
    second = lab.enqueue("{cpu:1.5}", priority=1)
    lab.enqueue("{cpu:0.5}", priority=0)
    lab.now = 11.0
    lab.decide()
    lab.release(2)
    assert list(lab.release(4)) == [second]
    assert list(lab.release(second)) == [first]
