"""Jobs that are decided ahead take over units without anybody being overtaken."""

from grass.scheduler import Placement

from .lab import Lab


def ahead(lab: Lab, holder: int, at_most: int = 8) -> int | None:
    placement: Placement | None = lab.scheduler.hand_ahead(holder, at_most)
    lab.scheduler.check()
    return None if placement is None else placement.job


def test_the_next_job_of_the_shape_follows_and_gets_exactly_the_units(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    held = lab.start("{gpu:1}")
    lab.start("{gpu:1}")
    lab.enqueue("{gpu:1}")
    placement = lab.scheduler.hand_ahead(1, 8)
    assert placement == Placement(3, "w", held)
    assert lab.scheduler.free("w") == {"gpu": {"0": 0, "1": 0}}
    assert lab.scheduler.release(1) == 3
    assert lab.scheduler.holders("w")[3] == held
    assert lab.decide() == {}
    assert lab.release(3) == {}
    assert lab.scheduler.free("w")["gpu"][next(iter(held["gpu"]))] == 10_000


def test_followers_form_a_line_of_bounded_length(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.start("{gpu:1}")
    for _ in range(5):
        lab.enqueue("{gpu:1}")
    assert [ahead(lab, 1, 3) for _ in range(4)] == [2, 3, 4, None]
    assert [lab.scheduler.release(job) for job in (1, 2, 3)] == [2, 3, 4]
    assert lab.release(4) == {5: ("w", {"gpu": {"0": 10_000}})}


def test_nobody_follows_while_another_shape_waits(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.start("{gpu:1}")
    lab.enqueue("{gpu:1}")
    lab.enqueue("{gpu:2}")
    lab.decide()
    lab.enqueue("{gpu:1}")
    assert ahead(lab, 1) is None


def test_another_request_or_queue_does_not_follow(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.queue("other", open_to_all=True)
    lab.start("{gpu:1}")
    other = lab.enqueue("{gpu:0.5}")
    assert ahead(lab, 1) is None
    lab.scheduler.remove(other)
    lab.enqueue("{gpu:1}", queue="other")
    assert ahead(lab, 1) is None


def test_nobody_follows_when_paused_or_draining(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.start("{gpu:1}")
    lab.enqueue("{gpu:1}")
    lab.queue("default", paused=True, open_to_all=True)
    assert ahead(lab, 1) is None
    lab.queue("default", open_to_all=True)
    lab.scheduler.set_paused(True)
    assert ahead(lab, 1) is None
    lab.scheduler.set_paused(False)
    lab.scheduler.drain("w", "gpu", "0", True)
    assert ahead(lab, 1) is None


def test_a_follower_that_steps_out_lets_the_next_move_up(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.start("{gpu:1}")
    for _ in range(3):
        lab.enqueue("{gpu:1}")
        ahead(lab, 1)
    assert lab.scheduler.release(3) is None
    lab.scheduler.check()
    assert lab.scheduler.leader(4) == 2
    assert [lab.scheduler.release(job) for job in (1, 2)] == [2, 4]
    lab.scheduler.check()


def test_a_restored_follower_takes_over_as_before(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.scheduler.occupy(7, "w", {"gpu": {"0": 10_000}}, "default")
    lab.scheduler.follow(8, 7)
    lab.scheduler.check()
    assert lab.scheduler.release(7) == 8
    assert lab.scheduler.holders("w") == {8: {"gpu": {"0": 10_000}}}
