"""Jobs whose GPU memory is looked up by their type."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from grass.errors import Refused
from grass.model.gpu_details import GpuDetails
from grass.model.resources import Allocation, request_from

from .lab import Lab, whole

TWO = "{gpu:2,vram:{'0':80,'1':80}}"
THREE = "{gpu:3,vram:{'0':80,'1':80,'2':16}}"
A100S = {"0": GpuDetails("A100"), "1": GpuDetails("A100")}
MIXED = {**A100S, "2": GpuDetails("T4")}
WHOLE_0: Allocation = {"gpu": {"0": whole(1)}, "vram": {"0": whole(80)}}
WHOLE_1: Allocation = {"gpu": {"1": whole(1)}, "vram": {"1": whole(80)}}


@pytest.fixture
def auto(lab: Lab) -> Callable[..., int]:
    """Enqueue jobs of type `train.py` on a worker with two GPUs of one model."""
    lab.worker("w", TWO, gpus=A100S)

    def enqueue(request: str = "{}", learned: str = "train.py", **options: Any) -> int:
        return lab.enqueue(request, learned=learned, **options)

    return enqueue


def test_the_first_of_a_type_has_a_gpu_to_itself_and_others_wait(
    lab: Lab, auto: Callable[..., int]
) -> None:
    first, second = auto(), auto()
    assert lab.decide() == {first: ("w", WHOLE_0)}
    waits = "waits for the profile of `train.py`, which job 1 is making"
    assert str(lab.explain(second)) == waits
    assert lab.explain(second).holders == (first,)
    beside = lab.enqueue("{gpu:0.5}")
    assert list(lab.decide()[beside][1]["gpu"]) == ["1"]


def test_another_type_is_not_delayed(lab: Lab, auto: Callable[..., int]) -> None:
    auto(), auto()
    other = auto(learned="eval.py")
    third = lab.enqueue("{gpu:1}")
    assert lab.decide() == {1: ("w", WHOLE_0), other: ("w", WHOLE_1)}
    assert lab.explain(third).overtaken == 0
    assert list(lab.release(other)) == [third]


def test_a_profile_packs_all_that_wait(lab: Lab, auto: Callable[..., int]) -> None:
    jobs = [auto() for _ in range(8)]
    lab.decide()
    started = lab.profile("train.py", A100=20)
    # The first keeps its GPU; the other one has room for four.
    assert list(started) == jobs[1:5]
    assert started[2] == ("w", {"vram": {"1": whole(20)}})
    reason = "needs vram 20G, free 0 of 160G (as learned of `train.py`)"
    assert str(lab.explain(6)).startswith(reason)
    assert list(lab.release(1)) == jobs[5:]


def test_known_memory_spreads_as_memory_alone_does(
    lab: Lab, auto: Callable[..., int]
) -> None:
    lab.profile("train.py", A100=20)
    units = []
    for _ in range(4):
        job = auto()
        units += list(lab.decide()[job][1]["vram"])
    assert units == ["0", "1", "0", "1"]
    packed = auto(policy="pack")
    assert lab.decide()[packed][1] == {"vram": {"0": whole(20)}}


def test_a_share_comes_with_learned_memory(lab: Lab, auto: Callable[..., int]) -> None:
    first = auto("{gpu:0.5}")
    assert lab.decide()[first][1] == WHOLE_0
    lab.profile("train.py", A100=20)
    job = auto("{gpu:0.5}")
    share = {"gpu": {"1": whole(0.5)}, "vram": {"1": whole(20)}}
    assert lab.decide()[job][1] == share


def test_two_gpus_have_the_learned_memory_each(
    lab: Lab, auto: Callable[..., int]
) -> None:
    first = auto("{gpu:2}")
    assert lab.decide()[first][1]["vram"] == {"0": whole(80), "1": whole(80)}
    lab.profile("train.py", A100=20)
    lab.release(first)
    job = auto("{gpu:2}")
    assert lab.decide()[job][1]["vram"] == {"0": whole(20), "1": whole(20)}


def test_each_model_has_a_profile_of_its_own(lab: Lab) -> None:
    lab.worker("w", THREE, gpus=MIXED)
    lab.profile("train.py", A100=50)
    jobs = [lab.enqueue("{}", learned="train.py") for _ in range(4)]
    started = lab.decide()
    assert [list(started[job][1]["vram"]) for job in jobs[:3]] == [["0"], ["1"], ["2"]]
    assert started[3][1]["gpu"] == {"2": whole(1)}
    reason = str(lab.explain(4))
    assert reason.startswith("needs vram 50G of gpu 0, 1, free 60G of 160G, in smaller")
    assert list(lab.profile("train.py", A100=50, T4=8)) == []
    assert lab.release(3) == {4: ("w", {"vram": {"2": whole(8)}})}


def test_models_are_profiled_side_by_side(lab: Lab) -> None:
    lab.worker("w", THREE, gpus=MIXED)
    for _ in range(3):
        lab.enqueue("{}", learned="train.py")
    started = lab.decide()
    assert [list(units["gpu"]) for _, units in started.values()] == [["0"], ["2"]]


def test_a_profiler_that_ends_without_a_profile_lets_the_next_one_try(
    lab: Lab, auto: Callable[..., int]
) -> None:
    jobs = [auto() for _ in range(3)]
    lab.decide()
    for job, after in pairwise(jobs):
        assert list(lab.release(job)) == [after]


def test_more_than_a_gpu_has_is_all_of_it_and_serialises_nothing(
    lab: Lab, auto: Callable[..., int]
) -> None:
    auto(), auto(), auto()
    lab.decide()
    assert lab.profile("train.py", A100=10**6) == {2: ("w", WHOLE_1)}
    reason = str(lab.explain(3))
    assert "needs gpu 1, free 0 of 2 (`train.py` needs all of a GPU)" in reason


def test_a_forgotten_profile_is_made_again(lab: Lab, auto: Callable[..., int]) -> None:
    lab.profile("train.py", A100=20)
    auto()
    assert list(lab.decide()) == [1]
    lab.profile("train.py")
    auto(), auto()
    assert lab.decide() == {2: ("w", WHOLE_1)}
    assert "which job 2 is making" in str(lab.explain(3))


def test_an_unknown_type_waits_for_a_whole_gpu(
    lab: Lab, auto: Callable[..., int]
) -> None:
    lab.start("{vram:1}"), lab.start("{vram:1}")
    job = auto()
    assert lab.decide() == {}
    reason = "needs gpu 1 whole with its memory (to learn the memory of `train.py`)"
    assert str(lab.explain(job)).startswith(reason)
    assert list(lab.release(1)) == [job]


def test_an_unknown_type_is_not_starved_by_small_jobs() -> None:
    lab = Lab(overtakes=3)
    lab.worker("w", TWO, gpus=A100S)
    running = [lab.enqueue("{vram:50}") for _ in range(2)]
    lab.decide()
    job = lab.enqueue("{}", learned="train.py")
    for _ in range(10):
        running.append(lab.enqueue("{vram:50}"))
        if job in lab.release(running.pop(0)):
            return
    raise AssertionError("it never started")


def test_a_profiler_that_runs_when_the_broker_starts_is_known(lab: Lab) -> None:
    lab.scheduler.remember_worker("w", {"gpu": {}, "vram": {}})
    lab.worker("w", TWO, gpus=A100S)
    lab.scheduler.occupy(7, "w", WHOLE_0, "default", learned="train.py")
    lab.last = 7
    job = lab.enqueue("{}", learned="train.py")
    assert lab.decide() == {}
    assert "which job 7 is making" in str(lab.explain(job))
    assert list(lab.release(7)) == [job]


def test_a_new_gpu_is_used_by_those_that_waited_for_a_profile(lab: Lab) -> None:
    lab.worker("w", TWO, gpus=A100S)
    lab.enqueue("{}", learned="train.py")
    job = lab.enqueue("{}", learned="train.py")
    lab.decide()
    lab.worker("v", "{gpu:1,vram:[16]}", gpus={"0": GpuDetails("T4")})
    assert lab.decide()[job][0] == "v"


def test_several_queues_share_the_profile_of_a_type(lab: Lab) -> None:
    lab.worker("w", TWO, gpus=A100S)
    lab.queue("q", open_to_all=True)
    for queue in ("default", "q", "q"):
        lab.enqueue("{}", queue=queue, learned="train.py")
    assert list(lab.decide()) == [1]
    assert list(lab.profile("train.py", A100=40)) == [2, 3]


def test_a_worker_without_memory_of_gpus_never_fits(lab: Lab) -> None:
    lab.worker("w", "{cpu:4}")
    never = lab.scheduler.never_fits
    text = never("default", (), learned="train.py")
    assert text == "queue `default` has no gpu; it has cpu"
    lab.worker("v", TWO, gpus=A100S)
    assert never("default", (), learned="train.py") is None
    other = never("default", (), learned="train.py", gpu_model="T4")
    assert other == "no GPU of queue `default` matches `T4`; there are 2 A100 of 80G"
    lab.profile("train.py", A100=100)
    assert never("default", request_from("{cpu:1}"), learned="x") is not None


def test_a_profiler_shrinks_to_what_was_learned(
    lab: Lab, auto: Callable[..., int]
) -> None:
    lab.start("{gpu:1}")
    first, second = auto(), auto()
    lab.decide()
    assert lab.scheduler.packed(first, ()) is None
    assert lab.profile("train.py", A100=20) == {}
    kept = lab.scheduler.packed(first, ())
    assert kept == {"vram": {"1": whole(20)}}
    lab.scheduler.shrink(first, kept)
    lab.scheduler.check()
    assert lab.decide() == {second: ("w", {"vram": {"1": whole(20)}})}
    assert lab.scheduler.allocation(first) == kept
    lab.release(first, second)
    assert lab.scheduler.free("w")["vram"]["1"] == whole(80)


def test_a_share_is_kept_when_its_memory_shrinks(
    lab: Lab, auto: Callable[..., int]
) -> None:
    job = auto("{gpu:0.5}")
    lab.decide()
    lab.profile("train.py", A100=20)
    kept = lab.scheduler.packed(job, request_from("{gpu:0.5}"))
    assert kept == {"gpu": {"0": whole(0.5)}, "vram": {"0": whole(20)}}
    lab.scheduler.shrink(job, kept)
    lab.scheduler.check()
    with pytest.raises(Refused):
        lab.scheduler.shrink(job, WHOLE_0)


def test_what_a_queue_gives_back_counts_for_its_own_limits(lab: Lab) -> None:
    lab.worker("w", TWO, gpus=A100S)
    lab.view("q", "w", "{gpu:{'0':1},vram:{'0':80}}")
    first = lab.enqueue("{}", queue="q", learned="train.py")
    second = lab.enqueue("{vram:50}", queue="q")
    assert list(lab.decide()) == [first]
    lab.profile("train.py", A100=20)
    lab.scheduler.shrink(first, {"vram": {"0": whole(20)}})
    assert list(lab.decide()) == [second]


def test_types_that_nobody_needs_are_forgotten(
    lab: Lab, auto: Callable[..., int]
) -> None:
    auto(), auto()
    lab.decide()
    lab.scheduler.remove(2)
    lab.release(1)
    assert lab.scheduler._fleet.types == {}
    lab.profile("train.py", A100=20)
    lab.profile("train.py")
    assert lab.scheduler._fleet.types == {}


def test_a_profile_examines_one_shape_however_many_jobs_wait(
    lab: Lab, auto: Callable[..., int]
) -> None:
    many = list(range(100, 5100))
    lab.scheduler.enqueue_all(many, "default", (), learned="train.py")
    for number in range(50):
        auto(learned=f"other-{number}")
    lab.decide()
    lab.scheduler.set_profile("train.py", {"A100": whole(20)})
    lab.scheduler.decide(0.0)
    assert len(lab.scheduler._dispatch.ready) < 10


@pytest.mark.parametrize("known", [{}, {"A100": 50}, {"A100": 90}])
def test_a_guest_of_a_type_does_not_wait_for_what_its_own_process_has(
    lab: Lab, auto: Callable[..., int], known: dict[str, float]
) -> None:
    lab.profile("train.py", **known)
    again = {"worker": "w", "gpu_model": "gpu:0"}
    lab.scheduler.withhold("w", {"vram": {"0": whole(60)}}, {8: {"0": whole(60)}})
    other, guest = auto(**again, process=9), auto(**again, process=7)
    assert lab.decide() == {}
    kept = {7: {"0": whole(60)}}
    lab.scheduler.withhold("w", {"vram": {"0": whole(60)}}, kept)
    memory = known.get("A100", 80)
    assert lab.decide()[guest][1]["vram"] == {"0": whole(min(80, memory))}
    assert lab.scheduler.waits(other)


def test_a_guest_of_a_type_starts_once_others_leave_it_room(
    lab: Lab, auto: Callable[..., int]
) -> None:
    lab.profile("train.py", A100=70)
    held = lab.enqueue("{vram:20}", gpu_model="gpu:0")
    lab.decide()
    lab.scheduler.withhold("w", {"vram": {"0": whole(60)}}, {7: {"0": whole(60)}})
    guest = auto(worker="w", gpu_model="gpu:0", process=7)
    assert lab.decide() == {}
    assert "free 60G of 80G" in str(lab.explain(guest))
    assert list(lab.release(held)) == [guest]


def test_a_queue_with_a_part_of_a_gpu_profiles_with_that_part(lab: Lab) -> None:
    lab.worker("w", TWO, gpus=A100S)
    lab.view("q", "w", "{gpu:{'0':0.5},vram:{'0':40}}")
    first, second = (lab.enqueue("{}", queue="q", learned="a.py") for _ in range(2))
    part = {"gpu": {"0": whole(0.5)}, "vram": {"0": whole(36)}}
    assert lab.decide() == {first: ("w", part)}
    assert "which job 1 is making" in str(lab.explain(second))
    other = lab.enqueue("{}", queue="q", learned="b.py")
    assert lab.decide() == {}
    reason = (
        "needs gpu 0.5, free 0 of 0.5 (to learn the memory of `b.py`); needs vram 36G"
    )
    assert str(lab.explain(other)) == f"{reason}, free 4G of 40G"
    lab.scheduler.remove(other)
    assert lab.profile("a.py", A100=20) == {}
    kept = lab.scheduler.packed(first, request_from("{}"))
    assert kept == {"vram": {"0": whole(20)}}
    lab.scheduler.shrink(first, kept)
    assert lab.decide() == {second: ("w", kept)}


def test_a_queue_with_a_part_of_a_gpu_gives_no_more_than_that(lab: Lab) -> None:
    lab.worker("w", TWO, gpus=A100S)
    lab.view("q", "w", "{gpu:{'0':0.5},vram:{'0':20}}")
    lab.profile("a.py", A100=30)
    jobs = [lab.enqueue("{}", queue="q", learned="a.py") for _ in range(2)]
    part = {"gpu": {"0": whole(0.5)}, "vram": {"0": whole(18)}}
    assert lab.decide() == {jobs[0]: ("w", part)}
    assert lab.release(jobs[0]) == {jobs[1]: ("w", part)}


def test_a_reason_says_only_of_memory_that_it_was_learned(lab: Lab) -> None:
    lab.worker("w", "{cpu:1,gpu:1,vram:[80]}", gpus={"0": GpuDetails("A100")})
    lab.profile("a.py", A100=30)
    lab.start("{cpu:1}")
    job = lab.enqueue("{cpu:1}", learned="a.py")
    lab.decide()
    assert str(lab.explain(job)) == "needs cpu 1, free 0 of 1"
    lab.start("{vram:60}")
    both = str(lab.explain(job))
    assert "needs cpu 1, free 0 of 1" in both
    assert "needs vram 30G, free 20G of 80G (as learned of `a.py`)" in both
