"""Every wait has a reason with numbers."""

import pytest

from grass.model.amount_text import WHOLE
from grass.model.resources import request_from
from grass.scheduler.reasons.memory_users import Told

from .lab import Lab


def test_a_shortage_names_the_kind_and_the_numbers(lab: Lab) -> None:
    lab.worker("w", "{gpu:4}")
    lab.start("{gpu:3}")
    job = lab.enqueue("{gpu:2}")
    lab.decide()
    explanation = lab.explain(job)
    assert str(explanation) == "needs gpu 2, free 1 of 4"
    assert explanation.holders == (1,)
    assert explanation.worker == "w"


def test_free_shares_that_are_too_small_are_called_so(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    lab.start("{gpu:0.6}")
    lab.start("{gpu:0.6}")
    job = lab.enqueue("{gpu:0.7}")
    lab.decide()
    expected = "needs gpu 0.7, free 0.8 of 2, in smaller pieces"
    assert str(lab.explain(job)) == expected


def test_the_position_counts_better_jobs_of_the_queue(lab: Lab) -> None:
    for priority in (0, 5, 0):
        lab.enqueue("{cpu:1}", priority)
    lab.enqueue("{gpu:1}")
    lab.enqueue("{gpu:1}", queue="q")
    assert [lab.scheduler.position(job) for job in range(1, 6)] == [2, 1, 3, 4, 1]


def test_pauses_and_limits_are_named(lab: Lab) -> None:
    lab.worker("w", "{cpu:4}")
    lab.queue("q", max_running=1, open_to_all=True)
    lab.scheduler.set_limit("array", 1)
    lab.start("{cpu:1}", queue="q")
    full = lab.enqueue("{cpu:1}", queue="q")
    lab.enqueue("{cpu:1}", limiters=("array",))
    capped = lab.enqueue("{cpu:1}", limiters=("array",))
    lab.decide()
    assert str(lab.explain(full)) == "queue `q` runs 1 of at most 1"
    assert str(lab.explain(capped)) == "1 of at most 1 of its array run"
    lab.queue("q", paused=True, open_to_all=True)
    assert str(lab.explain(full)) == "queue `q` is paused"
    lab.scheduler.set_paused(True)
    assert str(lab.explain(full)) == "everything is paused"


def test_a_queue_without_workers_is_named(lab: Lab) -> None:
    job = lab.enqueue("{cpu:1}", queue="q")
    assert str(lab.explain(job)) == "no worker of queue `q` can run it at present"


def test_a_job_not_yet_decided_on_says_so(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    job = lab.enqueue("{cpu:1}")
    assert str(lab.explain(job)) == "starts with the next decision"


def test_tied_kinds_on_different_units_are_explained(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':8,'1':8}}")
    lab.scheduler.occupy("a", "w", {"gpu": {"0": 10_000}})
    lab.scheduler.occupy("b", "w", {"vram": {"1": 80_000}})
    job = lab.enqueue("{gpu:1,vram:8}")
    lab.decide()
    assert str(lab.explain(job)) == (
        "needs gpu 1 and vram 8G on the same unit; b holds 8G of gpu 1"
    )


ALICE = "python (pid 4711, alice): 12G"
TWO = "{gpu:2,vram:{'0':80,'1':80}}"


def told(lab: Lab, job: int) -> str:
    """Say why a job waits, with strangers on unit 0 and a fault of unit 1."""
    strangers = {"0": [ALICE]}
    faults = {"1": "lost from the bus"}
    return lab.explain(job).text(
        Told(
            strangers=lambda _worker, unit: strangers.get(unit, ()),
            fault=lambda _worker, unit: faults.get(unit),
        )
    )


def withhold(lab: Lab, **units: int) -> None:
    amounts = {unit[1:]: gib * WHOLE for unit, gib in units.items()}
    lab.scheduler.withhold("w", {"vram": amounts})


def test_a_whole_gpu_waits_for_a_job_and_a_stranger_by_name(lab: Lab) -> None:
    lab.worker("w", TWO)
    withhold(lab, _0=75)
    lab.start("{vram:8}")
    withhold(lab, _0=12)
    job = lab.enqueue("{gpu:1}")
    lab.decide()
    assert told(lab, job) == (
        "needs gpu 1 whole with its memory; job 1 holds 8G of gpu 1;"
        " python (pid 4711, alice) uses 12G of gpu 0"
    )


def test_a_share_says_how_much_memory_it_needs(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    withhold(lab, _0=12)
    job = lab.enqueue("{gpu:0.5}")
    lab.decide()
    assert told(lab, job) == (
        "needs gpu 0.5 with vram 36G; python (pid 4711, alice) uses 12G of gpu 0"
    )


def test_memory_alone_names_who_uses_it(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    withhold(lab, _0=12)
    job = lab.enqueue("{vram:70}")
    lab.decide()
    assert told(lab, job) == (
        "needs vram 70G, free 68G of 80G; python (pid 4711, alice) uses 12G of gpu 0"
    )


def test_what_is_withheld_without_a_stranger_is_named(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    withhold(lab, _0=1)
    job = lab.enqueue("{vram:80}")
    lab.decide()
    assert str(lab.explain(job)) == (
        "needs vram 80G, free 79G of 80G; 1G of gpu 0 is withheld"
    )


def test_a_gpu_with_a_fault_is_named_with_it(lab: Lab) -> None:
    lab.worker("w", TWO)
    for kind in ("gpu", "vram"):
        lab.scheduler.drain("w", kind, "1", True)
    lab.start("{gpu:1}")
    job = lab.enqueue("{gpu:1}")
    lab.decide()
    assert told(lab, job).startswith(
        "needs gpu 1, free 0 of 2, 1 out of use; gpu 1: lost from the bus"
    )


@pytest.mark.parametrize(
    ("request_text", "sentence"),
    [
        ("{gpu:2}", None),
        ("{gpu:5}", "gpu: asked 5, the most any worker of queue `q1` has is 2"),
        ("{tpu:1}", "queue `q1` has no tpu; it has cpu, gpu"),
        ("{cpu:8,gpu:2}", "no worker of queue `q1` has cpu 8, gpu 2 together"),
    ],
)
def test_what_can_never_be_met_is_said_in_numbers(
    lab: Lab, request_text: str, sentence: str | None
) -> None:
    lab.worker("a", "{cpu:8,gpu:1}")
    lab.worker("b", "{cpu:2,gpu:4}")
    lab.view("q1", "a", "{gpu:1}")
    lab.view("q1", "b", "{gpu:2}")
    lab.start("{cpu:8}")
    request = request_from(request_text)
    assert lab.scheduler.never_fits("q1", request) == sentence


def test_a_queue_whose_workers_have_not_come_accepts_anything(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    request = request_from("{gpu:100}")
    assert lab.scheduler.never_fits("q", request) is None
    assert lab.scheduler.never_fits("default", request, worker="other") is None


def test_a_worker_that_is_of_no_pool_is_said_to_be_so(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    lab.worker("p", "{cpu:1}", "pool-uni")
    lab.enqueue("{cpu:1}", labels=("pool-uni",))
    job = lab.enqueue("{cpu:1}", labels=("pool-uni", "fast"))
    told = lab.explain(job).feasibility()
    assert [one.why for one in told] == [
        "does not have `fast`",
        "is not of pool `uni` and does not have `fast`",
    ]


def test_a_label_that_no_worker_has_is_named(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}", "slow")
    labels = frozenset({"near", "fast"})
    sentence = lab.scheduler.never_fits(
        "default", request_from("{cpu:1}"), labels=labels
    )
    assert sentence == "no worker of queue `default` has `fast`, `near`"


def test_of_several_workers_the_nearest_is_named(lab: Lab) -> None:
    lab.worker("a", "{gpu:4}")
    lab.worker("b", "{gpu:4}")
    lab.start("{gpu:4}")
    lab.start("{gpu:3}")
    job = lab.enqueue("{gpu:2}")
    lab.decide()
    (nearest,) = {str(lab.explain(job)) for _ in range(3)}
    assert nearest == f"needs gpu 2, free 1 of 4 on `{lab.explain(job).worker}`"
    assert lab.explain(job).text(Told(str.upper)).endswith("on `B`")


def test_of_two_that_are_as_near_it_is_always_the_first_by_name(lab: Lab) -> None:
    for name in ("c", "a", "b"):
        lab.worker(name, "{gpu:1}")
    for _ in range(3):
        lab.start("{gpu:1}")
    job = lab.enqueue("{gpu:1}")
    lab.decide()
    assert str(lab.explain(job)) == "needs gpu 1, free 0 of 1 on `a`"
    lab.worker("c", "{gpu:1,cpu:1}")
    lab.decide()
    assert lab.explain(job).worker == "a"
