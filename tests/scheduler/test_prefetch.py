"""Prefetched jobs take over units, and no other job is overtaken."""

from grass.scheduler import Placement

from .lab import Lab


def prefetch(lab: Lab, holder: int, at_most: int = 8) -> int | None:
    placement: Placement | None = lab.scheduler.prefetch(holder, at_most)
    lab.scheduler.check()
    return None if placement is None else placement.job


def test_the_next_job_of_the_shape_takes_over_exactly_the_units(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    held = lab.start("{gpu:1}")
    lab.start("{gpu:1}")
    lab.enqueue("{gpu:1}")
    placement = lab.scheduler.prefetch(1, 8)
    assert placement == Placement(3, "w", held)
    assert lab.scheduler.free("w") == {"gpu": {"0": 0, "1": 0}}
    assert lab.scheduler.release(1) == 3
    assert lab.scheduler.holders("w")[3] == held
    assert lab.decide() == {}
    assert lab.release(3) == {}
    assert lab.scheduler.free("w")["gpu"][next(iter(held["gpu"]))] == 10_000


def test_prefetched_jobs_form_a_chain_of_bounded_length(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.start("{gpu:1}")
    for _ in range(5):
        lab.enqueue("{gpu:1}")
    assert [prefetch(lab, 1, 3) for _ in range(4)] == [2, 3, 4, None]
    assert [lab.scheduler.release(job) for job in (1, 2, 3)] == [2, 3, 4]
    assert lab.release(4) == {5: ("w", {"gpu": {"0": 10_000}})}


def test_units_are_handed_over_to_the_job_that_would_be_prefetched(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    held = lab.start("{gpu:1}")
    for _ in range(3):
        lab.enqueue("{gpu:1}")
    assert lab.scheduler.hand_over(1) == Placement(2, "w", held)
    lab.scheduler.check()
    assert lab.scheduler.holders("w") == {2: held}
    assert prefetch(lab, 2) == 3
    assert lab.scheduler.hand_over(2) is None, "3 is prefetched already"
    assert lab.scheduler.release(2) == 3
    lab.enqueue("{gpu:0.5}")
    assert lab.scheduler.hand_over(3) is None, "one of another shape waits"
    assert lab.scheduler.hand_over(9) is None, "9 holds nothing"
    lab.scheduler.check()


def test_no_job_is_prefetched_while_another_shape_waits(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.start("{gpu:1}")
    lab.enqueue("{gpu:1}")
    lab.enqueue("{gpu:2}")
    lab.decide()
    lab.enqueue("{gpu:1}")
    assert prefetch(lab, 1) is None


def test_another_request_or_queue_is_not_prefetched(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.queue("other", open_to_all=True)
    lab.start("{gpu:1}")
    other = lab.enqueue("{gpu:0.5}")
    assert prefetch(lab, 1) is None
    lab.scheduler.remove(other)
    lab.enqueue("{gpu:1}", queue="other")
    assert prefetch(lab, 1) is None


def test_no_job_is_prefetched_when_paused_or_drained(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.start("{gpu:1}")
    lab.enqueue("{gpu:1}")
    lab.queue("default", paused=True, open_to_all=True)
    assert prefetch(lab, 1) is None
    lab.queue("default", open_to_all=True)
    lab.scheduler.set_paused(True)
    assert prefetch(lab, 1) is None
    lab.scheduler.set_paused(False)
    lab.scheduler.drain("w", "gpu", "0", True)
    assert prefetch(lab, 1) is None


def test_the_follower_of_a_removed_job_takes_its_place(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.start("{gpu:1}")
    for _ in range(3):
        lab.enqueue("{gpu:1}")
        prefetch(lab, 1)
    assert lab.scheduler.release(3) is None
    lab.scheduler.check()
    assert lab.scheduler.predecessor(4) == 2
    assert [lab.scheduler.release(job) for job in (1, 2)] == [2, 4]
    lab.scheduler.check()


def test_a_restored_prefetched_job_takes_over_as_before(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.scheduler.occupy(7, "w", {"gpu": {"0": 10_000}}, "default")
    lab.scheduler.restore_prefetched(8, 7)
    lab.scheduler.check()
    assert lab.scheduler.release(7) == 8
    assert lab.scheduler.holders("w") == {8: {"gpu": {"0": 10_000}}}
