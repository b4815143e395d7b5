"""The order of starts, and what closed gates prevent."""

import pytest

from grass.errors import NotFound, Refused

from .lab import Lab


def test_jobs_start_in_the_order_of_arrival(lab: Lab) -> None:
    lab.worker("w", "{cpu:2}")
    for _ in range(4):
        lab.enqueue("{cpu:1}")
    assert list(lab.decide()) == [1, 2]
    assert list(lab.release(2)) == [3]


def test_a_higher_priority_goes_first(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}", priority=5)
    lab.enqueue("{cpu:1}", priority=-5)
    assert list(lab.decide()) == [2]
    assert list(lab.release(2)) == [1]


def test_a_better_job_goes_before_a_blocked_shape(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    for _ in range(3):
        lab.enqueue("{cpu:1}")
    lab.decide()
    urgent = lab.enqueue("{cpu:1}", priority=1)
    lab.decide()
    assert list(lab.release(1)) == [urgent]
    assert list(lab.release(urgent)) == [2]


def test_a_blocked_head_lets_smaller_jobs_pass(lab: Lab) -> None:
    lab.worker("w", "{cpu:2}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:2}")
    lab.enqueue("{cpu:1}")
    assert list(lab.decide()) == [1, 3]


def test_a_removed_job_never_starts(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    for _ in range(3):
        lab.enqueue("{cpu:1}")
    lab.decide()
    lab.scheduler.remove(2)
    lab.scheduler.check()
    assert list(lab.release(1)) == [3]
    assert lab.scheduler.waiting() == 0


def test_a_removed_job_may_come_back_with_another_request(lab: Lab) -> None:
    lab.worker("w", "{cpu:2}")
    lab.enqueue("{cpu:2}")
    lab.decide()
    lab.enqueue("{cpu:2}")
    lab.decide()
    lab.scheduler.remove(2)
    lab.last = 1
    lab.enqueue("{cpu:1}")
    assert list(lab.release(1)) == [2]


def test_removing_many_jobs_leaves_the_rest_in_order(lab: Lab) -> None:
    for _ in range(300):
        lab.enqueue("{cpu:1}")
    for job in range(1, 290):
        lab.scheduler.remove(job)
    lab.worker("w", "{cpu:20}")
    assert list(lab.decide()) == list(range(290, 301))


def test_a_job_cannot_wait_twice(lab: Lab) -> None:
    lab.enqueue("{cpu:1}")
    lab.last = 0
    with pytest.raises(Refused):
        lab.enqueue("{cpu:1}")


def test_a_paused_queue_starts_nothing_until_it_is_resumed(lab: Lab) -> None:
    lab.worker("w", "{cpu:4}")
    lab.queue("q", paused=True, open_to_all=True)
    lab.enqueue("{cpu:1}", queue="q")
    other = lab.enqueue("{cpu:1}")
    assert list(lab.decide()) == [other]
    lab.queue("q", open_to_all=True)
    assert list(lab.decide()) == [1]


def test_pausing_everything_starts_nothing(lab: Lab) -> None:
    lab.worker("w", "{cpu:4}")
    lab.enqueue("{cpu:1}")
    lab.scheduler.set_paused(True)
    assert lab.decide() == {}
    assert lab.scheduler.wake_at() is None
    lab.scheduler.set_paused(False)
    assert list(lab.decide()) == [1]


def test_a_queue_runs_no_more_than_its_limit(lab: Lab) -> None:
    lab.worker("w", "{cpu:4}")
    lab.queue("q", max_running=2, open_to_all=True)
    for amount in (1, 0.5, 0.25, 1):
        lab.enqueue(f"{{cpu:{amount}}}", queue="q")
    assert list(lab.decide()) == [1, 2]
    assert list(lab.release(1)) == [3]
    lab.queue("q", max_running=None, open_to_all=True)
    assert list(lab.decide()) == [4]


def test_a_full_limiter_does_not_hold_back_the_same_request_without_it(
    lab: Lab,
) -> None:
    lab.worker("w", "{cpu:8}")
    lab.scheduler.set_limit("array", 1)
    lab.enqueue("{cpu:1}", limiters=("array",))
    lab.enqueue("{cpu:1}", limiters=("array",))
    free = lab.enqueue("{cpu:1}")
    assert list(lab.decide()) == [1, free]
    assert list(lab.release(1)) == [2]


def test_a_job_starts_when_each_of_its_limiters_is_open(lab: Lab) -> None:
    lab.worker("w", "{cpu:8}")
    lab.scheduler.set_limit("array", 1)
    lab.scheduler.set_limit("sweep", 1)
    array = lab.enqueue("{cpu:1}", limiters=("array",))
    sweep = lab.enqueue("{cpu:1}", limiters=("sweep",))
    both = lab.enqueue("{cpu:1}", limiters=("array", "sweep"))
    later = lab.enqueue("{cpu:2}", limiters=("array",))
    assert list(lab.decide()) == [array, sweep]
    # The first gate lets the next one through while the second is closed.
    assert list(lab.release(array)) == [later]
    assert lab.release(sweep) == {}
    assert list(lab.release(later)) == [both]


def test_raising_a_limit_starts_more(lab: Lab) -> None:
    lab.worker("w", "{cpu:8}")
    lab.scheduler.set_limit("array", 1)
    for _ in range(4):
        lab.enqueue("{cpu:1}", limiters=("array",))
    assert list(lab.decide()) == [1]
    lab.scheduler.set_limit("array", 3)
    assert list(lab.decide()) == [2, 3]


def test_a_parked_job_that_was_removed_lets_the_next_one_through(lab: Lab) -> None:
    lab.worker("w", "{cpu:8}")
    lab.queue("q", max_running=1, open_to_all=True)
    for amount in (1, 2, 3):
        lab.enqueue(f"{{cpu:{amount}}}", queue="q")
    lab.decide()
    lab.scheduler.remove(2)
    assert list(lab.release(1)) == [3]


def test_a_parked_shape_with_a_better_head_comes_back_first(lab: Lab) -> None:
    lab.worker("w", "{cpu:8}")
    lab.queue("q", max_running=1, open_to_all=True)
    for amount in (1, 2, 3):
        lab.enqueue(f"{{cpu:{amount}}}", queue="q")
    lab.decide()
    urgent = lab.enqueue("{cpu:3}", priority=1, queue="q")
    assert lab.decide() == {}
    assert list(lab.release(1)) == [urgent]
    assert list(lab.release(urgent)) == [2]


def test_a_parked_shape_that_lost_its_head_gives_way(lab: Lab) -> None:
    lab.worker("w", "{cpu:8}")
    lab.queue("q", max_running=1, open_to_all=True)
    for amount in (1, 2, 3, 2):
        lab.enqueue(f"{{cpu:{amount}}}", queue="q")
    lab.decide()
    lab.scheduler.remove(2)
    assert list(lab.release(1)) == [3]


def test_a_shape_without_a_place_lets_the_next_one_through_the_gate(lab: Lab) -> None:
    lab.worker("w", "{cpu:2,gpu:1}")
    lab.scheduler.set_limit("array", 1)
    lab.scheduler.occupy("lease", "w", {"gpu": {"0": 10_000}})
    lab.enqueue("{cpu:1}", limiters=("array",))
    lab.enqueue("{gpu:1}", limiters=("array",))
    lab.enqueue("{cpu:2}", limiters=("array",))
    assert list(lab.decide()) == [1]
    assert list(lab.release(1)) == [3]
    assert list(lab.release("lease", 3)) == [2]


def test_waiting_counts_by_queue(lab: Lab) -> None:
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}", queue="q")
    scheduler = lab.scheduler
    assert (scheduler.waiting(), scheduler.waiting("q"), scheduler.waiting("x")) == (
        2,
        1,
        0,
    )


def test_explaining_a_job_that_does_not_wait_is_not_found(lab: Lab) -> None:
    with pytest.raises(NotFound):
        lab.explain(7)


def test_a_queue_at_its_own_limit_goes_on_once_it_releases_something(
    lab: Lab,
) -> None:
    lab.worker("w", "{ram:[10]}")
    lab.view("a", "w", "{ram:[1]}")
    lab.view("b", "w", "{ram:[1]}")
    runs = {queue: lab.enqueue("{ram:1}", queue=queue) for queue in ("a", "b")}
    waits = {queue: lab.enqueue("{ram:1}", queue=queue) for queue in ("a", "b")}
    other = lab.enqueue("{ram:1}")
    assert set(lab.decide()) == {*runs.values(), other}
    # What others release is beyond their own limit.
    assert lab.release(other) == {}
    assert set(lab.release(runs["a"])) == {waits["a"]}
    assert set(lab.release(runs["b"])) == {waits["b"]}


def test_the_first_jobs_are_in_order_over_all_shapes(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    small = [lab.enqueue("{cpu:1}") for _ in range(4)]
    large = [lab.enqueue("{cpu:0.5}", priority=1) for _ in range(3)]
    other = lab.enqueue("{cpu:1}", queue="other", priority=2)
    urgent = lab.enqueue("{cpu:1}", priority=3)
    lab.scheduler.remove(small[1])
    wanted = [urgent, other, *large, small[0], *small[2:]]
    assert lab.scheduler.first(20) == wanted
    assert lab.scheduler.first(3) == wanted[:3]
    assert lab.scheduler.first(20, "other") == [other]
    assert lab.scheduler.first(20, "none") == []


def test_a_position_counts_the_jobs_that_go_before(lab: Lab) -> None:
    jobs = [lab.enqueue("{cpu:1}") for _ in range(300)]
    urgent = [lab.enqueue("{cpu:1}", priority=1) for _ in range(100)]
    elsewhere = lab.enqueue("{cpu:1}", queue="other", priority=9)
    for job in (*jobs[10:200], *urgent[:50]):
        lab.scheduler.remove(job)
    back = lab.enqueue("{cpu:2}", priority=2)
    assert lab.scheduler.position(elsewhere) == 1
    assert lab.scheduler.position(back) == 1
    assert lab.scheduler.position(urgent[50]) == 2
    assert lab.scheduler.position(jobs[0]) == 52
    assert lab.scheduler.position(jobs[299]) == 51 + 110
