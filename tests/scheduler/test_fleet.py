"""Workers that come, change and go; views; leases."""

import pytest

from grass.errors import NotFound, Refused
from grass.model.resources import capacity_from, request_from

from .lab import Lab, whole


def test_release_restores_what_was_free_to_the_bit(lab: Lab) -> None:
    lab.worker("w", "{cpu:3,ram:[7.3]}")
    before = lab.scheduler.free("w")
    job = lab.enqueue("{cpu:2.5,ram:1.1}")
    lab.decide()
    lab.release(job)
    assert lab.scheduler.free("w") == before == lab.scheduler.capacity("w")


def test_releasing_who_holds_nothing_changes_nothing(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    assert lab.release(99, "nobody") == {}


def test_a_view_limits_the_kinds_it_names_and_no_others(lab: Lab) -> None:
    lab.worker("w", "{cpu:8,gpu:4}")
    lab.view("q", "w", "{gpu:{'2':1,'3':0.5}}")
    taken = lab.start("{gpu:1,cpu:8}", queue="q")
    assert taken["gpu"] == {"2": whole(1)}
    assert len(taken["cpu"]) == 8
    assert lab.start("{gpu:0.5}", queue="q") == {"gpu": {"3": whole(0.5)}}
    lab.enqueue("{gpu:0.1}", queue="q")
    assert lab.decide() == {}


def test_two_views_on_one_unit_share_it(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.view("a", "w", "{gpu:1}")
    lab.view("b", "w", "{gpu:1}")
    first = lab.enqueue("{gpu:1}", queue="a")
    second = lab.enqueue("{gpu:1}", queue="b")
    assert list(lab.decide()) == [first]
    assert list(lab.release(first)) == [second]


def test_a_queue_without_a_view_is_served_only_when_open_to_all(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    job = lab.enqueue("{cpu:1}", queue="q")
    assert lab.decide() == {}
    lab.queue("q", open_to_all=True)
    assert list(lab.decide()) == [job]


def test_a_view_may_come_before_its_worker(lab: Lab) -> None:
    lab.view("q", "w", "{gpu:1}")
    job = lab.enqueue("{gpu:1}", queue="q")
    assert lab.decide() == {}
    lab.worker("w", "{gpu:2}")
    assert list(lab.decide()) == [job]


def test_a_removed_view_no_longer_serves_the_queue(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.view("q", "w", "{gpu:1}")
    lab.view("q", "w", None)
    lab.enqueue("{gpu:1}", queue="q")
    assert lab.decide() == {}


def test_a_view_set_later_counts_what_its_queue_holds(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.queue("q", open_to_all=True)
    lab.start("{gpu:1}", queue="q")
    lab.view("q", "w", "{gpu:{'0':0.5}}")
    waiting = lab.enqueue("{gpu:0.5}", queue="q")
    assert lab.decide() == {}
    assert list(lab.release(1)) == [waiting]


def test_removing_a_queue_removes_its_views(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.view("q", "w", "{gpu:1}")
    lab.enqueue("{gpu:1}", queue="q")
    lab.scheduler.remove_queue("q")
    lab.scheduler.remove_queue("q")
    assert lab.decide() == {}
    assert lab.scheduler.waiting("q") == 1


def test_a_drained_unit_takes_nothing_new(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.scheduler.drain("w", "gpu", "0", True)
    assert lab.start("{gpu:1}") == {"gpu": {"1": whole(1)}}
    job = lab.enqueue("{gpu:1}")
    assert lab.decide() == {}
    lab.scheduler.drain("w", "gpu", "0", False)
    assert list(lab.decide()) == [job]


def test_a_drained_unit_is_closed_to_views_too(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.view("q", "w", "{gpu:2}")
    lab.scheduler.drain("w", "gpu", "0", True)
    assert lab.start("{gpu:1}", queue="q") == {"gpu": {"1": whole(1)}}


def test_a_new_worker_starts_what_waits(lab: Lab) -> None:
    job = lab.enqueue("{cpu:1}")
    assert lab.decide() == {}
    lab.worker("w", "{cpu:1}")
    assert list(lab.decide()) == [job]


def test_added_units_start_what_waits(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    lab.enqueue("{cpu:1}")
    lab.enqueue("{cpu:1}")
    lab.decide()
    lab.worker("w", "{cpu:2}")
    assert list(lab.decide()) == [2]


def test_a_withdrawn_unit_that_is_held_drains_and_then_leaves(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.start("{gpu:2}")
    lab.worker("w", "{gpu:1}")
    assert lab.scheduler.capacity("w") == capacity_from("{gpu:2}")
    lab.enqueue("{gpu:1}")
    lab.enqueue("{gpu:1}")
    assert list(lab.release(1)) == [2]
    assert lab.scheduler.capacity("w") == capacity_from("{gpu:1}")


def test_a_unit_made_smaller_than_what_is_held_shrinks_on_release(lab: Lab) -> None:
    lab.worker("w", "{ram:[8]}")
    lab.start("{ram:6}")
    lab.worker("w", "{ram:[4]}")
    job = lab.enqueue("{ram:2}")
    assert lab.decide() == {}
    assert list(lab.release(1)) == [job]
    assert lab.scheduler.capacity("w") == capacity_from("{ram:[4]}")


def test_holders_of_a_removed_worker_stay_held(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    lab.start("{cpu:1}")
    lab.scheduler.remove_worker("w")
    lab.scheduler.check()
    assert lab.scheduler.holders("w") == {1: {"cpu": {"0": whole(1)}}}
    job = lab.enqueue("{cpu:1}")
    assert lab.decide() == {}
    lab.worker("w", "{cpu:1}")
    assert lab.decide() == {}
    assert list(lab.release(1)) == [job]


def test_a_removed_worker_is_forgotten_with_its_last_holder(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    lab.start("{cpu:1}")
    lab.scheduler.remove_worker("w")
    lab.release(1)
    with pytest.raises(NotFound):
        lab.scheduler.free("w")


def test_a_job_is_restored_before_its_worker_is_back(lab: Lab) -> None:
    lab.scheduler.occupy(1, "w", {"gpu": {"0": whole(1)}}, queue="default")
    lab.scheduler.check()
    lab.last = 1
    lab.worker("w", "{gpu:2}")
    assert lab.start("{gpu:1}") == {"gpu": {"1": whole(1)}}
    assert len(lab.scheduler.holders("w")) == 2


def test_a_restored_job_on_a_unit_that_is_gone_keeps_it_until_released(
    lab: Lab,
) -> None:
    lab.scheduler.occupy(1, "w", {"gpu": {"7": whole(1)}}, queue="default")
    lab.worker("w", "{gpu:1}")
    assert set(lab.scheduler.capacity("w")["gpu"]) == {"0", "7"}
    lab.release(1)
    assert set(lab.scheduler.capacity("w")["gpu"]) == {"0"}


def test_a_lease_on_units_that_are_taken_is_refused(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.scheduler.occupy("lease", "w", {"gpu": {"0": whole(0.6)}})
    with pytest.raises(Refused, match="gpu 0 of worker `w`"):
        lab.scheduler.occupy("other", "w", {"gpu": {"0": whole(0.6)}})
    with pytest.raises(Refused):
        lab.scheduler.occupy("lease", "w", {})
    lab.scheduler.check()
    assert lab.scheduler.allocation("lease") == {"gpu": {"0": whole(0.6)}}


def test_adding_a_worker_again_unchanged_changes_nothing(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    lab.start("{cpu:1}")
    lab.worker("w", "{cpu:1}")
    assert lab.scheduler.free("w") == {"cpu": {"0": 0}}


def test_a_worker_that_is_away_is_remembered_with_what_it_has(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.scheduler.remember_worker("away", capacity_from("{gpu:4}"), frozenset({"far"}))
    lab.scheduler.check()
    far = frozenset({"far"})
    ask = request_from("{gpu:4}")
    assert lab.scheduler.never_fits("default", ask) is None
    assert lab.scheduler.never_fits("default", ask, labels=far) is None
    assert lab.scheduler.never_fits("default", ask, worker="w") is not None
    assert lab.scheduler.never_fits("default", request_from("{gpu:5}")) is not None
    job = lab.enqueue("{gpu:4}")
    assert lab.decide() == {}
    why = "no worker of queue `default` that could run it is here"
    assert (str(lab.explain(job)), lab.explain(job).away) == (why, ("away",))
    lab.worker("away", "{gpu:4}", "far")
    assert list(lab.decide()) == [job]


def test_a_known_worker_that_goes_keeps_what_it_had(lab: Lab) -> None:
    lab.scheduler.remember_worker("w", capacity_from("{gpu:2}"))
    lab.worker("w", "{gpu:2}")
    job = lab.enqueue("{gpu:1}")
    lab.decide()
    lab.scheduler.remove_worker("w")
    lab.scheduler.check()
    assert lab.scheduler.never_fits("default", request_from("{gpu:2}")) is None
    lab.release(job)
    assert lab.scheduler.free("w") == lab.scheduler.capacity("w")
    assert lab.scheduler.never_fits("default", request_from("{gpu:3}")) is not None


def test_what_is_known_of_a_worker_may_change_while_it_is_held(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    jobs = [lab.enqueue("{gpu:1}") for _ in range(2)]
    lab.decide()
    lab.scheduler.remove_worker("w")
    lab.scheduler.remember_worker("w", capacity_from("{gpu:1}"))
    lab.scheduler.check()
    lab.release(*jobs)
    assert lab.scheduler.capacity("w") == capacity_from("{gpu:1}")


def test_a_forgotten_worker_leaves_nothing_but_its_holders(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    lab.scheduler.remember_worker("w", capacity_from("{gpu:1}"))
    lab.view("q", "w", "{gpu:1}")
    job = lab.enqueue("{gpu:1}")
    lab.decide()
    lab.scheduler.forget_worker("w")
    lab.scheduler.check()
    assert lab.scheduler.never_fits("q", request_from("{gpu:9}")) is None
    assert lab.scheduler.allocation(job) is not None
    lab.release(job)
    with pytest.raises(NotFound):
        lab.scheduler.free("w")
    lab.scheduler.forget_worker("w")
